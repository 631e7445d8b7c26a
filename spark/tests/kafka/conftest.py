"""What the tests on real brokers share."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mm2_lab import Lab


@pytest.fixture(scope="module")
def without_spark() -> Iterator[None]:
    """As on a host where the report's Spark part is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyspark", None)
        for name in [one for one in sys.modules if one.startswith("mirror_report.parity")]:
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
