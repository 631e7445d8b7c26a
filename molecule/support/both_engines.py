"""Fixtures of scenarios with an instance of each engine on one host."""

from __future__ import annotations

import pytest
from labkit.hosts import Unit
from labkit.lab import Lab


@pytest.fixture(scope="session")
def mm2(lab: Lab) -> Unit:
    """The instance of MirrorMaker 2."""
    return Unit(lab.mirror, "mirrormaker.service")


@pytest.fixture(scope="session")
def mm1(lab: Lab) -> Unit:
    """The instance of MirrorMaker 1."""
    return Unit(lab.mirror, "mirrormaker-payments.service")
