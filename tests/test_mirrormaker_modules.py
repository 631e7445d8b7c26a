"""What the modules of roles service_unit and mirrormaker decide about running processes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.loading import load
from tests.playing import run_module

state = load("roles/service_unit/library/service_unit_state.py", "service_unit_state")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (b"A=1\0MM_FINGERPRINT=abc\0B=2\0", "abc"),
        (b"KAFKA_BROKER_FINGERPRINT=abc", "abc"),
        (b"XMM_FINGERPRINT=abc\0", ""),
        (b"", ""),
    ],
)
def test_the_fingerprint_is_read_from_the_environment_of_the_process(environment, expected):
    assert state.fingerprint_of(environment) == expected


def test_files_written_after_the_start_are_outdated_in_the_process():
    times = {"/old": 90.0, "/new": 110.0, "/from-the-future": 130.0}
    assert state.newer_than(100.0, 120.0, times) == ["/new"]


def test_the_version_of_systemd_is_read_from_its_first_line():
    assert state.version_of("systemd 252 (252.39-1~deb12u1)\n+PAM +AUDIT") == 252
    assert state.version_of("") == 0


def test_a_unit_without_the_marker_belongs_to_someone_else(tmp_path):
    unit = tmp_path / "mirrormaker.service"
    found = state.unit_file_state(unit, "mirrormaker")
    assert (found["exists"], found["ours"]) == (False, False)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    found = state.unit_file_state(unit, "mirrormaker")
    assert (found["exists"], found["ours"]) == (True, False)
    unit.write_text("# Owner: role mirrormaker\n[Service]\n")
    for owner, ours in (("mirrormaker", True), ("kafka_broker", False)):
        found = state.unit_file_state(unit, owner)
        assert (found["exists"], found["ours"]) == (True, ours)


def test_the_unit_template_carries_the_marker():
    template = Path(__file__).parents[1] / "roles/mirrormaker/templates/mirrormaker.service.j2"
    assert state.UNIT_MARKER.format("mirrormaker") in template.read_text().splitlines()


def test_an_empty_directory_is_nobodys_and_a_full_one_without_marker_is_foreign(tmp_path):
    assert state.directory_state(tmp_path / "none")["exists"] is False
    assert state.directory_state(tmp_path)["empty"] is True
    (tmp_path / "x").touch()
    found = state.directory_state(tmp_path)
    assert (found["empty"], found["ownership"]) == (False, None)


LAST_GOOD = "roles/mirrormaker/library/mirrormaker_last_good.py"


@pytest.fixture
def configured(tmp_path):
    """Files of an instance, its credentials, and how the module is called for them."""
    credentials = tmp_path / "credentials"
    credentials.mkdir(mode=0o700)
    for name, text in {"generations.json": "{}", "p.properties": "old", "a.service": "old"}.items():
        (tmp_path / name).write_text(text)
    (credentials / "east.jaas").write_text("old")
    (credentials / "east.jaas").chmod(0o600)
    names = ["generations.json", "p.properties", "q.properties", "a.service"]
    given = {
        "path": str(tmp_path / "last-good.json"),
        "files": [str(tmp_path / name) for name in names],
        "credentials": str(credentials),
    }
    return tmp_path, lambda state, **more: run_module(LAST_GOOD, given | {"state": state} | more)


def contents(folder):
    """Every file below a folder but what is kept: name to content and mode."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in folder.rglob("*")
        if path.is_file() and path.name != "last-good.json"
    }


def test_what_was_confirmed_is_kept_for_root_alone_and_once(configured):
    folder, run = configured
    assert run("kept", client="{}")["changed"]
    kept = folder / "last-good.json"
    assert (kept.stat().st_mode & 0o7777, kept.stat().st_uid) == (0o600, 0)
    assert not run("kept", client="{}")["changed"]


def test_what_was_confirmed_comes_back_whole_and_nothing_else_stays(configured):
    folder, run = configured
    before = contents(folder)
    run("kept", client='{"a": 1}')
    for name in ("p.properties", "q.properties", "a.service", "credentials/east.jaas"):
        (folder / name).write_text("new")
    (folder / "credentials/west.jaas").write_text("new")
    (folder / "generations.json").unlink()
    back = run("restored")
    assert (back["changed"], back["present"], back["client"]) == (True, True, '{"a": 1}')
    assert contents(folder) == before
    assert not run("restored")["changed"]


def test_files_that_come_back_are_no_newer_than_they_were(configured):
    folder, run = configured
    os.utime(folder / "p.properties", ns=(10**18, 10**18))
    run("kept")
    (folder / "p.properties").write_text("new")
    run("restored")
    assert (folder / "p.properties").stat().st_mtime_ns == 10**18


def test_what_a_former_release_kept_comes_back(configured):
    folder, run = configured
    run("kept")
    kept = folder / "last-good.json"
    document = json.loads(kept.read_text())
    for entry in filter(None, document["files"].values()):
        del entry["modified"]
    kept.write_text(json.dumps(document))
    (folder / "p.properties").write_text("new")
    assert run("restored")["restored"]
    assert (folder / "p.properties").read_text() == "old"
    assert not run("restored")["restored"]


def test_a_unit_file_says_what_its_process_is_started_with(tmp_path):
    unit = tmp_path / "m.service"
    assert state.unit_file_state(unit, "")["fingerprint"] == ""
    unit.write_text("[Service]\nEnvironment=MM_FINGERPRINT=abc\nExecStart=/bin/true\n")
    assert state.unit_file_state(unit, "")["fingerprint"] == "abc"


def test_without_a_confirmed_configuration_nothing_is_touched(configured):
    folder, run = configured
    before = contents(folder)
    back = run("restored")
    assert (back["changed"], back["present"]) == (False, False)
    assert contents(folder) == before
