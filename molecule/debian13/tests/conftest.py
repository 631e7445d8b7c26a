"""Fixtures of this scenario: the report on both engines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests", "both_engines"]

from labkit.lab import Lab  # noqa: E402


@pytest.fixture(scope="session")
def whole(lab: Lab) -> tuple[int, dict[str, Any]]:
    """The report on what both have mirrored; no topic is damaged here."""
    return lab.report("run")
