"""Fixtures of this scenario."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
pytest_plugins = ["labtests"]

from faults import Faulty  # noqa: E402
from labkit.hosts import Unit, Units  # noqa: E402
from labkit.lab import Engine, Lab  # noqa: E402
from labkit.rest import Rest  # noqa: E402
from labkit.site import Variables  # noqa: E402

# What takes minutes, and is proved for the other engines in `make test`.
LONG = {
    "test_35_faults.py",
    "test_47_going_back.py",
    "test_66_open_worker.py",
    "test_72_names.py",
    "test_two_hosts.py",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to ``make test-all`` what takes minutes."""
    for item in items:
        if item.path.name in LONG:
            item.add_marker(pytest.mark.long)


def change(variables: Variables) -> None:
    """Give the workers another producer property."""
    workers = variables["kafka_connect_clusters"]["connect-west"]
    workers["worker_properties"]["producer.linger.ms"] = 35


@pytest.fixture(scope="session")
def engine() -> Engine:
    """What differs for the tests of two hosts."""
    return Engine("west", "connect-west", "east.", change, "kafka-connect.yml")


@pytest.fixture(scope="session")
def units(lab: Lab) -> tuple[Unit, Unit]:
    """The worker of each host."""
    first, second = (Unit(host, "connect-west.service") for host in lab.mirrors)
    return first, second


@pytest.fixture(scope="session")
def faulty(lab: Lab, units: tuple[Unit, Unit]) -> Faulty:
    """The flow whose topics are damaged."""
    return Faulty(lab, Units(*units), "orders", "faults.", "east.", None)


@pytest.fixture(scope="session")
def rest(lab: Lab) -> Rest:
    """What a caller who has the password asks the first worker."""
    return Rest(lab)
