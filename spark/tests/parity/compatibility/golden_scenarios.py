"""What happens on the clusters, scenario by scenario, before and after the stored state."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from parity_clusters import HOUR, PREFIX, T0, Connect, Message, World, copied, messages, settings_of

FAULTS = {
    3: "missing", 6: "duplicate", 8: "missing", 9: "corrupt_headers", 12: "corrupt_value",
    17: "altered_timestamp", 21: "extra", 31: "reordered",
}  # fmt: skip
Step = Callable[[], None]


def every_command(flow: str) -> Sequence[Sequence[str]]:
    """Commands that print a document, with their options."""
    return (
        ("lag",), ("check",), ("groups",), ("prove", "--flow", flow),
        ("confirm", "--timeout", "1"),
    )  # fmt: skip


class Scenario(ABC):
    """Topics of one flow and what happens to them, in this order.

    :meth:`before`, the baseline, then each of :meth:`steps` and a run after it; here the state is
    stored. Then :meth:`later`, a run, and a run with nothing new.

    :cvar baseline: options of the command.
    :cvar budget: what differs from the defaults.
    :cvar digests: both sides are digested and compared, too.
    :cvar killed: options of a run that is killed; ``None``: runs come to their end.
    """

    name: ClassVar[str]
    baseline: ClassVar[Sequence[str]] = ("--full-history",)
    budget: ClassVar[dict[str, Any]] = {}
    digests: ClassVar[bool] = False
    killed: ClassVar[Sequence[str] | None] = None

    def __init__(self, world: World) -> None:
        self.world = world
        self.prefix = PREFIX + self.name
        self.group = self.prefix
        self.aliases = {side: f"{self.name}-{side}" for side in ("source", "target")}

    def topic(self, name: str) -> str:
        """Name of a topic on the source."""
        return f"{self.prefix}.{name}"

    def flow(self) -> dict[str, Any]:
        """The flow's configuration."""
        skipped = self.topic("skipped").replace(".", "\\.")
        return {
            "name": self.name, "source": self.aliases["source"], "target": self.aliases["target"],
            "topics": [f"{self.prefix}\\..*"], "topics_exclude": [skipped],
            "include": f"(?!{skipped}){self.prefix}\\..*", "group_id": self.group,
        }  # fmt: skip

    @abstractmethod
    def before(self) -> None:
        """What is there when the baseline is recorded."""

    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """What happens before each of the first runs."""

    @abstractmethod
    def later(self) -> None:
        """What happens after the state was stored."""

    def commands(self) -> Sequence[Sequence[str]]:
        """Commands that answer before the state is stored, with their options."""
        return (("lag",),)

    def mirror(self) -> AbstractContextManager[None]:
        """What runs of the mirror meanwhile: nothing."""
        return contextlib.nullcontext()

    def create(self, name: str, partitions: int = 2, **settings: str) -> None:
        """Create a topic on both sides."""
        for side in ("source", "target"):
            self.world.create(side, self.topic(name), partitions, **settings)

    def source(self, name: str, records: Sequence[Message]) -> None:
        """Produce."""
        self.world.write("source", self.topic(name), records)

    def target(self, name: str, records: Sequence[Message]) -> None:
        """Write what the mirror made of records."""
        self.world.write("target", self.topic(name), records)

    def commit(self, name: str, *offsets: int) -> None:
        """Commit the mirror's positions in a topic."""
        self.world.commit("source", self.group, self.topic(name), *offsets)


class MirrorMaker1(Scenario):
    """Faults of each class, and topics that are behind, absent, truncated or not comparable."""

    name = "mm1"
    baseline = ()
    digests = True

    def flow(self) -> dict[str, Any]:
        """The flow's configuration, with a permission it needs."""
        need = {"cluster": self.aliases["source"], "resource": "group", "name": self.group,
                "pattern": "literal", "operation": "DESCRIBE"}  # fmt: skip
        return {**super().flow(), "hosts": ["localhost"], "permissions": [need]}

    def commands(self) -> Sequence[Sequence[str]]:
        """All."""
        return every_command(self.name)

    def before(self) -> None:
        """One topic was mirrored from its beginning on."""
        for name in ("faulty", "whole", "behind", "short"):
            self.create(name)
        self.world.create("source", self.topic("stamped"))
        self.world.create("target", self.topic("stamped"), message_timestamp_type="LogAppendTime")
        self.world.create("source", self.topic("absent"), 1)
        self.world.create("source", self.topic("skipped"), 1)
        self.source("whole", messages(12))
        self.target("whole", copied(messages(12), shift=1))
        self.commit("whole", 6, 6)

    def steps(self) -> Sequence[Step]:
        """Everything at once."""
        return (self._step,)

    def _step(self) -> None:
        self.source("faulty", messages(90))
        self.target("faulty", copied(messages(90), FAULTS, shift=1))
        self.commit("faulty", 45, 45)
        self.source("whole", messages(48, 12))
        self.target("whole", copied(messages(48, 12), shift=1))
        self.commit("whole", 30, 30)
        self.source("behind", messages(40))
        self.target("behind", copied(messages(20), shift=1))
        self.commit("behind", 10, 10)
        self.source("stamped", messages(20))
        self.target("stamped", copied(messages(20), shift=1))
        self.commit("stamped", 10, 10)
        self.source("short", messages(30))
        self.target("short", copied(messages(10), shift=1))
        self.commit("short", 5, 5)
        self.world.delete_before("source", self.topic("short"), 0, 9)
        self.source("absent", [message._replace(partition=0) for message in messages(5)])

    def later(self) -> None:
        """New faults, the rest of a topic, and records that leave the target too early."""
        self.source("faulty", messages(30, 90))
        self.target("faulty", copied(messages(30, 90), {4: "duplicate", 7: "missing"}, shift=1))
        self.commit("faulty", 60, 60)
        self.target("behind", copied(messages(20, 20), shift=1))
        self.commit("behind", 20, 20)
        self.world.delete_before("target", self.topic("whole"), 1, 9)


class MirrorMaker2(Scenario):
    """The same names on both sides, partitions kept, consumer groups taken along."""

    name = "mm2"
    digests = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.connect = Connect(world, self.prefix, self.aliases["source"])

    def flow(self) -> dict[str, Any]:
        """The flow's configuration."""
        return {
            **super().flow(), **settings_of(self.connect), "engine": "mm2",
            "replication_policy": "identity", "consumer_groups": [f"{self.prefix}-app-.*"],
            "commit_interval_ms": 2000,
        }  # fmt: skip

    def commands(self) -> Sequence[Sequence[str]]:
        """All."""
        return every_command(self.name)

    def commit(self, name: str, *offsets: int) -> None:
        """Flush the mirror's positions in a topic."""
        self.connect.position(self.topic(name), *offsets)

    def before(self) -> None:
        """Topics without records."""
        self.connect.create()
        for name in ("faulty", "whole", "behind"):
            self.create(name)
        heartbeats = f"{self.aliases['source']}.heartbeats"
        self.world.create("target", heartbeats, 1)
        self.world.write("target", heartbeats, [Message(0, b"key", b"beat")])

    def steps(self) -> Sequence[Step]:
        """Everything at once."""
        return (self._step,)

    def _step(self) -> None:
        self.source("faulty", messages(90))
        self.target("faulty", copied(messages(90), FAULTS | {22: "moved"}))
        self.commit("faulty", 45, 45)
        self.source("whole", messages(60))
        self.target("whole", copied(messages(60)))
        self.commit("whole", 30, 30)
        self.source("behind", messages(40))
        self.target("behind", copied(messages(20)))
        self.commit("behind", 10, 10)
        whole = self.topic("whole")
        for partition in (0, 1):
            self.connect.sync(whole, partition, 0, 0)
            self.connect.sync(whole, partition, 20, 20)
        ready, unmapped = (f"{self.prefix}-app-{name}" for name in ("ready", "unmapped"))
        for partition in (0, 1):
            self.connect.checkpoint(ready, whole, partition, 20)
        self.world.commit("target", ready, whole, 20, 20)
        self.world.commit("source", ready, whole, 20, 20)
        self.world.commit("source", unmapped, whole, 5, 5)

    def later(self) -> None:
        """New faults, the rest of a topic, and a group that went on."""
        self.source("faulty", messages(30, 90))
        self.target("faulty", copied(messages(30, 90), {4: "duplicate", 7: "missing"}))
        self.commit("faulty", 60, 60)
        self.target("behind", copied(messages(20, 20)))
        self.commit("behind", 20, 20)
        whole = self.topic("whole")
        self.world.commit("source", f"{self.prefix}-app-ready", whole, 25, 25)


class Aligned(MirrorMaker2):
    """A target that replaces timestamps, so that offset syncs align the sides."""

    name = "aligned"
    digests = False
    every = 10
    """Records from sync to sync."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._next: dict[tuple[str, int], int] = {}

    def flow(self) -> dict[str, Any]:
        """The flow's configuration."""
        return {**super().flow(), "replication_policy": "prefix", "consumer_groups": []}

    def commands(self) -> Sequence[Sequence[str]]:
        """Those that know of offset syncs."""
        return (("lag",), ("prove", "--flow", self.name))

    def before(self) -> None:
        """Topics without records."""
        self.connect.create()
        for name in ("faulty", "whole", "drained"):
            self.world.create("source", self.topic(name))
            self.world.create("target", self._copy(name), message_timestamp_type="LogAppendTime")

    def _copy(self, name: str) -> str:
        return f"{self.aliases['source']}.{self.topic(name)}"

    def _step(self) -> None:
        self._fill("faulty", 50)
        self._mirror("faulty", 0, 40, {(0, 5): "missing", (0, 25): "duplicate",
                                       (1, 15): "corrupt_value"})  # fmt: skip
        self._fill("whole", 50)
        self._mirror("whole", 0, 40)
        self._fill("drained", 30)
        self._mirror("drained", 0, 30)

    def later(self) -> None:
        """The mirror copies the rest."""
        self._mirror("faulty", 40, 50)
        self._mirror("whole", 40, 50)

    def _fill(self, name: str, count: int) -> None:
        """Write as many records into each partition, all of one minute."""
        self.source(name, [_numbered(partition, i) for i in range(count) for partition in (0, 1)])

    def _mirror(
        self, name: str, start: int, end: int, faults: dict[tuple[int, int], str] | None = None
    ) -> None:
        """Copy offsets of both partitions, with a sync every so often."""
        for partition in (0, 1):
            copies: list[Message] = []
            place = (name, partition)
            for offset in range(start, end):
                if offset % self.every == 0:
                    written = self._next.get(place, 0) + len(copies)
                    self.connect.sync(self.topic(name), partition, offset, written)
                fault = (faults or {}).get((partition, offset), "")
                copies += copied([_numbered(partition, offset)], {0: fault})
            self.world.write("target", self._copy(name), copies)
            self._next[place] = self._next.get(place, 0) + len(copies)
        self.commit(name, end, end)


def _numbered(partition: int, number: int) -> Message:
    return Message(partition, b"%d" % (number % 7), b"%d" % number)


class Compacted(Scenario):
    """Compacted topics, of which the latest record of each key is compared."""

    name = "compacted"
    budget = {"compacted_hours": 0}  # noqa: RUF012

    def commands(self) -> Sequence[Sequence[str]]:
        """With the one that watches a mirror at work."""
        return (("lag",), ("confirm", "--timeout", "120"))

    def mirror(self) -> AbstractContextManager[None]:
        """A member of its group."""
        topics = [self.topic(name) for name in ("faulty", "whole")]
        return self.world.member("source", self.group, topics)

    def before(self) -> None:
        """Topics without records."""
        for name in ("faulty", "whole"):
            self.create(name, 1, cleanup_policy="compact")

    def steps(self) -> Sequence[Step]:
        """Three rounds of values, and tombstones for the last two keys."""
        return (self._step,)

    def _step(self) -> None:
        rounds = [Message(0, b"key-%d" % (i % 10), b"%d" % i, T0 + i * 1000) for i in range(30)] + [
            Message(0, b"key-%d" % i, None, T0 + (30 + i) * 1000) for i in (8, 9)
        ]
        stale = [
            message for message in rounds
            if message.key != b"key-3" and (message.key, message.value) != (b"key-4", b"24")
        ]  # fmt: skip
        for name, copies in (("faulty", stale), ("whole", rounds)):
            self.source(name, rounds)
            self.target(name, copies)
            self.commit(name, len(rounds))
        self.target("faulty", [Message(0, b"alien", b"?", T0 + 50_000)])

    def later(self) -> None:
        """A new value waits."""
        self.source("whole", [Message(0, b"key-5", b"new", T0 + HOUR)])


class Sealed(Scenario):
    """Hours that are long verified, sealed by the last of many runs; and an unreadable record."""

    name = "sealed"
    runs = 9

    def before(self) -> None:
        """A topic without records, and one with a time that does not fit into microseconds."""
        self.create("hours")
        self.create("wide", message_timestamp_after_max_ms=str(2**63 - 1))
        wide = [*messages(20), Message(0, b"key", b"far", 10**16), *messages(10, 20)]
        self.source("wide", wide)
        self.target("wide", copied(wide, shift=1))
        self.commit("wide", 16, 15)

    def steps(self) -> Sequence[Step]:
        """Some records of the next hour each time."""
        return [lambda number=number: self._hour(number) for number in range(self.runs)]  # type: ignore[misc]

    def _hour(self, number: int, missing: bool = False) -> None:
        records = [
            message._replace(at=T0 + number * HOUR + i * 1000)
            for i, message in enumerate(messages(6, number * 6))
        ]
        self.source("hours", records)
        self.target("hours", copied(records, {1: "missing"} if missing else {}, shift=1))
        self.commit("hours", 3 * (number + 1), 3 * (number + 1))

    def later(self) -> None:
        """A new hour with a fault, and a record of an hour that is sealed."""
        self._hour(self.runs, missing=True)
        late = [Message(0, b"late", b"late", T0 + 5000)]
        self.source("hours", late)
        self.target("hours", late)
        self.commit("hours", 3 * (self.runs + 1) + 1, 3 * (self.runs + 1))


class Killed(Scenario):
    """A first run that is killed as soon as it has remembered what it read."""

    name = "killed"
    killed = ("--max-records", "100")

    def commands(self) -> Sequence[Sequence[str]]:
        """None: nothing reads the state between the runs."""
        return ()

    def before(self) -> None:
        """Topics without records."""
        for name in ("faulty", "whole"):
            self.create(name)

    def steps(self) -> Sequence[Step]:
        """Everything at once."""
        return (self._step,)

    def _step(self) -> None:
        for name, faults in (("faulty", FAULTS), ("whole", {})):
            self.source(name, messages(90))
            self.target(name, copied(messages(90), faults, shift=1))
            self.commit(name, 45, 45)

    def later(self) -> None:
        """Some more records."""
        self.source("whole", messages(10, 90))
        self.target("whole", copied(messages(10, 90), shift=1))
        self.commit("whole", 50, 50)
