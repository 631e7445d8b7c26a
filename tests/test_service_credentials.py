"""Credentials are written where nobody else can lead root astray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODULE = Path(__file__).parents[1] / "roles/mirror_model/library/service_credentials.py"
NOBODY = 65534


def run(directory: Path, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
    """Run the module as Ansible does, for two credentials."""
    given = {"directory": str(directory), "credentials": {"a": "one", "b": "two"}, **arguments}
    done = subprocess.run(
        [sys.executable, str(MODULE)],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**given, "_ansible_check_mode": check}}),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def shown(directory: Path) -> dict[str, tuple[int, int]]:
    """Name to owner and mode, of the directory and what is in it."""
    found = {one.name: one.lstat() for one in (directory, *directory.iterdir())}
    return {name: (one.st_uid, one.st_mode & 0o7777) for name, one in found.items()}


def test_the_owner_of_credentials_is_not_that_of_their_directory(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    arguments = {"owner": "nobody"}
    assert run(directory, **arguments)["written"] == ["a", "b"]
    wanted = {"c": (0, 0o755), "a": (NOBODY, 0o400), "b": (NOBODY, 0o400)}
    assert shown(directory) == wanted
    assert not run(directory, **arguments)["changed"]
    # As it was made before: the user's, with something that he put there.
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
