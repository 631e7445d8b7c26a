"""The report's tables, their columns and their rows, on a terminal and on the page alike."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

from mirror_report.model import CLASSES
from mirror_report.render import figures, rows
from mirror_report.render.rows import Row, rank

Tone = Literal["ok", "dim", "warning", "critical", "unknown"]

GROUP_ORDER = (
    "skip", "unmapped", "unknown", "stale", "not_synced", "reread", "active_on_target", "ready",
)  # fmt: skip
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


Table = tuple[Sequence[Column], Sequence[Row]]


def shown(columns: Iterable[Column], table_rows: Sequence[Row]) -> list[Column]:
    """Columns in which there is something."""
    return [
        column
        for column in columns
        if column.always or not DULL.issuperset(column.cell(row) for row in table_rows)
    ]


def lag(partitions: Sequence[Row]) -> Table:
    """Lag by topic, worst first."""
    topics = rows.lag_by_topic(partitions)
    return [
        *_flow(topics),
        _text("topic"),
        _text("state", state=True),
        _figure("partitions", "partitions", spare=2),
        *_lag(),
    ], topics


def lag_partitions(partitions: Sequence[Row]) -> Table:
    """Lag by partition, worst first."""
    partitions = rows.lag_by_partition(partitions)
    return [
        *_flow(partitions),
        _text("topic"),
        _figure("partition", "partition", str),
        _text("state", state=True),
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
    ], partitions


def _lag() -> list[Column]:
    return [
        _figure("records", "lag_records"),
        _figure("estimated", "estimated_records", figures.estimate, always=False, spare=3),
        _figure("oldest record", "lag_seconds", figures.seconds),
        Column("waits for", figures.waits, itemgetter("waiting_seconds"), always=False, spare=5),
        _figure("size", "lag_bytes", figures.bytes_, always=False, spare=4),
        _figure("produced", "produce_rate", figures.rate, always=False, spare=7),
        _figure("mirrored", "mirror_rate", figures.rate, always=False, spare=6),
        Column("caught up in", figures.eta, _eta, always=False),
        Column("lost", figures.lost, itemgetter("lost"), always=False, alarm=True),
        _figure("open transaction", "open_transaction_seconds", figures.age, always=False),
    ]


def parity(topics: Sequence[Row], *, strategy: bool) -> Table:
    """Parity by topic, worst first, with the classes that occur.

    :param strategy: whether to show how topics are compared even if it is by timestamp.
    """
    topics = rows.parity_worst_first(topics)
    compared_by = _text("compared by", "strategy", figures.words, spare=1)
    return [
        *_flow(topics),
        _text("topic"),
        _text("status", state=True),
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
        *(
            _class(name)
            for name in CLASSES
            if any(row["counts"].get(name, 0) != 0 for row in topics)
        ),
        Column(
            "compared as a whole",
            lambda row: figures.moment(row.get("scanned_at_ms")),
            lambda row: row.get("scanned_at_ms"),
            always=False,
        ),
        _figure("verified through", "verified_through_ms", figures.moment),
        _figure("retention reaches it", "breach_seconds", figures.breach, always=False),
    ], topics


def mismatches(topics: Iterable[Row]) -> Table:
    """What does not match, a row per topic, class and partition."""
    counted = [
        {"flow": row["flow"], "topic": row["topic"], "class": name, "partition": p, "count": count}
        for row in topics
        for name, counts in row["partitions"].items()
        for p, count in counts.items()
        if count
    ]
    return [
        *_flow(counted),
        _text("topic"),
        _text("class", show=figures.words),
        _text("partition", right=True),
        _figure("records", "count"),
    ], counted


def groups(all_groups: Iterable[Row]) -> Table:
    """Groups, those that would lose something by a failover first; with states counted."""
    worst_first = sorted(
        (
            {**row, "states": Counter(each["state"] for each in row["partitions"])}
            for row in all_groups
        ),
        key=lambda row: (
            rank(GROUP_ORDER, row["state"]),
            -(row["skip"] or 0),
            -(row["reread"] or 0),
            row["flow"],
            row["group"],
        ),
    )
    return [
        *_flow(worst_first),
        _text("group"),
        _text("state", state=True),
        _figure("ready", "readiness", figures.share_or_unknown),
        *_failover(),
        _count("unmapped"),
        _count("stale"),
        Column("partitions", lambda row: figures.number(len(row["partitions"]) or None), spare=1),
    ], worst_first


def group_partitions(all_groups: Iterable[Row]) -> Table:
    """Partitions of groups, each with the name of its group; those that need attention first."""
    return [
        _text("group"),
        _text("topic", "target_topic"),
        _figure("partition", "partition", str),
        _text("state", state=True),
        _figure("on source", "source_offset"),
        Column("is on target", figures.translated_offset, itemgetter("image")),
        _figure("committed there", "target_offset"),
        *_failover(),
        _figure("checkpoint age", "checkpoint_age_seconds", figures.age, always=False),
    ], sorted(
        ({"group": row["group"], **each} for row in all_groups for each in row["partitions"]),
        key=lambda row: rank(GROUP_ORDER, row["state"]),
    )


def _failover() -> list[Column]:
    return [
        Column("re-read", lambda row: figures.at_least(row, "reread"), itemgetter("reread")),
        Column(
            "skipped", lambda row: figures.at_least(row, "skip"), itemgetter("skip"), alarm=True
        ),
    ]


def differences(settings: Sequence[Row]) -> Table:
    """Settings that differ, rows of :func:`~mirror_report.render.rows.differences`."""
    return [
        *_flow(settings),
        _text("topic"),
        _text("setting", "name"),
        _text("source", show=figures.setting),
        _text("target", show=figures.setting),
        _text("kind", state=True),
    ], settings


def not_selected(topics: Iterable[Row]) -> Table:
    """Topics the flows leave out."""
    left_out = sorted(
        (row for row in topics if not row["selected"]), key=lambda row: (row["flow"], row["topic"])
    )
    return [*_flow(left_out), _text("topic"), _text("reason")], left_out


def flows(all_flows: Sequence[Row]) -> Table:
    """The flows."""
    return [
        _text("flow", "name"),
        _text("engine"),
        _text("from", "source"),
        _text("to", "target"),
        _text("group", "group_id"),
        _text("is", "group_state", lambda state: state or figures.UNKNOWN),
        Column("topics", lambda row: figures.number(_topics(row)), _topics),
        _figure("coverage", "coverage", figures.share),
        _figure("heartbeat", "heartbeat_age_seconds", figures.age, always=False),
    ], all_flows


def samples(topics: Iterable[Row]) -> Table:
    """Samples of what does not match, each with its topic and class."""
    return [
        _text("topic"),
        _text("class", show=figures.words),
        _text("side"),
        _figure("partition", "partition", str),
        _figure("offset", "offset"),
        _figure("timestamp", "timestamp_ms", figures.moment),
        _text("record hash", "record_hash"),
        _figure("key bytes", "key_bytes", figures.size),
        _figure("value bytes", "value_bytes", figures.size),
    ], [
        {"topic": row["topic"], "class": name, **sample}
        for row in topics
        for name, of_class in row["samples"].items()
        for sample in of_class
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
    return Column(title, lambda row: show(row[key]), itemgetter(key), **more)


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


def _topics(row: Row) -> int | None:
    """How many topics a flow has; not known if it could not be observed."""
    return None if row["source_cluster_id"] is None else len(row["topics"])


def _verified(row: Row) -> int | None:
    """Records verified; not known of a topic that could not be compared."""
    return None if row["status"] == "unknown" else row["verified_records"]


def _eta(row: Row) -> float | None:
    never = row["lag_records"] != 0 and row["catches_up"] is False
    return math.inf if never else row["eta_seconds"]
