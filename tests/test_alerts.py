"""Every alert fires in its case and is silent otherwise, over documented metrics."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from mirror_report.model import CLASSES
from mirror_report.render.prometheus import METRICS

from tests.loading import ROOT

ALERTS = ROOT / "files/alerts"
CACHE = Path(
    os.environ.get("MIRROR_LAB_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-mirror-lab"
)
PROMTOOL = CACHE / "bin/promtool"  # brought by lab/bootstrap

MINUTES = 400
TOPIC = 'flow="f",source="east",target="west",topic="t"'
LAST_RUN = "kafka_mirror_report_last_run_timestamp_seconds"
UNIT = 'node_systemd_unit_state{{name="{}.service",state="failed"}}'
Series = dict[str, str]


def constant(value: float | str) -> str:
    """The same value at every minute; promtool repeats only numbers with digits."""
    return " ".join(["Inf"] * MINUTES) if value == "Inf" else f"{value}x{MINUTES}"


def growing(step: float) -> str:
    """A value that grows by a step every minute."""
    return f"0+{step}x{MINUTES}"


def case_of(series: str, fires: str, silent: str) -> tuple[Series, Series]:
    """A case of one series: with these values the alert fires, with those it does not."""
    return {series: fires}, {series: silent}


def above(series: str, bound: float, more: float = 1) -> tuple[Series, Series]:
    """A case of a bound that must be passed."""
    return case_of(series, constant(bound + more), constant(bound))


def state(name: str) -> str:
    return f'kafka_mirror_state{{{TOPIC},state="{name}"}}'


def wrong(name: str) -> str:
    return f'kafka_mirror_parity_records{{{TOPIC},class="{name}"}}'


def stopped(plane: str, interval: float) -> tuple[Series, Series]:
    """A case of an interval: the last report is as old as the test, and an interval may be long."""
    last = f'{LAST_RUN}{{plane="{plane}"}}'
    every = f'kafka_mirror_report_interval_seconds{{plane="{plane}"}}'
    rare = {last: constant(0), every: constant(MINUTES * 60)}
    return {last: constant(0), every: constant(interval)}, rare


# Alert -> series with which it fires, and series with which it stays silent.
CASES: dict[str, tuple[Series, Series]] = {
    "MirrorReportAbsent": (
        {f'{LAST_RUN}{{plane="run"}}': growing(60)},
        {f'{LAST_RUN}{{plane="lag"}}': growing(60)},
    ),
    "MirrorReportNeverMade": (
        {f'{LAST_RUN}{{plane="lag"}}': growing(60)},
        {f'{LAST_RUN}{{plane="run"}}': growing(60)},
    ),
    "MirrorLagStale": stopped("lag", 60),
    "MirrorReportStale": stopped("run", 3600),
    "MirrorReportUnknown": case_of(
        'kafka_mirror_report_exit_status{plane="lag"}', constant(3), constant(2)
    ),
    "MirrorMetricsUnreadable": above("node_textfile_scrape_error", 0),
    "MirrorFindingCritical": above('kafka_mirror_findings{plane="run",severity="critical"}', 0),
    "MirrorFindingWarning": above('kafka_mirror_findings{plane="run",severity="warning"}', 0),
    "MirrorNotMoving": above(state("STOPPED"), 0),
    "MirrorSetBack": above(state("TRUNCATED"), 0),
    "MirrorRecordsLost": above(f"kafka_mirror_lost_records{{{TOPIC}}}", 0),
    "MirrorLagsTooLong": above(f"kafka_mirror_lag_seconds{{{TOPIC}}}", 600),
    "MirrorNeverCatchesUp": (
        {f"kafka_mirror_eta_seconds{{{TOPIC}}}": constant("Inf"),
         f"kafka_mirror_lag_records{{{TOPIC}}}": constant(5)},
        {f"kafka_mirror_eta_seconds{{{TOPIC}}}": constant(1e9),
         f"kafka_mirror_lag_records{{{TOPIC}}}": constant(5)},
    ),
    "MirrorHeartbeatOld": above(
        'kafka_mirror_heartbeat_age_seconds{flow="f",source="east",target="west"}', 300
    ),
    "MirrorRecordsWrong": above(wrong("missing"), 0),
    "MirrorRecordsOdd": above(wrong("duplicate"), 0),
    "MirrorCoverageLow": above('kafka_mirror_parity_coverage_ratio{flow="f"}', 0.95, -0.01),
    "MirrorBacklogGrows": case_of(
        "kafka_mirror_parity_backlog_records", growing(10), f"{MINUTES}-1x{MINUTES}"
    ),
    "MirrorVerificationExpires": above(
        f"kafka_mirror_retention_breach_seconds{{{TOPIC}}}", 7200, -1
    ),
    "MirrorPartitionsDiffer": (
        {f'kafka_mirror_topic_partitions{{{TOPIC},cluster="source"}}': constant(4),
         f'kafka_mirror_topic_partitions{{{TOPIC},cluster="target"}}': constant(3)},
        {f'kafka_mirror_topic_partitions{{{TOPIC},cluster="source"}}': constant(4),
         f'kafka_mirror_topic_partitions{{{TOPIC},cluster="target"}}': constant(4)},
    ),
    "MirrorTopicSettingsRisky": above(
        f'kafka_mirror_topic_config_differences{{{TOPIC},kind="risk"}}', 0
    ),
    "MirrorGroupWouldSkip": above('kafka_mirror_group_skip_records{flow="f",group="g"}', 0),
    "MirrorGroupNotReady": above('kafka_mirror_group_readiness_ratio{flow="f",group="g"}', 1, -0.1),
    "MirrorProcessFailed": above(UNIT.format("mirrormaker-payments"), 0),
    "MirrorProcessRestarts": case_of(
        'node_systemd_service_restart_total{name="mirrormaker.service"}', growing(1), growing(0.1)
    ),
    "MirrorReportFailed": above(UNIT.format("mirror-report-lag"), 0),
    "MirrorMaker1DropsRecords": case_of(
        "kafka_mirrormaker_dropped_records_total", growing(1), constant(7)
    ),
    "MirrorMaker1ReadsNothing": (
        {'kafka_consumer_records_consumed_total{client_id="c"}': constant(9),
         'kafka_consumer_records_lag_max{client_id="c"}': constant(5)},
        {'kafka_consumer_records_consumed_total{client_id="c"}': constant(9),
         'kafka_consumer_records_lag_max{client_id="c"}': constant(0)},
    ),
    "MirrorMaker1CannotSend": case_of(
        'kafka_producer_record_errors_total{client_id="c"}', growing(1), constant(7)
    ),
    "MirrorMaker2Late": above(
        "kafka_connect_mirror_source_connector_replication_latency_ms_max", 60_000
    ),
    "MirrorMaker2ReadsOldRecords": above(
        "kafka_connect_mirror_source_connector_record_age_ms_max", 600_000
    ),
    "MirrorMaker2CheckpointsLate": above(
        "kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms_max", 300_000
    ),
    "ConnectTaskFailed": above("kafka_connect_worker_connector_failed_task_count", 0),
    "ConnectWithoutTasks": above('kafka_connect_worker_task_count{job="j"}', 1, -1),
    "ConnectRebalancesForLong": above("kafka_connect_worker_rebalancing", 0),
    "ConnectCannotCommit": above(
        'kafka_connect_task_offset_commit_failure_ratio{connector="c",task="0"}', 0.1
    ),
}  # fmt: skip


def rules() -> list[dict[str, Any]]:
    """Every alert of every file."""
    found = []
    for path in sorted(ALERTS.glob("*.yml")):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            found += group["rules"]
    return found


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROMTOOL), *map(str, arguments)], capture_output=True, text=True, check=False
    )


def metrics_of(expression: str) -> set[str]:
    """Names of the metrics of an expression: what is no function, label or keyword."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(?:by|ignoring|on)\s*\([^)]*\)", "", expression)
    return set(re.findall(r"\b(?:kafka|node|jvm)_\w+", bare))


def test_every_alert_has_a_case_and_every_case_an_alert() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    assert set(names) == set(CASES)


def test_every_alert_fires_in_its_case_and_is_silent_otherwise(tmp_path: Path) -> None:
    tests = []
    for name, cases in CASES.items():
        for series, count in zip(cases, (1, 0), strict=True):
            firing = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
            tests.append(
                {
                    "interval": "1m",
                    "input_series": [{"series": key, "values": v} for key, v in series.items()],
                    "promql_expr_test": [
                        {
                            "expr": firing,
                            "eval_time": f"{MINUTES - 10}m",
                            "exp_samples": [{"labels": "{}", "value": count}] if count else [],
                        }
                    ],
                }
            )
    document = {
        "rule_files": [str(path) for path in sorted(ALERTS.glob("*.yml"))],
        # Every tenth minute proves as much as each of them.
        "evaluation_interval": "10m",
        "tests": tests,
    }
    (tmp_path / "cases.yml").write_text(yaml.safe_dump(document))
    done = promtool("test", "rules", tmp_path / "cases.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_finds_nothing_wrong_with_the_files() -> None:
    done = promtool("check", "rules", "--lint-fatal", *sorted(ALERTS.glob("*.yml")))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert re.search(
        r"mirror-report|journalctl|systemctl|mirror_report_", rule["annotations"]["runbook"]
    )


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_speaks_of_labels_that_its_metric_has(rule: dict[str, Any]) -> None:
    (name, *_) = metrics_of(rule["expr"])
    if name not in METRICS:
        return
    labels = set(METRICS[name][0].split(", ")) | {"instance"}
    text = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels
    assert set(re.findall(r'(\w+)=~?"', rule["expr"])) <= labels


def test_alerts_on_the_report_know_its_metrics_and_classes() -> None:
    text = (ALERTS / "report.yml").read_text(encoding="utf-8")
    names = {name for group in yaml.safe_load(text)["groups"] for rule in group["rules"]
             for name in metrics_of(rule["expr"])}  # fmt: skip
    assert names - {"node_textfile_scrape_error"} <= set(METRICS)
    classes = set(re.findall(r"\w+", " ".join(re.findall(r'class=~"([^"]+)"', text))))
    assert classes == set(CLASSES) - {"expired", "unverifiable"}


# What the exporter matches patterns against, as Kafka names it -> the metric that alerts use.
BEANS = {
    "kafka.tools<type=MirrorMaker, name=MirrorMaker-numDroppedMessages><>Value: 3":
        "kafka_mirrormaker_dropped_records_total",
    "kafka.consumer<type=consumer-fetch-manager-metrics, client-id=g-0><>records-consumed-total: 3":
        "kafka_consumer_records_consumed_total",
    "kafka.consumer<type=consumer-fetch-manager-metrics, client-id=g-0><>records-lag-max: 3":
        "kafka_consumer_records_lag_max",
    "kafka.consumer<type=consumer-fetch-manager-metrics, client-id=g-0, topic=t><>records-consumed-total: 3":  # noqa: E501
        "",
    "kafka.producer<type=producer-metrics, client-id=p><>record-error-total: 3":
        "kafka_producer_record_errors_total",
    "kafka.connect.mirror<type=MirrorSourceConnector, target=west, topic=east.t, partition=0><>replication-latency-ms-max: 3":  # noqa: E501
        "kafka_connect_mirror_source_connector_replication_latency_ms_max",
    "kafka.connect.mirror<type=MirrorSourceConnector, source=east, target=west, topic=east.t, partition=0><>record-age-ms-max: 3":  # noqa: E501
        "kafka_connect_mirror_source_connector_record_age_ms_max",
    "kafka.connect.mirror<type=MirrorSourceConnector, target=west, topic=east.t, partition=0><>record-age-ms: 3":  # noqa: E501
        "",
    "kafka.connect.mirror<type=MirrorCheckpointConnector, source=east, target=west, group=g, topic=t, partition=0><>checkpoint-latency-ms-max: 3":  # noqa: E501
        "kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms_max",
    "kafka.connect<type=connect-worker-metrics><>task-count: 3": "kafka_connect_worker_task_count",
    "kafka.connect<type=connect-worker-metrics, connector=MirrorSourceConnector><>connector-failed-task-count: 3":  # noqa: E501
        "kafka_connect_worker_connector_failed_task_count",
    "kafka.connect<type=connect-worker-rebalance-metrics><>rebalancing: 1":
        "kafka_connect_worker_rebalancing",
    "kafka.connect<type=connector-task-metrics, connector=c, task=0><>offset-commit-failure-percentage: 0.5":  # noqa: E501
        "kafka_connect_task_offset_commit_failure_ratio",
}  # fmt: skip


def named(bean: str) -> str:
    """The name that the exporter gives to a value: its first rule that matches decides."""
    document = yaml.safe_load((ROOT / "files/jmx_exporter.yml").read_text(encoding="utf-8"))
    for rule in document["rules"]:
        found = re.match(rule["pattern"], bean)
        if found:
            text = re.sub(r"\$(\d)", lambda part, of=found: of[int(part[1])], rule["name"])
            return re.sub(r"\W", "_", text).lower()
    return ""


@pytest.mark.parametrize(("bean", "name"), BEANS.items(), ids=lambda text: text[-40:])
def test_the_exporter_gives_each_value_the_name_that_alerts_use(bean: str, name: str) -> None:
    assert named(bean) == name


def test_alerts_on_processes_use_no_name_that_nothing_exports() -> None:
    used = {
        name
        for file in ("mm1.yml", "mm2.yml", "connect.yml")
        for group in yaml.safe_load((ALERTS / file).read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
        for name in metrics_of(rule["expr"])
    }
    assert used == set(BEANS.values()) - {""}
