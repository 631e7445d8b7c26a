"""How large the kernel lets sockets' buffers grow, in a network namespace of the test's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loading import ROOT

PLAY = """
- hosts: localhost
  gather_facts: false
  vars:
    kafka_clusters: {east: {bootstrap_servers: ["e:1"]}, west: {bootstrap_servers: ["w:1"]}}
    mirror_flows: [{name: orders, engine: mm1, source: east, target: west, topics: [orders]}]
    mirrormaker_instances:
      mirrormaker: {hosts: [localhost], flows: [orders], distance: %s}
    mirror_model_hosts: [localhost]
    mirror_model_groups: {mirrormaker: [localhost], mirror_report: [localhost]}
    socket_buffers_file: %s
    socket_buffers_state: %s
  roles: [socket_buffers]
"""
FAR = {"east": {"round_trip_ms": 100, "bandwidth_mbit": 5000}}
NEEDED = 2 * 100 * 5000 * 125
KEYS = ("tcp_rmem", "tcp_wmem")


class Namespace:
    """A network namespace with limits of its own, kept by a process that sleeps."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "60-mirrormaker.conf"
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo made; exec sleep 600"], stdout=subprocess.PIPE
        )
        assert self.keeper.stdout
        self.keeper.stdout.readline()

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it."""
        entered = ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net", *command]
        return subprocess.run(entered, capture_output=True, text=True, check=False)

    def limits(self) -> dict[str, list[int]]:
        """Key to its three numbers."""
        return {
            key: list(map(int, self.run("cat", f"/proc/sys/net/ipv4/{key}").stdout.split()))
            for key in KEYS
        }

    def play(self, distance: dict[str, Any], *options: str, state: str = "present") -> str:
        """Run the role; returns what Ansible printed."""
        (self.directory / "play.yml").write_text(
            PLAY % (json.dumps(distance), self.file, state), encoding="utf-8"
        )
        done = self.run(
            "env", f"ANSIBLE_CONFIG={ROOT / 'ansible.cfg'}",
            f"{Path(sys.executable).parent / 'ansible-playbook'}", "-i", "localhost,", "-c",
            "local", "-e", f"ansible_python_interpreter={sys.executable}", *options,
            str(self.directory / "play.yml"),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def namespace(tmp_path: Path) -> Any:
    made = Namespace(tmp_path)
    try:
        yield made
    finally:
        made.keeper.kill()
        made.keeper.wait()


@pytest.mark.long
def test_limits_are_raised_once_and_go_back(namespace: Namespace) -> None:
    before = namespace.limits()
    assert "changed=1" in namespace.play(FAR, "--check")
    assert (namespace.limits(), namespace.file.exists()) == (before, False)
    assert "changed=1" in namespace.play(FAR)
    raised = before | {"tcp_rmem": [*before["tcp_rmem"][:2], NEEDED]}
    assert namespace.limits() == raised
    assert "changed=0" in namespace.play(FAR)
    old, new = (" ".join(map(str, some["tcp_rmem"])) for some in (before, raised))
    assert namespace.file.read_text().splitlines()[1:] == [
        f"# before net.ipv4.tcp_rmem = {old}", f"net.ipv4.tcp_rmem = {new}",
    ]  # fmt: skip
    # What systemd does at the next start of the host.
    namespace.run("sh", "-c", f"echo {old} > /proc/sys/net/ipv4/tcp_rmem")
    assert namespace.run("/usr/lib/systemd/systemd-sysctl", str(namespace.file)).returncode == 0
    assert namespace.limits() == raised
    assert "changed=1" in namespace.play({**FAR, "west": FAR["east"]})
    assert [numbers[2] for numbers in namespace.limits().values()] == [NEEDED, NEEDED]
    assert "changed=1" in namespace.play(FAR, state="absent")
    assert (namespace.limits(), namespace.file.exists()) == (before, False)
    assert "changed=0" in namespace.play({})
