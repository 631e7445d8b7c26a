"""The controller that tests run on: its paths, its environment, and how it waits."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
TOOLS = "/var/tmp/lab-tools"  # noqa: S108
ACKS = "/var/tmp/lab-acks"  # noqa: S108
PYTHON = "/opt/mirror-report/venv/bin/python"
CACHE = Path(
    os.environ.get("MIRROR_LAB_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-mirror-lab"
)
# What takes longer hangs: on a busy machine a run of the site takes minutes.
HUNG_SECONDS = 1800
ENVIRONMENT = {
    **os.environ,
    "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    "CONTAINERS_CONF": str(ROOT / "lab/containers.conf"),
    "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
}


@dataclasses.dataclass(frozen=True)
class Result:
    """A finished command."""

    status: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Everything it said."""
        return self.stdout + self.stderr


def wait(what: str, check: Callable[[], Any], seconds: float = 120, pause: float = 0.5) -> Any:
    """Poll until ``check`` returns something true, and return that.

    :raises AssertionError: it did not within ``seconds``; names ``what`` and the last answer.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s, last: {answer!r}"
        time.sleep(pause)
