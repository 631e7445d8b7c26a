"""Tuned properties of Kafka's clients by how far their cluster is, and the memory they may take."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .keys import Properties, defaults_of, filled
from .schema import DISTANCE

KIB = 1 << 10
MIB = 1 << 20
# Heaps are rendered in steps, so that a small change of a property restarts nothing.
HEAP_STEP_MIB = 64
# What Kafka's clients take where a property is removed.
KAFKAS = {"fetch.max.bytes": 50 * MIB, "buffer.memory": 32 * MIB}
# One answer is handed out while the next arrives.
FETCHES = 2


@dataclass(frozen=True)
class Distance:
    """How far a cluster is from the hosts of its mirror.

    :param round_trip_ms: milliseconds between a request and its answer.
    :param bandwidth_mbit: what the mirror may send over the link, megabits per second.
    """

    round_trip_ms: int
    bandwidth_mbit: int

    @property
    def is_far(self) -> bool:
        """Whether more is on the way at once than on a link of one site."""
        return self.on_the_way > NEAR.on_the_way

    @property
    def on_the_way(self) -> int:
        """Bytes that are on the way at once when the link is full."""
        return self.round_trip_ms * self.bandwidth_mbit * 125


NEAR = Distance(1, 1000)
# Brokers refuse larger batches by default (max.message.bytes is 1 MiB and 12 bytes).
MOST_BATCH = 960 * KIB
IN_FLIGHT = 5
# Consumers of a host that share the way to a far cluster: each waits for answers of its own.
FAR_READERS = 3


def distance(owned: Mapping[str, Any], alias: str) -> Distance:
    """How far a cluster is, by an owner's settings; near, if they say nothing.

    :param owned: every key of the owner.
    """
    written = owned["distance"].get(alias)
    return Distance(**filled(written, defaults_of(DISTANCE))) if written else NEAR


def consumer(source: Distance) -> dict[str, Any]:
    """Properties of a client that reads a cluster so far away.

    An answer has to last for a whole round trip, while the next one is asked for. Far away the
    kernel sizes the socket's buffer: Kafka's default is less than what is on the way, and another
    number is cut to ``net.core.rmem_max``. Near, Kafka's default is the faster one.
    """
    fetch = _between(MIB, 2 * source.on_the_way, 16 * MIB)
    return ({"receive.buffer.bytes": -1} if source.is_far else {}) | {
        "fetch.max.bytes": max(8 * MIB, 2 * fetch),
        "fetch.max.wait.ms": 100,
        "fetch.min.bytes": 65536,
        "max.partition.fetch.bytes": fetch,
        "metadata.max.age.ms": 60000,
    }


def readers(source: Distance) -> int:
    """Consumers on each host that read a cluster so far away."""
    return FAR_READERS if source.is_far else 1


def producer(target: Distance, producers: int = 1) -> dict[str, Any]:
    """Properties of a client that writes to a cluster so far away, at unchanged guarantees.

    Idempotence with five requests in flight keeps the order. Together they fill the link, also
    where each holds a batch of one partition.

    :param producers: how many share the link at least, and so what is on the way.
    """
    return {
        "acks": "all",
        "batch.size": _between(320 * KIB, target.on_the_way // IN_FLIGHT, MOST_BATCH, KIB),
        "buffer.memory": _between(
            16 * MIB, 8 * target.on_the_way // producers, 64 * MIB // producers
        ),
        "enable.idempotence": True,
        "linger.ms": 20,
        "max.in.flight.requests.per.connection": IN_FLIGHT,
        "max.request.size": 8388608,
        "metadata.max.age.ms": 60000,
        "send.buffer.bytes": -1,
    }


def _between(least: int, size: int, most: int, step: int = MIB) -> int:
    """A size in whole steps between two others."""
    return min(max(least, -(-size // step) * step), most)


def fetched_mib(properties: Properties) -> float:
    """What a consumer with these properties may hold of what it read, in mebibytes."""
    return FETCHES * _number(properties, "fetch.max.bytes") / MIB


def buffered_mib(properties: Properties) -> float:
    """What a producer with these properties may hold of what it is to send, in mebibytes."""
    return _number(properties, "buffer.memory") / MIB


def _number(properties: Properties, key: str) -> int:
    """A property as a number; Kafka's default where it is none, which Kafka refuses."""
    value = str(properties.get(key, ""))
    return int(value) if value.isdecimal() else KAFKAS[key]


def heap(mebibytes: float) -> str:
    """A heap that holds this much, as an inventory spells it."""
    return f"{-(-int(mebibytes) // HEAP_STEP_MIB) * HEAP_STEP_MIB}m"


def heap_mib(spelled: str) -> int:
    """A heap of an inventory, such as ``512m`` or ``2g``, in mebibytes."""
    return int(spelled[:-1]) * (1024 if spelled[-1].lower() == "g" else 1)
