"""One parity run: observe, plan, read, compare, confirm, classify, save.

Steps return what they found, or the manifest with it; only this module saves. Nothing is kept
before it is complete (:mod:`state.files`), so a run that dies leaves the state before it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mirror_report.checks import content
from mirror_report.model import ParityResult, Progress
from mirror_report.parity import ParityError
from mirror_report.parity.context import ParityRequest, RunContext
from mirror_report.parity.plan import (
    RunPlan,
    boundaries,
    copies,
    fatal_topics,
    open_buckets,
    ranges,
    run_plan,
    spread,
    total_bytes,
    total_records,
    work,
)
from mirror_report.parity.results import findings, losses, retention, scans, summaries, topics
from mirror_report.parity.run_state import RunState
from mirror_report.parity.spark import class_archive
from mirror_report.parity.spark.errors import JvmError, spark_errors
from mirror_report.parity.state import Manifest, TopicKey, changes, files, topic_value
from mirror_report.parity.steps import observe
from mirror_report.state import baselines
from mirror_report.state.store import StateError

if TYPE_CHECKING:
    from mirror_report.parity.spark.row_storage import RowStorage
    from mirror_report.parity.spark.session import OpenSession
    from mirror_report.parity.steps.compare import BucketStatuses, Compared


def run_parity(
    request: ParityRequest, progress: Progress, open_session: OpenSession | None = None
) -> ParityResult:
    """Compare the content of every flow and keep what was found.

    :param progress: called with a line of what is being done.
    :param open_session: how to get a Spark session; by default one of our own.
    :raises ReportError: nothing could be compared; what was kept before still holds.
    """
    context = RunContext.begin(request, progress)
    state = _plan(context)
    try:
        state, needed = _compared(context, state, open_session)
    except JvmError as error:
        context, search = _search(context, state.plan, error, open_session)
        state, needed = _compared(context, _plan(context, search), open_session)
    return _report(context, state, spark_started=needed)


def _search(
    context: RunContext, plan: RunPlan, error: JvmError, open_session: OpenSession | None
) -> tuple[RunContext, fatal_topics.Search]:
    """Find the topics that end Spark's JVM, and begin the run again that leaves them alone.

    :param error: what ended the JVM that read the topics of the plan.
    :raises JvmError: the same, if none of them does so alone, or time is over before.
    """
    context.progress(f"{error}; finding out which topic it ended at")
    search = fatal_topics.Search().ended(fatal_topics.at_work(plan))
    while search.waiting and not context.time_is_over():
        group, search = search.next()
        context = context.again()
        try:
            _compared(context, _plan(context, search, group), open_session)
        except JvmError:
            search = search.ended(group)
    if not search.fatal:
        raise error
    return context.again(), search


def _compared(
    context: RunContext, state: RunState, open_session: OpenSession | None
) -> tuple[RunState, bool]:
    """The state after the comparison, and whether it took Spark."""
    if work.spark_is_needed(context, state.manifest, state.plan):
        return _compare_content(context, state, open_session), True
    context.progress("nothing new on either side: Spark is not started")
    return state.with_positions(), False


def _plan(
    context: RunContext,
    search: fatal_topics.Search = fatal_topics.NOTHING_FATAL,
    only: Collection[TopicKey] | None = None,
) -> RunState:
    """Observe the clusters, and decide what to read and what no longer counts.

    :param search: for topics that end Spark's JVM; ``only``: those to be read.
    """
    names = {flow.name for flow in context.flows}
    begun = _load(context)
    manifest = changes.begin_run(begun, context.run_id, sorted(names), context.store.has_report)
    former = run_plan.superseded(context, manifest)
    unreported = tuple(finding for finding in former.manifest.new_findings if finding.flow in names)
    state = RunState(former.manifest, RunPlan({}), unreported)
    state = state.with_new(findings.renewed(*topic) for topic in former.renewed)
    observed = observe.observe(context, state.manifest)
    state = state.with_findings(observed.findings)
    manifest = changes.without_report(
        state.manifest, context.run_id, names - observed.snapshots.keys()
    )
    manifest = changes.with_timestamps(
        manifest, observe.topics_with_timestamps(context, manifest, observed.snapshots)
    )
    plan, flows, manifest = run_plan.plan_run(
        context, manifest, observed.snapshots,
        observe.read_syncs(context, manifest, observed.snapshots), former,
    )  # fmt: skip
    plan = replace(plan, deferred=observed.deferred).without(
        spread.not_compared(manifest, context.settings.flows)
    )
    manifest, gone = losses.settle(context, begun, manifest, plan, former)
    once = [finding for flow in flows for finding in findings.of_plan(flow, gone)]
    reopened = {topic.key for flow in flows for topic in flow.reopened}
    lost = [losses.reported_once(loss) for loss in gone if (loss.flow, loss.topic) not in reopened]
    configured = {flow.name for flow in context.settings.flows}
    once += [finding for finding in lost if finding.flow in configured]
    state = replace(state, manifest=manifest, plan=plan).with_new(once)
    # No later report is about a flow that is not configured any more.
    state = state.with_findings(finding for finding in lost if finding.flow not in configured)
    spark = context.settings.spark
    # Of the JVM that reads.
    heap = str(spark.properties.get("spark.executor.memory", spark.heap))
    manifest = fatal_topics.remember(state.manifest, plan, search.fatal, heap, context.now_ms)
    state, plan = replace(state, manifest=manifest), fatal_topics.without(manifest, plan, only)
    plan, large = work.within_limits(context, state.manifest, plan)
    manifest = copies.note(boundaries.note(state.manifest, plan), plan.compared, plan.snapshots)
    state = replace(state, manifest=manifest, plan=plan)
    return state.with_findings(findings.unaffordable(topic) for topic in large)


def _load(context: RunContext) -> Manifest:
    """The manifest of the last run.

    :raises ReportError: this release cannot use it; where it cannot use the baseline either, one
        command starts both again.
    """
    try:
        return files.load(context.store, context.bucket_ms)
    except ParityError as error:
        try:
            for flow in context.settings.flows:
                baselines.refuse_cut_by_time(flow.name, context.baseline(flow.name))
        except StateError:
            action = "Record where verification starts: mirror-report baseline --renew; it leaves "
            raise ParityError(error.message, f"{action}this state behind") from error
        raise


def _compare_content(
    context: RunContext, state: RunState, open_session: OpenSession | None
) -> RunState:
    """All that needs Spark: a run without anything new starts none, and does not even import it."""
    from mirror_report.parity.spark import session as sessions  # noqa: PLC0415
    from mirror_report.parity.spark import source  # noqa: PLC0415
    from mirror_report.parity.spark.row_storage import RowStorage  # noqa: PLC0415

    plan = state.plan
    parts = (
        *plan.ranges,
        *(part for topic in plan.scans for part in topic.ranges()),
        *(part for topic in plan.news for part in topic.new_ranges()),
    )
    expected, records = total_bytes(parts), total_records(parts)
    context.progress(
        f"starting Spark for {total_records(plan.ranges)} new records "
        f"(about {expected / 1e6:.0f} MB)"
    )
    directory = context.store.parity_directory
    # Sealed rows are read in few runs.
    names = state.manifest.rows() - set(state.manifest.sealed)
    rows = sum(sum(state.manifest.files.get(name, {}).values()) for name in names)
    if (hint := class_archive.hint(context.settings.spark)) is not None:
        context.progress(hint)
    clusters = context.settings.clusters_of({part.flow for part in parts})
    how = source.for_distance(context.settings.spark, expected, clusters)
    opened = open_session or sessions.open_session
    # The session first: an error of the JVM can only be read while the JVM lives.
    with opened(how, expected + rows, records, clusters) as session, spark_errors():
        limit = context.settings.budget.state_bytes
        storage = RowStorage(session, directory, context.rows_name, limit)
        state = _compare(context, storage, _read(context, storage, state))
        return _scan(context, storage, state)


def _read(context: RunContext, storage: RowStorage, state: RunState) -> RunState:
    """Leave out rows that no longer count, then digest what is new; each piece is saved."""
    from mirror_report.parity.steps import hours, read  # noqa: PLC0415

    kept = read.keep(context, storage, state.manifest, state.plan)
    state = replace(state, manifest=kept)
    pieces = read.read(context, storage, state.plan, lambda: state.manifest)
    for number, piece in enumerate(pieces):
        state = state.with_unread(piece.unread)
        plan = state.plan.without(piece.unknown)
        backlog = tuple(ranges.joined([*piece.later, *plan.backlog]))
        plan = replace(plan, backlog=backlog, spent=plan.spent.plus(piece.ranges))
        state = replace(state, plan=plan)
        if piece.digests is not None:
            ends = ((done.key, done.partition, done.end) for done in piece.ranges)
            manifest = replace(
                changes.read_up_to(state.manifest, ends),
                digests=(*state.manifest.digests, piece.digests), open_work=True,
            )  # fmt: skip
            manifest = hours.compare_by_hours(
                context, storage, manifest, state.plan, f"hours-{number}"
            )
            left_out = spread.not_compared(manifest, context.settings.flows)
            manifest = files.save(context.store, manifest)
            state = replace(state, manifest=manifest, plan=state.plan.without(left_out))
    return state


def _compare(context: RunContext, storage: RowStorage, state: RunState) -> RunState:
    """Compare all digests, classify what differs, and keep what was found."""
    from mirror_report.parity.frames import totals  # noqa: PLC0415
    from mirror_report.parity.steps import classify, compare, seal, slices  # noqa: PLC0415

    context.progress("comparing digests")
    compared = compare.compare_digests(context, storage, state.manifest, state.plan)
    state, compared = _verify_again(context, storage, state, compared)
    plan = state.plan
    statuses = compare.statuses(context, storage, state.manifest, plan, compared)
    gone = compare.removed_records(storage, state.manifest, compared, statuses)
    state = replace(state, manifest=replace(state.manifest, gone=gone, removals=()))
    final = statuses
    samples: list[dict[str, Any]] = []
    lanes = totals.summarise(statuses, context.bucket_ms).collect()
    rows = summaries.by_topic(lanes)
    still_open = slices.still_open(storage, state.manifest, statuses, lanes)
    manifest = open_buckets.note(state.manifest, plan, still_open, context.now_ms)
    state = replace(state, manifest=manifest)
    if differ := any(row["candidates"] for row in rows):
        state, samples = _classify(context, storage, state, compared, statuses)
    elif manifest.results is not None:
        # Nothing has to be read again.
        earlier = classify.earlier_results(storage, manifest, plan, statuses)
        results = storage.write(earlier.coalesce(1), "results")
        state = replace(state, manifest=replace(manifest, results=results))
    before_open = state.manifest.results
    state, lost = _count_open(context, storage, state, compared, statuses)
    samples += lost
    if differ or state.manifest.results != before_open:
        final = compare.statuses(context, storage, state.manifest, plan, compared)
        rows = summaries.by_topic(totals.summarise(final, context.bucket_ms).collect())
    before = state.manifest
    manifest = summaries.keep(before, state.plan, rows, samples, context.run_id)
    state = replace(state, manifest=copies.without_losses(manifest, state.plan.compared))
    state = state.with_new(findings.repaired(before, state.manifest, state.plan.compared))
    manifest = seal.seal(
        context, storage, state.manifest, compared.digests, final,
        verified=summaries.newly_verified(before, rows),
    )  # fmt: skip
    manifest = replace(manifest, open_work=any(row["candidates"] for row in rows))
    for frame in (final, statuses, compared.buckets):
        frame.unpersist()
    return replace(state, manifest=manifest).with_positions()


def _verify_again(
    context: RunContext, storage: RowStorage, state: RunState, compared: Compared
) -> tuple[RunState, Compared]:
    """Read a little again of what was verified; what is not what it was is compared again."""
    from mirror_report.parity.steps import compare, verify_again  # noqa: PLC0415

    if not context.settings.budget.scrub_bytes or context.time_is_over():
        return state, compared
    # What the first run verified it has just read.
    at_ms = state.manifest.verified_again_at_ms or context.now_ms
    manifest = replace(state.manifest, verified_again_at_ms=at_ms)
    if context.now_ms - at_ms < verify_again.PAUSE_MS:
        return replace(state, manifest=manifest), compared
    state = verify_again.verify_again(context, storage, state, compared)
    if state.manifest.digests == manifest.digests:
        return state, compared
    compared.buckets.unpersist()
    return state, compare.compare_digests(context, storage, state.manifest, state.plan)


def _classify(
    context: RunContext,
    storage: RowStorage,
    state: RunState,
    compared: Compared,
    statuses: BucketStatuses,
) -> tuple[RunState, list[dict[str, Any]]]:
    """Confirm what differs by fresh snapshots, and classify it record by record; with samples."""
    from mirror_report.parity.steps import classify  # noqa: PLC0415

    manifest, plan = state.manifest, state.plan
    rows, left = classify.differing(statuses)
    earlier = classify.earlier_results(storage, manifest, plan, statuses)
    context.progress(f"{len(rows)} minutes differ: reading them again with fresh offsets")
    observed = observe.observe_again(context, plan, {row["flow"] for row in rows})
    manifest = copies.note(manifest, plan.compared, observed.snapshots, source_last=True)
    differences, rows = classify.confirm(
        storage, manifest, plan, observed.snapshots, compared.digests, rows
    )
    classifier = classify.Classifier(context, storage, plan, differences)
    results, samples, later = classifier.classify(rows, earlier)
    state = replace(
        state,
        manifest=copies.need(replace(manifest, results=results), classifier.looks),
        plan=replace(plan, spent=classifier.spent),
        left=left + later,
    )
    hidden = losses.out_of_sight(classifier.again, plan.compared)
    state = state.with_new(losses.reported_once(loss, losses.REMOVED) for loss in hidden)
    return state.with_findings(observed.findings).with_unread(classifier.reader.unread), samples


def _count_open(
    context: RunContext,
    storage: RowStorage,
    state: RunState,
    compared: Compared,
    statuses: BucketStatuses,
) -> tuple[RunState, list[dict[str, Any]]]:
    """Count by slices of offsets what has been open for long; with samples."""
    from mirror_report.parity.steps.slices import Counter  # noqa: PLC0415

    late = open_buckets.late(
        state.manifest, state.plan, context.now_ms, context.settings.budget.open_minutes
    )
    if not late or context.time_is_over():
        return state, []
    counter = Counter(context, storage, state.manifest, state.plan)
    counted = counter.count(late, compared.digests)
    if counted is not None and counted.lost:
        observed = observe.observe_again(context, state.plan, {flow for flow, _ in counted.lost})
        state = state.with_findings(observed.findings)
        counted = counter.confirm(counted, observed.snapshots)
    plan = replace(state.plan, spent=counter.spent)
    state = replace(state, plan=plan).with_unread(counter.reader.unread)
    if counted is None:
        return state, []
    manifest, samples = counter.keep(counted, statuses)
    # What differs in its time alone may close such a loss only where a copy may lie.
    manifest = copies.need(
        manifest,
        {topic: range(len(topic_value(manifest.looks, topic, ()))) for topic in counted.lost},
    )
    return replace(state, manifest=replace(manifest, unreadable=state.manifest.unreadable)), samples


def _scan(context: RunContext, storage: RowStorage, state: RunState) -> RunState:
    """Compare compacted topics if there is time: those that are due, and what is new of others."""
    from mirror_report.parity.spark.records import OutOfTimeError  # noqa: PLC0415
    from mirror_report.parity.steps.scan import Scanner  # noqa: PLC0415

    for compacted, new in ((state.plan.news, True), (state.plan.scans, False)):
        if not compacted or context.time_is_over():
            continue
        scanner = Scanner(context, storage, state.manifest, state.plan, new=new)
        try:
            compared = scanner.scan(compacted)
            if again := [each.topic for each in compared if each.differs]:
                context.progress(
                    f"{len(again)} compacted topic(s) differ: reading them with fresh offsets"
                )
                flows = {topic.flow.name for topic in again}
                observed = observe.observe_again(context, state.plan, flows)
                state = state.with_findings(observed.findings)
                compared = [each for each in compared if not each.differs]
                compared += scanner.confirm(again, observed.snapshots)
        except OutOfTimeError:
            context.progress("deadline reached: compacted topics wait for the next run")
            return state
        state = state.with_unread(scanner.reader.unread)
        state = state.with_new(findings.repaired_keys(compared))
        manifest = scans.keep(state.manifest, compared, context.run_id, new=new)
        state = replace(state, manifest=files.save(context.store, manifest))
    return state


def _report(context: RunContext, state: RunState, *, spark_started: bool) -> ParityResult:
    """Save, and put the result together."""
    plan, settings = state.plan, context.settings
    reported = [topics.report_topic(context, state.manifest, plan, topic) for topic in plan.topics]
    # What is reported once has been reported, unless this run's report is never written.
    finished = {**state.manifest.finished, **dict.fromkeys(plan.snapshots, context.run_id)}
    manifest = boundaries.without_read(state.manifest, plan)
    files.save(context.store, replace(manifest, finished=finished))
    lasting = losses.of_manifest(manifest, settings.flows, context.now_ms)
    reported_findings = [
        *state.findings,
        *losses.unseen(lasting, reported, context.flows, plan.snapshots),
        *retention.doubted(manifest.gone, context.flows, context.now_ms),
        *(
            each
            for topic in reported
            for each in content.findings(topic, settings.flow(topic.flow), settings.clusters)
        ),
    ]
    deferred = plan.deferred_topics
    left = total_records(waiting for waiting in plan.backlog if waiting.topic_key not in deferred)
    if left or state.left:
        reported_findings.append(findings.backlog(left, state.left))
    return ParityResult(
        topics=reported,
        findings=reported_findings,
        backlog_records=total_records(plan.backlog),
        backlog_bytes=int(total_bytes(plan.backlog)),
        spark_started=spark_started,
        seconds=round(context.seconds, 3),
    )
