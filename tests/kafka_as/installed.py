"""The command kafka-as as a test runs it, and what tests of it share."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.loading import ROOT, load

PROGRAM = ROOT / "roles/kafka_as/files/kafka_as.py"
RELEASE = "kafka_2.13-4.3.1"
GROUP = "games"  # a group that every Debian has and nobody is a member of
PASSWORD = 'CANARY"p\\a ss$x é'

program = load("roles/kafka_as/files/kafka_as.py", "kafka_as")


@dataclass(frozen=True)
class Installed:
    """What the role installed, and what Ansible said of it."""

    home: Path
    command: Path
    output: str
    again: str

    def __call__(self, *words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        return subprocess.run(
            [str(self.command), *words], capture_output=True, text=True, check=False, timeout=120,
            cwd="/", **settings,
        )  # fmt: skip
