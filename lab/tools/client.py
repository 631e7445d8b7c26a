"""Connections of the lab's tools: kafka-python from the map that the model's filter renders."""

from __future__ import annotations

import dataclasses
import json
import ssl
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.record.memory_records import MemoryRecordsBuilder
from ledger import Found, Headers, Record, checksum, sequence_of

Offsets = dict[str, dict[int, int]]


class NullHeader(bytes):
    """Stands for a header whose value is null, which kafka-python's ``send`` refuses."""


NULL = NullHeader()
_append = MemoryRecordsBuilder.append


def _append_null_headers(
    self: Any, timestamp: Any, key: Any, value: Any, headers: Iterable[tuple[str, bytes]] = ()
) -> Any:
    # The encoder below writes None as a null header; only the check in send() stands before it.
    nulled = [(name, None if part is NULL else part) for name, part in headers]
    return _append(self, timestamp, key, value, nulled)


MemoryRecordsBuilder.append = _append_null_headers


def connection(path: str) -> dict[str, Any]:
    """Read a connection from a JSON file, or from standard input if the path is ``-``."""
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def settings(connection: Mapping[str, Any]) -> dict[str, Any]:
    """kafka-python arguments for one cluster.

    :param connection: bootstrap_servers, security_protocol, and as needed sasl_mechanism,
        username, password, ssl_ca, ssl_certificate, ssl_key (PEM text).
    """
    arguments: dict[str, Any] = {
        "bootstrap_servers": connection["bootstrap_servers"],
        "security_protocol": connection.get("security_protocol", "PLAINTEXT"),
    }
    if connection.get("sasl_mechanism"):
        arguments["sasl_mechanism"] = connection["sasl_mechanism"]
        arguments["sasl_plain_username"] = connection["username"]
        arguments["sasl_plain_password"] = connection["password"]
    if arguments["security_protocol"].endswith("SSL"):
        context = ssl.create_default_context(cadata=connection.get("ssl_ca"))
        if connection.get("ssl_certificate"):
            with tempfile.NamedTemporaryFile("w", encoding="ascii") as pair:
                pair.write(connection["ssl_key"] + connection["ssl_certificate"])
                pair.flush()
                context.load_cert_chain(pair.name)
        arguments["ssl_context"] = context
    return arguments


def admin(connection: Mapping[str, Any]) -> Any:
    """Open an admin client."""
    return KafkaAdminClient(**settings(connection))


def producer(connection: Mapping[str, Any], *, idempotent: bool = True) -> Any:
    """Idempotent producer: what it acknowledges is on the source once, and only once."""
    return KafkaProducer(
        **settings(connection),
        acks="all",
        enable_idempotence=idempotent,
        batch_size=262144,
        linger_ms=20,
        max_request_size=2097152,
    )


def send(target: Any, topic: str, record: Record, partition: int | None = None) -> Any:
    """Send one record with its own timestamp; returns the client's future."""
    return target.send(
        topic,
        value=record.value,
        key=record.key,
        headers=[(name, NULL if value is None else value) for name, value in record.headers],
        partition=partition,
        timestamp_ms=record.timestamp_ms,
    )


@dataclasses.dataclass(frozen=True)
class Placed:
    """A record and where it stands."""

    topic: str
    partition: int
    offset: int
    record: Record

    def found(self) -> Found:
        """Reduce it to what a comparison needs."""
        return Found(
            self.topic,
            self.partition,
            self.offset,
            sequence_of(self.record),
            checksum(self.record),
        )


def read(
    connection: Mapping[str, Any],
    topics: Iterable[str],
    start: Offsets | None = None,
) -> Iterator[Placed]:
    """Read topics wholly, from the first record to the end offsets found at the start.

    :param start: offsets to begin at instead, per topic and partition.
    """
    consumer = KafkaConsumer(
        **settings(connection),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_bytes=16777216,
        max_partition_fetch_bytes=4194304,
        max_poll_records=5000,
    )
    try:
        partitions = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        if not partitions:
            return
        ends = consumer.end_offsets(partitions)
        firsts = consumer.beginning_offsets(partitions)
        consumer.assign(partitions)
        for place, first in firsts.items():
            wanted = (start or {}).get(place.topic, {}).get(place.partition, 0)
            consumer.seek(place, max(first, wanted))
        open_ = {place for place in partitions if consumer.position(place) < ends[place]}
        consumer.pause(*(set(partitions) - open_))
        while open_:
            for place, records in consumer.poll(timeout_ms=1000).items():
                for got in records:
                    if got.offset < ends[place]:
                        headers: Headers = tuple(got.headers or ())
                        record = Record(got.key, got.value, headers, got.timestamp)
                        yield Placed(got.topic, got.partition, got.offset, record)
            done = {place for place in open_ if consumer.position(place) >= ends[place]}
            if done:
                open_ -= done
                consumer.pause(*done)
    finally:
        consumer.close()
