"""Which columns the report's tables have, on a terminal and on the page alike."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mirror_report.render import figures, rows
from mirror_report.render.rows import Row

Tone = Literal["ok", "dim", "warning", "critical", "unknown"]

DULL = frozenset(("", "-", "0", "unknown"))
# State -> how it is coloured; a state that is not here is critical.
TONES: Mapping[str, Tone] = {
    "OK": "ok", "IDLE": "dim", "LAGGING": "warning", "REWOUND": "warning", "UNKNOWN": "unknown",
    "verified": "ok", "in_flight": "dim", "skipped": "warning", "unverifiable": "warning",
    "unknown": "unknown", "ready": "ok", "reread": "warning", "stale": "warning",
    "active_on_target": "dim", "not_synced": "warning", "synced": "dim",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column.

    :param cell: text of a row.
    :param value: what rows are sorted by; the text, if there is no other.
    :param always: show it even if no row has anything in it.
    :param spare: leave it out of a terminal that is too narrow, the highest first; 0: never.
    :param state: colour the text as a state.
    :param alarm: anything in it is bad.
    """

    title: str
    cell: Callable[[Row], str]
    value: Callable[[Row], Any] | None = None
    right: bool = True
    always: bool = True
    spare: int = 0
    state: bool = False
    alarm: bool = False

    def tone(self, text: str) -> Tone | None:
        """How a text of this column is coloured."""
        if self.state:
            return TONES.get(text, "critical")
        if text == figures.UNKNOWN:
            return "unknown"
        if text in DULL:
            return "dim"
        return "critical" if self.alarm else None


def shown(columns: Iterable[Column], table_rows: Sequence[Row]) -> list[Column]:
    """Columns in which there is something."""
    return [
        column
        for column in columns
        if column.always or not DULL.issuperset(column.cell(row) for row in table_rows)
    ]


def lag(topics: Sequence[Row]) -> list[Column]:
    """Columns of :func:`~mirror_report.render.rows.lag_by_topic`."""
    return [
        *_flow(topics),
        _text("topic"),
        _state("state"),
        _figure("partitions", "partitions", spare=2),
        *_lag(),
    ]


def lag_partitions(partitions: Sequence[Row]) -> list[Column]:
    """Columns of :func:`~mirror_report.render.rows.lag_by_partition`."""
    return [
        *_flow(partitions),
        _text("topic"),
        _figure("partition", "partition", str),
        _state("state"),
        _figure("log start", "log_start"),
        _figure("log end", "log_end"),
        _figure("position", "position"),
        _text(
            "by",
            "position_source",
            lambda value: figures.NOTHING if value is None else figures.words(value),
            always=False,
        ),
        _figure("age", "position_age_seconds", figures.seconds, always=False),
        *_lag(),
    ]


def _lag() -> list[Column]:
    return [
        _figure("records", "lag_records"),
        _figure("estimated", "estimated_records", figures.estimate, always=False, spare=3),
        _figure("oldest record", "lag_seconds", figures.seconds),
        Column("waits for", figures.waiting, _key("waiting_seconds"), always=False, spare=5),
        _figure("size", "lag_bytes", figures.bytes_, always=False, spare=4),
        _figure("produced", "produce_rate", figures.rate, always=False, spare=7),
        _figure("mirrored", "mirror_rate", figures.rate, always=False, spare=6),
        Column("caught up in", figures.eta, _eta, always=False),
        Column("lost", figures.lost, _key("lost"), always=False, alarm=True),
        _figure("open transaction", "open_transaction_seconds", figures.age, always=False),
    ]


def parity(topics: Sequence[Row], *, strategy: bool) -> list[Column]:
    """Columns of :func:`~mirror_report.render.rows.parity_worst_first`; classes that occur.

    :param strategy: whether to say how topics are compared even if it is by timestamp.
    """
    compared_by = _text("compared by", "strategy", figures.words, spare=1)
    return [
        *_flow(topics),
        _text("topic"),
        _state("status"),
        *([compared_by] if strategy or {row["strategy"] for row in topics} - {"timestamp"} else []),
        Column("verified", lambda row: figures.number(_verified(row)), _verified),
        _figure("in flight", "in_flight_records", always=False),
        _figure("skipped", "skipped_records", always=False),
        # Reports of earlier releases have neither.
        Column(
            "not compared",
            lambda row: figures.number(row.get("uncompared_records", 0)),
            lambda row: row.get("uncompared_records"),
            always=False,
        ),
        *(_class(name) for name in rows.classes(topics)),
        Column(
            "compared as a whole",
            lambda row: figures.moment(row.get("scanned_at_ms")),
            lambda row: row.get("scanned_at_ms"),
            always=False,
        ),
        _figure("verified through", "verified_through_ms", figures.moment),
        _figure("retention reaches it", "breach_seconds", figures.breach, always=False),
    ]


def mismatches(partitions: Sequence[Row]) -> list[Column]:
    """Columns of :func:`~mirror_report.render.rows.mismatches`."""
    return [
        *_flow(partitions),
        _text("topic"),
        _text("class", show=figures.words),
        _text("partition", right=True),
        _figure("records", "count"),
    ]


def groups(sorted_groups: Sequence[Row]) -> list[Column]:
    """Columns of :func:`~mirror_report.render.rows.groups_worst_first`."""
    return [
        *_flow(sorted_groups),
        _text("group"),
        _state("state"),
        _figure("ready", "readiness", figures.share_or_unknown),
        *_failover(),
        _count("unmapped"),
        _count("stale"),
        Column("partitions", lambda row: figures.number(len(row["partitions"]) or None), spare=1),
    ]


def group_partitions() -> list[Column]:
    """Columns of a group's partitions, each with the name of its group."""
    return [
        _text("group"),
        _text("topic", "target_topic"),
        _figure("partition", "partition", str),
        _state("state"),
        _figure("on source", "source_offset"),
        Column("is on target", figures.image, _key("image")),
        _figure("committed there", "target_offset"),
        *_failover(),
        _figure("checkpoint age", "checkpoint_age_seconds", figures.age, always=False),
    ]


def _failover() -> list[Column]:
    return [
        Column("re-read", lambda row: figures.at_least(row, "reread"), _key("reread")),
        Column("skipped", lambda row: figures.at_least(row, "skip"), _key("skip"), alarm=True),
    ]


def differences(settings: Sequence[Row]) -> list[Column]:
    """Columns of :func:`~mirror_report.render.rows.differences`."""
    return [
        *_flow(settings),
        _text("topic"),
        _text("setting", "name"),
        _text("source", show=figures.setting),
        _text("target", show=figures.setting),
        _state("kind"),
    ]


def not_selected(topics: Sequence[Row]) -> list[Column]:
    """Columns of :func:`~mirror_report.render.rows.not_selected`."""
    return [*_flow(topics), _text("topic"), _text("reason")]


def flows() -> list[Column]:
    """Columns of the flows."""
    return [
        _text("flow", "name"),
        _text("engine"),
        _text("from", "source"),
        _text("to", "target"),
        _text("group", "group_id"),
        _text("is", "group_state", figures.text_or_unknown),
        Column("topics", lambda row: figures.number(_topics(row)), _topics),
        _figure("coverage", "coverage", figures.share),
        _figure("heartbeat", "heartbeat_age_seconds", figures.age, always=False),
    ]


def samples() -> list[Column]:
    """Columns of samples, each with its class."""
    return [
        _text("class", show=figures.words),
        _text("side"),
        _figure("partition", "partition", str),
        _figure("offset", "offset"),
        _figure("timestamp", "timestamp_ms", figures.moment),
        _text("record hash", "record_hash"),
        _figure("key bytes", "key_bytes", figures.size),
        _figure("value bytes", "value_bytes", figures.size),
    ]


def _flow(table_rows: Sequence[Row]) -> list[Column]:
    """Name of the flow, where there is more than one."""
    return [_text("flow")] if len({row["flow"] for row in table_rows}) > 1 else []


def _text(
    title: str, key: str | None = None, show: Callable[[Any], str] = str, **more: Any
) -> Column:
    return Column(title, lambda row: show(row[key or title]), **{"right": False} | more)


def _figure(
    title: str, key: str, show: Callable[[Any], str] = figures.number, **more: Any
) -> Column:
    return Column(title, lambda row: show(row[key]), _key(key), **more)


def _state(key: str) -> Column:
    return _text(key, state=True)


def _class(name: str) -> Column:
    return Column(
        figures.words(name),
        lambda word: (
            figures.number(word["counts"][name]) if name in word["counts"] else figures.NOTHING
        ),
        lambda word: word["counts"].get(name),
        alarm=True,
    )


def _count(state: str) -> Column:
    return Column(state, lambda row: str(row["states"][state]), always=False)


def _key(name: str) -> Callable[[Row], Any]:
    return lambda row: row[name]


def _topics(row: Row) -> int | None:
    """How many topics a flow has; not known if it could not be observed."""
    return None if row["source_cluster_id"] is None else len(row["topics"])


def _verified(row: Row) -> int | None:
    """Records verified; not known of a topic that could not be compared."""
    return None if row["status"] == "unknown" else row["verified_records"]


def _eta(row: Row) -> float | None:
    never = row["lag_records"] != 0 and row["catches_up"] is False
    return math.inf if never else row["eta_seconds"]
