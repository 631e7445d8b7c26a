"""A full disk below the report's state: what is known stays known, and the mirrors go on."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from labkit.answers import complete, parity
from labkit.controller import ENVIRONMENT

pytestmark = pytest.mark.long
STATE, KEPT = "/var/lib/mirror-report", "/var/tmp/lab-state.tar"  # noqa: S108
MANIFEST, FILLER = f"{STATE}/parity.json", f"{STATE}/lab-filler"
ROOM_MIB = 16
COUNT = 500


class SmallDisk:
    """The state on a file system of its own, which can be filled."""

    def __init__(self, host):
        self.host = host
        ask = ["podman", "inspect", "--format={{.State.Pid}}", host.container]
        done = subprocess.run(ask, capture_output=True, text=True, check=True, env=ENVIRONMENT)
        self._inside = ["nsenter", "--mount", f"--target={done.stdout.strip()}"]
        host.shell(f"tar -C {STATE} -cf {KEPT} .")
        used = int(host.shell(f"du -sm {STATE}").split()[0])
        options = f"size={used + ROOM_MIB}m,mode=0750"
        self._run("mount", "-t", "tmpfs", "-o", options, "tmpfs", STATE)
        host.shell(f"tar -C {STATE} -xpf {KEPT}")

    def _run(self, *argv):
        subprocess.run([*self._inside, *argv], check=True, capture_output=True)

    def fill(self, kib):
        """Leave only so much."""
        size = int(self.host.shell(f"df --output=avail --block-size=1K {STATE}").split()[-1]) - kib
        self.host.shell(f"head -c {size}K /dev/zero > {FILLER}")

    def end(self):
        """Put the state back where it was."""
        self.host.shell(f"rm -f {FILLER}; tar -C {STATE} -cf {KEPT} .")
        self._run("umount", STATE)
        self.host.shell(f"find {STATE} -mindepth 1 -delete; tar -C {STATE} -xpf {KEPT}; rm {KEPT}")


@pytest.fixture(scope="module")
def disk(lab):
    """The report's state on a small disk."""
    disk = SmallDisk(lab.desk)
    yield disk
    disk.end()


# Enough for nothing, for offsets alone, and for what was compared, beside the state that names it,
# but not for the report on it.
@pytest.mark.parametrize(("states", "kib"), [(0, 0), (0, 16), (1, 28)])
def test_a_run_on_a_full_disk_harms_nothing_and_says_why(lab, orders, disk, measured, states, kib):
    assert lab.report("run")[0] < 3
    before = parity(lab.report("show")[1], "orders", "orders")
    manifest = lab.desk.read(MANIFEST)
    process = orders.pid
    disk.fill(states * (len(manifest) // 1024 + 1) + kib)
    lab.produce("orders", count=COUNT)
    lab.wait_mirrored("orders", ["orders"])
    done = lab.desk.run("mirror-report", "run", check=False)
    lab.desk.run("rm", FILLER)
    measured(states=states, kib=kib, status=done.status, said=done.text[-400:])
    assert (done.status, lab.desk.read(MANIFEST) != manifest) == (3, states > 0)
    assert re.search(r"No space left on device\. Free some space there$", done.text.strip())
    assert orders.pid == process, "the mirror has nothing to do with it"
    assert lab.report("run")[0] < 3
    row = parity(json.loads(lab.desk.read(f"{STATE}/reports/latest.json")), "orders", "orders")
    assert row["source_records"] == before["source_records"] + COUNT
    known = lab.compare("orders")
    assert complete(known) == {}
    assert row["counts"]["missing"] == 0


def test_lag_is_told_on_a_full_disk(lab, disk, measured):
    disk.fill(0)
    lab.produce("orders", count=COUNT)
    lab.wait_mirrored("orders", ["orders"])
    status, document = lab.report("lag", "--flow", "orders")
    lab.desk.run("rm", FILLER)
    measured(status=status, findings=document["findings"])
    rows = [row for row in document["lag"] if row["topic"] == "orders"]
    assert sum(row["log_end"] for row in rows) == lab.ends("east", ["orders"])["orders"]
    assert {row["lag_records"] for row in rows} == {0}
    unknown = [each for each in document["findings"] if each["severity"] == "unknown"]
    assert {each["kind"] for each in unknown} <= {"state"}, unknown
