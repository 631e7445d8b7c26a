"""What stands against one flow: topics, permissions, certificates, its environment file."""

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from mirror_report.checks import (
    certificates,
    permissions,
    preflight,
    releases,
    sysconfig,
    topic_status,
)
from mirror_report.checks import topics as topic_checks
from mirror_report.checks.verdict import failure
from mirror_report.config import Cluster, Flow
from mirror_report.kafka.certificates import bootstrap, examine
from mirror_report.kafka.groups import states
from mirror_report.kafka.permissions import ask, may_create, not_creatable
from mirror_report.model import Finding, Observed, ReportError
from mirror_report.observe import Clients, literals


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
            # Another finding says so; only a certificate that has ended may explain it.
            brokers, kinds = bootstrap(cluster), {"certificate_expiry"}
        findings = certificates.findings(
            examine(cluster, clients.credentials, brokers), days, time.time_ns() // 1_000_000
        )
        yield from (finding for finding in findings if finding.kind in kinds)
