"""Classes of difference: their meaning for a topic, and the numbers that are kept of a topic."""

from mirror_report.model import CLASSES, ParityStatus

# What stands for the partitions of a topic whose mirror does not keep them.
WHOLE = "*"
# Statuses of a bucket, the worst last.
STATUSES: tuple[ParityStatus, ...] = (
    "verified", "skipped", "in_flight", "unverifiable", "mismatch",
)  # fmt: skip
# Classes that do not make a topic differ.
HARMLESS = ("unverifiable", "expired")
# Classes that are wrong until they are mended or a new baseline is recorded.
LASTING = ("missing", "corrupt_value", "corrupt_headers", "moved", "deleted_early")
# What a key of a compacted topic can be beside verified, in_flight, expired, unverifiable, skipped
# and absent; without a partner it may turn out to be expired or unverifiable.
WRONG_KEYS = ("missing", "corrupt_value", "corrupt_headers", "altered_timestamp", "extra")
# Classes that raise the verdict in the run that finds them and are accounted afterwards.
REPORTED_ONCE = ("duplicate", "extra", "altered_timestamp")
# Lasts where the mirror keeps partitions and with them the order; else it is reported once.
BY_LANE = "reordered"
ACCOUNTABLE = (*REPORTED_ONCE, BY_LANE)
# Records of a class of a topic that are shown.
SAMPLES = 20

# What the next run may say otherwise although nothing has changed.
FORETOLD = ("verified_records", "in_flight_records", *(f"buckets_{name}" for name in STATUSES))
# Numbers of a lane that add up to those of its topic, those of which the newest counts, and those
# of which the oldest does. ``unmatched_records``: what cannot be verified and the target alone has;
# ``below_records``: what was committed of buckets that are not due, at most.
ADDED = (
    "source_records", "target_records", "skipped_records", "older_records", "replaced_records",
    *CLASSES,
    *(f"accounted_{name}" for name in ACCOUNTABLE), "unmatched_records", "below_records",
    *FORETOLD, *(f"next_{name}" for name in FORETOLD), "candidates",
)  # fmt: skip
NEWEST = ("newest_due_ms", "verified_through_ms", "next_verified_through_ms")
OLDEST = ("in_flight_since_ms",)
