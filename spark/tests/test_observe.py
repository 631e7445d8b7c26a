"""Which topics are asked for by name."""

from mirror_report.config import Flow
from mirror_report.observe import literals


def test_named_topics_are_asked_for_by_name() -> None:
    flow = Flow("f", "east", "west", "b|a\\.x", topics=("b", "a\\.x", "b"), group_id="g")
    assert literals(flow) == ["a.x", "b"]


def test_excluded_topics_are_not_asked_for() -> None:
    flow = Flow("f", "east", "west", "(?!(?:b)$)(?:a|b)", topics=("a", "b"), group_id="g")
    assert literals(flow) == ["a"]


def test_a_regex_names_nothing() -> None:
    assert literals(Flow("f", "east", "west", "a.*", topics=("a.*",), group_id="g")) == []
