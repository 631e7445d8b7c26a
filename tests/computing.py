"""Values that a role computes from variables, by Ansible itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.loading import ROOT

Computed = dict[str, dict[str, Any]]
FACTS = {
    "ansible.builtin.set_fact": {"{{ item.key }}": "{{ item.value }}", "cacheable": True},
    "loop": "{{ facts | default({}) | dict2items }}",
}


def needed(role: Path) -> list[Path]:
    """A role and those it names in meta/main.yml; a role comes after what it needs."""
    meta = yaml.safe_load((role / "meta/main.yml").read_text(encoding="utf-8"))
    named = [needed(role.parent / dependency["role"]) for dependency in meta["dependencies"]]
    return list(dict.fromkeys([*(path for paths in named for path in paths), role]))


def compute(
    directory: Path, roles: Sequence[Path], shown: Mapping[str, str], hosts: Mapping[str, Any]
) -> Computed:
    """Evaluate expressions as tasks of a role would.

    :param roles: the role, after those whose variables and filters it has besides.
    :param shown: name -> expression.
    :param hosts: host -> its variables, beside the defaults of the roles; ``facts`` are its facts.
    :returns: host -> name -> what was computed.
    """
    everything = list(dict.fromkeys(path for role in roles for path in needed(role)))
    computed = {name: "{{ " + expression + " }}" for name, expression in shown.items()}
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars": {"role_path": str(roles[-1])},
        "vars_files": [str(f) for role in everything for f in sorted(role.glob("vars/**/*.yml"))],
        "tasks": [
            FACTS,
            {"ansible.builtin.debug": {"var": "computed"}, "vars": {"computed": computed}},
        ],
    }
    (directory / "play.yml").write_text(yaml.safe_dump([play]))
    (directory / "hosts").write_text("\n".join(hosts))
    (directory / "templates").symlink_to(roles[-1] / "templates")
    (directory / "host_vars").mkdir()
    (directory / "group_vars/all").mkdir(parents=True)
    for role in everything:
        if (role / "defaults/main.yml").exists():
            (directory / f"group_vars/all/{role.name}.yml").symlink_to(role / "defaults/main.yml")
    for name, variables in hosts.items():
        (directory / "host_vars" / f"{name}.yml").write_text(yaml.safe_dump(variables))
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts", "play.yml"],
        cwd=directory, capture_output=True, text=True, check=False,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
             "ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_NOCOLOR": "1",
             "ANSIBLE_FILTER_PLUGINS": os.pathsep.join(
                 str(role / "filter_plugins") for role in everything)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    read = json.JSONDecoder().raw_decode
    texts = {name: done.stdout.rsplit(f"ok: [{name}] => ", 1)[1] for name in hosts}
    return {name: read(text)[0]["computed"] for name, text in texts.items()}
