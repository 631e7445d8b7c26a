"""What the tests on real brokers share: pairs of topics and labs, each with a mirror."""

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Tests are imported one by one, without their directory; this is what some of them share.
sys.path.insert(0, str(Path(__file__).parent))

from mm2_lab import Lab
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


@pytest.fixture(scope="module")
def without_spark() -> Iterator[None]:
    """As on a host where the report's Spark part is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyspark", None)
        for name in [module for module in sys.modules if module.startswith("mirror_report.parity")]:
            patch.delitem(sys.modules, name)
        yield


@pytest.fixture(scope="module")
def make(
    mirror_maker2: Any, two_brokers: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Lab]:
    """Make a topic's lab."""

    def lab(policy: str, name: str) -> Lab:
        directory = tmp_path_factory.mktemp("report")
        return Lab(mirror_maker2, *two_brokers, directory, policy, f"{policy}-{name}")

    return lab
