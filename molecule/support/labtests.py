"""Fixtures of every scenario: the lab, recorded numbers, and a log in build/<scenario>.log."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import Damaged, Faulty
from labkit.controller import ROOT, TOOLS
from labkit.lab import Lab

SCENARIO = pytest.StashKey[Path]()


class Log:
    """Prints lines for the end of the run and adds them to a file that can be followed."""

    def __init__(self, scenario: str) -> None:
        self.path = ROOT / f"build/{scenario}.log"
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("", encoding="utf-8")

    def say(self, text: str) -> None:
        """Add a line."""
        print(text, flush=True)
        with self.path.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Log each test as it ends."""
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.rpartition("/")[2]
            self.say(f"{report.outcome} {name} {report.duration:.0f} s")


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker."""
    config.addinivalue_line("markers", "long: takes minutes or disturbs the whole lab")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the log of the scenario whose tests were found."""
    if session.items:
        session.config.stash[SCENARIO] = session.items[0].path.parents[1]
        name = session.items[0].path.parents[1].name
        session.config.pluginmanager.register(Log(name), "scenario-log")


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Lab:
    """The scenario's hosts and clusters; the hosts get the tools as they are now."""
    lab = Lab(request.config.stash[SCENARIO])
    for host in lab.hosts:
        host.copy(ROOT / "lab/tools", TOOLS)
    return lab


@pytest.fixture
def measured(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[..., None]:
    """Record numbers in the JUnit file and in the log."""
    log = request.config.pluginmanager.get_plugin("scenario-log")
    assert isinstance(log, Log)

    def record(**numbers: object) -> None:
        for name, number in numbers.items():
            record_property(name, number)
        log.say("  " + ", ".join(f"{name} {number}" for name, number in numbers.items()))

    return record


@pytest.fixture(scope="session")
def outputs() -> list[str]:
    """Everything the playbooks printed in this session."""
    return []


@pytest.fixture
def stands(lab: Lab, outputs: list[str]) -> Callable[[str], dict[str, str]]:
    """Where a secret is found: in files of hosts, or in Ansible's output."""
    script = "grep -rlF --exclude-dir=proc --exclude-dir=sys -f - / 2>/dev/null || true"

    def places(word: str) -> dict[str, str]:
        files = {host.name: host.run("sh", "-c", script, stdin=word).stdout for host in lab.hosts}
        printed = {"Ansible": "printed it"} if any(word in text for text in outputs) else {}
        return {name: found for name, found in files.items() if found} | printed

    return places


@pytest.fixture(scope="session")
def whole(lab: Lab, faulty: Faulty) -> tuple[int, dict[str, Any]]:
    """The report of a whole mirror, whose topics to be damaged hold verified records.

    :param faulty: the scenario's own.
    """
    faulty.fill(list(faulty.faults))
    return lab.report("run")


@pytest.fixture(scope="session")
def damaged(lab: Lab, faulty: Faulty, whole: tuple[int, dict[str, Any]]) -> Damaged:
    """One topic per class of fault, each damaged while the mirror was stopped; one report."""
    assert whole[1]["parity"]
    stopped = faulty.damage(list(faulty.faults))
    return Damaged(stopped, lab.report("run"))
