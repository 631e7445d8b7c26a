"""The keys of a bucket and of a partition of one side, and the version of what is kept by them."""

from collections.abc import Mapping
from typing import Any

BUCKET = ("flow", "topic", "lane", "bucket")
PARTITION = ("flow", "side", "origin", "partition")

FINGERPRINT_VERSION = 1
"""Of the canonical encoding; part of the state: different encodings are never compared."""

Key = tuple[Any, ...]


def bucket_key(row: Mapping[str, Any]) -> Key:
    """Which bucket a row is of."""
    return tuple(row[name] for name in BUCKET)


def partition_key(row: Mapping[str, Any]) -> Key:
    """Which partition of one side a row is of."""
    return tuple(row[name] for name in PARTITION)
