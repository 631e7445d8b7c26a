"""Roles and playbooks agree with their documentation and work from any directory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from mirror_model import schema

from tests.loading import load

ROOT = Path(__file__).parents[1]
ROLES = sorted(path.parent for path in (ROOT / "roles").glob("*/tasks"))
PLAYBOOKS = sorted([ROOT / "site.yml", *(ROOT / "playbooks").glob("*.yml")])
INVENTORIES = sorted(path for path in (ROOT / "inventories").iterdir() if path.is_dir())

role = pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)


def entry_points(role: Path) -> dict[str, Any]:
    text = (role / "meta/argument_specs.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)["argument_specs"]
    return found


def options(role: Path) -> dict[str, dict[str, Any]]:
    """Every option of every entry point; later entry points repeat what main says."""
    found: dict[str, dict[str, Any]] = {}
    for spec in entry_points(role).values():
        for name, option in (spec.get("options") or {}).items():
            assert found.setdefault(name, option) == option, f"{name} is described in two ways"
    return found


def defaults(role: Path) -> dict[str, Any]:
    found = yaml.safe_load((role / "defaults/main.yml").read_text(encoding="utf-8"))
    return found or {}


@role
def test_defaults_and_specification_have_the_same_keys(role: Path) -> None:
    specified = options(role)
    required = {name for name, option in specified.items() if option.get("required")}
    text = (role / "defaults/main.yml").read_text(encoding="utf-8")
    mentioned = set(re.findall(r"^# ?([a-z0-9_]+):\s*$", text, flags=re.MULTILINE))
    assert set(defaults(role)) == set(specified) - required
    assert required <= mentioned


@role
def test_defaults_and_specification_have_the_same_values(role: Path) -> None:
    specified = {
        name: option["default"] for name, option in options(role).items() if "default" in option
    }
    written = defaults(role)
    assert specified == {name: written[name] for name in specified}


@role
def test_no_variable_of_a_role_hides_what_can_be_set(role: Path) -> None:
    files = [yaml.safe_load(file.read_text("utf-8")) for file in role.glob("vars/**/*.yml")]
    assert not {name for variables in files for name in variables} & set(defaults(role))


@role
def test_every_option_is_described(role: Path) -> None:
    for spec in entry_points(role).values():
        assert spec["short_description"]
    for name, option in options(role).items():
        assert option.get("description"), name
        assert option.get("type"), name


@role
def test_variables_carry_the_name_of_their_role(role: Path) -> None:
    site = {"kafka_clusters", "mirror_flows", "mirrormaker_instances", "kafka_connect_clusters",
            "mirror_accept"}  # fmt: skip
    foreign = {name for name in defaults(role) if not name.startswith(f"{role.name}_")}
    assert foreign == (site if role.name == "mirror_model" else set())


@role
def test_templates_say_who_manages_them(role: Path) -> None:
    for template in (role / "templates").rglob("*.j2") if (role / "templates").exists() else []:
        lines = template.read_text(encoding="utf-8").splitlines()
        first = lines[1] if lines[0].startswith("#!") else lines[0]
        assert first == "{{ ansible_managed | comment }}", template


generate = load("docs/generate.py", "generate")


def test_the_page_of_variables_is_up_to_date() -> None:
    written = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    assert written == generate.page(), "run 'make docs' and commit docs/variables.md"


@pytest.mark.parametrize("role", generate.ROLES, ids=lambda path: path.name)
def test_the_readme_of_a_role_is_up_to_date(role: Path) -> None:
    written = (role / "README.md").read_text(encoding="utf-8")
    assert written == generate.readme(role), "run 'make docs' and commit the README"


@role
def test_the_example_of_a_role_sets_what_roles_know(role: Path) -> None:
    [play] = yaml.safe_load((role / "meta/example.yml").read_text(encoding="utf-8"))
    known = {name for path in ROLES for name in options(path)}
    if "roles" in play:
        [used] = play["roles"]
    else:  # a role without tasks of its own
        [task] = play["tasks"]
        assert task["ansible.builtin.include_role"]["name"] == role.name
        used = task["vars"]
    assert {*used} - {"role"} <= known


def test_examples_are_playbooks() -> None:
    files = [str(role / "meta/example.yml") for role in ROLES]
    done = ansible("ansible-playbook", "--syntax-check", *files, directory=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_variables_knows_every_key() -> None:
    page = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    for keys in (schema.CLUSTER, schema.IDENTITY, schema.FLOW, schema.INSTANCE):
        for key in keys:
            assert f"`{key.name}`" in page
    for path in ROLES:
        for name in options(path):
            assert f"`{name}`" in page


def ansible(program: str, *arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "ANSIBLE_CONFIG"}
    return subprocess.run(
        [str(Path(sys.executable).parent / program), *arguments],
        cwd=directory, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.name)
def test_playbooks_work_from_any_directory(playbook: Path, tmp_path: Path) -> None:
    inventory = str(ROOT / "inventories/demo")
    done = ansible(
        "ansible-playbook", "--syntax-check", "-i", inventory, str(playbook), directory=tmp_path
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_inventories_can_be_read(inventory: Path, tmp_path: Path) -> None:
    done = ansible("ansible-inventory", "-i", str(inventory), "--list", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    hosts = json.loads(done.stdout)
    assert hosts.get("mirrormaker", hosts.get("kafka_connect"))["hosts"]
    assert hosts["mirror_report"]["hosts"]
