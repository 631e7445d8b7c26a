"""Playbooks and modules run by tests, and the answers of modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.loading import MODULE_UTILS, ROOT

KEEP_ANSWER = """
    - copy:
        content: "{{ done | to_json }}"
        dest: "{{ playbook_dir }}/done.json"
        mode: "0600"
      check_mode: false
"""
"""The last task of a play: keeps what was registered as ``done``."""


def ansible_playbook(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a playbook with the repository's configuration, in a directory."""
    return subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), *arguments],
        capture_output=True, text=True, check=False, cwd=directory,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
             "ANSIBLE_DEPRECATION_WARNINGS": "false"},
    )  # fmt: skip


def answer(played: subprocess.CompletedProcess[str], directory: Path) -> dict[str, Any]:
    """What :data:`KEEP_ANSWER` kept, and ``stdout`` of Ansible.

    :param directory: of the playbook.
    """
    assert played.returncode == 0, played.stdout + played.stderr
    found: dict[str, Any] = json.loads((directory / "done.json").read_text())
    return {**found, "stdout": played.stdout}


AS_ON_A_HOST = """
import runpy, sys
import ansible.module_utils
_, module, *shared = sys.argv
sys.argv = [module]
ansible.module_utils.__path__ += shared
runpy.run_path(module, run_name="__main__")
"""


def run_module(path: str, arguments: dict[str, Any], *, check: bool = False) -> dict[str, Any]:
    """Run a module as Ansible does on a host.

    :param path: of the module, relative to the repository.
    :param check: in check mode.
    :returns: what it answers.
    """
    given = {"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_A_HOST, str(ROOT / path), *MODULE_UTILS],
        input=json.dumps(given), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    answered: dict[str, Any] = json.loads(done.stdout)
    return answered
