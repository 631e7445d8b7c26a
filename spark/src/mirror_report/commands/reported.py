"""``run``: the whole report."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from mirror_report import __version__
from mirror_report.checks.verdict import finding, verdict, worst_first
from mirror_report.commands.flows import Progress, chosen
from mirror_report.commands.measured import LagResult, lag, over_time
from mirror_report.commands.surveyed import survey
from mirror_report.config.flow import Flow
from mirror_report.config.settings import Settings
from mirror_report.kafka.tails import FlowTails
from mirror_report.model.cluster import ClusterSnapshot
from mirror_report.model.content import ParityResult, TopicParity
from mirror_report.model.document import Report
from mirror_report.model.errors import ReportError, sentence
from mirror_report.model.findings import Finding
from mirror_report.observe import Snapshots
from mirror_report.parity.errors import without_spark
from mirror_report.render import freshness
from mirror_report.render.json import SCHEMA_VERSION
from mirror_report.state.store import Store


def run(
    settings: Settings,
    flow_name: str | None,
    progress: Progress,
    *,
    on_crash: Callable[[BaseException], None] = lambda _: None,
) -> Report:
    """Make the whole report; the caller holds the store's lock.

    :param on_crash: told of an unexpected error, which otherwise becomes a finding.
    """
    started = time.monotonic()
    # To the second, as the document tells it: until when it holds is counted from there.
    generated_at = datetime.now(UTC).replace(microsecond=0)
    run_id = generated_at.strftime("%Y%m%dT%H%M%SZ") + "-" + secrets.token_hex(2)
    store = Store(settings.state_directory)
    flows = chosen(settings, flow_name)
    progress(f"run {run_id}: reading offsets of {len(flows)} flow(s)")
    measured = lag(settings, store, flow_name, topics=True)
    history = over_time(settings, measured)
    findings = list(measured.findings)
    _remember_ids(store, flows, measured)
    # From here on a shift has been said.
    store.commit("shifts", {**store.load("shifts"), **measured.shifts})
    readable = tuple(one for one in flows if one.name in measured.observed)
    surveyed = survey(settings, store, readable, measured)
    findings += surveyed.findings
    parity: ParityResult | None = None
    if readable:
        progress("comparing content")
        parity, problem = _parity(
            settings,
            tuple(one.name for one in readable),
            store,
            run_id,
            progress,
            on_crash,
            measured.tails,
        )
        findings += parity.findings if parity else []
        findings += [problem] if problem else []
    findings += _nothing_seen(store, readable, measured)
    topics = parity.topics if parity else []
    coverage = _coverage(topics)
    findings += _bounds(settings, coverage, parity, findings)
    findings = worst_first(findings)
    surveyed.keep(store)
    progress("writing the report")
    duration = round(time.monotonic() - started, 3)
    return Report(
        schema_version=SCHEMA_VERSION,
        tool={"name": "mirror-report", "version": __version__},
        run_id=run_id,
        generated_at=generated_at.strftime(freshness.FORM),
        duration_seconds=duration,
        valid_until=freshness.holds_until(
            generated_at, duration, settings.interval_seconds
        ).strftime(freshness.FORM),
        verdict=verdict(findings),
        coverage=coverage,
        flows=[
            dataclasses.replace(
                one, coverage=_coverage([each for each in topics if each.flow == one.name])
            )
            for one in measured.flows
        ],
        lag=measured.rows,
        parity=topics,
        backlog_records=parity.backlog_records if parity else None,
        backlog_bytes=parity.backlog_bytes if parity else None,
        spark_started=parity.spark_started if parity else False,
        findings=findings,
        errors=[one.message for one in findings if one.severity == "unknown"],
        topics=surveyed.topics,
        groups=surveyed.groups,
        history=history,
    )


def _parity(
    settings: Settings,
    flows: tuple[str, ...],
    store: Store,
    run_id: str,
    progress: Progress,
    on_crash: Callable[[BaseException], None],
    tails: FlowTails,
) -> tuple[ParityResult | None, Finding | None]:
    try:
        # Spark is only needed here; every other command works without it.
        from mirror_report.parity.context import ParityRequest  # noqa: PLC0415
        from mirror_report.parity.run import run_parity  # noqa: PLC0415

        request = ParityRequest(settings, Snapshots(settings, tails), store, run_id, flows)
        return run_parity(request, progress), None
    except ImportError as error:
        on_crash(error)
        message, _, action = str(without_spark(error)).partition(". ")
        return None, finding("parity_unavailable", f"content was not compared: {message}", action)
    except ReportError as error:
        message, _, action = str(error).partition(". ")
        on_crash(error)
        return None, finding("parity_unavailable", message, action)
    except Exception as error:  # an operator gets a sentence; --debug shows the rest
        on_crash(error)
        return None, finding(
            "parity_unavailable",
            f"content was not compared: {sentence(error)}",
            "mirror-report --debug run shows where it happened",
        )


def _remember_ids(store: Store, flows: Sequence[Flow], measured: LagResult) -> None:
    """Remember topics seen for the first time; a changed id stays until a new baseline."""
    ids = store.load("topics")
    for flow in flows:
        observed = measured.observed.get(flow.name)
        if observed is None:
            continue
        known = ids.setdefault(flow.name, {})
        for side, snapshot in (("source", observed.source), ("target", observed.target)):
            seen = {name: topic.topic_id for name, topic in snapshot.topics.items()}
            known[side] = seen | known.get(side, {})
    store.commit("topics", ids)


def _nothing_seen(store: Store, flows: Sequence[Flow], measured: LagResult) -> list[Finding]:
    recorded = store.load("baseline")
    found = []
    for flow in flows:
        observed = measured.observed[flow.name]
        topics = recorded.get(flow.name, {}).get("topics", {})
        starts = {
            side: {name: one[side] for name, one in topics.items()} for side in ("source", "target")
        }
        if not observed.source.topics:
            continue
        if _moved(observed.source, starts["source"]) or _moved(observed.target, starts["target"]):
            continue
        found.append(
            finding(
                "nothing_seen",
                f"no record on {flow.source} or {flow.target} since the baseline, so nothing is "
                "proved",
                "Produce a record on the source and run mirror-report run again; if records exist, "
                f"check topics of flow {flow.name}",
                flow=flow.name,
            )
        )
    return found


def _moved(snapshot: ClusterSnapshot, starts: Mapping[str, Mapping[str, int]]) -> bool:
    return any(
        one.end > starts.get(name, {}).get(str(p), 0)
        for name, topic in snapshot.topics.items()
        for p, one in topic.partitions.items()
    )


def _coverage(topics: Sequence[TopicParity]) -> float | None:
    """Verified share of the records that are due; ``None`` if nothing is due."""
    verified = sum(one.verified_records for one in topics)
    due = sum(one.due_records or 0 for one in topics)
    return None if due == 0 else verified / due


def _bounds(
    settings: Settings,
    coverage: float | None,
    parity: ParityResult | None,
    findings: Sequence[Finding],
) -> list[Finding]:
    kinds = {one.kind for one in findings}
    found = []
    bound = settings.warn.coverage
    if coverage is not None and bound is not None and coverage < bound and "coverage" not in kinds:
        found.append(
            finding(
                "coverage",
                f"{100 * coverage:.2f} % of the records due are verified, the bound is "
                f"{100 * bound:.0f} %",
                "See the findings above; without any, run mirror-report run again or raise "
                "budget.max_bytes",
            )
        )
    if parity is not None and parity.backlog_records and "backlog" not in kinds:
        found.append(
            finding(
                "backlog",
                f"{parity.backlog_records} records are due and were left for the next run",
                "mirror-report run again, or raise budget.max_bytes and budget.deadline_seconds",
                count=parity.backlog_records,
            )
        )
    return found
