"""The services are shut in: by systemd's own measure, and by what really can be written."""

from __future__ import annotations

import json
import re

import pytest
from labkit import exposure, wait

PROBE = """
import json, os, sys
def writable(path):
    try:
        name = os.path.join(path, "lab-probe")
        with open(name, "w"):
            pass
        os.unlink(name)
        return True
    except OSError:
        return False
print("PROBE", json.dumps({path: writable(path) for path in sys.argv[1:]}))
"""
FORBIDDEN = ["/etc", "/usr", "/opt", "/root", "/home/other", "/var/lib"]


@pytest.mark.parametrize(
    "unit", ["mirrormaker.service", "mirrormaker-payments.service", "mirror-report.service"]
)
def test_exposure_is_low(lab, measured, unit):
    found = exposure(lab.mirror, unit)
    measured(unit=unit, exposure=found)
    assert found <= 1.5


@pytest.fixture
def home(lab):
    """Another user's home that anybody could write to if nothing held him back."""
    lab.mirror.shell("mkdir -p -m 0777 /home/other && chmod 0777 /home/other")
    yield "/home/other"
    lab.mirror.shell("rm -rf /home/other")


@pytest.mark.parametrize("name", ["mirrormaker", "mirrormaker-payments"])
def test_a_mirror_can_write_only_what_is_its_own(lab, home, name):
    assert home in FORBIDDEN
    pid = lab.mirror.run("systemctl", "show", "--value", "--property=MainPID", name).stdout.strip()
    own = [f"/var/log/{name}", "/tmp"]  # noqa: S108
    argv = ["nsenter", "--target", pid, "--user", "--mount"]
    if name == "mirrormaker":
        # Root sees what the mount namespace alone forbids.
        argv += ["python3", "-", *FORBIDDEN, f"/etc/{name}", *own]
    else:
        user = ["setpriv", f"--reuid={name}", f"--regid={name}", "--keep-groups"]
        argv += [*user, "python3", "-", *FORBIDDEN, f"/etc/{name}", *own]
    answer = lab.mirror.run(*argv, stdin=PROBE).stdout
    found = json.loads(answer.partition("PROBE ")[2])
    assert {path for path, can in found.items() if can} == set(own)


def test_the_report_can_write_only_what_is_its_own(lab, home):
    assert home in FORBIDDEN
    unit, folder = "mirror-report.service", "/run/systemd/system/mirror-report.service.d"
    script = "/usr/local/lib/lab-probe.py"
    own = ["/var/lib/mirror-report", "/tmp"]  # noqa: S108
    command = " ".join(["/usr/bin/python3", script, *FORBIDDEN, *own])
    wait("the report is idle", lambda: lab.mirror.run("systemctl", "is-active", unit, check=False))
    try:
        lab.mirror.shell(f"mkdir -p {folder} /usr/local/lib")
        lab.mirror.write(script, PROBE)
        lab.mirror.write(f"{folder}/probe.conf", f"[Service]\nExecStart=\nExecStart={command}\n")
        lab.mirror.run("systemctl", "daemon-reload")
        lab.mirror.run("systemctl", "start", unit)
    finally:
        lab.mirror.shell(f"rm -rf {folder} {script}; systemctl daemon-reload")
    journal = lab.mirror.run(
        "journalctl", "--no-pager", "--output=cat", "--unit", unit, "--lines=20"
    ).stdout
    found = json.loads(re.findall(r"PROBE (\{.*\})", journal)[-1])
    assert {path for path, can in found.items() if can} == set(own)
