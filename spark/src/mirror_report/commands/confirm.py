"""``confirm``: whether the flows' processes took up their work; writes nothing."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from mirror_report.checks import positions, workers
from mirror_report.commands import shared
from mirror_report.config import Flow, Settings
from mirror_report.engines import WorkerStore
from mirror_report.kafka import guarded
from mirror_report.kafka.groups import addresses
from mirror_report.kafka.records import WAITING_SECONDS, oldest_waiting
from mirror_report.kafka.tails import FlowTails
from mirror_report.model import ClusterSnapshot, Confirmation, ConfirmDocument, Place, Progress
from mirror_report.observe import (
    Clients,
    mirror_status,
    open_clients,
    source_snapshot,
    worker_group,
)
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``confirm``."""
    shared.flow(parser)
    parser.add_argument(
        "--member-host", metavar="HOST", action="append", default=[], nargs="+",
        help="host the process runs on (may be repeated; default: any)",
    )  # fmt: skip
    parser.add_argument("--timeout", metavar="SECONDS", type=shared.positive, default=60.0)
    shared.json(parser, "result as one JSON object")


def answer(options: Namespace) -> Answer:
    """Watch the flows' processes.

    :raises ReportError: a cluster cannot be asked.
    """
    hosts = [host for hosts in options.member_host for host in hosts]
    return formats.confirmation(
        confirm_flows(
            shared.settings(options), options.flow, hosts, options.timeout, shared.show_progress
        )
    )


def confirm_flows(
    settings: Settings,
    flow_name: str | None,
    hosts: Sequence[str],
    timeout: float,
    progress: Progress,
) -> ConfirmDocument:
    """Watch until the flows' own process has all its work in hand and moves on; writes nothing.

    :param hosts: the process must be a member from one of these hosts; empty: from anywhere.
    :param timeout: seconds for taking up the work, and again for moving.
    """
    flows = shared.chosen(settings, flow_name)
    with ThreadPoolExecutor(max_workers=len(flows)) as pool:
        found = list(
            pool.map(lambda flow: _confirm(settings, flow, hosts, timeout, progress), flows)
        )
    return ConfirmDocument(all(confirmation.ok for confirmation in found), found)


def _confirm(
    settings: Settings, flow: Flow, hosts: Sequence[str], timeout: float, progress: Progress
) -> Confirmation:
    cluster = settings.clusters[flow.alias(flow.engine.workers_side)]
    tails: FlowTails = {}
    holder = flow.alias(flow.engine.positions_side)
    with open_clients(settings, {flow.source, cluster.alias, holder}) as clients:
        deadline = time.monotonic() + timeout
        while True:
            source = source_snapshot(clients, flow)
            # Asked again each time: a name may not resolve for a moment.
            seen_from = {seen for host in hosts for seen in addresses(host, cluster)}
            if not (lacking := _not_taken_up(clients, flow, source, hosts, seen_from, tails)):
                break
            if time.monotonic() > deadline:
                return Confirmation(
                    flow.name, False, None,
                    f"{flow.name}: {lacking}. Look into "
                    f"journalctl -u {flow.instance}.service -n 100",
                )  # fmt: skip
            progress(f"waiting for flow {flow.name}: {lacking}")
            time.sleep(1)
        started = mirror_status(clients, flow, tails).positions
        waiting = positions.waiting(flow, source, positions.by_partition(flow, source, started, {}))
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
            now = mirror_status(clients, flow, tails).positions
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
    source, isolation = settings.clusters[flow.source], flow.source_isolation
    ages = guarded.each(
        lambda some: oldest_waiting(source, settings.credentials, some, isolation=isolation),
        waiting,
        WAITING_SECONDS,
    ).answers
    return len(ages) == len(waiting) and all(age is None for age in ages.values())


def _not_taken_up(
    clients: Clients,
    flow: Flow,
    source: ClusterSnapshot,
    hosts: Sequence[str],
    seen_from: set[str],
    tails: FlowTails,
) -> str:
    """What is missing until the process has its work in hand; empty: nothing."""
    group = worker_group(clients, flow)
    own = [member for member in group.members if not hosts or member.host in seen_from]
    if flow.engine.workers is WorkerStore.STATUS_TOPIC:
        mirror = mirror_status(clients, flow, tails)
        work = ", ".join(workers.not_running(flow, mirror, tasks_expected=bool(source.topics)))
    else:
        wanted = {(name, p) for name, topic in source.topics.items() for p in topic.partitions}
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
