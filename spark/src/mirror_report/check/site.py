"""What stands against flows before they start, and against those that run."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from mirror_report.check.flow import check_flow, ending_certificates, lacking_permissions
from mirror_report.checks import (
    control,
    preflight,
    releases,
    topic_status,
    workers,
)
from mirror_report.checks.verdict import failure, once, verdict, worst_first
from mirror_report.config import Flow, Settings
from mirror_report.kafka.groups import states
from mirror_report.kafka.permissions import granted
from mirror_report.model import CheckDocument, Finding, FlowStatus, Observed, ReportError
from mirror_report.observe import (
    Clients,
    aliases,
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
