"""Which archive of classes a session uses, and which none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_report.config import Spark
from mirror_report.parity.spark import class_archive, session


@pytest.fixture
def spark(tmp_path: Path) -> Spark:
    """Made-up Java and jars."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "spark-sql-kafka.jar").touch()
    return Spark(
        java_home=str(tmp_path / "java"),
        jars_directory=str(jars),
        class_archive=str(tmp_path / "classes"),
    )


def made(spark: Spark) -> Path:
    """Put a file where the archive belongs."""
    path = class_archive.location(spark)
    assert path is not None
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    new.touch()
    class_archive.replace(new, path)
    return path


def java_options(spark: Spark) -> str:
    return session.configuration(spark, 0)["spark.driver.extraJavaOptions"]


def test_an_archive_that_is_there_is_used_and_says_nothing(spark: Spark) -> None:
    assert "SharedArchiveFile" not in java_options(spark)
    path = made(spark)
    assert f"-XX:SharedArchiveFile={path} -Xlog:disable -Xlog:all=off" in java_options(spark)
    assert class_archive.hint(spark) is None


def test_an_archive_adds_to_options_of_ones_own(spark: Spark) -> None:
    path = made(spark)
    own = Spark(**{**vars(spark), "properties": {"spark.driver.extraJavaOptions": "-Da=b"}})
    assert java_options(own).startswith(f"-Da=b -XX:SharedArchiveFile={path}")


def test_other_jars_make_an_archive_unfit_and_a_new_one_replaces_it(spark: Spark) -> None:
    old = made(spark)
    os.utime(Path(spark.jars_directory or "") / "spark-sql-kafka.jar", (1, 1))
    assert "SharedArchiveFile" not in java_options(spark)
    hint = class_archive.hint(spark) or ""
    assert "another Java or other jars" in hint
    assert "mirror-report archive" in hint
    new = made(spark)
    assert new != old
    assert not old.exists()
    assert str(new) in java_options(spark)


NOBODY = 65534


@pytest.mark.parametrize("whose", ["file", "directory"])
def test_an_archive_that_somebody_else_could_have_made_is_not_used(
    spark: Spark, whose: str
) -> None:
    path = made(spark)
    os.chown(path if whose == "file" else path.parent, NOBODY, NOBODY)
    assert class_archive.usable(spark) is None
    assert "SharedArchiveFile" not in java_options(spark)
    assert "belongs to another user" in (class_archive.hint(spark) or "")


def test_a_link_to_an_archive_is_not_used(spark: Spark) -> None:
    path = made(spark)
    path.rename(path.with_suffix(".old"))
    path.symlink_to(path.with_suffix(".old"))
    assert "SharedArchiveFile" not in java_options(spark)
    assert "is a link" in (class_archive.hint(spark) or "")


def test_an_archive_is_named_by_where_it_really_lies(spark: Spark, tmp_path: Path) -> None:
    path = made(spark)
    path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(tmp_path / "elsewhere")
    assert class_archive.usable(spark) == tmp_path / "elsewhere" / path.name


def test_a_missing_archive_is_reported_and_one_nobody_asked_for_is_not(spark: Spark) -> None:
    assert "is missing" in (class_archive.hint(spark) or "")
    assert class_archive.hint(Spark()) is None


def test_a_cluster_ships_its_jars_and_uses_no_archive(spark: Spark) -> None:
    made(spark)
    assert class_archive.location(Spark(**{**vars(spark), "master": "spark://h:7077"})) is None


@pytest.mark.parametrize(
    ("size", "mebibytes"), [("512m", 512), ("2g", 2048), ("1t", 1048576), ("2048k", 2), ("7", 7)]
)
def test_heaps_are_read_as_java_reads_them(size: str, mebibytes: int) -> None:
    assert session.heap_mib(size) == mebibytes


def test_a_small_heap_gets_the_collector_that_needs_no_room() -> None:
    assert (
        "SerialGC"
        in session.configuration(Spark(heap="512m"), 1e9)["spark.driver.extraJavaOptions"]
    )
    assert (
        "ParallelGC"
        in session.configuration(Spark(heap="2g"), 1e9)["spark.driver.extraJavaOptions"]
    )
