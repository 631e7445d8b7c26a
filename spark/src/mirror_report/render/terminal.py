"""The report on a terminal: worst first; a whole mirror is one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from mirror_report.render import figures, rows
from mirror_report.render.rows import Row
from mirror_report.render.tables import Column, table

STYLES = {"ok": "green", "warning": "yellow", "critical": "bold red", "unknown": "magenta"}
PLAIN_WIDTH = 1000
TOP = 10
FINDINGS = 20


def console(stream: TextIO) -> Console:
    """Console for a stream: plain when it is no terminal; rich itself honours NO_COLOR."""
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def show(
    report: Mapping[str, Any], out: Console, page: str | None = None, *, wide: bool = False
) -> None:
    """Print a whole report document.

    :param page: where its page lies.
    :param wide: every row, and partition by partition.
    """
    verdict = report["verdict"]
    whole = verdict["exit_code"] == 0 and not report["findings"] and not wide
    _line(out, (verdict["text"], STYLES[verdict["severity"]]), ("; " if whole else "\n", ""),
          (_summary(report, page), ""))  # fmt: skip
    if whole:
        return
    findings(report["findings"], out, wide=wide)
    told = {one["message"] for one in report["findings"]}
    for one in report["errors"]:
        if one not in told:
            _line(out, (one, STYLES["unknown"]))
    if wide:
        _flows(report["flows"], out)
    lag(report["lag"], out, wide=wide)
    parity(report["parity"], out, wide=wide)
    groups(report["groups"], out, wide=wide)
    _topics(report["topics"], out, wide=wide)


def _summary(report: Mapping[str, Any], page: str | None) -> str:
    flows = report["flows"]
    engines = ", ".join(sorted({one["engine"] for one in flows})) or "no engine"
    verified = sum(one["verified_records"] for one in report["parity"])
    parts = [
        f"{len(flows)} flow{'s' if len(flows) != 1 else ''} by {engines}",
        f"{figures.number(verified)} records verified",
        f"coverage {figures.share(report['coverage'])}",
        f"run {report['run_id']} in {figures.seconds(report['duration_seconds'])}",
    ]
    if report["backlog_records"]:
        backlog = figures.number(report["backlog_records"])
        size = figures.bytes_(report["backlog_bytes"])
        parts.insert(3, f"backlog {backlog} records ({size})")
    return ", ".join(parts + ([f"page {page}"] if page else []))


def verdict_line(verdict: Row, out: Console) -> None:
    """Print the verdict."""
    _line(out, (verdict["text"], STYLES[verdict["severity"]]))


def findings(found: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print findings, each with what to do next, in lines of their own that nothing wraps."""
    shown = found if wide else found[:FINDINGS]
    for one in shown:
        severity = "ok" if one["accounted"] else one["severity"]
        accounted = " (accounted: reported by an earlier run)" if one["accounted"] else ""
        _line(out, (f"{one['severity']:<8}", STYLES[severity]),
              (f" {one['kind']}  {figures.said(one)}{accounted}", ""))  # fmt: skip
        if one["action"] and not one["accounted"]:
            _line(out, ("         what to do next: ", "dim"), (one["action"], ""))
    left = Counter(one["kind"] for one in found[len(shown) :])
    if left:
        kinds = ", ".join(f"{count} {kind}" for kind, count in left.most_common())
        _line(out, (f"... and {left.total()} more findings: {kinds} (--wide)", "dim"))


def lag(partitions: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print lag: the worst topics and the sum of the others, or everything."""
    topics = rows.lag_by_topic(partitions)
    if not topics:
        return
    first = [
        *_flow_column(topics),
        Column("topic", lambda one: str(one["topic"]), right=False),
        Column("state", lambda one: str(one["state"]), right=False, state=True),
    ]
    shown = topics if wide else topics[:TOP]
    count = Column("partitions", lambda one: figures.number(one["partitions"]), spare=2)
    table("Lag", [*first, count, *_lag_columns()], shown, out, wide=wide)
    _rest(topics[len(shown) :], "state", out)
    if wide:
        single = rows.lag_by_partition(partitions)
        first.insert(-1, Column("partition", lambda one: str(one["partition"])))
        table("Lag by partition", [*first, *_position_columns(), *_lag_columns()], single, out,
              wide=True)  # fmt: skip


def _lag_columns() -> list[Column]:
    return [
        Column("records", lambda one: figures.number(one["lag_records"])),
        Column("estimated", lambda one: figures.estimate(one["estimated_records"]), always=False,
               spare=3),
        Column("oldest record", lambda one: figures.seconds(one["lag_seconds"])),
        Column("waits for", figures.waiting, always=False, spare=5),
        Column("size", lambda one: figures.bytes_(one["lag_bytes"]), always=False, spare=4),
        Column("produced", lambda one: figures.rate(one["produce_rate"]), always=False, spare=7),
        Column("mirrored", lambda one: figures.rate(one["mirror_rate"]), always=False, spare=6),
        Column("caught up in", figures.eta, always=False),
        Column("lost", figures.lost, always=False),
        Column("open transaction", lambda one: figures.age(one["open_transaction_seconds"]),
               always=False),
    ]  # fmt: skip


def _position_columns() -> list[Column]:
    return [
        Column("log start", lambda one: figures.number(one["log_start"])),
        Column("log end", lambda one: figures.number(one["log_end"])),
        Column("position", lambda one: figures.number(one["position"])),
        Column("by", lambda one: figures.words(one["position_source"] or "-"), right=False,
               always=False),
        Column("age", lambda one: figures.seconds(one["position_age_seconds"]), always=False),
    ]  # fmt: skip


def parity(topics: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print content parity by topic, with the classes that occur."""
    if not topics:
        return
    ordered = rows.parity_worst_first(topics)
    shown = ordered if wide else ordered[:TOP]
    first = [
        *_flow_column(topics),
        Column("topic", lambda one: str(one["topic"]), right=False),
        Column("status", lambda one: str(one["status"]), right=False, state=True),
    ]
    odd = wide or any(one["strategy"] != "timestamp" for one in topics)
    by = Column("compared by", lambda one: figures.words(one["strategy"]), right=False, spare=1)
    columns = [
        *first,
        *([by] if odd else []),
        Column("verified", lambda one: figures.number(one["verified_records"])),
        Column("in flight", lambda one: figures.number(one["in_flight_records"]), always=False),
        Column("skipped", lambda one: figures.number(one["skipped_records"]), always=False),
        *(_class_column(name) for name in rows.classes(topics)),
        Column("verified through", lambda one: figures.moment(one["verified_through_ms"])),
        Column("retention reaches it", lambda one: figures.breach(one["breach_seconds"]),
               always=False),
    ]  # fmt: skip
    table("Parity", columns, shown, out, wide=wide)
    _rest(ordered[len(shown) :], "status", out)
    for one in shown:
        if one["reason"]:
            _line(out, (f"{one['topic']}: {one['reason']}", "dim"))
    single = [
        {"flow": one["flow"], "topic": one["topic"], "class": name, "partition": p, "count": count}
        for one in ordered
        for name, some in one["partitions"].items()
        for p, count in some.items()
        if count
    ]
    if wide and single:
        columns = [
            *_flow_column(single),
            Column("topic", lambda one: str(one["topic"]), right=False),
            Column("class", lambda one: figures.words(one["class"]), right=False),
            Column("partition", lambda one: str(one["partition"])),
            Column("records", lambda one: figures.number(one["count"])),
        ]
        table("What does not match, by partition", columns, single, out, wide=True)


def _class_column(name: str) -> Column:
    def cell(one: Row) -> str:
        return figures.number(one["counts"][name]) if name in one["counts"] else figures.NOTHING

    return Column(figures.words(name), cell)


def groups(found: Sequence[Row], out: Console, *, wide: bool = False) -> None:
    """Print what a failover now would mean for the consumer groups."""
    if not found:
        return
    ordered = rows.groups_worst_first(found)
    shown = ordered if wide else ordered[:TOP]
    columns = [
        *_flow_column(found),
        Column("group", lambda one: str(one["group"]), right=False),
        Column("state", lambda one: str(one["state"]), right=False, state=True),
        Column("ready", lambda one: figures.known_share(one["readiness"])),
        Column("re-read", lambda one: figures.number(one["reread"])),
        Column("skipped", lambda one: figures.number(one["skip"])),
        Column("unmapped", lambda one: str(one["states"]["unmapped"]), always=False),
        Column("stale", lambda one: str(one["states"]["stale"]), always=False),
        Column("partitions", lambda one: str(len(one["partitions"])), spare=1),
    ]
    table("Failover now", columns, shown, out, wide=wide)
    _rest(ordered[len(shown) :], "state", out)
    if wide:
        single = [{"group": one["group"], **each} for one in ordered for each in one["partitions"]]
        columns = [
            Column("group", lambda one: str(one["group"]), right=False),
            Column("topic", lambda one: str(one["target_topic"]), right=False),
            Column("partition", lambda one: str(one["partition"])),
            Column("state", lambda one: str(one["state"]), right=False, state=True),
            Column("on source", lambda one: figures.number(one["source_offset"])),
            Column("is on target", figures.image),
            Column("committed there", lambda one: figures.number(one["target_offset"])),
            Column("re-read", lambda one: figures.number(one["reread"])),
            Column("skipped", lambda one: figures.number(one["skip"])),
            Column("checkpoint age",
                   lambda one: figures.seconds(one["checkpoint_age_seconds"]), always=False),
        ]  # fmt: skip
        table("Failover by partition", columns, single, out, wide=True)


def _topics(topics: Sequence[Row], out: Console, *, wide: bool) -> None:
    """Print settings that differ and topics left out; risks always, the rest if asked for."""
    differ = rows.differences(topics)
    left_out = rows.not_selected(topics)
    shown = differ if wide else [one for one in differ if one["kind"] == "risk"][:TOP]
    if shown:
        columns = [
            *_flow_column(topics),
            Column("topic", lambda one: str(one["topic"]), right=False),
            Column("setting", lambda one: str(one["name"]), right=False),
            Column("source", lambda one: figures.setting(one["source"]), right=False),
            Column("target", lambda one: figures.setting(one["target"]), right=False),
            Column("kind", lambda one: str(one["kind"]), right=False, state=True),
        ]
        table("Settings that differ", columns, shown, out, wide=wide)
    if wide and left_out:
        columns = [
            *_flow_column(topics),
            Column("topic", lambda one: str(one["topic"]), right=False),
            Column("reason", lambda one: str(one["reason"]), right=False),
        ]
        table("Topics not mirrored", columns, left_out, out, wide=True)
    hidden = [
        f"{len(some)} {what}"
        for some, what in (
            (differ[len(shown) :], "more settings that differ"),
            (left_out, "topics not mirrored"),
        )
        if some and not wide
    ]
    if hidden:
        _line(out, (f"... and {', '.join(hidden)} (--wide)", "dim"))


def _flows(flows: Sequence[Row], out: Console) -> None:
    columns = [
        Column("flow", lambda one: str(one["name"]), right=False),
        Column("engine", lambda one: str(one["engine"]), right=False),
        Column("from", lambda one: str(one["source"]), right=False),
        Column("to", lambda one: str(one["target"]), right=False),
        Column("group", lambda one: str(one["group_id"]), right=False),
        Column("is", lambda one: str(one["group_state"] or figures.UNKNOWN), right=False),
        Column("topics", lambda one: str(len(one["topics"]))),
        Column("coverage", lambda one: figures.share(one["coverage"])),
        Column("heartbeat", lambda one: figures.seconds(one["heartbeat_age_seconds"]),
               always=False),
    ]  # fmt: skip
    if flows:
        table("Flows", columns, flows, out, wide=True)


def _flow_column(some: Sequence[Row]) -> list[Column]:
    """Name of the flow, where there is more than one."""
    several = len({one["flow"] for one in some}) > 1
    return [Column("flow", lambda one: str(one["flow"]), right=False)] if several else []


def _rest(left: Sequence[Row], state: str, out: Console) -> None:
    if not left:
        return
    summed = rows.rest(left, state)
    parts = [summed["states"]]
    if "lag_records" in summed:
        parts += [f"{figures.number(summed['lag_records'])} records behind"]
    _line(out, (f"... and {len(left)} more: {', '.join(parts)} (--wide)", "dim"))


def _line(out: Console, *parts: tuple[str, str]) -> None:
    """Print a line that is neither wrapped nor cut."""
    out.print(Text.assemble(*parts), soft_wrap=True)
