"""The memory of a lab host."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from labkit.controller import ENVIRONMENT
from labkit.hosts import Host

MIB = 1024 * 1024


class Limit:
    """The memory of a container as a whole, by either kind of control groups."""

    def __init__(self, host: Host) -> None:
        ask = ["podman", "inspect", "--format={{.State.Pid}}", host.container]
        pid = subprocess.run(
            ask, capture_output=True, text=True, check=True, env=ENVIRONMENT
        ).stdout.strip()
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
        paths = {names: path for _, names, path in (line.split(":", 2) for line in groups)}
        root = Path("/sys/fs/cgroup")
        first = "memory" in paths
        path = (paths["memory"] if first else paths[""]).strip("/")
        # systemd in the container may have made groups of its own below.
        path = re.sub(r"(libpod-[0-9a-f]{64}[^/]*).*", r"\1", path)
        self.group = root / "memory" / path if first else root / path
        self.name = "memory.limit_in_bytes" if first else "memory.max"
        self.unlimited = "-1" if first else "max"
        self.kept = {"total_rss", "total_shmem"} if first else {"anon", "shmem"}

    def held(self) -> int:
        """Bytes that the kernel cannot take back: of processes and of files in memory."""
        stat = (self.group / "memory.stat").read_text(encoding="utf-8")
        values = dict(line.split() for line in stat.splitlines())
        return sum(int(values[name]) for name in self.kept)

    def set(self, text: object) -> None:
        """Limit it."""
        (self.group / self.name).write_text(str(text), encoding="utf-8")
