"""Every class of fault at once: the report names topic, partition and number, and nothing else."""

from __future__ import annotations

import pytest
from faults import FAULTS
from labkit import classes, parity

RECORDS = 400


@pytest.fixture(scope="module")
def harmed(lab, faulty):
    """One topic per class of fault, each harmed while the mirror was stopped; one report."""
    topics = [faulty.topic(one) for one in faulty.faults]
    lab.produce(*topics, count=RECORDS * len(topics))
    lab.wait_mirrored(faulty.flow, topics)
    before = lab.report("run", "--flow", faulty.flow)[1]
    faulty.harm(list(faulty.faults), RECORDS)
    return {"before": before, "answer": lab.report("run", "--flow", faulty.flow)}


def test_before_the_harm_all_is_verified(faulty, harmed):
    for fault in faulty.faults:
        row = parity(harmed["before"], faulty.topic(fault), faulty.flow)
        assert (row["status"], classes(row)) == ("verified", {}), fault


def test_each_class_is_named_with_its_topic_and_exact_number_and_no_other(faulty, harmed, measured):
    rows = {
        fault: parity(harmed["answer"][1], faulty.topic(fault), faulty.flow)
        for fault in faulty.faults
    }
    found = {fault: classes(row) for fault, row in rows.items()}
    measured(found=found)
    assert found == {fault: dict(one.expected) for fault, one in faulty.faults.items()}


def test_each_class_is_named_with_its_partition_where_the_mirror_keeps_it(faulty, harmed):
    for fault, one in faulty.faults.items():
        row = parity(harmed["answer"][1], faulty.topic(fault), faulty.flow)
        kept = {name: {"0": count} for name, count in one.expected.items()}
        assert row["partitions"] == ({} if faulty.group else kept), fault


def test_each_class_is_a_finding_with_its_number(faulty, harmed):
    for fault, one in faulty.faults.items():
        topic = faulty.topic(fault)
        found = {
            each["kind"]: each["count"]
            for each in harmed["answer"][1]["findings"]
            if each["topic"] in {topic, faulty.target + topic} and each["kind"] in one.expected
        }
        assert found == one.expected, fault


def test_loss_and_corruption_are_critical(harmed):
    assert harmed["answer"][0] == 2


def test_the_next_run_lists_duplicates_and_foreign_records_as_accounted(lab, faulty, harmed):
    assert harmed["answer"][0] == 2
    _, document = lab.report("run", "--flow", faulty.flow)
    accounted = {
        each["kind"]
        for each in document["findings"]
        if each["accounted"] and each["flow"] == faulty.flow
    }
    assert accounted >= {"duplicate", "extra"}
    row = parity(document, faulty.topic("missing"), faulty.flow)
    assert classes(row) == {"missing": FAULTS["missing"].expected["missing"]}


@pytest.mark.long
def test_a_pair_of_classes_alone_is_told_apart(lab, faulty, harmed):
    """What one run finds does not lean on the other topics' faults."""
    del harmed
    lab.report("baseline", "--flow", faulty.flow, "--renew")
    faulty.harm(["missing", "duplicated"], RECORDS)
    _, document = lab.report("run", "--flow", faulty.flow)
    found = {row["source_topic"]: classes(row) for row in document["parity"] if classes(row)}
    assert found == {
        faulty.topic(one): dict(FAULTS[one].expected) for one in ("missing", "duplicated")
    }
