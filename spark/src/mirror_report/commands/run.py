"""``run``: the whole report."""

import dataclasses
import secrets
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from mirror_report import __version__, metrics
from mirror_report.checks import coverage, events
from mirror_report.checks.verdict import finding, verdict, worst_first
from mirror_report.commands import shared
from mirror_report.commands.lag import LagResult, measure_lag, over_time
from mirror_report.commands.survey import survey
from mirror_report.config import Flow, Settings
from mirror_report.kafka.tails import FlowTails
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
from mirror_report.render import SCHEMA_VERSION, Answer, formats, freshness
from mirror_report.state.store import PUBLISHED, Store, latest


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``run``."""
    shared.flow(parser)
    shared.formats(parser)
    shared.wide(parser)
    parser.add_argument(
        "--max-bytes", metavar="N", type=shared.whole, help="read at most so many bytes"
    )
    parser.add_argument(
        "--max-records", metavar="N", type=shared.whole, help="read at most so many records"
    )
    parser.add_argument(
        "--deadline", metavar="SECONDS", type=shared.positive, help="end within this time"
    )
    parser.add_argument(
        "--max-lag", metavar="N", type=shared.whole,
        help="leave a flow's content alone while its mirror is more records behind",
    )  # fmt: skip


def answer(options: Namespace) -> Answer:
    """Make the report, and leave it in the state directory, in the metrics and in the web view.

    :raises ReportError: another run holds the state, or the state cannot be used.
    """
    settings = shared.settings(options)
    asked = {
        "max_bytes": options.max_bytes,
        "max_records": options.max_records,
        "deadline_seconds": options.deadline,
        "max_lag_records": options.max_lag,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    settings = dataclasses.replace(settings, budget=dataclasses.replace(settings.budget, **given))
    store = Store(settings.state_directory)
    on_crash = shared.show_traceback if options.debug else lambda _: None
    page = store.reports_directory / latest("html", options.flow)
    with metrics.recorded(settings, "run", options.flow) as recorded, store.lock():

        def publish(made: Report) -> Report:
            made = recorded.write(made)
            written = formats.judged(made)
            store.write_report(page.name, formats.text("html", written))
            text = formats.text("json", written)
            store.write_report(latest("json", options.flow), text)
            # What the run found counts as told once this is there.
            store.write_report(f"{made.run_id}.json", text)
            store.prune_reports()
            if settings.web_directory and options.flow is None:
                store.publish(settings.web_directory, PUBLISHED)
            return made

        report = make_report(
            settings, options.flow, shared.show_progress, publish, on_crash=on_crash
        )
    document = formats.judged(report).document
    return formats.report(freshness.shown(document, settings.interval_seconds), str(page))


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
    flows = shared.chosen(settings, flow_name)
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
