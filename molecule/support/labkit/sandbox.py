"""What a process in a unit's sandbox can do, by trying it there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from labkit.hosts import Host

TMP = "/tmp"  # noqa: S108
HOME = "/home/other"
"""Another user's home, which file modes alone let everybody enter."""
FORBIDDEN = ("/etc", "/usr", "/opt", "/root", HOME, "/var/cache", "/var/lib", "/var/log", "/run")
# Tries what a service does not need; prints what succeeded.
PROBE = r"""#!/usr/bin/python3
import ctypes, json, os, socket, time
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
}
actions |= {
    f"credentials of {name}": lambda name=name: os.listdir(f"/run/credentials/{name}")
    for name in OTHERS
}
actions |= {f"write to {folder}": lambda folder=folder: write(folder) for folder in FOLDERS}
print("PROBE", json.dumps([name for name, action in actions.items() if could(action)]))
"""


class Sandbox:
    """Runs the probe on a host in place of what services run."""

    script = "/usr/local/lib/lab-probe.py"
    copy = "lab-probe.service"

    def __init__(self, host: Host) -> None:
        self.host = host

    def of_unit(self, unit: str, own: Sequence[str], user: str | None = None) -> set[str]:
        """What a service could do.

        :param unit: its name, without the suffix.
        :param own: directories it writes to.
        :param user: of the process, if it is not the unit's.
        """
        text = self.host.run("systemctl", "cat", f"{unit}.service").stdout
        # The unit as it is, except for what it runs and where that is said.
        text = re.sub(r"^ExecStart=(.*\\\n)*.*$", "", text, flags=re.MULTILINE)
        others = r"^(Type|Restart\w*|WantedBy|Exec\w+|PIDFile|StandardOutput|LogLevelMax)=.*\n"
        text = re.sub(others, "", text, flags=re.MULTILINE)
        # What the unit has below /run belongs to the one that runs.
        service = "[Service]\nRuntimeDirectoryPreserve=yes\n"
        service += f"Type=oneshot\nExecStart={self.script}\n"
        text = text.replace("[Service]\n", service + (f"User={user}\n" if user else ""))
        path = f"/run/systemd/system/{self.copy}"
        try:
            self._place(own, f"{unit}.service")
            self.host.write(path, text)
            self.host.run("systemctl", "daemon-reload")
            since = self.host.now()
            self.host.run("systemctl", "start", self.copy)
        finally:
            self.host.shell(f"rm -rf {path} {self.script} {HOME}; systemctl daemon-reload")
        argv = ["journalctl", "--no-pager", "--output=cat", "--unit", self.copy, "--since", since]
        return self._said(self.host.run(*argv).stdout)

    def of_command(self, command: str, own: Sequence[str]) -> set[str]:
        """What the program could do that a command of root's starts in a unit of its own."""
        text = self.host.read(f"/usr/local/bin/{command}")
        text = re.sub(r"^program=.*$", f"program={self.script}", text, flags=re.MULTILINE)
        try:
            self._place(own)
            return self._said(self.host.run("sh", "-s", "lag", stdin=text).stdout)
        finally:
            self.host.run("rm", "-rf", self.script, HOME)

    def _place(self, own: Sequence[str], *mine: str) -> None:
        held = [name for name in self.host.shell("ls /run/credentials").split() if name not in mine]
        probe = PROBE.replace("OTHERS", repr(held))
        self.host.shell(f"mkdir -p /usr/local/lib {HOME} && chmod 0777 {HOME}")
        self.host.write(self.script, probe.replace("FOLDERS", repr([*FORBIDDEN, *own, TMP])))
        self.host.run("chmod", "0755", self.script)

    def _said(self, text: str) -> set[str]:
        return set(json.loads(re.findall(r"PROBE (\[.*\])", text)[-1]))


def allowed(own: Sequence[str]) -> set[str]:
    """What a service may do: write to its own directories."""
    return {f"write to {folder}" for folder in (*own, TMP)}
