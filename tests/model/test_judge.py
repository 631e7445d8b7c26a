"""What an inventory is refused for: one behaviour each, and every message has a cure."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from mirror_model import client_names, schema
from mirror_model.engines.mm1 import OPTIONS

from tests.model.conftest import PAIR, Site, mentioned, refused


def test_a_sound_site_passes_without_a_word(site: Site) -> None:
    assert site.judge() == {"errors": [], "warnings": []}


def test_an_empty_site_passes() -> None:
    empty = Site(
        clusters={}, flows=[], instances={}, connect_clusters={}, accept=[],
        hosts=["a"], groups={},
    )  # fmt: skip
    assert empty.judge() == {"errors": [], "warnings": []}


def test_all_problems_are_reported_at_once(site: Site) -> None:
    site.flow["source"] = "eest"
    site.instance["hosts"] = ["mirrror1"]
    site["accept"] = ["CVE-1"]
    assert len(site.judge()["errors"]) == 3


@pytest.mark.parametrize("name", ["clusters", "flows", "instances", "connect_clusters", "accept"])
@pytest.mark.parametrize("value", ["CANARY text", 7, ["CANARY"], {"CANARY": "CANARY"}, None])
def test_nonsense_is_judged_without_a_crash_or_a_secret(site: Site, name: str, value: Any) -> None:
    site[name] = value
    site.judge()


@pytest.mark.parametrize("value", ["CANARY", 7, ["CANARY"], {"a": {"CANARY": 1}}, None, True, [[]]])
def test_nonsense_in_any_key_is_judged_without_a_crash(site: Site, value: Any) -> None:
    places = [
        (site["clusters"]["east"], schema.CLUSTER),
        (site["clusters"]["east"]["identities"]["mirror"], schema.IDENTITY),
        (site.flow, schema.FLOW),
        (site.instance, schema.INSTANCE),
    ]
    for place, keys in places:
        for key in keys:
            before = copy.deepcopy(place)
            place[key.name] = value
            found = site.judge()
            if key.kind == "secret":
                assert "CANARY" not in str(found)
            place.clear()
            place.update(before)


# Unknown keys, at every level


def test_unknown_key_of_a_cluster(site: Site) -> None:
    site["clusters"]["west"]["bootstrap_server"] = ["x:1"]
    refused(site, "kafka_clusters.west", "did you mean 'bootstrap_servers'?")


def test_unknown_key_of_an_identity(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["pasword"] = "CANARY"
    refused(site, "kafka_clusters.east.identities.mirror", "did you mean 'password'?")


def test_unknown_key_of_a_flow(site: Site) -> None:
    site.flow["topic"] = ["x"]
    refused(site, "mirror_flows[orders]", "did you mean 'topics'?")


def test_unknown_key_of_an_instance(site: Site) -> None:
    site.instance["numstreams"] = 2
    refused(site, "mirrormaker_instances.mirrormaker", "did you mean 'num_streams'?")


def test_unknown_option_of_mirrormaker(site: Site) -> None:
    site.instance["mm1_options"] = {"offset.comit.interval.ms": 1}
    refused(site, "mm1_options", "did you mean 'offset.commit.interval.ms'?")


# Names and references


@pytest.mark.parametrize("alias", ["eu.west", "eu west", "", "öst", "a:b"])
def test_alias_that_no_property_name_could_carry(site: Site, alias: str) -> None:
    site["clusters"][alias] = {"bootstrap_servers": ["x:1"]}
    refused(site, f"kafka_clusters.{alias}", "letters, digits")


@pytest.mark.parametrize("alias", ["producer", "consumer", "Admin", "topics", "ssl"])
def test_alias_that_begins_kafkas_own_properties(site: Site, alias: str) -> None:
    site["clusters"][alias] = {"bootstrap_servers": ["x:1"]}
    refused(site, f"kafka_clusters.{alias}", "Kafka's own property names")


@pytest.mark.parametrize("side", ["source", "target"])
def test_undefined_cluster(site: Site, side: str) -> None:
    site.flow[side] = "nort"
    refused(site, f"mirror_flows[orders].{side}", "did you mean 'north'?")


def test_undefined_flow(site: Site) -> None:
    site.instance["flows"] = ["order"]
    refused(site, "mirrormaker_instances.mirrormaker.flows", "did you mean 'orders'?")


def test_undefined_host(site: Site) -> None:
    site.instance["hosts"] = ["mirror3"]
    refused(site, "mirrormaker_instances.mirrormaker.hosts", "did you mean 'mirror")


def test_flow_defined_twice(site: Site) -> None:
    site["flows"].append({**site.flow, "topics": ["other"]})
    refused(site, "mirror_flows[orders]", "used twice")


@pytest.mark.parametrize(
    "name",
    [
        "kafka-mirror",
        "mirrormaker_a",
        "mirrormaker-",
        "Mirrormaker",
        "mirrormaker-A",
        "mirrormaker.a",
        "mirrormaker-" + "x" * 21,
    ],
)
def test_instance_name_that_cannot_be_a_unit_and_user(site: Site, name: str) -> None:
    site["instances"][name] = {"hosts": ["mirror1"], "flows": []}
    refused(site, f"mirrormaker_instances.{name}", "rename it")


def test_instance_name_of_greatest_length(site: Site) -> None:
    site["instances"]["mirrormaker-" + "x" * 20] = site["instances"].pop("mirrormaker")
    assert site.judge()["errors"] == []


# The graph


def test_source_is_target(site: Site) -> None:
    site.flow["target"] = "east"
    refused(site, "mirror_flows[orders].target", "name another cluster")


def test_two_aliases_of_one_cluster(site: Site) -> None:
    site["clusters"]["west"]["bootstrap_servers"] = ["EAST2:9092"]
    site["flows"].pop()
    del site["instances"]["mirrormaker-back"]
    refused(site, "mirror_flows[orders]", "east2:9092")


def test_two_flows_mirror_a_topic_twice(site: Site) -> None:
    site["flows"].append({**site.flow, "name": "more", "topics": [r"pay.*\.eu"]})
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    refused(site, "mirror_flows[more].topics", "'payments.eu'", "'orders'", "arrive twice")


@pytest.mark.parametrize(
    "change",
    [{"topics": ["orders2"]}, {"topics": ["payments"]}, {"target": "north"},
     {"topics": [r"pay.*\.eu"], "topics_exclude": [r"payments\..*"]}],
)  # fmt: skip
def test_flows_that_do_not_overlap(site: Site, change: dict[str, Any]) -> None:
    site["flows"].append({**site.flow, "name": "more", **change})
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    assert site.judge()["errors"] == []


def test_overlapping_flow_that_nothing_runs_is_only_mentioned(site: Site) -> None:
    site["flows"].append({**site.flow, "name": "more"})
    found = site.judge()
    assert found["errors"] == []
    assert "mirror_flows[more]" in found["warnings"][0]


def test_two_flows_carry_a_topic_to_and_fro(site: Site) -> None:
    site["flows"][1]["topics"] = ["refunds", "orders"]
    refused(site, "'back', 'orders'", "'orders' in a circle", "topics_exclude")


def test_circle_over_three_clusters(site: Site) -> None:
    site["flows"][1] |= {"source": "west", "target": "north", "topics": [".*"]}
    site["flows"].append({**site.flow, "name": "close", "source": "north", "target": "east",
                          "topics": [".*"]})  # fmt: skip
    site["instances"]["mirrormaker-close"] = {"hosts": ["mirror2"], "flows": ["close"]}
    refused(site, "west -> north -> east -> west", "in a circle")


def test_no_circle_where_no_topic_goes_all_the_way(site: Site) -> None:
    site["flows"][1] |= {"source": "west", "target": "north", "topics": ["orders"]}
    site["flows"].append({**site.flow, "name": "close", "source": "north", "target": "east",
                          "topics": [r"payments\..*"]})  # fmt: skip
    site["instances"]["mirrormaker-close"] = {"hosts": ["mirror2"], "flows": ["close"]}
    assert site.judge()["errors"] == []


@pytest.mark.parametrize("state", ["stopped", "absent"])
def test_a_mirror_that_does_not_run_closes_no_circle(site: Site, state: str) -> None:
    site["flows"][1]["topics"] = ["orders"]
    site["instances"]["mirrormaker-back"]["state"] = state
    assert site.judge()["errors"] == []


def test_flow_in_two_instances(site: Site) -> None:
    site["instances"]["mirrormaker-copy"] = {"hosts": ["mirror2"], "flows": ["orders"]}
    refused(site, "mirrormaker_instances.mirrormaker-copy.flows", "list all hosts there")


def test_two_flows_in_one_consumer_group(site: Site) -> None:
    site["flows"].append({**site.flow, "name": "more", "target": "north",
                          "group_id": "mirrormaker-orders"})  # fmt: skip
    site["instances"]["mirrormaker-more"] = {"hosts": ["mirror2"], "flows": ["more"]}
    refused(site, "mirror_flows[more].group_id", "'mirrormaker-orders'")


def test_mirrormaker_1_runs_one_flow(site: Site) -> None:
    del site["instances"]["mirrormaker-back"]
    site.instance["flows"] = ["orders", "back"]
    refused(site, "mirrormaker_instances.mirrormaker.flows", "exactly one")


def test_instance_without_flows(site: Site) -> None:
    site.instance["flows"] = []
    refused(site, "mirrormaker_instances.mirrormaker.flows", "is empty")


def test_instance_with_flows_of_another_engine(site: Site) -> None:
    site["flows"][1] |= {"engine": "mm2", "source": "north", "target": "west"}
    site.instance["flows"] = ["orders", "back"]
    del site["instances"]["mirrormaker-back"]
    refused(site, "mirrormaker_instances.mirrormaker.flows", "several engines (mm1, mm2)")


def test_started_instance_without_hosts(site: Site) -> None:
    site.instance["hosts"] = []
    refused(site, "mirrormaker_instances.mirrormaker.hosts", "set state to absent")


def test_absent_instance_needs_neither_flow_nor_report(site: Site) -> None:
    site["flows"] = []
    site["instances"] = {"mirrormaker": {"hosts": ["mirror1"], "state": "absent"}}
    site["groups"] = {}
    assert site.judge()["errors"] == []


@pytest.mark.parametrize("groups", [{}, {"mirror_report": []}, {"mirrormaker": ["mirror1"]}])
def test_mirror_without_report_host(site: Site, groups: dict[str, Any]) -> None:
    site["groups"] = groups
    refused(site, "group mirror_report", "add a host")


def test_groups_are_not_judged_unless_given(site: Site) -> None:
    site["groups"] = None
    assert site.judge()["errors"] == []


# What this version does not run


def test_engine_of_a_later_version(site: Site) -> None:
    site.flow.update({"engine": "mm2-connect", "tasks_max": 2, "consumer_groups": ["app"]})
    refused(site, "mirror_flows[orders].engine", "not yet supported in this version")


def test_unknown_engine(site: Site) -> None:
    site.flow["engine"] = "mm3"
    refused(site, "mirror_flows[orders].engine", "mm1, mm2, mm2-connect")


def test_connect_clusters_of_a_later_version(site: Site) -> None:
    site["connect_clusters"] = {"main": {"kafka": "west"}}
    refused(site, "kafka_connect_clusters", "not yet supported in this version")


@pytest.mark.parametrize(("key", "value"), [("tasks_max", 2), ("consumer_groups", ["a"]),
                                            ("connect", "main")])  # fmt: skip
def test_flow_key_of_another_engine(site: Site, key: str, value: Any) -> None:
    site.flow[key] = value
    refused(site, f"mirror_flows[orders].{key}", "remove it")


def test_worker_properties_mean_nothing_to_mirrormaker_1(site: Site) -> None:
    site.instance["worker_properties"] = {"a": 1}
    refused(site, "mirrormaker_instances.mirrormaker.worker_properties", "mm2")


def test_mirrormaker_1_cannot_rename_topics(site: Site) -> None:
    site.flow["replication_policy"] = "prefix"
    refused(site, "mirror_flows[orders].replication_policy", "identity")


# Obsolete, misplaced and dangerous settings


@pytest.mark.parametrize("option", sorted(client_names.REMOVED_OPTIONS))
def test_removed_option(site: Site, option: str) -> None:
    site.instance["mm1_options"] = {option: 1}
    refused(site, f"mm1_options['{option}']", client_names.REMOVED_OPTIONS[option])


@pytest.mark.parametrize("key", sorted(client_names.CURES))
@pytest.mark.parametrize("side", ["consumer_properties", "producer_properties"])
def test_legacy_client_key(site: Site, key: str, side: str) -> None:
    site.instance[side] = {key: "x"}
    refused(site, f"{side}['{key}']", client_names.CURES[key])


def test_legacy_client_key_of_a_cluster_and_of_a_flow(site: Site) -> None:
    site["clusters"]["west"]["properties"] = {"metadata.broker.list": "x"}
    refused(site, "kafka_clusters.west.properties['metadata.broker.list']")
    site["clusters"]["west"]["properties"] = {}
    site.flow["properties"] = {"consumer.groupid": "x"}
    refused(site, "mirror_flows[orders].properties['consumer.groupid']", "group_id")


def test_flow_property_without_a_side(site: Site) -> None:
    site.flow["properties"] = {"max.poll.records": 1}
    refused(site, "properties['max.poll.records']", "'consumer.' or 'producer.'")


@pytest.mark.parametrize("option", sorted(OPTIONS))
@pytest.mark.parametrize("side", ["consumer_properties", "producer_properties"])
def test_command_line_option_among_properties(site: Site, option: str, side: str) -> None:
    site.instance[side] = {option: 1}
    refused(site, f"{side}['{option}']", "set mm1_options")


@pytest.mark.parametrize("key", sorted(client_names.OWNED_KEYS))
def test_property_that_the_model_writes(site: Site, key: str) -> None:
    site.instance["consumer_properties"] = {key: "CANARY"}
    refused(site, f"consumer_properties['{key}']", "written from the model")


def danger(site: Site, name: str, word: str) -> None:
    refused(site, word, f"list '{name}:orders' in mirror_accept")
    site["accept"] = [f"{name}:orders"]
    found = site.judge()
    assert found["errors"] == []
    assert word in found["warnings"][0]
    site["accept"] = [f"{name}:back"]
    refused(site, word)


@pytest.mark.parametrize("value", [True, "true", "True"])
@pytest.mark.parametrize("layer", ["instance", "flow", "cluster"])
def test_auto_commit(site: Site, value: Any, layer: str) -> None:
    if layer == "instance":
        site.instance["consumer_properties"] = {"enable.auto.commit": value}
    elif layer == "flow":
        site.flow["properties"] = {"consumer.enable.auto.commit": value}
    else:
        site["clusters"]["east"]["properties"] = {"enable.auto.commit": value}
    danger(site, "enable.auto.commit", "enable.auto.commit")


def test_dropping_records_that_cannot_be_written(site: Site) -> None:
    site.instance["mm1_options"] = {"abort.on.send.failure": False}
    danger(site, "abort.on.send.failure", "drops records")


def test_producer_type(site: Site) -> None:
    site.instance["producer_properties"] = {"producer.type": "sync"}
    danger(site, "producer.type", "producer.type")


@pytest.mark.parametrize("value", ["false", 0, "no"])
def test_abort_on_send_failure_is_a_boolean(site: Site, value: Any) -> None:
    site.instance["mm1_options"] = {"abort.on.send.failure": value}
    refused(site, "mm1_options['abort.on.send.failure']", "true or false")


@pytest.mark.parametrize("value", [0, -1, "10000", True, 1.5])
def test_commit_interval_is_a_number(site: Site, value: Any) -> None:
    site.instance["mm1_options"] = {"offset.commit.interval.ms": value}
    refused(site, "mm1_options['offset.commit.interval.ms']", "milliseconds")


def test_starting_at_the_end_is_mentioned(site: Site) -> None:
    site.flow["start"] = "latest"
    found = site.judge()
    assert found["errors"] == []
    assert "mirror_flows[orders].start" in found["warnings"][0]


@pytest.mark.parametrize(
    ("side", "name", "near"),
    [("consumer", "fetch.min.byte", "fetch.min.bytes"), ("producer", "linger.m", "linger.ms")],
)
def test_property_that_looks_mistyped_is_mentioned(
    site: Site, side: str, name: str, near: str
) -> None:
    site.instance[f"{side}_properties"] = {name: 1}
    mentioned(site, f"{side}_properties['{name}']", f"did you mean '{near}'?")


def test_property_of_a_plug_in_passes(site: Site) -> None:
    site.instance["consumer_properties"] = {"my.interceptor.level": 1}
    assert site.judge() == {"errors": [], "warnings": []}


def test_weak_acknowledgement_is_mentioned(site: Site) -> None:
    site.instance["producer_properties"] = {"acks": 1}
    mentioned(site, "producer_properties['acks']", "'west'")


def test_host_that_the_playbooks_pass_by_is_mentioned(site: Site) -> None:
    site["groups"]["mirrormaker"] = ["mirror2"]
    found = site.judge()
    assert found["errors"] == []
    assert "group mirrormaker: 'mirror1'" in found["warnings"][0]


# Versions


@pytest.mark.parametrize("version", ["4.0.0", "4.3.1"])
def test_mirrormaker_1_ended_with_3_9(site: Site, version: str) -> None:
    site.instance["kafka_version"] = version
    refused(site, "mirrormaker_instances.mirrormaker.kafka_version", "set it to 3.9.2")


def test_release_that_misroutes_records(site: Site) -> None:
    site.instance["kafka_version"] = "3.9.1"
    refused(
        site, "mirrormaker_instances.mirrormaker.kafka_version", "CVE-2026-35554", "mirror_accept"
    )
    site["accept"] = ["CVE-2026-35554"]
    found = site.judge()
    assert found["errors"] == []
    assert any("CVE-2026-35554" in warning for warning in found["warnings"])


def test_version_that_is_none(site: Site) -> None:
    site.instance["kafka_version"] = "latest"
    refused(site, "mirrormaker_instances.mirrormaker.kafka_version", "does not match")


# What may be accepted


@pytest.mark.parametrize(
    "entry",
    ["regex-without-auto-creation:orders", "identity:mirrormaker", "CVE-2026-111108",
     "enable.auto.commit:back"],
)  # fmt: skip
def test_known_acceptance(site: Site, entry: str) -> None:
    site["accept"] = [entry]
    assert site.judge() == {"errors": [], "warnings": []}


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ("CVE-2026-35555", "did you mean 'CVE-2026-35554'?"),
        ("everything", "unknown entry"),
        ("abort.on.send.failur:orders", "did you mean 'abort.on.send.failure'?"),
        ("abort.on.send.failure:order", "did you mean 'orders'?"),
        ("identity:orders", "names no instance"),
        ("ssl.endpoint.identification.algorithm:orders", "names no cluster"),
        ("abort.on.send.failure", "did you mean 'abort.on.send.failure:<flow>'?"),
    ],
)
def test_unknown_acceptance(site: Site, entry: str, word: str) -> None:
    site["accept"] = [entry]
    refused(site, "mirror_accept", word)


# Security of clusters


def test_sasl_without_an_identity(site: Site) -> None:
    site["clusters"]["west"]["security_protocol"] = "SASL_PLAINTEXT"
    refused(site, "kafka_clusters.west.identities.mirror", "sasl_mechanism")


@pytest.mark.parametrize("key", ["sasl_mechanism", "username", "password"])
def test_sasl_with_half_an_identity(site: Site, key: str) -> None:
    del site["clusters"]["east"]["identities"]["report"][key]
    refused(site, "kafka_clusters.east.identities.report", key)


@pytest.mark.parametrize("password", ["CANARY\n", "CANARY\rx", "CANARY\0"])
def test_password_that_no_login_can_carry(site: Site, password: str) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["password"] = password
    refused(site, "kafka_clusters.east.identities.mirror.password", "line break")


def test_password_that_is_a_number(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["password"] = 12345
    assert "12345" not in refused(site, "identities.mirror.password", "quote numbers")


@pytest.mark.parametrize(("key", "value"), [("security_protocol", "TLS"),
                                            ("security_protocol", "sasl_ssl")])  # fmt: skip
def test_unknown_protocol(site: Site, key: str, value: str) -> None:
    site["clusters"]["west"][key] = value
    refused(site, "kafka_clusters.west.security_protocol", "SASL_SSL")


def test_unknown_mechanism(site: Site) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["sasl_mechanism"] = "SCRAM"
    refused(site, "identities.mirror.sasl_mechanism", "SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("mechanism", "needs"),
    [("GSSAPI", "keytab"), ("gssapi", "keytab"), ("OAUTHBEARER", "tokens"),
     ("AWS_MSK_IAM", "Amazon's library")],
)  # fmt: skip
def test_a_mechanism_that_is_not_offered_says_what_it_would_need(
    site: Site, mechanism: str, needs: str
) -> None:
    site["clusters"]["east"]["identities"]["mirror"]["sasl_mechanism"] = mechanism
    refused(site, "identities.mirror.sasl_mechanism: ", needs, "use SCRAM-SHA-512")


def test_a_client_certificate(site: Site) -> None:
    site["clusters"]["east"] |= {"security_protocol": "SSL", "identities": {"mirror": PAIR}}
    assert site.judge()["errors"] == []


@pytest.mark.parametrize("key", sorted(PAIR))
def test_half_a_client_certificate(site: Site, key: str) -> None:
    site["clusters"]["east"]["identities"]["mirror"][key] = PAIR[key]
    refused(site, "kafka_clusters.east.identities.mirror", "belong together")


def test_a_client_certificate_without_encryption(site: Site) -> None:
    site["clusters"]["west"]["identities"] = {"mirror": PAIR}
    refused(site, "kafka_clusters.west.identities.mirror.ssl_certificate", "SASL_SSL")


def test_a_key_that_java_cannot_read(site: Site) -> None:
    rsa = PAIR["ssl_key"].replace("PRIVATE", "RSA PRIVATE")
    site["clusters"]["east"]["identities"]["mirror"] |= {**PAIR, "ssl_key": rsa}
    refused(site, "kafka_clusters.east.identities.mirror.ssl_key", "openssl pkcs8")


def test_certificate_authority_without_encryption(site: Site) -> None:
    site["clusters"]["west"]["ssl_ca"] = site["clusters"]["east"]["ssl_ca"]
    refused(site, "kafka_clusters.west.ssl_ca", "SASL_SSL")


def test_certificate_authority_given_as_a_path(site: Site) -> None:
    site["clusters"]["east"]["ssl_ca"] = "/etc/ssl/east.pem"
    refused(site, "kafka_clusters.east.ssl_ca", "PEM")


@pytest.mark.parametrize("servers", [[], ["east1"], ["east1:x"], "east1:9092", [7]])
def test_bootstrap_servers(site: Site, servers: Any) -> None:
    site["clusters"]["north"]["bootstrap_servers"] = servers
    refused(site, "kafka_clusters.north.bootstrap_servers")


@pytest.mark.parametrize(
    "servers", [["[2001:db8::1]:9092"], ["10.0.0.1:9092", "a-b.example.com:1"]]
)
def test_forms_of_bootstrap_servers(site: Site, servers: list[str]) -> None:
    site["clusters"]["north"]["bootstrap_servers"] = servers
    assert site.judge()["errors"] == []


# Values


@pytest.mark.parametrize(
    ("key", "value"),
    [("heap", "1gb"), ("heap", "1"), ("heap", 1), ("num_streams", 0), ("num_streams", "2"),
     ("num_streams", True), ("state", "running"), ("hosts", "mirror1"),
     ("flows", ["orders", "orders"]), ("consumer_properties", ["a"])],
)  # fmt: skip
def test_value_of_an_instance(site: Site, key: str, value: Any) -> None:
    site.instance[key] = value
    assert f"mirrormaker_instances.mirrormaker.{key}" in site.judge()["errors"][0]


def test_property_that_is_a_map(site: Site) -> None:
    site.instance["consumer_properties"] = {"fetch": {"min": 1}}
    refused(site, "consumer_properties['fetch']", "must be text")


@pytest.mark.parametrize("topics", [[], "orders", [""], [7]])
def test_topics(site: Site, topics: Any) -> None:
    site.flow["topics"] = topics
    assert "mirror_flows[orders].topics" in site.judge()["errors"][0]


def test_pattern_out_of_the_portable_subset(site: Site) -> None:
    site.flow["topics_exclude"] = ["(?=x)y"]
    refused(site, "mirror_flows[orders].topics_exclude", "lookahead")
