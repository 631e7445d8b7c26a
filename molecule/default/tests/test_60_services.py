"""Services are confined: by systemd's own measure, and by what a process in one can do."""

from __future__ import annotations

import json
import re

import pytest
from labkit.hosts import exposure

# Tries what a service does not need; prints what succeeded.
PROBE = r"""
import ctypes, json, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def could(action):
    try:
        return action() is not False
    except OSError:
        return False
def write(folder):
    name = os.path.join(folder, "lab-probe")
    with open(name, "w"):
        pass
    os.unlink(name)
def set_user_id_file(folder):
    name = os.path.join(folder, "lab-probe-suid")
    with open(name, "w"):
        pass
    try:
        os.chmod(name, 0o4755)
    finally:
        os.unlink(name)
folders = sys.argv[1:]
actions = {
    "new namespace": lambda: libc.unshare(0x10000000) == 0,
    "mount": lambda: libc.mount(b"tmpfs", b"/mnt", b"tmpfs", 0, None) == 0,
    "32-bit personality": lambda: libc.personality(8) != -1,
    "packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(),
    "netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    "set the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
    "real-time priority": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "host name": lambda: socket.sethostname("probe"),
    "kernel setting": lambda: open("/proc/sys/kernel/hostname", "r+").close(),
    "signal to systemd": lambda: os.kill(1, 0),
    "file with set-user-ID": lambda: set_user_id_file("/tmp"),
    "list /root": lambda: os.listdir("/root"),
    "list /home/other": lambda: os.listdir("/home/other"),
    "other services' credentials": lambda: [
        os.listdir(f"/run/credentials/{name}") for name in OTHERS
    ],
}
actions |= {f"write to {folder}": lambda folder=folder: write(folder) for folder in folders}
print("PROBE", json.dumps([name for name, action in actions.items() if could(action)]))
"""
FORBIDDEN = ["/etc", "/usr", "/opt", "/root", "/home/other", "/var/lib"]
SERVICES = [
    ("mirror1", "mirrormaker", ["/var/log/mirrormaker"]),
    ("mirror1", "mirrormaker-payments", ["/var/log/mirrormaker-payments"]),
    ("mirror1", "mirror-report", ["/var/lib/mirror-report"]),
    ("target1", "kafka-broker", ["/var/lib/kafka-broker", "/var/log/kafka-broker"]),
]


@pytest.mark.parametrize(("name", "unit", "own"), SERVICES)
def test_exposure_is_low(lab, measured, name, unit, own):
    assert own
    found = exposure(lab.host(name), f"{unit}.service")
    measured(unit=unit, exposure=found)
    assert found <= 1.5


@pytest.fixture
def home(lab):
    """Another user's home, which file modes alone let everybody enter."""
    for host in lab.hosts:
        host.shell("mkdir -p -m 0777 /home/other && chmod 0777 /home/other")
    yield "/home/other"
    for host in lab.hosts:
        host.shell("rm -rf /home/other")


@pytest.mark.parametrize(("name", "unit", "own"), SERVICES)
def test_a_service_can_do_only_what_it_has_to(lab, home, name, unit, own):
    assert home in FORBIDDEN
    host = lab.host(name)
    running = host.shell("ls /run/credentials").split()
    others = [
        service
        for service in running
        if service.endswith(".service") and service != f"{unit}.service"
    ]
    assert others or name != "mirror1"
    script, copy = "/usr/local/lib/lab-probe.py", f"{unit}-lab-probe.service"
    command = " ".join(["/usr/bin/python3", script, *FORBIDDEN, *own, "/tmp"])  # noqa: S108
    # The unit as it is, except for what it runs.
    text = host.read(f"/etc/systemd/system/{unit}.service")
    text = re.sub(r"^ExecStart=(.*\\\n)*.*$", f"ExecStart={command}", text, flags=re.MULTILINE)
    text = re.sub(r"^(Type|Restart\w*|WantedBy)=.*\n", "", text, flags=re.MULTILINE)
    text = text.replace("[Service]\n", "[Service]\nType=oneshot\n")
    try:
        host.shell("mkdir -p /usr/local/lib")
        host.write(script, PROBE.replace("OTHERS", repr(others)))
        host.write(f"/run/systemd/system/{copy}", text)
        host.run("systemctl", "daemon-reload")
        host.run("systemctl", "start", copy)
    finally:
        host.shell(f"rm -f {script} /run/systemd/system/{copy}; systemctl daemon-reload")
    journal = host.run("journalctl", "--no-pager", "--output=cat", "--unit", copy).stdout
    could = json.loads(re.findall(r"PROBE (\[.*\])", journal)[-1])
    allowed = {f"write to {folder}" for folder in (*own, "/tmp")}  # noqa: S108
    if not others:
        could.remove("other services' credentials")
    assert set(could) == allowed
