"""Topics and groups by which mirrors are steered: what owners keep, no flow may write.

A topic is as good as a command to those who keep their state in one of its name: whoever may create
topics on a source would command the mirror's target, were such a topic copied.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import regex
from .keys import Flow


@dataclass(frozen=True)
class Kept:
    """What an owner keeps on a cluster.

    :param resource: topic or group.
    :param alias: the cluster.
    :param owner: the owner's variable, for messages.
    :param secret: it holds the key by which workers know each other: who reads it can give them
        orders, and so learn their passwords.
    """

    resource: str
    alias: str
    name: str
    owner: str
    secret: bool = False

    @property
    def reserved(self) -> dict[str, str]:
        """Operations that nobody but the owner needs, and what they would allow."""
        if self.resource == "group":
            return {"READ": "it would let processes join the group"}
        orders = {"READ": "it would let orders be given to the workers"} if self.secret else {}
        return {
            "WRITE": "it would let somebody alter the state",
            "CREATE": "it would let somebody choose what becomes of the state",
            "ALTER": "it would let somebody add partitions to the state",
            "ALTER_CONFIGS": "it would let somebody have the state deleted",
            **orders,
        }


@dataclass(frozen=True)
class Names:
    """Names of topics, or of groups, that owners keep.

    :param patterns: what owners' names look like unless somebody chose them; they hold on every
        cluster, so that another owner changes no other mirror.
    :param kept: alias to name to the owner's variable.
    """

    patterns: Sequence[str]
    kept: Mapping[str, Mapping[str, str]]

    def left_out(self, alias: str, chosen: Sequence[str], prefix: str = "") -> list[str]:
        """Patterns of what a flow has to leave out, so that nobody's names are written.

        A pattern gives way to the names that are kept where the flow names one of its own that
        nobody keeps.

        :param alias: the cluster on which the names count.
        :param chosen: what the flow takes, as ``topics`` of a flow.
        :param prefix: what stands before a name there.
        :returns: none if the flow names everything it takes, which is validated name by name.
        """
        named = [prefix + entry for entry in chosen if regex.is_literal(entry)]
        if len(named) == len(chosen):
            return []
        kept = self.kept.get(alias, {})
        own = [name for name in named if name not in kept]
        patterns = [p for p in self.patterns if not any(re.fullmatch(p, name) for name in own)]
        others = [
            name
            for name in kept
            if name.startswith(prefix) and not any(re.fullmatch(p, name) for p in patterns)
        ]
        return [
            *(rest for pattern in patterns for rest in regex.after(pattern, prefix)),
            *(_entry(name.removeprefix(prefix)) for name in others if name != prefix),
        ]

    def claimed(self, alias: str, chosen: Sequence[str], prefix: str = "") -> dict[str, str]:
        """Names that a flow takes one by one and somebody keeps, and who."""
        kept = self.kept.get(alias, {})
        return {entry: kept[prefix + entry] for entry in chosen if prefix + entry in kept}


def _entry(name: str) -> str:
    """The regular expression of one name in a list, which Kafka splits at commas and trims."""
    return "".join(
        f"\\x{ord(char):02x}" if char == "," or char <= " " else regex.exactly(char)
        for char in name
    )


@dataclass(frozen=True)
class Control:
    """Everything that owners keep."""

    topics: Names
    groups: Names

    def of_flow(self, flow: Flow, prefix: str) -> list[str]:
        """Patterns of the topics that a flow leaves out: names on its target, and on its source.

        :param prefix: what stands before a topic's name on the target.
        """
        chosen = flow["topics"]
        return list(dict.fromkeys([
            *self.topics.left_out(flow["target"], chosen, prefix),
            *self.topics.left_out(flow["source"], chosen),
        ]))  # fmt: skip

    def guarded(self, flow: Flow, prefix: str) -> Flow:
        """A flow that knows what it leaves out.

        :param flow: the flow, filled in.
        :returns: the same with ``left_out``, patterns of topics, those whose name would become too
            long among them, and ``groups_left_out``, patterns of groups.
        """
        longest = regex.LONGEST_NAME - len(prefix)
        wide = not all(map(regex.is_literal, flow["topics"]))
        return {
            **flow,
            "left_out": [
                *self.of_flow(flow, prefix),
                *([regex.longer_than(longest)] if prefix and wide else []),
            ],
            "groups_left_out": self.groups.left_out(flow["target"], flow["consumer_groups"]),
        }


def excluded(flow: Flow) -> list[str]:
    """Everything that a flow leaves out: what it says, and what nobody may take."""
    return [*flow["topics_exclude"], *flow["left_out"]]
