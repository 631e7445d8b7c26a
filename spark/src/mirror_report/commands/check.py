"""``check``: what stands against the flows; changes nothing."""

from argparse import ArgumentParser, Namespace

from mirror_report.checks import preflight
from mirror_report.checks.verdict import failure, once, verdict, worst_first
from mirror_report.commands import options as shared
from mirror_report.commands.check_flow import (
    check_flow,
    ending_certificates,
    lacking_permissions,
)
from mirror_report.commands.flows import aliases, chosen, status_of
from mirror_report.config import Flow, Settings
from mirror_report.config.load import load
from mirror_report.model import CheckDocument, Finding, FlowStatus, ReportError
from mirror_report.observe import Clients, Observed, observe_flow, open_clients
from mirror_report.render import SCHEMA_VERSION, Answer, formats

HELP = "judge clusters, permissions and topics; change nothing"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``check``."""
    shared.flow(parser)
    shared.formats(parser)


def answer(options: Namespace) -> Answer:
    """Judge the flows.

    :raises ReportError: the configuration or the flow's name is wrong.
    """
    return formats.judged(check_flows(load(options.config), options.flow))


def check_flows(settings: Settings, flow_name: str | None = None) -> CheckDocument:
    """Judge clusters, permissions and topics of the flows; changes nothing."""
    flows = chosen(settings, flow_name)
    found: list[Finding] = []
    statuses: list[FlowStatus] = []
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            found += _reachable(clients, flow)
            found += lacking_permissions(settings, clients, flow)
            try:
                observed = observe_flow(clients, flow, {})
            except ReportError as error:
                statuses.append(status_of(flow, None))
                found.append(failure(error, flow.name))
                continue
            statuses.append(status_of(flow, observed))
            found += check_flow(settings, clients, flow, observed)
            found += _before_start(clients, flow, observed)
        found += ending_certificates(settings, clients, flows)
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


def _before_start(clients: Clients, flow: Flow, observed: Observed) -> list[Finding]:
    """What stands against starting the mirror, beyond what stands against having it."""
    found = preflight.takeover(flow, observed.target, observed.positions, observed.group)
    found += preflight.idle_tasks(flow, observed.source)
    if flow.engine.creates_topics:
        found += preflight.replication_factors(flow, observed.target_brokers)
    names = preflight.internal_names(flow)
    try:
        if names:
            internal = clients.get(flow.target).snapshot(None, names)
            found += preflight.internal_topics(flow, internal)
        if flow.engine.syncs_groups and flow.consumer_groups:
            found += preflight.no_groups(flow, clients.get(flow.source).groups())
    except ReportError as error:
        found.append(failure(error, flow.name))
    return found
