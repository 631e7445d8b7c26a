"""Fixtures of this scenario."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests"]

from faults import Faulty  # noqa: E402
from labkit.hosts import Unit  # noqa: E402
from labkit.lab import Lab  # noqa: E402


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the damage to `make test-all`: scenario default does it to fewer topics."""
    for item in items:
        if isinstance(item, pytest.Function) and "damaged" in item.fixturenames:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def mirror(lab: Lab) -> Unit:
    """The process with both flows."""
    return Unit(lab.mirror, "mirrormaker.service")


@pytest.fixture(scope="session")
def faulty(lab: Lab, mirror: Unit) -> Faulty:
    """The flow whose topics are damaged."""
    return Faulty(lab, mirror, "orders", "faults.", "east.", None)
