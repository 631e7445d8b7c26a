"""A report that is killed tells nothing, and the next one tells all of it."""

from __future__ import annotations

import json
import random
import time

import pytest
from labkit.controller import wait
from labkit.hosts import Unit

pytestmark = pytest.mark.long
STATE, KEPT = "/var/lib/mirror-report", "/var/tmp/lab-state"  # noqa: S108
DROP_IN = "/run/systemd/system/mirror-report.service.d"
KILLS = 10
FAULTS = ("altered", "duplicated", "foreign", "missing", "sound")
# What depends on when a report was made, and of lag what does not.
OF_TIME = {
    "age_seconds", "checkpoint_age_seconds", "duration_seconds", "generated_at", "history",
    "run_id", "valid_until",
}  # fmt: skip
OF_LAG = ("flow", "topic", "partition", "log_start", "log_end", "position", "lag_records", "lost")


def timeless(document):
    """What is told, without what depends on when that was."""
    if isinstance(document, dict):
        return {key: timeless(value) for key, value in document.items() if key not in OF_TIME}
    return [timeless(value) for value in document] if isinstance(document, list) else document


def told(document):
    """What a report tells, part by part."""
    lag = [{key: row[key] for key in OF_LAG} for row in document["lag"]]
    return timeless({**document, "lag": lag})


def differing(told, other):
    """What two reports do not agree on."""
    return {part: (told[part], other[part]) for part in told if told[part] != other[part]}


class Reports:
    """The report's service, and the state from which its runs begin."""

    def __init__(self, lab):
        self.host = lab.desk
        self.unit = Unit(lab.desk, "mirror-report.service")
        self.host.shell(f"rm -rf {KEPT} && cp -a {STATE} {KEPT} && mkdir -p {DROP_IN}")
        # In a container, systemd may not learn that the last process of a unit has ended.
        self.host.write(f"{DROP_IN}/lab.conf", "[Service]\nTimeoutStopSec=2\n")
        self.host.run("systemctl", "daemon-reload")

    def end(self):
        """Leave the host as it was."""
        self.host.shell(f"rm -r {KEPT} {DROP_IN} && systemctl daemon-reload")

    def begin_again(self):
        """Put the state back."""
        self.host.shell(f"find {STATE} -mindepth 1 -delete && cp -a {KEPT}/. {STATE}/")

    def run(self):
        """Run to the end; what it tells."""
        self.unit.control("start")
        return told(json.loads(self.host.read(f"{STATE}/reports/latest.json")))

    def kill_after(self, seconds):
        """Kill a run so long after its start; whether it had not ended by itself."""
        self.host.run("systemctl", "start", "--no-block", self.unit.name)
        time.sleep(seconds)
        pid = self.unit.pid
        if pid:
            self.host.run("kill", "-KILL", str(pid), check=False)
        wait("its end", lambda: self.unit.show()["ActiveState"] in {"failed", "inactive"})
        killed = self.unit.show()["ActiveState"] == "failed"
        if killed:
            self.unit.control("reset-failed")
        return killed


@pytest.fixture(scope="module")
def reports(lab, faulty):
    """The report's service when faults of some classes and whole topics are new to it."""
    # Duplicates are told of records that the baseline does not leave out.
    faulty.fill(FAULTS)
    faulty.damage(FAULTS)
    for cluster, flow in (("east", "orders"), ("north", "orders-north")):
        lab.produce("orders", count=2000, cluster=cluster)
        lab.wait_mirrored(flow, ["orders"])
    reports = Reports(lab)
    yield reports
    reports.end()


def test_the_next_report_tells_what_an_undisturbed_one_tells(reports, measured):
    began = time.monotonic()
    undisturbed = reports.run()
    seconds = time.monotonic() - began
    kinds = {each["kind"] for each in undisturbed["findings"] if not each["accounted"]}
    assert kinds >= {"missing", "corrupt_value", "duplicate", "extra", "offset_shift"}
    reports.begin_again()
    assert differing(reports.run(), undisturbed) == {}, "two reports of one state are the same"
    moments = []
    for number in range(KILLS):
        # At random, and all over a run.
        moment = seconds * (number + random.random()) / KILLS  # noqa: S311
        reports.begin_again()
        while not reports.kill_after(moment):
            moment *= 0.95
            reports.begin_again()
        moments.append(round(moment, 1))
        found = differing(reports.run(), undisturbed)
        assert found == {}, f"killed after {moment:.1f} s of {seconds:.1f} s"
    measured(seconds=round(seconds, 1), killed_after=moments)
