"""A group stops on one side and goes on on the other: how much it skips and reads again."""

from __future__ import annotations

import pytest
from labkit.controller import wait

pytestmark = pytest.mark.long
OLD, NEW = range(1500), range(1500, 1800)


def write(lab, topic, numbers):
    """Records whose values are numbers, by key on both partitions."""
    text = "".join(f"{number}:{number}\n" for number in numbers)
    options = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    argv = ["kafka-as", "east", "kafka-console-producer.sh", "--topic", topic, *options]
    lab.desk.run(*argv, stdin=text)
    lab.wait_mirrored("orders", [topic])


def read(lab, cluster, topic, *options):
    """What the group reads: by default, until nothing has come for a while."""
    argv = ["kafka-as", cluster, "kafka-console-consumer.sh", "--topic", topic]
    argv += ["--group", "billing", "--from-beginning", *(options or ("--timeout-ms", "15000"))]
    return [int(line) for line in lab.desk.run(*argv).stdout.split()]


def forecast(lab, topic):
    """What the report says of the group: records it would skip, and read again."""
    _, document = lab.report("groups")
    (row,) = (each for each in document["groups"] if each["group"] == "billing")
    places = [each for each in row["partitions"] if each["topic"] == topic]
    found = [(each["skip"], each["reread"]) for each in places]
    if len(found) != 2 or any(None in each for each in found):
        return None
    return tuple(map(sum, zip(*found, strict=True)))


def settled(lab, topic):
    """The forecast once checkpoints have come to rest."""
    seen = [forecast(lab, topic)]

    def twice():
        seen.append(forecast(lab, topic))
        return seen[-1] is not None and len(seen) > 3 and len(set(seen[-3:])) == 1

    wait("checkpoints at rest", twice)
    return seen[-1]


def failed_over(lab, topic, *options):
    """Records that a group skipped and read again when it went to the target.

    :param options: say how much of what there is it reads before.
    """
    write(lab, topic, OLD)
    here = set(read(lab, "east", topic, *options))
    before = settled(lab, topic)
    write(lab, topic, NEW)
    told = settled(lab, topic)
    there = read(lab, "west", f"east.{topic}")
    waiting = {*OLD, *NEW} - here
    return {
        "read": len(here),
        "before": before,
        "told": told,
        "met": (len(waiting - set(there)), len(here & set(there))),
        "repeated": len(there) - len(set(there)),
    }


def test_a_group_that_keeps_up_meets_what_the_report_foretells(lab, measured):
    found = failed_over(lab, "invoices")
    measured(**found)
    assert found["read"] == len(OLD)
    assert found["told"] == found["met"]
    assert found["met"][0] == 0
    assert found["repeated"] == 0


def test_a_group_in_the_midst_reads_again_what_the_report_foretells(lab, measured):
    found = failed_over(lab, "refunds", "--max-messages", str(len(OLD) // 2))
    measured(**found)
    assert found["read"] == len(OLD) // 2
    assert found["told"] == found["met"]
    assert found["met"][0] == 0
    assert found["met"][1] > 0
    assert found["repeated"] == 0


@pytest.fixture
def exact(lab):
    """An offset sync for every record, until the test ends."""
    other = lab.changed(lambda v: v["mirror_flows"][0]["properties"].update({"offset.lag.max": 0}))
    lab.playbook("kafka-connect.yml", other)
    yield
    lab.playbook("kafka-connect.yml")


@pytest.mark.usefixtures("exact")
def test_with_a_sync_for_every_record_it_skips_nothing_and_reads_nothing_again(lab, measured):
    found = failed_over(lab, "receipts")
    measured(**found)
    assert found["read"] == len(OLD)
    assert found["told"] == found["met"] == (0, 0)
    assert found["repeated"] == 0
