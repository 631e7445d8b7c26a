"""What is said of those who may command a mirror through its own topics."""

from dataclasses import replace

import pytest

from mirror_report import engines
from mirror_report.checks import control
from mirror_report.config import Flow
from mirror_report.model import ForeignRecords

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
    (found,) = control.foreign(FLOW, [record], 2000)
    assert (found.kind, found.severity, found.topic, found.count) == (
        "control_record", "warning", "offsets", 2,
    )  # fmt: skip
    assert "offsets-3 on west: 2 record(s)" in found.message
    assert "the last one at offset 17: no JSON" in found.message
    assert not any(word in found.action for word in ("--alter", "--delete", "--reset"))
    assert control.foreign(FLOW, [record], 1000 + control.SPOKEN_OF_MS) == []
