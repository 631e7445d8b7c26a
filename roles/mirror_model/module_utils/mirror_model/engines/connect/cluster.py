"""Where a Connect cluster keeps what it has to remember, and how it gets at secrets."""

from collections.abc import Callable, Sequence
from typing import Any

from ...clusters import reference
from ...connectors import topics as names
from ...connectors.permissions import Places
from ...connectors.settings import KAFKA_VERSION
from ...connectors.topics import Policy, policy_of
from ...control import Kept
from ...keys import Flow, defaults_of, filled
from ...owners import Owner
from ...schema import CONNECT_REST

# Names that workers' topics have unless somebody chose others, Kafka's own examples among them.
CONTROL_TOPICS = (r"connect(?:-[a-z0-9]+)*-(?:configs?|offsets|status)",)
# Workers, and the sinks that they run.
CONTROL_GROUPS = (r"connect(?:-.*)?",)


def version(owner: Owner) -> str:
    """The release of the workers."""
    return owner.version(KAFKA_VERSION)


def group(owner: Owner) -> str:
    """The group by which the workers find each other."""
    return str(owner.settings["group_id"] or owner.name)


def topics(owner: Owner) -> dict[str, str]:
    """Names of the workers' topics: ``config_topic``, ``offset_topic`` and ``status_topic``."""
    named = owner.settings["topics"]
    return {
        "config_topic": named.get("config") or f"{owner.name}-config",
        "offset_topic": named.get("offsets") or f"{owner.name}-offsets",
        "status_topic": named.get("status") or f"{owner.name}-status",
    }


def rest(owner: Owner) -> dict[str, Any]:
    """How the workers' REST servers are reached, with every key filled in."""
    made = filled(owner.settings["rest"], defaults_of(CONNECT_REST))
    if not made["urls"]:
        plain = made["listener"] == "loopback"
        made["urls"] = [
            f"http://127.0.0.1:{owner.settings['port']}"
            if plain
            else f"https://{host}:{owner.settings['port']}"
            for host in owner.hosts
        ]
    return made


def policy(flow: Flow, owner: Owner) -> Policy:
    """What goes into the names that a flow's connectors make."""
    return policy_of(flow["properties"], version(owner))


def places(flow: Flow, owner: Owner) -> Places:
    """Where workers and connectors keep what they have to remember."""
    return Places(policy(flow, owner), group(owner), topics(owner), heartbeats="source")


def kept(owner: Owner, flows: Sequence[Flow]) -> list[Kept]:
    """The topics and groups of the workers, with or without flows, and of the connectors."""
    alias = owner.settings["kafka"]
    return [
        *(
            Kept("topic", alias, topic, owner.path, secret=kind == "config_topic")
            for kind, topic in topics(owner).items()
        ),
        Kept("group", alias, group(owner), owner.path),
        *(each for flow in flows for each in names.kept(flow, policy(flow, owner), owner)),
    ]


def refer(owner: Owner) -> Callable[[str], str]:
    """Name of a credential to what the workers turn into it."""
    secrets = owner.settings["secrets"]
    if owner.hosts or not secrets:
        return lambda file: reference("dir", owner.credentials, file)
    keys = secrets.get("keys") or {}
    return lambda file: reference(
        secrets["provider"], secrets.get("path") or "", keys.get(file, file)
    )
