"""What happened to a topic is told once, with what it cost."""

from typing import Any

import pytest

from mirror_report.checks.events import one_per_event
from mirror_report.model import Finding


def found(kind: str, topic: str | None = "t", message: str = "", **more: Any) -> Finding:
    return Finding(
        "critical", kind, "f", topic, None, more.pop("count", None), message, "act", **more
    )


NAMES = {"f": {"t": "east.t", "u": "east.u"}}


def told(findings: list[Finding], content: list[Finding]) -> dict[str, str]:
    some = one_per_event(findings, content, NAMES)
    assert len({(finding.kind, finding.topic) for finding in some}) == len(some)
    return {finding.kind: finding.message for finding in some}


RESET = found("reset", "t", "t: deleted and created again on east")
OF_CONTENT = [
    found("reset", "east.t", "f/east.t on the source: the topic was created again"),
    found("missing", "east.t", "f/east.t: 7 records are not on the target", count=7),
    found("unverifiable", "east.t", "f/east.t: 3 records can no longer be compared", count=3),
]


def test_a_topic_that_was_created_again_is_one_finding_with_its_cost() -> None:
    assert told([RESET], OF_CONTENT) == {
        "reset": "t: deleted and created again on east. What it cost: 7 records are not on the "
        "target; 3 records can no longer be compared"
    }


@pytest.mark.parametrize("kind", ["topic_missing", "rewind", "truncated"])
def test_every_event_takes_its_cost_in(kind: str) -> None:
    some = told([found(kind, "east.t", "it happened")], OF_CONTENT[1:2])
    assert some == {kind: "it happened. What it cost: 7 records are not on the target"}


def test_an_event_that_the_content_alone_shows_takes_its_cost_in() -> None:
    assert told([], OF_CONTENT[:2]) == {
        "reset": "f/east.t on the source: the topic was created again. What it cost: 7 records are "
        "not on the target"
    }


def test_what_happened_elsewhere_and_other_faults_stay_findings_of_their_own() -> None:
    other = found("missing", "u", "f/u: 1 record is not on the target")
    copies = found("duplicate", "east.t", "f/east.t: 2 copies")
    known = found("unverifiable", "east.t", "f/east.t: 2 (known)", accounted=True)
    whole = found("unverifiable", None, "everything")
    some = one_per_event([RESET], [other, copies, known, whole], NAMES)
    assert sorted(some, key=str) == sorted([RESET, other, copies, known, whole], key=str)


def test_both_sides_created_again_are_two_events() -> None:
    target = found("reset", "east.t", "east.t: deleted and created again on west")
    some = one_per_event([RESET, target], OF_CONTENT, NAMES)
    assert [finding.kind for finding in some] == ["reset", "reset"]
    assert "What it cost" in some[0].message
    assert some[1] == target
