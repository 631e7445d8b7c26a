"""Hosts of the lab and their systemd units."""

from __future__ import annotations

import dataclasses
import re
import secrets
import subprocess
from pathlib import Path

from labkit.controller import ENVIRONMENT, HUNG_SECONDS, ROOT, TOOLS, Result


class Host:
    """One lab host, by way of its container."""

    def __init__(self, prefix: str, name: str) -> None:
        self.name = name
        self.container = f"{prefix}-{name}"

    def command(self, *argv: str) -> list[str]:
        """Compose the command line that runs ``argv`` on this host."""
        return [str(ROOT / "lab/enter"), self.container, *argv]

    def run(
        self, *argv: str, stdin: str = "", check: bool = True, timeout: float = HUNG_SECONDS
    ) -> Result:
        """Run a command as root; its standard error is part of the message if it fails."""
        done = subprocess.run(
            self.command(*argv),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=ENVIRONMENT,
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        if check:
            assert result.status == 0, f"{self.name}: {' '.join(argv)}: {result.text[-4000:]}"
        return result

    def shell(self, script: str, check: bool = True) -> str:
        """Run a shell script and return what it printed."""
        return self.run("sh", "-c", script, check=check).stdout

    def now(self) -> str:
        """The host's own time, as journalctl takes it; later than everything before this call."""
        return "@" + self.shell("sleep 1; date +%s").strip()

    def read(self, path: str) -> str:
        """Read a file."""
        return self.run("cat", path).stdout

    def write(self, path: str, content: str) -> None:
        """Replace a file's content, keeping owner and mode."""
        self.run("sh", "-c", f"cat > '{path}'", stdin=content)

    def copy(self, folder: Path, to: str) -> None:
        """Copy a directory's content into a directory of the host."""
        self.run("mkdir", "-p", to)
        argv = ["podman", "cp", f"{folder}/.", f"{self.container}:{to}/"]
        subprocess.run(argv, check=True, capture_output=True, env=ENVIRONMENT)

    def tree(self) -> str:
        """Fingerprint what stands below the roots that deployments write to."""
        file = f"/var/tmp/lab-tree-{secrets.token_hex(4)}.json"  # noqa: S108
        self.run("python3", f"{TOOLS}/tree.py", "save", file)
        return file

    def changes(self, tree: str) -> str:
        """List the changes of files since ``tree`` was taken."""
        return self.run("python3", f"{TOOLS}/tree.py", "compare", tree, check=False).stdout.strip()


@dataclasses.dataclass(frozen=True)
class Unit:
    """A systemd unit of a host."""

    host: Host
    name: str

    def show(self) -> dict[str, str]:
        """Read every property."""
        lines = self.host.run("systemctl", "show", self.name).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    @property
    def pid(self) -> int:
        """Its main process, 0 if none."""
        return int(self.show()["MainPID"])

    @property
    def restarts(self) -> int:
        """How often systemd started it again by itself."""
        return int(self.show()["NRestarts"])

    @property
    def active(self) -> bool:
        """Whether it runs."""
        return self.show()["ActiveState"] == "active"

    def control(self, verb: str) -> None:
        """Call ``systemctl`` and wait for it."""
        self.host.run("systemctl", verb, self.name)

    def starts(self, since: str) -> int:
        """How often systemd has started it since :meth:`Host.now` said so."""
        lines = self.journal(since).splitlines()
        return sum(line.startswith("Started ") for line in lines)

    def journal(self, since: str = "-1h") -> str:
        """Read what it logged."""
        argv = ["journalctl", "--no-pager", "--output=cat", "--unit", self.name, "--since", since]
        return self.host.run(*argv).stdout


class Units:
    """Units of several hosts that are controlled together."""

    def __init__(self, *units: Unit) -> None:
        self.units = units

    def control(self, verb: str) -> None:
        """Call ``systemctl`` on each host and wait for it."""
        for unit in self.units:
            unit.control(verb)


def exposure(host: Host, unit: str) -> float:
    """Measure a unit by systemd's own scale, from 0 (shut in) to 10."""
    text = host.run("systemd-analyze", "security", "--no-pager", unit).stdout
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", text)
    assert found, text[-500:]
    return float(found.group(1))
