"""How Spark is started and reads a cluster, and what its errors mean."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_report.config import Cluster, Spark
from mirror_report.parity import ParityError
from mirror_report.parity.plan import Range
from mirror_report.parity.spark import session, source
from mirror_report.parity.spark.errors import ended, explain


def test_spark_is_given_references_and_no_secrets(tmp_path: Path) -> None:
    for kind in ("jaas", "ca.pem", "cert.pem"):
        (tmp_path / f"east.report.{kind}").touch()
    secured = Cluster(
        "east", ("h:1", "h:2"), "SASL_SSL", "SCRAM-SHA-512", "report", "report", ssl_ca=True
    )
    found = source.options(secured, tmp_path)
    where = f"${{dir:{tmp_path}:east.report."
    assert found["kafka.sasl.jaas.config"] == where + "jaas}"
    assert found["kafka.ssl.truststore.certificates"] == where + "ca.pem}"
    assert found["kafka.bootstrap.servers"] == "h:1,h:2"
    with pytest.raises(ParityError, match="credentials from files"):
        source.options(secured, None)
    certified = Cluster("east", ("h:1",), "SSL", ssl_certificate=True)
    with pytest.raises(ParityError, match=r"'east\.report\.key\.pem' is not in"):
        source.options(certified, tmp_path)
    (tmp_path / "east.report.key.pem").touch()
    found = source.options(certified, tmp_path)
    assert found["kafka.ssl.keystore.certificate.chain"] == where + "cert.pem}"
    assert found["kafka.ssl.keystore.key"] == where + "key.pem}"
    assert not any("jaas" in name for name in source.options(Cluster("a", ("h:1",)), None))


@pytest.mark.parametrize(
    ("heap", "gigabytes", "round_trip_ms", "poll", "partition_mib"),
    [
        ("4g", 0.1, 50, 5000, 1),
        ("4g", 1, 0.2, 5000, 2),
        ("4g", 1, None, 5000, 2),
        ("2g", 1, 50, 20_000, 16),
        ("1g", 1, 50, 5000, 8),
        ("512m", 1, 50, 5000, 2),
        ("1g", 1, 0.2, 5000, 2),
    ],
)
def test_fetches_fit_what_is_read_the_distance_and_the_heap(
    heap: str, gigabytes: float, round_trip_ms: float | None, poll: int, partition_mib: int
) -> None:
    found = source.fetch_sizes(Spark(heap=heap), gigabytes * 1e9, round_trip_ms)
    assert int(found["max.poll.records"]) == poll
    assert int(found["max.partition.fetch.bytes"]) == partition_mib * 1024**2


def test_what_is_fetched_can_be_said_and_wins() -> None:
    configured = Spark(fetch={"max.poll.records": "7"})
    sizes = source.fetch_sizes(configured, 1e9, None)
    found = source.options(Cluster("a", ("h:1",)), None, sizes)
    assert found["kafka.max.poll.records"] == "7"
    assert found["kafka.fetch.max.wait.ms"] == "10", "a task would wait after its last record"
    assert found["kafka.allow.auto.create.topics"] == "false", "asking must not create"


def test_on_a_cluster_the_heap_that_reads_is_an_executors() -> None:
    far = Spark(master="spark://h:7077", properties={"spark.executor.memory": "4g"})
    assert int(source.fetch_sizes(far, 1e9, 50)["max.poll.records"]) == 20_000


@pytest.mark.parametrize(
    ("master", "heap", "gigabytes", "round_trip_ms", "found"),
    [
        ("local[*]", "4g", 1, 50, "local[12]"),
        ("local[*]", "1g", 1, 50, "local[6]"),
        ("local[*]", "512m", 1, 50, "local[4]"),
        ("local[*]", "4g", 1, 0.2, "local[*]"),
        ("local[*]", "4g", 1, None, "local[*]"),
        ("local[*]", "4g", 0.1, 50, "local[*]"),
        ("local[2]", "4g", 1, 50, "local[2]"),
        ("spark://h:7077", "4g", 1, 50, "spark://h:7077"),
    ],
)
def test_a_far_cluster_is_read_by_more_tasks_than_there_are_processors(
    monkeypatch: pytest.MonkeyPatch, master: str, heap: str, gigabytes: float,
    round_trip_ms: float | None, found: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    trips = {"near": 0.2, "far": round_trip_ms}
    monkeypatch.setattr(source, "round_trip", lambda cluster: trips[cluster.alias])
    clusters = [Cluster(alias, ("h:1",)) for alias in trips]
    how = source.for_distance(Spark(master=master, heap=heap), gigabytes * 1e9, clusters)
    assert how.master == found


def test_records_become_no_java_objects_on_their_way_out_of_kafka(spark: SparkSession) -> None:
    read = source.read(
        spark, [Range("f", "source", "t", "t", 0, 0, 1)],
        source.options(Cluster("nobody", ("127.0.0.1:9",)), None),
    )  # fmt: skip
    plan = read._jdf.queryExecution().analyzed().toString()
    assert "RelationV2" in plan, plan


def test_the_round_trip_is_measured_by_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        found = source.round_trip(Cluster("a", ("127.0.0.1:1", address)))
    assert found is not None
    assert found > 0
    assert source.round_trip(Cluster("a", (address,))) is None, "nobody listens any more"


def test_executors_elsewhere_find_credentials_where_this_host_has_them_too(tmp_path: Path) -> None:
    (tmp_path / "east.report.jaas").touch()
    secured = Cluster("east", ("h:1",), "SASL_PLAINTEXT", "PLAIN", "report", "report")
    some = [Range("f", "source", "t", "t", 0, 0, 10)]
    far = Spark(master="spark://h:7077", credentials_directory=str(tmp_path))
    found = source.connection(far, secured, Path("/run/credentials/unit"), some)
    assert found["kafka.sasl.jaas.config"] == f"${{dir:{tmp_path}:east.report.jaas}}"
    with pytest.raises(ParityError, match="mirror_report_executor_credentials"):
        source.connection(Spark(master="spark://h:7077"), secured, tmp_path, some)
    plain = Cluster("west", ("h:1",))
    assert source.connection(Spark(master="spark://h:7077"), plain, None, some)


def test_a_session_is_made_for_what_it_has_to_do(tmp_path: Path) -> None:
    (tmp_path / "spark-sql-kafka.jar").touch()
    (tmp_path / "kafka-clients.jar").touch()
    local = session.configuration(Spark(jars_directory=str(tmp_path)), 0)
    assert local["spark.driver.extraClassPath"] == (
        f"{tmp_path}/kafka-clients.jar:{tmp_path}/spark-sql-kafka.jar"
    )
    assert "TieredStopAtLevel=1" in local["spark.driver.extraJavaOptions"]
    assert local["spark.sql.codegen.wholeStage"] == "false", "compiling costs more than it saves"
    far = session.configuration(
        Spark(master="spark://h:7077", jars_directory=str(tmp_path), properties={"a": "b"}), 1e9
    )
    assert "spark.sql.codegen.wholeStage" not in far
    assert "TieredStopAtLevel=1" in far["spark.driver.extraJavaOptions"], "nor does it here yet"
    assert "spark.driver.extraClassPath" not in far
    assert far["spark.jars"].count(",") == 1
    assert far["a"] == "b"
    for much in [(0, session.LARGE_RECORDS), (session.LARGE_BYTES, 0)]:
        large = session.configuration(Spark(jars_directory=str(tmp_path)), *much)
        assert "TieredStopAtLevel" not in large["spark.driver.extraJavaOptions"]
    (tmp_path / "spark-sql-kafka.jar").unlink()
    with pytest.raises(ParityError, match="jars_directory"):
        session.configuration(Spark(jars_directory=str(tmp_path)), 0)


@pytest.mark.parametrize(
    ("size", "protocol", "heap", "master", "both"),
    [
        (session.ENCRYPTED_BYTES, "SASL_SSL", "1g", "local[*]", True),
        (session.ENCRYPTED_BYTES, "SSL", "512m", "local[*]", True),
        (session.ENCRYPTED_BYTES - 1, "SSL", "1g", "local[*]", False),
        (session.ENCRYPTED_BYTES, "SASL_PLAINTEXT", "1g", "local[*]", False),
        (session.ENCRYPTED_BYTES, "SSL", "1g", "spark://h:7077", False),
    ],
)  # fmt: skip
def test_what_has_much_to_decrypt_gets_both_compilers(
    size: float, protocol: str, heap: str, master: str, both: bool
) -> None:
    clusters = [
        Cluster("plain", ("h:1",)), Cluster("other", ("h:2",), security_protocol=protocol)
    ]  # fmt: skip
    made = session.configuration(Spark(master=master, heap=heap), size, 0, clusters)
    assert ("TieredStopAtLevel" not in made["spark.driver.extraJavaOptions"]) is both


@pytest.mark.parametrize(
    ("status", "message", "cure"),
    [
        (3, "its heap was full", "spark.heap"),
        (-9, "was killed", "journalctl -k"),
        (-15, "by signal 15", "run again"),
        (1, "with status 1", "run again"),
        (None, "without saying why", "run again"),
    ],
)
def test_a_jvm_that_is_gone_is_called_what_it_died_of(
    status: int | None, message: str, cure: str
) -> None:
    error = ended(status)
    assert message in error.message
    assert cure in error.action
    assert ("heap was full" in error.message) == (status == 3), "no guess"


@pytest.mark.parametrize(("way", "message"), [("kill", "was killed"), ("fill", "heap was full")])
def test_a_real_jvm_that_ends_says_how(way: str, message: str) -> None:
    script = f"""
import os, signal
from pyspark import SparkContext
from mirror_report.config import Spark
from mirror_report.model import ReportError
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.parity.spark.session import open_session
try:
    with open_session(Spark(master="local[1]", heap="512m"), 0) as session, spark_errors():
        if {way!r} == "kill":
            os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
            session.range(5).count()
        else:
            arrays = session._jvm.java.util.ArrayList()
            while True:
                arrays.add(session._sc._gateway.new_array(session._jvm.long, 10_000_000))
except ReportError as error:
    print(error.message)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(session.__file__).parents[3])},
    )  # fmt: skip
    assert message in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Py4JJavaError: java.lang.OutOfMemoryError: Java heap space", "spark.heap"),
        ("org.apache.kafka...OffsetOutOfRangeException {t-0=5}", "vanished while"),
        ("UnknownTopicOrPartitionException: This server does not host", "topic vanished"),
        ("TopicAuthorizationException: Not authorized", "READ permission"),
        ("Failed to find data source: kafka", "jars_directory"),
        ("java.io.IOException: No space left on device", "no space"),
        ("[PATH_NOT_FOUND] Path does not exist", "baseline"),
        ("something else\nand more", "something else"),
    ],
)
def test_errors_of_spark_are_reported_with_their_cure(text: str, message: str) -> None:
    assert message in str(explain(text))
