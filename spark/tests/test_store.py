"""State survives a crash at every step, and is never shared or misread."""

import json
import multiprocessing
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from mirror_report.state.store import EXPENDABLE, LockedError, StateError, Store


def test_manifest_comes_back_as_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    assert store.load("parity") == {}
    store.commit("parity", {"a": {"b": [1, None, "é"]}})
    assert store.load("parity") == {"a": {"b": [1, None, "é"]}}


@pytest.mark.parametrize("step", ["fsync", "fchmod", "replace"])
def test_crash_at_any_step_leaves_the_old_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = Store(tmp_path)
    store.commit("baseline", {"run": 1})

    class Crash(BaseException):
        pass

    def crash(*_: Any) -> None:
        raise Crash

    if step == "replace":
        monkeypatch.setattr(Path, "replace", crash)
    else:
        monkeypatch.setattr(os, step, crash)
    with pytest.raises(Crash):
        store.commit("baseline", {"run": 2})
    monkeypatch.undo()
    assert store.load("baseline") == {"run": 1}
    store.commit("baseline", {"run": 3})
    assert store.load("baseline") == {"run": 3}


def test_foreign_schema_is_refused_with_a_cure(tmp_path: Path) -> None:
    (tmp_path / "parity.json").write_text(json.dumps({"schema": 99, "data": {}}))
    with pytest.raises(StateError, match=r"schema 99.*Install the release"):
        Store(tmp_path).load("parity")


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "{}"])
def test_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "parity.json").write_text(text)
    with pytest.raises(StateError):
        Store(tmp_path).load("parity")


@pytest.mark.parametrize("name", EXPENDABLE)
def test_damage_to_what_can_be_spared_costs_that_alone(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    store.commit("baseline", {"flow": {}})
    (tmp_path / f"{name}.json").write_text("{")
    with pytest.raises(StateError, match="is damaged") as caught:
        store.load(name)
    assert f"{name}.json.damaged" in caught.value.action
    assert "baseline" not in caught.value.action
    assert store.load(name) == {}, "and the next run goes on"
    assert (tmp_path / f"{name}.json.damaged").read_text() == "{"
    assert store.load("baseline") == {"flow": {}}


@pytest.mark.parametrize("name", ["baseline", "parity"])
def test_what_cannot_be_spared_stays_where_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.json").write_text("{")
    for _ in range(2):
        with pytest.raises(StateError, match="is damaged") as caught:
            Store(tmp_path).load(name)
    assert f"mv {tmp_path}/{name}.json" in caught.value.action


def test_reports_are_for_their_group_only(tmp_path: Path) -> None:
    Store(tmp_path).write_report("latest.json", "{}")
    path = tmp_path / "reports" / "latest.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_unwritable_state_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="file"):
        Store(tmp_path / "file").commit("baseline", {})


def _hold(directory: str, held: Any, release: Any) -> None:
    with Store(Path(directory)).lock():
        held.set()
        release.wait(20)


def test_second_holder_learns_who_holds_the_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(str(tmp_path), held, release))
    process.start()
    try:
        assert held.wait(20)
        with pytest.raises(LockedError, match=f"process {process.pid}"), Store(tmp_path).lock():
            pass
    finally:
        release.set()
        process.join(20)
    with Store(tmp_path).lock():
        pass


def test_lock_of_a_killed_holder_is_free(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(str(tmp_path), held, release))
    process.start()
    assert held.wait(20)
    process.kill()
    process.join(20)
    with Store(tmp_path).lock():
        pass


def test_old_reports_are_dropped_and_the_latest_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number in range(5):
        store.write_report(f"2026110{number}T000000Z-00.json", "{}")
    store.write_report("latest.json", "{}")
    store.prune_reports(keep=2)
    assert sorted(path.name for path in store.reports_directory.iterdir()) == [
        "20261103T000000Z-00.json", "20261104T000000Z-00.json", "latest.json",
    ]  # fmt: skip


def test_published_reports_are_readable_by_whoever_may_enter_their_directory(
    tmp_path: Path,
) -> None:
    store, web = Store(tmp_path / "state"), tmp_path / "web"
    store.write_report("latest.html", "page")
    store.publish(str(web), ["latest.html"])
    assert (web / "latest.html").read_text() == "page"
    assert (web / "latest.html").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in web.iterdir()] == ["latest.html"]
