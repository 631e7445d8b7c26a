"""What a failure of a cluster says: what happened, what to do, and which finding it is."""

from pathlib import Path

import pytest
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
)

from mirror_report.config import Cluster, ConfigError, Credentials
from mirror_report.kafka.connection import ClusterError, explained

EAST = Cluster("east", ("east1:9092",), username="report")


@pytest.mark.parametrize(
    ("error", "kind", "message", "action"),
    [
        (
            TopicAuthorizationFailedError(), "permission",
            "cluster east: identity report (report) may not read records", "Grant it READ on t",
        ),
        (KafkaTimeoutError(), "unreachable", "stopped answering while we wanted to read", ""),
        (KafkaConnectionError(), "unreachable", "stopped answering while we wanted to read", ""),
        (KafkaError("no. Not so"), "unreachable", "could not read records: KafkaError: no. N", ""),
    ],
)  # fmt: skip
def test_error_of_kafka_has_its_cure_apart(
    error: KafkaError, kind: str, message: str, action: str
) -> None:
    with pytest.raises(ClusterError) as raised, explained(EAST, "read records", "READ on t"):
        raise error
    assert (raised.value.kind, raised.value.action) == (kind, action)
    assert message in raised.value.message
    assert str(raised.value) == raised.value.message + (f". {action}" if action else "")


def test_configuration_errors_are_the_reports_own(tmp_path: Path) -> None:
    for credentials in (Credentials(), Credentials(directory=tmp_path)):
        with pytest.raises(ConfigError) as raised:
            credentials.read("east.report.password")
        assert raised.value.kind == "internal"
        assert raised.value.action.startswith(("Run `mirror-report`", "Deploy the report"))
        assert "Deploy" not in raised.value.message
