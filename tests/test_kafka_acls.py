"""Permissions are printed, added once, and sufficient on brokers that refuse everything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewTopic,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import TopicAuthorizationFailedError
from mirror_model import permissions
from mirror_model.logins import kafka_credentials
from mirror_model.report import mirror_report_model
from mirror_model.site import Site, mirror_site

from spark.tests.conftest import (  # noqa: F401 (fixtures of real brokers)
    SASL_USERS,
    Broker,
    broker_processes,
    certificates,
    jars_directory,
    kafka_home,
    start_broker,
)
from tests.loading import ROOT, load
from tests.playing import KEEP_ANSWER, ansible_playbook, answer

PACKAGE = ROOT / "spark/src"
sys.path.insert(0, str(PACKAGE))

from mirror_report import observe  # noqa: E402 (the path above comes first)
from mirror_report.checks import control, preflight  # noqa: E402
from mirror_report.config import Settings  # noqa: E402 (the path above comes first)
from mirror_report.config.load import parse  # noqa: E402 (the path above comes first)
from mirror_report.groups.moving import flow_groups  # noqa: E402
from mirror_report.kafka.groups import states  # noqa: E402
from mirror_report.kafka.permissions import granted  # noqa: E402
from mirror_report.kafka.records import fetched_at, oldest_waiting  # noqa: E402
from mirror_report.lag.measure import LagResult  # noqa: E402
from mirror_report.model import ReportError  # noqa: E402

acls = load("roles/kafka_acls/library/kafka_acls.py", "kafka_acls")


def login(user: str) -> dict[str, str]:
    return {"sasl_mechanism": "PLAIN", "username": user, "password": SASL_USERS[user]}


@dataclass
class Lab:
    """Two clusters whose SASL listener asks for permissions, and one flow between them."""

    east: Broker
    west: Broker
    flow: dict[str, Any]

    @property
    def clusters(self) -> dict[str, Any]:
        """Clusters whose two identities are different users without rights."""
        return {
            alias: {
                "bootstrap_servers": [broker.sasl],
                "security_protocol": "SASL_PLAINTEXT",
                "identities": {"mirror": login("nobody"), "report": login("reader")},
            }
            for alias, broker in (("east", self.east), ("west", self.west))
        }

    @property
    def flows(self) -> list[dict[str, Any]]:
        """The one flow."""
        return [{"name": "orders", "source": "east", "target": "west", **self.flow}]

    @property
    def instances(self) -> dict[str, Any]:
        """Where it runs."""
        return {"mirrormaker": {"hosts": ["localhost"], "flows": ["orders"]}}

    @property
    def site(self) -> Site:
        """The inventory."""
        return mirror_site(self.clusters, self.flows, self.instances, {})

    def rows(self, identity: str = "report") -> list[dict[str, Any]]:
        """What one identity needs."""
        every = permissions.mirror_permissions(self.site)
        return [row for row in every if row["identity"] == identity]

    def document(self) -> dict[str, Any]:
        """The report's configuration."""
        return {
            "version": 1,
            **mirror_report_model(self.site, "report"),
        }

    def credentials(self) -> dict[str, str]:
        """Name to secret."""
        return {
            name: text
            for alias in self.clusters
            for name, text in kafka_credentials(self.site, alias, "report").items()
        }

    def settings(self) -> Settings:
        """The report's configuration as its commands take it."""
        return parse({**self.document(), "credentials": self.credentials()})

    def admin(self, alias: str) -> Any:
        """A super user."""
        return KafkaAdminClient(bootstrap_servers=getattr(self, alias).bootstrap)

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Give permissions, as the module does."""
        wanted: dict[str, list[Any]] = {}
        for row in rows:
            wanted.setdefault(row["cluster"], []).append(acls.acl(row))
        for alias, some in wanted.items():
            with self.admin(alias) as admin:
                acls.add(admin, some)
                wait(admin, set(some).issubset)

    def remove(self, row: dict[str, Any]) -> None:
        """Revoke a permission."""
        permission = acls.acl(row)
        with self.admin(row["cluster"]) as admin:
            admin.delete_acls([permission])
            wait(admin, lambda found: permission not in found)

    @contextmanager
    def without(self, row: dict[str, Any]) -> Iterator[None]:
        """All permissions but one."""
        self.remove(row)
        try:
            yield
        finally:
            self.add([row])

    def clear(self) -> None:
        """Revoke every permission."""
        for alias in self.clusters:
            with self.admin(alias) as admin:
                admin.delete_acls([ANY])
                wait(admin, lambda found: not found)


ANY = ACLFilter(
    None, None, ACLOperation.ANY, ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)  # fmt: skip


def everything(admin: Any) -> set[Any]:
    return set(admin.describe_acls(ANY)[0])


def wait(admin: Any, done: Callable[[set[Any]], bool]) -> None:
    """Wait until the broker has applied a change; it answers before."""
    deadline = time.monotonic() + 30
    while not done(everything(admin)):
        assert time.monotonic() < deadline, "the broker did not follow"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def brokers(start_broker: Any) -> tuple[Broker, Broker]:  # noqa: F811 (a fixture)
    return start_broker(), start_broker()


TOPICS = ["orders", "payments.eu"]
SYNCED = "billing"
WRITTEN_MS = time.time_ns() // 1_000_000


def fill(lab: Lab, mirrored: list[str], internal: Collection[str] = ()) -> None:
    """Create what both sides of a whole mirror have, one record in each mirrored topic."""
    for alias, names in (("east", TOPICS), ("west", [*mirrored, *internal])):
        with lab.admin(alias) as admin:
            new = [name for name in names if name not in admin.list_topics()]
            for name in new:
                compact = {"cleanup.policy": "compact"} if name in internal else {}
                admin.create_topics([NewTopic(name, 1, 1, topic_configs=compact)])
        producer = KafkaProducer(bootstrap_servers=getattr(lab, alias).bootstrap, acks="all")
        for name in new:
            if name not in internal:
                producer.send(name, value=b"1", timestamp_ms=WRITTEN_MS).get(30)
        producer.close()


def commit(lab: Lab, group: str) -> None:
    """Commit the ends of all topics for a group of the source."""
    consumer = KafkaConsumer(
        bootstrap_servers=lab.east.bootstrap, group_id=group, enable_auto_commit=False
    )
    places = [TopicPartition(topic, 0) for topic in TOPICS]
    ends = consumer.end_offsets(places)
    consumer.assign(places)
    consumer.commit({at: OffsetAndMetadata(ends[at], "", -1) for at in places})
    consumer.close()


@pytest.fixture
def mm1(brokers: tuple[Broker, Broker]) -> Iterator[Lab]:
    """A whole mirror of MirrorMaker 1, as its clusters show it."""
    lab = Lab(*brokers, {"engine": "mm1", "topics": ["orders", r"payments\..*"]})
    fill(lab, TOPICS)
    commit(lab, "mirrormaker-orders")
    yield lab
    lab.clear()


@pytest.fixture
def mm2(brokers: tuple[Broker, Broker]) -> Iterator[Lab]:
    """A mirror of MirrorMaker 2, as its clusters show it."""
    lab = Lab(
        *brokers,
        {"engine": "mm2", "topics": ["orders", r"payments\..*"], "consumer_groups": [SYNCED]},
    )
    flow = lab.settings().flows[0]
    fill(lab, [flow.target_topic(topic) for topic in TOPICS], preflight.internal_names(flow))
    commit(lab, SYNCED)
    yield lab
    lab.clear()


def lacking(lab: Lab) -> list[str]:
    """What the report cannot see, by the calls that all its commands are made of."""
    settings = lab.settings()
    flow = settings.flows[0]
    found: list[str] = []
    try:
        with observe.open_clients(settings, ("east", "west")) as clients:
            seen = observe.observe_flow(clients, flow, {})
            found += [*seen.source.errors.values(), *seen.target.errors.values()]
            found += list(seen.mirror.problems)
            if len(seen.source.topics) < len(TOPICS) or len(seen.target.topics) < len(TOPICS):
                found.append("topics")
            if flow.engine.positions_side == "source" and len(seen.positions) < len(TOPICS):
                found.append("positions")
            topics = [*seen.source.topics.values(), *seen.target.topics.values()]
            if flow.engine.creates_topics:
                names = preflight.internal_names(flow)
                internal = clients.get("west").snapshot(None, names)
                found += internal.errors.values()
                topics += internal.topics.values()
                if SYNCED not in states(clients.get("east")):
                    found.append("groups")
                lag = LagResult(observed={flow.name: seen})
                groups = flow_groups(clients, flow, lag, {}, others=[], most_reread=None)
                found += [
                    finding.message for finding in groups.findings if finding.kind == "permission"
                ]
                if [row.group for row in groups.rows if row.partitions] != [SYNCED]:
                    found.append("offsets of groups")
            elif seen.auto_creation is None:
                found.append("auto creation")
            found += [f"settings of {topic.name}" for topic in topics if not topic.configs]
            found += [f"size of {topic.name}" for topic in topics if topic.bytes is None]
        for snapshot in (seen.source, seen.target):
            read(settings, snapshot.alias, snapshot.topics)
    except ReportError as error:
        found.append(str(error))
    return found


def read(settings: Settings, alias: str, topics: Iterable[str]) -> None:
    cluster = settings.clusters[alias]
    waiting = {(name, 0): (0, 1) for name in topics}
    assert None not in oldest_waiting(cluster, settings.credentials, waiting).answers.values()


@pytest.mark.parametrize("engine", ["mm1", "mm2"])
def test_the_report_sees_everything_with_what_it_is_given_and_no_less(
    engine: str, request: pytest.FixtureRequest
) -> None:
    lab: Lab = request.getfixturevalue(engine)
    rows = lab.rows()
    assert lacking(lab)
    lab.add(rows)
    assert lacking(lab) == []
    needless = []
    for row in rows:
        with lab.without(row):
            if not lacking(lab):
                needless.append(row)
    assert needless == []


def test_nobody_but_the_workers_reads_how_they_are_configured(mm2: Lab) -> None:
    """Who reads the key there gives workers orders, and a pattern would let the report read it."""
    mm2.flow.update({"topics": [".*"], "replication_policy": "identity"})
    settings, rows = mm2.settings(), mm2.rows()
    (flow,) = settings.flows
    place = (flow.config_topic, 0)

    def read_it() -> None:
        fetched_at(settings.clusters["west"], settings.credentials, place, 0, "read_committed", 2)

    def others() -> list[str]:
        with observe.open_clients(settings, ("west",)) as clients:
            known = {place[0]: granted(clients.get("west"), place[0]) or []}
        return [found.message for found in control.access(flow, known)]

    mm2.add(row for row in rows if not row.get("deny"))
    read_it()
    assert "User:reader may read it" in "".join(others())
    mm2.add(row for row in rows if row.get("deny"))
    assert others() == []
    with pytest.raises(ReportError, match="may not read"):
        read_it()


def may(admin: Any, step: str, topic: str) -> bool:
    """Whether a broker would let somebody alter a topic; nothing is altered."""
    steps: dict[str, Callable[[], Any]] = {
        "create": lambda: admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True),
        "grow": lambda: admin.create_partitions({topic: 2}, validate_only=True),
        "configure": lambda: admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1"})],
            validate_only=True, raise_on_unknown=False,
        ),
    }  # fmt: skip
    try:
        return "Authorization" not in str(steps[step]())
    except TopicAuthorizationFailedError:
        return False


def test_no_mirror_alters_what_another_identity_keeps(brokers: tuple[Broker, Broker]) -> None:
    """A mirror of every topic under the same names is kept out of the others' state."""
    lab = Lab(*brokers, {
        "engine": "mm2", "topics": [".*"], "replication_policy": "identity",
        "properties": {"sync.topic.configs.enabled": True},
    })  # fmt: skip
    clusters = lab.clusters
    clusters["west"]["identities"]["theirs"] = login("mirror")
    theirs = {"connect-theirs": {"kafka": "west", "hosts": ["localhost"], "identity": "theirs"}}
    every = permissions.mirror_permissions(mirror_site(clusters, lab.flows, lab.instances, theirs))
    fill(lab, ["orders"], ["connect-theirs-offsets"])
    who = login("nobody")
    try:
        lab.add(every)
        with KafkaAdminClient(
            bootstrap_servers=lab.west.sasl, security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=who["sasl_mechanism"], sasl_plain_username=who["username"],
            sasl_plain_password=who["password"],
        ) as mirror:  # fmt: skip
            for step, own, kept in (
                ("create", "fresh", "connect-theirs-status"),
                ("grow", "orders", "connect-theirs-offsets"),
                ("configure", "orders", "connect-theirs-offsets"),
            ):
                assert may(mirror, step, own), step
                assert not may(mirror, step, kept), step
    finally:
        lab.clear()


@pytest.mark.long  # the scenario default compares records with the same permissions
def test_check_and_the_comparison_of_records_miss_nothing(
    mm1: Lab,
    tmp_path: Path,
    jars_directory: Path,  # noqa: F811 (a fixture)
) -> None:
    mm1.add(mm1.rows())
    secrets = tmp_path / "credentials"
    secrets.mkdir()
    for name, text in mm1.credentials().items():
        (secrets / name).write_text(text)
    path = tmp_path / "config.yaml"
    document = {
        **mm1.document(),
        "state_directory": str(tmp_path / "state"),
        "spark": {"master": "local[1]", "heap": "512m", "jars_directory": str(jars_directory)},
    }
    path.write_text(json.dumps(document))

    def report(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mirror_report.cli", "--config", str(path), *command],
            capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(PACKAGE), "CREDENTIALS_DIRECTORY": str(secrets)},
        )  # fmt: skip
        assert done.returncode in (0, 1, 2), done.stderr
        return done.stdout

    found = json.loads(report("check", "--json"))["findings"]
    assert [finding for finding in found if "permission" in finding["kind"]] == []
    report("baseline", "--full-history")
    compared = json.loads(report("run", "--json"))["parity"]
    assert {row["status"] for row in compared} == {"verified"}, compared
    assert sum(row["verified_records"] for row in compared) == len(TOPICS)


# The module and the role.

PLAY = (
    """
- hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ python }}"
    rows: "{{ mirror_site | mirror_permissions
              | selectattr('cluster', 'equalto', 'east') }}"
  roles: [kafka_acls]
  tasks:
    - kafka_acls:
        connection: "{{ connection }}"
        permissions: "{{ rows }}"
        timeout: 5
      register: done
      ignore_errors: true
"""
    + KEEP_ANSWER
)


@dataclass
class Controller:
    """Ansible with an inventory of one flow."""

    lab: Lab
    directory: Path

    def play(
        self, *options: str, playbook: Path | None = None, **connection: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a playbook, by default one that calls the module."""
        (self.directory / "play.yml").write_text(PLAY)
        (self.directory / "hosts").write_text(
            "localhost\n[mirror_report]\nreport.invalid\n[mirrormaker]\nlocalhost\n"
        )
        variables = {
            "kafka_clusters": self.lab.clusters, "mirror_flows": self.lab.flows,
            "mirrormaker_instances": self.lab.instances, "python": sys.executable,
            "connection": connection,
        }  # fmt: skip
        (self.directory / "group_vars").mkdir(exist_ok=True)
        (self.directory / "group_vars/all.yml").write_text(yaml.safe_dump(variables))
        arguments = ("-i", "hosts", str(playbook or "play.yml"), *options)
        return ansible_playbook(self.directory, *arguments)

    def module(self, *options: str, **connection: Any) -> dict[str, Any]:
        """What the module answers."""
        return answer(self.play(*options, **connection), self.directory)


@pytest.fixture
def controller(mm1: Lab, tmp_path: Path) -> Controller:
    return Controller(mm1, tmp_path)


def test_commands_are_printed_and_no_host_is_asked(tmp_path: Path) -> None:
    lab = Lab(
        Broker(*(f"127.0.0.1:{port}" for port in range(1, 7))),
        Broker(*(f"127.0.0.1:{port}" for port in range(7, 13))),
        {"engine": "mm1", "topics": ["orders", r"it\..*"]},
    )
    # The only host of the play has a name that never resolves.
    done = Controller(lab, tmp_path).play(playbook=ROOT / "playbooks/acls.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    every = permissions.mirror_permissions(lab.site)
    commands = permissions.to_kafka_acls(every, lab.site)
    lines = {line.strip() for line in done.stdout.splitlines()}
    for alias in ("east", "west"):
        assert commands[alias]
        assert set(commands[alias]) <= lines


def test_the_module_adds_what_is_missing_once_and_removes_nothing(controller: Controller) -> None:
    lab = controller.lab
    super_user = {"bootstrap_servers": [lab.east.bootstrap]}
    lab.add([{**lab.rows("mirror")[0], "name": "former"}])
    wanted = {
        acls.acl(row) for identity in ("mirror", "report") for row in lab.rows(identity)
        if row["cluster"] == "east"
    }  # fmt: skip
    with lab.admin("east") as admin:
        before = everything(admin)
        checked = controller.module("--check", "--diff", **super_user)
        assert checked["changed"] is True
        assert "+allow User:nobody READ on topic orders" in checked["stdout"]
        assert everything(admin) == before
        done = controller.module(**super_user)
        assert (done["changed"], sorted(done["added"])) == (True, sorted(map(acls.words, wanted)))
        assert everything(admin) == before | wanted
    again = controller.module(**super_user)
    assert (again["changed"], again["added"]) == (False, [])
    assert again["unneeded"] == ["allow User:nobody READ on topic former"]


def test_a_user_who_may_not_write_permissions_is_reported(controller: Controller) -> None:
    lab = controller.lab
    password = login("nobody")
    done = controller.module(
        bootstrap_servers=[lab.east.sasl], security_protocol="SASL_PLAINTEXT", **password
    )
    assert done["failed"] is True
    assert "user nobody may not read or write permissions" in done["msg"]
    assert lab.east.sasl in done["msg"]
    assert password["password"] not in done["stdout"]


def test_brokers_that_check_nothing_are_reported(
    controller: Controller,
    start_broker: Any,  # noqa: F811 (a fixture)
) -> None:
    unchecked = start_broker(**{"authorizer.class.name": ""})
    done = controller.module(bootstrap_servers=[unchecked.bootstrap])
    assert done["failed"] is True
    assert "the brokers check no permissions" in done["msg"]


def test_the_commands_for_kafkas_own_tool_add_what_the_module_adds(
    mm1: Lab,
    kafka_home: Path,  # noqa: F811 (a fixture)
) -> None:
    every = permissions.mirror_permissions(mm1.site)
    clusters = {
        alias: {"bootstrap_servers": [getattr(mm1, alias).bootstrap]} for alias in mm1.clusters
    }
    (kafka_home / "admin.properties").touch()
    script = "\n".join(permissions.to_kafka_acls(every, mirror_site(clusters, [], {}, {}))["west"])
    subprocess.run(
        ["bash", "-eu", "-c", script], check=True, cwd=kafka_home,
        env={**os.environ, "PATH": f"{kafka_home}/bin:{os.environ['PATH']}",
             "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"},
    )  # fmt: skip
    with mm1.admin("west") as admin:
        wanted = {acls.acl(row) for row in every if row["cluster"] == "west"}
        wait(admin, lambda found: found == wanted)
