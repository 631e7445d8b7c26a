"""Who may look at the web view: hashes that last, and nothing that shows a password."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loading import load

MODULE = Path(__file__).parents[1] / "roles/mirror_report/library/mirror_report_users.py"
users = load("roles/mirror_report/library/mirror_report_users.py", "mirror_report_users")
PASSWORD = 'spät: "\\$ é und lang'
# `openssl passwd -6 -salt saltsaltsaltsalt "correct horse"`
KNOWN = (
    "$6$saltsaltsaltsalt$"
    "GkzgkzVbauGAKXpOTbypQEKy/9yJWVjcvXvDw7CxoJjnJ1.w.g"
    "1rV8bhCVTpHrRrO/h6b3DAwPN3y5qmHXZ1R1"
)


def run(path: Path, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Run the module as Ansible does."""
    arguments = {"path": str(path), "group": "root", "users": given, **more}
    done = subprocess.run(
        [sys.executable, str(MODULE)],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert PASSWORD not in done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_hash_is_the_one_other_programs_know() -> None:
    assert users.verified("correct horse", KNOWN)
    assert not users.verified("correct horsf", KNOWN)


def test_an_unchanged_password_keeps_its_hash_and_a_changed_one_does_not(tmp_path: Path) -> None:
    path = tmp_path / "users/htpasswd"
    first = run(path, {"anna": PASSWORD, "ben": PASSWORD})
    assert first["written"] == ["anna", "ben"]
    before = users.read(path)
    assert before["anna"] != before["ben"], "salted"
    assert path.stat().st_mode & 0o7777 == 0o640
    assert path.parent.stat().st_mode & 0o7777 == 0o750
    assert not run(path, {"anna": PASSWORD, "ben": PASSWORD})["changed"]
    second = run(path, {"anna": PASSWORD + "!"})
    assert (second["written"], second["removed"]) == (["anna"], ["ben"])
    assert users.verified(PASSWORD + "!", users.read(path)["anna"])
    assert [one.name for one in path.parent.iterdir()] == ["htpasswd"]


def test_check_mode_says_what_would_change_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users/htpasswd"
    answer = run(path, {"anna": PASSWORD}, group="no-such-group", _ansible_check_mode=True)
    assert answer["changed"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given", [{"a:b": PASSWORD}, {"": PASSWORD}, {"anna": "short"}, {"anna": f"{PASSWORD}\nroot:x"}]
)
def test_what_would_be_no_user_is_refused(tmp_path: Path, given: dict[str, str]) -> None:
    answer = run(tmp_path / "htpasswd", given)
    assert answer["failed"]
    assert "mirror_report_web_users" in answer["msg"]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_others_can_read_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "users/htpasswd"
    run(path, {"anna": PASSWORD})
    path.chmod(0o644)
    again = run(path, {"anna": PASSWORD})
    assert (again["changed"], again["written"]) == (True, [])
    assert path.stat().st_mode & 0o7777 == 0o640
