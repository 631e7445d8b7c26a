"""Digests made near each cluster and compared apart, on two real clusters."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import NewTopic
from parity_commands import one_session
from parity_mirror import T0, Mirror
from parity_records import jars_directory
from pyspark.sql import SparkSession

from mirror_report import cli
from mirror_report.digests.comparison import compare_bundles
from mirror_report.model import CompareDocument, CompareTopic
from mirror_report.parity.spark import class_archive
from mirror_report.parity.state import bundle

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

RECORDS = 240
FAULTS = {"missing": {"missing": 7}, "duplicate": {"duplicate": 5}, "other": {"corrupt_value": 3}}


def quiet(_text: str) -> None:
    """Report no progress."""


@dataclass
class Apart:
    """Bundles of both sides, made once, and what comparing them says."""

    mirror: Mirror
    directory: Path
    document: CompareDocument

    def of(self, name: str, document: CompareDocument | None = None) -> CompareTopic:
        """What is said of one topic."""
        wanted = f"{self.mirror.prefix}.{name}"
        (found,) = [topic for topic in (document or self.document).topics if topic.topic == wanted]
        return found

    def kinds(self, name: str) -> dict[str, int | None]:
        """Findings against one topic: kind -> count."""
        topic = f"{self.mirror.prefix}.{name}"
        return {
            finding.kind: finding.count
            for finding in self.document.findings
            if finding.topic == topic
        }

    def path(self, side: str) -> Path:
        """Where the bundle of one side lies."""
        return self.directory / f"flow-{side}.digest"

    def compare(self, source: Path, target: Path) -> CompareDocument:
        """Compare other bundles."""
        return compare_bundles(self.mirror.settings.spark, source, target, quiet)


@pytest.fixture(scope="module", autouse=True)
def _one_session(spark: SparkSession) -> Iterator[None]:
    with one_session(spark):
        yield


@pytest.fixture(scope="module")
def apart(
    spark: SparkSession,
    two_brokers: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Apart]:
    mirror = Mirror(spark, two_brokers, tmp_path_factory.mktemp("state"))
    for name in ("whole", *FAULTS, "behind", "expired"):
        topic = mirror.topic(name)
        mirror.produce(topic, RECORDS)
        mirror.copy(topic, limit=20 if name == "behind" else None, faults=FAULTS.get(name))
    gone = {TopicPartition(f"{mirror.prefix}.expired", 0): 40}
    mirror.admins[0].delete_records(gone)
    mirror.admins[0].create_topics([NewTopic(f"{mirror.prefix}.absent", 1, 1)])
    mirror.topic("table", cleanup_policy="compact")
    directory = tmp_path_factory.mktemp("bundles")
    plain = {
        "version": 1,
        "clusters": {
            alias: {"bootstrap_servers": [address]}
            for alias, address in zip("ab", two_brokers, strict=True)
        },
        "flows": [{name: getattr(mirror.settings.flows[0], name)
                   for name in ("name", "source", "target", "include", "group_id")}],
        "state_directory": str(mirror.settings.state_directory),
    }  # fmt: skip
    (directory / "config.json").write_text(json.dumps(plain))
    with_config = ["--config", str(directory / "config.json")]
    for side in ("source", "target"):
        made = cli.main([*with_config, "digest", "--side", side, "--output", str(directory)])
        assert made == 0
    document = compare_bundles(
        mirror.settings.spark,
        directory / "flow-target.digest",
        directory / "flow-source.digest",
        quiet,
    )
    yield Apart(mirror, directory, document)
    mirror.close()


def test_what_agrees_is_verified_and_costs_kilobytes(apart: Apart) -> None:
    whole = apart.of("whole")
    assert (whole.status, whole.verified_records) == ("verified", RECORDS)
    assert apart.kinds("whole") == {}
    sizes = [apart.path(side).stat().st_size for side in ("source", "target")]
    assert max(sizes) < 100_000
    with pytest.raises(UnicodeDecodeError):
        apart.path("source").read_text()


def test_what_differs_is_located_and_counted(apart: Apart) -> None:
    assert apart.kinds("missing") == {"missing": 7}
    assert apart.kinds("duplicate") == {"differs": 5}
    assert set(apart.kinds("other")) == {"differs"}
    assert apart.of("other").buckets_same_number == apart.kinds("other")["differs"]
    assert apart.document.verdict.exit_code == 2
    topic = f"{apart.mirror.prefix}.missing"
    rows = [row for row in apart.document.differences if row.topic == topic]
    assert sum(row.source_records - row.target_records for row in rows) == 7
    assert all(row.bucket_ms >= T0 and row.partition is None for row in rows)
    assert apart.document.differing_buckets == len(apart.document.differences)


def test_only_what_can_be_judged_is(apart: Apart) -> None:
    behind = apart.of("behind")
    assert behind.buckets["mismatch"] == 0
    assert behind.in_flight_records > 0
    expired = apart.of("expired")
    assert expired.status == "verified"
    assert 0 < expired.skipped_records < RECORDS
    assert expired.buckets["mismatch"] == 0
    assert apart.kinds("absent") == {"topic_missing": None}
    assert apart.kinds("table") == {"skipped": None}


def repacked(apart: Apart, side: str, place: Path, *, empty: bool = False, **changes: Any) -> Path:
    """Make a bundle like one of them."""
    place.mkdir(exist_ok=True)
    known, files = bundle.unpack(apart.path(side), place)
    path = place / f"{side}.digest"
    with path.open("wb") as out:
        bundle.pack(replace(known, **changes), None if empty else place, out)
    for file in files:
        file.unlink()
    return path


def test_a_mirror_that_keeps_partitions_is_compared_by_partition(
    apart: Apart, tmp_path: Path
) -> None:
    known, _ = bundle.unpack(apart.path("source"), tmp_path)
    changes = {"source": {"positions": None}, "target": {"positions": known.positions}}
    document = apart.compare(
        *(repacked(apart, side, tmp_path / side, engine="mm2", **changes[side]) for side in changes)
    )
    topic = f"{apart.mirror.prefix}.missing"
    rows = [row for row in document.differences if row.topic == topic]
    assert {row.partition for row in rows} == {0, 1, 2}
    assert sum(row.source_records - row.target_records for row in rows) == 7
    # The copier keeps none, so as many records are missed in some as are found in others.
    moved = apart.of("whole", document)
    assert moved.fewer == moved.more > 0


def test_empty_bundles_are_not_whole(apart: Apart, tmp_path: Path) -> None:
    topic = f"{apart.mirror.prefix}.whole"
    shared: dict[str, Any] = {"empty": True, "topics": {topic: bundle.BundleTopic(topic)}}
    document = apart.compare(
        *(repacked(apart, side, tmp_path / side, **shared) for side in ("source", "target"))
    )
    assert document.verdict.exit_code == 1
    assert [finding.kind for finding in document.findings] == ["nothing_seen"]


def test_java_is_not_started_from_an_archive_of_somebody_else_and_that_is_said(
    apart: Apart, tmp_path: Path
) -> None:
    settings = apart.mirror.settings
    settings = replace(settings, spark=replace(settings.spark, class_archive=str(tmp_path)))
    path = class_archive.location(settings.spark)
    assert path is not None
    path.touch()
    os.chown(path, 65534, 65534)
    said: list[str] = []
    compare_bundles(settings.spark, apart.path("source"), apart.path("target"), said.append)
    assert "belongs to another user" in said[0]


def test_the_command_reports_it_as_text_and_as_data(
    apart: Apart, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--config", str(apart.directory / "config.json"), "compare"]
    bundles = [str(apart.path("source")), str(apart.path("target"))]
    assert cli.main([*command, *bundles]) == 2
    text = capsys.readouterr().out
    assert "at least 7 records of the source are not on the target" in text
    assert "mirror-report run --flow flow" in text
    assert cli.main([*command, "--json", *bundles]) == 2
    plain = json.loads(capsys.readouterr().out)
    assert plain["verdict"]["exit_code"] == 2
    assert plain["differing_buckets"] == apart.document.differing_buckets


def test_a_bundle_that_cannot_be_written_leaves_nothing(
    apart: Apart, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--config", str(apart.directory / "config.json"), "digest", "--side", "target"]
    shutil.rmtree(tmp_path)
    assert cli.main([*command, "--output", str(tmp_path / "a.digest")]) == 3
    assert "cannot be written" in capsys.readouterr().err
