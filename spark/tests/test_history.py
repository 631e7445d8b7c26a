"""History on disk: one line per observation, old lines thinned, damaged ones skipped."""

import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest

from mirror_report.state import history as module
from mirror_report.state.history import DAY_MS, HOUR_MS, History
from mirror_report.state.store import StateError

NOW = 1_800_000_000_000 - 1_800_000_000_000 % DAY_MS + 12 * HOUR_MS


def last(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return lines[-2:]


def test_observation_is_one_line_and_survives_a_line_cut_off_before_it(tmp_path: Path) -> None:
    history = History(tmp_path, 30)
    assert history.lines("orders") == []
    history.append("orders", {"at": 1, "seen": {}}, 0, last)
    path = tmp_path / "history" / "positions" / "orders.jsonl"
    with path.open("a") as handle:
        handle.write('{"at": 2, "se')
    history.append("orders", {"at": 3, "seen": {}}, 1, last)
    assert [line["at"] for line in history.lines("orders")] == [1, 3]
    assert history.lines("other") == []


def test_bytes_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    history = History(tmp_path, 30)
    history.append("orders", {"at": 1, "seen": {}}, 0, last)
    with (tmp_path / "history" / "positions" / "orders.jsonl").open("ab") as handle:
        handle.write(b'\xff\xfe{"at": 2}\n{"at": 3}\n')
    assert [line["at"] for line in history.lines("orders")] == [1, 3]


def test_many_lines_are_made_fewer(tmp_path: Path) -> None:
    history = History(tmp_path, 30)
    history.append("orders", {"at": 1, "seen": {}}, 0, last)
    history.append("orders", {"at": 2, "seen": {}}, module.LINES_KEPT - 1, last)
    history.append("orders", {"at": 3, "seen": {}}, module.LINES_KEPT, last)
    assert [line["at"] for line in history.lines("orders")] == [2, 3]


def test_lags_come_back_over_midnight_and_without_lag_take_no_room(tmp_path: Path) -> None:
    history = History(tmp_path, 30)
    for hours, lag in ((-14, 1), (-13, 0), (-11, None), (0, 7)):
        history.append_lags("orders", NOW + hours * HOUR_MS, {"t": lag, "idle": 0})
    assert history.lags("orders", NOW - 13 * HOUR_MS, NOW) == [
        (NOW - 13 * HOUR_MS, {}), (NOW - 11 * HOUR_MS, {"t": None}), (NOW, {"t": 7}),
    ]  # fmt: skip


def test_days_past_retention_go_and_those_before_yesterday_keep_one_line_an_hour(
    tmp_path: Path,
) -> None:
    history = History(tmp_path, 3)
    for days in (5, 3, 2, 1):
        for minute, lag in ((0, 4), (10, 9), (20, None), (70, 2)):
            at = NOW - days * DAY_MS + minute * 60_000
            history.append_lags("orders", at, {"t": lag})
    history.append_lags("orders", NOW, {"t": 1})
    found = history.lags("orders", 0 + NOW - 9 * DAY_MS, NOW)
    by_day = {
        days: [lags["t"] for at, lags in found if (NOW - at + 11 * HOUR_MS) // DAY_MS == days]
        for days in (5, 3, 2, 1, 0)
    }
    assert by_day == {5: [], 3: [9, 2], 2: [9, 2], 1: [4, 9, None, 2], 0: [1]}


@pytest.mark.parametrize("lag", ['"much"', '{"t": "much"}', '{"t": [1]}', '{"t": 1.5}', "null"])
def test_a_lag_that_is_no_number_is_passed_over(tmp_path: Path, lag: str) -> None:
    history = History(tmp_path, 30)
    then = NOW - 3 * DAY_MS
    for at_ms in (then, NOW):
        history.append_lags("orders", at_ms, {"t": 5})
        (path,) = (tmp_path / "history" / "lag" / "orders").glob(
            time.strftime("%Y-%m-%d", time.gmtime(at_ms / 1000)) + "*"
        )
        with path.open("a") as handle:
            handle.write(f'{{"at": {at_ms}, "lag": {lag}}}\n')
    history.append_lags("orders", NOW + DAY_MS, {"t": 1})
    found = history.lags("orders", then, NOW)
    assert found == [(then, {"t": 5}), (NOW, {"t": 5})]


def test_unwritable_history_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("")
    history = History(tmp_path, 30)
    with pytest.raises(StateError, match="history"), history.lock():
        pass
    with pytest.raises(StateError, match=r"orders\.jsonl"):
        history.append("orders", {"at": 1}, 0, last)
    with pytest.raises(StateError, match="report's user"):
        history.append_lags("orders", NOW, {})


def _add(directory: str, count: int) -> None:
    history = History(Path(directory), 30)
    for _ in range(count):
        with history.lock():
            lines = history.lines("orders")
            at = lines[-1]["at"] + 1 if lines else 0
            history.append("orders", {"at": at, "seen": {}}, len(lines), lambda some: some[-9:])


def test_observations_of_two_processes_do_not_undo_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINES_KEPT", 10)
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=_add, args=(str(tmp_path), 40)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(30)
    assert History(tmp_path, 30).lines("orders")[-1]["at"] == 79


def test_line_is_compact(tmp_path: Path) -> None:
    history = History(tmp_path, 30)
    history.append("orders", {"at": 1, "seen": {"t": [0, 5, 3, None]}}, 0, last)
    text = (tmp_path / "history" / "positions" / "orders.jsonl").read_text()
    assert text == '{"at":1,"seen":{"t":[0,5,3,null]}}\n'
