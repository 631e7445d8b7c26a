"""Content parity: whether every mirrored record is on the target, once, and unaltered.

:mod:`~mirror_report.parity.run` is one run, top to bottom. ``plan`` says what to read, ``frames``
compares it, ``spark`` reads and writes, ``steps`` puts these together, ``results`` says what is
reported, ``state`` is kept between runs. Only ``frames``, ``spark`` and ``steps`` import pyspark.
"""

from mirror_report.parity.classes import (
    ACCOUNTABLE,
    ADDED,
    BY_LANE,
    HARMLESS,
    LASTING,
    NEWEST,
    OLDEST,
    REPORTED_ONCE,
    SAMPLES,
    STATUSES,
    WHOLE,
)
from mirror_report.parity.errors import ParityError, without_spark
from mirror_report.parity.keys import (
    BUCKET,
    FINGERPRINT_VERSION,
    PARTITION,
    Key,
    bucket_key,
    partition_key,
)

__all__ = [
    "ACCOUNTABLE",
    "ADDED",
    "BUCKET",
    "BY_LANE",
    "FINGERPRINT_VERSION",
    "HARMLESS",
    "LASTING",
    "NEWEST",
    "OLDEST",
    "PARTITION",
    "REPORTED_ONCE",
    "SAMPLES",
    "STATUSES",
    "WHOLE",
    "Key",
    "ParityError",
    "bucket_key",
    "partition_key",
    "without_spark",
]
