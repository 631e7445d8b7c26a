"""Numbers hold together: what is not on the target is not verified, and partitions add up."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import TopicPartition
from parity_mirror import Mirror
from parity_records import Content, jars_directory
from parity_world import T0, World, no_kafka
from pyspark.sql import SparkSession

from mirror_report.config import Flow
from mirror_report.engines import MM2

FLOW = Flow(name="kept", source="a", target="z", include="t.*", engine=MM2, group_id="g")


def record(number: int) -> Content:
    return b"%d" % number, b"value", T0 + number * 10_000, None


def test_what_expired_unread_is_reported_by_partition(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path / "state", FLOW)
    for partition in (0, 1):
        world.write("a", "t", partition, *(record(i) for i in range(20)))
    world.copy(FLOW, "t")
    # The source has lost the first ten of a partition; copies of six of them are on the target.
    world.log("a", "t").start[0] = 10
    del world.log("z", "t").partitions[0][:4]
    world.store.commit("baseline", {"kept": {"recorded_at_ms": 1, "topics": {}}})
    with no_kafka(world):
        for _ in range(2):
            (found,) = world.run().topics
            assert found.counts["unverifiable"] == 10
            assert found.partitions["unverifiable"] == {"0": 10}


@pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")
def test_a_position_past_the_end_of_a_recreated_log_says_nothing_of_it(mirror: Mirror) -> None:
    topic = mirror.topic("t", partitions=1)
    mirror.produce(topic, 50)
    for i in range(5):
        mirror.producers[1].send(topic, value=b"%d" % i, timestamp_ms=T0).get(30)
    mirror.renew(topic, 0)
    mirror.produce(topic, 20)
    mirror.commit_at({TopicPartition(topic, 0): 50})
    for _ in range(2):
        (found,) = mirror.run().topics
        assert found.verified_records == 0
        assert (found.in_flight_records, found.counts["missing"]) == (20, 0)
