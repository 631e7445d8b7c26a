"""Topics on a real broker: each is changed on its own, even if another is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka.admin import KafkaAdminClient, NewTopic

from spark.tests.conftest import (  # noqa: F401 (fixtures of real brokers)
    Broker,
    broker_processes,
    certificates,
    kafka_home,
    start_broker,
)
from tests.playing import KEEP_ANSWER, ansible_playbook, answer

BEGIN = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ python }}"
  roles: [kafka_topics]
  tasks:
"""
PLAY = (
    BEGIN
    + """
    - kafka_topics:
        connection: {bootstrap_servers: "{{ kafka_clusters.east.bootstrap_servers }}"}
        topics: "{{ wanted }}"
      register: done
      ignore_errors: true
"""
    + KEEP_ANSWER
)
MIRRORED = (
    BEGIN
    + """
    - kafka_mirrored_topics:
        source: {bootstrap_servers: ["{{ source }}"]}
        target: {bootstrap_servers: ["{{ target }}"]}
        include: .*
      register: done
      ignore_errors: true
"""
    + KEEP_ANSWER
)
ORDERS = {"name": "orders", "partitions": 2, "configs": {"retention.ms": 60000}}
PAYMENTS = {"name": "payments", "partitions": 1}


@pytest.fixture(scope="module")
def broker(start_broker: Callable[..., Broker]) -> Broker:  # noqa: F811 (a fixture)
    return start_broker()


@pytest.fixture
def module(broker: Broker, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Call the module with some topics.

    :returns: what it answers, and ``stdout`` of Ansible.
    """

    def call(*wanted: dict[str, Any], options: tuple[str, ...] = ()) -> dict[str, Any]:
        (tmp_path / "play.yml").write_text(PLAY)
        variables = {
            "kafka_clusters": {"east": {"bootstrap_servers": [broker.bootstrap]}},
            "kafka_topics_cluster": "east", "python": sys.executable, "wanted": list(wanted),
        }  # fmt: skip
        (tmp_path / "variables.yml").write_text(yaml.safe_dump(variables))
        arguments = ("-i", "localhost,", "-e", "@variables.yml", "play.yml", *options)
        return answer(ansible_playbook(tmp_path, *arguments), tmp_path)

    return call


def sizes(broker: Broker) -> dict[str, int]:
    """Partitions of each topic."""
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        return {topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics()}


def test_topics_are_made_grown_and_left_and_a_refused_one_keeps_none_from_it(
    broker: Broker, module: Callable[..., dict[str, Any]]
) -> None:
    planned = module(ORDERS, PAYMENTS, options=("--check", "--diff"))
    assert (planned["changed"], planned["created"]) == (True, ["orders", "payments"])
    assert "+++ after: topic orders" in planned["stdout"]
    assert sizes(broker) == {}
    done = module(ORDERS, PAYMENTS)
    assert (done["changed"], done["created"]) == (True, ["orders", "payments"])
    assert sizes(broker) == {"orders": 2, "payments": 1}
    again = module(ORDERS, PAYMENTS)
    assert (again["changed"], again["created"], again["diff"]) == (False, [], [])
    wrong = {"name": "audit", "partitions": 1, "configs": {"retention.mss": 1}}
    too_many = {"name": "copies", "partitions": 1, "replication_factor": 3}
    refused = module(wrong, too_many, {**ORDERS, "partitions": 1}, {**PAYMENTS, "partitions": 3})
    assert (refused["failed"], refused["changed"]) == (True, True)
    assert len(refused["msg"].splitlines()) == 2
    assert "retention.mss" in refused["msg"]
    assert "copies" in refused["msg"]
    assert "never removed" in refused["warnings"][0]
    assert sizes(broker) == {"orders": 2, "payments": 3}


def test_a_name_that_the_target_refuses_keeps_no_other_from_being_mirrored(
    broker: Broker,
    start_broker: Callable[..., Broker],  # noqa: F811 (a fixture)
    tmp_path: Path,
) -> None:
    """Whoever makes topics on the source would stop every run of the playbook by one."""
    source = start_broker()
    for bootstrap, names in ((source.bootstrap, ["a.b", "c-d", "z"]), (broker.bootstrap, ["a_b"])):
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic(name, 1, 1) for name in names])
    variables = {
        "kafka_clusters": {"east": {"bootstrap_servers": [broker.bootstrap]}},
        "kafka_topics_cluster": "east", "python": sys.executable, "source": source.bootstrap,
        "target": broker.bootstrap,
    }  # fmt: skip
    (tmp_path / "play.yml").write_text(MIRRORED)
    (tmp_path / "variables.yml").write_text(yaml.safe_dump(variables))

    def run(*options: str) -> dict[str, Any]:
        arguments = ("-i", "localhost,", "-e", "@variables.yml", "play.yml", *options)
        return answer(ansible_playbook(tmp_path, *arguments), tmp_path)

    for options, created in ((("--check",), ["c-d", "z"]), ((), ["c-d", "z"]), ((), [])):
        done = run(*options)
        assert (done["created"], done["refused"]) == (created, ["a.b"]), done
        assert not done.get("failed")
        assert "a.b" in done["warnings"][0]
        assert "a_b" in done["warnings"][0]
        assert "topics_exclude" in done["warnings"][0]
    assert {"a_b", "c-d", "z"} <= set(sizes(broker))
    assert "a.b" not in sizes(broker)
