"""Commands that need no Spark, with both clusters of a release that knows no topic ids."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pairs import Pair, kinds, member

from mirror_report.commands.baseline import record_baselines
from mirror_report.commands.confirm import confirm_flows
from mirror_report.commands.lag import measure_lag
from mirror_report.commands.run import make_report

NUMBERS = itertools.count()
RELEASES = ["2.4.1", pytest.param("2.1.1", marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=RELEASES)
def old_brokers(request: pytest.FixtureRequest, start_old_broker: Callable[[str], Any]) -> Any:
    """Two clusters of one release."""
    return request.param, start_old_broker(request.param), start_old_broker(request.param)


@pytest.fixture
def old(old_brokers: Any, tmp_path: Path) -> Pair:
    """Ten records, seven of them mirrored; the mirror is stopped."""
    _, source, target = old_brokers
    number = next(NUMBERS)
    pair = Pair(
        source.bootstrap, target.bootstrap, tmp_path, f"old-{number}", f"old-group-{number}"
    )
    pair.create("source")
    pair.create("target")
    pair.produce(10)
    pair.mirror(7)
    return pair


def test_lag_and_who_reads_are_those_of_a_new_cluster(old: Pair) -> None:
    settings = old.settings()
    result = measure_lag(settings, old.store(), topics=True)
    rows = {row.partition: row for row in result.rows}
    assert (rows[0].lag_records, rows[0].state) == (3, "STOPPED")
    assert rows[0].lag_seconds is not None
    assert [(finding.kind, finding.count) for finding in result.findings] == [("stopped", 3)]
    with member(old):
        confirmed = confirm_flows(settings, None, [], 10, lambda _: None)
    assert confirmed.ok, confirmed


def test_an_unknown_id_is_no_reset_on_either_side(old: Pair) -> None:
    old.mirror(3)
    record_baselines(old.settings(), None, full_history=False, renew=False)
    for _ in range(2):
        assert kinds(measure_lag(old.settings(), old.store()).findings) == ["not_running"]


@pytest.mark.usefixtures("without_spark")
def test_a_report_is_made(old: Pair) -> None:
    report = make_report(old.settings(), None, lambda _: None)
    assert report.topics
    assert "reset" not in kinds(report.findings)
