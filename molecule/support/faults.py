"""Faults of mirrored topics, one topic each, and how tests cause them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from labkit.hosts import Unit, Units
from labkit.lab import Lab

RECORDS = 400
"""Written to each topic before the damage, and as many between the mirror's stop and the damage."""


@dataclasses.dataclass(frozen=True)
class Copy:
    """Records that a client other than the mirror writes to the target.

    :param begin: first original in partition 0, counted from the mirror's position.
    :param how: a key of ``CHANGES`` in ``lab/tools/probe.py``.
    :param to: partition they are written to.
    """

    begin: int
    count: int
    how: str
    to: int = 0


@dataclasses.dataclass(frozen=True)
class Fault:
    """Damage to partition 0 of a topic while its mirror is stopped.

    :param expected: class -> records the report has to name; every other class has to be 0.
    :param skip: records after its position that the mirror is made to pass over.
    :param deleted: first records of the target that are deleted.
    :param truncated: records after the mirror's position that the source deletes.
    :param recreated: the source's topic is created again, and grows past the mirror's position.
    """

    expected: Mapping[str, int]
    skip: int = 0
    copies: Sequence[Copy] = ()
    deleted: int = 0
    truncated: int = 0
    recreated: bool = False


# Among so many originals are several keys.
APART = 30
FAULTS: dict[str, Fault] = {
    "missing": Fault({"missing": 7}, skip=7),
    "altered": Fault({"corrupt_value": 5}, skip=5, copies=[Copy(0, 5, "altered")]),
    "headers": Fault({"corrupt_headers": 3}, skip=3, copies=[Copy(0, 3, "headers")]),
    "timestamp": Fault({"altered_timestamp": 3}, skip=3, copies=[Copy(0, 3, "timestamp")]),
    "duplicated": Fault({"duplicate": 4}, copies=[Copy(-4, 4, "same")]),
    "foreign": Fault({"extra": 3}, copies=[Copy(-3, 3, "foreign")]),
    "swapped": Fault({"corrupt_value": 2}, skip=APART, copies=[Copy(0, APART, "swapped")]),
    # Counts of both sides agree.
    "cancelled": Fault({"missing": 1, "duplicate": 1}, skip=1, copies=[Copy(5, 1, "same")]),
    "deleted": Fault({"deleted_early": 6}, deleted=6),
    "truncated": Fault({"unverifiable": 11}, truncated=11),
    "sound": Fault({}),
}
# MirrorMaker 1 keeps neither partitions nor the order of records without a key.
OF_MIRRORMAKER_2: dict[str, Fault] = {
    "reordered": Fault({"reordered": 1}, skip=APART, copies=[Copy(0, APART, "exchanged")]),
    "moved": Fault({"moved": 3}, skip=3, copies=[Copy(0, 3, "same", to=1)]),
    # The mirror continues at the old offset; records of the old topic cannot be read again.
    "recreated": Fault({"missing": RECORDS, "unverifiable": RECORDS}, recreated=True),
}


@dataclasses.dataclass(frozen=True)
class Faulty:
    """A flow whose topics are damaged.

    :param prefix: stands before the names of :data:`FAULTS`.
    :param target: stands before a topic's name on the target.
    :param group: its consumer group; ``None``: it is MirrorMaker 2.
    """

    lab: Lab
    unit: Unit | Units
    flow: str
    prefix: str
    target: str
    group: str | None

    @property
    def faults(self) -> dict[str, Fault]:
        """The faults its engine can have."""
        return FAULTS | (OF_MIRRORMAKER_2 if self.group is None else {})

    def topic(self, fault: str) -> str:
        """Name on the source."""
        return f"{self.prefix}{fault}"

    def fill(self, chosen: Sequence[str]) -> None:
        """Write records and wait until they are mirrored."""
        self._produce(chosen)
        self.lab.wait_mirrored(self.flow, [self.topic(fault) for fault in chosen])

    def damage(self, chosen: Sequence[str]) -> tuple[int, dict[str, Any]]:
        """Stop the mirror, write more records, do the damage, and start the mirror.

        :returns: the report on lag before the start.
        """
        self.unit.control("stop")
        try:
            self._plant(chosen)
            lag = self.lab.report("lag", "--flow", self.flow)
        finally:
            self.unit.control("start")
        self.lab.wait_mirrored(self.flow, [self.topic(fault) for fault in chosen])
        return lag

    def _produce(self, chosen: Sequence[str], times: int = 1) -> None:
        """Write records to all topics at once; those to be created again are logged apart."""
        lab = self.lab
        for fault in chosen:
            if self.faults[fault].recreated:
                lab.produce(self.topic(fault), count=RECORDS * times)
        others = [self.topic(fault) for fault in chosen if not self.faults[fault].recreated]
        lab.produce(*others, count=RECORDS * len(others))

    def _plant(self, chosen: Sequence[str]) -> None:
        lab = self.lab
        positions = lab.probe(lab.positions(self.flow))[0]
        at = {fault: int(positions[self.topic(fault)]["0"]) for fault in chosen}
        again = {
            self.topic(fault): {"num_partitions": 1}
            for fault in chosen
            if self.faults[fault].recreated
        }
        if again:
            lab.probe({"do": "create_again", "cluster": "east", "topics": again})
        self._produce(chosen, times=3)
        copies = [
            {
                "topic": self.topic(name),
                "target": self.target + self.topic(name),
                "partition": 0,
                "begin": at[name] + copy.begin,
                "count": copy.count,
                "how": copy.how,
                "to": copy.to,
            }
            for name in chosen
            for copy in self.faults[name].copies
        ]
        skips = {
            self.topic(name): {"0": at[name] + self.faults[name].skip}
            for name in chosen
            if self.faults[name].skip
        }
        gone = {
            self.target + self.topic(name): {"0": self.faults[name].deleted}
            for name in chosen
            if self.faults[name].deleted
        }
        lost = {
            self.topic(name): {"0": at[name] + self.faults[name].truncated}
            for name in chosen
            if self.faults[name].truncated
        }
        steps: list[dict[str, Any]] = []
        if copies:
            steps.append({"do": "tamper", "cluster": "east", "into": "west", "copies": copies})
        if skips:
            steps.append(self._move(skips))
        if gone:
            steps.append({"do": "truncate", "cluster": "west", "offsets": gone})
        if lost:
            steps.append({"do": "truncate", "cluster": "east", "offsets": lost})
        answers = lab.probe(*steps)
        if copies:
            assert answers[0] == [copy["count"] for copy in copies]

    def _move(self, offsets: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        if self.group is not None:
            return {"do": "move", "cluster": "east", "group": self.group, "offsets": offsets}
        step = self.lab.positions(self.flow)
        return {**step, "do": "move_connect", "offsets": offsets}


@dataclasses.dataclass(frozen=True)
class Damaged:
    """The report on lag while the mirror was stopped, and the full report afterwards."""

    stopped: tuple[int, dict[str, Any]]
    answer: tuple[int, dict[str, Any]]
