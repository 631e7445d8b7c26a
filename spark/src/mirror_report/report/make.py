"""Making the whole report."""

import dataclasses
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from mirror_report import __version__
from mirror_report.checks import coverage, events
from mirror_report.checks.verdict import finding, verdict, worst_first
from mirror_report.config import Flow, Settings
from mirror_report.kafka.tails import FlowTails
from mirror_report.lag.measure import LagResult, measure_lag, over_time
from mirror_report.model import (
    Finding,
    ParityResult,
    Progress,
    Report,
    ReportError,
    another_topic,
    sentence,
)
from mirror_report.observe import Snapshots
from mirror_report.parity import without_spark
from mirror_report.parity.results import losses
from mirror_report.render import SCHEMA_VERSION, freshness
from mirror_report.report.survey import survey
from mirror_report.state.store import Store


def make_report(
    settings: Settings,
    flow_name: str | None,
    progress: Progress,
    publish: Callable[[Report], Report] = lambda report: report,
    *,
    on_crash: Callable[[BaseException], None] = lambda _: None,
) -> Report:
    """Make the whole report; the caller holds the store's lock.

    :param publish: called with the report, returns it as published; what was found once is kept
        afterwards, so that the next run tells it if this one never did.
    :param on_crash: called with an unexpected error, which otherwise becomes a finding.
    """
    started = time.monotonic()
    # To the second, as the document has it: until when it holds is counted from there.
    generated_at = datetime.now(UTC).replace(microsecond=0)
    run_id = generated_at.strftime("%Y%m%dT%H%M%SZ") + "-" + secrets.token_hex(2)
    store = Store(settings.state_directory)
    flows = settings.chosen(flow_name)
    progress(f"run {run_id}: reading offsets of {len(flows)} flow(s)")
    lag = measure_lag(settings, store, flow_name, topics=True)
    history = over_time(settings, lag)
    findings = list(lag.findings)
    _remember_ids(store, lag)
    readable = tuple(flow for flow in flows if flow.name in lag.observed)
    surveyed = survey(settings, store, readable, lag)
    findings += surveyed.findings
    parity: ParityResult | None = None
    if readable:
        progress("comparing content")
        parity, problems = _parity(
            settings, tuple(lag.observed), store, run_id, progress, on_crash, lag.tails
        )
        names = {
            flow: {topic: settings.flow(flow).target_topic(topic) for topic in seen.source.topics}
            for flow, seen in lag.observed.items()
        }
        findings = events.one_per_event(findings, parity.findings if parity else (), names)
        findings += problems
    compared = lag.observed if parity else ()
    findings += _known(store, [flow for flow in flows if flow.name not in compared])
    baselines = store.load("baseline")
    for flow in readable:
        seen, baseline = lag.observed[flow.name], baselines.get(flow.name, {})
        findings += coverage.nothing_seen(flow, seen.source, seen.target, baseline)
    topics = parity.topics if parity else []
    share = coverage.verified_share(topics)
    kinds = {finding.kind for finding in findings}
    findings = worst_first(
        [*findings, *coverage.judge(share, settings.warn.coverage, parity, kinds)]
    )
    progress("writing the report")
    duration = round(time.monotonic() - started, 3)
    report = Report(
        schema_version=SCHEMA_VERSION,
        tool={"name": "mirror-report", "version": __version__},
        run_id=run_id,
        generated_at=generated_at.strftime(freshness.FORM),
        duration_seconds=duration,
        valid_until=freshness.holds_until(
            generated_at, duration, settings.interval_seconds
        ).strftime(freshness.FORM),
        verdict=verdict(findings),
        coverage=share,
        flows=[
            dataclasses.replace(status, coverage=coverage.verified_share(topics, status.name))
            for status in lag.flows
        ],
        lag=lag.rows,
        parity=topics,
        backlog_records=parity.backlog_records if parity else None,
        backlog_bytes=parity.backlog_bytes if parity else None,
        spark_started=parity.spark_started if parity else False,
        findings=findings,
        errors=[finding.message for finding in findings if finding.severity == "unknown"],
        topics=surveyed.topics,
        groups=surveyed.groups,
        history=history,
    )
    report = publish(report)
    surveyed.keep(store)
    store.commit("shifts", {**store.load("shifts"), **lag.shifts})
    return report


def _parity(
    settings: Settings,
    flows: tuple[str, ...],
    store: Store,
    run_id: str,
    progress: Progress,
    on_crash: Callable[[BaseException], None],
    tails: FlowTails,
) -> tuple[ParityResult | None, list[Finding]]:
    try:
        # Spark is only needed here; every other command works without it.
        from mirror_report.parity.context import ParityRequest  # noqa: PLC0415
        from mirror_report.parity.run import run_parity  # noqa: PLC0415

        request = ParityRequest(settings, Snapshots(settings, tails), store, run_id, flows)
        return run_parity(request, progress), []
    except ImportError as error:
        on_crash(error)
        missing = without_spark(error)
        message, action = f"content was not compared: {missing.message}", missing.action
    except ReportError as error:
        on_crash(error)
        message, action = error.message, error.action
    except Exception as error:  # an operator gets a sentence; --debug shows the rest
        on_crash(error)
        message = f"content was not compared: {sentence(error)}"
        action = "mirror-report --debug run shows where it happened"
    return None, [finding("parity_unavailable", message, action)]


def _known(store: Store, flows: Sequence[Flow]) -> list[Finding]:
    """What the last report knew to be lost of flows whose content this one does not compare."""
    baselines = store.load("baseline")
    return [
        losses.lasting(loss, flow, "its content was not compared now")
        for flow in flows
        for loss in losses.last_known(store, flow, baselines.get(flow.name, {}))
    ]


def _remember_ids(store: Store, lag: LagResult) -> None:
    """Remember topics seen for the first time; a changed id stays until a new baseline."""
    ids = store.load("topics")
    for flow, observed in lag.observed.items():
        known = ids.setdefault(flow, {})
        for side, snapshot in (("source", observed.source), ("target", observed.target)):
            remembered = known.get(side, {})
            known[side] = {
                **remembered,
                **{
                    name: topic.topic_id or remembered.get(name, "")
                    for name, topic in snapshot.topics.items()
                    if not another_topic(remembered.get(name), topic.topic_id)
                },
            }
    store.commit("topics", ids)
