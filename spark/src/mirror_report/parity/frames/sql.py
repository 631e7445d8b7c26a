"""Columns out of SQL text.

Each operator on a ``Column`` takes several messages to the JVM, a text takes four as a whole.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812


def named(texts: Mapping[str, str]) -> list[Column]:
    """Columns to select or to aggregate: name -> expression."""
    return [F.expr(f"{text} AS {name}") for name, text in texts.items()]


def derived(frame: DataFrame, texts: Mapping[str, str]) -> DataFrame:
    """A frame with further or other columns: name -> expression over those it had."""
    return frame.withColumns({name: F.expr(text) for name, text in texts.items()})
