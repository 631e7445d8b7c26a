"""The report verifies what two hosts mirrored, and names what was repeated.

Scenarios link to this file as tests/test_verified.py.
"""

from __future__ import annotations

from labkit.answers import classes, complete, parity


def test_the_report_verifies_every_record_of_both_hosts(lab, engine, measured):
    known = lab.compare("orders", prefix=engine.prefix)
    assert complete(known) == {}
    _, document = lab.report("run")
    row = parity(document, "orders")
    measured(duplicated=known["duplicated"], seconds=document["duration_seconds"])
    assert {"duplicate": 0} | classes(row) == {"duplicate": known["duplicated"]}
    assert row["verified_records"] == known["acknowledged"] > 2000
    severities = {finding["severity"] for finding in document["findings"]}
    assert severities <= {"ok", "warning"}, document["findings"]
