"""A Spark session sized for what one run has to read, and its end.

Start-up costs more than a small run's work: only a large run gets Java's second compiler, or one
that has much to decrypt; a small one gets the cheap collector too, and a tiny one does not compile
its plans either.
"""

import contextlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from mirror_report import spark_security
from mirror_report.config import Cluster, Spark
from mirror_report.model import ReportError
from mirror_report.parity import ParityError
from mirror_report.parity.spark import class_archive, scratch

# Records to read from which Java's second compiler saves more processor time than it takes
# (benchmarks/report), and bytes that may be as many rows of earlier runs.
LARGE_RECORDS = 5_000_000
LARGE_BYTES = 4 * 1024 * 1024 * 1024
# Bytes to decrypt from which it runs too: only its code uses the processor's instructions for AES,
# and without them a core decrypts 25 MB/s instead of 2 GB/s (benchmarks/report).
ENCRYPTED_BYTES = 384 * 1024 * 1024
SMALL_BYTES = 256 * 1024 * 1024
TINY_BYTES = 2 * 1024 * 1024
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Mebibytes of heap below which memory counts for more than speed.
FRUGAL_BELOW = 1024
JVM_EXIT_SECONDS = 30
# What every session has, whatever it reads.
ALWAYS = {
    "spark.app.name": "mirror-report",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    # Or Python sends the JVM the place in the code of every column, in ten messages.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Or each timestamp goes through the Julian calendar and back, where the earliest overflow.
    "spark.sql.datetime.java8API.enabled": "true",
    # Or what reads both sides is not compiled together with what digests them.
    "spark.sql.codegen.wholeStage.union.enabled": "true",
    # Without Kafka: or each of its records becomes Java objects, and a row again.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|truststore|keystore",
    # A later query reuses neither consumers nor what they fetched, yet both would be kept.
    "spark.kafka.consumer.cache.capacity": "2",
    "spark.kafka.consumer.cache.timeout": "1s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "1s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "1s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "1s",
}

OpenSession = Callable[[Spark, float, int, Sequence[Cluster]], AbstractContextManager[SparkSession]]


def jars(settings: Spark) -> list[Path]:
    """The Kafka connector and what it needs, in a fixed order.

    :raises ParityError: the directory holds no connector.
    """
    paths = class_archive.jars(settings)
    connector = any(jar.name.startswith("spark-sql-kafka") for jar in paths)
    if settings.jars_directory is not None and not connector:
        raise ParityError(
            f"spark.jars_directory: no spark-sql-kafka jar in {settings.jars_directory}",
            "Deploy the report again: its role installs the jars",
        )
    return paths


def configuration(
    settings: Spark,
    expected_bytes: float,
    records: int = 0,
    clusters: Sequence[Cluster] = (),
    sockets: Path | None = None,
) -> dict[str, str]:
    """Spark's configuration; ``settings.properties`` win, but for what is settled.

    :param expected_bytes: how much the run has to read, of records and of earlier runs' rows.
    :param records: how many records of them.
    :param clusters: what it reads them from.
    :param sockets: directory of this user alone where Python and the JVM meet; ``None``: on ports.
    """
    small = expected_bytes < SMALL_BYTES
    local = settings.master.startswith("local")
    paths = [str(jar) for jar in jars(settings)]
    values = {
        **ALWAYS,
        "spark.master": settings.master,
        "spark.sql.shuffle.partitions": "2" if small else "8",
        # A small run has nothing to gain from planning each of its stages again.
        "spark.sql.adaptive.enabled": str(not small).lower(),
        # Spark makes it, empty: not below a name in /tmp that others can take before.
        "spark.sql.warehouse.dir": str((sockets or Path(tempfile.gettempdir())) / "warehouse"),
        "spark.driver.memory": settings.heap,
        JAVA_OPTIONS: " ".join(_java_options(settings, expected_bytes, records, clusters)),
    }
    if expected_bytes < TINY_BYTES:
        values |= {
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }
    if local:
        values |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if paths:
        # On a cluster the executors need them shipped; locally the class path starts faster.
        values["spark.driver.extraClassPath" if local else "spark.jars"] = (
            ":" if local else ","
        ).join(paths)
    values |= {
        **settings.properties,
        **spark_security.settled(settings.master, settings.properties),
    }
    if sockets is not None:
        # Whoever connects to such a port first and says nothing holds up the run, secret or not.
        values |= {
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(sockets),
        }
    if (archive := class_archive.usable(settings)) is not None:
        values[JAVA_OPTIONS] = " ".join([values[JAVA_OPTIONS], *class_archive.options(archive)])
    return values


def heap_mib(size: str) -> int:
    """A heap in mebibytes.

    :param size: as Java takes it: ``512m``, ``2g``.
    """
    if (match := re.match(r"(\d+)([kmgt]?)", size.lower())) is None:
        raise ParityError(f"spark.heap: {size!r} is not a size such as 512m or 2g")
    return int(int(match[1]) * {"k": 1 / 1024, "g": 1024, "t": 1024**2}.get(match[2], 1))


def reading_heap(settings: Spark) -> int:
    """Mebibytes of heap of a process that reads: the driver, or an executor of a cluster."""
    if settings.master.startswith("local"):
        return heap_mib(settings.heap)
    return heap_mib(settings.properties.get("spark.executor.memory", "1g"))


def private_configuration(settings: Spark, environment: Mapping[str, str]) -> Path | None:
    """Directory of the ``spark-defaults.conf`` with the secret of Spark's cluster.

    :param environment: its ``CREDENTIALS_DIRECTORY`` is searched, then its ``SPARK_CONF_DIR``.
    :returns: ``None``: there is none, and this master takes none.
    :raises ParityError: the master takes a secret and none is there; or others can read the file
        or write beside it.
    """
    if spark_security.is_local(settings.master):
        return None
    takes_secret = spark_security.takes_secret(settings.master)
    named = [environment.get(name) for name in ("CREDENTIALS_DIRECTORY", "SPARK_CONF_DIR")]
    for directory in (Path(path) for path in named if path):
        file = directory / spark_security.DEFAULTS_FILE
        try:
            secrets = spark_security.secrets_in(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ParityError(
                f"{file} cannot be read: {error.strerror}", "Give it to the user of the report"
            ) from error
        if not secrets or (takes_secret and spark_security.SECRET not in secrets):
            continue
        if not (_is_private(file, 0o077) and _is_private(directory, 0o022)):
            raise ParityError(
                f"{file}: others can read its secrets, or write beside it",
                "Give file and directory to the user of the report or to root: "
                f"chmod 400 {file}; chmod 500 {directory}",
            )
        return directory
    if takes_secret:
        raise ParityError(
            f"spark.master {settings.master}: {spark_security.SECRET} of that cluster is missing",
            "Set mirror_report_spark_secrets and deploy the report again, and run it by its "
            "service or as root, which load it",
        )
    return None


def _is_private(path: Path, forbidden: int) -> bool:
    """Whether only this user and root have what others are forbidden."""
    status = path.stat()
    # The group's bits are those of root's group, or the bounds of a list that systemd wrote.
    mode = status.st_mode if status.st_gid else status.st_mode & ~0o070
    return status.st_uid in (0, os.geteuid()) and not mode & forbidden


def _java_options(
    settings: Spark, expected_bytes: float, records: int, clusters: Sequence[Cluster]
) -> list[str]:
    small = expected_bytes < SMALL_BYTES
    # On a cluster the executors decrypt.
    local = settings.master.startswith("local")
    decrypts = local and any(cluster.uses_tls for cluster in clusters)
    frugal = heap_mib(settings.heap) < FRUGAL_BELOW
    options = [
        # Or Spark's classes alone are reason enough to collect everything while it starts.
        "-XX:MetaspaceSize=256m",
        # The parallel collector wants room; in a small heap it costs more than it brings.
        "-XX:+UseSerialGC" if small or frugal else "-XX:+UseParallelGC",
    ]
    if frugal:
        # Or the heap begins with a share of the host's memory, and keeps what it once had.
        options += ["-Xms160m", "-Xmn96m", "-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=40"]
    large = not frugal and (records >= LARGE_RECORDS or expected_bytes >= LARGE_BYTES)
    if not (large or (decrypts and expected_bytes >= ENCRYPTED_BYTES)):
        options.append("-XX:TieredStopAtLevel=1")
    return [*options, "-XX:+ExitOnOutOfMemoryError"]


@contextlib.contextmanager
def open_session(
    settings: Spark,
    expected_bytes: float,
    records: int = 0,
    clusters: Sequence[Cluster] = (),
    exit_seconds: float = JVM_EXIT_SECONDS,
) -> Iterator[SparkSession]:
    """A session of our own, with its JVM ended before this returns.

    :param expected_bytes: as for :func:`configuration`; so ``records`` and ``clusters``.
    :param exit_seconds: how long the JVM may take to end before it is killed.
    :raises ParityError: Java or Spark cannot be started, a cluster's secret is missing, or Spark
        keeps more on this host's disks than it may.
    """
    private = private_configuration(settings, os.environ)
    if settings.java_home is not None:
        if not (Path(settings.java_home) / "bin" / "java").exists():
            raise ParityError(
                f"spark.java_home: no bin/java in {settings.java_home}",
                "Install Java 17 or name another directory",
            )
        os.environ["JAVA_HOME"] = settings.java_home
    if settings.master.startswith("local"):
        # A host whose own name does not resolve is no reason to fail.
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if private is not None:
        # What the builder is given reaches the JVM among its arguments.
        os.environ["SPARK_CONF_DIR"] = str(private)
    # Or each thread of the JVM that asks for memory keeps some of it to itself.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as sockets,
        _scratch(settings) as directories,
    ):
        session = _started(
            settings,
            configuration(settings, expected_bytes, records, clusters, Path(sockets)),
        )
        limit = settings.scratch_bytes
        exceeded = threading.Event()
        cancel = session.sparkContext.cancelAllJobs
        try:
            with scratch.bounded(directories, limit, cancel, exceeded):
                yield session
        except ReportError:
            if not exceeded.is_set():
                raise
        finally:
            stop(session, exit_seconds)
        # Also where nobody minded that a job was cancelled for it.
        if exceeded.is_set():
            raise ParityError(
                f"Spark's scratch files grew beyond {limit} bytes",
                "Raise mirror_report_scratch_bytes (spark.scratch_bytes) if the disk has room, or "
                "let a run read less (mirror_report_max_bytes)",
            )


@contextlib.contextmanager
def _scratch(settings: Spark) -> Iterator[list[Path]]:
    """Directories for the scratch files of one session, named in its environment."""
    places = scratch.places(settings, os.environ)
    with contextlib.ExitStack() as held:
        try:
            directories = held.enter_context(scratch.directories(places))
        except OSError as error:
            raise ParityError(
                f"Spark cannot have scratch files: {error}",
                "Make room there, or name another directory in SPARK_LOCAL_DIRS",
            ) from error
        os.environ["SPARK_LOCAL_DIRS"] = ",".join(map(str, directories))
        try:
            yield directories
        finally:
            os.environ["SPARK_LOCAL_DIRS"] = ",".join(map(str, places))


def _started(settings: Spark, values: Mapping[str, str]) -> SparkSession:
    try:
        with _output_as_errors():
            return SparkSession.builder.config(map=dict(values)).getOrCreate()
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        local = spark_security.is_local(settings.master)
        cluster = "" if local else " and that its cluster has the same secret and cipher"
        raise ParityError(
            f"Spark did not start ({lines[0] if lines else type(error).__name__})",
            "Check spark.java_home, spark.heap (460m at least) and spark.master in the report's "
            f"configuration{cluster}",
        ) from error


@contextlib.contextmanager
def _output_as_errors() -> Iterator[None]:
    """Send the output of processes started meanwhile to our standard error.

    A JVM that ends for want of memory prints that there, and our output is the report.
    """
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def stop(session: SparkSession, exit_seconds: float = JVM_EXIT_SECONDS) -> None:
    """End Spark and then its JVM: one that outlives Python keeps a systemd unit from stopping.

    :param exit_seconds: how long the JVM may take before it is killed.
    """
    gateway = SparkContext._gateway
    with contextlib.suppress(Exception):
        session.stop()
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    with contextlib.suppress(Exception):
        gateway.shutdown()
    if process is not None:
        with contextlib.suppress(Exception):
            process.stdin.close()
        try:
            process.wait(exit_seconds)
        except Exception:
            process.kill()
    SparkContext._gateway = SparkContext._jvm = None
    # Of a JVM that ended by itself PySpark keeps these, and would hand them out again.
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
