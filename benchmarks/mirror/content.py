"""Records that are mirrored, and whether they have arrived, by librdkafka."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Any

from common import MeasurementError
from confluent_kafka import Consumer, Producer, TopicPartition
from flowing import PARTITIONS

POOL_BYTES = 64 * 1024 * 1024
GROUP = "bench-content"


def fill(address: str, topic: str, records: int, size: int, compression: str) -> None:
    """Write random bytes without keys, the same number to each partition.

    :param size: bytes of a value.
    :param compression: of batches; values that are compressed are of hexadecimal digits, which
        half their size can hold.
    """
    pool = os.urandom(POOL_BYTES)
    if compression != "none":
        pool = pool[: POOL_BYTES // 2].hex().encode()
    producer = Producer({
        "bootstrap.servers": address, "compression.type": compression, "linger.ms": 50,
        "batch.size": 1_000_000, "message.max.bytes": 8_000_000,
        "queue.buffering.max.kbytes": 262_144, "acks": "all",
    })  # fmt: skip
    at = 0
    for number in range(records):
        # By steps that are not a power of two, so that no two records are alike.
        at = (at + size + 1) % (len(pool) - size)
        while True:
            try:
                producer.produce(topic, pool[at : at + size], partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(300):
        raise MeasurementError(f"{topic}: not everything was written")


def values(address: str, topic: str, ends: list[int]) -> Iterator[bytes]:
    """Every value of a topic, below its ends."""
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": GROUP, "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "fetch.queue.backoff.ms": 10,
        "queued.max.messages.kbytes": 262_144,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    left = sum(ends)
    while left:
        messages: list[Any] = consumer.consume(10_000, 30)
        if not messages:
            raise MeasurementError(f"{topic}: {left} records cannot be read")
        for message in messages:
            if message.error() is not None:
                raise MeasurementError(f"{topic}: {message.error()}")
            if message.offset() < ends[message.partition()]:
                left -= 1
                yield message.value()
    consumer.close()


def digests(address: str, topic: str, ends: list[int]) -> array[int]:
    """64 bits of each record."""
    return array(
        "Q",
        (
            int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "little")
            for value in values(address, topic, ends)
        ),
    )


def compared(source: array[int], target: array[int]) -> dict[str, float]:
    """How many records are on the source alone, twice on the target, and there alone."""
    there, here = Counter(source), Counter(target)
    return {
        "lost": float((there - here).total()),
        "repeated": float(sum(count - 1 for count in here.values() if count > 1)),
        "foreign": float(len(here.keys() - there.keys())),
    }
