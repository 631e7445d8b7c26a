"""Where a run keeps its rows: directories of Parquet below the state, named by the manifest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from mirror_report.parity.errors import ParityError
from mirror_report.parity.frames import compare, digest
from mirror_report.parity.frames.tables import table
from mirror_report.parity.state.manifest import Memory
from mirror_report.state.store import anew


class Shelf:
    """Rows of earlier runs and of this one.

    :param directory: of all runs.
    :param run_id: this run's directory below it.
    """

    def __init__(self, session: SparkSession, directory: Path, memory: Memory, run_id: str) -> None:
        self.session = session
        self.directory = directory
        self.memory = memory
        self.run_id = run_id

    def write(self, rows: DataFrame, name: str) -> str:
        """Write rows into this run's directory and make them durable.

        :returns: what the manifest calls them.
        """
        known_as = f"{self.run_id}/{name}"
        path = self.directory / known_as
        rows.write.mode("overwrite").parquet(str(path))
        for one in path.iterdir():
            descriptor = os.open(one, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self.memory.files[known_as] = {
            one.name: one.stat().st_size for one in path.iterdir() if one.suffix == ".parquet"
        }
        return known_as

    def read(self, names: str | Sequence[str], schema: str) -> DataFrame:
        """Rows of some directories, as :meth:`write` named them."""
        wanted = [names] if isinstance(names, str) else names
        if not wanted:
            return table(self.session, schema, [])
        paths = [str(self.directory / one) for one in wanted]
        return self.session.read.schema(schema).parquet(*paths)

    def check(self) -> None:
        """Make sure that all rows that count are there.

        :raises ParityError: a file is not as it was written.
        """
        for name in sorted(self.memory.named()):
            for file, size in self.memory.files.get(name, {}).items():
                path = self.directory / name / file
                if not path.is_file() or path.stat().st_size != size:
                    raise ParityError(
                        f"{path} is damaged or gone. Start anew: {anew(self.directory.parent)}"
                    )

    def sealed(self) -> DataFrame:
        """Digest rows of sealed hours."""
        return self.read(self.memory.sealed, digest.SCHEMA)

    def digests(self) -> DataFrame:
        """All digest rows; those of one key add up."""
        return self.read(self.memory.digests, digest.SCHEMA)

    def results(self) -> DataFrame:
        """All drill results."""
        return self.read(self.memory.results or [], compare.RESULTS_SCHEMA)
