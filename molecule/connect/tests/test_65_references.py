"""What a configuration of a connector can refer to: its author may be anybody who may use REST."""

from __future__ import annotations

import pytest
from labkit.controller import wait

# A worker has no provider of this name, and leaves it to whoever reads the configuration.
REFERENCE = "${any:/etc/os-release:NAME}"


def shown(rest, reference):
    """What a worker makes of a reference in a configuration that it finds wrong."""
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        "name": "reader",
        "source.cluster.alias": "elsewhere",
        "target.cluster.alias": "west",
        "emit.heartbeats.interval.seconds": reference,
    }
    path = "/connector-plugins/MirrorHeartbeatConnector/config/validate"
    status, found = rest.ask(path, method="PUT", body=config)
    assert status == 200, found
    [wrong] = [
        entry["value"] for entry in found["configs"]
        if entry["value"]["name"] == "emit.heartbeats.interval.seconds"
    ]  # fmt: skip
    assert wrong["errors"]
    return " ".join(wrong["errors"])


def test_a_reference_leads_to_what_kafka_s_clients_need(rest):
    assert "ScramLoginModule" in shown(rest, "${dir:/run/connect-west/kafka:east.mirror.jaas}")


@pytest.mark.parametrize(
    "reference",
    [
        "${dir:/run/credentials/connect-west.service:rest.users}",
        "${dir:/run/credentials/connect-west.service:rest.pem}",
        "${dir:/run/connect-west/kafka:rest.users}",
        "${dir:/run/connect-west/kafka/..:rest.p12}",
        "${dir:/run/connect-west:rest.p12}",
        "${dir:/etc:passwd}",
    ],
)
def test_no_reference_leads_to_the_rest_server_s_users_and_key(rest, reference):
    assert reference in shown(rest, reference)


def test_a_connector_s_client_resolves_nothing_by_itself(rest):
    """Its own providers could read any file that the worker may."""
    thief = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        "tasks.max": "1",
        "source.cluster.alias": "elsewhere",
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": "nowhere:1",
        "target.cluster.bootstrap.servers": "nowhere:1",
        "target.admin.config.providers": "any",
        "target.admin.config.providers.any.class":
            "org.apache.kafka.common.config.provider.FileConfigProvider",
        "target.admin.bootstrap.servers": REFERENCE,
    }  # fmt: skip
    assert rest.ask("/connectors/thief/config", method="PUT", body=thief)[0] == 201
    traces = []

    def failed():
        status, found = rest.ask("/connectors/thief/status")
        parts = [found["connector"], *found["tasks"]] if status == 200 else []
        traces[:] = [part["trace"] for part in parts if part["state"] == "FAILED"]
        return bool(traces)

    try:
        wait("the connector failed", failed)
    finally:
        assert rest.ask("/connectors/thief", method="DELETE")[0] == 204
    assert "automatic.config.providers" in traces[0], traces[0]
