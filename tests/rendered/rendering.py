"""What the roles write on the hosts of a site, rendered by Ansible on the controller.

``python -m tests.rendered.rendering DIRECTORY`` writes the trees of every inventory and of the
drawn sites, so that those of two commits can be compared with ``diff --recursive``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.computing import needed
from tests.rendered.sites import sites

ROOT = Path(__file__).parents[2]
ROLES = ROOT / "roles"
HERE = Path(__file__).parent
DRAWN = 30

Tree = dict[str, Any]
"""Part of what is written (files, credentials, ...) to name to its content, owner and mode."""

PEM = (HERE / "certificate.pem").read_text()
KEY = "-----BEGIN PRIVATE KEY-----\nMII=\n-----END PRIVATE KEY-----\n"
IDENTITIES = ("admin", "mirror", "payments", "report")
PASSWORDS = {
    alias: {who: f'{alias}{who}"\\$ é' for who in IDENTITIES} for alias in ("east", "west", "north")
}
LAB_HOSTS = [
    f"{kind}{number}" for kind in ("source", "target", "mirror", "connect", "worker")
    for number in (1, 2, 3)
]  # fmt: skip
# Inventory variables that a vault or the command line sets.
GIVEN = {
    "ansible_connection": "local",
    "ansible_become": False,
    "ansible_python_interpreter": sys.executable,
    **{
        f"vault_{cluster}_{who}": f"vault {cluster} {who}"
        for cluster in ("headquarters", "warehouse")
        for who in IDENTITIES
    },
}
# What a host and its clusters would have answered.
FACTS = {
    "default_ipv4": {"address": "192.0.2.1"}, "hostname": "host", "memtotal_mb": 16000,
    "processor_vcpus": 2, "distribution": "Debian", "distribution_major_version": "12",
    "architecture": "x86_64",
}  # fmt: skip
ANSWERS = {
    "__kafka_broker_kept": {"generations": {}},
    "__kafka_broker_storage": {"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"},
    "__mirror_report_calendars": {
        "intervals": {"mirror_report_schedule": 900, "mirror_report_lag_schedule": 60}
    },
    "__mirrormaker_credentials": {"generations": {}},
    "__mirrormaker_found": {
        "systemd_version": 252, "user_exists": True,
        "directory": {"identity": None, "ownership": None},
    },
}  # fmt: skip
PROCESS = {
    "files": "__mirrormaker_contents",
    "directories": "{__mirrormaker_paths.directory: {'group': mirrormaker_name, 'mode': '0750'}, "
    "mirrormaker_sysconfig_directory: {}}",
    "credentials": "__mirrormaker_secrets",
    "check": "__mirrormaker_client_settings",
    "former": "__mirrormaker_files.former | sort",
}  # fmt: skip


def owners(variable: str) -> str:
    """The expression of the owners of a host, by the variable that lists them."""
    return (
        f"{variable} | dict2items | selectattr('value.hosts', 'defined') | "
        "selectattr('value.hosts', 'contains', inventory_hostname) | map(attribute='key') | list"
    )


@dataclass(frozen=True)
class Rendered:
    """What one role writes.

    :param roles: those whose variables are read; the last one renders.
    :param names: expression of what there is of it on a host; ``item`` is one of these.
    :param shown: part of a tree to its expression.
    :param given: variables that whoever includes the role sets.
    """

    roles: tuple[str, ...]
    names: str
    shown: Mapping[str, str]
    given: Mapping[str, Any]


RENDERED = {
    "instances": Rendered(
        ("kafka", "mirror_report", "mirrormaker"), owners("mirrormaker_instances"), PROCESS,
        {"mirrormaker_name": "{{ item }}"},
    ),
    "workers": Rendered(
        ("kafka", "kafka_connect", "mirror_report", "mirrormaker"),
        owners("kafka_connect_clusters"), PROCESS,
        {
            "mirrormaker_name": "{{ item }}", "kafka_connect_name": "{{ item }}",
            "mirrormaker_variable": "kafka_connect_clusters",
            "mirrormaker_rest_address": "{{ kafka_connect_bind_address }}",
            "mirrormaker_credentials": "{{ __kafka_connect_credentials }}",
        },
    ),
    "report": Rendered(
        ("kafka", "mirror_report"),
        "['mirror-report'] if inventory_hostname in groups['mirror_report'] else []",
        {
            "files": "__mirror_report_files", "directories": "__mirror_report_directories",
            "credentials": "__mirror_report_credentials", "links": "__mirror_report_links",
        },
        {},
    ),
    "brokers": Rendered(
        ("kafka", "kafka_broker"),
        "['kafka-broker'] if inventory_hostname in groups['kafka_brokers'] | default([]) else []",
        {
            "files": "__kafka_broker_contents", "directories": "__kafka_broker_directories",
            "credentials": "__kafka_broker_secrets",
        },
        {},
    ),
    "access": Rendered(
        ("kafka_acls", "kafka_topics", "kafka_as"), "['access']",
        {
            "acls": "__kafka_acls_commands", "topics": "{'placed': __kafka_topics_placed}",
            "kafka-as": "__kafka_as_files",
        },
        {},
    ),
}  # fmt: skip


def roles_of(rendered: Rendered) -> list[Path]:
    """The roles whose variables are read, and those that they need, in that order."""
    paths = [path for role in rendered.roles for path in needed(ROLES / role)]
    return list(dict.fromkeys(paths))


def play(name: str, directory: Path) -> list[dict[str, Any]]:
    """The play that writes what one role renders, as ``trees/<host>/<owner>.json``."""
    rendered = RENDERED[name]
    shown = {part: "{{ " + expression + " }}" for part, expression in rendered.shown.items()}
    files = [file for role in roles_of(rendered) for file in sorted(role.glob("vars/**/*.yml"))]
    path = f"{directory}/trees/{{{{ inventory_hostname }}}}/{{{{ item }}}}.json"
    return [{
        "hosts": "all",
        "gather_facts": False,
        "vars": {"role_path": str(ROLES / rendered.roles[-1])},
        "vars_files": [str(file) for file in files],
        "tasks": [
            {
                "ansible.builtin.set_fact": {
                    "{{ item.key }}": "{{ item.value }}", "cacheable": True,
                },
                "loop": [{"key": key, "value": value} for key, value in FACTS.items()],
            },
            {
                "ansible.builtin.file": {
                    "path": str(Path(path).parent), "state": "directory", "mode": "0700",
                },
            },
            {
                "ansible.builtin.copy": {
                    "content": "{{ shown | to_json }}", "dest": path, "mode": "0600",
                },
                "vars": {"shown": shown, **rendered.given},
                "loop": "{{ " + rendered.names + " }}",
            },
        ],
    }]  # fmt: skip


def render(directory: Path, inventory: Path) -> dict[str, Tree]:
    """What the roles write on the hosts of an inventory.

    :param directory: empty; the playbooks are made there.
    :returns: ``<host>/<owner>`` to tree.
    """
    defaults = directory / "defaults/group_vars/all"
    defaults.mkdir(parents=True)
    (directory / "defaults/hosts.yml").write_text("all: {}\n")
    (defaults / "answers.yml").write_text(yaml.safe_dump(ANSWERS))
    roles = dict.fromkeys(role for each in RENDERED.values() for role in roles_of(each))
    for role in roles:
        if (file := role / "defaults/main.yml").exists():
            (defaults / f"{role.name}.yml").symlink_to(file)
    playbooks = []
    for name, rendered in RENDERED.items():
        playbooks.append(directory / name / "play.yml")
        playbooks[-1].parent.mkdir()
        playbooks[-1].write_text(yaml.safe_dump(play(name, directory)))
        for part in ("templates", "files"):
            if (ROLES / rendered.roles[-1] / part).exists():
                (directory / name / part).symlink_to(ROLES / rendered.roles[-1] / part)
    secrets = lab_secrets(directory / "secrets")
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "--forks", "3", "-i", str(directory / "defaults"), "-i", str(inventory),
            "-e", json.dumps({**GIVEN, "lab_secrets": str(secrets)}), *map(str, playbooks),
        ],
        cwd=directory, capture_output=True, text=True, check=False,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
             "ANSIBLE_FILTER_PLUGINS": os.pathsep.join(
                 str(role / "filter_plugins") for role in roles)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        f"{file.parent.name}/{file.stem}": json.loads(file.read_text())
        for file in sorted((directory / "trees").glob("*/*.json"))
    }


def lab_secrets(directory: Path) -> Path:
    """A lab's directory of passwords and certificates, the same each time."""
    (directory / "tls").mkdir(parents=True)
    (directory / "passwords.json").write_text(json.dumps(PASSWORDS))
    (directory / "connect.deployer").write_text("password of the deployer\n")
    (directory / "tls/lab.ca.pem").write_text(PEM)
    logins = [(alias, who) for alias in PASSWORDS for who in IDENTITIES]
    for alias, who in logins:
        (directory / f"{alias}.{who}").write_text(f"password of {alias} {who}\n")
    for name in (*(f"{alias}-{who}" for alias, who in logins), *LAB_HOSTS):
        (directory / f"tls/{name}.pem").write_text(PEM)
        (directory / f"tls/{name}.key").write_text(KEY)
    return directory


def drawn_inventory(directory: Path) -> Path:
    """All drawn sites as one inventory: each host carries the variables of its site."""
    hosts = {
        host: {key: value for key, value in site.items() if key != "hosts"}
        for site in sites(DRAWN, PEM, KEY)
        for host in site["hosts"]
    }
    inventory = {"all": {"hosts": hosts, "children": {"mirror_report": {
        "hosts": dict.fromkeys(host for host in hosts if host.endswith("a")),
    }}}}  # fmt: skip
    directory.mkdir()
    (directory / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return directory


def all_trees() -> Iterator[tuple[str, dict[str, Tree]]]:
    """Every inventory, and what the roles write on its hosts."""
    found = [*ROOT.glob("inventories/*/hosts.yml"), *ROOT.glob("molecule/*/inventory/hosts.yml")]
    inventories = {str(file.parent.relative_to(ROOT)): file.parent for file in sorted(found)}
    with tempfile.TemporaryDirectory() as scratch:
        inventories["drawn"] = drawn_inventory(Path(scratch) / "drawn")
        for name, inventory in inventories.items():
            yield name, render(Path(scratch) / name.replace("/", "-") / "rendered", inventory)


def write(target: Path) -> None:
    """Write the trees of all inventories: a file per owner, with its lines apart."""
    for name, trees in all_trees():
        for owner, tree in trees.items():
            file = target / name / f"{owner}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(tree, indent=1, sort_keys=True).replace("\\n", "\n"))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
