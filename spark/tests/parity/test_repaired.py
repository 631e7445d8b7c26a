"""When the report says that records that were missing have arrived; no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_report.parity.plan import TopicPlan
from mirror_report.parity.results import findings
from mirror_report.parity.state import Manifest

TOPIC = TopicPlan("f", "t", ("t",))


def known(**numbers: int) -> Manifest:
    """What a comparison left."""
    return replace(Manifest(60_000), summaries={"f": {"t": {"now": numbers}}})


def test_what_is_missing_no_more_has_arrived() -> None:
    (said,) = findings.repaired(known(missing=10), known(missing=4, duplicate=1), [TOPIC])
    assert (said.kind, said.severity, said.topic, said.count) == ("repaired", "ok", "t", 6)


@pytest.mark.parametrize("name", ["reordered", "moved", "altered_timestamp", "unverifiable"])
def test_what_is_called_by_another_name_has_not_arrived(name: str) -> None:
    assert not findings.repaired(known(missing=10), known(**{name: 10}), [TOPIC])
    was_there = {f"accounted_{name}": 10}
    (said,) = findings.repaired(known(missing=10, **was_there), known(**was_there), [TOPIC])
    assert said.count == 10


def test_of_a_topic_that_begins_again_nothing_has_arrived() -> None:
    assert not findings.repaired(Manifest(60_000), known(missing=0), [TOPIC])
