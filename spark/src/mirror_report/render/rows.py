"""Rows as a person should read them: worst first, summed where there are many.

In and out: plain rows of the document (see :mod:`mirror_report.model`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

LAG_ORDER = (
    "TRUNCATED", "RESET", "STOPPED", "STALLED", "UNKNOWN", "REWOUND", "LAGGING", "OK", "IDLE",
)  # fmt: skip
PARITY_ORDER = ("mismatch", "unknown", "unverifiable", "skipped", "in_flight", "verified")


def lag_by_topic(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One row per flow and topic, worst first; a sum with an unknown part is unknown."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["flow"], row["topic"]), []).append(row)
    return sorted(
        (
            {"flow": flow, "topic": topic, **_topic(partitions)}
            for (flow, topic), partitions in grouped.items()
        ),
        key=_late_first,
    )


def lag_by_partition(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One row per partition, worst first, with the columns of :func:`lag_by_topic`."""
    return sorted(
        ({**row, **_topic([row])} for row in rows if row["partition"] >= 0), key=_late_first
    )


def _late_first(row: Row) -> tuple[Any, ...]:
    return (
        rank(LAG_ORDER, row["state"]),
        -(row["lag_records"] or 0),
        row["flow"],
        row["topic"],
        row.get("partition", 0),
    )


def rank(order: Sequence[str], state: str) -> int:
    """Place of a state; one that is not known here comes first."""
    return order.index(state) if state in order else -1


def _topic(rows: Sequence[Row]) -> dict[str, Any]:
    late = [row for row in rows if row["lag_records"] != 0]
    ahead = [row["catches_up"] for row in late]
    bounds = [row["lost"] if row["lost_at_most"] is None else row["lost_at_most"] for row in rows]
    return {
        "state": min((row["state"] for row in rows), key=lambda state: rank(LAG_ORDER, state)),
        "partitions": len([row for row in rows if row["partition"] >= 0]) or None,
        "lag_records": total(rows, "lag_records"),
        "lag_bytes": total(rows, "lag_bytes"),
        "lag_seconds": _maximum(rows, "lag_seconds"),
        "waiting_seconds": _maximum(late, "waiting_seconds"),
        "waiting_at_least": any(row["waiting_at_least"] for row in late),
        "produce_rate": total(rows, "produce_rate"),
        "mirror_rate": total(rows, "mirror_rate"),
        "eta_seconds": _maximum(late, "eta_seconds"),
        "catches_up": False if False in ahead else None if None in ahead else True,
        "position_age_seconds": max(known_values(rows, "position_age_seconds"), default=None),
        "open_transaction_seconds": max(
            known_values(rows, "open_transaction_seconds"), default=None
        ),
        "lost": total(rows, "lost"),
        "lost_at_most": sum(bounds) if sum(bounds) != total(rows, "lost") else None,
        "estimated_records": _estimated(rows),
    }


def total(rows: Iterable[Row], key: str) -> Any:
    """Sum; unknown if a part of it is."""
    values = [row[key] for row in rows]
    return None if None in values else sum(values)


def _maximum(rows: Iterable[Row], key: str) -> Any:
    """Maximum, 0 of nothing; unknown if a part of it is."""
    values = [row[key] for row in rows]
    return None if None in values else max(values, default=0)


def known_values(rows: Iterable[Row], key: str) -> list[Any]:
    """Values of one column, without those that are unknown."""
    return [row[key] for row in rows if row[key] is not None]


def all_observed(document: Mapping[str, Any]) -> bool:
    """Whether every flow could be observed: the others have no known cluster, and no rows."""
    clusters = [flow["source_cluster_id"] for flow in document["flows"]]
    return bool(clusters) and None not in clusters


def verified(report: Mapping[str, Any]) -> tuple[int | None, bool]:
    """Records verified, ``None`` if no content was compared; and whether no topic is left out."""
    counts = [row["verified_records"] for row in report["parity"] if row["status"] != "unknown"]
    left_out = any(finding["kind"] == "parity_unavailable" for finding in report["findings"])
    whole = all_observed(report) and not left_out and len(counts) == len(report["parity"])
    return (sum(counts) if counts else None), whole


def oldest_scan(report: Mapping[str, Any]) -> int | None:
    """When the compacted topic that waits longest was compared as a whole; ``None``: there is none.

    Reports of earlier releases do not have it.
    """
    scans = (row.get("scanned_at_ms") for row in report["parity"])
    return min((at for at in scans if at is not None), default=None)


def unreported(report: Mapping[str, Any]) -> list[str]:
    """Errors that are no finding's message."""
    messages = {finding["message"] for finding in report["findings"]}
    return [error for error in report["errors"] if error not in messages]


def _estimated(rows: Sequence[Row]) -> int | None:
    """Records probably left to mirror; ``None`` unless every partition has an estimate."""
    left = [
        max(0, row["log_end"] - row["estimate"])
        for row in rows
        if row["estimate"] is not None and row["log_end"] is not None
    ]
    return sum(left) if len(left) == len(rows) else None


def parity_worst_first(rows: Iterable[Row]) -> list[Row]:
    """Parity rows, what differs before what is only not verified yet."""
    return sorted(
        rows,
        key=lambda row: (
            rank(PARITY_ORDER, row["status"]),
            -sum(count or 0 for count in row["counts"].values()),
            row["flow"],
            row["source_topic"],
        ),
    )


def differences(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Settings that differ, one row each; risks first."""
    return sorted(
        (
            {
                "flow": row["flow"],
                "topic": row["topic"],
                "target_topic": row["target_topic"],
                **each,
            }
            for row in rows
            for each in row["differences"]
        ),
        key=lambda row: (row["kind"] != "risk", row["flow"], row["topic"]),
    )
