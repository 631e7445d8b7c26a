"""Users of the web view: hashes are kept, and no password is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.loading import load
from tests.playing import run_module

MODULE = "roles/mirror_report_web/library/mirror_report_users.py"
users = load(MODULE, "mirror_report_users")
web = load(
    "roles/mirror_report_web/filter_plugins/mirror_report_web.py", "mirror_report_web_filters"
)
PASSWORD = 'spät: "\\$ é und lang'
# `openssl passwd -6 -salt saltsaltsaltsalt "correct horse"`
KNOWN = (
    "$6$saltsaltsaltsalt$"
    "GkzgkzVbauGAKXpOTbypQEKy/9yJWVjcvXvDw7CxoJjnJ1.w.g"
    "1rV8bhCVTpHrRrO/h6b3DAwPN3y5qmHXZ1R1"
)


def run(path: Path, given: dict[str, Any], *, check: bool = False, **more: Any) -> dict[str, Any]:
    """Run the module as Ansible does; no password is in its answer."""
    arguments = {"path": str(path), "group": "root", "users": given, **more}
    answer = run_module(MODULE, arguments, check=check)
    assert json.dumps(PASSWORD)[1:-1] not in json.dumps(answer)
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
    assert [entry.name for entry in path.parent.iterdir()] == ["htpasswd"]


def test_check_mode_says_what_would_change_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users/htpasswd"
    answer = run(path, {"anna": PASSWORD}, group="no-such-group", check=True)
    assert answer["changed"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [{"a:b": PASSWORD}, {"": PASSWORD}, {"a\x7fb": PASSWORD}, {"a\u202eb": PASSWORD},
     {"anna": "short"}, {"anna": 123456789012}, {"anna": f"{PASSWORD}\nroot:x"},
     {"anna": f"{PASSWORD}\r"}, {"anna": f"{PASSWORD}\t"}, {"anna": f"{PASSWORD}\u200b"}],
)  # fmt: skip
def test_what_would_be_no_user_is_refused(given: dict[str, Any]) -> None:
    [problem] = web.web_user_problems(given)
    assert problem.startswith("mirror_report_web_users: ")
    assert problem.isprintable()
    assert PASSWORD not in problem


def test_users_that_can_log_in_are_taken() -> None:
    assert web.web_user_problems({"anna": PASSWORD, "jörg.b": PASSWORD}) == []


def test_a_file_that_others_can_read_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "users/htpasswd"
    run(path, {"anna": PASSWORD})
    path.chmod(0o644)
    again = run(path, {"anna": PASSWORD})
    assert (again["changed"], again["written"]) == (True, [])
    assert path.stat().st_mode & 0o7777 == 0o640
