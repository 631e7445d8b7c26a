"""What the check says of clusters of Kafka 2.4, and of their permissions."""

from __future__ import annotations

import pytest
from labkit.permissions import Checks, named

# What a cluster does not tell its release for, so the model cannot list it.
IDEMPOTENT = {
    "cluster": "west", "principal": "User:west-mirror", "operation": "IDEMPOTENT_WRITE",
    "resource": "cluster", "name": "kafka-cluster", "pattern": "literal",
}  # fmt: skip


@pytest.fixture(scope="module")
def checks(lab):
    """The checks of all identities."""
    checks = Checks(lab)
    yield checks
    checks.end()


def test_the_release_is_named_with_what_its_brokers_do_not_tell(lab):
    _, document = lab.report("check")
    told = [each for each in document["findings"] if each["kind"] == "broker_too_old"]
    assert [each["severity"] for each in told] == ["warning", "warning"]
    for alias, finding in zip(("east", "west"), told, strict=True):
        assert alias in finding["message"]
        assert "answers as Kafka 2.4 does" in finding["message"]
        assert "a topic's id" in finding["message"]


def test_an_idempotent_producer_without_its_permission_is_named(checks):
    asked = [name for name in checks.settings if name != "report"]
    assert len(asked) == 2
    for name in asked:
        found = checks.without(name, IDEMPOTENT)
        missing = [each for each in found if each["kind"] == "missing_permission"]
        assert [named(each, IDEMPOTENT) for each in missing] == [True], found
