"""Commands of the report in this process, with the Spark session of all tests."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from mirror_report.parity.spark import session


@contextlib.contextmanager
def in_this_process() -> Iterator[None]:
    """Take back what a command sets for a process of its own."""
    mask = os.umask(0o022)
    os.umask(mask)
    try:
        yield
    finally:
        os.umask(mask)
        gc.enable()


@contextlib.contextmanager
def one_session(spark: SparkSession) -> Iterator[None]:
    """Let every command use the Spark session of all tests."""

    @contextlib.contextmanager
    def ours(*_: object) -> Iterator[SparkSession]:
        yield spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "open_session", ours)
        yield
