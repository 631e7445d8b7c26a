"""However its runs are cut and wherever they are killed, the report ends up saying the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from parity_deaths import MOMENTS, KilledError, dying
from parity_records import Content
from parity_world import PARTITIONS, T0, World, no_kafka
from pyspark.sql import SparkSession

import mirror_report
from mirror_report.config import Flow
from mirror_report.engines import MM2
from mirror_report.model import CLASSES, ParityResult
from mirror_report.state.store import Store

LOOSE = Flow(name="loose", source="a", target="z", include="l.", group_id="g")
KEPT = Flow(name="kept", source="a", target="z", include="k.", group_id="g", engine=MM2)
TOPICS = {"l0": LOOSE, "l1": LOOSE, "k0": KEPT, "k1": KEPT}
STEPS = 6

Step = Callable[[World], None]


def scenario(random_: random.Random) -> list[Step]:
    """Steps of producers and mirrors, good and bad; each can be the last before a run."""
    steps: list[Step] = []
    for number in range(STEPS):
        for name, flow in TOPICS.items():
            steps.append(_produced(name, random_.randrange(2**32), number))
            # What waits at the end has no verdict in one run, but may have had one in earlier runs.
            last = number == STEPS - 1
            steps.append(_copied(name, flow, random_.randrange(2**32), everything=last))
    return steps


def _produced(name: str, seed: int, number: int) -> Step:
    def step(world: World) -> None:
        chance = random.Random(seed)  # noqa: S311
        for i in range(chance.randrange(30)):
            late = chance.choice((0, 0, 0, 3 * 60_000, 3_600_000))
            at = T0 + number * 45_000 + chance.randrange(60_000) - late
            key = None if chance.random() < 0.2 else b"%d" % chance.randrange(9)
            value = None if key and chance.random() < 0.1 else b"%d-%d" % (seed, i)
            content: Content = (key, value, -1 if chance.random() < 0.03 else at, None)
            world.write("a", name, chance.randrange(PARTITIONS), content)

    return step


def _copied(name: str, flow: Flow, seed: int, *, everything: bool) -> Step:
    """Mirror some of what waits, or all: now and then lose, repeat, spoil or add a record."""

    def step(world: World) -> None:
        chance = random.Random(seed)  # noqa: S311
        known = world.committed[flow.name].setdefault(name, {})
        for partition, records in world.log("a", name).partitions.items():
            begin = known.get(partition, 0)
            end = len(records) if everything else chance.randint(begin, len(records))
            target = world.log("z", name).partitions[partition]
            for key, value, at, headers in records[begin:end]:
                fate = chance.random()
                if fate < 0.05:
                    continue
                target.append((key, b"?" if fate < 0.1 else value, at, headers))
                if fate > 0.95:
                    target.append((key, value, at, headers))
                if 0.9 < fate < 0.93:
                    target.append((b"foreign", b"%d" % seed, at, headers))
            known[partition] = end

    return step


def said(result: ParityResult) -> dict[str, Any]:
    """What holds of each topic, whether it was reported before or not."""
    return {
        topic.topic: {
            **{name: (topic.counts[name] or 0) + topic.accounted.get(name, 0) for name in CLASSES},
            "source": topic.source_records,
            "target": topic.target_records,
            "in flight": topic.in_flight_records,
            "verified": topic.verified_records,
            "due": topic.due_records,
        }
        for topic in result.topics
    }


def seed_of_this_run() -> int:
    seed = int(os.environ.get("MIRROR_REPLAY_SEED") or time.time_ns() % 2**32)
    print(f"MIRROR_REPLAY_SEED={seed}")
    return seed


@pytest.mark.parametrize("runs", [3, pytest.param(8, marks=pytest.mark.long)])
def test_the_union_of_runs_equals_one_run(spark: SparkSession, tmp_path: Path, runs: int) -> None:
    chance = random.Random(seed_of_this_run() + runs)  # noqa: S311
    steps = scenario(chance)
    whole, cut = (World(spark, tmp_path / name, LOOSE, KEPT) for name in ("whole", "cut"))
    for step in steps:
        step(whole)
    with no_kafka(whole):
        expected = said(whole.run())
    assert any(counted["missing"] for counted in expected.values()), "enough happened"
    assert any(counted["duplicate"] for counted in expected.values()), "enough happened"
    cuts = sorted(chance.sample(range(1, len(steps)), runs - 1))
    with no_kafka(cut):
        for begin, end in zip((0, *cuts), (*cuts, len(steps)), strict=True):
            for step in steps[begin:end]:
                step(cut)
            with dying(chance.choice(MOMENTS), chance.randrange(4)):
                try:
                    cut.run(max_records=chance.choice((None, 40)), open_minutes=0)
                except KilledError:
                    before = cut.store.load("parity")
                    assert Store(cut.store.directory).load("parity") == before
        found = cut.run()
        for _ in range(2):
            found = cut.run()
    assert said(found) == expected
    assert found.spark_started is False, "nothing is left to do"
    kept = {f"{run.name}/{path.name}" for run in cut.store.parity_directory.iterdir()
            for path in run.iterdir()}  # fmt: skip
    manifest = cut.store.load("parity")
    # Records without timestamps are old at once, so what they fill may be sealed already.
    named = [
        *manifest["digests"], *manifest["sealed"], manifest["results"], manifest["slices"],
    ]  # fmt: skip
    assert kept == {name for name in named if name}


def test_a_process_killed_while_it_commits_leaves_a_whole_manifest(tmp_path: Path) -> None:
    commits = textwrap.dedent(
        """
        import itertools, sys
        from pathlib import Path
        from mirror_report.state.store import Store
        store = Store(Path(sys.argv[1]))
        for number in itertools.count(1):
            store.commit("parity", {"number": number, "rows": [number] * 20_000})
            print(number, flush=True)
        """
    )
    last = 0
    for delay in (0.0, 0.004, 0.011):
        child = subprocess.Popen(
            [sys.executable, "-c", commits, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(mirror_report.__file__).parents[1])},
        )
        assert child.stdout is not None
        assert child.stdout.readline(), "it commits"
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        said = [int(line) for line in child.stdout.read().split()]
        child.wait(30)
        manifest = Store(tmp_path).load("parity")
        last = max([1, *said])
        assert manifest["number"] >= last, "what was said to be committed is there"
        assert manifest["rows"] == [manifest["number"]] * 20_000, "and as a whole"
    assert json.loads((tmp_path / "parity.json").read_text())["data"]["number"] >= last
