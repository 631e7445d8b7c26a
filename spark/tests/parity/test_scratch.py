"""What Spark and the state keep on disk is bounded, and what a killed run left is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from parity_records import jars_directory
from parity_world import T0, World, no_kafka
from pyspark.sql import SparkSession

from mirror_report.config import Flow
from mirror_report.parity import ParityError
from mirror_report.parity.spark import scratch

MIB = 1024 * 1024
FLOW = Flow(name="f", source="a", target="z", include="t", group_id="g")

HOLDER = """
import sys, time
from pathlib import Path
from mirror_report.parity.spark import scratch
with scratch.directories([Path(sys.argv[1])]) as (made,):
    (made / "shuffle").write_bytes(bytes(1000))
    print(made, flush=True)
    time.sleep(600)
"""


def test_a_killed_run_leaves_its_scratch_files_until_the_next_and_a_living_one_keeps_them(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(Path(scratch.__file__).parents[3])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with scratch.directories([tmp_path]):
            assert scratch.size([left]) == 1000, "its process lives"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left.is_dir()
    with scratch.directories([tmp_path]) as (made,):
        assert list(tmp_path.iterdir()) == [made]
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_a_shared_place_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / scratch.LOCK).touch()
    place = tmp_path / "place"
    place.mkdir()
    (place / f"{scratch.PREFIX}x").symlink_to(precious)
    with scratch.directories([place]):
        assert (precious / scratch.LOCK).exists()


@pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")
@pytest.mark.parametrize("minded", [True, pytest.param(False, marks=pytest.mark.long)])
def test_spark_that_needs_too_much_scratch_space_is_ended_with_the_cure(
    tmp_path: Path, minded: bool
) -> None:
    """A process of its own: one JVM per process. A step may pass over a job that failed."""
    program = """
import contextlib
import sys
from mirror_report.config import Spark
from mirror_report.parity.spark import session
from mirror_report.parity.spark.errors import spark_errors
settings = Spark(master="local[1]", heap="512m", scratch_bytes=4 * 1024 * 1024)
with session.open_session(settings, 0) as opened, spark_errors():
    wide = opened.range(40_000_000).selectExpr("id", "repeat(uuid(), 4) AS text")
    with contextlib.suppress(*[Exception][: int(sys.argv[1])]):
        wide.repartition(4).selectExpr("sum(length(text))").collect()
"""
    found = subprocess.run(
        [sys.executable, "-c", program, str(int(not minded))],
        capture_output=True, text=True, check=False,
        env=os.environ | {
            "PYTHONPATH": str(Path(scratch.__file__).parents[3]),
            "SPARK_LOCAL_DIRS": str(tmp_path),
        },
    )  # fmt: skip
    assert f"scratch files grew beyond {4 * MIB} bytes" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_holds_too_much_is_refused_and_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark, tmp_path, FLOW)
    for number in range(20):
        world.write("a", "t", 0, (b"%d" % number, b"value", T0 + number * 1000, None))
    world.copy(FLOW, "t")
    with no_kafka(world):
        world.run()
        world.write("a", "t", 0, (b"new", b"value", T0 + 60_000, None))
        world.copy(FLOW, "t")
        before = {path: path.read_bytes() for path in world.store.directory.rglob("*.parquet")}
        held = scratch.size([world.store.parity_directory])
        with pytest.raises(ParityError, match=f"more than {held - 1} bytes") as refused:
            world.run(state_bytes=held - 1)
        assert "mirror_report_state_bytes" in refused.value.action
        assert {p: p.read_bytes() for p in world.store.directory.rglob("*.parquet")} == before
        assert world.run(state_bytes=held).topics[0].verified_records == 21
