"""What the module deployed_files decides and writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.playing import run_module


def run(check: bool = False, **arguments: Any) -> dict[str, Any]:
    """Run the module as Ansible does."""
    return run_module("roles/host_files/library/deployed_files.py", arguments, check=check)


def test_a_set_is_written_once_and_left_alone_afterwards(tmp_path: Path) -> None:
    former = tmp_path / "former"
    former.write_text("old\n")
    arguments = {
        "directories": {f"{tmp_path}/d": {"mode": "0750"}},
        "files": {f"{tmp_path}/d/a": {"content": "one\n", "mode": "0640"}},
        "absent": [str(former)],
    }
    planned = run(check=True, **arguments)
    assert planned["changed"]
    assert [path.name for path in tmp_path.iterdir()] == ["former"]
    done = run(**arguments)
    assert done["written"] == planned["written"] == [f"{tmp_path}/d", f"{tmp_path}/d/a"]
    assert done["removed"] == [str(former)]
    assert {
        change["after_header"]: (change["before"], change["after"]) for change in done["diff"]
    } == {
        f"{tmp_path}/d/a": ("", "one\n"),
        str(former): ("old\n", ""),
    }
    written = tmp_path / "d/a"
    assert (written.read_text(), written.stat().st_mode & 0o7777) == ("one\n", 0o640)
    assert written.parent.stat().st_mode & 0o7777 == 0o750
    assert [path.name for path in written.parent.iterdir()] == ["a"]
    again = run(**arguments)
    assert (again["changed"], again["written"], again["removed"]) == (False, [], [])


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_directories_above_are_their_owner_s_to_write_whatever_the_umask(
    tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        run(directories={f"{tmp_path}/a/b/c": {"mode": "0750"}})
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o7777 for name in ("a", "a/b", "a/b/c")]
    assert modes == [0o755, 0o755, 0o750]


@pytest.mark.parametrize("damage", ["content", "mode", "link"])
def test_what_was_changed_by_hand_is_put_right(tmp_path: Path, damage: str) -> None:
    path, elsewhere = tmp_path / "a", tmp_path / "elsewhere"
    arguments = {"files": {str(path): {"content": "one\n"}}}
    run(**arguments)
    if damage == "content":
        path.write_text("two\n")
    elif damage == "mode":
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
    file, link = str(tmp_path / "one"), str(tmp_path / "two")
    before = run(files={file: {"content": "1"}}, links={link: target}, record=record)
    assert set(before["written"]) == {file, link, record}
    assert str(Path(link).readlink()) == target
    assert not run(files={file: {"content": "1"}}, links={link: target}, record=record)["changed"]
    moved = run(files={file: {"content": "1"}}, links={link: file}, record=record)
    assert (moved["written"], str(Path(link).readlink())) == ([link], file)
    after = run(files={file: {"content": "1"}}, record=record)
    assert after["removed"] == [link]
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


NOBODY = 65534
CANARY = "canary-77a0"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of root's that nobody else reads."""
    path = tmp_path / "secret"
    path.write_text(f"{CANARY}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A directory of another user."""
    path = tmp_path / "theirs"
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)
    return path


def kept(path: Path) -> tuple[str, int, int]:
    """Content, owner and mode of a file."""
    found = path.stat()
    return path.read_text(), found.st_uid, found.st_mode & 0o7777


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("plant", ["link", "pipe", "hard link"])
@pytest.mark.parametrize("whose", [0, NOBODY])
def test_what_was_planted_is_replaced_and_never_shown(
    tmp_path: Path, theirs: Path, secret: Path, whose: int, plant: str, replace: bool
) -> None:
    if plant == "hard link" and not (replace and whose):
        plant = "link"  # elsewhere it is a file like any other
    before = kept(secret)
    path = (theirs if whose else tmp_path) / "a"
    if plant == "link":
        path.symlink_to(secret)
    elif plant == "pipe":
        os.mkfifo(path)
    else:
        path.hardlink_to(secret)
    entry = {"content": "x\n", "owner": "nobody", "group": "nogroup", "replace": replace}
    answer = run(files={str(path): entry})
    assert answer["written"] == [str(path)]
    assert CANARY not in json.dumps(answer)
    assert not path.is_symlink()
    assert kept(path) == ("x\n", NOBODY, 0o644)
    assert kept(secret) == before
    assert not run(files={str(path): entry})["changed"]


def test_what_another_user_has_in_his_directory_is_not_shown(theirs: Path) -> None:
    path = theirs / "a"
    path.write_text(CANARY)
    record = theirs.parent / "record"
    record.write_text(json.dumps([str(path)]))
    answer = run(record=str(record))
    assert answer["removed"] == [str(path)]
    assert CANARY not in json.dumps(answer["diff"])
    assert list(theirs.iterdir()) == []


@pytest.mark.parametrize("what", ["directories", "files", "links", "absent"])
def test_a_link_that_another_user_set_is_not_followed(
    tmp_path: Path, theirs: Path, what: str
) -> None:
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots/a").write_text("")
    (theirs / "sub").symlink_to(tmp_path / "roots")
    path = str(theirs / "sub/b")
    given: Any = {
        "directories": {path: {}},
        "files": {path: {"content": ""}},
        "links": {path: "/x"},
        "absent": [str(theirs / "sub/a")],
    }[what]
    answer = run(**{what: given})
    assert answer["failed"]
    assert "sub is a link that is not root's" in answer["msg"]
    assert [entry.name for entry in (tmp_path / "roots").iterdir()] == ["a"]


def test_links_of_roots_lead_on(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "absolute").symlink_to(tmp_path / "real")
    (tmp_path / "real/relative").symlink_to("../real")
    path = tmp_path / "absolute/relative/a"
    run(files={str(path): {"content": "x"}})
    assert (tmp_path / "real/a").read_text() == "x"


def test_what_is_made_in_a_directory_of_another_user_is_his(theirs: Path) -> None:
    arguments: dict[str, Any] = {
        "directories": {f"{theirs}/d": {"replace": False}},
        "links": {f"{theirs}/l": "/target"},
        "files": {f"{theirs}/d/f": {"content": "", "replace": False}},
    }
    assert run(**arguments)["changed"]
    assert {path.name: path.lstat().st_uid for path in theirs.rglob("*")} == dict.fromkeys(
        ("d", "l", "f"), NOBODY
    )
    assert not run(**arguments)["changed"]


def test_a_file_of_roots_has_no_place_in_a_directory_of_another_user(theirs: Path) -> None:
    answer = run(files={f"{theirs}/a": {"content": "x"}})
    assert "its directory is not root's; name its owner" in answer["msg"]
    assert list(theirs.iterdir()) == []


UNIT = "[Unit]\nDescription=One\n\n[Service]\nExecStart={command}\nMemoryMax={memory}\n"
TIMER = "[Unit]\nDescription=One\n\n[Timer]\nOnCalendar=daily\n"


def written(tmp_path: Path, **unit: str) -> dict[str, Any]:
    service = UNIT.format(**{"command": "/bin/true", "memory": "1G", **unit})
    contents = {"one.service": service, "one.timer": TIMER, "plain": "x"}
    return run(files={f"{tmp_path}/{name}": {"content": text} for name, text in contents.items()})


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ({"memory": "12 apples"}, "12 apples"),
        ({"command": "/nowhere/java"}, "/nowhere/java is not executable"),
        ({"memory": "1G\nNoNewPriviliges=yes"}, "NoNewPriviliges"),
    ],
)
def test_a_unit_that_systemd_would_not_run_as_written_leaves_all_as_it_was(
    tmp_path: Path, unit: dict[str, str], said: str
) -> None:
    assert written(tmp_path)["changed"]
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    (tmp_path / "plain").unlink()
    refused = written(tmp_path, **unit)
    assert refused["failed"]
    assert said in refused["msg"]
    assert f"{tmp_path}/one.service" in refused["msg"]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: text for name, text in before.items() if name != "plain"
    }
