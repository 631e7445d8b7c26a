"""Whether flows' processes took up their work; writes nothing."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mirror_report.checks import positions, workers
from mirror_report.config import Flow, Settings
from mirror_report.engines import WorkerStore
from mirror_report.kafka import guarded
from mirror_report.kafka.groups import addresses
from mirror_report.kafka.mirror_topics import FlowTails
from mirror_report.kafka.records import WAITING_SECONDS, oldest_waiting
from mirror_report.model import (
    Baseline,
    ClusterSnapshot,
    Confirmation,
    ConfirmDocument,
    Progress,
)
from mirror_report.observe import (
    Clients,
    open_clients,
    source_snapshot,
)
from mirror_report.processes.watch import UnitWatch


def confirm_flows(
    settings: Settings,
    flow_name: str | None,
    hosts: Sequence[str],
    timeout: float,
    progress: Progress,
    watch: UnitWatch | None = None,
) -> ConfirmDocument:
    """Watch until the flows' own process has taken up all its work and moves on; writes nothing.

    :param hosts: the process must be a member from one of these hosts; empty: from anywhere.
    :param timeout: seconds for taking up the work, and again for moving.
    :param watch: the unit of the process; waiting ends when that has ended too often.
    """
    flows = settings.chosen(flow_name)
    awaited = _Awaited(hosts, timeout, watch or UnitWatch(), progress)
    with ThreadPoolExecutor(max_workers=len(flows)) as pool:
        confirmations = list(pool.map(lambda flow: _confirm(settings, flow, awaited), flows))
    return ConfirmDocument(all(one.ok for one in confirmations), confirmations)


@dataclass(frozen=True)
class _Awaited:
    hosts: Sequence[str]
    timeout: float
    watch: UnitWatch
    progress: Progress


def _confirm(settings: Settings, flow: Flow, awaited: _Awaited) -> Confirmation:
    tails: FlowTails = {}
    flowing: bool | None = None
    sides = (flow.engine.workers_side, flow.engine.positions_side)
    with open_clients(settings, {flow.source, *map(flow.alias, sides)}) as clients:
        source, failed = _take_up(clients, flow, awaited, tails)
        if not failed:
            flowing, failed = _flowing(clients, flow, awaited, source, tails)
    if failed:
        where = f"Look into journalctl -u {flow.instance}.service -n 100"
        return Confirmation(flow.name, False, flowing, f"{flow.name}: {failed}. {where}")
    moves = "records flow" if flowing else "flow not observed (lag 0)"
    return Confirmation(flow.name, True, flowing, f"{flow.name}: running, {moves}")


def _take_up(
    clients: Clients, flow: Flow, awaited: _Awaited, tails: FlowTails
) -> tuple[ClusterSnapshot, str]:
    """Wait for the process to take up its work; the source, and why it did not (empty: it did)."""
    cluster = clients.get(flow.alias(flow.engine.workers_side)).cluster
    deadline = time.monotonic() + awaited.timeout
    while True:
        source = source_snapshot(clients, flow)
        # First: of a process that has just ended, its group may not know yet.
        if failed := awaited.watch.failed():
            return source, failed
        # Asked again each time: a name may not resolve for a moment.
        member_hosts = {at for host in awaited.hosts for at in addresses(host, cluster)}
        lacking = _not_taken_up(clients, flow, source, awaited.hosts, member_hosts, tails)
        if not lacking:
            return source, ""
        if time.monotonic() > deadline:
            return source, lacking + awaited.watch.why()
        awaited.progress(f"waiting for flow {flow.name}: {lacking}")
        time.sleep(1)


def _flowing(
    clients: Clients,
    flow: Flow,
    awaited: _Awaited,
    source: ClusterSnapshot,
    tails: FlowTails,
) -> tuple[bool | None, str]:
    """Wait for a position to move: whether one did (``None``: no record waits), and why not."""
    started = clients.mirror_status(flow, tails).positions
    by_partition = positions.mirror_positions(flow, source, started, Baseline())
    waiting = positions.waiting_ranges(flow, source, by_partition)
    if not waiting:
        return None, ""
    awaited.progress(
        f"{flow.name}: {len(waiting)} partition(s) have records waiting; watching the position"
    )
    deadline = time.monotonic() + awaited.timeout
    while time.monotonic() < deadline:
        time.sleep(1)
        now = clients.mirror_status(flow, tails).positions
        if any(now.get(t, {}).get(p) != started.get(t, {}).get(p) for t, p in waiting):
            return True, ""
        if failed := awaited.watch.failed():
            return False, failed
    cluster, isolation = clients.get(flow.source).cluster, flow.source_isolation
    ages = guarded.each(
        lambda part: oldest_waiting(cluster, clients.credentials, part, isolation=isolation),
        waiting,
        WAITING_SECONDS,
    ).answers
    if ages == dict.fromkeys(waiting):
        # Markers of transactions alone.
        return None, ""
    return False, (
        f"{sum(end - at for at, end in waiting.values())} records wait and the position did not "
        f"move for {awaited.timeout:.0f} s{awaited.watch.why()}"
    )


def _not_taken_up(
    clients: Clients,
    flow: Flow,
    source: ClusterSnapshot,
    hosts: Sequence[str],
    member_hosts: set[str],
    tails: FlowTails,
) -> str:
    """What is missing until the process has taken up its work; empty: nothing.

    :param member_hosts: how brokers may see the ``hosts`` of its members.
    """
    group = clients.worker_group(flow)
    own = [member for member in group.members if not hosts or member.host in member_hosts]
    if flow.engine.workers is WorkerStore.STATUS_TOPIC:
        mirror = clients.mirror_status(flow, tails)
        work = ", ".join(workers.not_running(flow, mirror, tasks_expected=bool(source.topics)))
    else:
        places = {(name, p) for name, topic in source.topics.items() for p in topic.partitions}
        assigned = {place for member in group.members for place in member.partitions}
        unassigned = ", ".join(f"{topic}-{p}" for topic, p in sorted(places - assigned)[:5])
        work = f"unassigned: {unassigned}" if unassigned else ""
    if own and group.state == "Stable" and not work:
        return ""
    members = ", ".join(sorted({member.host for member in group.members})) or "none"
    return (
        f"group {flow.group_id} is {group.state}; members from {members}"
        + (f", expected one from {', '.join(hosts)}" if hosts else "")
        + (f"; {work}" if work else "")
    )
