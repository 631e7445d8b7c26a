"""Fixtures of the scenario, and a log of what was measured in build/default.log."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SCENARIO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SCENARIO.parent / "support"))

from labkit import ENVIRONMENT, ROOT, TOOLS, Lab, Unit, words  # noqa: E402

LOG = ROOT / "build/default.log"


def say(text: str) -> None:
    """Print a line for the end of the run and add it to the log that can be followed."""
    print(text, flush=True)
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"{time.strftime('%H:%M:%S')} {text}\n")


def pytest_configure(config: pytest.Config) -> None:
    """Start a new log."""
    config.addinivalue_line("markers", "long: takes minutes or disturbs the whole lab")
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("", encoding="utf-8")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Log each test as it ends."""
    if report.when == "call" or report.outcome != "passed":
        say(f"{report.outcome} {report.nodeid.rpartition('/')[2]} {report.duration:.0f} s")


@pytest.fixture(scope="session")
def lab() -> Lab:
    """The scenario's hosts and clusters; the hosts get the tools as they are now."""
    lab = Lab(SCENARIO)
    for host in lab.hosts:
        host.copy(ROOT / "lab/tools", TOOLS)
    return lab


@pytest.fixture(scope="session")
def orders(lab: Lab) -> Unit:
    """The instance with literal topics."""
    return Unit(lab.mirror, "mirrormaker.service")


@pytest.fixture(scope="session")
def payments(lab: Lab) -> Unit:
    """The instance with a regular expression."""
    return Unit(lab.mirror, "mirrormaker-payments.service")


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Iterator[Callable[..., None]]:
    """Record numbers in the JUnit file and in the log."""

    def record(**numbers: object) -> None:
        for name, number in numbers.items():
            record_property(name, number)
        say("  " + ", ".join(f"{name} {number}" for name, number in numbers.items()))

    return record


@pytest.fixture(scope="session")
def outputs() -> list[str]:
    """Everything the playbooks printed in this session."""
    return []


@pytest.fixture(scope="session", autouse=True)
def watch(lab: Lab) -> Iterator[Callable[[], dict[str, Any]]]:
    """Look at the processes of the mirror's host all the time; a call ends it and tells."""
    secrets = [
        words(lab.passwords[cluster][identity])
        for cluster in ("east", "west")
        for identity in ("mirror", "report")
    ]
    process = subprocess.Popen(
        lab.mirror.command("python3", f"{TOOLS}/watch.py"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stdin
    process.stdin.write(json.dumps(secrets) + "\n")
    process.stdin.flush()
    answers: list[dict[str, Any]] = []

    def end() -> dict[str, Any]:
        if not answers:
            answers.append(json.loads(process.communicate("end\n", timeout=60)[0]))
        return answers[0]

    yield end
    end()
