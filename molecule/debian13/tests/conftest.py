"""Fixtures of this scenario: an instance of each engine, and the report on both."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests"]

from labkit.hosts import Unit  # noqa: E402
from labkit.lab import Lab  # noqa: E402


@pytest.fixture(scope="session")
def mm2(lab: Lab) -> Unit:
    """The instance of MirrorMaker 2."""
    return Unit(lab.mirror, "mirrormaker.service")


@pytest.fixture(scope="session")
def mm1(lab: Lab) -> Unit:
    """The instance of MirrorMaker 1."""
    return Unit(lab.mirror, "mirrormaker-payments.service")


@pytest.fixture(scope="session")
def whole(lab: Lab) -> tuple[int, dict[str, Any]]:
    """The report on what both have mirrored; no topic is damaged here."""
    return lab.report("run")
