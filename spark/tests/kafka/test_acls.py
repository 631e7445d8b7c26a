"""What an identity lacks, asked as that identity: real ACLs, each taken away once."""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from mirror_report.check.flows import check_flows
from mirror_report.checks.verdict import EXIT_CODES, verdict
from mirror_report.config import Cluster, Credentials, Settings
from mirror_report.config.load import parse
from mirror_report.confirm.flows import confirm_flows
from mirror_report.model import Finding

USER = "mirror"
PRINCIPAL = f"User:{USER}"
INTERNAL = (
    "mm2-configs.psrc.internal", "mm2-offsets.psrc.internal", "mm2-status.psrc.internal",
    "mm2-offset-syncs.psrc.internal", "psrc.checkpoints.internal",
)  # fmt: skip

Row = tuple[str, str, str, str, str]
"""Cluster, resource, name, pattern, operation."""


def rows(cluster: str, resource: str, name: str, *operations: str) -> list[Row]:
    """A name that ends with a dash or a dot stands for what begins so."""
    pattern = "prefixed" if name.endswith(("-", ".")) else "literal"
    return [(cluster, resource, name, pattern, operation) for operation in operations]


# What was enough for each engine when it was tried with nothing else.
MM1 = [
    *rows("psrc", "topic", "mm1.", "READ"),
    *rows("psrc", "group", "mirrormaker-mm1", "READ"),
    *rows("pdst", "topic", "mm1.", "WRITE"),
]
MM1_LITERAL = [
    *rows("psrc", "topic", "mm1.one", "READ"),
    *rows("psrc", "group", "mirrormaker-mm1", "READ"),
    *rows("pdst", "topic", "mm1.one", "WRITE"),
]
MM2 = [
    *rows("psrc", "topic", "mm2.", "READ", "DESCRIBE_CONFIGS"),
    *rows("psrc", "group", "app-", "DESCRIBE"),
    *rows("psrc", "cluster", "kafka-cluster", "DESCRIBE"),
    *rows("pdst", "group", "psrc-mm2", "READ"),
    *rows("pdst", "group", "app-", "READ"),
    *(row for name in INTERNAL for row in rows("pdst", "topic", name, "CREATE", "READ", "WRITE")),
    *rows("pdst", "topic", "psrc.mm2.", "CREATE", "READ", "WRITE", "ALTER", "ALTER_CONFIGS"),
    *rows("pdst", "topic", "heartbeats", "CREATE", "WRITE"),
]


def admin(bootstrap: str) -> Any:
    return contextlib.closing(KafkaAdminClient(bootstrap_servers=bootstrap))


@dataclass
class Lab:
    """Two clusters that enforce ACLs, and who administers them."""

    sasl: Mapping[str, str]
    plain: Mapping[str, str]
    password: str

    def settings(self, engine: str, needed: list[Row], **changes: Any) -> Settings:
        """A flow's configuration for the mirror's own identity."""
        mm2 = engine == "mm2"
        flow = {
            "name": engine, "engine": engine, "source": "psrc", "target": "pdst",
            "topics": [rf"{engine}\..*"], "include": rf"{engine}\..*",
            "group_id": "psrc-mm2" if mm2 else "mirrormaker-mm1",
            "accept": ["regex-without-auto-creation:mm1"],
            "permissions": [
                dict(zip(("cluster", "resource", "name", "pattern", "operation"), row, strict=True))
                | {"why": "it fails"}
                for row in needed
            ],
        }  # fmt: skip
        if mm2:
            flow |= {
                "replication_policy": "prefix", "consumer_groups": ["app-.*"],
                "config_topic": INTERNAL[0], "offset_topic": INTERNAL[1],
                "status_topic": INTERNAL[2], "offset_syncs_topic": INTERNAL[3],
                "checkpoints_topic": INTERNAL[4],
            }  # fmt: skip
        return parse(
            {
                "version": 1,
                "clusters": {
                    alias: {
                        "bootstrap_servers": [address], "security_protocol": "SASL_PLAINTEXT",
                        "sasl_mechanism": "PLAIN", "username": USER, "identity": "mirror",
                        "principal": PRINCIPAL,
                    }
                    for alias, address in self.sasl.items()
                },
                "flows": [flow | changes],
                "credentials": {f"{alias}.mirror.password": self.password for alias in self.sasl},
            }
        )  # fmt: skip

    def check(self, engine: str, needed: list[Row], **changes: Any) -> list[Finding]:
        """Findings about permissions."""
        found = check_flows(self.settings(engine, needed, **changes)).findings
        return [finding for finding in found if "permission" in finding.kind]

    def allow(self, *granted: Row) -> None:
        """Grant permissions, and wait until the authorizer knows."""
        self._change(granted, there=True)

    def deny(self, *taken: Row) -> None:
        """Take permissions away, and wait until the authorizer knows."""
        self._change(taken, there=False)

    def _change(self, changed: Collection[Row], *, there: bool) -> None:
        for alias, bootstrap in self.plain.items():
            own = [row for row in changed if row[0] == alias]
            if not own:
                continue
            with admin(bootstrap) as client:
                if there:
                    client.create_acls([_acl(row) for row in own])
                else:
                    client.delete_acls([_filter(*row[1:]) for row in own])
                deadline = time.monotonic() + 20
                while any((row[1:] in _acls(client)) != there for row in own):
                    assert time.monotonic() < deadline, "the authorizer does not know the change"
                    time.sleep(0.05)

    def topics(self) -> dict[str, set[str]]:
        """Names of all topics by cluster."""
        found = {}
        for alias, bootstrap in self.plain.items():
            with admin(bootstrap) as client:
                found[alias] = set(client.list_topics())
        return found


def _acl(row: Row) -> Any:
    _, resource, name, pattern, operation = row
    return ACL(
        PRINCIPAL, "*", ACLOperation[operation], ACLPermissionType.ALLOW,
        ResourcePattern(
            ResourceType[resource.upper()], name, ACLResourcePatternType[pattern.upper()]
        ),
    )  # fmt: skip


def _filter(resource: str, name: str, pattern: str, operation: str) -> Any:
    return ACLFilter(
        PRINCIPAL, "*", ACLOperation[operation], ACLPermissionType.ALLOW,
        ResourcePatternFilter(
            ResourceType[resource.upper()], name, ACLResourcePatternType[pattern.upper()]
        ),
    )  # fmt: skip


def _acls(client: Any) -> set[tuple[str, str, str, str]]:
    every = ACLFilter(
        PRINCIPAL, "*", ACLOperation.ANY, ACLPermissionType.ANY,
        ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
    )  # fmt: skip
    found, _ = client.describe_acls(every)
    return {
        (
            acl.resource_pattern.resource_type.name.lower(),
            acl.resource_pattern.resource_name,
            acl.resource_pattern.pattern_type.name.lower(),
            acl.operation.name,
        )
        for acl in found
    }


@pytest.fixture(scope="module")
def lab(source_broker: Any, target_broker: Any, sasl_users: Mapping[str, str]) -> Lab:
    """Topics of both flows on both sides, and a group to sync; nothing is allowed yet."""
    made = Lab(
        {"psrc": source_broker.sasl, "pdst": target_broker.sasl},
        {"psrc": source_broker.bootstrap, "pdst": target_broker.bootstrap},
        sasl_users[USER],
    )
    compacted = {"configs": {"cleanup.policy": "compact"}, "num_partitions": 1}
    plain = {"num_partitions": 2}
    with admin(made.plain["psrc"]) as client:
        client.create_topics({"mm1.one": plain, "mm2.one": plain, "mm2.two": plain})
        client.wait_for_topics(["mm1.one", "mm2.one", "mm2.two"])
    with admin(made.plain["pdst"]) as client:
        mirrored = ["mm1.one", "psrc.mm2.one", "psrc.mm2.two", "heartbeats"]
        client.create_topics(dict.fromkeys(mirrored, plain) | dict.fromkeys(INTERNAL, compacted))
        client.wait_for_topics([*mirrored, *INTERNAL])
    producer = KafkaProducer(bootstrap_servers=made.plain["psrc"])
    producer.send("mm2.one", b"one").get(20)
    producer.close()
    consumer = KafkaConsumer(
        "mm2.one", bootstrap_servers=made.plain["psrc"], group_id="app-1",
        auto_offset_reset="earliest", enable_auto_commit=False,
    )  # fmt: skip
    while not consumer.poll(500):
        pass
    consumer.commit()
    consumer.close(autocommit=False)
    return made


@pytest.fixture(scope="module")
def granted(lab: Lab) -> Lab:
    """Everything both flows need is allowed, and nothing else."""
    lab.allow(*MM1, *MM2)
    return lab


@contextlib.contextmanager
def without(lab: Lab, *taken: Row) -> Iterator[None]:
    lab.deny(*taken)
    try:
        yield
    finally:
        lab.allow(*taken)


def name_of(row: Row) -> str:
    return "-".join(row[column] for column in (0, 1, 2, 4))


FLOWS = {"mm1": MM1, "mm2": MM2}


def test_without_any_permission_every_row_is_named_and_nothing_else(lab: Lab) -> None:
    for engine, needed in FLOWS.items():
        checked = check_flows(lab.settings(engine, needed))
        assert {finding.kind for finding in checked.findings} <= {"missing_permission", "no_topics",
                                                        "no_groups"}  # fmt: skip
        named = [finding for finding in checked.findings if finding.kind == "missing_permission"]
        assert len({finding.action for finding in named}) == len(needed)
        assert verdict(checked.findings).exit_code == EXIT_CODES["critical"]


def test_a_regex_of_an_identity_that_may_not_ask_for_auto_creation_is_refused(
    granted: Lab,
) -> None:
    checked = check_flows(granted.settings("mm1", MM1, accept=[]))
    kinds = {finding.kind for finding in checked.findings if finding.severity == "unknown"}
    assert kinds == {"regex_without_auto_creation"}
    assert verdict(checked.findings).exit_code == EXIT_CODES["unknown"]
    accepted = check_flows(granted.settings("mm1", MM1)).findings
    assert verdict(accepted).exit_code < EXIT_CODES["critical"]


@pytest.mark.parametrize("engine", FLOWS)
def test_with_every_permission_nothing_is_missing(granted: Lab, engine: str) -> None:
    found = check_flows(granted.settings(engine, FLOWS[engine])).findings
    # Neither engine may, nor has to, read the settings of these topics.
    (finding,) = found
    assert (finding.kind, finding.severity) == ("not_checked", "warning")
    assert ("mm1.one on psrc" if engine == "mm1" else INTERNAL[0]) in finding.message


@pytest.mark.parametrize(
    ("engine", "row"),
    [(engine, row) for engine, needed in FLOWS.items() for row in needed],
    ids=lambda value: name_of(value) if isinstance(value, tuple) else value,
)
def test_permission_taken_away_is_named(granted: Lab, engine: str, row: Row) -> None:
    alias, resource, name, pattern, operation = row
    with without(granted, row):
        found = granted.check(engine, FLOWS[engine])
    (finding,) = found
    assert finding.kind == "missing_permission"
    existing = operation == "CREATE"
    assert finding.severity == ("warning" if existing else "critical")
    assert finding.message.startswith(f"{PRINCIPAL} (identity mirror) lacks {operation} on ")
    assert f" on {alias}" in finding.message
    assert finding.message.endswith(": it fails")
    assert f"--operation {operation.title().replace('_', '')}" in finding.action
    if resource != "cluster":
        assert f"--{resource} {name}" in finding.action
    assert finding.action.endswith("--resource-pattern-type prefixed") == (pattern == "prefixed")


@pytest.mark.parametrize("row", MM1_LITERAL, ids=name_of)
def test_permission_on_a_literal_topic_is_named(granted: Lab, row: Row) -> None:
    wider = [permission for permission in MM1 if permission[3] == "prefixed"]
    granted.deny(*wider)
    granted.allow(*MM1_LITERAL)
    changes = {"topics": ["mm1.one"], "include": r"mm1\.one"}
    try:
        assert granted.check("mm1", MM1_LITERAL, **changes) == []
        with without(granted, row):
            (found,) = granted.check("mm1", MM1_LITERAL, **changes)
    finally:
        granted.deny(*[permission for permission in MM1_LITERAL if permission[1] == "topic"])
        granted.allow(*wider)
    assert f"lacks {row[4]} on {row[1]} {row[2]} on {row[0]}: it fails" in found.message


def test_permission_name_by_name_is_unknown_for_names_to_come(granted: Lab) -> None:
    literal = rows("pdst", "topic", "mm1.one", "WRITE")
    with without(granted, MM1[-1]):
        granted.allow(*literal)
        (found,) = granted.check("mm1", MM1)
        granted.deny(*literal)
    assert (found.kind, found.severity) == ("permission_unknown", "warning")
    assert "WRITE on topics that begin with mm1. (allowed on the names that are visible" in (
        found.message
    )


NEW_OFFSETS = "mm2-offsets.new.internal"
NEW = [
    *rows("psrc", "topic", "mm2.", "READ", "DESCRIBE_CONFIGS"),
    *rows("pdst", "group", "new-mm2", "READ"),
    *rows("pdst", "topic", NEW_OFFSETS, "CREATE", "READ", "WRITE"),
    *rows("pdst", "topic", "psrc-new-", "CREATE", "READ", "WRITE", "ALTER", "ALTER_CONFIGS"),
]
UNASKABLE = [
    row for row in NEW if row[0] == "pdst" and row[1] == "topic" and row[4] in ("READ", "WRITE")
]


def check_new(lab: Lab) -> tuple[list[Finding], list[str]]:
    """What is missing for a mirror that never ran, and what is unknown."""
    found = lab.check(
        "mm2", NEW, separator="-new-", group_id="new-mm2", offset_topic=NEW_OFFSETS,
        consumer_groups=[],
    )  # fmt: skip
    unknown = [finding.message for finding in found if finding.kind == "permission_unknown"]
    return [finding for finding in found if finding.kind == "missing_permission"], unknown


@pytest.fixture(scope="module")
def granted_new(granted: Lab) -> Lab:
    """What a mirror that never ran needs is allowed as well; none of its topics exists."""
    granted.allow(*NEW)
    return granted


def test_reading_and_writing_what_does_not_exist_is_unknown(granted_new: Lab) -> None:
    missing, (unknown,) = check_new(granted_new)
    assert missing == []
    for _, _, name, _, operation in UNASKABLE:
        assert f"{operation} on topic" in unknown
        assert name in unknown
    assert unknown.count("does not exist yet") == len(UNASKABLE)


@pytest.mark.parametrize(
    "row", [row for row in NEW if row[0] == "pdst" and row not in UNASKABLE], ids=name_of
)
def test_permission_on_what_does_not_exist_is_named(granted_new: Lab, row: Row) -> None:
    with without(granted_new, row):
        missing, (unknown,) = check_new(granted_new)
    (finding,) = missing
    assert finding.severity == "critical"
    assert f"lacks {row[4]} on " in finding.message
    assert row[2] in finding.message
    assert unknown.count("does not exist yet") == len(UNASKABLE)


@pytest.mark.parametrize("name", [NEW_OFFSETS, "psrc-new-"])
def test_hidden_names_lack_whatever_shows_them(granted_new: Lab, name: str) -> None:
    shows = [row for row in NEW if row[2] == name and row[4] in ("READ", "WRITE", "ALTER")]
    with without(granted_new, *shows):
        missing, _ = check_new(granted_new)
    assert len(missing) == len(shows)
    assert all(name in finding.message for finding in missing)


def test_asking_changes_nothing(granted_new: Lab) -> None:
    before = granted_new.topics()
    for engine, needed in FLOWS.items():
        granted_new.check(engine, needed)
    check_new(granted_new)
    assert granted_new.topics() == before


def test_report_that_lacks_a_permission_is_unknown(granted: Lab) -> None:
    settings = granted.settings("mm1", MM1)
    clusters = {
        alias: dataclasses.replace(cluster, identity="report")
        for alias, cluster in settings.clusters.items()
    }
    secrets = {f"{alias}.report.password": granted.password for alias in clusters}
    settings = dataclasses.replace(settings, clusters=clusters, credentials=Credentials(secrets))
    with without(granted, MM1[0]):
        found = check_flows(settings).findings
    assert ("missing_permission", "unknown") in {
        (finding.kind, finding.severity) for finding in found
    }
    assert verdict(found).exit_code == EXIT_CODES["unknown"]


def test_confirm_works_with_what_mirror_maker_1_needs(granted: Lab) -> None:
    consumer = KafkaConsumer(
        "mm1.one", bootstrap_servers=granted.sasl["psrc"], group_id="mirrormaker-mm1",
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_plain_username=USER,
        sasl_plain_password=granted.password, enable_auto_commit=False,
    )  # fmt: skip
    stop = threading.Event()

    def hold() -> None:
        while not stop.is_set():
            consumer.poll(100)
        consumer.close(autocommit=False)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        (found,) = confirm_flows(granted.settings("mm1", MM1), None, [], 20, lambda _: None).flows
    finally:
        stop.set()
        thread.join(20)
    assert (found.ok, found.flowing) == (True, None), found.text


def test_confirm_works_with_what_mirror_maker_2_needs(granted: Lab) -> None:
    # Without a process it waits in vain; a refusal would be an error instead.
    (found,) = confirm_flows(granted.settings("mm2", MM2), None, [], 1, lambda _: None).flows
    assert not found.ok
    assert "group psrc-mm2 is Dead; members from none" in found.text


def test_missing_topic_that_may_not_be_created_blocks_the_mirror(granted: Lab) -> None:
    topics = {"topics": [r"mm2\.one"], "include": r"mm2\.one"}
    needed = [
        *rows("psrc", "topic", "mm2.one", "READ"), *rows("psrc", "group", "mirrormaker-mm1", "READ")
    ]  # fmt: skip
    writes = rows("pdst", "topic", "mm2.one", "WRITE")
    granted.allow(*writes)
    settings = granted.settings("mm1", [*needed, *writes], **topics)
    creates = rows("pdst", "topic", "mm2.one", "CREATE")
    try:
        assert "topic_missing" in {finding.kind for finding in check_flows(settings).findings}
        granted.allow(*creates)
        found = check_flows(settings).findings
    finally:
        granted.deny(*writes, *creates)
    assert "topic_missing" not in {finding.kind for finding in found}
    assert verdict(found).exit_code == EXIT_CODES["warning"]
    assert any("whether its brokers create topics could not be asked" in finding.message
               for finding in found)  # fmt: skip


def test_a_name_that_collides_with_a_topic_that_is_hidden_is_named(granted: Lab) -> None:
    with admin(granted.plain["psrc"]) as here, admin(granted.plain["pdst"]) as there:
        here.create_topics({"mm2.eu": {"num_partitions": 1}})
        there.create_topics({"psrc.mm2_eu": {"num_partitions": 1}})
        here.wait_for_topics(["mm2.eu"])
        there.wait_for_topics(["psrc.mm2_eu"])
        try:
            found = check_flows(granted.settings("mm2", MM2)).findings
        finally:
            here.delete_topics(["mm2.eu"])
            there.delete_topics(["psrc.mm2_eu"])
    (named,) = (each for each in found if each.kind == "name_collides")
    assert named.topic == "mm2.eu"
    assert "beside another that is hidden from us" in named.message
    assert "psrc.mm2.eu" not in granted.topics()["pdst"], "asking creates nothing"


def test_permission_that_flows_share_is_named_once(granted: Lab) -> None:
    settings = granted.settings("mm2", MM2)
    (flow,) = settings.flows
    both = dataclasses.replace(settings, flows=(flow, dataclasses.replace(flow, name="other")))
    with without(granted, *rows("pdst", "group", "psrc-mm2", "READ")):
        found = check_flows(both).findings
    assert [finding.kind for finding in found if finding.severity != "warning"] == [
        "missing_permission"
    ]


def test_cluster_without_acls_lacks_nothing(lab: Lab, auto_creating_broker: str) -> None:
    settings = lab.settings("mm2", MM2)
    anybody = {
        alias: Cluster(alias, (address,), identity="mirror")
        for alias, address in (("psrc", lab.plain["psrc"]), ("pdst", auto_creating_broker))
    }
    found = check_flows(dataclasses.replace(settings, clusters=anybody)).findings
    (unknown,) = [finding for finding in found if "permission" in finding.kind]
    assert unknown.kind == "permission_unknown"
    # None of its topics exists, and about those Kafka does not say.
    asked = unknown.message.partition("could not be asked: ")[2].split("; ")
    assert {question.partition(" on topic")[0] for question in asked} == {"READ", "WRITE"}
    assert all("does not exist yet" in question for question in asked)


@pytest.mark.parametrize("described", [True, False], ids=["listed", "not listed"])
@pytest.mark.parametrize("operation", ["CREATE", "DESCRIBE_CONFIGS"])
def test_operation_on_the_cluster_is_asked_where_it_is_not_listed(
    granted: Lab, operation: str, described: bool
) -> None:
    (describe,) = rows("psrc", "cluster", "kafka-cluster", "DESCRIBE")
    (row,) = rows("psrc", "cluster", "kafka-cluster", operation)
    with contextlib.nullcontext() if described else without(granted, describe):
        (found,) = granted.check("mm1", [row])
        granted.allow(row)
        allowed = granted.check("mm1", [row])
        granted.deny(row)
    assert f"lacks {operation} on the cluster on psrc" in found.message
    assert allowed == []


def test_what_a_cluster_does_not_list_and_cannot_be_asked_is_unknown(granted: Lab) -> None:
    with without(granted, *rows("psrc", "cluster", "kafka-cluster", "DESCRIBE")):
        needed = rows("psrc", "cluster", "kafka-cluster", "CLUSTER_ACTION")
        (found,) = granted.check("mm1", needed)
    assert "CLUSTER_ACTION on the cluster (Kafka does not say)" in found.message
