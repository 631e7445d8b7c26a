"""Where a dedicated process keeps what it has to remember, on the target."""

from collections.abc import Sequence

from ...connectors import topics
from ...connectors.permissions import Places
from ...connectors.settings import KAFKA_VERSION
from ...connectors.topics import Policy, policy_of
from ...control import Kept
from ...keys import Flow
from ...owners import Owner


def policy(owner: Owner) -> Policy:
    """The policy of a dedicated process, which is one for all its flows."""
    return policy_of(owner.settings["worker_properties"], owner.version(KAFKA_VERSION))


def group(flow: Flow) -> tuple[str, str]:
    """The group by which a flow's workers find each other, on the target."""
    return flow["target"], f"{flow['source']}-mm2"


def worker_topics(flow: Flow) -> dict[str, str]:
    """Names of the topics of a dedicated process's workers, which know no separator."""
    return {
        "config_topic": f"mm2-configs.{flow['source']}.internal",
        "offset_topic": f"mm2-offsets.{flow['source']}.internal",
        "status_topic": f"mm2-status.{flow['source']}.internal",
    }


def kept(owner: Owner, flows: Sequence[Flow]) -> list[Kept]:
    """The topics and groups of a dedicated process."""
    names = []
    for flow in flows:
        names += topics.kept(flow, policy(owner), owner)
        names.append(Kept("group", *group(flow), owner.path))
        names += [
            Kept("topic", flow["target"], topic, owner.path, secret=kind == "config_topic")
            for kind, topic in worker_topics(flow).items()
        ]
    return names


def dedicated(flow: Flow, owner: Owner) -> Places:
    """The places of a dedicated process."""
    return Places(policy(owner), group(flow)[1], worker_topics(flow))
