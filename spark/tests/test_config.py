"""The configuration says what is wrong with it, and never shows a secret."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from mirror_report.config import ISOLATIONS, ConfigError, Credentials, Flow, Permission
from mirror_report.config.load import load_settings, parse


def document(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "clusters": {
            "east": {
                "bootstrap_servers": ["east1:9092"],
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "SCRAM-SHA-512",
                "username": "mirror-report",
                "identity": "report",
                "ssl_ca": False,
            },
            "west": {"bootstrap_servers": ["west1:9092"]},
        },
        "flows": [
            {
                "name": "orders", "engine": "mm1", "source": "east", "target": "west",
                "topics": ["orders"], "topics_exclude": [], "include": "orders",
                "start": "earliest", "group_id": "mirrormaker-orders",
                "instance": "mirrormaker", "hosts": ["mirror1"], "commit_interval_ms": 10000,
                "sysconfig": "/etc/sysconfig/mirrormaker",
            }
        ],
        "state_directory": "/var/lib/mirror-report",
        "bucket_seconds": 60,
        "warn": {"lag_records": None, "lag_seconds": 600, "coverage": 0.95, "stalled_seconds": 300,
                 "certificate_days": 14, "lag_bytes": 1024, "heartbeat_seconds": None},
        "history_days": 7,
        "budget": {"max_bytes": 21474836480, "deadline_seconds": 1500},
        "spark": {"master": "local[*]", "heap": "1g", "jars_directory": "/opt/jars"},
        **changes,
    }  # fmt: skip


def test_whole_document_is_read() -> None:
    settings = parse(document())
    assert settings.clusters["east"].credential("password") == "east.report.password"
    assert settings.flow("orders").group_id == "mirrormaker-orders"
    assert settings.warn.lag_records is None
    assert settings.warn.certificate_days == 14
    assert (settings.warn.lag_bytes, settings.warn.heartbeat_seconds) == (1024, None)
    assert settings.history_days == 7
    assert settings.budget.max_bytes == 21474836480


def test_a_side_is_read_with_kafkas_own_word_for_isolation() -> None:
    given = document()
    given["flows"][0]["source_isolation"] = "read_committed"
    flow = parse(given).flow("orders")
    assert [flow.isolation(side) for side in ("source", "target")] == list(ISOLATIONS)[::-1]
    given["flows"][0]["target_isolation"] = "committed"
    with pytest.raises(ConfigError, match="target_isolation: 'committed' is none of"):
        parse(given)


def test_everything_but_clusters_and_flows_has_a_default() -> None:
    given = document()
    settings = parse({key: given[key] for key in ("version", "clusters", "flows")})
    assert settings.state_directory == Path("/var/lib/mirror-report")


def changed(*path: Any, value: Any) -> dict[str, Any]:
    given = document()
    place: Any = given
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return given


def permitting(**changes: Any) -> dict[str, Any]:
    row = {
        "cluster": "west", "resource": "topic", "name": "orders", "pattern": "literal",
        "operation": "WRITE", "why": "it ends", "wider": False, **changes,
    }  # fmt: skip
    return changed("flows", 0, "permissions", value=[row])


def test_permissions_are_read() -> None:
    (flow,) = parse(permitting()).flows
    assert flow.permissions == (
        Permission("west", "topic", "orders", "literal", "WRITE", "it ends"),
    )
    (flow,) = parse(document()).flows
    assert flow.permissions == (), "nothing is known"


def test_principal_is_read() -> None:
    given = changed("clusters", "east", "principal", value="User:CN=mirror")
    clusters = parse(given).clusters
    assert (clusters["east"].principal, clusters["west"].principal) == ("User:CN=mirror", None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (changed("bucket_second", value=1), "bucket_second: unknown key, did you mean 'bucket_s"),
        (changed("warn", "lag_second", value=1), "warn.lag_second: unknown key, did you mean"),
        (changed("clusters", "east", "user_name", value="x"), "did you mean 'username'"),
        (changed("flows", 0, "grupid", value="x"), r"flows\[0\].grupid: unknown key"),
        (changed("flows", 0, "source", value="eastt"), "orders.source: no cluster 'eastt'.*'east'"),
        (changed("flows", 0, "engine", value="mm3"), "'mm3' is none of mm1, mm2"),
        (changed("flows", 0, "include", value="a("), "not a regular expression"),
        (changed("flows", 0, "start", value="first"), "neither earliest nor latest"),
        (changed("flows", 0, "group_id", value=""), "group_id"),
        (changed("flows", 0, "topics", value="orders"), "a list is expected"),
        (changed("bucket_seconds", value="60"), "bucket_seconds: int expected, str given"),
        (changed("bucket_seconds", value=True), "bucket_seconds: int expected, bool given"),
        (changed("bucket_seconds", value=0), "at least 1"),
        (changed("interval_seconds", value=0), "interval_seconds: must be above 0"),
        (changed("lag_interval_seconds", value="60"), "lag_interval_seconds: float expected"),
        (changed("history_days", value=0), "history_days: must be at least 1"),
        (changed("clusters", "west", "bootstrap_servers", value=[]), "at least one host:port"),
        (changed("clusters", "west", "bootstrap_servers", value=["w"]), "'w' is not host:port"),
        (changed("clusters", "east", "sasl_mechanism", value="SCRAM"), "SCRAM-SHA-512"),
        (changed("clusters", "east", "username", value=None), "username: needed"),
        (changed("clusters", "west", "security_protocol", value="TLS"), "SASL_SSL"),
        (permitting(cluster="eastt"), "permissions: cluster 'eastt' is none of east, west"),
        (permitting(resource="topics"), "permissions: resource 'topics' is none of topic, group"),
        (permitting(pattern="regex"), "permissions: pattern 'regex' is none of literal, prefixed"),
        (permitting(operatio="READ"), r"permissions\[0\].operatio: unknown key, did you mean"),
        (permitting(wider="no"), r"permissions\[0\].wider: bool expected, str given"),
        (changed("version", value=2), "version: 2 is not understood"),
        ([], "a map of names"),
        ({"version": 1}, "clusters"),
    ],
)
def test_mistakes_are_refused_by_name(given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(given)


def mm2(**changes: Any) -> dict[str, Any]:
    given = document()
    given["flows"][0] |= {
        "engine": "mm2", "group_id": "east-mm2", "replication_policy": "prefix", "separator": ".",
        "consumer_groups": ["app-.*"], "parallelism": 4, "replication_factors": {"x": 1},
        "offset_topic": "mm2-offsets.east.internal", "status_topic": "mm2-status.east.internal",
        "config_topic": "mm2-configs.east.internal",
        "offset_syncs_topic": "mm2-offset-syncs.east.internal",
        "checkpoints_topic": "east.checkpoints.internal",
        **changes,
    }  # fmt: skip
    return given


def flow_of(**changes: Any) -> Flow:
    (found,) = parse(mm2(**changes)).flows
    return found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"replication_policy": "keep"}, "replication_policy: 'keep' is none of identity, prefix"),
        ({"separator": ""}, "separator: at least one character"),
        ({"offset_topic": ""}, "offset_topic: the name of that topic is needed"),
        ({"status_topic": ""}, "status_topic: the name"),
        ({"offset_syncs_topic": ""}, "offset_syncs_topic: the name"),
        ({"consumer_groups": ["a("]}, "consumer_groups: not a regular expression"),
        ({"replication_factors": {"x": "3"}}, "replication_factors.x: int expected, str given"),
    ],
)
def test_mistakes_in_a_flow_of_mirrormaker2_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(mm2(**changes))


@pytest.mark.parametrize(
    ("changes", "name", "mirrored"),
    [
        ({}, "orders", "east.orders"),
        ({"separator": "_"}, "orders", "east_orders"),
        ({"replication_policy": "identity"}, "orders", "orders"),
        ({"replication_policy": "identity"}, "heartbeats", "east.heartbeats"),
    ],
)
def test_topics_are_renamed_and_found_again(
    changes: dict[str, Any], name: str, mirrored: str
) -> None:
    flow = flow_of(include="orders|heartbeats", **changes)
    assert flow.target_topic(name) == mirrored
    assert flow.source_topic(mirrored) == name


@pytest.mark.parametrize(
    "name", ["orders", "east.other", "north.orders", "mm2-status.east.internal"]
)
def test_topics_of_others_are_not_the_flows(name: str) -> None:
    assert flow_of().source_topic(name) is None


def test_flows_of_mirrormaker1_keep_names() -> None:
    (flow,) = parse(document()).flows
    assert (flow.target_topic("orders"), flow.source_topic("orders")) == ("orders", "orders")
    assert flow.source_topic("other") is None


def test_mirrormaker1_leaves_out_what_brokers_mark_as_internal() -> None:
    (flow,) = parse(changed("flows", 0, "include", value=".*")).flows
    assert not flow.matches("__consumer_offsets")
    assert flow.matches("__others")
    assert flow_of(include=".*").matches("__x"), "what MirrorMaker 2 leaves out is in include"


def test_two_flows_of_one_name_are_refused() -> None:
    given = document()
    given["flows"].append(given["flows"][0])
    with pytest.raises(ConfigError, match="same name"):
        parse(given)


def test_secret_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(document(credentials={"east.report.password": "s3cret"}))
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    settings = load_settings("-", environment={})
    assert settings.credentials.read("east.report.password") == "s3cret"


def test_secret_comes_from_the_credentials_directory(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(document()))
    (tmp_path / "east.report.password").write_text('é"\\$ x')
    settings = load_settings(
        str(tmp_path / "config.yaml"), environment={"CREDENTIALS_DIRECTORY": str(tmp_path)}
    )
    assert settings.credentials.read("east.report.password") == 'é"\\$ x'


def test_secret_in_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(document(credentials={"a": "b"})))
    with pytest.raises(ConfigError, match="secrets do not belong into the file"):
        load_settings(str(path), environment={})


def test_missing_secret_says_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wrapper"):
        Credentials().read("east.report.password")
    with pytest.raises(ConfigError, match="Deploy the report again"):
        Credentials({}, tmp_path).read("east.report.password")


def test_no_representation_shows_a_secret() -> None:
    settings = parse(document(credentials={"east.report.password": "s3cret"}))
    for value in (settings, settings.credentials, settings.clusters["east"]):
        assert "s3cret" not in repr(value) + str(value)


def test_broken_yaml_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text('version: 1\npassword: "s3cret\n')
    with pytest.raises(ConfigError, match="neither YAML nor JSON") as caught:
        load_settings(str(path), environment={})
    assert "s3cret" not in str(caught.value)


def test_absent_file_says_so() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings("/nonexistent/config.yaml", environment={})


@pytest.mark.parametrize(
    ("topics", "include", "topic", "matched"),
    [
        (["orders"], "orders", "orders", True),
        (["orders"], "orders", "orders2", False),
        ([".*"], ".*", "__consumer_offsets", False),
        (["__special"], "__special", "__special", True),
        ([".*"], ".*", "__special", True),
        (["__consumer_offsets"], "__consumer_offsets", "__consumer_offsets", False),
        (["a\\.b", "c"], "a\\.b|c", "a.b", True),
        ([".*"], "(?!(?:secret)$)(?:.*)", "secret", False),
    ],
)
def test_flow_matches_whole_names_and_no_internal_topics(
    topics: list[str], include: str, topic: str, matched: bool
) -> None:
    given = changed("flows", 0, "topics", value=topics)
    given["flows"][0]["include"] = include
    assert parse(given).flow("orders").matches(topic) is matched


@pytest.mark.parametrize(
    ("topics", "regex"),
    [(["orders"], False), (["a\\.b", "c_d-e"], False), (["a.*"], True), (["a.b"], True)],
)
def test_flow_knows_whether_it_is_a_regex(topics: list[str], regex: bool) -> None:
    given = changed("flows", 0, "topics", value=topics)
    assert parse(given).flow("orders").is_regex is regex


@pytest.mark.parametrize(
    ("spark", "message"),
    [
        ({"heap": "lots"}, "not a size such as"),
        ({"fetch": {"max.poll.record": 1}}, "did you mean 'max.poll.records'"),
        ({"fetch": {"sasl.jaas.config": "x"}}, r"spark\.fetch\.sasl\.jaas\.config: unknown key"),
    ],
)
def test_what_spark_cannot_use_is_refused(spark: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(document(spark=spark))


@pytest.mark.parametrize("key", ["metrics_directory", "web_directory"])
def test_directories_for_others_are_absolute_or_absent(key: str) -> None:
    assert getattr(parse(document()), key) is None
    assert getattr(parse(document(**{key: "/var/lib/x"})), key) == "/var/lib/x"
    with pytest.raises(ConfigError, match=key):
        parse(document(**{key: "x"}))
