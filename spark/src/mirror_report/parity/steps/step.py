"""What the steps of a job that read records again have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from mirror_report.parity.spark.deadline import Deadline
from mirror_report.parity.spark.rows import Shelf
from mirror_report.parity.steps.read import Reader
from mirror_report.parity.steps.standing import Standing

if TYPE_CHECKING:
    from mirror_report.parity.run import Run


class Step:
    """One of them, in one run."""

    def __init__(
        self, run: Run, session: SparkSession, shelf: Shelf, reader: Reader, deadline: Deadline
    ) -> None:
        self.run = run
        self.session = session
        self.shelf = shelf
        self.reader = reader
        self.deadline = deadline
        self.standing = Standing(run, session)
