"""What is said of those who may command a mirror through its own topics."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mirror_report import engines
from mirror_report.checks import control, preflight
from mirror_report.checks.kinds import TABLE
from mirror_report.config import Credentials, Flow
from mirror_report.kafka import positions
from mirror_report.model import (
    ClusterSnapshot,
    ForeignRecords,
    PartitionSnapshot,
    ReportError,
    TopicSnapshot,
)

FLOW = Flow(
    "orders", "east", "west", ".*", engines.MM2, group_id="east-mm2",
    config_topic="configs", offset_topic="offsets", worker_principal="User:mirror",
    hosts=("mirror1",),
)  # fmt: skip
WORKER = [("User:mirror", "READ", True), ("User:mirror", "WRITE", True)]


@pytest.mark.parametrize(
    ("topic", "rows", "said"),
    [
        ("configs", WORKER, []),
        ("configs", [("User:report", "READ", True)], ["User:report may read"]),
        ("configs", [("User:report", "READ", True), ("User:report", "READ", False)], []),
        ("configs", [("User:*", "ALL", True)], ["User:* may write or change", "User:* may read"]),
        ("configs", [("User:report", "DESCRIBE", True)], []),
        ("offsets", [("User:report", "READ", True)], []),
        ("offsets", [("User:b", "WRITE", True), ("User:a", "WRITE", True)],
         ["User:a, User:b may write or change"]),
        ("offsets", [("User:a", "ALTER", True)], ["User:a may write or change"]),
        ("offsets", [("User:a", "ALTER_CONFIGS", True)], ["User:a may write or change"]),
        ("offsets", [("User:a", "DELETE", True), ("User:a", "WRITE", False)],
         ["User:a may write or change"]),
        ("offsets", [("User:a", "ALL", True), ("User:a", "ALL", False)], []),
        ("offsets", [("User:a", "WRITE", True), ("User:*", "WRITE", False)], []),
    ],
)  # fmt: skip
def test_others_who_may_command_a_mirror_are_named(
    topic: str, rows: list[tuple[str, str, bool]], said: list[str]
) -> None:
    found = control.access(FLOW, {topic: [*WORKER, *rows]})
    assert [(one.kind, one.severity, one.topic) for one in found] == [
        ("control_access", "warning", topic) for _ in said
    ]
    assert all(words in one.message for words, one in zip(said, found, strict=True))


def test_of_workers_that_no_inventory_has_it_is_a_note_who_may() -> None:
    rows = [*WORKER, ("User:connect", "READ", True), ("User:connect", "WRITE", True)]
    found = control.access(replace(FLOW, hosts=()), {"configs": rows})
    assert [one.severity for one in found] == ["ok", "ok"]
    assert all("User:connect may" in one.message for one in found)
    assert not any("Take away" in one.action for one in found)


def test_nobody_is_named_where_nobody_knows_who_the_mirror_is() -> None:
    unknown = replace(FLOW, worker_principal=None)
    assert control.access(unknown, {"configs": [*WORKER, ("User:a", "ALL", True)]}) == []


def test_a_foreign_record_is_spoken_of_for_a_day_and_no_command_touches_its_topic() -> None:
    record = ForeignRecords("offsets", 3, 2, 17, "no JSON", 1000)
    (found,) = control.control_records(FLOW, [record], 2000)
    assert (found.kind, found.severity, found.topic, found.count) == (
        "control_record", "warning", "offsets", 2,
    )  # fmt: skip
    assert "offsets-3 on west: 2 record(s)" in found.message
    assert "the last one at offset 17: no JSON" in found.message
    assert not any(word in found.action for word in ("--alter", "--delete", "--reset"))
    assert control.control_records(FLOW, [record], 1000 + control.SPOKEN_OF_MS) == []


HARMS = re.compile(
    r"--alter|--delete|--reset|--add-config|segment\.bytes|make it compacted|(?<!nor )delete it"
)


@pytest.mark.parametrize(
    "kind", ["internal_topic", "control_record", "control_access", "task_failed", "unknown_lag"]
)
def test_no_cure_of_what_concerns_a_mirror_s_own_topics_touches_one(kind: str) -> None:
    assert not HARMS.search(TABLE[kind].cure)


def test_a_topic_of_a_mirror_that_is_too_long_to_read_at_once_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = TopicSnapshot("offsets", "id", {0: PartitionSnapshot(0, 9, 9)}, {}, 1)
    monkeypatch.setattr(positions, "own_topics", lambda *_: ({"offsets": log}, {}))
    monkeypatch.setattr(positions, "catch_up", lambda *_: {})
    client: Any = SimpleNamespace(cluster=SimpleNamespace(alias="west"))
    with pytest.raises(ReportError, match="9 records of offsets were not read") as raised:
        positions._from_own_topics(client, Credentials(), FLOW, {}, 1)
    assert not HARMS.search(raised.value.action)


def test_an_own_topic_that_is_not_compacted_is_left_to_who_made_it() -> None:
    log = TopicSnapshot("offsets", "id", {}, {"cleanup.policy": "delete"}, 1)
    (found,) = preflight.internal_topics(FLOW, ClusterSnapshot("c", "c", 0, {"offsets": log}, {}))
    assert not HARMS.search(found.action)
