"""The report on a topic in the old format of each flow, and on faults of MirrorMaker 1."""

from __future__ import annotations

from faults import FAULTS
from labkit.answers import classes, complete, parity

CHOSEN = ("missing", "altered")


def test_records_in_the_format_of_0_10_are_mirrored_and_verified(lab, faulty, faulty_mm1):
    topics = {"orders": ("old", faulty.target), "payments": ("payments.old", faulty_mm1.target)}
    for flow, (topic, _) in topics.items():
        lab.produce(topic, count=2000, plain=True)
        lab.wait_mirrored(flow, [topic])
    _, document = lab.report("run")
    for flow, (topic, prefix) in topics.items():
        known = lab.compare(topic, prefix=prefix)
        assert (known["acknowledged"], complete(known)) == (2000, {}), topic
        row = parity(document, topic, flow)
        assert (row["status"], row["verified_records"]) == ("verified", 2000), topic


def test_faults_of_mirrormaker_1_are_told(lab, faulty_mm1, whole, measured):
    assert whole[1]["parity"]
    faulty_mm1.fill(CHOSEN)
    faulty_mm1.damage(CHOSEN)
    status, document = lab.report("run", "--flow", "payments")
    found = {name: classes(parity(document, faulty_mm1.topic(name), "payments")) for name in CHOSEN}
    measured(found=found)
    assert status == 2
    assert found == {name: dict(FAULTS[name].expected) for name in CHOSEN}
