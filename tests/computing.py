"""What a role computes of variables, by Ansible itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.loading import ROOT

Computed = dict[str, dict[str, Any]]


def compute(directory: Path, role: Path, play: str, hosts: Mapping[str, Any]) -> Computed:
    """Run a play that shows a variable named ``computed``.

    :param play: its text; ``{role}`` stands for the role's directory.
    :param hosts: host -> its variables, beside the role's defaults.
    :returns: host -> what was computed.
    """
    (directory / "play.yml").write_text(play.format(role=role))
    (directory / "hosts").write_text("\n".join(hosts))
    (directory / "templates").symlink_to(role / "templates")
    (directory / "host_vars").mkdir()
    (directory / "group_vars").mkdir()
    (directory / "group_vars/all.yml").write_text((role / "defaults/main.yml").read_text())
    for name, variables in hosts.items():
        (directory / "host_vars" / f"{name}.yml").write_text(yaml.safe_dump(variables))
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts", "play.yml"],
        cwd=directory, capture_output=True, text=True, check=False,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
             "ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_NOCOLOR": "1",
             "ANSIBLE_FILTER_PLUGINS": os.pathsep.join(
                 str(one / "filter_plugins") for one in (ROOT / "roles/mirror_model", role))},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    read = json.JSONDecoder().raw_decode
    texts = {name: done.stdout.split(f"ok: [{name}] => ", 1)[1] for name in hosts}
    return {name: read(text)[0]["computed"] for name, text in texts.items()}
