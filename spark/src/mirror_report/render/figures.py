"""Numbers and times as people read them, and the rows both renderings share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mirror_report.model import CLASSES

UNKNOWN = "unknown"
LAG_ORDER = (
    "TRUNCATED", "RESET", "STOPPED", "STALLED", "UNKNOWN", "REWOUND", "LAGGING", "OK", "IDLE",
)  # fmt: skip
PARITY_ORDER = ("mismatch", "unknown", "unverifiable", "skipped", "in_flight", "verified")


def number(value: float | None) -> str:
    """Whole number with thousands marks."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """Duration in its two largest units."""
    if value is None:
        return UNKNOWN
    whole = int(value)
    for size, name, lower, lower_name in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // lower} {lower_name}"
    return f"{whole} s"


def moment(milliseconds: int | None) -> str:
    """UTC time of a timestamp in milliseconds."""
    if milliseconds is None:
        return "-"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def share(value: float | None) -> str:
    """Percentage that never rounds up to a whole it is not."""
    if value is None:
        return "-"
    return "100 %" if value >= 1 else f"{min(value * 100, 99.99):.2f} %"


def bytes_(value: int | None) -> str:
    """Size in binary units."""
    if value is None:
        return UNKNOWN
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def said(finding: Mapping[str, Any]) -> str:
    """Message of a finding, with the flow named once."""
    flow, message = finding["flow"], str(finding["message"])
    known = flow is None or message.startswith((f"{flow}:", f"{flow}/"))
    return message if known else f"{flow}: {message}"


def lag_by_topic(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per flow and topic, worst first; a sum with an unknown part is unknown."""
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["flow"], row["topic"]), []).append(row)
    topics = []
    for (flow, topic), some in grouped.items():
        records = [one["lag_records"] for one in some]
        ages = [one["lag_seconds"] for one in some]
        topics.append(
            {
                "flow": flow,
                "topic": topic,
                "state": min((one["state"] for one in some), key=LAG_ORDER.index),
                "partitions": len([one for one in some if one["partition"] >= 0]),
                "lag_records": None if None in records else sum(records),
                "lag_seconds": None if None in ages else max(ages),
                "lost": sum(one["lost"] for one in some),
                "estimated_records": _estimated(some),
            }
        )
    return sorted(
        topics,
        key=lambda one: (
            LAG_ORDER.index(one["state"]),
            -(one["lag_records"] or 0),
            one["flow"],
            one["topic"],
        ),
    )


def _estimated(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Records probably left to mirror; ``None`` unless every partition has an estimate."""
    left = [
        max(0, one["log_end"] - one["estimate"])
        for one in rows
        if one.get("estimate") is not None and one["log_end"] is not None
    ]
    return sum(left) if len(left) == len(rows) else None


def estimate(value: float | None) -> str:
    """Whole number that is no more than probable."""
    return "-" if value is None else f"~{value:,.0f}"


def parity_worst_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Parity rows as a person should read them."""
    return sorted(
        rows,
        key=lambda one: (PARITY_ORDER.index(one["status"]), one["flow"], one["source_topic"]),
    )


def classes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Classes of which some row has records, or does not know."""
    return [
        name
        for name in CLASSES
        if any(name in one["counts"] and one["counts"][name] != 0 for one in rows)
    ]


def class_name(name: str) -> str:
    """Name of a class as people read it."""
    return name.replace("_", " ")
