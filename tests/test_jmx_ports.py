"""A JMX port at which nobody has to log in is refused before a host changes, unless accepted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.playing import ansible_playbook

OPEN = "-Dcom.sun.management.jmxremote.port=9010"
CLUSTERS = {alias: {"bootstrap_servers": [f"{alias}:9092"]} for alias in ("east", "west")}
MIRROR: dict[str, Any] = {
    "role": "mirrormaker",
    "tasks": "validate",
    "variables": {
        "mirrormaker_name": "mirrormaker",
        "mirror_flows": [
            {"name": "f", "engine": "mm1", "source": "east", "target": "west", "topics": ["t"]}
        ],
        "mirrormaker_instances": {"mirrormaker": {"hosts": ["localhost"], "flows": ["f"]}},
    },
}
BROKER: dict[str, Any] = {
    "role": "kafka_broker",
    "tasks": "inputs",
    "variables": {"kafka_broker_cluster": "east"},
}


def play(directory: Path, case: dict[str, Any], **more: Any) -> str:
    """Run the tasks of a role that validate; what Ansible said."""
    python = {"ansible_python_interpreter": sys.executable}
    variables = {
        **python,
        "kafka_clusters": CLUSTERS,
        "mirror_accept": [],
        **case["variables"],
        **more,
    }
    include = {"name": case["role"], "tasks_from": case["tasks"]}
    tasks = [{"ansible.builtin.include_role": include}]
    plays = [{"hosts": "all", "vars": variables, "tasks": tasks}]
    (directory / "play.yml").write_text(yaml.safe_dump(plays))
    inventory = "[mirrormaker]\nlocalhost ansible_connection=local\n[mirror_report]\nlocalhost\n"
    (directory / "hosts").write_text(inventory)
    return ansible_playbook(directory, "-i", "hosts", "play.yml").stdout


@pytest.mark.parametrize(
    ("case", "given", "acceptance"),
    [
        pytest.param(MIRROR, {"mirrormaker_environment": {"JMX_PORT": "9010"}},
                     "jmx-without-authentication:mirrormaker", marks=pytest.mark.long),
        pytest.param(MIRROR, {"mirrormaker_jvm_performance_options": [OPEN]},
                     "jmx-without-authentication:mirrormaker", marks=pytest.mark.long),
        (MIRROR, {"mirrormaker_jvm_options": [OPEN]}, "jmx-without-authentication:mirrormaker"),
        pytest.param(BROKER, {"kafka_broker_jvm_options": [OPEN]},
                     "jmx-without-authentication-of-broker:east", marks=pytest.mark.long),
    ],
    ids=["environment", "performance", "mirror", "broker"],
)  # fmt: skip
def test_an_open_port_is_refused_with_variable_and_cure_unless_accepted(
    tmp_path: Path, case: dict[str, Any], given: dict[str, Any], acceptance: str
) -> None:
    said = " ".join(play(tmp_path, case, **given).split())
    assert "at which nobody has to log in" in said
    assert next(iter(given)) in said
    assert f"list '{acceptance}' in mirror_accept" in said
    accepted = play(tmp_path, case, **given, mirror_accept=[acceptance])
    assert "jmxremote" not in accepted
    assert "Refuse a JMX port" in accepted
    assert "jmxremote" not in play(tmp_path, case)
