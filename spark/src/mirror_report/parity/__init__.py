"""Content parity: whether every mirrored record is on the target, once, and unaltered.

:mod:`~mirror_report.parity.run` is one run, top to bottom. ``plan`` says what to read, ``frames``
compares it, ``spark`` reads and writes, ``steps`` puts these together, ``results`` says what is
reported, ``state`` is kept between runs. Only ``frames``, ``spark`` and ``steps`` import pyspark.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from mirror_report.model import ReportError
from mirror_report.parity.classes import (
    ACCOUNTABLE,
    ADDED,
    BY_LANE,
    FORETOLD,
    HARMLESS,
    LASTING,
    NEWEST,
    OLDEST,
    REPORTED_ONCE,
    SAMPLES,
    STATUSES,
    WHOLE,
    WRONG_KEYS,
)

__all__ = [
    "ACCOUNTABLE",
    "ADDED",
    "BUCKET",
    "BY_LANE",
    "FINGERPRINT_VERSION",
    "FORETOLD",
    "HARMLESS",
    "HOUR_MS",
    "LASTING",
    "NEWEST",
    "OLDEST",
    "PARTITION",
    "REPORTED_ONCE",
    "SAMPLES",
    "STATUSES",
    "WHOLE",
    "WRONG_KEYS",
    "Key",
    "ParityError",
    "bucket_key",
    "grouped",
    "partition_key",
    "thinned",
    "without_spark",
]

# The keys of a bucket and of a partition of one side.
BUCKET = ("flow", "topic", "lane", "bucket")
PARTITION = ("flow", "side", "origin", "partition")
HOUR_MS = 3_600_000
# Of the canonical encoding; part of the state: different encodings are never compared.
FINGERPRINT_VERSION = 2

Key = tuple[Any, ...]
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

# Which bucket a row is of, and which partition of one side.
bucket_key: Callable[[Mapping[str, Any]], Key] = itemgetter(*BUCKET)
partition_key: Callable[[Mapping[str, Any]], Key] = itemgetter(*PARTITION)


def grouped(values: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Key -> the values that have it, in their order."""
    groups: dict[K, list[T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


def thinned(values: Sequence[T], most: int) -> list[T]:
    """No more than ``most``: of the older half every other one is given up, never the first."""
    if len(values) <= most:
        return list(values)
    half = len(values) // 2
    return [*values[:half:2], *values[half:]]


class ParityError(ReportError):
    """Content could not be compared as a whole; the message says why and what to do about it."""

    kind = "parity_unavailable"


def without_spark(error: ImportError) -> ParityError:
    """The error of a report that was installed without Spark."""
    return ParityError(
        f"the Python package {error.name or 'pyspark'} is missing",
        "Install the report with its Spark part: role mirror_report, or "
        "pip install 'mirror-report[spark]' into its venv",
    )
