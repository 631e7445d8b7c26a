"""What role mirrormaker computes from the model, the host's state and the clusters' answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.computing import Computed, compute
from tests.loading import ROOT

ROLE = ROOT / "roles/mirrormaker"

SHOWN = {
    "node": "__mirrormaker_node",
    "identity": "__mirrormaker_identity",
    "changes": "__mirrormaker_identity_changes",
    "ownership": "__mirrormaker_ownership",
    "command": "__mirrormaker_host.command",
    "environment": "__mirrormaker_host.environment",
    "paths": "__mirrormaker_files.started",
    "former": "__mirrormaker_files.former",
    "secrets": "__mirrormaker_secrets | list",
    "client": "__mirrormaker_client_settings.credentials | list",
    "contents": "__mirrormaker_contents",
    "refusals": "__mirrormaker_check.errors",
    "warnings": "__mirrormaker_check.warnings",
    "written": "__mirrormaker_contents | list",
}

LOGIN = {"sasl_mechanism": "PLAIN", "username": "mirror", "password": "secret"}
CLUSTERS = {
    alias: {
        "bootstrap_servers": [f"{alias}1:9092"],
        "security_protocol": "SASL_PLAINTEXT",
        "identities": {"mirror": LOGIN},
    }
    for alias in ("east", "north", "west")
}


def flow(name: str, engine: str, source: str) -> dict[str, Any]:
    return {"name": name, "engine": engine, "source": source, "target": "west", "topics": [name]}


def answer(*flows: str, brokers: int | None = 1, west: str = "W", **ids: str) -> dict[str, str]:
    """What ``check --json`` says of flows, named ``<name>:<source>``; ids are those of sources."""
    seen = [
        {
            "name": name,
            "source": source,
            "target": "west",
            "source_cluster_id": ids.get(source),
            "target_cluster_id": west,
            "target_brokers": brokers,
        }
        for name, source in (entry.split(":") for entry in flows)
    ]
    return {"stdout": json.dumps({"findings": [], "flows": seen})}


MM1 = [flow("orders", "mm1", "east")]
MM2 = [flow("orders", "mm2", "east"), flow("clicks", "mm2", "north")]
MM2_IDENTITY = {
    "engine": "mm2",
    "policy": "prefix",
    "separator": ".",
    "target": "west",
    "target_cluster_id": "W",
    "source_cluster_ids": {"east": "E", "north": "N"},
    "replication_factor": 2,
}


def collides(flow: str, topic: str) -> dict[str, str]:
    said = {"message": f"west cannot create {topic}", "action": "Delete it"}
    return {"kind": "name_collides", "severity": "critical", "flow": flow, "topic": topic} | said


WIDE = {**MM2[0], "topics": [r"pay\..*"]}
FAILED_TASK = {
    "kind": "task_failed", "severity": "critical", "flow": "orders", "topic": None,
    "message": "task 0 of orders-source has failed", "action": "Restart it",
}  # fmt: skip
COLLIDING = [collides("orders", "pay.a.b"), collides("clicks", "clicks")]

# One host per case: its flows, what it remembers, what the check said.
CASES: dict[str, dict[str, Any]] = {
    "mm1": {"flows": MM1, "checked": answer("orders:east", east="E")},
    "mm2-unchecked": {"flows": MM2},
    "mm2-checked": {
        "flows": MM2,
        "checked": answer("orders:east", "clicks:north", brokers=5, east="E", north="N"),
    },
    "mm2-with-log4j1": {"flows": MM2, "instance": {"kafka_version": "3.9.2"}},
    "several-hosts": {"flows": MM2, "instance": {"hosts": ["a", "b"]}},
    "more-brokers": {
        "flows": MM2,
        "remembered": MM2_IDENTITY,
        "checked": answer("orders:east", "clicks:north", brokers=5, east="E", north="N"),
    },
    "another-target": {
        "flows": MM2,
        "remembered": MM2_IDENTITY,
        "checked": answer("orders:east", "clicks:north", west="V", east="E", north="N"),
    },
    "stopped": {"flows": MM2, "remembered": MM2_IDENTITY},
    "flow-gone": {
        "flows": MM2[:1],
        "remembered": MM2_IDENTITY,
        "checked": answer("orders:east", east="E"),
    },
    "alias-renamed": {
        "flows": [flow("orders", "mm2", "north")],
        "remembered": MM2_IDENTITY | {"source_cluster_ids": {"east": "E"}},
        "checked": answer("orders:north", north="E"),
    },
    "another-instance-checked": {"flows": MM1, "checked": answer("clicks:north", north="N")},
    "another-engine": {
        "flows": MM2,
        "remembered": {"engine": "mm1", "group_id": "mirrormaker-orders", "policy": "identity"},
    },
    "upgraded": {
        "flows": MM2,
        "ownership": {"owner": "role mirrormaker", "created_user": True, "releases": ["3.9.2"]},
    },
    "newer-systemd": {"flows": MM1, "systemd": 257},
    "colliding": {
        "flows": [WIDE, MM2[1]],
        "checked": {"stdout": json.dumps({"findings": COLLIDING, "flows": []})},
    },
    "wide": {"flows": [WIDE, MM2[1]]},
    "task-failed": {
        "flows": MM2,
        "checked": {"stdout": json.dumps({"findings": [FAILED_TASK], "flows": []})},
    },
    "task-failed-on-connect": {
        "flows": MM2,
        "checked": {"stdout": json.dumps({"findings": [FAILED_TASK], "flows": []})},
        "mended": ["task_failed"],
    },
    "quiet": {
        "flows": MM2,
        "level": "OFF",
        "levels": {"org.apache.kafka.clients": "OFF", "org.apache.kafka": "WARN"},
    },
}


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Computed:
    """Everything the role computes, by case."""
    hosts: dict[str, dict[str, Any]] = {}
    for name, case in CASES.items():
        instance = {"hosts": [name], "flows": [entry["name"] for entry in case["flows"]]}
        variables = {
            "kafka_clusters": CLUSTERS,
            "mirror_flows": case["flows"],
            "mirrormaker_instances": {"mirrormaker": instance | case.get("instance", {})},
            "mirror_accept": [],
            "mirrormaker_name": "mirrormaker",
            "mirrormaker_rest_address": "10.0.0.1",
            "mirrormaker_mended_kinds": case.get("mended", []),
            "mirrormaker_log_level": case.get("level", "INFO"),
            "mirrormaker_log_levels": case.get("levels", {}),
            "kafka_releases_directory": "/opt/kafka/releases",
            "kafka_java_home": "/java",
            "__mirrormaker_found": {
                "systemd_version": case.get("systemd", 252),
                "user_exists": "ownership" in case,
                "directory": {
                    "identity": case.get("remembered"),
                    "ownership": case.get("ownership"),
                },
            },
        }
        if "checked" in case:
            variables["__mirrormaker_checked"] = case["checked"]
        hosts[name] = variables
    return compute(tmp_path_factory.mktemp("role"), [ROOT / "roles/kafka", ROLE], SHOWN, hosts)


def test_the_unit_starts_the_script_of_the_instances_own_release(computed: Computed) -> None:
    assert computed["mm1"]["command"][0] == (
        "/opt/kafka/releases/kafka_2.13-3.9.2/bin/kafka-mirror-maker.sh"
    )
    assert computed["mm2-checked"]["command"][0] == (
        "/opt/kafka/releases/kafka_2.13-4.3.1/bin/connect-mirror-maker.sh"
    )


def test_a_host_short_of_memory_ends_others_before_the_mirror(computed: Computed) -> None:
    for case in computed.values():
        (unit,) = [entry for path, entry in case["contents"].items() if path.endswith(".service")]
        assert "\nOOMScoreAdjust=-500\n" in unit["content"]
        heap = int(case["environment"]["KAFKA_HEAP_OPTS"].rpartition("-Xmx")[2].removesuffix("m"))
        assert f"\nMemoryMax={heap * 3 // 2 + 512}M\n" in unit["content"]


def unit_of(case: dict[str, Any]) -> list[str]:
    (unit,) = [entry for path, entry in case["contents"].items() if path.endswith(".service")]
    return str(unit["content"]).splitlines()


def test_no_number_of_starts_ends_a_mirror_for_good(computed: Computed) -> None:
    for case in computed.values():
        limits = [line for line in unit_of(case) if line.startswith("StartLimit")]
        assert limits == ["StartLimitIntervalSec=0"]
    broker = (ROOT / "roles/kafka_broker/templates/kafka-broker.service.j2").read_text("utf-8")
    assert re.findall("^StartLimit.*", broker, re.MULTILINE) == ["StartLimitIntervalSec=0"]


def test_the_pause_before_a_restart_grows_where_systemd_can(computed: Computed) -> None:
    pauses = {
        name: [line for line in unit_of(computed[name]) if line.startswith("Restart")]
        for name in ("mm1", "newer-systemd")
    }
    fixed = ["Restart=on-failure", "RestartSec=30", "RestartForceExitStatus=143"]
    assert pauses["mm1"] == fixed
    growing = ["RestartSteps=4", "RestartMaxDelaySec=180"]
    assert pauses["newer-systemd"] == [*fixed[:2], *growing, *fixed[2:]]


def test_every_variable_of_the_command_is_in_the_environment(computed: Computed) -> None:
    for case in computed.values():
        named = {part.strip("${}") for part in " ".join(case["command"]).split() if "${" in part}
        assert named
        assert named <= set(case["environment"])


@pytest.mark.parametrize(
    ("case", "option", "file"),
    [
        ("mm1", "-Dlog4j.configuration=file:", "log4j.properties"),
        ("mm2-with-log4j1", "-Dlog4j.configuration=file:", "log4j.properties"),
        ("mm2-checked", "-Dlog4j2.configurationFile=", "log4j2.yaml"),
    ],
)
def test_logging_is_written_for_the_library_of_the_release(
    computed: Computed, case: str, option: str, file: str
) -> None:
    path = f"/etc/mirrormaker/{file}"
    assert computed[case]["environment"]["KAFKA_LOG4J_OPTS"] == option + path
    assert path in computed[case]["paths"]


def test_what_another_engine_or_release_left_is_known_and_never_what_is_written(
    computed: Computed,
) -> None:
    assert {Path(path).name for path in computed["mm2-checked"]["former"]} == {
        "consumer.properties", "producer.properties", "log4j.properties",
        "rest.jaas.conf", "worker-secrets.sh",
    }  # fmt: skip
    for case in computed.values():
        assert not set(case["former"]) & set(case["paths"])


def logging(case: dict[str, Any]) -> str:
    return str(case["contents"]["/etc/mirrormaker/log4j2.yaml"]["content"])


def test_levels_stay_words_in_yaml(computed: Computed) -> None:
    loggers = yaml.safe_load(logging(computed["quiet"]))["Configuration"]["Loggers"]
    assert loggers["Root"]["level"] == "OFF"
    assert loggers["Logger"] == [
        {"name": "org.apache.kafka", "level": "WARN"},
        {"name": "org.apache.kafka.clients", "level": "OFF"},
    ]
    plain = yaml.safe_load(logging(computed["mm2-checked"]))["Configuration"]["Loggers"]
    assert "Logger" not in plain


def test_the_process_gets_no_raw_password_and_the_client_every_credential(
    computed: Computed,
) -> None:
    assert computed["mm2-checked"]["secrets"] == [
        "east.mirror.jaas", "north.mirror.jaas", "west.mirror.jaas",
    ]  # fmt: skip
    assert "north.mirror.password" in computed["mm2-checked"]["client"]


def test_the_address_of_a_node_matters_only_where_there_are_several(computed: Computed) -> None:
    path = "/etc/mirrormaker/mm2.properties"
    several, one = (
        computed[case]["contents"][path]["content"] for case in ("several-hosts", "mm2-checked")
    )
    assert "listeners=http://10.0.0.1:8083" in several
    assert "10.0.0.1" not in one


@pytest.mark.parametrize(
    ("case", "brokers", "remembered"),
    [
        pytest.param("mm2-unchecked", None, None, id="unknown"),
        pytest.param("mm2-checked", 5, 3, id="seen"),
        pytest.param("more-brokers", 2, 2, id="remembered-before-seen"),
        pytest.param("stopped", 2, 2, id="remembered-without-check"),
        pytest.param("another-target", 1, 1, id="remembered-of-another-cluster"),
    ],
)
def test_replication_factors_are_chosen_once_per_target(
    computed: Computed, case: str, brokers: int | None, remembered: int | None
) -> None:
    assert computed[case]["node"]["brokers"] == brokers
    assert computed[case]["identity"]["replication_factor"] == remembered


def test_the_ids_of_the_clusters_are_remembered_as_the_engine_needs_them(
    computed: Computed,
) -> None:
    mm1, mm2 = computed["mm1"]["identity"], computed["mm2-checked"]["identity"]
    assert (mm1["source_cluster_id"], mm1["target_cluster_id"]) == ("E", "W")
    assert mm2["source_cluster_ids"] == {"east": "E", "north": "N"}


def test_what_was_not_checked_stays_as_it_is_remembered(computed: Computed) -> None:
    identity = computed["stopped"]["identity"]
    assert identity["source_cluster_ids"] == {"east": "E", "north": "N"}
    assert identity["target_cluster_id"] == "W"


def test_what_the_check_said_of_another_instance_does_not_count(computed: Computed) -> None:
    identity = computed["another-instance-checked"]["identity"]
    assert (identity["source_cluster_id"], identity["target_cluster_id"]) == (None, None)


@pytest.mark.parametrize(
    "case", ["mm1", "mm2-unchecked", "mm2-checked", "more-brokers", "stopped", "flow-gone"]
)
def test_a_flow_that_comes_or_goes_and_a_broker_more_are_no_change(
    computed: Computed, case: str
) -> None:
    assert computed[case]["changes"] == []


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("another-target", "target_cluster_id W -> V"),
        ("alias-renamed", "north"),
        ("another-engine", "engine mm1 -> mm2"),
    ],
)
def test_what_would_mirror_everything_again_is_named(
    computed: Computed, case: str, words: str
) -> None:
    assert words in "; ".join(computed[case]["changes"])


def test_the_id_of_a_former_source_stays_known_until_it_has_another_alias(
    computed: Computed,
) -> None:
    assert computed["flow-gone"]["identity"]["source_cluster_ids"] == {"east": "E", "north": "N"}
    assert computed["alias-renamed"]["identity"]["source_cluster_ids"] == {"north": "E"}


def test_the_removal_knows_every_release_and_whose_the_user_is(computed: Computed) -> None:
    assert computed["mm1"]["ownership"]["releases"] == ["3.9.2"]
    assert computed["upgraded"]["ownership"] == {
        "owner": "role mirrormaker", "created_user": True, "releases": ["3.9.2", "4.3.1"],
    }  # fmt: skip


def test_every_file_that_the_fingerprint_covers_is_written(computed: Computed) -> None:
    for case in computed.values():
        assert set(case["contents"]) == {"/etc/mirrormaker/identity.json", *case["paths"]}


def test_the_identity_is_written_as_it_will_be_read(computed: Computed) -> None:
    for case in computed.values():
        text = case["contents"]["/etc/mirrormaker/identity.json"]["content"]
        assert json.loads(text) == case["identity"]
        assert text.endswith("}\n")


def test_the_unit_with_its_fingerprint_is_written_last(computed: Computed) -> None:
    for case in computed.values():
        assert case["written"] == ["/etc/mirrormaker/identity.json", *case["paths"]]
        assert case["written"][-1] == "/etc/systemd/system/mirrormaker.service"


def test_what_refers_to_credentials_is_for_the_service_alone(computed: Computed) -> None:
    for case in computed.values():
        for path, entry in case["contents"].items():
            if "/run/credentials" in entry["content"] and "systemd" not in path:
                assert (entry["group"], entry["mode"]) == ("mirrormaker", "0640"), path
    properties = computed["mm2-checked"]["contents"]["/etc/mirrormaker/mm2.properties"]
    assert "east.mirror.jaas" in properties["content"]


def test_a_topic_that_collides_is_left_out_where_no_flow_names_it(computed: Computed) -> None:
    path = "/etc/mirrormaker/mm2.properties"
    texts = [computed[case]["contents"][path]["content"] for case in ("wide", "colliding")]
    before, now = ({line for line in text.splitlines() if line[:1] != "#"} for text in texts)
    (excluded,) = [line for line in now - before if "topics.exclude" in line]
    assert excluded.startswith("east->west.topics.exclude=")
    assert r"pay\\.a\\.b" in excluded
    assert computed["colliding"]["refusals"] == [COLLIDING[1]]
    assert computed["colliding"]["warnings"] == [
        "west cannot create pay.a.b. It is left out until it is gone"
    ]
    assert computed["wide"]["refusals"] == []


def test_a_failed_task_is_no_reason_to_stop_where_the_run_starts_it_again(
    computed: Computed,
) -> None:
    assert computed["task-failed"]["refusals"] == [FAILED_TASK]
    assert computed["task-failed"]["warnings"] == []
    connect = computed["task-failed-on-connect"]
    assert connect["refusals"] == []
    assert connect["warnings"] == [FAILED_TASK["message"]]


def test_the_role_names_no_engine_and_holds_no_program() -> None:
    for file in (*ROLE.glob("tasks/*.yml"), *ROLE.glob("vars/**/*.yml"), *ROLE.glob("templates/*")):
        code = [line.partition("#")[0] for line in file.read_text("utf-8").splitlines()]
        assert not re.search(r"\bmm[12]\b|mirrormaker_connect|\{%-? set\b", "\n".join(code)), file
    variables = [
        name
        for file in ROLE.glob("vars/**/*.yml")
        for name in yaml.safe_load(file.read_text("utf-8"))
    ]
    assert 15 < len(variables) <= 25
