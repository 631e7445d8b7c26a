"""What each command does, between the rooms; nothing here prints or ends the process."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mirror_report import __version__
from mirror_report.checks import certificates, permissions, preflight, shifts, workers
from mirror_report.checks import lag as lag_checks
from mirror_report.checks import topics as topic_checks
from mirror_report.checks.estimates import estimates
from mirror_report.checks.sysconfig import read_environment
from mirror_report.checks.verdict import failure, finding, verdict, worst_first
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.kafka.certificates import bootstrap, examine
from mirror_report.kafka.groups import addresses
from mirror_report.kafka.permissions import ask, may_create
from mirror_report.kafka.records import Tail, oldest_waiting
from mirror_report.model import (
    ClusterSnapshot,
    Finding,
    FlowStatus,
    ParityResult,
    PartitionLag,
    Place,
    Report,
    ReportError,
    TopicParity,
    sentence,
)
from mirror_report.observe import (
    Clients,
    Memories,
    Observed,
    Take,
    group_of,
    literals,
    look,
    open_clients,
    source_snapshot,
    standing_of,
)
from mirror_report.render.json import SCHEMA_VERSION
from mirror_report.state.store import StateError, Store

Progress = Callable[[str], None]


@dataclass(frozen=True)
class CheckResult:
    """What stands against the flows, and which clusters they join."""

    findings: list[Finding]
    flows: list[FlowStatus]


@dataclass(frozen=True)
class LagResult:
    """Lag of all flows asked for, and what was found on the way.

    :param shifts: flow -> shifts of its offsets, for the next run to compare with.
    """

    rows: list[PartitionLag] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    flows: list[FlowStatus] = field(default_factory=list)
    observed: dict[str, Observed] = field(default_factory=dict)
    memories: Memories = field(default_factory=dict)
    shifts: dict[str, dict[str, Any]] = field(default_factory=dict)


def chosen(settings: Settings, flow: str | None) -> tuple[Flow, ...]:
    """Flows a command is about.

    :raises ConfigError: unknown name, or no flow at all.
    """
    if flow is not None:
        return (settings.flow(flow),)
    if not settings.flows:
        raise ConfigError("flows: empty, there is nothing to look at")
    return settings.flows


def _aliases(flows: Sequence[Flow]) -> list[str]:
    return [alias for flow in flows for alias in (flow.source, flow.target)]


def check(settings: Settings, flow: str | None = None) -> CheckResult:
    """Judge clusters, permissions and topics of the flows; changes nothing."""
    flows = chosen(settings, flow)
    found: list[Finding] = []
    statuses: list[FlowStatus] = []
    with open_clients(settings, _aliases(flows)) as clients:
        for one in flows:
            found += _reachable(clients, one)
            found += _permissions(settings, clients, one)
            try:
                observed = look(clients, one, {})
            except ReportError as error:
                statuses.append(_status(one, None))
                found.append(failure(error, one.name))
                continue
            statuses.append(_status(one, observed))
            found += _check_flow(settings, clients, one, observed)
            found += _before_start(clients, one, observed)
        found += _certificates(settings, clients, flows)
    return CheckResult(worst_first(_said_once(found)), statuses)


def _said_once(found: Sequence[Finding]) -> list[Finding]:
    """Without what is said twice, and what only follows from a permission that is named."""
    lacking = {one.flow for one in found if one.kind == "missing_permission"}
    kept: dict[Any, Finding] = {}
    for one in found:
        if one.kind == "permission" and one.flow in lacking:
            continue
        # Flows may share a permission; the command that grants it names it.
        shared = one.kind == "missing_permission"
        kept.setdefault(one.action if shared else one, one)
    return list(kept.values())


def _reachable(clients: Clients, flow: Flow) -> list[Finding]:
    found = []
    for alias in (flow.source, flow.target):
        try:
            clients.get(alias)
        except ReportError as error:
            found.append(failure(error, flow.name))
    return found


def _check_flow(
    settings: Settings, clients: Clients, flow: Flow, observed: Observed
) -> list[Finding]:
    found = _same_cluster(flow, observed)
    found += topic_checks.compare(
        flow,
        observed.source,
        observed.target,
        auto_creation=observed.auto_creation,
        positions=observed.positions,
        forbidden=_forbidden(settings, clients, flow, observed),
    )
    return found + _sysconfig(flow)


def _forbidden(
    settings: Settings, clients: Clients, flow: Flow, observed: Observed
) -> Collection[str]:
    """Missing topics that no broker will create for the mirror, whose identity this is."""
    mirrors = flow.engine == "mm1" and settings.clusters[flow.target].identity == "mirror"
    if observed.auto_creation is not None or not mirrors:
        return ()
    target = observed.target
    wanted = map(flow.target_topic, observed.source.topics)
    absent = [one for one in wanted if one not in target.topics and one not in target.errors]
    allowed = may_create(clients.get(flow.target), absent)
    return [name for name, may in allowed.items() if not may]


def _before_start(clients: Clients, flow: Flow, observed: Observed) -> list[Finding]:
    """What stands against starting the mirror, beyond what stands against having it."""
    found = preflight.takeover(flow, observed.target, observed.positions, observed.group)
    found += preflight.idle_tasks(flow, observed.source)
    if flow.engine != "mm2":
        return found
    found += preflight.replication_factors(flow, observed.target_brokers)
    try:
        internal = clients.get(flow.target).snapshot(None, preflight.internal_names(flow))
        found += preflight.internal_topics(flow, internal)
        if flow.consumer_groups:
            found += preflight.no_groups(flow, clients.get(flow.source).groups())
    except ReportError as error:
        found.append(failure(error, flow.name))
    return found


def _same_cluster(flow: Flow, observed: Observed) -> list[Finding]:
    if observed.source.cluster_id != observed.target.cluster_id:
        return []
    return [
        finding(
            "same_cluster",
            f"{flow.source} and {flow.target} are one cluster ({observed.source.cluster_id}): "
            "the mirror would feed itself",
            f"Correct bootstrap_servers of kafka_clusters.{flow.source} or "
            f"kafka_clusters.{flow.target}",
            flow=flow.name,
        )
    ]


def _permissions(settings: Settings, clients: Clients, flow: Flow) -> list[Finding]:
    """What our identity lacks on both clusters, and what could not be asked."""
    if not flow.permissions:
        return permissions.not_configured(flow)
    found: list[Finding] = []
    topics: set[str] = set(literals(flow))
    groups: list[str] = []
    for alias in (flow.source, flow.target):
        rows = permissions.rows_of(flow, alias)
        try:
            client = clients.get(alias)
            if alias == flow.source:
                topics |= set(client.names(flow.matches))
                groups = [one for one in client.groups() if flow.syncs(one)]
            else:
                # The source may hide what was mirrored from it.
                mirrored = map(flow.source_topic, client.names(lambda _: True))
                topics |= {one for one in mirrored if one is not None}
            wanted = permissions.questions(flow, rows, topics, groups)
            answers = ask(client, wanted, permissions.NOBODYS)
        except ReportError as error:
            found.append(failure(error, flow.name))
            continue
        found += permissions.judge(flow, settings.clusters[alias], rows, answers, topics, groups)
    return found


def _certificates(settings: Settings, clients: Clients, flows: Sequence[Flow]) -> list[Finding]:
    """Certificates that end soon, of all clusters of the flows."""
    found: list[Finding] = []
    for alias in dict.fromkeys(_aliases(flows)):
        cluster = settings.clusters[alias]
        if not cluster.uses_tls:
            continue
        kinds = {"certificate_expiry", "not_checked"}
        try:
            brokers = clients.get(alias).listeners()
        except ReportError:
            # That is said already; only a certificate that has ended may explain it.
            brokers, kinds = bootstrap(cluster), {"certificate_expiry"}
        seen = examine(cluster, settings.credentials, brokers)
        now_ms = time.time_ns() // 1_000_000
        judged = certificates.judge(seen, settings.warn.certificate_days, now_ms)
        found += [one for one in judged if one.kind in kinds]
    return found


def _sysconfig(flow: Flow) -> list[Finding]:
    if flow.sysconfig is None:
        return []
    path = Path(flow.sysconfig)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        # On a host that does not run this mirror there is nothing to compare with.
        return []
    include = read_environment(text).get("MM_INCLUDE")
    if include in (None, flow.include):
        return []
    return [
        finding(
            "sysconfig_drift",
            f"{path} mirrors {include}, the model says {flow.include}",
            "Run playbooks/mirrormaker.yml to return to the model, or change topics of flow "
            f"{flow.name}",
            flow=flow.name,
        )
    ]


@dataclass(frozen=True)
class Confirmation:
    """Whether a mirror took up its work.

    :param flowing: the position moved while it was watched; ``None``: no record was waiting.
    """

    flow: str
    ok: bool
    flowing: bool | None
    text: str


def confirm(
    settings: Settings,
    flow_name: str | None,
    hosts: Sequence[str],
    timeout: float,
    progress: Progress,
) -> list[Confirmation]:
    """Watch until the flows' own process has all its work in hand and moves on; writes nothing.

    :param hosts: the process must be a member from one of these hosts; empty: from anywhere.
    :param timeout: seconds for taking up the work, and again for moving.
    """
    flows = chosen(settings, flow_name)
    with ThreadPoolExecutor(max_workers=len(flows)) as pool:
        return list(pool.map(lambda one: _confirm(settings, one, hosts, timeout, progress), flows))


def _confirm(
    settings: Settings, flow: Flow, hosts: Sequence[str], timeout: float, progress: Progress
) -> Confirmation:
    cluster = settings.clusters[flow.target if flow.engine == "mm2" else flow.source]
    seen_from = {one for host in hosts for one in addresses(host, cluster)}
    memories: Memories = {}
    with open_clients(settings, {flow.source, cluster.alias}) as clients:
        deadline = time.monotonic() + timeout
        while True:
            source = source_snapshot(clients, flow)
            lacking = _not_taken_up(clients, flow, source, hosts, seen_from, memories)
            if not lacking:
                break
            if time.monotonic() > deadline:
                return Confirmation(
                    flow.name, False, None,
                    f"{flow.name}: {lacking}. Look into "
                    f"journalctl -u {flow.instance}.service -n 100",
                )  # fmt: skip
            progress(f"waiting for flow {flow.name}: {lacking}")
            time.sleep(1)
        started = standing_of(clients, flow, memories).positions
        waiting = lag_checks.waiting(flow, source, started, {})
        idle = Confirmation(
            flow.name, True, None, f"{flow.name}: running, flow not observed (lag 0)"
        )
        if not waiting:
            return idle
        progress(
            f"{flow.name}: {len(waiting)} partition(s) have records waiting; watching the position"
        )
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            time.sleep(1)
            now = standing_of(clients, flow, memories).positions
            if any(now.get(t, {}).get(p) != started.get(t, {}).get(p) for t, p in waiting):
                return Confirmation(flow.name, True, True, f"{flow.name}: running, records flow")
        if _only_markers(settings, flow, waiting):
            return idle
    return Confirmation(
        flow.name,
        False,
        False,
        f"{flow.name}: {sum(end - at for at, end in waiting.values())} records wait and the "
        f"position did not move for {timeout:.0f} s. Look into "
        f"journalctl -u {flow.instance}.service -n 100",
    )


def _only_markers(settings: Settings, flow: Flow, waiting: Mapping[Place, tuple[int, int]]) -> bool:
    ages = oldest_waiting(settings.clusters[flow.source], settings.credentials, waiting)
    return len(ages) == len(waiting) and all(one is None for one in ages.values())


def _not_taken_up(
    clients: Clients,
    flow: Flow,
    source: ClusterSnapshot,
    hosts: Sequence[str],
    seen_from: set[str],
    memories: Memories,
) -> str:
    """What is missing until the process has its work in hand; empty: nothing."""
    group = group_of(clients, flow)
    own = [one for one in group.members if not hosts or one.host in seen_from]
    if flow.engine == "mm2":
        standing = standing_of(clients, flow, memories)
        work = ", ".join(workers.not_running(flow, standing, tasks_expected=bool(source.topics)))
    else:
        wanted = {(name, p) for name, one in source.topics.items() for p in one.partitions}
        held = {place for member in group.members for place in member.partitions}
        shown = ", ".join(f"{topic}-{p}" for topic, p in sorted(wanted - held)[:5])
        work = f"unassigned: {shown}" if shown else ""
    if own and group.state == "Stable" and not work:
        return ""
    seen = ", ".join(sorted({member.host for member in group.members})) or "none"
    return (
        f"group {flow.group_id} is {group.state}; members from {seen}"
        + (f", expected one from {', '.join(hosts)}" if hosts else "")
        + (f"; {work}" if work else "")
    )


def baseline(
    settings: Settings, flow_name: str | None, *, full_history: bool, renew: bool
) -> dict[str, bool]:
    """Record where verification starts.

    :param full_history: compare everything both logs still hold, replacing what was recorded.
    :param renew: replace what was recorded by the state of now.
    :returns: flow -> whether something was recorded (a baseline is kept unless told otherwise).
    :raises ReportError: a cluster cannot be read; nothing is recorded for any flow then.
    """
    store = Store(settings.state_directory)
    flows = chosen(settings, flow_name)
    with store.lock():
        recorded = store.load("baseline")
        due = [one for one in flows if full_history or renew or one.name not in recorded]
        if due:
            ids = store.load("topics")
            with open_clients(settings, _aliases(due)) as clients:
                for flow in due:
                    entry = _baseline_of(clients, flow, full_history)
                    recorded[flow.name] = entry
                    ids[flow.name] = {
                        side: {
                            flow.target_topic(name) if side == "target" else name: one[f"{side}_id"]
                            for name, one in entry["topics"].items()
                            if one[f"{side}_id"] is not None
                        }
                        for side in ("source", "target")
                    }
            store.commit("baseline", recorded)
            store.commit("topics", ids)
    return {one.name: one in due for one in flows}


def _baseline_of(clients: Clients, flow: Flow, full_history: bool) -> dict[str, Any]:
    observed = look(clients, flow, {})
    same = _same_cluster(flow, observed)
    if same:
        raise ConfigError(f"{same[0].message}. {same[0].action}")
    problems = {**observed.source.errors, **observed.target.errors}
    if problems:
        raise StateError("no baseline recorded: " + "; ".join(problems.values()))
    topics: dict[str, Any] = {}
    for name, ours in observed.source.topics.items():
        there = flow.target_topic(name)
        theirs = observed.target.topics.get(there)
        commits = {} if full_history else observed.positions.get(name, {})
        source = {
            str(p): commits.get(
                p, one.log_end if flow.start == "latest" and not full_history else one.log_start
            )
            for p, one in ours.partitions.items()
        }
        target = {
            str(p): one.log_start if full_history else one.end
            for p, one in (theirs.partitions if theirs else {}).items()
        }
        skip = None
        if commits and theirs is not None:
            # Asked after the offsets: what arrives in between is skipped, never called missing.
            newest = clients.get(flow.target).max_timestamps(there, list(theirs.partitions))
            skip = max(newest.values(), default=None)
        topics[name] = {
            "source": source,
            "target": target,
            "skip_through_ms": skip,
            "source_id": ours.topic_id,
            "target_id": theirs.topic_id if theirs else None,
        }
    return {
        "recorded_at_ms": observed.source.taken_at_ms,
        "group_existed": bool(observed.positions),
        "topics": topics,
    }


def lag(
    settings: Settings, store: Store, flow_name: str | None = None, *, topics: bool = False
) -> LagResult:
    """Measure lag once and remember the positions.

    :param topics: judge the topics' settings too.
    """
    flows = chosen(settings, flow_name)
    result = LagResult()
    manifests: dict[str, dict[str, Any]] = {}
    for name in ("baseline", "topics", "shifts", "mirrors"):
        try:
            manifests[name] = store.load(name)
        except StateError as error:
            manifests[name] = {}
            result.findings.append(failure(error))
    result.memories.update(_memories(manifests["mirrors"]))
    with open_clients(settings, _aliases(flows)) as clients:
        for flow in flows:
            try:
                observed = look(clients, flow, result.memories)
            except ReportError as error:
                result.findings.append(failure(error, flow.name))
                result.flows.append(_status(flow, None))
                continue
            result.observed[flow.name] = observed
            result.flows.append(_status(flow, observed))
            _lag_of(settings, store, flow, observed, manifests, result)
            if topics:
                result.findings.extend(_check_flow(settings, clients, flow, observed))
                result.findings.extend(
                    one
                    for one in _permissions(settings, clients, flow)
                    if one.kind == "missing_permission"
                )
        result.findings.extend(_certificates(settings, clients, flows))
    result.findings[:] = _said_once(result.findings)
    if any(flow.engine == "mm2" for flow in flows):
        _keep_memories(store, manifests["mirrors"], result)
    return result


def _memories(plain: Mapping[str, Any]) -> Memories:
    return {
        flow: {topic: Tail.load(one) for topic, one in topics.items()}
        for flow, topics in plain.items()
    }


def _keep_memories(store: Store, before: Mapping[str, Any], result: LagResult) -> None:
    now = {
        flow: {topic: tail.dump() for topic, tail in topics.items()}
        for flow, topics in result.memories.items()
    }
    try:
        store.commit("mirrors", {**before, **now})
    except StateError as error:
        result.findings.append(failure(error))


def _lag_of(
    settings: Settings,
    store: Store,
    flow: Flow,
    observed: Observed,
    manifests: Mapping[str, Mapping[str, Any]],
    result: LagResult,
) -> None:
    source, positions, standing = observed.source, observed.positions, observed.standing
    start = manifests["baseline"].get(flow.name, {})
    remembered = manifests["topics"].get(flow.name, {})
    waiting = lag_checks.waiting(flow, source, positions, start)
    try:
        ages = oldest_waiting(settings.clusters[flow.source], settings.credentials, waiting)
    except ReportError as error:
        ages = {}
        result.findings.append(failure(error, flow.name))
    try:
        history = store.history(flow.name)
    except StateError as error:
        history = []
        result.findings.append(failure(error, flow.name))
    reset = lag_checks.changed_ids(remembered.get("source", {}), source)
    target_reset = lag_checks.changed_ids(remembered.get("target", {}), observed.target)
    anew = set(reset) | {name for name in source.topics if flow.target_topic(name) in target_reset}
    rows = lag_checks.measure(
        flow,
        source,
        positions,
        observed.group,
        ages=ages,
        history=history,
        baseline=start,
        reset_topics=frozenset(reset),
        warn=settings.warn,
        estimates=estimates(flow, source, observed.target, standing, anew),
    )
    result.rows.extend(rows)
    result.findings.extend(lag_checks.judge(flow, rows, observed.group))
    result.findings.extend(workers.judge(flow, standing, observed.group))
    result.findings.extend(
        finding("permission", message, f"Grant the identity READ on the topics of {flow.target} "
                "that docs/report.md lists", flow=flow.name)
        for message in standing.problems
    )  # fmt: skip
    drained = lag_checks.drained(waiting, ages)
    seen = shifts.observe(source, observed.target, standing, flow, drained)
    before = manifests["shifts"].get(flow.name, {})
    result.findings.extend(shifts.judge(flow, source, seen, before, anew))
    result.shifts[flow.name] = shifts.remember(before, seen)
    again = (
        f"write a record without value for each of its keys into {flow.offset_topic}"
        if flow.engine == "mm2"
        else f"reset group {flow.group_id} to the earliest offsets"
    )
    result.findings.extend(
        finding(
            "reset",
            f"{name}: deleted and created again on {flow.target} (id {old}, now {new})",
            f"Records mirrored before are gone. To mirror them again {again} while "
            f"{flow.instance}.service is stopped; "
            f"then mirror-report baseline --flow {flow.name} --renew",
            flow=flow.name,
            topic=name,
        )
        for name, (old, new) in target_reset.items()
    )
    try:
        store.append_history(flow.name, lag_checks.observation(source, positions, drained))
    except StateError as error:
        result.findings.append(failure(error, flow.name))


def _status(flow: Flow, observed: Observed | None) -> FlowStatus:
    return FlowStatus(
        name=flow.name,
        engine=flow.engine,
        source=flow.source,
        target=flow.target,
        source_cluster_id=observed.source.cluster_id if observed else None,
        target_cluster_id=observed.target.cluster_id if observed else None,
        group_id=flow.group_id,
        group_state=observed.group.state if observed else None,
        target_brokers=observed.target_brokers if observed else None,
        topics=tuple(observed.source.topics) if observed else (),
    )


def run(
    settings: Settings,
    flow_name: str | None,
    progress: Progress,
    *,
    max_bytes: int | None = None,
    deadline_seconds: float | None = None,
    on_crash: Callable[[BaseException], None] = lambda _: None,
) -> Report:
    """Make the whole report; the caller holds the store's lock.

    :param on_crash: told of an unexpected error, which otherwise becomes a finding.
    """
    started = time.monotonic()
    generated_at = datetime.now(UTC)
    run_id = generated_at.strftime("%Y%m%dT%H%M%SZ") + "-" + secrets.token_hex(2)
    store = Store(settings.state_directory)
    flows = chosen(settings, flow_name)
    progress(f"run {run_id}: reading offsets of {len(flows)} flow(s)")
    measured = lag(settings, store, flow_name, topics=True)
    findings = list(measured.findings)
    _remember_ids(store, flows, measured)
    # From here on a shift has been said.
    store.commit("shifts", {**store.load("shifts"), **measured.shifts})
    readable = tuple(one for one in flows if one.name in measured.observed)
    parity: ParityResult | None = None
    if readable:
        progress("comparing content")
        parity, problem = _parity(
            dataclasses.replace(settings, flows=readable),
            store,
            run_id,
            settings.budget.max_bytes if max_bytes is None else max_bytes,
            settings.budget.deadline_seconds if deadline_seconds is None else deadline_seconds,
            progress,
            on_crash,
            measured.memories,
        )
        findings += parity.findings if parity else []
        findings += [problem] if problem else []
    findings += _nothing_seen(store, readable, measured)
    coverage = _coverage(parity.topics if parity else [])
    findings += _bounds(settings, coverage, parity, findings)
    findings = worst_first(findings)
    progress("writing the report")
    return Report(
        schema_version=SCHEMA_VERSION,
        tool={"name": "mirror-report", "version": __version__},
        run_id=run_id,
        generated_at=generated_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        duration_seconds=round(time.monotonic() - started, 3),
        verdict=verdict(findings),
        coverage=coverage,
        flows=measured.flows,
        lag=measured.rows,
        parity=parity.topics if parity else [],
        backlog_records=parity.backlog_records if parity else None,
        backlog_bytes=parity.backlog_bytes if parity else None,
        spark_started=parity.spark_started if parity else False,
        findings=findings,
        errors=[one.message for one in findings if one.severity == "unknown"],
    )


def _parity(
    settings: Settings,
    store: Store,
    run_id: str,
    max_bytes: int | None,
    deadline_seconds: float,
    progress: Progress,
    on_crash: Callable[[BaseException], None],
    memories: Memories,
) -> tuple[ParityResult | None, Finding | None]:
    try:
        # Spark is only needed here; every other command works without it.
        from mirror_report.parity.engine import ParityRequest, run_parity  # noqa: PLC0415

        request = ParityRequest(
            settings, Take(settings, memories), store, run_id, max_bytes, deadline_seconds
        )
        return run_parity(request, progress), None
    except ImportError as error:
        on_crash(error)
        return None, finding(
            "parity_unavailable",
            f"content was not compared: the Python package {error.name or 'pyspark'} is missing",
            "Install the report with its Spark part: role mirror_report, or pip install "
            "'mirror-report[spark]' into its venv",
        )
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
    due = sum(
        max(one.verified_records, one.source_records - one.in_flight_records - one.skipped_records)
        for one in topics
    )
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
