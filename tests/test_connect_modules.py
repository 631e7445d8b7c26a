"""Connectors as the roles' modules keep them, on a real Connect worker that others own."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourceType,
)

from spark.tests.conftest import (  # noqa: F401 (fixtures of real brokers)
    SASL_USERS,
    SMALL_JVM,
    Broker,
    broker_processes,
    certificates,
    free_port,
    kafka_home,
    source_broker,
    start_broker,
    target_broker,
)
from tests.loading import ROOT
from tests.playing import ansible_playbook, run_module

CONNECTOR = "roles/mirror_connectors/library/connect_connector.py"
WORKERS = "roles/kafka_connect/library/connect_workers.py"
SOURCE, HEARTBEAT = (
    f"org.apache.kafka.connect.mirror.Mirror{kind}Connector" for kind in ("Source", "Heartbeat")
)
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
MARK = "kafka.mirror.flow"
FOREIGN = {
    "connector.class": HEARTBEAT,
    "source.cluster.alias": "elsewhere",
    "target.cluster.alias": "west",
}


@dataclass
class Worker:
    """A Connect cluster of one worker whose REST server is plain."""

    port: int
    source: Broker
    target: Broker

    @property
    def url(self) -> str:
        """Address of the REST server."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """Ask the REST server itself, beside the modules."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as asked:
            sent = None if body is None else json.dumps(body)
            asked.request(method, path, sent, {"Content-Type": "application/json"})
            answer = asked.getresponse()
            text = answer.read()
        assert answer.status < 300, text
        return json.loads(text) if text else None

    def wanted(self, flow: str, **config: Any) -> dict[str, Any]:
        """A source connector of a flow that mirrors the topic of its name, as the model has it."""
        keys = {
            MARK: flow,
            "name": f"{flow}-source",
            "connector.class": SOURCE,
            "tasks.max": "1",
            "source.cluster.alias": "east",
            "target.cluster.alias": "west",
            "source.cluster.bootstrap.servers": self.source.bootstrap,
            "target.cluster.bootstrap.servers": self.target.bootstrap,
            "topics": flow,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "offset-syncs.topic.location": "target",
            "sync.topic.acls.enabled": "false",
            **{f"{part}.converter": BYTES for part in ("key", "value", "header")},
            **config,
        }
        return {"name": keys["name"], "flow": flow, "kind": "source", "config": keys, "kept": []}

    def keep(self, *connectors: dict[str, Any], check: bool = False, **given: Any) -> Any:
        """Call the module that keeps connectors."""
        asked = {"urls": [self.url], "connectors": connectors, "mark": MARK, "patience": 90}
        return run_module(CONNECTOR, {**asked, **given}, check=check)

    def state(self, **given: Any) -> Any:
        """Call the module that asks workers."""
        return run_module(WORKERS, {"urls": [self.url], "patience": 90, **given})

    @contextmanager
    def connectors(self, *connectors: dict[str, Any]) -> Iterator[None]:
        """Connectors for as long as the block lasts."""
        try:
            done = self.keep(*connectors)
            assert not done.get("failed"), done
            yield
        finally:
            for name in self.ask("/connectors"):
                self.ask(f"/connectors/{name}", "DELETE")


@pytest.fixture(scope="module")
def worker(
    kafka_home: Path,  # noqa: F811 (a fixture)
    free_port: int,  # noqa: F811 (a fixture)
    source_broker: Broker,  # noqa: F811 (a fixture)
    target_broker: Broker,  # noqa: F811 (a fixture)
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Worker]:
    """One worker, which takes every override; topics are there for each test."""
    directory = tmp_path_factory.mktemp("worker")
    properties = {
        "bootstrap.servers": target_broker.bootstrap,
        "group.id": "workers",
        "listeners": f"http://127.0.0.1:{free_port}",
        "key.converter": BYTES,
        "value.converter": BYTES,
        "plugin.discovery": "service_load",
        "connector.client.config.override.policy": "All",
        "config.providers": "theirs",
        "config.providers.theirs.class": "org.apache.kafka.common.config.provider."
        "FileConfigProvider",
        "offset.flush.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
        **{
            f"{kind}.storage.{key}": value
            for kind in ("config", "offset", "status")
            for key, value in (("topic", f"workers-{kind}"), ("replication.factor", "1"))
        },
    }
    file = directory / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    with KafkaAdminClient(bootstrap_servers=source_broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, 1, 1) for name in ("orders", "payments", "refused")])
    java = ["java", *SMALL_JVM, "-cp", f"{kafka_home}/libs/*"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *java,
             "org.apache.kafka.connect.cli.ConnectDistributed", str(file)],
            stdout=log, stderr=log,
        )  # fmt: skip
    started = Worker(free_port, source_broker, target_broker)
    # The module itself waits for a worker that starts.
    answered = started.state(patience=240)
    assert not answered.get("failed"), (directory / "log").read_text()[-4000:]
    yield started
    process.kill()
    process.wait(30)


def wait_for(done: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(1)


def running(tasks: int = 1) -> dict[str, Any]:
    """How the module shows a connector all of whose tasks run."""
    return {"state": "RUNNING", "tasks": ["RUNNING"] * tasks}


def test_connectors_are_made_once_and_only_what_differs_is_sent(worker: Worker) -> None:
    orders, payments = worker.wanted("orders"), worker.wanted("payments")
    planned = worker.keep(orders, payments, check=True)
    assert (planned["changed"], planned["sent"]) == (True, ["orders-source", "payments-source"])
    assert worker.ask("/connectors") == []
    with worker.connectors(orders, payments):
        again = worker.keep(orders, payments)
        assert (again["changed"], again["sent"], again["diff"]) == (False, [], [])
        assert again["states"] == dict.fromkeys(("orders-source", "payments-source"), running())
        other = worker.wanted("payments", **{"sync.topic.configs.interval.seconds": "60"})
        changed = worker.keep(orders, other)
        assert (changed["changed"], changed["sent"]) == (True, ["payments-source"])
        assert worker.ask("/connectors/payments-source/config") == other["config"]


def test_a_key_that_is_kept_stays_as_the_connector_has_it(worker: Worker) -> None:
    with worker.connectors(worker.wanted("orders")):
        wider = worker.wanted("orders", **{"replication.factor": "3"})
        assert worker.keep({**wider, "kept": ["replication.factor"]})["changed"] is False
        assert worker.keep(wider, check=True)["sent"] == ["orders-source"]


def test_secrets_are_not_shown_and_references_are(worker: Worker) -> None:
    login = {
        "source.cluster.sasl.jaas.config": "PlainLoginModule required password='hush';",
        "source.cluster.ssl.key.password": "${file:/etc/secrets:key}",
    }
    planned = worker.keep(worker.wanted("orders", **login), check=True)
    assert "hush" not in json.dumps(planned["diff"])
    assert "${file:/etc/secrets:key}" in json.dumps(planned["diff"])


def test_nothing_is_sent_when_the_plug_in_refuses_one_of_them(worker: Worker) -> None:
    wrong = worker.wanted("payments", **{"refresh.topics.interval.seconds": "often"})
    refused = worker.keep(worker.wanted("orders"), wrong)
    assert refused["failed"]
    assert "payments-source: refresh.topics.interval.seconds: " in refused["msg"]
    assert worker.ask("/connectors") == []


def test_connectors_of_others_are_left_alone_and_own_ones_that_are_not_declared_are_named(
    worker: Worker,
) -> None:
    orders, payments = worker.wanted("orders"), worker.wanted("payments")
    with worker.connectors(orders, payments):
        worker.ask("/connectors/foreign/config", "PUT", FOREIGN)
        one = worker.keep(orders)
        assert (one["changed"], one["undeclared"]) == (False, {"payments-source": running()})
        (warning,) = map(str, one["warnings"])
        assert "connector payments-source still mirrors, and no flow" in warning
        assert "DELETE /connectors/payments-source at a worker" in warning
        worker.ask("/connectors/payments-source/pause", "PUT")
        wait_for(lambda: worker.keep(orders)["undeclared"]["payments-source"]["state"] == "PAUSED")
        (warning,) = map(str, worker.keep(orders, check=True)["warnings"])
        assert "connector payments-source is still there, PAUSED, and no flow" in warning
        gone = worker.keep(orders, payments, {**orders, "name": "foreign"}, state="absent")
        assert gone["changed"]
        assert worker.ask("/connectors") == ["foreign"]
        assert worker.keep(orders, payments, state="absent")["changed"] is False


@pytest.mark.parametrize("state", ["paused", pytest.param("stopped", marks=pytest.mark.long)])
def test_connectors_come_into_their_state_and_back(worker: Worker, state: str) -> None:
    orders = worker.wanted("orders")
    with worker.connectors(orders):
        idle = worker.keep(orders, state=state)
        assert (idle["changed"], idle["sent"]) == (True, [])
        assert idle["states"]["orders-source"]["state"] == state.upper()
        assert worker.keep(orders, state=state)["changed"] is False
        back = worker.keep(orders)
        assert (back["changed"], back["states"]) == (True, {"orders-source": running()})


@pytest.mark.parametrize("key", ["source.cluster.alias", "target.cluster.alias"])
def test_another_alias_is_refused_because_everything_would_be_mirrored_again(
    worker: Worker, key: str
) -> None:
    with worker.connectors(worker.wanted("orders")):
        before = worker.ask("/connectors/orders-source/config")
        refused = worker.keep(worker.wanted("orders", **{key: "north"}))
        assert refused["failed"]
        assert f"orders-source: {key} is '{before[key]}' and would become 'north'" in refused["msg"]
        assert worker.ask("/connectors/orders-source/config") == before


def test_another_name_is_refused_unless_it_is_accepted(worker: Worker) -> None:
    renamed = worker.wanted("orders", name="orders-copy")
    with worker.connectors(worker.wanted("orders")):
        refused = worker.keep(renamed)
        assert refused["failed"]
        assert "orders-source would become orders-copy" in refused["msg"]
        assert "source: orders-source in connectors of flow orders" in refused["msg"]
        assert worker.ask("/connectors") == ["orders-source"]
        accepted = worker.keep(renamed, accept_new_names=["orders"])
        assert (accepted["sent"], accepted["undeclared"]) == (
            ["orders-copy"],
            {"orders-source": running()},
        )


def test_workers_without_the_plug_in_or_too_old_are_refused(worker: Worker) -> None:
    other = worker.wanted("orders", **{"connector.class": "org.example.NoConnector"})
    assert "the workers have no org.example.NoConnector" in worker.keep(other)["msg"]
    old = worker.keep(worker.wanted("orders"), oldest="99.0.0")
    assert "MirrorMaker 2 works from 99.0.0 on; upgrade them first" in old["msg"]


def test_a_worker_that_does_not_answer_is_named(worker: Worker) -> None:
    # Nobody listens on this port, which only root may use.
    nobody: dict[str, Any] = {"urls": ["http://127.0.0.1:9"], "patience": 1}
    for answered in (worker.keep(worker.wanted("orders"), **nobody), worker.state(**nobody)):
        assert "no worker of http://127.0.0.1:9 did it within 1 s" in answered["msg"]
    planned = worker.keep(worker.wanted("orders"), check=True, required=False, **nobody)
    assert (planned["changed"], planned["sent"]) == (True, ["orders-source"])
    unknown = worker.state(**nobody, required=False)
    assert (unknown["running"], unknown["failures"]) == ([], [])


def test_a_worker_that_lets_everybody_in_is_an_error(worker: Worker) -> None:
    found = worker.state(closed=True)
    assert f"{worker.url} lets in whoever asks" in found["msg"]
    assert found["open"]


def refused(worker: Worker) -> dict[str, Any]:
    """A connector whose producer may write nothing."""
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    login = {
        "bootstrap.servers": worker.target.sasl,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f"{jaas} username='nobody' password='{SASL_USERS['nobody']}';",
    }
    return worker.wanted("refused", **{f"producer.override.{k}": v for k, v in login.items()})


def allow(worker: Worker, topic: str) -> None:
    """Let ``nobody`` write a topic."""
    what = ResourcePattern(ResourceType.TOPIC, topic)
    with KafkaAdminClient(bootstrap_servers=worker.target.bootstrap) as admin:
        admin.create_acls(
            [ACL("User:nobody", "*", ACLOperation.WRITE, ACLPermissionType.ALLOW, what)]
        )


def test_a_failed_task_is_named_with_its_cause_and_runs_again_once_that_is_mended(
    worker: Worker,
) -> None:
    connector = refused(worker)
    name = connector["name"]
    with KafkaProducer(bootstrap_servers=worker.source.bootstrap) as producer:
        producer.send("refused", b"1").get(30)
    with worker.connectors(worker.wanted("orders")):
        worker.ask(f"/connectors/{name}/config", "PUT", connector["config"])
        deadline = time.monotonic() + 120
        while not (before := worker.state())["failures"] and time.monotonic() < deadline:
            time.sleep(1)
        assert before["running"] == ["orders-source", "orders-source/0", name]
        (failure,) = before["failures"]
        assert failure.startswith(f"{name}/0: ")
        assert "AuthorizationException" in failure
        lacking = worker.state(again=[f"{name}/0", "orders-source"], patience=2)["msg"]
        assert f"{name}/0 ran before the restart and does not now; {failure}" in lacking

        still = worker.keep(connector, patience=20)
        assert f"task 0 of {name} on " in still["msg"]
        assert "first cause: org.apache.kafka.common.errors." in still["msg"]

        allow(worker, "east.refused")
        # Any later run of the playbook restarts what has failed.
        healed = worker.keep(connector)
        assert (healed["changed"], healed["restarted"]) == (True, [name])
        assert healed["states"] == {name: running()}
        assert worker.state()["failures"] == []


PLAYBOOK = str(ROOT / "playbooks/kafka-connect.yml")
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture
def play(worker: Worker, tmp_path: Path) -> Callable[..., str]:
    """Deploy a flow with a login on the source, with no host at all; returns what was said."""
    secret = tmp_path / "mirror.properties"
    password = SASL_USERS["mirror"]
    secret.write_text(f'theirs={JAAS} username="mirror" password="{password}";\n')
    east = {
        "bootstrap_servers": [worker.source.sasl], "security_protocol": "SASL_PLAINTEXT",
        "identities": {
            "mirror": {"sasl_mechanism": "PLAIN", "username": "mirror", "password": password}
        },
    }  # fmt: skip
    theirs = {
        "kafka": "west", "group_id": "workers",
        "topics": {kind: f"workers-{kind}" for kind in ("config", "status")}
        | {"offsets": "workers-offset"},
        "rest": {"urls": [worker.url]},
        "secrets": {
            "provider": "theirs", "path": str(secret), "keys": {"east.mirror.jaas": "theirs"},
        },
    }  # fmt: skip

    def run(*options: str, **properties: Any) -> str:
        flow = {
            "name": "payments", "engine": "mm2-connect", "connect": "connect-theirs",
            "source": "east", "target": "west", "topics": ["payments"], "properties": properties,
        }  # fmt: skip
        variables = {
            "ansible_python_interpreter": sys.executable,
            "kafka_clusters": {
                "east": east, "west": {"bootstrap_servers": [worker.target.bootstrap]},
            },
            "mirror_flows": [flow], "kafka_connect_clusters": {"connect-theirs": theirs},
            "mirror_model_groups": {}, "mirror_connectors_brokers": {"east": 1, "west": 1},
        }  # fmt: skip
        (tmp_path / "variables.yml").write_text(yaml.safe_dump(variables))
        arguments = ("-i", "/dev/null", "-e", "@variables.yml", PLAYBOOK, *options)
        done = ansible_playbook(tmp_path, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert password not in done.stdout + done.stderr
        return done.stdout

    return run


def test_the_role_mirrors_on_a_cluster_of_others(worker: Worker, play: Callable[..., str]) -> None:
    what = ResourcePattern(ResourceType.TOPIC, "payments")
    with KafkaAdminClient(bootstrap_servers=worker.source.bootstrap) as admin:
        admin.create_acls([
            ACL("User:mirror", "*", operation, ACLPermissionType.ALLOW, what)
            for operation in (ACLOperation.READ, ACLOperation.DESCRIBE_CONFIGS)
        ])  # fmt: skip
    with KafkaProducer(bootstrap_servers=worker.source.bootstrap) as producer:
        for number in range(100):
            producer.send("payments", str(number).encode())
    with worker.connectors():
        assert "changed=1" in play("--check", "--diff")
        assert worker.ask("/connectors") == []
        assert "changed=1" in play()
        config = worker.ask("/connectors/payments-source/config")
        assert config["source.cluster.sasl.jaas.config"].startswith("${theirs:")
        with KafkaConsumer(
            "east.payments", bootstrap_servers=worker.target.bootstrap,
            auto_offset_reset="earliest", consumer_timeout_ms=60000,
        ) as consumer:  # fmt: skip
            found = [next(consumer).value for _ in range(100)]
        assert found == [str(number).encode() for number in range(100)]
        assert "changed=0" in play()
        shown = play("--check", "--diff", **{"refresh.topics.interval.seconds": 7})
        assert "+refresh.topics.interval.seconds: '7'" in re.sub(r"\s*([+-])\s+", r"\n\1", shown)
        assert worker.ask("/connectors/payments-source/config") == config


def test_a_site_without_connect_has_nothing_to_deploy(tmp_path: Path) -> None:
    site = {
        "mirror_model_groups": {}, "ansible_python_interpreter": sys.executable,
        "kafka_clusters": {"east": {"bootstrap_servers": ["east1:9092"]}},
    }  # fmt: skip
    done = ansible_playbook(tmp_path, "-i", "/dev/null", "-e", json.dumps(site), PLAYBOOK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=0" in done.stdout
