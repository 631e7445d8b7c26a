"""When a run has to come to an end, and how a step that would outlast it is ended."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

READING_SHARE = 0.8
"""The rest of the time is for what differs: reading alone would never come to a result."""
GRACE_SECONDS = 60.0
"""A step that was begun in time may go on for so long."""


class OutOfTimeError(Exception):
    """A step was ended because the run's time was over; nothing of it counts."""


class Deadline:
    """The time one run has.

    :param seconds: from ``started`` on, of :func:`time.monotonic`.
    """

    def __init__(self, seconds: float, started: float) -> None:
        self._seconds = seconds
        self._started = started

    def over(self, share: float = 1.0) -> bool:
        """Whether so much of the time is over that no further step may begin."""
        return time.monotonic() - self._started > self._seconds * share

    @contextlib.contextmanager
    def step(self, session: SparkSession) -> Iterator[None]:
        """One step of Spark's, ended if it goes on past the grace.

        :raises OutOfTimeError: it was.
        """
        context = session.sparkContext
        group = f"mirror-report-{id(self)}-{time.monotonic_ns()}"
        left = self._started + self._seconds + GRACE_SECONDS - time.monotonic()
        ended = threading.Event()

        def end() -> None:
            ended.set()
            # What Spark cannot end any more has ended by itself.
            with contextlib.suppress(Exception):
                context.cancelJobGroup(group)

        timer = threading.Timer(max(left, 1.0), end)
        timer.daemon = True
        context.setJobGroup(group, "a step of the report", interruptOnCancel=True)
        timer.start()
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if ended.is_set():
                raise OutOfTimeError from error
            raise
        finally:
            timer.cancel()
            context.setLocalProperty("spark.jobGroup.id", None)
