"""What is derived from how far a cluster is: fetches, buffers and the heap that holds them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirror_model import tuned
from mirror_model.tuned import Distance

from tests.model.conftest import Site, mentioned, refused
from tests.model.test_instances import instance

MIB = 1 << 20
FAR = {"round_trip_ms": 150, "bandwidth_mbit": 1000}
distances = st.builds(Distance, st.integers(1, 2000), st.integers(1, 100_000))


def mebibytes(site: Site) -> int:
    return tuned.heap_mib(instance(site).heap)


@given(distances)
def test_a_full_link_is_filled_as_far_as_the_bounds_allow(distance: Distance) -> None:
    read, written = tuned.consumer(distance), tuned.producer(distance)
    fetch = read["max.partition.fetch.bytes"]
    assert fetch >= min(2 * distance.on_the_way, 16 * MIB)
    assert fetch <= read["fetch.max.bytes"] <= 50 * MIB
    assert written["batch.size"] * 5 >= min(distance.on_the_way, 5 * tuned.MOST_BATCH)
    assert 16 * MIB <= written["buffer.memory"] <= 64 * MIB
    assert written["buffer.memory"] >= 2 * written["max.request.size"]


@given(distances, st.integers(2, 4))
def test_producers_that_share_a_link_share_what_they_buffer(
    distance: Distance, number: int
) -> None:
    alone = tuned.producer(distance)
    shared = tuned.producer(distance, number)
    assert shared["buffer.memory"] <= alone["buffer.memory"]
    assert shared["buffer.memory"] * number >= alone["buffer.memory"] - number * MIB
    assert {**shared, "buffer.memory": 0} == {**alone, "buffer.memory": 0}


@given(distances, distances)
def test_what_is_farther_is_never_given_less(one: Distance, other: Distance) -> None:
    near, far = sorted((one, other), key=lambda distance: distance.on_the_way)
    for key in ("max.partition.fetch.bytes", "fetch.max.bytes"):
        assert tuned.consumer(near)[key] <= tuned.consumer(far)[key]
    for key in ("batch.size", "buffer.memory"):
        assert tuned.producer(near)[key] <= tuned.producer(far)[key]
    assert tuned.readers(near) <= tuned.readers(far)


def test_guarantees_are_those_of_a_near_cluster() -> None:
    for key in ("acks", "enable.idempotence", "max.in.flight.requests.per.connection"):
        assert tuned.producer(Distance(150, 10_000))[key] == tuned.producer(tuned.NEAR)[key]


@pytest.mark.parametrize(
    ("engine", "prefix", "others"),
    [("mm1", "", set()), ("mm2", "east.consumer.", {"east->west.tasks.max"})],
)
def test_only_what_reads_the_far_cluster_is_changed(
    site: Site, mm2_site: Site, engine: str, prefix: str, others: set[str]
) -> None:
    made = site if engine == "mm1" else mm2_site
    before = instance(made)
    made.instance["distance"] = {"east": FAR}
    after = instance(made)
    changed = {
        name
        for each in before.properties
        for name, value in after.properties[each].items()
        if before.properties[each].get(name) != value
    }
    keys = ("fetch.max.bytes", "max.partition.fetch.bytes", "receive.buffer.bytes")
    assert changed == {*(prefix + key for key in keys), *others}
    assert tuned.heap_mib(after.heap) > tuned.heap_mib(before.heap)
    made.instance["distance"] = {"west": {"round_trip_ms": 150, "bandwidth_mbit": None}}
    assert tuned.heap_mib(instance(made).heap) > tuned.heap_mib(before.heap)


def test_what_is_typed_wins(site: Site) -> None:
    typed = {"consumer_properties": {"fetch.max.bytes": 1}, "heap": "3g", "num_streams": 2}
    site.instance.update({"distance": {"east": FAR}, **typed})
    made = instance(site)
    assert made.properties["consumer.properties"]["fetch.max.bytes"] == 1
    assert made.heap == "3g"
    assert made.environment["MM_NUM_STREAMS"] == 2


def test_streams_and_tasks_follow_distance_and_hosts(site: Site, mm2_site: Site) -> None:
    def numbers(hosts: int) -> tuple[int, int]:
        for made in (site, mm2_site):
            made.instance["hosts"] = [f"mirror{n}" for n in range(1, hosts + 1)]
        connectors = instance(mm2_site).properties["mm2.properties"]
        return instance(site).environment["MM_NUM_STREAMS"], connectors["east->west.tasks.max"]

    assert [numbers(hosts) for hosts in (1, 2, 3)] == [(1, 2), (1, 2), (1, 3)]
    for made in (site, mm2_site):
        made.instance["distance"] = {"east": FAR}
    assert [numbers(hosts) for hosts in (1, 2, 3)] == [(3, 3), (3, 6), (3, 9)]
    mm2_site.flow["tasks_max"] = 1
    assert numbers(2) == (3, 1)


@pytest.mark.parametrize("value", [100 * MIB, str(100 * MIB)])
def test_a_heap_follows_what_is_typed(site: Site, mm2_site: Site, value: Any) -> None:
    before = mebibytes(site)
    site.instance["producer_properties"] = {"buffer.memory": value}
    assert mebibytes(site) >= before + 64
    site.instance["num_streams"] = 4
    assert mebibytes(site) >= before + 64 + 3 * 16
    before = mebibytes(mm2_site)
    for flow in mm2_site["flows"]:
        flow["tasks_max"] = 8
    alone = mebibytes(mm2_site)
    assert alone > before
    mm2_site.instance["hosts"] = ["mirror1", "mirror2"]
    assert mebibytes(mm2_site) < alone


def test_removed_properties_are_kafkas(site: Site) -> None:
    before = mebibytes(site)
    site.instance["consumer_properties"] = {"fetch.max.bytes": None}
    assert mebibytes(site) >= before + 64


def test_a_heap_that_holds_too_little_is_mentioned(site: Site) -> None:
    site.instance["heap"] = "64m"
    mentioned(site, "mirrormaker_instances.mirrormaker.heap: 64m cannot hold", "MiB; remove it")


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        ({"eats": FAR}, ["distance.eats", "did you mean 'east'?"]),
        ({"north": FAR}, ["distance.north", "no flow of it reads or writes 'north'"]),
        ({"east": {}}, ["distance.east.round_trip_ms", "is missing"]),
        ({"east": {"round_trip_ms": 0}}, ["distance.east.round_trip_ms", "at least 1"]),
        ({"east": {"round_trip_ms": 50, "rtt": 1}}, ["distance.east", "unknown key 'rtt'"]),
        ({"east": 50}, ["distance.east", "must be a map"]),
    ],
)
def test_a_distance_that_cannot_be_is_refused(
    site: Site, distance: dict[str, Any], words: list[str]
) -> None:
    site.instance["distance"] = distance
    refused(site, *words)
