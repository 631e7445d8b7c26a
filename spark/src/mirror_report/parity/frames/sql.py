"""Columns out of SQL text, and small tables out of rows that a run holds in memory.

Each operator on a ``Column`` takes several messages to the JVM, a text takes four as a whole.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812


def named(texts: Mapping[str, str]) -> list[Column]:
    """Columns to select or to aggregate: name -> expression."""
    return [F.expr(f"{text} AS {name}") for name, text in texts.items()]


def derived(frame: DataFrame, texts: Mapping[str, str]) -> DataFrame:
    """A frame with further or other columns: name -> expression over those it had."""
    return frame.withColumns({name: F.expr(text) for name, text in texts.items()})


def table(session: SparkSession, schema: str, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """A small table made by the JVM alone, so that executors need no Python.

    :param rows: plain values; keys that are absent are null.
    """
    columns = (column.split() for column in schema.split(","))
    ddl = f"array<struct<{', '.join(f'{name}: {kind}' for name, kind in columns)}>>"
    parsed = F.from_json(F.lit(json.dumps([dict(row) for row in rows])), ddl)
    return session.range(1).select(F.explode(parsed).alias("row")).select("row.*")
