"""Header keys that are no UTF-8: whatever arrives, nobody can say that it is what was sent."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from kafka import KafkaProducer
from parity_mirror import T0, Mirror, counts, only
from parity_records import jars_directory

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

SENT, MIRRORED = b"trace-\xff", "trace-\ufffd".encode()
"""What a producer wrote, and what every Java client makes of it."""


class Bytes(str):
    """A header's key that is written as the bytes it stands for."""

    raw: bytes

    def encode(self, *_: Any) -> bytes:  # type: ignore[override]
        """As the producer wants them."""
        return self.raw


def key(raw: bytes) -> str:
    made = Bytes("key")
    made.raw = raw
    return made


@contextlib.contextmanager
def producer(bootstrap: str) -> Any:
    made = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    with contextlib.closing(made):
        yield made


def write(bootstrap: str, topic: str, raw: bytes, values: range) -> None:
    with producer(bootstrap) as to:
        for number in values:
            to.send(
                topic, key=b"k%d" % number, value=b"v%d" % number, partition=0,
                timestamp_ms=T0 + number * 1000,
                headers=[(key(raw), b"x")] if number % 10 == 0 else [],
            ).get(30)  # fmt: skip


def test_a_key_that_java_replaces_is_unverifiable_and_the_rest_is_verified(mirror: Mirror) -> None:
    topic = mirror.topic("headers", 1)
    for broker, raw in zip(mirror.brokers, (SENT, MIRRORED), strict=True):
        write(broker, topic, raw, range(40))
    mirror.commit(topic)
    for _ in range(2):
        result = mirror.run()
        found = only(result)
        assert (found.status, counts(found)) == ("unverifiable", {"unverifiable": 4})
        assert (found.verified_records, found.replaced_records) == (36, 4)
        (finding,) = result.findings
        assert (finding.severity, finding.kind, finding.count) == ("warning", "unverifiable", 4)
        assert "header keys that are no UTF-8" in finding.message
        assert "UTF-8" in finding.action


def test_a_fault_among_them_is_found_all_the_same(mirror: Mirror) -> None:
    topic = mirror.topic("headers", 1)
    write(mirror.brokers[0], topic, SENT, range(40))
    write(mirror.brokers[1], topic, MIRRORED, range(1, 40))
    mirror.commit(topic)
    found = only(mirror.run())
    assert (found.status, counts(found)) == ("mismatch", {"missing": 1, "unverifiable": 4})


def test_the_latest_record_of_a_key_is_unverifiable_too(mirror: Mirror) -> None:
    topic = mirror.topic("table", 1, cleanup_policy="compact")
    for broker, raw in zip(mirror.brokers, (SENT, MIRRORED), strict=True):
        write(broker, topic, raw, range(20))
    mirror.commit(topic)
    found = only(mirror.run())
    assert (found.strategy, counts(found)) == ("latest_by_key", {"unverifiable": 2})
    assert found.verified_records == 18
