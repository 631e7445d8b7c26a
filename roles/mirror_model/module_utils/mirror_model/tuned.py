"""Tuned properties of Kafka's clients by how far their cluster is, and the memory they may take."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .keys import Properties, defaults_of, filled
from .schema import DISTANCE

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
    def on_the_way(self) -> int:
        """Bytes that are on the way at once when the link is full."""
        return self.round_trip_ms * self.bandwidth_mbit * 125


NEAR = Distance(1, 1000)


def distance(owned: Mapping[str, Any], alias: str) -> Distance:
    """How far a cluster is, by an owner's settings; near, if they say nothing.

    :param owned: every key of the owner.
    """
    written = owned["distance"].get(alias)
    return Distance(**filled(written, defaults_of(DISTANCE))) if written else NEAR


def consumer(source: Distance) -> dict[str, Any]:
    """Properties of a client that reads a cluster so far away.

    An answer has to last for a whole round trip, while the next one is asked for. The kernel sizes
    the socket's buffer: a number written here ends that, and is cut to ``net.core.rmem_max``.
    """
    fetch = _between(MIB, 2 * source.on_the_way, 16 * MIB)
    return {
        "fetch.max.bytes": max(8 * MIB, 2 * fetch),
        "fetch.max.wait.ms": 100,
        "fetch.min.bytes": 65536,
        "max.partition.fetch.bytes": fetch,
        "metadata.max.age.ms": 60000,
        "receive.buffer.bytes": -1,
    }


def producer(target: Distance) -> dict[str, Any]:
    """Properties of a client that writes to a cluster so far away, at unchanged guarantees.

    Idempotence with five requests in flight keeps the order.
    """
    return {
        "acks": "all",
        "batch.size": 327680,
        "buffer.memory": _between(16 * MIB, 4 * target.on_the_way, 64 * MIB),
        "enable.idempotence": True,
        "linger.ms": 20,
        "max.in.flight.requests.per.connection": 5,
        "max.request.size": 8388608,
        "metadata.max.age.ms": 60000,
        "send.buffer.bytes": -1,
    }


def _between(least: int, size: int, most: int) -> int:
    """A size in whole mebibytes between two others."""
    return min(max(least, -(-size // MIB) * MIB), most)


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
