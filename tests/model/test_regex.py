"""The portable subset of topic patterns, and what two selections have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirror_model import regex
from mirror_model.keys import ModelError
from mirror_model.overlap import common_topic, pairs_alike

PORTABLE = [
    "orders",
    "a.b",
    ".*",
    "payments\\..*",
    "a|b",
    "(a|b)c",
    "(?:a|b)+",
    "[a-z]+",
    "[^a-c]x",
    "[A-Z0-9_.-]*",
    "[-a]",
    "[a\\-z]",
    "[\\d_]",
    "\\d\\w",
    "a{3}",
    "a?",
    "(ab)?c",
    "[.]",
    "x\\_y\\-z",
    "(?:(?:a))",
    "a{0}b",
    "[a-zA-Z]",
]
REFUSED = {
    "a,b": "comma",
    "a{1,3}": "comma",
    "a{1,}": "comma",
    "(?=a)b": "lookahead",
    "(?!a)b": "negative lookahead",
    "(?<=a)b": "lookbehind",
    "(?<!a)b": "lookbehind",
    "(?i)a": "flags",
    "(?i:a)": "flags",
    "(a)\\1": "back-references",
    "(?P<n>a)": "named",
    "(?<n>a)": "named",
    "\\k<n>": "not portable",
    "(?>a)": "atomic",
    "a*+": "possessive",
    "a++": "possessive",
    "a?+": "possessive",
    "a*?": "lazy",
    "a{2}?": "lazy",
    "a{2}{3}": "quantifier",
    "a**": "quantifier",
    "*a": "repeats nothing",
    "a|*": "repeats nothing",
    "^a": "whole topic name",
    "a$": "whole topic name",
    "\\Aa": "not portable",
    "\\pL": "not portable",
    "\\D": "not portable",
    "\\s": "not portable",
    "\\Q.\\E": "not portable",
    "a\\": "not portable",
    "(a": "not closed",
    "a)": "closes nothing",
    "[a": "not closed",
    "[]": "class",
    "[^]": "class",
    "[a&&b]": "class",
    "[[:alpha:]]": "class",
    "[z-a]": "range",
    "[a-Z]": "range",
    "[a-c-e]": "'-'",
    "a||b": "empty",
    "(a|)": "empty",
    "()": "empty",
    "a b": "topic name",
    "a/b": "topic name",
    "ä": "topic name",
    "'a'": "topic name",
    '"a"': "topic name",
    "a}": "topic name",
    "a]": "topic name",
}


@pytest.mark.parametrize("pattern", PORTABLE)
def test_portable_pattern(pattern: str) -> None:
    regex.parsed(pattern)


@pytest.mark.parametrize(("pattern", "word"), REFUSED.items())
def test_a_refused_pattern_is_reported_with_its_reason(pattern: str, word: str) -> None:
    with pytest.raises(ModelError, match=re.escape(word)) as problem:
        regex.parsed(pattern)
    assert pattern in str(problem.value)


def test_a_legal_name_means_that_topic_alone() -> None:
    assert regex.include_regex(["a.b"]) == r"a\.b"
    assert common_topic([(["a.b"], []), (["axb"], [])]) is None


def test_exclusions_become_a_negative_lookahead() -> None:
    include = regex.include_regex(["orders", r"pay\..*"], ["pay.test", r"pay\.x\d"])
    assert include == r"(?!(?:pay\.test|pay\.x\d)$)(?:orders|pay\..*)"
    chosen = [name for name in ("orders", "pay.eu", "pay.test", "pay.x1", "pay.x12", "other")
              if re.fullmatch(include, name)]  # fmt: skip
    assert chosen == ["orders", "pay.eu", "pay.x12"]


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ((["orders"], []), (["orders"], []), "orders"),
        ((["orders"], []), (["orders2"], []), None),
        (([".*"], []), (["orders"], []), "orders"),
        (([".*"], ["orders"]), (["orders"], []), None),
        (([".*"], [r"a.*"]), ([".*"], [r"[^a].*"]), None),
        ((["[a-c]{3}"], []), (["c+"], []), "ccc"),
        (([r"a\d+"], []), ([r"a\w"], []), "a0"),
        ((["(ab)*x"], []), (["(ba)*x"], []), "x"),
        (([r".*\.eu"], []), ([r"pay\..*"], []), "pay.eu"),
    ],
)
def test_common_topic(first: Any, second: Any, common: str | None) -> None:
    assert common_topic([first, second]) == common
    assert common_topic([second, first]) == common


def test_a_search_too_large_assumes_overlap() -> None:
    first: tuple[list[str], list[str]] = ([r".*a[ab]{16}x"], [])
    second: tuple[list[str], list[str]] = ([r".*b[ab]{16}yx"], [])
    assert common_topic([first, second]) == "..."


letters = st.sampled_from("ab.-_1")
patterns: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(["a", "b", "1", ".", "\\.", "\\d", "\\w", "[ab]", "[^a]", "[0-9_-]"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}"])).map(
            lambda t: f"(?:{t[0]}){t[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(first=patterns, second=patterns, left_out=patterns)
def test_a_common_topic_is_matched_by_all(first: str, second: str, left_out: str) -> None:
    name = common_topic([([first], [left_out]), ([second], [])])
    if name is not None:
        assert re.fullmatch(regex.include_regex([first], [left_out]), name)
        assert re.fullmatch(regex.include_regex([second]), name)


@settings(max_examples=150, deadline=None)
@given(first=patterns, second=patterns, name=st.text(letters, min_size=1, max_size=5))
def test_a_topic_matched_by_both_is_never_overlooked(first: str, second: str, name: str) -> None:
    if re.fullmatch(regex.as_regex(first), name) and re.fullmatch(regex.as_regex(second), name):
        assert common_topic([([first], []), ([second], [])]) is not None
        assert pairs_alike({"first": [first], "second": [second]})


def test_selections_whose_names_begin_or_end_differently_are_told_apart() -> None:
    selections = {
        "tails": [r".*-a", "x?b"],
        "other tails": [".*-b", "[0-9]+c"],
        "names": ["orders", "payments"],
        "other names": ["orders2", "payments.eu"],
        "team": [r"team1\..*"],
        "other team": [r"team2\..*"],
        "all of them": ["orders", r"team2\.[a-z]+", "x-b"],
    }
    assert pairs_alike(selections) == {
        frozenset(pair)
        for pair in [
            ("all of them", "names"),
            ("all of them", "other team"),
            ("all of them", "other tails"),
            ("all of them", "tails"),
            ("other team", "tails"),
            ("other team", "other tails"),
            ("team", "tails"),
            ("team", "other tails"),
        ]
    }


def test_java_reads_every_portable_pattern_as_python_does(java: Callable[[str], Any]) -> None:
    compiled = java("java.util.regex.Pattern").compile
    names = [
        "orders",
        "a.b",
        "axb",
        "ab",
        "abab",
        "a",
        "b",
        "c",
        "1w",
        "Zz",
        "-",
        "_",
        "payments.eu",
        "aaa",
        "x_y-z",
        "cx",
        "dx",
    ]
    for pattern in PORTABLE:
        for exclude in ([], ["a.b"], [r"a\w*"]):
            include = regex.include_regex([pattern], exclude)
            read = compiled(include)
            for name in names:
                ours = re.fullmatch(include, name) is not None
                assert read.matcher(name).matches() == ours, (include, name)


@settings(max_examples=300, deadline=None)
@given(pattern=patterns)
def test_beginnings_say_neither_too_little_nor_too_much(pattern: str) -> None:
    found = regex.beginnings(pattern)
    described = [regex.as_regex(text) if whole else re.escape(text) + ".*" for text, whole in found]
    assert common_topic([([pattern], described)]) is None
    for (text, whole), expression in zip(found, described, strict=True):
        if whole:
            assert re.fullmatch(regex.as_regex(pattern), text)
        else:
            assert common_topic([([pattern], []), ([expression], [])]) is not None
