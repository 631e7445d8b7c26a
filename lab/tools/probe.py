#!/usr/bin/env python3
"""Read, change and damage clusters for tests, from inside the lab network.

A line of standard input: ``{"clusters": {alias: connection}, "steps": [{"do": name, "cluster":
alias}]}``; a step's other keys are its arguments.
A line of standard output for each: the list of the steps' answers, as JSON. Offsets are
``{topic: {partition: n}}``. Clients stay open between lines.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import client
from client import Offsets
from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import CoordinatorNotAvailableError, KafkaError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata
from ledger import Record

EARLIEST = -2
LATEST = -1
COORDINATOR_SECONDS = 60
DELETION_SECONDS = 60


class Probe:
    """The steps, each a method; clients are opened once per cluster."""

    def __init__(self, clusters: Mapping[str, Mapping[str, Any]]) -> None:
        self.clusters = clusters
        self._admins: dict[str, Any] = {}

    def _admin(self, cluster: str) -> Any:
        if cluster not in self._admins:
            self._admins[cluster] = client.admin(self.clusters[cluster])
        return self._admins[cluster]

    def close(self) -> None:
        """Close every client."""
        for admin in self._admins.values():
            admin.close()

    def topics(self, cluster: str) -> dict[str, int]:
        """Name every topic that is not internal, with its partition count."""
        described = self._admin(cluster).describe_topics()
        return {t["name"]: len(t["partitions"]) for t in described if not t["is_internal"]}

    def create(self, cluster: str, topics: dict[str, dict[str, Any]]) -> None:
        """Create topics: name to num_partitions and configs."""
        wanted = {name: {"replication_factor": 1, **spec} for name, spec in topics.items()}
        self._admin(cluster).create_topics(wanted, wait_for_metadata=True)

    def delete(self, cluster: str, topics: list[str]) -> None:
        """Delete topics."""
        self._admin(cluster).delete_topics(topics)

    def create_again(self, cluster: str, topics: dict[str, dict[str, Any]]) -> None:
        """Delete topics, which takes an old cluster a while, and create them."""
        self.delete(cluster, list(topics))
        deadline = time.monotonic() + DELETION_SECONDS
        while True:
            try:
                self.create(cluster, topics)
            except TopicAlreadyExistsError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def _offsets(self, cluster: str, topics: list[str], spec: int) -> Offsets:
        known = self.topics(cluster)
        wanted = {
            TopicPartition(topic, partition): spec
            for topic in topics
            for partition in range(known.get(topic, 0))
        }
        answer: Offsets = {topic: {} for topic in topics}
        if wanted:
            for place, found in self._admin(cluster).list_partition_offsets(wanted).items():
                answer[place.topic][place.partition] = found.offset
        return answer

    def ends(self, cluster: str, topics: list[str]) -> Offsets:
        """Log end offsets."""
        return self._offsets(cluster, topics, LATEST)

    def starts(self, cluster: str, topics: list[str]) -> Offsets:
        """Log start offsets."""
        return self._offsets(cluster, topics, EARLIEST)

    def positions(self, cluster: str, group: str) -> Offsets:
        """Read the committed offsets of a group."""
        answer: Offsets = {}
        for place, found in self._admin(cluster).list_group_offsets(group)[group].items():
            answer.setdefault(place.topic, {})[place.partition] = found.offset
        return answer

    def connect_positions(self, cluster: str, topic: str) -> Offsets:
        """Read what MirrorMaker 2 has committed; the offset after the last record it names."""
        answer: Offsets = {}
        for placed in client.read(self.clusters[cluster], [topic]):
            place = json.loads(placed.record.key or b"[]")[-1]
            if "topic" in place and "group" not in place:
                parts = answer.setdefault(place["topic"], {})
                parts.pop(place["partition"], None)
                if placed.record.value is not None:
                    parts[place["partition"]] = json.loads(placed.record.value)["offset"] + 1
        return answer

    def search(self, cluster: str, topic: str, words: list[str]) -> dict[str, int]:
        """Count the records of a topic, and those in whose key or value a word stands."""
        records = hits = 0
        for placed in client.read(self.clusters[cluster], [topic]):
            record = placed.record
            content = (record.key or b"") + b"\0" + (record.value or b"")
            records += 1
            hits += any(word.encode() in content for word in words)
        return {"records": records, "hits": hits}

    def groups(self, cluster: str) -> list[str]:
        """Name every consumer group."""
        return sorted(group["group_id"] for group in self._admin(cluster).list_groups())

    def grow(self, cluster: str, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        self._admin(cluster).create_partitions({topic: partitions})

    def move(self, cluster: str, group: str, offsets: dict[str, dict[str, int]]) -> dict[str, str]:
        """Set committed offsets of a group that has no members; the first makes the group."""
        wanted = {
            TopicPartition(topic, int(partition)): OffsetAndMetadata(offset, "", -1)
            for topic, parts in offsets.items()
            for partition, offset in parts.items()
        }
        # The first group of a cluster makes the brokers create their topic of offsets.
        deadline = time.monotonic() + COORDINATOR_SECONDS
        while True:
            with contextlib.suppress(CoordinatorNotAvailableError):
                result = self._admin(cluster).alter_group_offsets(group, wanted)
                if not any(error.retriable for error in result.values()):
                    break
            if time.monotonic() > deadline:
                raise SystemExit(f"no coordinator of group {group}")
            time.sleep(0.5)
        return {f"{p.topic}-{p.partition}": error.__name__ for p, error in result.items()}

    def truncate(self, cluster: str, offsets: dict[str, dict[str, int]]) -> None:
        """Delete the records below the given offsets."""
        wanted = {
            TopicPartition(topic, int(partition)): offset
            for topic, parts in offsets.items()
            for partition, offset in parts.items()
        }
        self._admin(cluster).delete_records(wanted)

    def members(self, cluster: str, group: str) -> dict[str, Any]:
        """Return the state of a group and the hosts of its members."""
        admin = self._admin(cluster)
        found = admin._manager.run(_described, admin, group)
        return {
            "state": found.group_state,
            "hosts": [member.client_host for member in found.members],
        }

    def grant(self, cluster: str, rows: list[dict[str, str]]) -> None:
        """Give permissions: maps with principal, resource, name, pattern and operation."""
        self._admin(cluster).create_acls([
            ACL(row["principal"], "*", ACLOperation[row["operation"]], ACLPermissionType.ALLOW,
                ResourcePattern(*_pattern(row)))
            for row in rows
        ])  # fmt: skip

    def revoke(self, cluster: str, rows: list[dict[str, str]]) -> int:
        """Take permissions away; returns how many there were."""
        answers = self._admin(cluster).delete_acls([
            ACLFilter(row["principal"], "*", ACLOperation[row["operation"]],
                      ACLPermissionType.ALLOW, ResourcePatternFilter(*_pattern(row)))
            for row in rows
        ])  # fmt: skip
        return sum(len(matches) for _, matches, _ in answers)

    def set_password(self, cluster: str, user: str, mechanism: str, password: str) -> None:
        """Give a user another password; connections that are there stay logged in."""
        named = ScramMechanism[mechanism.replace("-", "_")]
        login = UserScramCredentialUpsertion(user, named, password)
        answers = self._admin(cluster).alter_user_scram_credentials([login])
        if answers != {user: None}:
            raise RuntimeError(f"{user}: {answers}")

    def move_connect(self, cluster: str, topic: str, offsets: dict[str, dict[str, int]]) -> None:
        """Set what MirrorMaker 2 has committed while it is stopped.

        :param topic: its topic of offsets, to which a record like its last one is added.
        :param offsets: next offset to mirror.
        """
        keys: dict[tuple[str, int], bytes] = {}
        for placed in client.read(self.clusters[cluster], [topic]):
            key = placed.record.key or b"[]"
            place = json.loads(key)[-1]
            if "topic" in place and "group" not in place:
                keys[place["topic"], place["partition"]] = key
        producer = client.producer(self.clusters[cluster])
        futures = [
            producer.send(
                topic, key=keys[name, int(partition)], value=b'{"offset":%d}' % (offset - 1)
            )
            for name, parts in offsets.items()
            for partition, offset in parts.items()
        ]
        for future in futures:
            future.get(timeout=30)
        producer.close(timeout=10)

    def tamper(self, *, cluster: str, into: str, copies: list[dict[str, Any]]) -> list[int]:
        """Produce copies of source records onto another cluster.

        :param cluster: where the originals are read; ``into``: where the copies go.
        :param copies: maps with ``topic`` (of the originals), ``target`` (of the copies),
            ``partition``, ``begin`` (offset of the first original), ``count``, ``how`` (a key of
            :data:`CHANGES`) and, if it is another one, ``to`` (the partition of the copies).
        :returns: records acknowledged, by copy.
        """
        starts: Offsets = {}
        for copy in copies:
            parts = starts.setdefault(copy["topic"], {})
            parts[copy["partition"]] = min(
                copy["begin"], parts.get(copy["partition"], copy["begin"])
            )
        found = {
            (placed.topic, placed.partition, placed.offset): placed.record
            for placed in client.read(self.clusters[cluster], list(starts), starts)
        }
        producer = client.producer(self.clusters[into])
        counts = []
        for copy in copies:
            begin, topic, partition = copy["begin"], copy["topic"], copy["partition"]
            originals = [found[topic, partition, begin + n] for n in range(copy["count"])]
            futures = [
                client.send(producer, copy["target"], record, copy.get("to", partition))
                for record in CHANGES[copy["how"]](originals)
            ]
            for future in futures:
                future.get(timeout=30)
            counts.append(len(futures))
        producer.close(timeout=10)
        return counts


def _pattern(row: Mapping[str, str]) -> tuple[Any, str, Any]:
    kind = ResourceType[row["resource"].upper().replace("-", "_")]
    return kind, row["name"], ACLResourcePatternType[row["pattern"].upper()]


async def _described(admin: Any, group: str) -> Any:
    # The client's own call fails on Connect's workers: it decodes what they were assigned.
    coordinators = await admin._find_coordinator_ids([group])
    request = admin._describe_groups_request([group])
    answer = await admin._manager.send(request, node_id=coordinators[group])
    return answer.groups[0]


def _altered(record: Record) -> Record:
    value = record.value or b"x"
    return dataclasses.replace(record, value=value[:-1] + bytes([value[-1] ^ 1]))


def _headed(record: Record) -> Record:
    return dataclasses.replace(record, headers=(*record.headers, ("added", b"on the way")))


def _retimed(record: Record) -> Record:
    # Further than the next record with the same key, which would be taken for its copy.
    return dataclasses.replace(record, timestamp_ms=record.timestamp_ms + 7919)


def _foreign(record: Record) -> Record:
    return dataclasses.replace(record, key=b"foreign-" + (record.key or b""), value=b"foreign")


def _each(change: Callable[[Record], Record]) -> Callable[[list[Record]], list[Record]]:
    return lambda records: [change(record) for record in records]


def _swapped(records: list[Record]) -> list[Record]:
    """The first and the last that differs from it in key and value exchange their values."""
    first, swapped = records[0], list(records)
    # With one key, each would be the other's copy at another time.
    at, last = next(
        (at, other)
        for at, other in reversed([*enumerate(records)])
        if other.key != first.key and other.value != first.value
    )
    swapped[0] = dataclasses.replace(first, value=last.value)
    swapped[at] = dataclasses.replace(last, value=first.value)
    return swapped


def _exchanged(records: list[Record]) -> list[Record]:
    """The first two neighbours of one key exchange their places."""
    for at, (earlier, later) in enumerate(itertools.pairwise(records)):
        if earlier.key is not None and earlier.key == later.key:
            return [*records[:at], later, earlier, *records[at + 2 :]]
    raise SystemExit("no two neighbours have one key")


CHANGES: dict[str, Callable[[list[Record]], list[Record]]] = {
    "same": lambda records: records,
    "altered": _each(_altered),
    "headers": _each(_headed),
    "timestamp": _each(_retimed),
    "foreign": _each(_foreign),
    "swapped": _swapped,
    "exchanged": _exchanged,
}
"""How copies differ from their originals."""


READS = ("topics", "ends", "starts", "positions", "connect_positions")
"""Steps that change nothing: they may be repeated."""


def answered(probe: Probe, steps: list[dict[str, Any]]) -> list[Any]:
    """Take the steps in order."""
    answers = []
    for step in steps:
        arguments = dict(step)
        name = arguments.pop("do")
        if name.startswith("_"):
            raise SystemExit(f"unknown step {name}")
        answers.append(getattr(probe, name)(**arguments))
    return answers


def main() -> int:
    """Answer line by line."""
    probe = Probe({})
    for line in sys.stdin:
        document = json.loads(line)
        read_only = all(step["do"] in READS for step in document["steps"])
        # Clients opened earlier may not know yet that a broker was restarted.
        if not read_only or document["clusters"] != probe.clusters:
            probe.close()
            probe = Probe(document["clusters"])
        try:
            answers = answered(probe, document["steps"])
        except KafkaError:
            if not read_only:
                raise
            probe.close()
            probe = Probe(document["clusters"])
            answers = answered(probe, document["steps"])
        print(json.dumps(answers), flush=True)
    probe.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
