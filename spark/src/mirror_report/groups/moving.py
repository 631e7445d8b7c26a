"""What consumer groups would lose or read again if they moved to the target now."""

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mirror_report.checks import control, elections, failover
from mirror_report.checks.groups import Scene, committed_offsets, parities, unproved
from mirror_report.checks.verdict import failure, verdict
from mirror_report.config import Flow, Settings
from mirror_report.groups.proofs import proved_places
from mirror_report.kafka import groups as group_client
from mirror_report.kafka import leader_epochs
from mirror_report.kafka.connection import DeniedError
from mirror_report.kafka.metadata import ClusterClient
from mirror_report.kafka.mirror_topics import Tail, Tails
from mirror_report.kafka.offset_syncs import translation
from mirror_report.lag.measure import LagResult, measure_lag
from mirror_report.model import (
    ClusterSnapshot,
    Finding,
    GroupOffsets,
    GroupParity,
    GroupsDocument,
    GroupState,
    Observed,
    Place,
    Positions,
    Progress,
    ReportError,
    another_topic,
)
from mirror_report.observe import Clients, aliases, load_manifests, open_clients
from mirror_report.render import SCHEMA_VERSION
from mirror_report.state.store import Store


@dataclasses.dataclass(frozen=True)
class FlowGroups:
    """The groups of one flow.

    :param remembered: what the next observation has to know of them; ``None``: nothing new.
    """

    rows: list[GroupParity] = dataclasses.field(default_factory=list)
    findings: list[Finding] = dataclasses.field(default_factory=list)
    remembered: dict[str, Any] | None = None


def examine_groups(settings: Settings, flow_name: str | None, progress: Progress) -> GroupsDocument:
    """Examine the groups of the flows alone; what it reads is read again by the next report.

    :returns: with findings about groups, and about what could not be known; a flow of which no
        group was examined is one of these.
    """
    store = Store(settings.state_directory)
    flows = settings.chosen(flow_name)
    lag = measure_lag(settings, store, flow_name)
    rows: list[GroupParity] = []
    findings = [finding for finding in lag.findings if finding.severity == "unknown"]
    before = load_manifests(store, ("groups",), findings)["groups"]
    with open_clients(settings, aliases(flows)) as clients:
        for flow in (flow for flow in flows if flow.name in lag.observed):
            progress(f"flow {flow.name}: reading its groups")
            try:
                groups = flow_groups(
                    clients, flow, lag, before.get(flow.name, {}),
                    others=settings.into_one(flow), most_reread=settings.warn.reread_records,
                )  # fmt: skip
            except ReportError as error:
                groups = FlowGroups(findings=[failure(error, flow.name)])
            rows += groups.rows
            findings += groups.findings
            partitions = [partition for row in groups.rows for partition in row.partitions]
            if not groups.findings and all(one.state == "not_synced" for one in partitions):
                waiting = [row.group for row in groups.rows if row.partitions]
                findings.append(failover.none_examined(flow, waiting))
    return GroupsDocument(SCHEMA_VERSION, verdict(findings), rows, findings)


def flow_groups(
    clients: Clients,
    flow: Flow,
    lag: LagResult,
    before: Mapping[str, Any],
    *,
    others: Sequence[Flow],
    most_reread: int | None,
) -> FlowGroups:
    """Examine the groups of a flow whose lag was measured just now; not every engine has some.

    The target is read before the source, so that a group never seems to be further than it is.

    :param before: what the last observation left; ``others``: further flows into its target.
    :param most_reread: records that may be read again in one partition; ``None``: any number.
    :raises ReportError: a side could not be read.
    """
    if not flow.engine.syncs_groups or not flow.consumer_groups:
        return FlowGroups()
    source, target = clients.get(flow.source), clients.get(flow.target)
    memory: Tails = {name: Tail.load(tail) for name, tail in before.get("tails", {}).items()}
    ids, replaced = _ids(flow, lag.observed[flow.name], before.get("ids", {}))
    translated = translation(target, clients.credentials, flow, memory, replaced)
    groups, not_examined, refusals = _groups(flow, source, target)
    topics = {topic for _, topic, _, _ in committed_offsets(flow, groups)}
    theirs = target.snapshot(None, [*map(flow.target_topic, topics)], settings=False)
    ours = source.snapshot(None, topics, settings=False)
    former = before.get("elections", {})
    scene = Scene(
        flow, ours, theirs, translated, drained=_drained(flow, lag), bound=most_reread,
        shared={
            name for name in topics for other in others
            if other.source_topic(flow.target_topic(name)) is not None
        },
        source_elections=_elections(source, ours, former.get("source", {}), replaced),
        target_elections=_elections(
            target, theirs, former.get("target", {}), {*map(flow.target_topic, replaced)}
        ),
        late={key: (position, at_ms) for key, (position, at_ms) in before.get("late", {}).items()},
    )  # fmt: skip
    scene = dataclasses.replace(scene, proofs=proved_places(clients, flow, unproved(scene, groups)))
    rows, late = parities(scene, groups)
    rows += not_examined
    return FlowGroups(
        sorted(rows, key=lambda row: row.group),
        [
            *failover.findings(flow, target.cluster, rows),
            *(failure(error, flow.name) for error in (*refusals, *translated.problems)),
            *control.control_records(flow, translated.foreign, time.time_ns() // 1_000_000),
        ],
        remembered={
            "tails": {name: tail.dump() for name, tail in memory.items()},
            "ids": ids,
            "elections": {
                "source": elections.dump(scene.source_elections),
                "target": elections.dump(scene.target_elections),
            },
            "late": late,
        },
    )


def _drained(flow: Flow, lag: LagResult) -> dict[Place, int]:
    """Partitions of the source that are mirrored to their ends -> these ends."""
    return {
        (row.topic, row.partition): row.log_end
        for row in lag.rows
        if row.flow == flow.name and row.lag_records == 0 and row.log_end is not None
    }


def _groups(
    flow: Flow, source: ClusterClient, target: ClusterClient
) -> tuple[list[GroupOffsets], list[GroupParity], Collection[DeniedError]]:
    """Groups to examine, rows of those that cannot be, and why these cannot."""
    selected = [name for name in group_client.states(source) if flow.wants(name)]
    synced = list(filter(flow.syncs, selected))
    states = group_client.states(target, synced)
    on_target, refused = _committed(target, synced)
    on_source, refused_on_source = _committed(source, synced)
    refused |= refused_on_source
    not_examined: dict[str, GroupState] = {
        **dict.fromkeys(refused, "unknown"),
        **{name: "not_synced" for name in selected if not flow.syncs(name)},
    }
    return (
        [
            GroupOffsets(name, on_source[name], on_target[name], states.get(name))
            for name in synced
            if name not in refused
        ],
        [
            GroupParity(flow.name, name, state, None, None, None, ())
            for name, state in not_examined.items()
        ],
        refused.values(),
    )


def _elections(
    client: ClusterClient,
    now: ClusterSnapshot,
    before: Mapping[str, Any],
    replaced: Collection[str],
) -> dict[Place, elections.Elections]:
    """What is known of the elections of leaders in some logs.

    :param before: what the last observation knew; ``replaced``: topics recreated since.
    """
    former = {at: log for at, log in elections.load(before).items() if at[0] not in replaced}
    asked = elections.epochs_to_ask(now, former)
    epochs = leader_epochs.of_logs(client, asked) if asked else {}
    return elections.updated(now, former, epochs)


def _ids(
    flow: Flow, observed: Observed, before: Mapping[str, list[str]]
) -> tuple[dict[str, list[str]], set[str]]:
    """Source topic -> ids of it and of its copy; and topics of which one was replaced.

    :param before: ids at the last observation; those of other topics are kept.
    """
    ids = {
        name: [topic.topic_id, observed.target.topics[flow.target_topic(name)].topic_id]
        for name, topic in observed.source.topics.items()
        if flow.target_topic(name) in observed.target.topics
    }
    replaced = {
        name for name, pair in ids.items() if any(map(another_topic, before.get(name, pair), pair))
    }
    return {**before, **ids}, replaced


def _committed(
    client: ClusterClient, names: Collection[str]
) -> tuple[dict[str, Positions], dict[str, DeniedError]]:
    """Offsets of groups, all at once; one by one only to find those we may not ask about."""
    try:
        positions = group_client.committed(client, names)
        return {name: positions.get(name, {}) for name in names}, {}
    except DeniedError as error:
        if len(names) == 1:
            return {}, dict.fromkeys(names, error)
    single = [_committed(client, [name]) for name in names]
    return (
        {name: offsets for positions, _ in single for name, offsets in positions.items()},
        {name: refusal for _, refused in single for name, refusal in refused.items()},
    )
