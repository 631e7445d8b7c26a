"""A record that no program can hold leaves the report within its memory, and the rest known."""

from __future__ import annotations

import json
import re

import pytest
from labkit.answers import parity
from labkit.controller import PYTHON, TOOLS
from labkit.memory import MIB, Limit

pytestmark = pytest.mark.long
TOPIC = "payments.sound"
SIZE = 600 * MIB
# A record of zeros, which compress to a thousandth.
POISON = f"""
import json, sys
sys.path.insert(0, {TOOLS!r})
import client
from kafka import KafkaProducer
settings = client.settings(json.load(sys.stdin))
producer = KafkaProducer(**settings, compression_type="gzip", max_request_size={2 * SIZE})
producer.send({TOPIC!r}, value=bytes({SIZE}), partition=0).get(120)
"""


@pytest.fixture
def limited(lab, payments):
    """The topic with such a record, and a host with the memory that the report's unit may have."""
    payments.control("stop")
    lab.desk.run(PYTHON, "-c", POISON, stdin=json.dumps(lab.connection("east")))
    limit = Limit(lab.desk)
    unit = lab.desk.read("/etc/systemd/system/mirror-report.service")
    (most,) = re.findall(r"^MemoryMax=(\d+)M$", unit, re.MULTILINE)
    limit.set(limit.held() + int(most) * MIB)
    yield int(most)
    limit.set(limit.unlimited)
    ends = lab.probe({"do": "ends", "cluster": "east", "topics": [TOPIC]})[0]
    group = {"do": "move", "cluster": "east", "group": "mirrormaker-payments", "offsets": ends}
    lab.probe({"do": "truncate", "cluster": "east", "offsets": ends}, group)
    payments.control("start")


def test_a_bomb_is_named_within_the_memory_of_the_unit(lab, limited, measured):
    lab.produce("orders", count=500)
    lab.wait_mirrored("orders", ["orders"])
    status, document = lab.report("run")
    row = parity(document, TOPIC, "payments")
    measured(mib=limited, reason=row["reason"], seconds=document["duration_seconds"])
    assert status in {2, 3}
    assert (row["status"], row["verified_records"]) == ("unknown", 0)
    assert "does not fit into" in row["reason"]
    orders = parity(document, "orders", "orders")
    assert orders["verified_records"] == orders["source_records"] > 500
    lag = {(row["flow"], row["topic"], row["partition"]): row for row in document["lag"]}
    assert lag["payments", TOPIC, 0]["lag_records"] == 1
    assert {row["lag_records"] for row in document["lag"] if row["flow"] == "orders"} == {0}
