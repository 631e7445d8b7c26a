"""What the module of small files decides and leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loading import load

MODULE = Path(__file__).parents[1] / "roles/mirror_model/library/deployed_files.py"
files = load("roles/mirror_model/library/deployed_files.py", "deployed_files")


def run(check: bool = False, **arguments: Any) -> dict[str, Any]:
    """Run the module as Ansible does."""
    given = {"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}
    done = subprocess.run(
        [sys.executable, str(MODULE)],
        input=json.dumps(given), capture_output=True, text=True, check=False,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_set_is_written_once_and_left_alone_afterwards(tmp_path: Path) -> None:
    former = tmp_path / "former"
    former.write_text("old\n")
    arguments = {
        "directories": {f"{tmp_path}/d": {"mode": "0750"}},
        "files": {f"{tmp_path}/d/a": {"content": "one\n", "mode": "0640"}},
        "absent": [str(former)],
    }
    looked = run(check=True, **arguments)
    assert looked["changed"]
    assert [path.name for path in tmp_path.iterdir()] == ["former"]
    done = run(**arguments)
    assert done["written"] == looked["written"] == [f"{tmp_path}/d", f"{tmp_path}/d/a"]
    assert done["removed"] == [str(former)]
    assert {one["after_header"]: (one["before"], one["after"]) for one in done["diff"]} == {
        f"{tmp_path}/d/a": ("", "one\n"),
        str(former): ("old\n", ""),
    }
    written = tmp_path / "d/a"
    assert (written.read_text(), written.stat().st_mode & 0o7777) == ("one\n", 0o640)
    assert written.parent.stat().st_mode & 0o7777 == 0o750
    assert [path.name for path in written.parent.iterdir()] == ["a"]
    again = run(**arguments)
    assert (again["changed"], again["written"], again["removed"]) == (False, [], [])


@pytest.mark.parametrize("harm", ["content", "mode", "link"])
def test_what_was_changed_by_hand_is_put_right(tmp_path: Path, harm: str) -> None:
    path, elsewhere = tmp_path / "a", tmp_path / "elsewhere"
    arguments = {"files": {str(path): {"content": "one\n"}}}
    run(**arguments)
    if harm == "content":
        path.write_text("two\n")
    elif harm == "mode":
        path.chmod(0o600)
    else:
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
    assert run(**arguments)["written"] == [str(path)]
    assert not path.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("one\n", 0o644)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"contents": "x", "content": "y"}, "contents is not known"),
        ({"mode": "0644"}, "has no content"),
        ({"content": "x", "group": "no-such-group"}, "make it first"),
    ],
)
def test_what_cannot_be_is_refused_by_path(
    tmp_path: Path, entry: dict[str, str], said: str
) -> None:
    answer = run(files={f"{tmp_path}/a": entry})
    assert answer["failed"]
    assert f"{tmp_path}/a" in answer["msg"]
    assert said in answer["msg"]
    assert list(tmp_path.iterdir()) == []


def test_a_group_still_to_be_made_counts_as_a_change_in_check_mode(tmp_path: Path) -> None:
    entry = {"content": "x", "group": "no-such-group"}
    assert run(check=True, files={f"{tmp_path}/a": entry})["changed"]


def test_a_directory_in_the_place_of_a_file_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    answer = run(files={f"{tmp_path}/a": {"content": "x"}})
    assert "is a directory" in answer["msg"]
    assert (tmp_path / "a").is_dir()


def test_what_the_record_names_and_nobody_wants_any_more_goes(tmp_path: Path) -> None:
    record, target = str(tmp_path / "record.json"), str(tmp_path / "target")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    before = run(files={one: {"content": "1"}}, links={two: target}, record=record)
    assert set(before["written"]) == {one, two, record}
    assert str(Path(two).readlink()) == target
    assert not run(files={one: {"content": "1"}}, links={two: target}, record=record)["changed"]
    moved = run(files={one: {"content": "1"}}, links={two: one}, record=record)
    assert (moved["written"], str(Path(two).readlink())) == ([two], one)
    after = run(files={one: {"content": "1"}}, record=record)
    assert after["removed"] == [two]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "record.json"]


def test_a_link_never_takes_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("somebody's")
    answer = run(links={f"{tmp_path}/a": "/elsewhere"})
    assert "is no link" in answer["msg"]
    assert (tmp_path / "a").read_text() == "somebody's"


def test_what_is_only_made_if_missing_stays_as_it_is(tmp_path: Path) -> None:
    arguments = {
        "directories": {f"{tmp_path}/d": {"replace": False}},
        "files": {f"{tmp_path}/d/a": {"content": "", "replace": False}},
    }
    assert run(**arguments)["changed"]
    (tmp_path / "d/a").write_text("more")
    (tmp_path / "d").chmod(0o700)
    assert not run(**arguments)["changed"]
    assert (tmp_path / "d/a").read_text() == "more"
