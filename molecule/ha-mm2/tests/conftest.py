"""Fixtures of this scenario."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests"]

from labkit import Lab, Unit  # noqa: E402


@pytest.fixture(scope="session")
def units(lab: Lab) -> tuple[Unit, Unit]:
    """The instance on its two hosts."""
    first, second = (Unit(host, "mirrormaker.service") for host in lab.mirrors)
    return first, second
