"""What stands against flows before they start, and against those that run."""

import contextlib
from collections.abc import Iterable, Iterator

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
    """Judge clusters, permissions and topics of the flows; changes nothing."""
    flows = settings.chosen(flow_name)
    found: list[Finding] = []
    statuses: list[FlowStatus] = []
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            found += [*_reachable(clients, flow), *lacking_permissions(clients, flow)]
            try:
                observed = observe_flow(clients, flow, {})
            except ReportError as error:
                statuses.append(status_of(flow, None))
                found.append(failure(error, flow.name))
            else:
                statuses.append(status_of(flow, observed))
                found += [
                    *check_flow(clients, flow, observed),
                    *_before_start(clients, flow, observed),
                    *_foreign(settings, flow, observed),
                ]
        # By now most brokers have been asked for something.
        known = _releases(clients, aliases(flows))
        found += releases.clusters(known)
        for flow in flows:
            found += releases.settings(flow, known.get(flow.target))
        clusters = settings.clusters_of(flow.name for flow in flows)
        found += ending_certificates(clients, clusters, settings.warn.certificate_days)
    found += processes_of(
        flows, found, units_file=settings.units_file,
        interval_seconds=settings.lag_interval_seconds, instances=settings.instances,
    )  # fmt: skip
    findings = worst_first(once(found))
    return CheckDocument(SCHEMA_VERSION, verdict(findings), statuses, findings)


def _reachable(clients: Clients, flow: Flow) -> Iterator[Finding]:
    for alias in (flow.source, flow.target):
        try:
            clients.get(alias)
        except ReportError as error:
            yield failure(error, flow.name)


def _releases(clients: Clients, aliases: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Releases of clusters, as far as they can be asked."""
    found = {}
    for alias in aliases:
        # Why it cannot be asked is said by what else is asked of it.
        with contextlib.suppress(ReportError):
            found[alias] = clients.get(alias).release()
    return found


def _before_start(clients: Clients, flow: Flow, observed: Observed) -> list[Finding]:
    """What stands against starting the mirror, or in the way of one that is started."""
    found = [
        *workers.judge(flow, observed.mirror, observed.group),
        *workers.nobody(flow, observed.positions, observed.group),
        *preflight.takeover(flow, observed.target, observed.positions, observed.group),
        *preflight.idle_tasks(flow, observed.source),
    ]
    for alias in (flow.source, flow.target):
        found += preflight.distance(flow, alias, clients.get(alias).round_trip_ms())
    if flow.engine.creates_topics and observed.target.brokers is not None:
        found += preflight.replication_factors(flow, observed.target.brokers)
    try:
        if names := preflight.internal_names(flow):
            client = clients.get(flow.target)
            found += preflight.internal_topics(flow, client.snapshot(None, names))
            known = {name: granted(client, name) for name in names}
            found += control.access(flow, {name: some for name, some in known.items() if some})
        if flow.engine.syncs_groups and flow.consumer_groups:
            found += preflight.no_groups(flow, [*states(clients.get(flow.source))])
    except ReportError as error:
        found.append(failure(error, flow.name))
    return found


def _foreign(settings: Settings, flow: Flow, observed: Observed) -> list[Finding]:
    """Topics of the target that the flow did not make, also by what reports have seen of them."""
    store, source, target = Store(settings.state_directory), observed.source, observed.target
    unreadable: list[Finding] = []
    known = load_manifests(store, ("baseline", "survey"), unreadable)
    baseline, seen = (known[name].get(flow.name, {}) for name in ("baseline", "survey"))
    before = topic_status.not_made(flow, seen, source, baselines.of_flow(baseline))
    others = settings.into_one(flow)
    return unreadable + topic_status.foreign(
        flow, source, target, observed.positions, others, before
    )
