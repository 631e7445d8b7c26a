"""One Spark session for all parity tests, with the Kafka connector if its jars are there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))  # the oracles next to the tests

from parity_mirror import Mirror
from parity_records import jars_directory

from mirror_report.config import Spark
from mirror_report.parity.spark.session import open_session

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
HERE = Path(__file__).parent
# What waits for real brokers or plays random histories, and is proved in single steps elsewhere.
LONG = {
    "test_cuts_and_kills.py",
    "test_engine_mm2.py",
    "test_fatal_topics.py",
    "test_histories.py",
    "test_old_clusters.py",
    "test_replay.py",
    "test_secured_clusters.py",
    "test_strangers.py",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave whole modules to ``make test-all``."""
    for item in items:
        if item.path.parent == HERE and item.path.name in LONG:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    jars = jars_directory()
    settings = Spark(
        master="local[2]",
        heap="1g",
        jars_directory=str(jars) if jars else None,
        properties={
            "spark.sql.ansi.enabled": "true",
            # As for a small run, with room for the code of hundreds of them.
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
            "-XX:ReservedCodeCacheSize=240m",
            "spark.sql.ui.retainedExecutions": "5",
        },
    )
    with open_session(settings, 0) as session:
        yield session


@pytest.fixture(autouse=True)
def _nothing_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every plan is held against all that is cached."""
    yield
    gc.enable()  # `lag` leaves it off: its process ends then, here the JVM would keep all plans
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").catalog.clearCache()


@pytest.fixture(
    params=["ansi, compiled", pytest.param("legacy, interpreted", marks=pytest.mark.long)]
)
def dialect(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Both ways to compute, in both of Spark's dialects: no digest may depend on them."""
    wanted = COMPILED if "compiled" in request.param else INTERPRETED
    wanted = wanted | {"spark.sql.ansi.enabled": str("ansi" in request.param).lower()}
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield request.param
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.fixture(scope="module")
def one_mirror(
    spark: SparkSession, two_brokers: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mirror]:
    """A mirror whose scenario all tests of a module share."""
    created = Mirror(spark, two_brokers, tmp_path_factory.mktemp("scenario"))
    yield created
    created.close()


@pytest.fixture
def mirror(spark: SparkSession, two_brokers: tuple[str, str], tmp_path: Path) -> Iterator[Mirror]:
    created = Mirror(spark, two_brokers, tmp_path)
    yield created
    created.close()
