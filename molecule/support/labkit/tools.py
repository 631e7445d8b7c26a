"""Programs of lab/tools on a host: the producer, and the probe that asks clusters."""

from __future__ import annotations

import json
import secrets
import select
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from labkit.controller import ENVIRONMENT, PYTHON, TOOLS, wait
from labkit.hosts import Host


def acknowledged(host: Host, directory: str, pattern: str = "*.tsv") -> int:
    """Count the acknowledged records that producers logged below a directory of a host."""
    return int(host.shell(f"cat {directory}/{pattern} 2>/dev/null | wc -l", check=False))


class Production:
    """A producer that runs in the background on a lab host."""

    def __init__(
        self, host: Host, connection: Mapping[str, Any], arguments: Sequence[str], directory: str
    ) -> None:
        self.host = host
        self.run_id = secrets.token_hex(4)
        self.directory = directory
        argv = [PYTHON, f"{TOOLS}/produce.py", "--directory", directory, "--run", self.run_id]
        self.process = subprocess.Popen(
            host.command(*argv, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )
        assert self.process.stdin
        self.process.stdin.write(json.dumps(connection))
        self.process.stdin.close()

    def acknowledged(self) -> int:
        """Count what is logged so far."""
        return acknowledged(self.host, self.directory, f"{self.run_id}-*.tsv")

    def wait_more(self, records: int) -> None:
        """Wait until so many more records are acknowledged."""
        wanted = self.acknowledged() + records
        wait(f"{records} more records", lambda: self.acknowledged() >= wanted)

    def stop(self) -> None:
        """Ask it to end; what it has sent is acknowledged and logged first."""
        pid = f"{self.directory}/{self.run_id}.pid"
        self.host.shell(f"kill -TERM $(cat {pid}) || true")
        self.finish()

    def finish(self) -> None:
        """Wait for its end; a record it could not deliver is an error."""
        assert self.process.stdout
        output = self.process.stdout.read()
        assert self.process.wait(300) == 0, output


class Prober:
    """``lab/tools/probe.py`` on a lab host; started with the first question, or if it has ended."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.process: subprocess.Popen[str] | None = None

    def ask(self, document: Mapping[str, Any]) -> list[Any]:
        """Run a document's steps and return their answers."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                self.host.command(
                    "sh", "-c", f"exec {PYTHON} {TOOLS}/probe.py 2>{TOOLS}/probe.log"
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], 300)[0]:
            self.process.kill()
            raise AssertionError(f"{self.host.name}: the probe did not answer within 300 s")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise AssertionError(
                f"{self.host.name}: {self.host.read(f'{TOOLS}/probe.log')[-4000:]}"
            )
        answers: list[Any] = json.loads(line)
        return answers

    def end(self) -> None:
        """End it, until it is asked again."""
        if self.process is not None:
            self.process.communicate(timeout=60)
            self.process = None
