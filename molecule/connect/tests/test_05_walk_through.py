"""What docs/connect.md lets a reader type works, and prints what it says."""

from __future__ import annotations

import re

import pytest
from labkit.controller import ROOT, wait

PAGE = (ROOT / "docs/connect.md").read_text(encoding="utf-8")
_, _, WALK = PAGE.partition("\n## A walk-through\n")


def steps():
    """Commands, and the lines that each prints."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", WALK, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def shape(text):
    """Lines without what differs from run to run: numbers, and how wide columns are."""
    return [
        re.sub(r"[ ─]+", " ", re.sub(r"\d+", "0", line)).strip()
        for line in text.splitlines()
        if line.strip()
    ]


@pytest.fixture(scope="module", autouse=True)
def login(lab):
    """The files of a caller of REST."""
    secret = lab.passwords["west"]["report"].replace("\\", "\\\\").replace('"', '\\"')
    names = "\n".join(
        f'machine {host.name} login deployer password "{secret}"' for host in lab.mirrors
    )
    lab.desk.shell("umask 077; touch /root/connect.netrc")
    lab.desk.write("/root/connect.netrc", names + "\n")
    lab.desk.write("/root/connect.ca.pem", lab.authority())


def test_there_is_something_to_type():
    assert len(steps()) > 8


@pytest.mark.parametrize(("command", "printed"), steps(), ids=lambda value: str(value)[:40])
def test_a_command_prints_what_the_page_says(lab, measured, command, printed):
    said = []

    def as_told():
        said.append(lab.desk.run("bash", "-c", command, check=False).stdout)
        return shape(said[-1]) == shape("\n".join(printed))

    try:
        if "-console-" in command or "POST" in command:
            assert as_told()  # of an effect: once
        else:
            wait("what the page says", as_told)
    finally:
        measured(printed=said[-1])
