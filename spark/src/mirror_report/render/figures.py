"""Numbers and times as people read them; ``None`` is shown as unknown or nothing, never as 0."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

UNKNOWN = "unknown"
NOTHING = "-"
NEVER = "never"


def plain(text: str, escape: Callable[[str], str] = ascii) -> str:
    r"""Text of any format, in which nothing is hidden: names of groups may hold any character.

    What would move a cursor, turn the direction of writing, end a line or not be seen is shown as
    an escape, such as ``\u202e``.

    :param escape: how the format quotes such a character.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escape(char)[1:-1] for char in text)


def number(value: float | None) -> str:
    """Whole number with thousands marks."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def estimate(value: float | None) -> str:
    """Whole number that is no more than probable."""
    return NOTHING if value is None else f"~{value:,.0f}"


def rate(value: float | None) -> str:
    """Records per second."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}/s" if abs(value) >= 10 or value == 0 else f"{value:.1f}/s"


def seconds(value: float | None) -> str:
    """Duration in its two largest units."""
    if value is None:
        return UNKNOWN
    if value < 0:
        return f"-{seconds(-value)}"
    whole = int(value)
    for size, name, lower, lower_name in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // lower} {lower_name}"
    return f"{whole} s"


def age(value: float | None) -> str:
    """Duration; nothing where there is none."""
    return NOTHING if value is None else seconds(value)


def waits(row: Mapping[str, Any]) -> str:
    """For how long records have been waiting, at least."""
    value = row["waiting_seconds"]
    return f"≥ {seconds(value)}" if value and row["waiting_at_least"] else seconds(value)


def eta(row: Mapping[str, Any]) -> str:
    """When the mirror will have caught up."""
    if row["lag_records"] == 0:
        return NOTHING
    return NEVER if row["catches_up"] is False else seconds(row["eta_seconds"])


def lost(row: Mapping[str, Any]) -> str:
    """Records lost before they were mirrored, or between how many."""
    least, most = number(row["lost"]), row["lost_at_most"]
    return least if most is None or most == row["lost"] else f"{least} to {number(most)}"


def breach(value: float | None) -> str:
    """When retention begins to remove what is not verified."""
    if value is None:
        return NOTHING
    return f"in {seconds(value)}" if value > 0 else f"{seconds(-value)} ago"


def moment(milliseconds: int | None, form: str = "%Y-%m-%d %H:%M:%SZ") -> str:
    """UTC time of a timestamp in milliseconds; records may bear one that no calendar reaches."""
    if milliseconds is None:
        return NOTHING
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"


def share(value: float | None) -> str:
    """Percentage that never rounds up to a whole it is not."""
    if value is None:
        return NOTHING
    return "100 %" if value >= 1 else f"{min(value * 100, 99.99):.2f} %"


def share_or_unknown(value: float | None) -> str:
    """Percentage of what exists, whether it is known or not."""
    return UNKNOWN if value is None else share(value)


def bytes_(value: float | None) -> str:
    """Size in binary units."""
    if value is None:
        return UNKNOWN
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def translated_offset(row: Mapping[str, Any]) -> str:
    """Offset on the target that a group's offset on the source has become, or its lower bound."""
    value = number(row["image"])
    if row["image"] is None or row["image_exact"]:
        return value
    probable = row.get("image_estimate")
    return f"≥ {value}" + (f" ({estimate(probable)})" if probable is not None else "")


def at_least(row: Mapping[str, Any], key: str) -> str:
    """Records of which there may be more than is known, and how many at most.

    :param key: of the number; with ``_at_most`` behind it, of its bound.
    """
    least, most = row[key], row.get(f"{key}_at_most", row[key])
    if least is None or most == least:
        return number(least)
    return f"≥ {number(least)}" + (f", ≤ {number(most)}" if most is not None else "")


def size(value: int | None) -> str:
    """Bytes of a part of a record; Kafka knows null, which is not empty."""
    return "null" if value is None else number(value)


def setting(value: str | None) -> str:
    """Value of a setting."""
    return UNKNOWN if value is None else value or '""'


def words(name: str) -> str:
    """A name of the report's own, such as ``corrupt_value``, as people read it."""
    return name.replace("_", " ")


def message(finding: Mapping[str, Any]) -> str:
    """Message of a finding, with the flow named once."""
    flow, text = finding["flow"], str(finding["message"])
    names_flow = flow is None or text.startswith((f"{flow}:", f"{flow}/"))
    return text if names_flow else f"{flow}: {text}"
