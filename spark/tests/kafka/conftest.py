"""Pairs of topics on the two brokers, each with a mirror of its own."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests are imported one by one, without their directory; this is what some of them share.
sys.path.insert(0, str(Path(__file__).parent))

from pairs import Pair, member

NUMBERS = itertools.count()


@pytest.fixture
def pair(two_brokers: tuple[str, str], tmp_path: Path) -> Pair:
    number = next(NUMBERS)
    return Pair(*two_brokers, tmp_path, f"topic-{number}", f"group-{number}")


@pytest.fixture
def mirrored(pair: Pair) -> Pair:
    """Ten records, seven of them mirrored; the mirror is stopped."""
    pair.create("source")
    pair.create("target")
    pair.produce(10)
    pair.mirror(7)
    return pair


@pytest.fixture
def running(mirrored: Pair) -> Iterator[Pair]:
    """The mirror has a live member that does nothing but hold its partitions."""
    with member(mirrored):
        yield mirrored
