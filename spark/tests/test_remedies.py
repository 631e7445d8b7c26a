"""Commands of findings can be pasted as they are."""

import shlex
from dataclasses import replace

from mirror_report.checks import remedies
from mirror_report.config import Cluster, Flow

EAST = Cluster("east", ("east1:9092", "east2:9092"), security_protocol="SASL_SSL", username="u")
FLOW = Flow("orders", "east", "west", "t", group_id="g", hosts=("mirror1", "mirror2"))


def test_tool_names_every_broker_and_quotes_what_a_shell_would_read() -> None:
    text = remedies.tool(EAST, "kafka-topics.sh", "--describe", "--topic", "a $b")
    assert shlex.split(text) == [
        "kafka-topics.sh", "--bootstrap-server", "east1:9092,east2:9092",
        "--describe", "--topic", "a $b",
    ]  # fmt: skip


def test_settings_with_commas_are_bracketed() -> None:
    text = remedies.alter_topic(
        EAST, "t", {"cleanup.policy": "compact,delete", "retention.ms": "9"}
    )
    assert shlex.split(text)[-1] == "cleanup.policy=[compact,delete],retention.ms=9"


def test_process_of_a_flow_is_reached_on_its_host() -> None:
    assert remedies.host(FLOW) == "mirror1"
    assert remedies.host(replace(FLOW, hosts=())) == "its host"
    assert remedies.service(FLOW, "restart") == "systemctl restart mirrormaker.service"
    assert remedies.journal(FLOW) == "journalctl -u mirrormaker.service -n 100"
    assert remedies.renew(FLOW) == "mirror-report baseline --flow orders --renew"
