"""Checking a flow: its topics and their settings, permissions and certificates."""

import time
from collections.abc import Collection, Sequence
from pathlib import Path

from mirror_report.checks import certificates, permissions, sysconfig
from mirror_report.checks import topics as topic_checks
from mirror_report.checks.preflight import same_cluster
from mirror_report.checks.verdict import failure
from mirror_report.commands.flows import aliases
from mirror_report.config import Flow, Settings
from mirror_report.kafka.certificates import bootstrap, examine
from mirror_report.kafka.permissions import ask, may_create
from mirror_report.model import Finding, ReportError
from mirror_report.observe import Clients, Observed, literals


def check_flow(
    settings: Settings, clients: Clients, flow: Flow, observed: Observed
) -> list[Finding]:
    """Topics, their settings and the mirror's own environment file."""
    found = same_cluster(flow, observed.source, observed.target)
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
    mirrors = not flow.engine.creates_topics and settings.clusters[flow.target].identity == "mirror"
    if observed.auto_creation is not None or not mirrors:
        return ()
    target = observed.target
    wanted = map(flow.target_topic, observed.source.topics)
    absent = [one for one in wanted if one not in target.topics and one not in target.errors]
    allowed = may_create(clients.get(flow.target), absent)
    return [name for name, may in allowed.items() if not may]


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
    try:
        text = Path(flow.sysconfig).read_text(encoding="utf-8") if flow.sysconfig else ""
    except OSError:
        # On a host that does not run this mirror there is nothing to compare with.
        return []
    return sysconfig.drift(flow, text)
