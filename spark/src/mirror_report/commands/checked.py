"""``check``: what stands against the flows; changes nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirror_report.checks import certificates, permissions, preflight
from mirror_report.checks import topics as topic_checks
from mirror_report.checks.sysconfig import read_environment
from mirror_report.checks.verdict import failure, finding, worst_first
from mirror_report.commands.flows import aliases, chosen, status_of
from mirror_report.config.flow import Flow
from mirror_report.config.settings import Settings
from mirror_report.kafka.certificates import bootstrap, examine
from mirror_report.kafka.permissions import ask, may_create
from mirror_report.model.document import FlowStatus
from mirror_report.model.errors import ReportError
from mirror_report.model.findings import Finding
from mirror_report.observe import Clients, Observed, literals, look, open_clients


@dataclass(frozen=True)
class CheckResult:
    """What stands against the flows, and which clusters they join."""

    findings: list[Finding]
    flows: list[FlowStatus]


def check(settings: Settings, flow: str | None = None) -> CheckResult:
    """Judge clusters, permissions and topics of the flows; changes nothing."""
    flows = chosen(settings, flow)
    found: list[Finding] = []
    statuses: list[FlowStatus] = []
    with open_clients(settings, aliases(flows)) as clients:
        for one in flows:
            found += _reachable(clients, one)
            found += lacking_permissions(settings, clients, one)
            try:
                observed = look(clients, one, {})
            except ReportError as error:
                statuses.append(status_of(one, None))
                found.append(failure(error, one.name))
                continue
            statuses.append(status_of(one, observed))
            found += check_flow(settings, clients, one, observed)
            found += _before_start(clients, one, observed)
        found += ending_certificates(settings, clients, flows)
    return CheckResult(worst_first(said_once(found)), statuses)


def said_once(found: Sequence[Finding]) -> list[Finding]:
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


def check_flow(
    settings: Settings, clients: Clients, flow: Flow, observed: Observed
) -> list[Finding]:
    """Topics, their settings and the mirror's own environment file."""
    found = same_cluster(flow, observed)
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


def same_cluster(flow: Flow, observed: Observed) -> list[Finding]:
    """Whether source and target are one cluster."""
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


def lacking_permissions(settings: Settings, clients: Clients, flow: Flow) -> list[Finding]:
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


def ending_certificates(
    settings: Settings, clients: Clients, flows: Sequence[Flow]
) -> list[Finding]:
    """Certificates that end soon, of all clusters of the flows."""
    found: list[Finding] = []
    for alias in dict.fromkeys(aliases(flows)):
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
