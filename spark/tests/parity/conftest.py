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
# Modules whose tests make whole runs, which take many seconds each -> those that `make test` makes.
# Their other tests with Spark are left to `make test-all`, and so are random histories.
WHOLE_RUNS = {
    "test_cuts_and_kills.py": (),
    "test_engine.py": (
        "test_a_faithful_mirror_is_verified_and_then_left_alone",
        "test_each_class_is_counted_exactly_and_then_accounted",
        "test_what_lies_past_the_position_is_in_flight",
        "test_a_compacted_topic_is_compared_by_key",
        "test_a_topic_created_again_is_reported_and_compared_again",
        "test_the_next_run_does_what_a_budget_or_a_death_left_undone",
    ),
    "test_engine_mm2.py": (),
    "test_equal_content.py": (),
    "test_events_of_topics.py": (),
    "test_failures.py": (
        "test_a_cluster_that_is_away_is_unknown_and_the_others_are_judged",
        "test_a_damaged_state_is_refused_with_the_cure_and_left_alone",
    ),
    "test_fatal_topics.py": (),
    "test_histories.py": (),
    "test_lost_tails.py": (),
    "test_offset_syncs.py": (),
    "test_old_clusters.py": (),
    "test_proof.py": ("test_a_proof_finds_exactly_what_was_planted",),
    "test_replaced_headers.py": (),
    "test_replay.py": (),
    "test_retention.py": (),
    "test_secured_clusters.py": (),
    "test_slices.py": (
        "test_records_that_are_counted_bit_by_bit_are_those_that_multisets_say",
        "test_no_more_open_buckets_are_followed_than_fit_and_those_that_were_go_on",
    ),
    "test_strangers.py": (),
    "test_unreadable.py": (),
    "test_spread.py": (
        "test_rows_get_the_buckets_that_their_records_get",
        "test_a_topic_of_too_many_minutes_is_compared_by_hours",
    ),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whole runs as long."""
    for item in items:
        if item.path.parent != HERE or not isinstance(item, pytest.Function):
            continue
        kept = WHOLE_RUNS.get(item.path.name)
        if gone := [name for name in kept or () if not hasattr(item.module, name)]:
            raise pytest.UsageError(f"WHOLE_RUNS names what {item.path.name} lacks: {gone}")
        if kept is not None and "spark" in item.fixturenames and item.originalname not in kept:
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
