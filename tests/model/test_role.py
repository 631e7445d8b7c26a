"""The role in a playbook: it validates before anything changes and prints no secret."""

from __future__ import annotations

import copy
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.model.conftest import ROOT, SITE

PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  roles: [mirror_model]
  tasks:
    - name: Show what is rendered
      ansible.builtin.debug:
        msg:
          - "{{ placed.files['/etc/mirrormaker/consumer.properties'] }}"
          - "{{ placed.files['/etc/mirrormaker/producer.properties'] }}"
          - "{{ placed.environment | to_environment_file }}"
          - "{{ mirror_site | mirror_report_model('report') | to_json }}"
      vars:
        placed: >-
          {{ mirror_site | mirror_process('mirrormaker')
             | mirror_on_host({'kafka': '/kafka', 'java': '/java'}) }}
    - name: The secret is really there, and well
      ansible.builtin.assert:
        that: (mirror_site | kafka_credentials('east', 'mirror'))['east.mirror.password']
          | hash('sha256') == expected
        quiet: true
      vars:
        expected: "{{ lookup('ansible.builtin.env', 'CANARY_HASH') }}"
"""


class Controller:
    """A directory with an inventory, from which the role is run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.site = copy.deepcopy(SITE)
        (directory / "play.yml").write_text(PLAY)
        (directory / "hosts").write_text(
            "[all]\nmirror1\nmirror2\nreport1\n[mirror_report]\nreport1\n"
            "[mirrormaker]\nmirror1\nmirror2\n"
        )

    def run(self, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run the play with the most verbose output."""
        variables = {
            "kafka_clusters": self.site["clusters"],
            "mirror_flows": self.site["flows"],
            "mirrormaker_instances": self.site["instances"],
            "mirror_accept": self.site["accept"],
        }
        group = self.directory / "group_vars"
        group.mkdir(exist_ok=True)
        (group / "all.yml").write_text(yaml.safe_dump(variables, allow_unicode=True))
        return subprocess.run(
            [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts", "play.yml",
             "-vvv", "--diff"],
            cwd=self.directory, capture_output=True, text=True, check=False,
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), **(environment or {})},
        )  # fmt: skip


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_sound_site_is_rendered_without_a_secret(controller: Controller) -> None:
    password = 'CANARY"\\$ é'
    identities = controller.site["clusters"]["east"]["identities"]
    identities["mirror"]["password"] = "{{ secret_of_east }}"
    (controller.directory / "host_vars").mkdir()
    for host in ("mirror1", "mirror2", "report1"):
        (controller.directory / "host_vars" / f"{host}.yml").write_text(
            yaml.safe_dump({"secret_of_east": password}, allow_unicode=True)
        )
    done = controller.run({"CANARY_HASH": hash_of(password)})
    assert done.returncode == 0, done.stdout + done.stderr
    for rendered in (
        "group.id=mirrormaker-orders",
        "client.id=",
        "MM_INCLUDE=",
        '"commit_interval',
    ):
        assert rendered in done.stdout.replace('\\"', '"')
    assert "CANARY" not in done.stdout + done.stderr


def test_a_vaulted_password_is_read(controller: Controller) -> None:
    vault = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-vault"), "encrypt_string", "--stdin-name",
         "secret_of_east"],
        cwd=controller.directory, capture_output=True, text=True, check=True, input="CANARY",
        env={**os.environ, **write_key(controller.directory)},
    )  # fmt: skip
    (controller.directory / "group_vars").mkdir()
    (controller.directory / "group_vars/mirror_report.yml").write_text(vault.stdout)
    (controller.directory / "hosts").write_text("[mirror_report]\nreport1\nmirror1\nmirror2\n")
    identities = controller.site["clusters"]["east"]["identities"]
    identities["mirror"]["password"] = "{{ secret_of_east }}"
    done = controller.run({"CANARY_HASH": hash_of("CANARY"), **write_key(controller.directory)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CANARY" not in done.stdout + done.stderr


def write_key(directory: Path) -> dict[str, str]:
    (directory / "key").write_text("key of the vault")
    return {"ANSIBLE_VAULT_PASSWORD_FILE": str(directory / "key")}


def test_every_problem_is_printed_before_anything_else_runs(controller: Controller) -> None:
    east: dict[str, Any] = controller.site["clusters"]["east"]
    east["identities"]["mirror"] |= {"password": "CANARY\n", "sasl_mechanism": "CANARI"}
    east["identities"]["report"]["pasword"] = "CANARY"
    controller.site["flows"][0]["topics"] = ["a,b"]
    controller.site["instances"]["mirrormaker"]["hosts"] = ["mirrror1"]
    done = controller.run()
    assert done.returncode != 0
    output = done.stdout + done.stderr
    for words in (
        "kafka_clusters.east.identities.mirror.password",
        "kafka_clusters.east.identities.mirror.sasl_mechanism",
        "unknown key 'pasword'",
        "mirror_flows[orders].topics",
        "did you mean 'mirror1'",
    ):
        assert words in output
    assert "CANARY" not in output
    assert "Show what is rendered" not in output


def test_warnings_are_printed(controller: Controller) -> None:
    controller.site["flows"][0]["start"] = "latest"
    done = controller.run({"CANARY_HASH": hash_of("CANARY-east")})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mirror_flows[orders].start" in done.stdout


def test_a_site_without_report_host_is_refused(controller: Controller) -> None:
    (controller.directory / "hosts").write_text("[all]\nmirror1\nmirror2\nreport1\n")
    done = controller.run()
    assert done.returncode != 0
    assert "group mirror_report" in done.stdout + done.stderr
