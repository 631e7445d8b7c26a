"""A mirror that has seen nothing is not called whole."""

from __future__ import annotations


def test_a_mirror_that_has_seen_no_record_is_not_whole(lab):
    status, document = lab.report("run")
    assert status == 1, document["verdict"]
    kinds = {finding["kind"] for finding in document["findings"]}
    assert "nothing_seen" in kinds
    assert not document["spark_started"]
