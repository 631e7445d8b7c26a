"""Offsets to read again of buckets that differ, as fresh snapshots show their topics."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mirror_report.model import PartitionSnapshot, another_topic
from mirror_report.parity import Key, bucket_key, partition_key
from mirror_report.parity.plan import buckets, unreadable
from mirror_report.parity.plan.positions import gaps_until
from mirror_report.parity.plan.ranges import Range, record_bytes
from mirror_report.parity.plan.snapshots import FlowSnapshots, find
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import (
    BEHIND_ALL,
    NEVER,
    SIDES,
    SLACK_MS,
    Manifest,
    Side,
    TopicKey,
    Unreadable,
    fed_by,
)

# Rows of :func:`frames.status.statuses`.
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Newer:
    """Offsets of some topics by now.

    :param starts: partition -> first offset still there.
    :param following: partition -> next offset to digest.
    :param ranges: what is new since the digests.
    """

    starts: Mapping[Key, int]
    following: Mapping[Key, int]
    ranges: Sequence[Range]


@dataclass(frozen=True)
class Differences:
    """Buckets that differ, and the logs they lie in.

    :param snapshots: fresh ones, of the flows that can be confirmed.
    :param extents: bucket -> where its digested records lie, by partition.
    :param unread: topics of which something is left for a later run: nothing newer is read.
    """

    manifest: Manifest
    topics: tuple[TopicPlan, ...]
    snapshots: FlowSnapshots
    extents: Mapping[Key, Sequence[Mapping[str, Any]]]
    unread: Collection[TopicKey] = ()

    def readable(self, rows: Rows) -> Rows:
        """All but what an earlier run settled and cannot be read again: that stays as it was."""
        starts = self.newer(rows).starts
        return [
            row
            for row in rows
            if not row["settled"]
            or all(
                extent["off_min"] >= starts.get(partition_key(extent), -1)
                for extent in self.extents[bucket_key(row)]
            )
        ]

    def newer(self, rows: Rows) -> Newer:
        """Offsets that the topics of some buckets hold now."""
        touched = {(row["flow"], row["topic"]) for row in rows}
        starts: dict[Key, int] = {}
        following: dict[Key, int] = {}
        ranges: list[Range] = []
        observed = (topic for topic in self.topics if topic.flow in self.snapshots)
        for topic in (topic for topic in observed if topic.key in touched):
            for key in ((topic.flow, side, origin) for side, origin in topic.sides):
                logs, read = self._logs(*key)
                for partition, offset in read.items():
                    starts[*key, partition] = BEHIND_ALL
                    following[*key, partition] = offset
                for partition, log in logs.items():
                    starts[*key, partition] = log.log_start
                    begin = max(log.log_start, read.get(partition, log.log_start))
                    end = begin if topic.key in self.unread else self._end(log, *key)
                    ranges.append(Range(*key, topic.topic, partition, begin, end))
        return Newer(starts, following, ranges)

    def digested(self, rows: Rows) -> list[Range]:
        """Ranges of the records that the digests of some buckets stand for, as far as present."""
        parts = []
        for extent in (extent for row in rows for extent in self.extents[bucket_key(row)]):
            flow, side, origin = extent["flow"], extent["side"], extent["origin"]
            log = self._logs(flow, side, origin)[0].get(extent["partition"])
            if log is None:
                continue
            start = max(log.log_start, extent["off_min"])
            end = min(self._end(log, flow, side, origin), extent["off_max"] + 1)
            parts.append(
                Range(
                    flow, side, origin, extent["topic"], extent["partition"], start, end,
                    record_bytes(find(self.snapshots, flow, side, origin)),
                )
            )  # fmt: skip
        return [part for part in parts if part.records > 0]

    def sought(self, rows: Rows) -> list[Range]:
        """Ranges copied last before the baseline, where these buckets may have records."""
        parts = []
        for flow, topic in sorted({(row["flow"], row["topic"]) for row in self._untouched(rows)}):
            begun = self.manifest.sides.get((flow, "target", topic))
            if begun is None:
                continue
            logs = self._logs(flow, "target", topic)[0]
            size = record_bytes(find(self.snapshots, flow, "target", topic))
            parts += [
                Range(
                    flow, "target", topic, topic, partition,
                    max(offset, logs[partition].log_start), begun.first[partition], size,
                )
                for partition, offset in begun.sought.items()
                if partition in logs
            ]  # fmt: skip
        return [part for part in parts if part.records > 0]

    def hidden(
        self, rows: Rows, starts: Mapping[Key, int], unread_records: Iterable[Unreadable]
    ) -> Iterator[dict[str, Any]]:
        """Of each bucket, what cannot be seen of it (:data:`frames.classify.CANDIDATES_SCHEMA`).

        :param starts: of :meth:`newer`.
        :param unread_records: records that cannot be read.
        """
        gaps = gaps_until(self.manifest)
        beyond = unreadable.one_sided(buckets.labels(self.manifest, unread_records))
        gone = {
            (*bucket_key(extent), extent["side"])
            for extents in self.extents.values()
            for extent in extents
            if extent["off_min"] < starts.get(partition_key(extent), -1)
        }
        for row in rows:
            key, topic = bucket_key(row), (row["flow"], row["topic"])
            target = self.manifest.sides.get((row["flow"], "target", row["topic"]))
            # No record of the topic younger than this had to be removed from the target.
            lanes = [row["lane"]] if row["lane"] >= 0 else target.log_start if target else ()
            allowed = target.allowed_until(lanes) if target else None
            columns: dict[str, Any] = {
                "allowed_from_ms": None if allowed is None else allowed + SLACK_MS
            }
            for side in SIDES:
                columns[f"{side}_gap"] = (
                    row["bucket"] <= gaps.get((*topic, side), NEVER) or (*key, side) in beyond
                )
                columns[f"{side}_gone"] = (*key, side) in gone
            left = row["target_left"] if columns["target_gap"] else 0
            nobody_knows = left is None or (*key, "target") in beyond
            columns["target_most"] = None if nobody_knows else left
            columns["target_own"] = self._left(row, starts)
            columns["target_unread"] = self._left_unread(row, starts)
            yield columns

    def _left(self, row: Mapping[str, Any], starts: Mapping[Key, int]) -> int:
        """How many digested records of a bucket have left the target at most.

        Between them there may be others that left: what is still read of the bucket decides.
        """
        return sum(
            min(int(extent["n"]), max(0, starts.get(partition_key(extent), 0) - extent["off_min"]))
            for extent in self.extents[bucket_key(row)]
            if extent["side"] == "target"
        )

    def _left_unread(self, row: Mapping[str, Any], starts: Mapping[Key, int]) -> int:
        """How many offsets of a bucket's lane have left the target before they were digested."""
        flow, topic = row["flow"], row["topic"]
        target = self.manifest.sides.get((flow, "target", topic))
        return sum(
            max(0, starts.get((flow, "target", topic, partition), 0) - offset)
            for partition, offset in (target.next if target else {}).items()
            if row["lane"] < 0 or row["lane"] == partition
        )

    def _untouched(self, rows: Rows) -> Iterator[Mapping[str, Any]]:
        """Buckets of which records may have been copied before the baseline."""
        sides = self.manifest.sides
        for row in rows:
            if any(
                (begun := sides.get((extent["flow"], extent["side"], extent["origin"])))
                and extent["off_min"] < begun.untouched.get(extent["partition"], 0)
                for extent in self.extents[bucket_key(row)]
            ):
                yield row

    def _logs(
        self, flow: str, side: Side, origin: str
    ) -> tuple[Mapping[int, PartitionSnapshot], Mapping[int, int]]:
        """Partitions of a topic now (none if it was recreated), and how far each was read."""
        topic = find(self.snapshots, flow, side, origin)
        begun = self.manifest.sides.get((flow, side, origin))
        following = begun.next if begun is not None else {}
        if topic is None or (begun and another_topic(begun.topic_id, topic.topic_id)):
            return {}, following
        return topic.partitions, following

    def _end(self, log: PartitionSnapshot, flow: str, side: Side, origin: str) -> int:
        via, _ = fed_by(flow, origin)
        return log.end_for(self.snapshots[via].flow.isolation(side))
