"""Kafka's scripts run as a chosen identity, with every kind of authentication."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("alias", "topic"), [("east", "orders"), ("north", "orders"), ("west", "north.orders")]
)
def test_a_script_of_kafka_logs_in(lab, alias, topic):
    said = lab.mirror.run("kafka-as", alias, "kafka-topics.sh", "--list").stdout
    assert topic in said.splitlines()


def test_another_identity_has_other_permissions(lab):
    argv = ["kafka-as", "north", "report", "kafka-topics.sh", "--create", "--topic", "mine"]
    done = lab.mirror.run(*argv, check=False)
    assert done.status not in {0, 125}
    assert "Authorization failed" in done.text


def test_other_users_may_not(lab):
    argv = ["runuser", "-u", "nobody", "--", "kafka-as", "east", "kafka-topics.sh", "--list"]
    done = lab.mirror.run(*argv, check=False)
    assert done.status == 125
    assert "kafka-as" in done.text
