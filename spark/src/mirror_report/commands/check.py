"""``check``: what stands against the flows, their topics, permissions and certificates.

It changes nothing.
"""

import contextlib
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Iterable, Sequence
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
from mirror_report.commands import shared
from mirror_report.commands.units import processes_of
from mirror_report.config import Flow, Settings
from mirror_report.kafka.certificates import bootstrap, examine
from mirror_report.kafka.groups import states
from mirror_report.kafka.permissions import ask, granted, may_create, not_creatable
from mirror_report.model import CheckDocument, Finding, FlowStatus, ReportError
from mirror_report.observe import Clients, Observed, literals, observe_flow, open_clients
from mirror_report.render import SCHEMA_VERSION, Answer, formats
from mirror_report.state.store import Store


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``check``."""
    shared.flow(parser)
    shared.formats(parser)


def answer(options: Namespace) -> Answer:
    """Judge the flows.

    :raises ReportError: the configuration or the flow's name is wrong.
    """
    return formats.judged(check_flows(shared.settings(options), options.flow))


def check_flows(settings: Settings, flow_name: str | None = None) -> CheckDocument:
    """Judge clusters, permissions and topics of the flows; changes nothing."""
    flows = shared.chosen(settings, flow_name)
    found: list[Finding] = []
    statuses: list[FlowStatus] = []
    with open_clients(settings, shared.aliases(flows)) as clients:
        for flow in flows:
            found += [*_reachable(clients, flow), *lacking_permissions(settings, clients, flow)]
            try:
                observed = observe_flow(clients, flow, {})
            except ReportError as error:
                statuses.append(shared.status_of(flow, None))
                found.append(failure(error, flow.name))
            else:
                statuses.append(shared.status_of(flow, observed))
                found += [
                    *check_flow(settings, clients, flow, observed),
                    *_before_start(clients, flow, observed),
                    *_foreign(settings, flow, observed),
                ]
        # By now most brokers have been asked for something.
        known = _releases(clients, shared.aliases(flows))
        found += releases.clusters(known)
        for flow in flows:
            found += releases.settings(flow, known.get(flow.target))
        found += ending_certificates(settings, clients, flows)
    found += processes_of(settings, flows, found)
    findings = worst_first(once(found))
    return CheckDocument(SCHEMA_VERSION, verdict(findings), statuses, findings)


def _reachable(clients: Clients, flow: Flow) -> list[Finding]:
    found = []
    for alias in (flow.source, flow.target):
        try:
            clients.get(alias)
        except ReportError as error:
            found.append(failure(error, flow.name))
    return found


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


def check_flow(
    settings: Settings, clients: Clients, flow: Flow, observed: Observed
) -> list[Finding]:
    """Topics, their names and settings, and the mirror's own environment file."""
    return [
        *_impossible(settings, clients, flow, observed),
        *preflight.same_cluster(flow, observed.source, observed.target),
        *topic_checks.compare(
            flow,
            observed.source,
            observed.target,
            auto_creation=observed.auto_creation,
            positions=observed.positions,
            forbidden=_forbidden(settings, clients, flow, observed),
        ),
        *_sysconfig(flow),
    ]


def _foreign(settings: Settings, flow: Flow, observed: Observed) -> list[Finding]:
    """Topics of the target that the flow did not make, also by what reports have seen of them."""
    store, source, target = Store(settings.state_directory), observed.source, observed.target
    found: list[Finding] = []
    known = shared.load_manifests(store, ("baseline", "survey"), found)
    baseline, seen = (known[name].get(flow.name, {}) for name in ("baseline", "survey"))
    before = topic_status.not_made(flow, seen, source, baseline)
    others = shared.into_one(settings, flow)
    return topic_status.foreign(flow, source, target, observed.positions, others, before)


def _impossible(
    settings: Settings, clients: Clients, flow: Flow, observed: Observed
) -> list[Finding]:
    try:
        here = clients.get(flow.source).partition_counts()
        there = clients.get(flow.target).partition_counts()
    except ReportError as error:
        return [failure(error, flow.name)]
    refused = (
        not_creatable(clients.get(flow.target), _absent(flow, observed))
        if _is_mirrors(settings, flow)
        else ()
    )
    return topic_status.impossible(flow, observed.source, here, there, refused)


def _is_mirrors(settings: Settings, flow: Flow) -> bool:
    """Whether the identity of this configuration is the mirror's."""
    return settings.clusters[flow.target].identity == flow.identity


def _absent(flow: Flow, observed: Observed) -> list[str]:
    """Topics that are not on the target, by their names there."""
    there = {*observed.target.topics, *observed.target.errors}
    copies = map(flow.target_topic, observed.source.topics)
    return [name for name in copies if name not in there]


def _forbidden(
    settings: Settings, clients: Clients, flow: Flow, observed: Observed
) -> Collection[str]:
    """Missing topics that no broker will create for the mirror, whose identity this is."""
    mirrors = not flow.engine.creates_topics and _is_mirrors(settings, flow)
    if observed.auto_creation is not None or not mirrors:
        return ()
    asked = may_create(clients.get(flow.target), _absent(flow, observed))
    return [topic for topic, may in asked.items() if not may]


def _sysconfig(flow: Flow) -> list[Finding]:
    try:
        text = Path(flow.sysconfig).read_text(encoding="utf-8") if flow.sysconfig else ""
    except OSError:
        # On a host that does not run this mirror there is nothing to compare with.
        return []
    return sysconfig.drift(flow, text)


def lacking_permissions(settings: Settings, clients: Clients, flow: Flow) -> list[Finding]:
    """What our identity lacks on both clusters, and what could not be asked."""
    if not flow.permissions:
        return permissions.not_configured(flow)
    found: list[Finding] = []
    topics = set(literals(flow))
    groups: list[str] = []
    for alias in (flow.source, flow.target):
        rows = permissions.rows_of(flow, alias)
        try:
            client = clients.get(alias)
            if settings.clusters[alias].identity == flow.identity:
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
            found.append(failure(error, flow.name))
        else:
            found += permissions.judge(
                flow, settings.clusters[alias], rows, answers, topics, groups
            )
    return found


def ending_certificates(
    settings: Settings, clients: Clients, flows: Sequence[Flow]
) -> list[Finding]:
    """Certificates that end soon, of all clusters of the flows."""
    found: list[Finding] = []
    for alias in dict.fromkeys(shared.aliases(flows)):
        cluster = settings.clusters[alias]
        if not cluster.uses_tls:
            continue
        try:
            brokers, kinds = clients.get(alias).listeners(), {"certificate_expiry", "not_checked"}
        except ReportError:
            # That is said already; only a certificate that has ended may explain it.
            brokers, kinds = bootstrap(cluster), {"certificate_expiry"}
        judged = certificates.judge(
            examine(cluster, settings.credentials, brokers),
            settings.warn.certificate_days,
            now_ms=time.time_ns() // 1_000_000,
        )
        found += [finding for finding in judged if finding.kind in kinds]
    return found
