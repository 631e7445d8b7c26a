"""Errors of Spark, in an operator's words."""

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator

from mirror_report.model import ReportError
from mirror_report.parity import ParityError


class JvmError(ParityError):
    """The JVM ended, or ran out of memory: what it read may be to blame."""


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """Turn any error of Spark into one that an operator can act on."""
    try:
        yield
    except (ReportError, KeyboardInterrupt):
        raise
    except ConnectionError as error:
        raise ended(_exit_status(EXIT_SECONDS)) from error
    except OSError as error:
        raise ParityError(
            f"the parity state cannot be written: {error}",
            "Check the free space and the owner of the state directory",
        ) from error
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        text = f"{type(error).__name__}: {error}"
        gone = any(sign in text for sign in GONE)
        status = _exit_status(EXIT_SECONDS if gone or text.startswith("Py4JError") else 0)
        raise (ended(status) if gone or status is not None else explain(text)) from error


# Signs of a JVM that has ended.
GONE = ("Py4JNetworkError", "Answer from Java side is empty")
# Exit status of a JVM that ends when its heap is full (-XX:+ExitOnOutOfMemoryError).
HEAP_IS_FULL = 3
# A JVM that no longer answers ends within this time, or does not say how.
EXIT_SECONDS = 5

# Signs of an executor's JVM; the driver's ends.
OUT_OF_MEMORY = ("OutOfMemoryError", "Java heap space")
RAISE_HEAP = "Raise spark.heap in the report's configuration"

# Signs in the text of an error, what it means, and what to do.
EXPLANATIONS = (
    (
        ("OffsetOutOfRange", "data may have been lost", "Some data may have been lost"),
        "records vanished while they were read, by retention or truncation",
        "Run mirror-report run again; what is gone is then counted as unverifiable",
    ),
    (
        ("UnknownTopicOrPartition", "could be determined"),
        "a topic vanished while it was read",
        "Run mirror-report run again",
    ),
    (
        # Before what follows: this is the cause of that.
        ("unable to find valid certification path", "PKIX path building failed"),
        "Spark's Kafka client does not trust a broker: ssl_ca does not vouch for the broker's "
        "certificate",
        "Correct ssl_ca of that cluster in kafka_clusters",
    ),
    (
        ("No subject alternative", "No name matching"),
        "Spark's Kafka client does not trust a broker: its certificate does not name the address "
        "it is reached by",
        "Use a name it has, or give that broker a certificate with this one",
    ),
    (
        ("validity check failed", "CertificateExpired", "CertificateNotYetValid"),
        "Spark's Kafka client does not trust a broker: its certificate has expired or is not valid "
        "yet",
        "Give that broker a new one",
    ),
    (
        ("SaslAuthentication", "AuthorizationException", "Authentication failed"),
        "Spark's Kafka client was refused by a cluster",
        "Check the report's password there and its READ permission on the mirrored topics",
    ),
    (
        ("Failed to find data source: kafka", "KafkaSourceProvider"),
        "Spark has no Kafka connector",
        "Set spark.jars_directory to the directory of its jars",
    ),
    (
        ("No space left on device",),
        "no space is left for Spark's scratch files or the state",
        "Free some, or set TMPDIR",
    ),
    (
        ("PATH_NOT_FOUND", "FAILED_READ_FILE", "CANNOT_READ_FILE", "is not a Parquet file"),
        "the parity state is damaged",
        "Move parity.json and parity in the state directory away: mirror-report run then compares "
        "everything since the baseline again",
    ),
)

# What Spark says of KAFKA_MALFORMED_RECORD_TIMESTAMP; of a remote executor only the text comes.
MALFORMED = re.compile(
    r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value (-?\d+) that overflows"
)


def _exit_status(seconds: float) -> int | None:
    """How the JVM ended, as :class:`subprocess.Popen` has it; ``None``: it did not within a time.

    An error that the JVM reports says why, but one that only breaks the connection does not.
    """
    from pyspark import SparkContext  # noqa: PLC0415  a run without Spark does not import it

    process = getattr(SparkContext._gateway, "proc", None)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(seconds) if process is not None else None
    return None


def ended(status: int | None) -> JvmError:
    """The error of a JVM that has ended.

    :param status: as of :func:`_exit_status`.
    """
    if status == HEAP_IS_FULL:
        return JvmError("Spark's JVM ended because its heap was full", RAISE_HEAP)
    if status == -signal.SIGKILL:
        return JvmError(
            "Spark's JVM was killed",
            "`journalctl -k` says whether the kernel did it for want of memory: then give the "
            "report more (mirror_report_memory_max) or Spark less (spark.heap). Otherwise run "
            "mirror-report run again",
        )
    how = (
        "without saying why" if status is None
        else f"by signal {-status}" if status < 0 else f"with status {status}"
    )  # fmt: skip
    return JvmError(
        f"Spark's JVM ended {how}",
        "Run mirror-report run again; `journalctl -u mirror-report` has what it said last",
    )


def explain(text: str) -> ParityError:
    """An error of Spark in an operator's words, by the signs in its text."""
    if (match := MALFORMED.search(text)) is not None:
        return ParityError(
            f"Spark cannot read partition {match[2]} of topic {match[1]} at offset {match[3]}: the "
            f"timestamp {match[4]} there is beyond what it can hold",
            "Run mirror-report run again; if it stays, delete the records up to there",
        )
    if any(sign in text for sign in OUT_OF_MEMORY):
        return JvmError("Spark ran out of memory", RAISE_HEAP)
    for signs, message, action in EXPLANATIONS:
        if any(sign in text for sign in signs):
            return ParityError(message, action)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no message")
    return ParityError(
        f"Spark failed: {first[:300]}", "Run mirror-report --debug run for the whole story"
    )
