"""Small tables made of rows that a run holds in memory."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812


def table(session: SparkSession, schema: str, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """A small table made by the JVM alone, so that executors need no Python.

    :param rows: plain values; keys that are absent are null.
    """
    text = json.dumps([dict(row) for row in rows])
    parsed = F.from_json(F.lit(text), f"array<struct<{_ddl(schema)}>>")
    return session.range(1).select(F.explode(parsed).alias("row")).select("row.*")


def _ddl(schema: str) -> str:
    return ", ".join(
        f"{name}: {kind}" for name, kind in (column.split() for column in schema.split(","))
    )
