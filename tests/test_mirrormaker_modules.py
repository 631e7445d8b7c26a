"""What the modules of role mirrormaker decide about running processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loading import load

state = load("roles/mirrormaker/library/mirrormaker_state.py", "mirrormaker_state")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (b"A=1\0MM_FINGERPRINT=abc\0B=2\0", "abc"),
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
    assert state.unit_file_state(unit) == {"exists": False, "ours": False}
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    assert state.unit_file_state(unit) == {"exists": True, "ours": False}
    unit.write_text(f"{state.UNIT_MARKER}\n[Service]\n")
    assert state.unit_file_state(unit) == {"exists": True, "ours": True}


def test_the_unit_template_carries_the_marker():
    template = Path(__file__).parents[1] / "roles/mirrormaker/templates/mirrormaker.service.j2"
    assert state.UNIT_MARKER in template.read_text().splitlines()


def test_an_empty_directory_is_nobodys_and_a_full_one_without_marker_is_foreign(tmp_path):
    assert state.directory_state(tmp_path / "none")["exists"] is False
    assert state.directory_state(tmp_path)["empty"] is True
    (tmp_path / "x").touch()
    found = state.directory_state(tmp_path)
    assert (found["empty"], found["ownership"]) == (False, None)
