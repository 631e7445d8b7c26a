"""One Spark session for all parity tests, with the Kafka connector if its jars are there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))  # the oracles next to the tests

from parity_mirror import Mirror
from parity_records import jars_directory

from mirror_report.config import Spark
from mirror_report.parity.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    jars = jars_directory()
    settings = Spark(
        master="local[2]",
        heap="1g",
        jars_directory=str(jars) if jars else None,
        properties={"spark.sql.ansi.enabled": "true"},
    )
    with open_session(settings, True) as session:
        yield session


@pytest.fixture(params=["ansi", "legacy"])
def ansi(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(request.param == "ansi").lower())
    yield request.param
    spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.fixture
def mirror(spark: SparkSession, two_brokers: tuple[str, str], tmp_path: Path) -> Iterator[Mirror]:
    one = Mirror(spark, two_brokers, tmp_path)
    yield one
    one.close()
