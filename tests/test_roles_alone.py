"""Each role works alone from a playbook outside this repository, with what it names itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.computing import needed
from tests.loading import ROOT, load

ROLES = sorted(path.parents[1] for path in (ROOT / "roles").glob("*/meta/main.yml"))
role = pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)


def owners(pattern: str) -> dict[str, Path]:
    """Name of a plug-in's file to the role that brings it."""
    return {path.stem: path.parents[1] for path in (ROOT / "roles").glob(pattern)}


MODULES = owners("*/library/*.py")
SHARED = {
    path.stem: path.parents[1]
    for path in (ROOT / "roles").glob("*/module_utils/*")
    if path.name != "__pycache__"
}
FILTERS = {
    name: path.parents[1]
    for path in (ROOT / "roles").glob("*/filter_plugins/*.py")
    for name in load(str(path), f"{path.stem}_filters").FilterModule().filters()
}


def tasks_of(content: Any) -> Iterator[dict[str, Any]]:
    """Every task of a file, those in blocks too."""
    for task in content or []:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks_of(task.get(part))


def tasks(role: Path) -> list[dict[str, Any]]:
    files = sorted((role / "tasks").glob("*.yml"))
    return [task for file in files for task in tasks_of(yaml.safe_load(file.read_text()))]


def available(role: Path) -> set[Path]:
    """Roles whose plug-ins a role has: those it names in meta/main.yml, and those it imports."""
    imports = [task["ansible.builtin.import_role"]["name"] for task in tasks(role)
               if "ansible.builtin.import_role" in task]  # fmt: skip
    return {path for name in (role.name, *imports) for path in needed(role.parent / name)}


@role
def test_a_role_names_the_roles_whose_modules_it_uses(role: Path) -> None:
    used = {name: MODULES[name] for task in tasks(role) for name in MODULES.keys() & task.keys()}
    assert {name for name, owner in used.items() if owner not in available(role)} == set()


def documented(module: str) -> set[str]:
    """Options of a module, by its documentation and the fragments that this names."""
    path = MODULES[module] / f"library/{module}.py"
    document = yaml.safe_load(load(str(path.relative_to(ROOT)), module).DOCUMENTATION)
    named = document.get("extends_documentation_fragment", [])
    parts = [document]
    for name in [named] if isinstance(named, str) else named:
        file, _, attribute = name.partition(".")
        fragment = load(f"roles/{file}/doc_fragments/{file}.py", f"{file}_fragment")
        text = getattr(fragment.ModuleDocFragment, attribute.upper() or "DOCUMENTATION")
        parts.append(yaml.safe_load(text))
    return {option for part in parts for option in part["options"]}


# ansible-lint cannot import what modules of roles share, and leaves their arguments unchecked.
@role
def test_a_task_gives_a_module_of_a_role_options_that_are_documented(role: Path) -> None:
    for task in tasks(role):
        for name in MODULES.keys() & task.keys():
            assert set(task[name]) - {"<<"} <= documented(name), task["name"]


@role
def test_a_role_names_the_roles_whose_python_its_modules_import(role: Path) -> None:
    used = {
        name
        for path in role.glob("**/*.py")
        for name in re.findall(r"ansible\.module_utils\.(\w+)", path.read_text())
    } - {"basic"}
    assert {name for name in used if SHARED[name] not in needed(role)} == set()


@role
def test_a_role_names_the_roles_whose_filters_it_uses(role: Path) -> None:
    texts = [
        path.read_text()
        for part in ("defaults", "tasks", "templates", "vars")
        for path in (role / part).rglob("*.*")
    ]
    used = {name for text in texts for name in re.findall(r"\|\s*(\w+)", text)} & set(FILTERS)
    assert {name for name in used if FILTERS[name] not in available(role)} == set()


def test_filters_are_found_in_each_role_that_brings_some() -> None:
    brought = {path.name for path in FILTERS.values()}
    assert brought == {path.parents[1].name for path in ROOT.glob("roles/*/filter_plugins/*.py")}
    assert FILTERS["to_java_properties"].name == "mirror_model"


@role
def test_a_role_knows_no_private_variable_of_another(role: Path) -> None:
    texts = [
        path.read_text()
        for part in ("defaults", "tasks", "templates", "vars")
        for path in (role / part).rglob("*.*")
    ]
    names = sorted((path.name for path in ROLES), key=len, reverse=True)
    pattern = rf"\b__({'|'.join(names)})_"
    assert {name for text in texts for name in re.findall(pattern, text)} <= {role.name}


@pytest.fixture
def controller(tmp_path: Path) -> dict[str, str]:
    """The environment of a controller that knows the roles and has no other configuration."""
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    own = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    return {**own, "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
            "ANSIBLE_ROLES_PATH": str(ROOT / "roles")}  # fmt: skip


def play(
    directory: Path, environment: dict[str, str], content: dict[str, Any], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a play of one's own on this host."""
    local = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    (directory / "play.yml").write_text(yaml.safe_dump([local | content]))
    return subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), *arguments, "play.yml"],
        cwd=directory, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@role
def test_every_task_of_a_role_is_understood_elsewhere(
    role: Path, tmp_path: Path, controller: dict[str, str]
) -> None:
    files = sorted(path.stem for path in (role / "tasks").glob("*.yml"))
    imported = [
        {"ansible.builtin.import_role": {"name": role.name, "tasks_from": name}} for name in files
    ]
    content = {"tasks": imported} if imported else {"roles": [role.name]}
    done = play(tmp_path, controller, content, "--syntax-check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_modules_that_write_on_hosts_run_elsewhere(
    tmp_path: Path, controller: dict[str, str]
) -> None:
    tasks = [
        {"deployed_files": {"files": {f"{tmp_path}/a": {"content": "x"}}}},
        {"service_credentials": {"directory": f"{tmp_path}/c", "credentials": {"a": "one"}}},
    ]
    done = play(tmp_path, controller, {"roles": ["host_files"], "tasks": tasks})
    assert done.returncode == 0, done.stdout + done.stderr
    assert ((tmp_path / "a").read_text(), (tmp_path / "c/a").read_text()) == ("x", "one")


def test_the_model_validates_elsewhere(tmp_path: Path, controller: dict[str, str]) -> None:
    flows = {"mirror_flows": [{"name": "orders"}]}
    done = play(tmp_path, controller, {"roles": ["mirror_model"], "vars": flows})
    assert done.returncode != 0
    assert "mirror_flows[orders].engine" in done.stdout + done.stderr


def test_permissions_are_printed_elsewhere(tmp_path: Path, controller: dict[str, str]) -> None:
    done = play(tmp_path, controller, {"roles": ["kafka_acls"]})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Print the commands" in done.stdout
