"""What cannot be read or used is reported for its part, and the state stays as it was."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from parity_world import T0, World, no_kafka
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_report.config import Flow
from mirror_report.model import ClusterSnapshot, ReportError
from mirror_report.parity import ParityError, run
from mirror_report.parity.spark.row_storage import RowStorage

EAST = Flow(name="east", source="a", target="z", include="e.*", group_id="g")
WEST = Flow(name="west", source="b", target="z", include="w.*", group_id="g")


def fill(world: World, flow: Flow, name: str, count: int = 20) -> None:
    known = len(world.log(flow.source, name).partitions[0])
    for i in range(known, known + count):
        world.write(flow.source, name, 0, (b"%d" % i, b"value", T0 + i * 1000, None))
    world.copy(flow, name)


@pytest.fixture(scope="module")
def verified(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a state in which two flows are verified."""
    world = World(spark, tmp_path_factory.mktemp("verified"), EAST, WEST)
    fill(world, EAST, "e1")
    fill(world, EAST, "e2")
    fill(world, WEST, "w1")
    with no_kafka(world):
        assert {topic.status for topic in world.run().topics} == {"verified"}
    return world.store.directory


@pytest.fixture
def world(spark: SparkSession, verified: Path, tmp_path: Path) -> Iterator[World]:
    """Take a copy of that state, and the clusters as they were then."""
    restored = World(spark, tmp_path / "state", EAST, WEST)
    shutil.copytree(verified, restored.store.directory)
    fill(restored, EAST, "e1")
    fill(restored, EAST, "e2")
    fill(restored, WEST, "w1")
    restored.runs = 1
    with no_kafka(restored):
        yield restored


def state(world: World) -> dict[str, bytes]:
    """All that is remembered, reports aside."""
    return {
        str(path.relative_to(world.store.directory)): path.read_bytes()
        for path in sorted(world.store.directory.rglob("*"))
        if path.is_file() and "reports" not in path.parts
    }


def test_the_copy_of_the_state_needs_no_spark(world: World) -> None:
    assert world.run().spark_started is False


def test_a_cluster_that_is_away_is_unknown_and_the_others_are_judged(world: World) -> None:
    world.away.add("b")
    fill(world, EAST, "e1")
    result = world.run()
    assert {topic.topic: topic.status for topic in result.topics} == {
        "e1": "verified",
        "e2": "verified",
    }
    assert [(finding.kind, finding.severity, finding.flow) for finding in result.findings] == [
        ("parity_unavailable", "unknown", "west")
    ]
    assert "b does not answer" in result.findings[0].message
    world.away.clear()
    assert {topic.topic for topic in world.run().topics} == {"e1", "e2", "w1"}


def test_a_topic_that_may_not_be_read_is_unknown_and_hides_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a", "e1", 0, (b"late", b"value", T0 + 1000, None))
    assert {topic.topic: topic.in_flight_records for topic in world.run().topics}["e1"] > 0
    world.copy(EAST, "e1")
    whole = World.target

    def hidden(self: World, flow: Flow) -> ClusterSnapshot:
        taken = whole(self, flow)
        topics = {name: topic for name, topic in taken.topics.items() if name != "e1"}
        return replace(taken, topics=topics, errors={"e1": "READ is not allowed"})

    with monkeypatch.context() as patch:
        patch.setattr(World, "target", hidden)
        found = {topic.topic: topic for topic in world.run().topics}
    assert (found["e1"].status, found["e1"].reason) == ("unknown", "target: READ is not allowed")
    assert (found["e1"].due_records, found["e2"].status) == (None, "verified")
    found = {topic.topic: topic for topic in world.run().topics}
    assert (found["e1"].status, found["e1"].verified_records) == ("verified", 21)


def test_a_topic_that_vanishes_while_it_is_read_is_unknown_and_the_others_are_judged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world, EAST, "e1")
    fill(world, EAST, "e2")
    whole = World.read

    def vanished(self: World, session: SparkSession, ranges: Any, connect: Any) -> Any:
        if any(wanted.origin == "e1" for wanted in ranges):
            self.logs["a"].pop("e1", None)
            raise PySparkException("This server does not host this topic-partition")
        return whole(self, session, ranges, connect)

    # Patched where the engine looks it up.
    from mirror_report.parity.spark import source

    with monkeypatch.context() as patch:
        patch.setattr(source, "read", lambda *given: vanished(world, *given))
        result = world.run()
    found = {topic.topic: topic for topic in result.topics}
    assert (found["e1"].status, "vanished" in found["e1"].reason) == ("unknown", True)
    assert (found["e2"].status, found["e2"].verified_records) == ("verified", 40)
    assert found["w1"].status == "verified"
    result = world.run()
    assert {topic.topic for topic in result.topics} == {"e2", "w1"}
    assert [(finding.kind, finding.topic) for finding in result.findings] == [("skipped", "e1")]
    result = world.run()
    assert (result.findings, result.spark_started) == ([], False), "reported once"


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a cut off file": (lambda path: _parquet(path).write_bytes(b"PAR1"), "damaged or gone"),
    "a lost file": (lambda path: _parquet(path).unlink(), "damaged or gone"),
    "a lost directory": (lambda path: shutil.rmtree(path / "parity"), "damaged or gone"),
    "a manifest cut off": (lambda path: _cut(path / "parity.json"), "is damaged"),
    "a manifest without its rows": (lambda path: _without(path, "digests"), "is damaged"),
    "another release's manifest": (lambda path: _with(path, "format", 99), "Install the release"),
    "other columns": (lambda path: _with(path, "columns", "former int"), "keeps other columns"),
}


def _parquet(path: Path) -> Path:
    return next((path / "parity").rglob("*.parquet"))


def _cut(path: Path) -> None:
    path.write_text(path.read_text()[:-20])


def _with(path: Path, name: str, value: Any) -> None:
    document = json.loads((path / "parity.json").read_text())
    document["data"][name] = value
    (path / "parity.json").write_text(json.dumps(document))


def _without(path: Path, name: str) -> None:
    document = json.loads((path / "parity.json").read_text())
    del document["data"][name]
    (path / "parity.json").write_text(json.dumps(document))


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_state_is_refused_with_the_cure_and_left_alone(world: World, kind: str) -> None:
    fill(world, EAST, "e1")
    damage, message = DAMAGE[kind]
    damage(world.store.directory)
    before = state(world)
    with pytest.raises(ReportError, match=message) as error:
        world.run()
    assert f"mv {world.store.directory}/parity.json" in str(error.value), "the cure"
    now = state(world)
    assert {name: now.get(name) for name in before} == before


def test_the_cure_of_a_damaged_state_compares_everything_again(world: World) -> None:
    _parquet(world.store.directory).write_bytes(b"PAR1")
    shutil.rmtree(world.store.directory / "parity")
    (world.store.directory / "parity.json").unlink()
    result = world.run()
    assert {topic.status for topic in result.topics} == {"verified"}
    assert result.findings == []


def test_a_new_baseline_drops_what_rested_on_the_old_one_even_if_it_is_damaged(
    world: World,
) -> None:
    _parquet(world.store.directory).write_bytes(b"PAR1")
    start = {"0": 20, "1": 0}
    begun = {"source": start, "required": start, "target": start, "recorded_at_ms": 1,
             "source_id": None, "target_id": None}  # fmt: skip
    world.store.commit(
        "baseline",
        {
            "east": {"recorded_at_ms": 1, "topics": {"e1": begun, "e2": begun}},
            "west": {"recorded_at_ms": 1, "topics": {"w1": begun}},
        },
    )
    fill(world, EAST, "e1", 5)
    result = world.run()
    found = {topic.topic: topic.source_records for topic in result.topics}
    assert (found, result.findings) == ({"e1": 5, "e2": 0, "w1": 0}, [])


def test_what_is_said_once_survives_a_run_that_fails_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.log("z", "e1").ident = "another"
    fill(world, EAST, "e2")
    with monkeypatch.context() as patch:
        patch.setattr(RowStorage, "results", lambda *_: _fail("no more"))
        with pytest.raises(ParityError, match="no more"):
            world.run()
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(run, "_compare_content", lambda *_: _fail("again"))
            patch.setattr(run.work, "spark_is_needed", lambda *_: True)
            with pytest.raises(ParityError, match="again"):
                world.run()
    assert [finding.kind for finding in world.run().findings] == ["reset"]
    assert world.run().findings == []


def _fail(message: str) -> None:
    raise ParityError(message)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of half a megabyte."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(path)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_is_reported_and_leaves_the_state_as_it_was(
    spark: SparkSession, verified: Path, small_disk: Path
) -> None:
    world = World(spark, small_disk / "state", EAST, WEST)
    shutil.copytree(verified, world.store.directory)
    for name, flow in (("e1", EAST), ("e2", EAST), ("w1", WEST)):
        fill(world, flow, name)
    world.runs = 1
    fill(world, EAST, "e1")
    filler = small_disk / "filler"
    with filler.open("wb") as handle:
        left = shutil.disk_usage(small_disk).free
        handle.write(b"x" * max(0, left - 8192))
    before = state(world)
    with no_kafka(world):
        with pytest.raises(ReportError, match="space"):
            world.run()
        now = state(world)
        assert {name: now.get(name) for name in before} == before
        filler.unlink()
        found = {topic.topic: topic for topic in world.run().topics}
    assert (found["e1"].status, found["e1"].verified_records) == ("verified", 40)


def begun(world: World, flow: Flow, names: str, at_ms: int = 1) -> dict[str, Any]:
    """A flow's baseline at the ends of its topics, as if all had been copied."""
    topics = {}
    for name in names.split():
        ends = {str(p): len(some) for p, some in world.log(flow.source, name).partitions.items()}
        topics[name] = {
            "recorded_at_ms": at_ms, "source": ends, "required": ends, "target": ends,
            "source_id": None, "target_id": None,
        }  # fmt: skip
    return {"recorded_at_ms": 1, "topics": topics}


def test_a_baseline_of_another_release_is_unknown_and_names_the_command(world: World) -> None:
    old = begun(world, EAST, "e1 e2")
    del old["topics"]["e1"]["required"]
    world.store.commit("baseline", {"east": old, "west": begun(world, WEST, "w1")})
    fill(world, WEST, "w1")
    result = world.run()
    assert {topic.topic: topic.verified_records for topic in result.topics} == {"w1": 20}
    (found,) = result.findings
    assert (found.severity, found.flow) == ("unknown", "east")
    assert "mirror-report baseline --flow east --renew" in found.message
    assert found.action == "mirror-report baseline --flow east --renew"


def test_a_topic_whose_baseline_is_renewed_begins_again_and_that_is_said_once(
    world: World,
) -> None:
    world.store.commit("baseline", {"east": begun(world, EAST, "e1 e2")})
    for name in ("e1", "e2"):
        fill(world, EAST, name, 10)
    assert world.run().findings == []
    renewed = begun(world, EAST, "e1 e2")
    renewed["topics"]["e1"] = begun(world, EAST, "e1", 2)["topics"]["e1"]
    renewed["topics"]["e2"] = begun(world, EAST, "e1 e2")["topics"]["e2"] | {
        name: {"0": 20, "1": 0} for name in ("source", "required", "target")
    }
    world.store.commit("baseline", {"east": renewed})
    for name in ("e1", "e2"):
        fill(world, EAST, name, 5)
    result = world.run()
    assert {topic.topic: topic.verified_records for topic in result.topics} == {
        "e1": 5,
        "e2": 15,
        "w1": 20,
    }
    assert [(finding.kind, finding.topic) for finding in result.findings] == [("skipped", "e1")]
    assert world.run().findings == []
