"""How a job that would outlast the run's time is ended."""

import contextlib
import threading
import time
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_report.parity.context import RunContext

GRACE_SECONDS = 60.0
"""A job that was begun in time may go on for so long."""


class OutOfTimeError(Exception):
    """A job was ended because the run's time was over; nothing of it counts."""


@contextlib.contextmanager
def limited(context: RunContext, session: SparkSession) -> Iterator[None]:
    """One job of Spark's, ended if it lasts past the grace.

    :raises OutOfTimeError: it was.
    """
    spark = session.sparkContext
    group = f"mirror-report-{context.run_id}-{time.monotonic_ns()}"
    left = context.settings.budget.deadline_seconds + GRACE_SECONDS - context.seconds
    ended = threading.Event()

    def end() -> None:
        ended.set()
        # What Spark cannot end any more has ended by itself.
        with contextlib.suppress(Exception):
            spark.cancelJobGroup(group)

    timer = threading.Timer(max(left, 1.0), end)
    timer.daemon = True
    spark.setJobGroup(group, "a step of the report", interruptOnCancel=True)
    timer.start()
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if ended.is_set():
            raise OutOfTimeError from error
        raise
    finally:
        timer.cancel()
        spark.setLocalProperty("spark.jobGroup.id", None)
