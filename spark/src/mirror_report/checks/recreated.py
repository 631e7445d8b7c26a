"""Topics that were deleted and created again: ids in, findings out; no I/O."""

from collections.abc import Mapping

from mirror_report.checks import remedies
from mirror_report.checks.verdict import finding
from mirror_report.config import Cluster, Flow
from mirror_report.engines import PositionStore
from mirror_report.model import ClusterSnapshot, Finding, another_topic


def changed_ids(
    remembered: Mapping[str, str], snapshot: ClusterSnapshot
) -> dict[str, tuple[str, str]]:
    """Topics whose id is not the remembered one: name -> (remembered, present)."""
    return {
        name: (remembered[name], topic.topic_id)
        for name, topic in snapshot.topics.items()
        if another_topic(remembered.get(name), topic.topic_id)
    }


def recreated_on_target(
    flow: Flow, recreated: Mapping[str, tuple[str, str]], source: Cluster
) -> list[Finding]:
    """Topics of the target that were recreated.

    :param recreated: name -> the id remembered, the present one.
    """
    stop, start = remedies.connector(flow, "stop"), remedies.connector(flow, "start")
    return [
        finding(
            "reset",
            f"{name}: deleted and created again on {flow.target} (id {old}, now {new})",
            f"Records mirrored before are gone. To mirror the topic again, on "
            f"{remedies.host(flow)}: {stop}; {_set_back(flow, name, source)}; {start}; then "
            f"{remedies.full_history(flow, flow.source_topic(name) or name)}",
            flow=flow.name,
            topic=name,
        )
        for name, (old, new) in recreated.items()
    ]


def _set_back(flow: Flow, topic: str, cluster: Cluster) -> str:
    """How to give a stopped mirror the start of a topic as its position.

    :param topic: its name on the target.
    :param cluster: the source.
    """
    source = flow.source_topic(topic) or topic
    if flow.engine.positions is PositionStore.CONNECT_OFFSETS:
        return (
            f"write a record without value for each of the keys of {source} into "
            f"{flow.offset_topic}"
        )
    return remedies.tool(
        cluster, "kafka-consumer-groups.sh", "--group", flow.group_id,
        "--reset-offsets", "--to-earliest", "--topic", source, "--execute",
    )  # fmt: skip
