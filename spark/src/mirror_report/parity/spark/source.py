"""Records out of Kafka: bounded ranges with explicit offsets, headers included.

Spark's Kafka source resolves symbolic offsets once more in every task, so every range here is
numeric. Secrets stay in files: Spark is given references for Kafka's own configuration provider.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.config import Cluster, Spark
from mirror_report.parity import ParityError, grouped
from mirror_report.parity.frames.digest import RECORD_COLUMNS
from mirror_report.parity.plan import Range
from mirror_report.parity.spark.session import SMALL_BYTES, heap_mib, reading_heap

RECORDS_PER_TASK = 1_000_000
PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"

RECORD_SCHEMA = (
    "flow string, side string, topic string, origin string, partition int, offset bigint, "
    "key binary, value binary, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)

MIB = 1024 * 1024
# From this round trip on, larger polls and more tasks pay: a poll costs two of them.
FAR_MS = 10.0
# Tasks at once for each processor, which wait most of the time, and mebibytes of heap for each.
FAR_TASKS = 3
TASK_MIB = 160

FETCH = {
    "fetch.max.wait.ms": "10",  # a task would wait half a second after its last record
    "receive.buffer.bytes": str(MIB),
    # A topic deleted while it is read would otherwise hold the run for a minute.
    "default.api.timeout.ms": "20000",
    "request.timeout.ms": "15000",  # must not exceed the one above
    "client.id": "mirror-report",
    # Asking for a topic must not make it.
    "allow.auto.create.topics": "false",
}


def _sizes(records: int, partition_mib: int, fetch_mib: int) -> dict[str, str]:
    return {
        "max.poll.records": str(records),
        "max.partition.fetch.bytes": str(partition_mib * MIB),
        "fetch.max.bytes": str(fetch_mib * MIB),
    }


# Consumers read ahead of what is asked for, so even a small run fills what it may fetch.
SMALL = _sizes(5000, 1, 8)
NEAR = _sizes(5000, 2, 16)
# Mebibytes of heap -> sizes it has room for.
FAR = {1024: _sizes(5000, 8, 16), 2048: _sizes(20_000, 16, 16)}


def fetch_sizes(
    settings: Spark, expected_bytes: float, round_trip_ms: float | None
) -> dict[str, str]:
    """How much to ask a cluster for at once; ``settings.fetch`` wins.

    :param expected_bytes: what will be read.
    :param round_trip_ms: to the cluster; ``None``: not known, which counts as near.
    :returns: properties of a Kafka consumer.
    """
    if expected_bytes < SMALL_BYTES:
        return {**SMALL, **settings.fetch}
    heap = reading_heap(settings) if (round_trip_ms or 0) >= FAR_MS else 0
    fitting = [sizes for needed, sizes in FAR.items() if heap >= needed]
    return {**(fitting[-1] if fitting else NEAR), **settings.fetch}


def for_distance(settings: Spark, expected_bytes: float, clusters: Iterable[Cluster]) -> Spark:
    """Settings with more tasks at once where a far cluster lets each of them wait.

    Another master than ``local[*]`` is somebody's choice and stays.

    :param expected_bytes: what will be read.
    :param clusters: what it is read from.
    """
    if settings.master != "local[*]" or expected_bytes < SMALL_BYTES:
        return settings
    if not any((round_trip(cluster) or 0) >= FAR_MS for cluster in clusters):
        return settings
    processors = len(os.sched_getaffinity(0))
    fitting = min(FAR_TASKS * processors, heap_mib(settings.heap) // TASK_MIB)
    return replace(settings, master=f"local[{max(processors, fitting)}]")


def round_trip(cluster: Cluster) -> float | None:
    """Milliseconds to a cluster, by how fast a bootstrap server takes a connection; best of three.

    :returns: ``None`` if none does.
    """
    for server in cluster.bootstrap_servers:
        host, _, port = server.rpartition(":")
        taken = []
        with contextlib.suppress(OSError):
            for _ in range(3):
                begun = time.monotonic()
                socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()
                taken.append(time.monotonic() - begun)
        if taken:
            return min(taken) * 1000
    return None


def options(
    cluster: Cluster, credentials: Path | None, sizes: Mapping[str, str] = NEAR
) -> dict[str, str]:
    """Options of Spark's Kafka source that reach one cluster.

    :param credentials: directory of the credential files, if the cluster needs any.
    :param sizes: :func:`fetch_sizes`.
    :raises ParityError: it needs them, and there is no directory, or one of them is not in it.
    """
    client = {
        **FETCH,
        **sizes,
        "bootstrap.servers": ",".join(cluster.bootstrap_servers),
        "security.protocol": cluster.security_protocol,
    }
    secret = {}
    if cluster.security_protocol.startswith("SASL"):
        client["sasl.mechanism"] = cluster.sasl_mechanism or ""
        secret["sasl.jaas.config"] = "jaas"
    if cluster.security_protocol.endswith("SSL") and cluster.ssl_ca:
        client["ssl.truststore.type"] = "PEM"
        secret["ssl.truststore.certificates"] = "ca.pem"
    if cluster.security_protocol.endswith("SSL") and cluster.ssl_certificate:
        client["ssl.keystore.type"] = "PEM"
        secret["ssl.keystore.certificate.chain"] = "cert.pem"
        secret["ssl.keystore.key"] = "key.pem"
    if secret:
        if credentials is None:
            raise ParityError(
                f"clusters.{cluster.alias}: content is compared with credentials from files only",
                "Run `mirror-report run` through its wrapper or its service, which load them",
            )
        client |= {
            "config.providers": "dir",
            "config.providers.dir.class": PROVIDER,
            "config.providers.dir.param.allowed.paths": str(credentials),
        }
        for name, kind in secret.items():
            if not (credentials / cluster.credential(kind)).is_file():
                # Kafka would take the reference itself for the value.
                raise ParityError(
                    f"credential {cluster.credential(kind)!r} is not in {credentials}",
                    "Deploy the report again: the role writes and loads it",
                )
            client[name] = f"${{dir:{credentials}:{cluster.credential(kind)}}}"
    return {f"kafka.{name}": value for name, value in client.items()}


def connection(
    settings: Spark, cluster: Cluster, credentials: Path | None, ranges: Iterable[Range]
) -> dict[str, str]:
    """:func:`options` to read some ranges of a cluster with, sized by them and by its distance.

    :param credentials: of this process; others have only what ``settings`` names.
    :raises ParityError: the cluster needs credentials, and executors elsewhere have none.
    """
    if settings.credentials_directory is not None:
        credentials = Path(settings.credentials_directory)
    elif not settings.master.startswith("local") and cluster.security_protocol != "PLAINTEXT":
        raise ParityError(
            f"clusters.{cluster.alias}: executors on other hosts need its credentials, in the "
            "directory spark.credentials_directory names",
            "Set mirror_report_executor_credentials and deploy the report again",
        )
    expected = sum(part.bytes for part in ranges)
    distance = round_trip(cluster) if expected >= SMALL_BYTES else None
    return options(cluster, credentials, fetch_sizes(settings, expected, distance))


def read(session: SparkSession, ranges: Iterable[Range], connect: Mapping[str, str]) -> DataFrame:
    """The records of some ranges of one flow and side.

    :param ranges: at most one per partition, none empty.
    :param connect: :func:`options`.
    :returns: :data:`frames.digest.RECORD_COLUMNS`.
    """
    parts = list(ranges)
    first = parts[0]
    origins = grouped(parts, lambda part: part.origin)
    start, end = (
        {
            origin: {str(part.partition): getattr(part, bound) for part in parts}
            for origin, parts in origins.items()
        }
        for bound in ("start", "end")
    )
    rows = (
        session.read.format("kafka")
        .options(**connect)
        .option("assign", json.dumps({topic: sorted(map(int, p)) for topic, p in start.items()}))
        .option("startingOffsets", json.dumps(start))
        .option("endingOffsets", json.dumps(end))
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "true")
        .option("maxRecordsPerPartition", str(RECORDS_PER_TASK))
        .option("kafkaConsumer.pollTimeoutMs", "30000")
        .load()
    )
    names = {part.origin: part.topic for part in parts}
    topic = F.col("topic")
    if any(origin != name for origin, name in names.items()):
        topic = F.create_map(*(F.lit(text) for pair in names.items() for text in pair))[topic]
    return (
        rows.withColumns(
            {"flow": F.lit(first.flow), "side": F.lit(first.side), "origin": F.col("topic")}
        )
        .withColumn("topic", topic)
        .select(*RECORD_COLUMNS)
    )
