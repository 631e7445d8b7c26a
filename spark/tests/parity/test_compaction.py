"""A compacted topic on two real clusters, after compaction that really happened."""

from __future__ import annotations

from dataclasses import replace

import pytest
from parity_mirror import T0, Mirror, counts, eventually
from parity_records import jars_directory

from mirror_report.config import Budget
from mirror_report.model import ParityResult, TopicParity

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

EAGER = {
    "cleanup_policy": "compact", "segment_bytes": "1048576", "segment_ms": "200",
    "min_cleanable_dirty_ratio": "0", "delete_retention_ms": "0",
}  # fmt: skip


class Scenario:
    """A topic of twenty keys with faults, one without, and what each run says of them."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        mirror.settings = replace(mirror.settings, budget=Budget(compacted_hours=0))
        self.results: list[ParityResult] = []
        for name in ("faulty", "whole"):
            mirror.topic(name, partitions=1, **EAGER)
            self.fill(name)
        self.copy("whole")
        self.copy("faulty", missing=b"key-3", stale=b"key-4")
        mirror.producers[1].send(self.topic("faulty"), key=b"alien", value=b"?").get(30)
        for name in ("faulty", "whole"):
            self.compact(name)
        self.found = {name: self.logs(name) for name in ("faulty", "whole")}
        self.run()
        self.run()
        mirror.producers[0].send(
            self.topic("whole"), key=b"key-5", value=b"new", timestamp_ms=T0 + 900_000
        ).get(30)
        self.run()

    def topic(self, name: str) -> str:
        """Name of one of them on both clusters."""
        return f"{self.mirror.prefix}.{name}"

    def fill(self, name: str) -> None:
        """Three rounds of values, and tombstones for the last five keys."""
        for i in range(60):
            self.mirror.producers[0].send(
                self.topic(name), key=b"key-%d" % (i % 20), value=b"%d" % i, timestamp_ms=T0 + i
            )
        for i in range(15, 20):
            self.mirror.producers[0].send(
                self.topic(name), key=b"key-%d" % i, value=None, timestamp_ms=T0 + 60 + i
            )
        self.mirror.producers[0].flush()

    def copy(self, name: str, missing: bytes = b"", stale: bytes = b"") -> None:
        """Mirror all but one key, and but the last value of another."""
        for record in self.mirror.read(0, self.topic(name)):
            last = int(record.value or 60) >= 40
            if record.key != missing and not (record.key == stale and last):
                self.mirror.write(record)
        self.mirror.producers[1].flush()
        self.mirror.commit(self.topic(name))

    def compact(self, name: str) -> None:
        """Wait until both logs hold no key twice; a filler ends their segments."""
        for side in (0, 1):
            eventually(lambda side=side: self.is_compacted(side, name), 60)
        self.mirror.commit(self.topic(name))

    def is_compacted(self, side: int, name: str) -> bool:
        """Write the filler, and see whether only it has several records."""
        self.mirror.producers[side].send(
            self.topic(name), key=b"filler", value=b"same", timestamp_ms=T0 + 700_000
        ).get(30)
        keys = [record.key for record in self.mirror.read(side, self.topic(name))]
        return all(keys.count(key) == 1 for key in set(keys) - {b"filler"})

    def logs(self, name: str) -> tuple[int, int]:
        """Records left on both sides, without what only ended segments."""
        left = [
            [
                record
                for record in self.mirror.read(side, self.topic(name))
                if record.key != b"filler"
            ]
            for side in (0, 1)
        ]
        return len(left[0]), len(left[1])

    def run(self) -> None:
        """Compare."""
        self.results.append(self.mirror.run())

    def of(self, run: int, name: str) -> TopicParity:
        """What a run says of a topic."""
        (found,) = [topic for topic in self.results[run].topics if topic.topic == self.topic(name)]
        return found


@pytest.fixture(scope="module")
def scenario(one_mirror: Mirror) -> Scenario:
    return Scenario(one_mirror)


def test_a_topic_whose_sides_were_compacted_is_whole(scenario: Scenario) -> None:
    assert max(scenario.found["whole"]) <= 20, "compaction really happened: 75 records were written"
    found = scenario.of(0, "whole")
    assert (found.strategy, found.status, counts(found)) == ("latest_by_key", "verified", {})
    assert found.verified_records == 16, "five keys were deleted, and a filler was added"
    assert found.source_records == found.target_records == 16
    assert found.verified_through_ms is not None
    assert found.verified_through_ms > (found.newest_due_ms or 0) > T0


def test_a_missing_key_a_stale_value_and_a_foreign_key_are_each_found(scenario: Scenario) -> None:
    assert max(scenario.found["faulty"]) <= 21
    found = scenario.of(0, "faulty")
    assert (found.status, counts(found)) == (
        "mismatch", {"missing": 1, "corrupt_value": 1, "extra": 1},
    )  # fmt: skip
    assert (found.verified_records, found.source_records, found.target_records) == (14, 16, 16)
    assert {kind: [sample.side for sample in some] for kind, some in found.samples.items()} == {
        "missing": ["source"], "corrupt_value": ["source", "target"], "extra": ["target"],
    }  # fmt: skip


def test_a_scan_is_not_made_again_while_nothing_is_new(scenario: Scenario) -> None:
    assert scenario.results[1].spark_started is False
    found = scenario.of(1, "faulty")
    assert (found.status, counts(found)) == ("mismatch", {"missing": 1, "corrupt_value": 1})
    assert found.accounted["extra"] == 1
    assert scenario.of(1, "whole").verified_records == 16


def test_a_key_with_a_newer_value_is_in_flight_until_that_is_mirrored(scenario: Scenario) -> None:
    found = scenario.of(2, "whole")
    assert (found.status, found.verified_records, found.in_flight_records) == ("verified", 15, 1)
    assert counts(scenario.of(2, "faulty")) == {"missing": 1, "corrupt_value": 1}
