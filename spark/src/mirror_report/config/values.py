"""Plain values of a document into typed ones, each checked against an annotation."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from mirror_report.config.errors import ConfigError, did_you_mean
from mirror_report.config.flow import Permission
from mirror_report.engines import ENGINES

T = TypeVar("T")


def record(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from a mapping, each value checked against the field's annotation."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    refuse_unknown(given, known, where)
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in given:
            values[name] = coerce(given[name], str(field.type), f"{where}.{name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(f"{where}.{name}: missing")
    return kind(**values)


def coerce(value: Any, annotation: str, where: str) -> Any:
    """A value as an annotation wants it, such as ``tuple[str, ...]`` or ``int | None``.

    :raises ConfigError: it is of another type; ``where`` names the key.
    """
    wanted = {part.strip() for part in annotation.split("|")}
    if value is None and "None" in wanted:
        return None
    for name, made in (("Engine", ENGINES.__getitem__), ("Path", Path)):
        if name in wanted:
            return made(typed(value, str, where))
    if any(kind.startswith("tuple[") for kind in wanted):
        return _tuple(value, "tuple[Permission, ...]" in wanted, where)
    if any(kind.startswith("Mapping[") for kind in wanted):
        numbers = "Mapping[str, int]" in wanted
        return {
            name: typed(item, int, f"{where}.{name}") if numbers else _text(item)
            for name, item in mapping(value, where).items()
        }
    if "float" in wanted and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kinds: dict[str, type] = {"bool": bool, "str": str, "int": int, "float": float}
    return typed(value, next(kind for name, kind in kinds.items() if name in wanted), where)


def _tuple(value: Any, permissions: bool, where: str) -> tuple[Any, ...]:
    given = sequence(value, where)
    if not permissions:
        return tuple(typed(item, str, where) for item in given)
    places = [f"{where}[{i}]" for i in range(len(given))]
    return tuple(
        record(Permission, mapping(item, at), at) for item, at in zip(given, places, strict=True)
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed(value: Any, kind: type[T], where: str) -> T:
    """A value of exactly this type.

    :raises ConfigError: it is of another one; ``where`` names the key.
    """
    # bool is an int to Python, and not to the person who wrote `yes`.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{where}: {kind.__name__} expected, {type(value).__name__} given")
    return value


def mapping(value: Any, where: str) -> dict[str, Any]:
    """A map with text as keys.

    :raises ConfigError: it is something else.
    """
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{where}: a map of names is expected")
    return value


def sequence(value: Any, where: str) -> list[Any]:
    """A list.

    :raises ConfigError: it is something else.
    """
    if not isinstance(value, list):
        raise ConfigError(f"{where}: a list is expected")
    return value


def one_of(value: Any, known: Iterable[str], where: str) -> None:
    """Refuse a value that is none of some words.

    :raises ConfigError: it is none of them; ``where`` names the key.
    """
    if value not in known:
        raise ConfigError(f"{where}: {value!r} is none of {', '.join(known)}")


def refuse_unknown(given: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse keys that mean nothing, with the nearest one that does.

    :raises ConfigError: there is one.
    """
    for name in given:
        if name not in known:
            raise ConfigError(
                f"{where + '.' if where else ''}{name}: unknown key{did_you_mean(name, known)}"
            )
