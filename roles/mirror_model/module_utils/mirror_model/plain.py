"""Plain Python values out of whatever an inventory hands over."""

from collections.abc import Mapping
from typing import Any


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
