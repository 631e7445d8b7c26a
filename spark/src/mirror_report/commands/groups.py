"""``groups``: what consumer groups would lose or read again if they moved to the target now."""

from argparse import ArgumentParser, Namespace

from mirror_report.checks.failover import none_examined
from mirror_report.checks.verdict import verdict
from mirror_report.commands import options as shared
from mirror_report.commands.flows import aliases, chosen, load_manifests
from mirror_report.commands.measure_lag import measure_lag
from mirror_report.commands.observe_groups import flow_groups
from mirror_report.commands.progress import Progress, show_progress
from mirror_report.config import Settings
from mirror_report.config.load import load
from mirror_report.model import GroupParity, GroupsDocument
from mirror_report.observe import open_clients
from mirror_report.render import SCHEMA_VERSION, Answer, formats
from mirror_report.state.store import Store

HELP = "tell what consumer groups would lose or read again on the target now"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``groups``."""
    shared.flow(parser)
    shared.formats(parser)
    shared.wide(parser)


def answer(options: Namespace) -> Answer:
    """Judge the flows' groups.

    :raises ReportError: the configuration or the flow's name is wrong.
    """
    return formats.judged(judge_groups(load(options.config), options.flow, show_progress))


def judge_groups(settings: Settings, flow_name: str | None, progress: Progress) -> GroupsDocument:
    """Judge the groups of the flows alone; what it reads is read again by the next report.

    :returns: of the findings those about groups, and what kept anything from being known; a flow of
        which no group was examined is one.
    """
    store = Store(settings.state_directory)
    flows = chosen(settings, flow_name)
    lag = measure_lag(settings, store, flow_name)
    rows: list[GroupParity] = []
    findings = [finding for finding in lag.findings if finding.severity == "unknown"]
    before = load_manifests(store, ("groups",), findings)["groups"]
    with open_clients(settings, aliases(flows)) as clients:
        for flow in flows:
            if flow.name not in lag.observed:
                continue
            progress(f"flow {flow.name}: looking at its groups")
            groups = flow_groups(settings, clients, flow, lag, before.get(flow.name, {}))
            rows += groups.rows
            findings += groups.findings
            if not groups.findings and all(row.state == "not_synced" for row in groups.rows):
                findings.append(none_examined(flow))
    return GroupsDocument(SCHEMA_VERSION, verdict(findings), rows, findings)
