"""Names of topics and groups of MirrorMaker 2: its own, and what it does not mirror."""

import re

from ...inventory import Owner
from ...kafka_names import line_of
from ...keys import Flow
from .settings import KAFKA_VERSION

# What a topic name can hold between an alias and a name.
SEPARATOR = re.compile(r"[._-]+")
# Topics no flow mirrors: MirrorMaker 2's own, Streams' and Kafka's.
TOPICS_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", "__.*")


def separator_of(owner: Owner) -> str:
    """What stands between an alias and a topic's name."""
    return str(owner.settings["worker_properties"].get("replication.policy.separator") or ".")


def internal_separator_of(owner: Owner) -> str:
    """The same within the names of MirrorMaker 2's own topics."""
    key = "replication.policy.internal.topic.separator.enabled"
    enabled = str(owner.settings["worker_properties"].get(key, True)).lower() != "false"
    return separator_of(owner) if enabled else "."


def group(flow: Flow) -> tuple[str, str]:
    """The group by which a flow's workers find each other, on the target."""
    return flow["target"], f"{flow['source']}-mm2"


def prefix(flow: Flow, owner: Owner) -> str:
    """What stands before a topic's name on the target."""
    return flow["source"] + separator_of(owner) if flow["replication_policy"] == "prefix" else ""


def internal_topics(flow: Flow, owner: Owner) -> dict[str, str]:
    """Names of the topics on the target in which a flow keeps what it has to remember.

    :param flow: the flow, filled in.
    :param owner: what runs it.
    :returns: ``offset_topic``, ``status_topic`` and ``config_topic`` of the workers, whose names
        know no separator, ``offset_syncs_topic`` and ``checkpoints_topic``.
    """
    source, between = flow["source"], internal_separator_of(owner)
    return {
        "offset_topic": f"mm2-offsets.{source}.internal",
        "status_topic": f"mm2-status.{source}.internal",
        "config_topic": f"mm2-configs.{source}.internal",
        "offset_syncs_topic": f"mm2-offset-syncs{between}{source}{between}internal",
        "checkpoints_topic": f"{source}{between}checkpoints{between}internal",
    }


def unmirrored(flow: Flow, owner: Owner) -> list[str]:
    """Patterns of topics that MirrorMaker 2 leaves out by itself, whatever a flow asks for.

    Kafka's and its own internal topics, and what came from the target: a name one of whose parts
    is the target's alias (``MirrorSourceConnector.shouldReplicateTopic``). None while the
    separator is refused.
    """
    if not SEPARATOR.fullmatch(separator_of(owner)):
        return []
    between = internal_separator_of(owner).replace(".", r"\.")
    patterns = [
        *TOPICS_EXCLUDE, r"\..*", f"mm2.*{between}internal",
        f".*{between}checkpoints{between}internal",
    ]  # fmt: skip
    if line_of(owner.version(KAFKA_VERSION)) == "3.9":
        patterns += [r".*(\.|-)internal", f".*{between}internal"]
    if flow["replication_policy"] == "prefix":
        outer = separator_of(owner).replace(".", r"\.")
        patterns.append(f"(.*{outer})?{flow['target']}{outer}.+")
    return list(dict.fromkeys(patterns))
