"""A producer on the source cannot write, by the name of a topic, what steers a mirror."""

from __future__ import annotations

from labkit.forgery import Forgery


def test_no_record_of_a_producer_steers_a_mirror(lab):
    forgery = Forgery(lab, "orders", "checkpoints.internal", "checkpoints.sound", "east.")
    report = forgery.commit()
    forgery.proves(report)
    # The mirror's own checkpoints still tell of the groups.
    known = {"ready", "reread", "active_on_target"}
    assert known & {group["state"] for group in report["groups"]}
