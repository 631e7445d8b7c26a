"""mirror-report by sudo: its caller chooses no file and no variable, and the examples say so."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mirror_report import cli

from tests.computing import compute
from tests.loading import ROOT

SECURITY = ROOT / "docs/security.md"
# What is typed after these is a number, a name that the configuration has to know, or one of
# several words.
NO_PATHS = {
    "command", "deadline", "ended", "ended_before", "flow", "format", "max_bytes", "max_lag",
    "max_records", "member_host", "side", "timeout", "topic", "unit",
}  # fmt: skip
WITHOUT_RIGHTS = {"show", "compare"}


def taking_values(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Options and arguments that take a value, of every command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from taking_values(inner)
        elif action.nargs != 0:
            yield action


@pytest.fixture(scope="module")
def wrapper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command as the role installs it; its program is the real one."""
    directory = tmp_path_factory.mktemp("wrapper")
    model = ROOT / "roles/mirror_model"
    shown = {"files": "__mirror_report_files"}
    computed = compute(directory, [model, ROOT / "roles/mirror_report"], shown, {"host": {}})
    text = computed["host"]["files"]["/usr/local/bin/mirror-report"]["content"]
    program = directory / "program"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, '{ROOT}/spark/src')\n"
        "from mirror_report.cli import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    here = {"self": directory / "mirror-report", "program": program}
    for name, path in here.items():
        text, replaced = re.subn(rf"^{name}=.*$", f"{name}={path}", text, flags=re.MULTILINE)
        assert replaced == 1
    path = directory / "mirror-report"
    path.write_text(text)
    path.chmod(0o755)
    return path


def run(wrapper: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(wrapper), *words], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_every_option_that_names_a_file_is_known() -> None:
    found = {action.dest for action in taking_values(cli.parser())}
    assert found - NO_PATHS == {"config", "output", "bundles"}


@pytest.mark.parametrize(
    "words",
    ["--config /tmp/mine run", "--config=/tmp/mine show", "--conf - archive", "--c=- show",
     "digest --side source --output /tmp/x", "digest --side source --out=x",
     "compare /tmp/a /tmp/b"],
)  # fmt: skip
def test_a_file_of_the_callers_is_refused_by_sudo(wrapper: Path, words: str) -> None:
    done = run(wrapper, *words.split(), SUDO_UID="1000")
    assert (done.returncode, done.stdout) == (3, "")
    assert "names a file, which sudo would open for its caller" in done.stderr


def test_root_itself_may_name_a_file_by_sudo_or_without(wrapper: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("version: 9\n")
    for environment in ({}, {"SUDO_UID": "0"}):
        done = run(wrapper, f"--config={tmp_path}/mine.yaml", "show", **environment)
        assert "version: 9 is not understood" in done.stderr


def test_variables_of_the_caller_reach_nothing_by_sudo(wrapper: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('taken over')\n")
    given = {"PYTHONPATH": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert "taken over" in run(wrapper, "--version", **given).stdout
    done = run(wrapper, "--version", SUDO_UID="1000", **given)
    assert done.returncode == 0
    assert done.stdout.startswith("mirror-report ")


def test_the_example_has_a_rule_for_every_command_that_needs_rights() -> None:
    block = re.search(r"```sudoers\n(.*?)```", SECURITY.read_text(encoding="utf-8"), re.DOTALL)
    assert block
    rules = re.findall(r"/usr/local/bin/mirror-report ([a-z]+)", block.group(1))
    assert set(rules) == cli.COMMANDS.keys() - WITHOUT_RIGHTS
    assert "*" not in block.group(1)
    assert "/usr/local/bin/kafka-as " in block.group(1)
