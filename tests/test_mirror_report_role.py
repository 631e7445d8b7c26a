"""What role mirror_report deploys: settings the report knows, units, links."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from mirror_report.config import Budget, Settings, Spark, Warn
from mirror_report.config.load import parse

from tests.computing import Computed, compute
from tests.loading import ROOT, load
from tests.test_mirror_report_calendars import validated

filters = load("roles/mirror_report/filter_plugins/mirror_report.py", "mirror_report_filters")
ROLE = ROOT / "roles/mirror_report"

MODEL = ROOT / "roles/mirror_model"
SHOWN = {
    "directories": "__mirror_report_directories",
    "files": "__mirror_report_files",
    "links": "__mirror_report_links",
    "as_wanted": "__mirror_report_as_wanted",
    "elapsed": "__mirror_report_timers_elapsed",
    "credentials": "__mirror_report_credentials",
    "executor_credentials": "__mirror_report_executor_credentials",
    "spark_local": "__mirror_report_spark_local",
    "memory": "__mirror_report_memory_max",
    "advisories": "mirror_site | kafka_advisories('kafka-python', '2.3.1') | map(attribute='cve')",
    "kafka_python": "__mirror_report_kafka_python",
}


def shown(**states: tuple[str, ...]) -> dict[str, Any]:
    """What systemd says of the timers: ActiveState, UnitFileState and SubState."""
    lines = [
        "Id=mirror-report.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=static"
    ]
    for name, (active, enabled, *sub) in states.items():
        unit = f"Id={name.replace('_', '-')}.timer\nLoadState=loaded\nNeedDaemonReload=no"
        waits = sub[0] if sub else "waiting" if active == "active" else "dead"
        state = f"ActiveState={active}\nSubState={waits}\nUnitFileState={enabled}"
        lines.append(f"{unit}\n{state}")
    stdout = "\n\n".join(lines)
    return {"__mirror_report_shown": {"stdout": stdout, "stdout_lines": stdout.splitlines()}}


ON, OFF = ("active", "enabled"), ("inactive", "disabled")
BOTH_ON = shown(mirror_report=ON, mirror_report_lag=ON)
SECRETS = {"mirror_report_spark_secrets": {"spark.authenticate.secret": "hush\\hush é"}}
# One host per case: what differs from the defaults, and what systemd says.
CASES: dict[str, dict[str, Any]] = {
    "plain": BOTH_ON,
    "metrics": {**BOTH_ON, "mirror_report_metrics_directory": "/srv/metrics"},
    "web": {**BOTH_ON, "mirror_report_web": True},
    "small": {**BOTH_ON, "mirror_report_heap": "512m"},
    "cluster": {
        **BOTH_ON,
        "mirror_report_spark_master": "spark://master:7077",
        "mirror_report_spark_properties": {"spark.executor.memory": "16g"},
    },
    "spark-here": {**BOTH_ON, **SECRETS, "mirror_report_spark_master": "local[2]"},
    "spark-elsewhere": {**BOTH_ON, **SECRETS, "mirror_report_spark_master": "spark://h:7077"},
    "lag-timer-still-on": {**BOTH_ON, "mirror_report_lag_timer": False},
    "lag-timer-off": {
        **shown(mirror_report=ON, mirror_report_lag=OFF),
        "mirror_report_lag_timer": False,
    },
    "lag-timer-stopped-by-hand": shown(mirror_report=ON, mirror_report_lag=("inactive", "enabled")),
    "timer-without-next": shown(mirror_report=(*ON, "elapsed"), mirror_report_lag=ON),
    "report-running": shown(mirror_report=(*ON, "running"), mirror_report_lag=ON),
}


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Computed:
    """Everything the role computes, by case."""
    cluster = {"bootstrap_servers": ["a:9092"]}
    flow = {"name": "orders", "engine": "mm1", "source": "east", "target": "west", "topics": ["o"]}
    given = {
        "kafka_clusters": {"east": cluster, "west": {"bootstrap_servers": ["b:9092"]}},
        "mirror_flows": [flow],
        "mirrormaker_instances": {"mirrormaker": {"hosts": ["m"], "flows": ["orders"]}},
        "mirror_report_java_home": "/java",
        "__mirror_report_calendars": {
            "intervals": {"mirror_report_schedule": 900, "mirror_report_lag_schedule": 60}
        },
    }
    hosts = {name: {**given, **case} for name, case in CASES.items()}
    return compute(tmp_path_factory.mktemp("role"), [MODEL, ROLE], SHOWN, hosts)


def settings(computed: Computed, case: str) -> dict[str, Any]:
    text = computed[case]["files"]["/etc/mirror-report/config.yaml"]["content"]
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def unit(computed: Computed, case: str, name: str) -> str:
    return str(computed[case]["files"][f"/etc/systemd/system/{name}"]["content"])


def test_every_setting_of_the_report_is_rendered_and_understood(computed: Computed) -> None:
    document = settings(computed, "metrics")
    parse(document)
    kinds = {"": Settings, "warn": Warn, "budget": Budget,
             "spark": Spark}  # fmt: skip
    for part, kind in kinds.items():
        rendered = set(document[part] if part else document) - {"version"}
        assert rendered == {f.name for f in dataclasses.fields(kind)} - {"credentials"}, part


def test_defaults_of_role_and_program_are_the_same(computed: Computed) -> None:
    parsed = parse(settings(computed, "plain"))
    assert parsed.warn == Warn()
    assert parsed.budget == Budget()
    assert (parsed.metrics_directory, parsed.web_directory) == (None, None)
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text(encoding="utf-8"))
    names = ("mirror_report_schedule", "mirror_report_lag_schedule")
    found = validated(**{name: defaults[name] for name in names})["intervals"]
    assert found == {names[0]: parsed.interval_seconds, names[1]: parsed.lag_interval_seconds}


def test_metrics_are_written_to_a_directory_of_their_own_and_linked(computed: Computed) -> None:
    found = computed["metrics"]
    own = settings(computed, "metrics")["metrics_directory"]
    assert found["links"] == {
        f"/srv/metrics/{name}": f"{own}/{name}"
        for name in ("mirror_report.prom", "mirror_report_parity.prom")
    }
    assert found["directories"]["/srv/metrics"] == {"replace": False}, "left as it is"
    assert set(found["links"].values()) <= set(found["files"])
    for name in ("mirror-report.service", "mirror-report-lag.service"):
        assert f"ReadWritePaths=-{own}\n" in unit(computed, "metrics", name)
        assert "ReadWritePaths" not in unit(computed, "plain", name)
    assert computed["plain"]["links"] == {}


def test_lag_runs_behind_the_walls_of_the_report(computed: Computed) -> None:
    report = unit(computed, "metrics", "mirror-report.service").splitlines()
    lag = unit(computed, "metrics", "mirror-report-lag.service").splitlines()
    own = {line for line in set(report) - set(lag) if not line.startswith("#")}
    assert {line.partition("=")[0] for line in own} == {
        "Description",
        "ExecStart",
        "TimeoutStartSec",
    }
    assert "SuccessExitStatus=1 2" in lag


def test_the_record_of_units_runs_behind_the_same_walls_in_the_same_order(
    computed: Computed,
) -> None:
    """What a filter of system calls takes away counts only behind what it allows."""
    report = unit(computed, "plain", "mirror-report.service").splitlines()
    record = unit(computed, "plain", "mirror-report-units.service").splitlines()
    both = set(report) & set(record)
    assert len([line for line in both if line.startswith("Protect")]) > 5
    assert [line for line in record if line in both] == [line for line in report if line in both]


@pytest.mark.parametrize("case", list(CASES))
def test_timers_are_touched_only_if_they_are_not_as_wanted(computed: Computed, case: str) -> None:
    touched = {"lag-timer-still-on", "lag-timer-stopped-by-hand", "timer-without-next"}
    assert computed[case]["as_wanted"] == (case not in touched)


def test_a_timer_without_a_next_trigger_is_started_again(computed: Computed) -> None:
    elapsed = {case: found["elapsed"] for case, found in computed.items() if found["elapsed"]}
    assert elapsed == {"timer-without-next": ["mirror-report.timer"]}


def test_spark_elsewhere_finds_its_secret_among_the_credentials_alone(computed: Computed) -> None:
    found = computed["spark-elsewhere"]
    assert found["credentials"] == {
        "spark-defaults.conf": "spark.authenticate.secret=hush\\\\hush \\u00E9\n"
    }
    assert found["executor_credentials"] == {}
    loaded = "LoadCredential=spark-defaults.conf:/etc/mirror-report/credentials/spark-defaults.conf"
    assert loaded in unit(computed, "spark-elsewhere", "mirror-report.service").splitlines()
    assert loaded in found["files"]["/usr/local/bin/mirror-report"]["content"]
    for file in found["files"].values():
        assert "hush" not in file["content"]
    assert computed["spark-here"]["credentials"] == {}
    assert (found["spark_local"], computed["spark-here"]["spark_local"]) == (False, True)


def last(text: str, name: str) -> str:
    """What systemd makes of a setting that a unit may hold more than once."""
    return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)[-1]


@pytest.mark.parametrize(
    ("case", "limit"), [("plain", "2304M"), ("small", "1536M"), ("cluster", "2304M")]
)
def test_every_process_of_the_report_has_a_limit_and_ends_before_others(
    computed: Computed, case: str, limit: str
) -> None:
    report, lag = (
        unit(computed, case, f"mirror-report{suffix}.service") for suffix in ("", "-lag")
    )
    assert last(report, "MemoryMax") == computed[case]["memory"] == limit
    assert last(lag, "MemoryMax") == "512M", "no Java, so no heap"
    command = computed[case]["files"]["/usr/local/bin/mirror-report"]["content"]
    properties = "\n".join(re.findall(r"--property='?(.*?)'? \\$", command, re.MULTILINE))
    assert last(properties, "MemoryMax") == limit
    for text in (report, lag, properties):
        # Higher than the score of any process without it.
        assert last(text, "OOMScoreAdjust") == "1000"
        assert last(text, "OOMPolicy") == "continue"


def test_no_unit_of_the_report_is_without_a_limit(computed: Computed) -> None:
    units = [path for path in computed["web"]["files"] if path.endswith(".service")]
    assert len(units) == 3
    for path in units:
        assert re.search("^MemoryMax=[0-9]+M$", computed["web"]["files"][path]["content"], re.M)


@pytest.mark.parametrize(
    ("heap", "properties", "limit"),
    [
        ("512m", {}, "1536M"),
        ("2g", {}, "3840M"),
        ("1048576k", {}, "2304M"),
        ("1g", {"spark.driver.memory": "2g"}, "3840M"),
        ("1g", {"spark.driver.memory": 2048}, "3840M"),
        ("1g", {"spark.memory.offHeap.size": "1g"}, "2304M"),
        ("1g", {"spark.memory.offHeap.enabled": True, "spark.memory.offHeap.size": "1g"}, "3328M"),
        ("1g", {"spark.executor.memory": "8g"}, "2304M"),
    ],
)
def test_the_limit_follows_what_java_may_hold(
    heap: str, properties: dict[str, Any], limit: str
) -> None:
    assert filters.report_memory_max(heap, properties) == limit


@pytest.mark.parametrize(
    ("heap", "properties", "named"),
    [
        ("much", {}, "mirror_report_heap: 'much'"),
        ("1g", {"spark.driver.memory": "-1g"}, "spark.driver.memory']: '-1g'"),
    ],
)
def test_a_size_that_is_none_is_named(heap: str, properties: dict[str, Any], named: str) -> None:
    with pytest.raises(AnsibleFilterError) as refused:
        filters.report_memory_max(heap, properties)
    assert named in str(refused.value)


def test_the_release_of_kafka_python_that_is_checked_is_the_one_that_is_installed(
    computed: Computed,
) -> None:
    assert computed["plain"]["kafka_python"] == importlib.metadata.version("kafka-python")
    assert list(computed["plain"]["advisories"]) == ["CVE-2026-10142", "CVE-2026-10143"]
