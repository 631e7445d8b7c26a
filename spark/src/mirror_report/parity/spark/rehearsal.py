"""Make the archive of Spark's classes (:mod:`spark.class_archive`).

A JVM does in small what a run does, so that it has loaded what a run loads, and writes down its
classes when it ends. No cluster is needed: records are made up, and what only a broker's answer
would load is loaded by name.
"""

import contextlib
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.config import Cluster, Spark
from mirror_report.model import Progress
from mirror_report.parity import ParityError
from mirror_report.parity.frames import align, compare, digest, sql, status, totals
from mirror_report.parity.plan import Range
from mirror_report.parity.spark import class_archive, source
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.parity.spark.session import JAVA_OPTIONS, configuration, open_session
from mirror_report.parity.state import Widths

# The JVM writes the archive as it ends.
WRITING_SECONDS = 600

BUCKET_MS = 60_000
NOBODY = Cluster("nobody", ("127.0.0.1:9",))
IMPATIENT = {"default.api.timeout.ms": "800", "request.timeout.ms": "400"}

# What the beginnings of their names say: classes that reading from a broker loads.
LOADED = (
    "org/apache/spark/sql/kafka010/",
    "org/apache/spark/kafka010/",
    "org/apache/commons/pool2/",
    "org/apache/kafka/clients/Metadata",
    "org/apache/kafka/clients/consumer/",
    "org/apache/kafka/common/",
    "org/apache/kafka/shaded/",
)


def make(settings: Spark, progress: Progress) -> tuple[Path, bool]:
    """Make the archive, unless there is one that fits.

    :returns: where it lies, and whether it is new.
    :raises ParityError: none is configured or possible, or the JVM wrote none.
    """
    path = class_archive.location(settings)
    if path is None:
        raise ParityError(
            "no class archive can be made: it takes spark.class_archive, a local spark.master and "
            "Java",
            "Deploy the report again, or set them in its configuration",
        )
    if class_archive.usable(settings) is not None:
        return path, False
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    progress("starting Spark to see which classes it loads")
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        plain = replace(settings, class_archive=None)
        java = configuration(plain, 0)[JAVA_OPTIONS]
        options = " ".join([java, *class_archive.making(made)])
        asked = replace(plain, properties={**settings.properties, JAVA_OPTIONS: options})
        with open_session(asked, 0, exit_seconds=WRITING_SECONDS) as session, spark_errors():
            rehearse(session, settings, Path(scratch) / "rows")
            progress("writing the archive")
        if not made.is_file():
            raise ParityError(
                f"Java wrote no class archive to {path.parent}",
                "Check the free space there (200 MB are needed) and that Java is 13 or newer",
            )
        class_archive.replace(made, path)
    return path, True


def rehearse(session: SparkSession, settings: Spark, rows: Path) -> None:
    """Read, digest, keep, compare and add up, in small.

    :param rows: where digests may be written.
    """
    _ask_nobody(session)
    _load(session, class_archive.jars(settings))
    records = session.range(0, 2000, numPartitions=2).select(
        F.lit("flow").alias("flow"),
        F.when(F.col("id") % 2 == 0, "source").otherwise("target").alias("side"),
        F.lit("topic").alias("topic"),
        F.lit("topic").alias("origin"),
        (F.col("id") % 3).cast("int").alias("partition"),
        F.col("id").alias("offset"),
        F.col("id").cast("string").cast("binary").alias("key"),
        F.col("id").cast("string").cast("binary").alias("value"),
        F.timestamp_millis(F.col("id") * 1000).alias("timestamp"),
        F.expr("array(named_struct('key', 'h', 'value', binary('v')))").alias("headers"),
    )
    digest.digest(align.place(records, Widths(BUCKET_MS))).coalesce(1).write.parquet(str(rows))
    kept = session.read.schema(digest.SCHEMA).parquet(str(rows))
    positions = sql.table(
        session, compare.POSITIONS_SCHEMA,
        [{"flow": "flow", "side": "source", "origin": "topic", "partition": 0,
          "position": 2000}],
    )  # fmt: skip
    buckets = compare.by_bucket(compare.with_lanes(digest.merge(kept), []), positions).persist()
    topics = sql.table(
        session, status.TOPICS_SCHEMA, [{"flow": "flow", "topic": "topic", "unread": False}]
    )
    nothing = sql.table(session, status.RESULTS_SCHEMA, [])
    statuses = status.statuses(buckets, topics, nothing, "run").persist()
    totals.summarise(statuses, BUCKET_MS).collect()
    totals.still_open(statuses, compare.some_buckets(session, [])).collect()
    statuses.filter("candidate").orderBy("bucket").limit(10).collect()
    statuses.unpersist()
    buckets.unpersist()


def _ask_nobody(session: SparkSession) -> None:
    """Plan a read from a cluster that is not there; its end is an error, and is expected."""
    connect = source.options(NOBODY, None, {**source.SMALL, **IMPATIENT})
    with contextlib.suppress(PySparkException, Py4JError):
        source.read(
            session, [Range("flow", "source", "topic", "topic", 0, 0, 1)],
            {**connect, "fetchOffset.numRetries": "1"},
        ).collect()  # fmt: skip


def _load(session: SparkSession, jars: Sequence[Path]) -> None:
    java = session.sparkContext._jvm
    if java is None:
        return
    loader = java.java.lang.ClassLoader.getSystemClassLoader()
    for name in _names(jars):
        # Some rest on libraries that are not there, because nobody needs them.
        with contextlib.suppress(Py4JError):
            java.java.lang.Class.forName(name, False, loader)


def _names(jars: Sequence[Path]) -> Iterator[str]:
    for jar in jars:
        with zipfile.ZipFile(jar) as opened:
            for entry in opened.namelist():
                if entry.endswith(".class") and entry.startswith(LOADED):
                    yield entry.removesuffix(".class").replace("/", ".")
