"""Fixtures of this scenario."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests"]

from labkit.hosts import Unit  # noqa: E402
from labkit.lab import Engine, Lab  # noqa: E402
from labkit.site import Variables  # noqa: E402


def change(variables: Variables) -> None:
    """Give the instance another producer property."""
    instance = variables["mirrormaker_instances"]["mirrormaker"]
    instance["worker_properties"]["producer.linger.ms"] = 35


@pytest.fixture(scope="session")
def engine() -> Engine:
    """What differs for the tests."""
    return Engine(cluster="west", group="east-mm2", prefix="", change=change)


@pytest.fixture(scope="session")
def units(lab: Lab) -> tuple[Unit, Unit]:
    """The instance on its two hosts."""
    first, second = (Unit(host, "mirrormaker.service") for host in lab.mirrors)
    return first, second
