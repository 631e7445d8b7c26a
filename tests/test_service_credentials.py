"""Credentials: generations that change with them, written where no other user can redirect root."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.host_files import paths

from tests.loading import load
from tests.playing import run_module

MODULE = "roles/host_files/library/service_credentials.py"
NOBODY = 65534
credentials = load(MODULE, "service_credentials")


def run(directory: Path, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
    """Run the module as Ansible does, for two credentials."""
    given = {"directory": str(directory), "credentials": {"a": "one", "b": "two"}, **arguments}
    return run_module(MODULE, given, check=check)


def shown(directory: Path) -> dict[str, tuple[int, int]]:
    """Name to owner and mode, of the directory and what is in it."""
    found = {path.name: path.lstat() for path in (directory, *directory.iterdir())}
    return {name: (state.st_uid, state.st_mode & 0o7777) for name, state in found.items()}


def test_the_owner_of_credentials_is_not_that_of_their_directory(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    arguments = {"owner": "nobody"}
    assert run(directory, **arguments)["written"] == ["a", "b"]
    wanted = {"c": (0, 0o755), "a": (NOBODY, 0o400), "b": (NOBODY, 0o400)}
    assert shown(directory) == wanted
    assert not run(directory, **arguments)["changed"]
    # As former releases made it: owned by the user, with a file of his own.
    (directory / "former").write_text("x")
    os.chown(directory, NOBODY, NOBODY)
    assert run(directory, **arguments)["removed"] == ["former"]
    assert shown(directory) == wanted


@pytest.mark.parametrize("owner", [None, "nobody"])
@pytest.mark.parametrize("plant", ["link", "pipe"])
def test_what_was_planted_is_replaced_and_leads_nowhere(
    tmp_path: Path, plant: str, owner: str | None
) -> None:
    directory, secret = tmp_path / "c", tmp_path / "secret"
    directory.mkdir()
    os.chown(directory, NOBODY, NOBODY)
    secret.write_text("canary")
    secret.chmod(0o640)
    for name in ("a", "stray"):
        if plant == "link":
            (directory / name).symlink_to(secret)
        else:
            os.mkfifo(directory / name)
    answer = run(directory, **({"owner": owner} if owner else {}))
    assert (answer["written"], answer["removed"]) == (["a", "b"], ["stray"])
    assert (directory / "a").read_text() == "one"
    assert set(shown(directory)) == {"c", "a", "b"}
    assert (secret.read_text(), secret.stat().st_uid) == ("canary", 0)
    assert secret.stat().st_mode & 0o7777 == 0o640


def test_an_owner_still_to_be_made_is_a_change_in_check_mode_alone(tmp_path: Path) -> None:
    arguments = {"owner": "no-such-user"}
    assert run(tmp_path / "c", check=True, **arguments)["changed"]
    assert "no-such-user' is not there" in run(tmp_path / "c", **arguments)["msg"]
    assert list(tmp_path.iterdir()) == []


def test_unchanged_credentials_keep_their_generation() -> None:
    plan = credentials.plan({"a.jaas": b"x"}, {"a.jaas": b"x"}, {"a.jaas": "1"})
    assert (plan.written, plan.removed, plan.generations) == ([], [], {"a.jaas": "1"})


def test_a_changed_credential_gets_a_new_generation_and_the_others_keep_theirs() -> None:
    wanted = {"a.jaas": b"new", "b.jaas": b"y"}
    present = {"a.jaas": b"old", "b.jaas": b"y"}
    plan = credentials.plan(wanted, present, {"a.jaas": "1", "b.jaas": "2"})
    assert plan.written == ["a.jaas"]
    assert plan.generations["b.jaas"] == "2"
    assert plan.generations["a.jaas"] not in {"1", "2", ""}


def test_a_lost_generation_is_replaced_so_that_the_process_is_restarted() -> None:
    plan = credentials.plan({"a.jaas": b"x"}, {"a.jaas": b"x"}, {})
    assert plan.written == []
    assert plan.generations["a.jaas"]


def test_a_credential_no_longer_wanted_goes_with_its_generation() -> None:
    plan = credentials.plan({}, {"a.jaas": b"x"}, {"a.jaas": "1"})
    assert (plan.removed, plan.generations) == (["a.jaas"], {})


def test_generations_say_nothing_about_the_secret() -> None:
    same = [credentials.plan({"a": b"x"}, {}, {}).generations["a"] for _ in range(2)]
    assert same[0] != same[1]


def test_a_file_is_written_whole_with_its_mode_and_nothing_is_left_beside_it(
    tmp_path: Path,
) -> None:
    with paths.existing(tmp_path / "a") as entry:
        entry.write(b"secret", 0o600, -1, -1)
    assert (tmp_path / "a").read_bytes() == b"secret"
    assert (tmp_path / "a").stat().st_mode & 0o7777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_generations_that_cannot_be_read_count_as_forgotten(tmp_path: Path, text: str) -> None:
    (tmp_path / "g").write_text(text)
    assert credentials.read_generations(tmp_path / "g") == {}
