"""Plain values of a document into typed ones, each checked against an annotation."""

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from mirror_report.config.errors import ConfigError, did_you_mean
from mirror_report.config.flow import Permission
from mirror_report.engines import ENGINES

T = TypeVar("T")


def record(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from a mapping, each value checked against the field's annotation."""
    keys = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    refuse_unknown(given, keys, where)
    values: dict[str, Any] = {}
    for name, field in keys.items():
        if name in given:
            values[name] = coerce(given[name], str(field.type), f"{where}.{name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(f"{where}.{name}: missing")
    return kind(**values)


def coerce(value: Any, annotation: str, where: str) -> Any:
    """A value of an annotation's type, such as ``tuple[str, ...]`` or ``int | None``.

    :raises ConfigError: it is of another type; ``where`` names the key.
    """
    kind = annotation.removesuffix(" | None")
    if value is None and kind != annotation:
        return None
    if kind == "tuple[Permission, ...]":
        return tuple(
            record(Permission, mapping(each, f"{where}[{i}]"), f"{where}[{i}]")
            for i, each in enumerate(sequence(value, where))
        )
    if kind.startswith("tuple["):
        return tuple(typed(each, str, where) for each in sequence(value, where))
    if kind.startswith("Mapping["):
        numbers = kind == "Mapping[str, int]"
        return {
            name: typed(each, int, f"{where}.{name}") if numbers else _text(each)
            for name, each in mapping(value, where).items()
        }
    if kind in ("Engine", "Path"):
        text = typed(value, str, where)
        return ENGINES[text] if kind == "Engine" else Path(text)
    if kind == "float" and type(value) is int:
        value = float(value)
    return typed(value, {"bool": bool, "str": str, "int": int, "float": float}[kind], where)


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


def one_of(value: Any, choices: Collection[str], where: str, key: str = "") -> None:
    """Refuse a value that is none of the choices.

    :param where: names the value in the message; ``key`` beside it, where one key is of several.
    :raises ConfigError: it is none of them.
    """
    if value not in choices:
        raise ConfigError(f"{where}: {key}{value!r} is none of {', '.join(choices)}")


def refuse_unknown(given: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """Refuse keys that mean nothing, with the nearest one that does.

    :raises ConfigError: there is one.
    """
    for name in given:
        if name not in keys:
            raise ConfigError(
                f"{where + '.' if where else ''}{name}: unknown key{did_you_mean(name, keys)}"
            )
