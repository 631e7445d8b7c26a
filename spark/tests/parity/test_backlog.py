"""What a backlog hides: nothing that is lost, although no run can read everything."""

from __future__ import annotations

import pytest
from parity_mirror import RECORDS, T0, Mirror, counts, only
from parity_records import jars_directory

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

BUDGET = 300
ROUND = 200


@pytest.mark.long
def test_what_is_lost_does_not_wait_for_the_end_of_a_backlog(mirror: Mirror) -> None:
    mirror.produce(topic := mirror.topic("large"))
    mirror.copy(topic, faults={"missing": 2, "duplicate": 2, "corrupt_value": 1})
    kinds: list[dict[str, int]] = []
    while (result := mirror.run(max_records=BUDGET)).backlog_records:
        kinds.append(counts(only(result)))
    assert len(kinds) == 4, "no run reads more than it may"
    assert kinds[:2] == [{}, {}], "the target comes first"
    assert kinds[2:] == [{"missing": 2, "corrupt_value": 1}] * 2
    assert counts(only(result)) == {"missing": 2, "duplicate": 2, "corrupt_value": 1}
    assert mirror.store.load("parity")["boundaries"] == {"flow": {topic: []}}


@pytest.mark.long
def test_what_is_lost_is_found_under_a_backlog_that_only_grows(mirror: Mirror) -> None:
    topic = mirror.topic("growing")
    found, backlog = [], []
    for number in range(6):
        start = number * ROUND
        mirror.produce(topic, ROUND, start=start)
        new = [record for record in mirror.read(0, topic) if record.timestamp >= T0 + start * 1000]
        for at, record in enumerate(new):
            if (number, at) != (2, 5):
                mirror.write(record)
            if (number, at) == (1, 7):
                mirror.write(record)
        mirror.producers[1].flush()
        mirror.commit(topic)
        result = mirror.run(max_records=BUDGET)
        found.append(counts(only(result)))
        backlog.append(result.backlog_records)
    assert backlog == sorted(backlog)
    assert backlog[-1] > 2 * RECORDS / 2
    assert found[-1] == {"missing": 1}
    assert all(some in ({}, {"missing": 1}) for some in found), found
    whole = only(mirror.run())
    assert counts(whole) == {"missing": 1, "duplicate": 1}
    assert whole.verified_records == 6 * ROUND - 1
