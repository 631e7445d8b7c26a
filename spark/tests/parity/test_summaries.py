"""What a topic is called, by what was compared of it."""

from __future__ import annotations

import pytest

from mirror_report.model import CLASSES, TopicParity
from mirror_report.parity import classes
from mirror_report.parity.results import summaries


def topic(left_open: int = 0, **buckets: int) -> TopicParity:
    return TopicParity(
        flow="f", source_topic="t", topic="t", status="unknown", source_records=9,
        target_records=9, verified_records=0, in_flight_records=0, skipped_records=left_open,
        counts=dict.fromkeys(CLASSES, 0), accounted={},
        buckets=dict.fromkeys(classes.STATUSES, 0) | buckets,
        verified_through_ms=None, newest_due_ms=None, reason="", samples={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "called"),
    [
        (topic(verified=1), "verified"),
        (topic(verified=1, skipped=2), "verified"),
        (topic(4, skipped=2), "skipped"),
        (topic(4, skipped=2, in_flight=1), "in_flight"),
        # Only copies of what the source had lost: nothing was compared.
        (topic(0, skipped=2), "in_flight"),
        (topic(), "in_flight"),
    ],
)
def test_nothing_compared_is_not_verified(found: TopicParity, called: str) -> None:
    assert summaries.status(found, 0, 0)["status"] == called


def test_the_reason_says_what_lies_below_the_position() -> None:
    assert summaries.status(topic(), 0, 0)["reason"].startswith("nothing is below")
    assert summaries.status(topic(), 0, 0, 95)["reason"].startswith("95 records below")
