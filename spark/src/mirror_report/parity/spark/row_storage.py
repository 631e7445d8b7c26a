"""Row storage: where a run keeps its rows, directories of Parquet that the manifest names."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mirror_report.parity import ParityError
from mirror_report.parity.frames import digest, sql, status
from mirror_report.parity.spark import scratch
from mirror_report.parity.state import Manifest


@dataclass(frozen=True)
class RowStorage:
    """Rows of earlier runs and of this one.

    :param directory: of all runs.
    :param name: this run's directory below it.
    :param limit: bytes beyond which nothing more is written; ``None``: no bound.
    """

    session: SparkSession
    directory: Path
    name: str
    limit: int | None = None

    def write(self, rows: DataFrame, name: str) -> str:
        """Write rows into this run's directory and make them durable.

        :returns: their name in the manifest.
        :raises ParityError: all rows hold more than they may.
        """
        if self.limit is not None and scratch.size([self.directory]) > self.limit:
            raise ParityError(
                f"{self.directory} holds more than {self.limit} bytes",
                "Raise mirror_report_state_bytes (budget.state_bytes) if the disk has room, and "
                "keep closed hours for fewer days (mirror_report_history_days) to have less",
            )
        known_as = f"{self.name}/{name}"
        path = self.directory / known_as
        rows.write.mode("overwrite").parquet(str(path))
        for file in path.iterdir():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return known_as

    def digests(self, manifest: Manifest) -> DataFrame:
        """All digest rows; those of one key add up."""
        return self.read(manifest.digests, digest.SCHEMA)

    def sealed(self, manifest: Manifest) -> DataFrame:
        """Digest rows of sealed hours."""
        return self.read(manifest.sealed, digest.SCHEMA)

    def results(self, name: str | None) -> DataFrame:
        """Results of buckets that differ, of one directory."""
        return self.read([name] if name else [], status.RESULTS_SCHEMA)

    def read(self, names: Sequence[str], schema: str) -> DataFrame:
        """Rows of some directories, as :meth:`write` named them."""
        if not names:
            return sql.table(self.session, schema, [])
        return self.session.read.schema(schema).parquet(
            *(str(self.directory / name) for name in names)
        )
