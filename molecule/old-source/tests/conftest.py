"""Fixtures of this scenario: the topics of both engines that are damaged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests", "both_engines"]

from faults import Faulty  # noqa: E402
from labkit.hosts import Unit  # noqa: E402
from labkit.lab import Lab  # noqa: E402


@pytest.fixture(scope="session")
def faulty(lab: Lab, mm2: Unit) -> Faulty:
    """The flow whose topics get every class of fault."""
    return Faulty(lab, mm2, "orders", "faults.", "east.", None)


@pytest.fixture(scope="session")
def faulty_mm1(lab: Lab, mm1: Unit) -> Faulty:
    """The flow of MirrorMaker 1, of whose topics two are damaged."""
    return Faulty(lab, mm1, "payments", "payments.", "", "mirrormaker-payments")
