"""Making the whole report."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from mirror_report import __version__
from mirror_report.checks import coverage, events
from mirror_report.checks.coverage import verified_share
from mirror_report.checks.verdict import finding, verdict, worst_first
from mirror_report.config import Flow, Settings
from mirror_report.lag.measure import LagResult, measure_lag, over_time
from mirror_report.model import (
    Baseline,
    Finding,
    ParityResult,
    Progress,
    Report,
    ReportError,
    another_topic,
    sentence,
)
from mirror_report.observe import Snapshots, aliases, open_clients
from mirror_report.parity import without_spark
from mirror_report.parity.context import ParityRequest
from mirror_report.parity.results import losses
from mirror_report.render import SCHEMA_VERSION, freshness
from mirror_report.report.survey import Survey, survey_flows
from mirror_report.state import baselines
from mirror_report.state.history import History
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

    :param publish: returns the report as published; only then is kept what is reported once.
    :param on_crash: called with an unexpected error, which otherwise becomes a finding.
    """
    started = time.monotonic()
    # To the second, as the document has it: until when it holds is counted from there.
    generated_at = datetime.now(UTC).replace(microsecond=0)
    run_id = generated_at.strftime("%Y%m%dT%H%M%SZ") + "-" + secrets.token_hex(2)
    store, flows = Store(settings.state_directory), settings.chosen(flow_name)
    progress(f"run {run_id}: reading offsets of {len(flows)} flow(s)")
    lag = measure_lag(settings, store, flow_name, topics=True)
    history = over_time(History(settings.state_directory, settings.history_days), lag)
    _remember_ids(store, lag)
    observed = [(flow, settings.into_one(flow)) for flow in flows if flow.name in lag.observed]
    with open_clients(settings, aliases([flow for flow, _ in observed])) as clients:
        survey = survey_flows(clients, store, observed, lag, settings.warn.reread_records)
    snapshots = Snapshots(settings, lag.tails)
    request = ParityRequest(settings, snapshots, store, run_id, tuple(lag.observed))
    parity, of_content = _parity(request, progress, on_crash) if lag.observed else (None, [])
    findings = [*_findings(store, flows, lag, survey, of_content, compared=parity is not None)]
    topics = parity.topics if parity else []
    share, kinds = verified_share(topics), {finding.kind for finding in findings}
    findings += coverage.findings(share, settings.warn.coverage, parity, kinds)
    findings = worst_first(findings)
    progress("writing the report")
    duration = round(time.monotonic() - started, 3)
    valid_until = freshness.holds_until(generated_at, duration, settings.interval_seconds)
    report = publish(Report(
        schema_version=SCHEMA_VERSION,
        tool={"name": "mirror-report", "version": __version__},
        run_id=run_id,
        generated_at=generated_at.strftime(freshness.FORM),
        duration_seconds=duration,
        valid_until=valid_until.strftime(freshness.FORM),
        verdict=verdict(findings),
        coverage=share,
        flows=[replace(flow, coverage=verified_share(topics, flow.name)) for flow in lag.flows],
        lag=lag.rows,
        parity=topics,
        backlog_records=parity.backlog_records if parity else None,
        backlog_bytes=parity.backlog_bytes if parity else None,
        spark_started=parity.spark_started if parity else False,
        findings=findings,
        errors=[finding.message for finding in findings if finding.severity == "unknown"],
        topics=survey.topics,
        groups=survey.groups,
        history=history,
    ))  # fmt: skip
    survey.keep(store)
    store.commit("shifts", {**store.load("shifts"), **lag.shifts})
    return report


def _parity(
    request: ParityRequest, progress: Progress, on_crash: Callable[[BaseException], None]
) -> tuple[ParityResult | None, list[Finding]]:
    """The content of the flows and its findings; without content, why it was not compared."""
    progress("comparing content")
    try:
        # Spark is only needed here; every other command works without it.
        from mirror_report.parity.run import run_parity  # noqa: PLC0415

        parity = run_parity(request, progress)
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
    else:
        return parity, parity.findings
    return None, [finding("parity_unavailable", message, action)]


def _findings(
    store: Store,
    flows: Sequence[Flow],
    lag: LagResult,
    survey: Survey,
    of_content: Sequence[Finding],
    *,
    compared: bool,
) -> Iterator[Finding]:
    """Findings of the flows, and losses that the last report knew in those not compared now.

    :param compared: content was compared where flows could be observed.
    """
    names = {
        flow.name: {name: flow.target_topic(name) for name in lag.observed[flow.name].source.topics}
        for flow in flows
        if flow.name in lag.observed
    }
    yield from events.one_per_event([*lag.findings, *survey.findings], of_content, names)
    recorded = baselines.load(store)
    for flow in flows:
        baseline, observed = recorded.get(flow.name, Baseline()), lag.observed.get(flow.name)
        if observed is None or not compared:
            for loss in losses.last_known(store, flow, baseline):
                yield losses.lasting(loss, flow, "its content was not compared now")
        if observed is not None:
            yield from coverage.nothing_seen(flow, observed.source, observed.target, baseline)


def _remember_ids(store: Store, lag: LagResult) -> None:
    """Remember the ids of new topics; a changed id stays until a new baseline."""
    ids = store.load("topics")
    for flow, observed in lag.observed.items():
        of_flow = ids.setdefault(flow, {})
        for side, snapshot in (("source", observed.source), ("target", observed.target)):
            remembered = of_flow.setdefault(side, {})
            remembered |= {
                name: topic.topic_id or remembered.get(name, "")
                for name, topic in snapshot.topics.items()
                if not another_topic(remembered.get(name), topic.topic_id)
            }
    store.commit("topics", ids)
