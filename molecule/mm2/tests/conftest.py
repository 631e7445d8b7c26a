"""Fixtures of this scenario."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests"]

from labkit import Lab, Unit  # noqa: E402


@pytest.fixture(scope="session")
def mirror(lab: Lab) -> Unit:
    """The one process with both flows."""
    return Unit(lab.mirror, "mirrormaker.service")
