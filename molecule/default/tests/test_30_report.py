"""The report names what really happened: class, topic and exact number, and nothing else."""

from __future__ import annotations

import pytest
from labkit import classes, parity

MISSING, ALTERED, DUPLICATED, FOREIGN, LOST = 7, 5, 4, 3, 11
GROUP = "mirrormaker-payments"
TOPICS = [
    "payments.missing",
    "payments.altered",
    "payments.duplicated",
    "payments.foreign",
    "payments.truncated",
]


@pytest.fixture(scope="module")
def harmed(lab, payments):
    """Harm one topic per class while the mirror is stopped, then let it go on."""
    lab.wait_mirrored("payments", TOPICS)
    payments.control("stop")
    lab.produce(*TOPICS, count=2000)
    positions = lab.probe({"do": "positions", "cluster": "east", "group": GROUP})[0]
    at = {topic: int(positions[topic]["0"]) for topic in TOPICS}
    lag = lab.report("lag", "--flow", "payments")[1]["lag"]

    def tamper(topic, begin, count, how):
        return {
            "do": "tamper",
            "cluster": "east",
            "into": "west",
            "topic": f"payments.{topic}",
            "partition": 0,
            "begin": begin,
            "count": count,
            "how": how,
        }

    def first(topic, forward):
        name = f"payments.{topic}"
        return {name: {"0": at[name] + forward}}

    skipped = {**first("missing", MISSING), **first("altered", ALTERED)}
    answers = lab.probe(
        tamper("altered", at["payments.altered"], ALTERED, "altered"),
        tamper("duplicated", 0, DUPLICATED, "duplicated"),
        tamper("foreign", 0, FOREIGN, "foreign"),
        {"do": "move", "cluster": "east", "group": GROUP, "offsets": skipped},
        {"do": "truncate", "cluster": "east", "offsets": first("truncated", LOST)},
    )
    assert answers[:3] == [ALTERED, DUPLICATED, FOREIGN]
    assert set(answers[3].values()) == {"NoError"}
    truncated = lab.report("lag", "--flow", "payments")
    payments.control("start")
    lab.wait_mirrored("payments", TOPICS)
    return {"lag": lag, "truncated": truncated, "answer": lab.report("run")}


def test_lag_of_a_stopped_mirror_is_what_was_produced(harmed):
    per_topic = dict.fromkeys(TOPICS, 0)
    for row in harmed["lag"]:
        per_topic[row["topic"]] += row["lag_records"]
    assert per_topic == dict.fromkeys(TOPICS, 400)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("payments.missing", {"missing": MISSING}),
        ("payments.altered", {"corrupt_value": ALTERED}),
        ("payments.duplicated", {"duplicate": DUPLICATED}),
        ("payments.foreign", {"extra": FOREIGN}),
    ],
)
def test_each_class_is_named_with_its_topic_and_exact_number(harmed, topic, expected):
    row = parity(harmed["answer"][1], topic)
    assert classes(row) == expected
    (kind,) = expected
    findings = [each for each in harmed["answer"][1]["findings"] if each["topic"] == topic]
    assert [(each["kind"], each["count"]) for each in findings] == [(kind, expected[kind])]


def test_a_source_truncated_past_the_position_is_lost_with_the_number(harmed):
    status, document = harmed["truncated"]
    lost = {row["topic"]: row["lost"] for row in document["lag"] if row["lost"]}
    assert lost == {"payments.truncated": LOST}
    kinds = {(each["topic"], each["kind"], each["count"]) for each in document["findings"]}
    assert ("payments.truncated", "truncated", LOST) in kinds
    assert status == 2


def test_records_that_nobody_can_read_again_are_not_called_verified(harmed):
    row = parity(harmed["answer"][1], "payments.truncated")
    assert classes(row) == {"unverifiable": LOST}
    assert row["verified_records"] == row["source_records"] == 800 - LOST


def test_loss_and_corruption_are_critical(harmed):
    assert harmed["answer"][0] == 2


def test_the_next_run_lists_duplicates_and_foreign_records_as_accounted(lab, harmed):
    assert harmed["answer"][0] == 2
    _, document = lab.report("run")
    accounted = {
        (each["topic"], each["kind"]): each["accounted"]
        for each in document["findings"]
        if each["kind"] in {"duplicate", "extra"}
    }
    assert accounted[("killed", "duplicate")]
    assert accounted[("payments.duplicated", "duplicate")]
    assert accounted[("payments.foreign", "extra")]
