"""Topics that a producer names after what steers a mirror, beside one of a harmless name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labkit.lab import Lab

# Stands in every value that is written here.
RUN = "f0f0f0f0"


@dataclass(frozen=True)
class Forgery:
    """What a producer of the source may do: create topics of any name, and write to them.

    :param flow: whose patterns match both topics.
    :param forged: a name by which it would steer a mirror; ``sound``: any other.
    :param prefix: what stands before a topic's name on the target.
    """

    lab: Lab
    flow: str
    forged: str
    sound: str
    prefix: str = ""

    def commit(self) -> dict[str, Any]:
        """Write to both topics, wait until the sound one is mirrored, and report."""
        topics = {name: {"num_partitions": 1} for name in (self.forged, self.sound)}
        there = self._topics_there()
        if absent := {
            self.prefix + name: spec
            for name, spec in topics.items()
            if self.prefix + name not in there
        }:
            # Where it exists, nothing but the flow's patterns keeps records from it.
            self.lab.probe({"do": "create", "cluster": "west", "topics": absent})
        self.lab.probe({"do": "create", "cluster": "east", "topics": topics})
        self.lab.produce(self.forged, self.sound, count=200, run=RUN)
        self.lab.wait_mirrored(self.flow, [self.sound])
        document: dict[str, Any] = self.lab.report("run", "--flow", self.flow)[1]
        return document

    def _topics_there(self) -> dict[str, int]:
        found: dict[str, int] = self.lab.probe({"do": "topics", "cluster": "west"})[0]
        return found

    def hits(self, cluster: str, topic: str) -> int:
        """How many of its records a topic holds."""
        step = {"do": "search", "cluster": cluster, "topic": topic, "words": [RUN]}
        return int(self.lab.probe(step)[0]["hits"])

    def proves(self, report: dict[str, Any]) -> None:
        """Assert that the sound topic alone was copied, and that the report says why."""
        assert self.hits("east", self.forged) > 0
        sound = self.hits("east", self.sound)
        assert self.hits("west", self.prefix + self.sound) == sound > 0
        assert self.prefix + self.forged in self._topics_there()
        assert self.hits("west", self.prefix + self.forged) == 0
        (row,) = [row for row in report["topics"] if row["topic"] == self.forged]
        assert (row["selected"], "steered by topics of such names" in row["reason"]) == (
            False, True,
        )  # fmt: skip
        assert not [one for one in report["findings"] if one["kind"] == "control_record"]
