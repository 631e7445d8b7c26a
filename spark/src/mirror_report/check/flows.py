"""What stands against flows before they start, and against those that run."""

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from mirror_report.checks import (
    certificates,
    control,
    permissions,
    preflight,
    releases,
    sysconfig,
    topic_status,
    workers,
)
from mirror_report.checks import topics as topic_checks
from mirror_report.checks.verdict import failure, once, verdict, worst_first
from mirror_report.config import Cluster, Flow, Settings
from mirror_report.kafka.certificates import bootstrap, examine
from mirror_report.kafka.groups import states
from mirror_report.kafka.permissions import ask, granted, may_create, not_creatable
from mirror_report.model import CheckDocument, Finding, FlowStatus, Observed, ReportError
from mirror_report.observe import (
    Clients,
    aliases,
    literals,
    load_manifests,
    observe_flow,
    open_clients,
    status_of,
)
from mirror_report.processes.findings import processes_of
from mirror_report.render import SCHEMA_VERSION
from mirror_report.state import baselines
from mirror_report.state.store import Store


def check_flows(settings: Settings, flow_name: str | None = None) -> CheckDocument:
    """Check clusters, permissions and topics of the flows; changes nothing."""
    flows = settings.chosen(flow_name)
    findings: list[Finding] = []
    statuses: list[FlowStatus] = []
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            findings += [*_reachable(clients, flow), *lacking_permissions(clients, flow)]
            try:
                observed = observe_flow(clients, flow, {})
            except ReportError as error:
                statuses.append(status_of(flow, None))
                findings.append(failure(error, flow.name))
            else:
                statuses.append(status_of(flow, observed))
                others, store = settings.into_one(flow), Store(settings.state_directory)
                findings += [
                    *check_flow(clients, flow, observed),
                    *_before_start(clients, flow, observed),
                    *_foreign_topics(store, flow, observed, others),
                ]
        # By now most brokers have been asked for something.
        by_alias = _releases(clients, aliases(flows))
        findings += releases.old_clusters(by_alias)
        for flow in flows:
            findings += releases.unalterable_settings(flow, by_alias.get(flow.target))
        clusters = settings.clusters_of(flow.name for flow in flows)
        findings += ending_certificates(clients, clusters, settings.warn.certificate_days)
    findings += processes_of(
        flows, findings, units_file=settings.units_file,
        interval_seconds=settings.lag_interval_seconds, instances=settings.instances,
    )  # fmt: skip
    findings = worst_first(once(findings))
    return CheckDocument(SCHEMA_VERSION, verdict(findings), statuses, findings)


def _reachable(clients: Clients, flow: Flow) -> Iterator[Finding]:
    for alias in (flow.source, flow.target):
        try:
            clients.get(alias)
        except ReportError as error:
            yield failure(error, flow.name)


def _releases(clients: Clients, aliases: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Releases of clusters, as far as they can be asked."""
    by_alias = {}
    for alias in aliases:
        # Why it cannot be asked is in the findings of the other requests.
        with contextlib.suppress(ReportError):
            by_alias[alias] = clients.get(alias).release()
    return by_alias


def _before_start(clients: Clients, flow: Flow, observed: Observed) -> Iterator[Finding]:
    """What stands against starting the mirror, or in the way of one that is started."""
    yield from workers.findings(flow, observed.mirror, observed.group)
    yield from workers.no_worker(flow, observed.positions, observed.group)
    yield from preflight.takeover(flow, observed.target, observed.positions, observed.group)
    yield from preflight.idle_tasks(flow, observed.source)
    for alias in (flow.source, flow.target):
        yield from preflight.distance(flow, alias, clients.get(alias).round_trip_ms())
    if flow.engine.creates_topics and observed.target.brokers is not None:
        yield from preflight.replication_factors(flow, observed.target.brokers)
    try:
        if names := preflight.internal_names(flow):
            client = clients.get(flow.target)
            yield from preflight.internal_topics(flow, client.snapshot(None, names))
            acls = {name: granted(client, name) for name in names}
            yield from control.access(flow, {name: rows for name, rows in acls.items() if rows})
        if flow.engine.syncs_groups and flow.consumer_groups:
            yield from preflight.no_groups(flow, states(clients.get(flow.source)))
    except ReportError as error:
        yield failure(error, flow.name)


def _foreign_topics(
    store: Store, flow: Flow, observed: Observed, others: Sequence[Flow]
) -> list[Finding]:
    """Topics of the target that the flow did not make, also by what reports remember.

    :param others: further flows into its target.
    """
    findings: list[Finding] = []
    manifests = load_manifests(store, ("baseline", "survey"), findings)
    baseline, survey = (manifests[name].get(flow.name, {}) for name in ("baseline", "survey"))
    before = topic_status.not_made(flow, survey, observed.source, baselines.of_flow(baseline))
    findings += topic_status.foreign_topics(
        flow, observed.source, observed.target, observed.positions, others, before
    )
    return findings


def check_flow(clients: Clients, flow: Flow, observed: Observed) -> Iterator[Finding]:
    """Topics, their names and settings, and the mirror's own environment file."""
    impossible = _impossible_copies(clients, flow, observed)
    yield from impossible
    yield from preflight.same_cluster(flow, observed.source, observed.target)
    # Nobody can create what collides, so that it is missing needs no cure of its own.
    colliding = {each.topic for each in impossible if each.kind == "name_collides"}
    for each in topic_checks.findings(
        flow,
        observed.source,
        observed.target,
        auto_creation=observed.auto_creation,
        positions=observed.positions,
        forbidden=_forbidden(clients, flow, observed),
    ):
        if each.topic not in colliding or each.kind not in ("topic_missing", "not_checked"):
            yield each
    if flow.sysconfig:
        # On a host that does not run this mirror there is no file to compare with.
        with contextlib.suppress(OSError):
            yield from sysconfig.drift(flow, Path(flow.sysconfig).read_text(encoding="utf-8"))


def _impossible_copies(clients: Clients, flow: Flow, observed: Observed) -> list[Finding]:
    try:
        on_source = clients.get(flow.source).partition_counts()
        on_target = clients.get(flow.target).partition_counts()
    except ReportError as error:
        return [failure(error, flow.name)]
    refused = (
        not_creatable(clients.get(flow.target), _absent(flow, observed))
        if _is_mirrors(clients, flow)
        else ()
    )
    return [*topic_status.impossible_copies(flow, observed.source, on_source, on_target, refused)]


def _is_mirrors(clients: Clients, flow: Flow) -> bool:
    """Whether the identity of this configuration is the mirror's."""
    return clients.get(flow.target).cluster.identity == flow.identity


def _absent(flow: Flow, observed: Observed) -> list[str]:
    """Topics that are not on the target, by their names there."""
    target, copies = observed.target, map(flow.target_topic, observed.source.topics)
    return [name for name in copies if name not in target.topics and name not in target.errors]


def _forbidden(clients: Clients, flow: Flow, observed: Observed) -> Collection[str]:
    """Missing topics that no broker will create for the mirror, whose identity this is."""
    mirrors = not flow.engine.creates_topics and _is_mirrors(clients, flow)
    if observed.auto_creation is not None or not mirrors:
        return ()
    asked = may_create(clients.get(flow.target), _absent(flow, observed))
    return [topic for topic, may in asked.items() if not may]


def lacking_permissions(clients: Clients, flow: Flow) -> Iterator[Finding]:
    """What our identity lacks on both clusters, and what could not be asked."""
    if not flow.permissions:
        yield permissions.not_configured(flow)
        return
    topics = set(literals(flow))
    groups: list[str] = []
    for alias in (flow.source, flow.target):
        rows = permissions.rows_of(flow, alias)
        try:
            client = clients.get(alias)
            if client.cluster.identity == flow.identity:
                rows += releases.more_permissions(flow, alias, client.release())
            if alias == flow.source:
                topics |= set(client.names(flow.matches))
                groups = sorted(name for name in states(client) if flow.syncs(name))
            else:
                # The source may hide what was mirrored from it.
                mirrored = map(flow.source_topic, client.names(lambda _: True))
                topics |= {name for name in mirrored if name is not None}
            answers = ask(
                client, permissions.questions(flow, rows, topics, groups), permissions.NOBODYS
            )
        except ReportError as error:
            yield failure(error, flow.name)
        else:
            yield from permissions.findings(flow, client.cluster, rows, answers, topics, groups)


def ending_certificates(
    clients: Clients, clusters: Iterable[Cluster], days: float | None
) -> Iterator[Finding]:
    """Certificates of clusters that end soon.

    :param days: how many days count as soon; ``None``: only certificates that have ended.
    """
    for cluster in clusters:
        if not cluster.uses_tls:
            continue
        try:
            brokers = clients.get(cluster.alias).listeners()
            kinds = {"certificate_expiry", "not_checked"}
        except ReportError:
            # Another finding is about that; only a certificate that has ended may explain it.
            brokers, kinds = bootstrap(cluster), {"certificate_expiry"}
        findings = certificates.findings(
            examine(cluster, clients.credentials, brokers), days, time.time_ns() // 1_000_000
        )
        yield from (finding for finding in findings if finding.kind in kinds)
