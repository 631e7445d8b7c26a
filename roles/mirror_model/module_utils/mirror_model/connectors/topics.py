"""Names of topics and groups of MirrorMaker 2: its own, and what it does not mirror."""

import re
from dataclasses import dataclass

from ..control import Kept
from ..kafka_names import line_of
from ..keys import Flow, Properties
from ..owners import Owner

# What a topic name can hold between an alias and a name.
SEPARATOR = re.compile(r"[._-]+")
# Topics no flow mirrors: MirrorMaker 2's own, Streams' and Kafka's.
TOPICS_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", "__.*")

# Names in which connectors and dedicated workers keep their state, whatever separates their parts.
CONTROL_TOPICS = (r"mm2.*[._-]internal", r".+[._-]checkpoints[._-]+internal")


@dataclass(frozen=True)
class Policy:
    """What goes into names: of copies by the replication policy, and of MirrorMaker 2's own topics.

    :param separator: what stands between an alias and a topic's name.
    :param internal: the same within the names of MirrorMaker 2's own topics.
    :param line: the release line that makes the names.
    """

    separator: str
    internal: str
    line: str


def policy_of(properties: Properties, version: str) -> Policy:
    """The policy of properties that hold :data:`~.names.AGREED`, read by a release."""
    separator = str(properties.get("replication.policy.separator") or ".")
    key = "replication.policy.internal.topic.separator.enabled"
    enabled = str(properties.get(key, True)).lower() != "false"
    return Policy(separator, separator if enabled else ".", line_of(version))


def prefix(flow: Flow, named: Policy) -> str:
    """What stands before a topic's name on the target."""
    return flow["source"] + named.separator if flow["replication_policy"] == "prefix" else ""


def connector_topics(flow: Flow, named: Policy) -> dict[str, str]:
    """Names of the topics on the target in which connectors keep what they have to remember."""
    source, between = flow["source"], named.internal
    return {
        "offset_syncs_topic": f"mm2-offset-syncs{between}{source}{between}internal",
        "checkpoints_topic": f"{source}{between}checkpoints{between}internal",
    }


def kept(flow: Flow, named: Policy, owner: Owner) -> list[Kept]:
    """The topics of a flow's connectors, as what their owner keeps on the target."""
    return [
        Kept("topic", flow["target"], topic, owner.path)
        for topic in connector_topics(flow, named).values()
    ]


def unmirrored(flow: Flow, named: Policy) -> list[str]:
    """Patterns of topics that MirrorMaker 2 leaves out by itself, whatever a flow asks for.

    Kafka's and its own internal topics, and what came from the target: a name one of whose parts
    is the target's alias (``MirrorSourceConnector.shouldReplicateTopic``). None while the
    separator is refused.
    """
    if not SEPARATOR.fullmatch(named.separator):
        return []
    between = named.internal.replace(".", r"\.")
    patterns = [
        *TOPICS_EXCLUDE, r"\..*", f"mm2.*{between}internal",
        f".*{between}checkpoints{between}internal",
    ]  # fmt: skip
    if named.line == "3.9":
        patterns += [r".*(\.|-)internal", f".*{between}internal"]
    if flow["replication_policy"] == "prefix":
        outer = named.separator.replace(".", r"\.")
        patterns.append(f"(.*{outer})?{flow['target']}{outer}.+")
    return list(dict.fromkeys(patterns))
