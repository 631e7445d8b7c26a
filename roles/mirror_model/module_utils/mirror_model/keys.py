"""What a user writes: how its schema is written and checked, filled in, in layers, and made plain.

Problems are messages while the inventory is validated, and the model's one error afterwards.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["text", "secret", "whole", "texts", "properties", "map", "choice"]
Refuse = Callable[[str], None]
# Alias to cluster, filled in.
Clusters = Mapping[str, Any]
# A flow of mirror_flows with every key filled in.
Flow = Mapping[str, Any]
# Kafka's names to values; None removes a property.
Properties = Mapping[str, Any]


class ModelError(ValueError):
    """The inventory cannot be turned into a configuration.

    The message names the variable and the cure and never quotes a secret.
    """


@dataclass(frozen=True)
class Key:
    """One key of a map: what it holds, its default and what the reference page says about it.

    :param reasons: value in capitals -> why it is refused, be it among the choices or not.
    :param engines: names of the only engines to which the key means something; empty: to all.
    """

    name: str
    kind: Kind
    doc: str
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""
    engines: tuple[str, ...] = ()


def suggestion(word: object, choices: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest known one, or all of them."""
    names = sorted(choices)
    if near := difflib.get_close_matches(str(word), names, n=1, cutoff=0.6):
        return f"did you mean '{near[0]}'?"
    return f"known: {', '.join(names)}" if names else "none is defined"


def check_map(path: str, value: Any, keys: tuple[Key, ...], refuse: Refuse) -> bool:
    """Check one map against its keys.

    :param path: the variable as a user would write it, such as ``kafka_clusters.east``.
    :param value: what the inventory says.
    :param keys: the keys that may appear.
    :param refuse: called with one message per problem.
    :returns: whether the value is a map whose members can be checked.
    """
    if not isinstance(value, Mapping):
        refuse(f"{path}: must be a map; its keys are {', '.join(key.name for key in keys)}")
        return False
    by_name = {key.name: key for key in keys}
    for name in value:
        if name not in by_name:
            refuse(f"{path}: unknown key '{name}'; {suggestion(name, by_name)}")
    for key in keys:
        if value.get(key.name) is not None:
            check_value(f"{path}.{key.name}", value[key.name], key, refuse)
        elif key.required:
            refuse(f"{path}.{key.name}: is missing; {key.doc}")
    return True


def check_value(path: str, value: Any, key: Key, refuse: Refuse) -> None:
    """Check one value against its key; secrets are never quoted."""
    if key.kind in ("text", "secret"):
        _check_text(path, value, key.pattern, refuse)
    elif key.kind == "choice":
        if (reason := key.reasons.get(str(value).upper())) or value not in key.choices:
            among = f"'{value}' is not one of {', '.join(key.choices)}"
            refuse(f"{path}: {reason or among}")
    elif key.kind == "whole":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            refuse(f"{path}: must be a whole number of at least 1")
    elif key.kind == "texts":
        _check_texts(path, value, key, refuse)
    elif not isinstance(value, Mapping):
        refuse(f"{path}: must be a map")
    elif key.kind == "properties":
        for name, item in value.items():
            _check_property(path, name, item, refuse)


def _check_text(path: str, value: Any, pattern: str, refuse: Refuse) -> None:
    if not isinstance(value, str) or not value:
        refuse(f"{path}: must be non-empty text (quote numbers)")
    elif pattern and not re.fullmatch(pattern, value):
        refuse(f"{path}: '{value}' does not match {pattern}")


def _check_texts(path: str, value: Any, key: Key, refuse: Refuse) -> None:
    if not isinstance(value, list):
        refuse(f"{path}: must be a list; write [a, b] or one '- a' per line")
        return
    if key.required and not value:
        refuse(f"{path}: must not be empty")
    for place, item in enumerate(value):
        _check_text(f"{path}[{place}]", item, key.pattern, refuse)
    for item in sorted({item for item in value if isinstance(item, str) and value.count(item) > 1}):
        refuse(f"{path}: '{item}' is listed twice; remove one")


def _check_property(path: str, name: Any, value: Any, refuse: Refuse) -> None:
    items = value if isinstance(value, list) else [value]
    if not isinstance(name, str) or not name:
        refuse(f"{path}: a property name must be non-empty text")
    elif not all(isinstance(item, (str, int, float, bool)) or item is None for item in items):
        refuse(f"{path}['{name}']: must be text, a number, a boolean, null or a list of these")


def defaults_of(keys: tuple[Key, ...]) -> dict[str, Any]:
    """The value every key has when it is left out."""
    return {key.name: key.default for key in keys}


def filled(value: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A map over its defaults; null means the default."""
    return {**defaults, **{key: item for key, item in value.items() if item is not None}}


def member(variable: str, members: Any, name: str) -> Any:
    """What a map of the inventory holds under a name.

    :raises ModelError: the name is not defined; the message names the variable.
    """
    if not isinstance(members, Mapping) or name not in members:
        names = members if isinstance(members, Mapping) else ()
        raise ModelError(f"{variable}: '{name}' is not defined; {suggestion(name, names)}")
    return members[name]


def layered(*layers: Properties) -> dict[str, Any]:
    """Properties of several layers, later ones before earlier ones; null removes a property."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer
    return {name: value for name, value in merged.items() if value is not None}


def within(properties: Properties, prefix: str) -> dict[str, Any]:
    """The properties whose names begin with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}


def plain(value: Any) -> Any:
    """Copy nested data into dict, list, str, int, float, bool and None.

    :param value: inventory data; strings and containers may be subclasses that carry tags.
    :returns: an equal value made of the built-in types alone; other types are kept as they are.
    """
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    for kind in (bool, str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value
