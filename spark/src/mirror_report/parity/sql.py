"""Columns out of SQL text.

Each operator on a ``Column`` costs several messages to the JVM, and a small run of some thousand
columns would spend a third of its time on them; a text is one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812


def named(texts: Mapping[str, str]) -> list[Column]:
    """Columns to select or to aggregate: name -> expression."""
    return [F.expr(f"{text} AS {name}") for name, text in texts.items()]


def derived(frame: DataFrame, texts: Mapping[str, str]) -> DataFrame:
    """A frame with further or other columns: name -> expression over those it had."""
    return frame.withColumns({name: F.expr(text) for name, text in texts.items()})
