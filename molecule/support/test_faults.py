"""Every class of fault at once: the report names exactly topic, partition and number."""

from __future__ import annotations

from faults import FAULTS, RECORDS
from labkit.answers import classes, parity


def test_before_the_damage_all_is_verified(faulty, whole):
    for fault in faulty.faults:
        row = parity(whole[1], faulty.topic(fault), faulty.flow)
        assert (row["status"], classes(row)) == ("verified", {}), fault
        assert row["source_records"] == row["verified_records"] == RECORDS, fault


def test_a_source_truncated_past_the_position_is_lost_with_the_number(faulty, damaged):
    status, document = damaged.stopped
    lost = {row["topic"]: row["lost"] for row in document["lag"] if row["lost"]}
    gone = faulty.faults["truncated"].truncated
    assert lost == {faulty.topic("truncated"): gone}
    kinds = {(each["topic"], each["kind"], each["count"]) for each in document["findings"]}
    assert (faulty.topic("truncated"), "truncated", gone) in kinds
    assert status == 2


def test_a_certain_loss_stays_critical_after_the_mirror_went_on(faulty, damaged):
    said = [each for each in damaged.answer[1]["findings"] if each["kind"] == "truncated"]
    assert [(each["topic"], each["severity"]) for each in said] == [
        (faulty.topic("truncated"), "critical")
    ]


def test_records_that_nobody_can_read_again_are_not_called_verified(faulty, damaged):
    row = parity(damaged.answer[1], faulty.topic("truncated"), faulty.flow)
    assert row["verified_records"] == row["source_records"]
    assert row["source_records"] == 2 * RECORDS - faulty.faults["truncated"].truncated


def test_each_class_is_named_with_topic_and_exact_number_and_no_other(faulty, damaged, measured):
    rows = {
        fault: parity(damaged.answer[1], faulty.topic(fault), faulty.flow)
        for fault in faulty.faults
    }
    found = {fault: classes(row) for fault, row in rows.items()}
    measured(found=found)
    assert found == {fault: dict(damage.expected) for fault, damage in faulty.faults.items()}


def test_each_class_is_named_with_its_partition_where_the_mirror_keeps_it(faulty, damaged):
    for fault, damage in faulty.faults.items():
        row = parity(damaged.answer[1], faulty.topic(fault), faulty.flow)
        kept = {name: {"0": count} for name, count in damage.expected.items()}
        assert row["partitions"] == ({} if faulty.group else kept), fault


def test_each_class_is_a_finding_with_its_number(faulty, damaged):
    for fault, damage in faulty.faults.items():
        topic = faulty.topic(fault)
        found = {
            each["kind"]: each["count"]
            for each in damaged.answer[1]["findings"]
            if each["topic"] in {topic, faulty.target + topic} and each["kind"] in damage.expected
        }
        # What an event cost stands in the finding about the event.
        event = damage.truncated or damage.recreated
        assert found == ({} if event else damage.expected), fault


def test_loss_and_corruption_are_critical(damaged):
    assert damaged.answer[0] == 2


def test_the_next_run_lists_duplicates_and_foreign_records_as_accounted(lab, faulty, damaged):
    assert damaged.answer[0] == 2
    _, document = lab.report("run", "--flow", faulty.flow)
    accounted = {
        each["kind"]
        for each in document["findings"]
        if each["accounted"] and each["flow"] == faulty.flow
    }
    assert accounted >= {"duplicate", "extra"}
    row = parity(document, faulty.topic("missing"), faulty.flow)
    assert classes(row) == {"missing": FAULTS["missing"].expected["missing"]}
