"""Fixtures of this scenario: its two instances, and the observation of the host's processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests"]

from faults import Faulty  # noqa: E402
from labkit.controller import ENVIRONMENT, TOOLS  # noqa: E402
from labkit.hosts import Unit  # noqa: E402
from labkit.lab import Lab  # noqa: E402
from labkit.site import words  # noqa: E402


@pytest.fixture(scope="session")
def orders(lab: Lab) -> Unit:
    """The instance with literal topics."""
    return Unit(lab.mirror, "mirrormaker.service")


@pytest.fixture(scope="session")
def payments(lab: Lab) -> Unit:
    """The instance with a regular expression."""
    return Unit(lab.mirror, "mirrormaker-payments.service")


@pytest.fixture
def give_password(lab: Lab) -> Iterator[Callable[[str, str], None]]:
    """Let the source know an identity by another password, until the test ends."""

    def give(identity: str, password: str) -> None:
        login = lab.clusters["east"]["identities"][identity]
        step = {"do": "set_password", "cluster": "east", "password": password}
        lab.probe(step | {"user": login["username"], "mechanism": login["sasl_mechanism"]})

    yield give
    give("mirror", lab.passwords["east"]["mirror"])


@pytest.fixture(scope="session")
def faulty(lab: Lab, payments: Unit) -> Faulty:
    """The flow whose topics are damaged."""
    return Faulty(lab, payments, "payments", "payments.", "", "mirrormaker-payments")


@pytest.fixture(scope="session", autouse=True)
def watch(lab: Lab) -> Iterator[Callable[[], dict[str, Any]]]:
    """Observe the processes of the mirror's host; a call ends that and returns what was seen."""
    secrets = [
        words(lab.passwords[cluster][identity])
        for cluster in ("east", "west")
        for identity in ("mirror", "payments", "report")
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
