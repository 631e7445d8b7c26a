"""The report as metrics in Prometheus' text format, for node_exporter's textfile collector.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/. A value that is not known is
left out, never 0; a file is written as a whole, so that what vanished is gone from it.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

from mirror_report.model import LagState
from mirror_report.render import figures, rows

LAG_FILE = "mirror_report.prom"
RUN_FILE = "mirror_report_parity.prom"
Plane = Literal["lag", "run"]
Labels = Mapping[str, str]
Value = float | None
# Name, labels, value.
MetricSample = tuple[str, Labels, Value]

TOPIC = "flow, source, target, topic"
# Name -> labels, and what it is. All are gauges in base units.
METRICS: Mapping[str, tuple[str, str]] = {
    "kafka_mirror_lag_records": (TOPIC, "Records of the source not mirrored yet."),
    "kafka_mirror_lag_seconds": (TOPIC, "Age of the oldest record not mirrored yet."),
    "kafka_mirror_lag_bytes": (TOPIC, "Estimated size of the records not mirrored yet."),
    "kafka_mirror_eta_seconds": (TOPIC, "Time until the mirror has caught up; +Inf: never."),
    "kafka_mirror_produce_records_per_second": (TOPIC, "Rate at which the source grows."),
    "kafka_mirror_mirror_records_per_second": (TOPIC, "Rate at which the mirror moves."),
    "kafka_mirror_state": (f"{TOPIC}, state", "1 for the worst state of the topic's partitions."),
    "kafka_mirror_position_age_seconds": (TOPIC, "Age of the oldest position lag rests on."),
    "kafka_mirror_lost_records": (TOPIC, "Records the source dropped before they were mirrored."),
    "kafka_mirror_heartbeat_age_seconds": (
        "flow, source, target",
        "Age of the newest heartbeat MirrorMaker 2 brought along.",
    ),
    "kafka_mirror_parity_records": (f"{TOPIC}, class", "Records that do not match, by class."),
    "kafka_mirror_parity_verified_records": (TOPIC, "Records found equal on both sides."),
    "kafka_mirror_parity_verified_through_timestamp_seconds": (
        TOPIC,
        "Everything up to this time of records is verified.",
    ),
    "kafka_mirror_parity_scanned_timestamp_seconds": (
        TOPIC,
        "When a compacted topic was last compared as a whole.",
    ),
    "kafka_mirror_parity_coverage_ratio": ("flow", "Verified share of the records due."),
    "kafka_mirror_parity_backlog_bytes": ("", "Size of the records due and not read yet."),
    "kafka_mirror_parity_backlog_records": ("", "Records due and not read yet."),
    "kafka_mirror_retention_breach_seconds": (
        TOPIC,
        "Time until retention removes the oldest record not verified; negative: it has begun to.",
    ),
    "kafka_mirror_topic_config_differences": (
        f"{TOPIC}, kind",
        "Settings of the topic that differ between the sides.",
    ),
    "kafka_mirror_topic_partitions": (
        f"{TOPIC}, cluster",
        "Partitions on the source and on the target.",
    ),
    "kafka_mirror_group_reread_records": (
        "flow, group",
        "Records the group would read again after a failover now, at least.",
    ),
    "kafka_mirror_group_reread_at_most_records": (
        "flow, group",
        "Records the group would read again at most; no sample: no bound is known.",
    ),
    "kafka_mirror_group_skip_records": (
        "flow, group",
        "Records the group would never read after a failover now, at least.",
    ),
    "kafka_mirror_group_readiness_ratio": (
        "flow, group",
        "Share of the group's partitions ready for a failover.",
    ),
    "kafka_mirror_findings": ("plane, severity", "Findings that count for the verdict."),
    "kafka_mirror_report_last_run_timestamp_seconds": ("plane", "When the report was last made."),
    "kafka_mirror_report_last_success_timestamp_seconds": (
        "plane",
        "When it last ended with another status than 3 (unknown).",
    ),
    "kafka_mirror_report_interval_seconds": (
        "plane",
        "Interval of its timer, the longest if it differs; after three the report is unknown.",
    ),
    "kafka_mirror_report_duration_seconds": ("plane", "How long it took."),
    "kafka_mirror_report_exit_status": ("plane", "Its exit status."),
    "kafka_mirror_report_info": ("plane, version", "1; the release that made it."),
}

# No name of a topic is longer.
LABEL_LENGTH = 249

SUCCESS = "kafka_mirror_report_last_success_timestamp_seconds"


def lag_samples(
    document: Mapping[str, Any], run: Mapping[str, float], version: str, *, partitions: bool
) -> Iterator[MetricSample]:
    """Samples of a lag document.

    :param run: ``at``, ``duration``, ``interval`` and, if there was one, ``success``, in seconds;
        times since 1970.
    :param partitions: a row per partition instead of one per topic.
    """
    flows = _flows(document)
    single = [row for row in document["lag"] if row["partition"] >= 0]
    for row in single if partitions else rows.lag_by_topic(document["lag"]):
        labels = flows[row["flow"]] | {"topic": row["topic"]}
        if partitions:
            labels["partition"] = str(row["partition"])
        for name, key in (
            ("lag_records", "lag_records"),
            ("lag_seconds", "lag_seconds"),
            ("lag_bytes", "lag_bytes"),
            ("produce_records_per_second", "produce_rate"),
            ("mirror_records_per_second", "mirror_rate"),
            ("position_age_seconds", "position_age_seconds"),
            ("lost_records", "lost"),
        ):
            yield f"kafka_mirror_{name}", labels, row[key]
        eta = math.inf if row["catches_up"] is False else row["eta_seconds"]
        yield "kafka_mirror_eta_seconds", labels, eta
        yield from (
            ("kafka_mirror_state", labels | {"state": arg}, row["state"] == arg)
            for arg in get_args(LagState)
        )
    for flow in document["flows"]:
        age = flow["heartbeat_age_seconds"]
        yield "kafka_mirror_heartbeat_age_seconds", flows[flow["name"]], age
    yield from _plane("lag", document, run, version)


def run_samples(
    document: Mapping[str, Any], run: Mapping[str, float], version: str
) -> Iterator[MetricSample]:
    """Samples of a report document, without its lag: that has a file and a timer of its own.

    :param run: see :func:`lag_samples`.
    """
    flows = _flows(document)
    for row in document["parity"]:
        labels = flows[row["flow"]] | {"topic": row["source_topic"]}
        for name, count in row["counts"].items():
            yield "kafka_mirror_parity_records", labels | {"class": name}, count
        verified = None if row["status"] == "unknown" else row["verified_records"]
        through, scanned = (
            None if (at := row.get(name)) is None else at / 1000
            for name in ("verified_through_ms", "scanned_at_ms")
        )
        yield from (
            ("kafka_mirror_parity_verified_records", labels, verified),
            ("kafka_mirror_parity_verified_through_timestamp_seconds", labels, through),
            ("kafka_mirror_parity_scanned_timestamp_seconds", labels, scanned),
            ("kafka_mirror_retention_breach_seconds", labels, row["breach_seconds"]),
        )
    for flow in document["flows"]:
        yield "kafka_mirror_parity_coverage_ratio", {"flow": flow["name"]}, flow["coverage"]
    yield from (
        ("kafka_mirror_parity_backlog_bytes", {}, document["backlog_bytes"]),
        ("kafka_mirror_parity_backlog_records", {}, document["backlog_records"]),
    )
    for row in (topic for topic in document["topics"] if topic["selected"]):
        labels = flows[row["flow"]] | {"topic": row["topic"]}
        for kind in ("synced", "risk"):
            count = [difference["kind"] for difference in row["differences"]].count(kind)
            yield "kafka_mirror_topic_config_differences", labels | {"kind": kind}, count
        for side in ("source", "target"):
            partitions = row[f"{side}_partitions"]
            yield "kafka_mirror_topic_partitions", labels | {"cluster": side}, partitions
    for row in document["groups"]:
        labels = {"flow": row["flow"], "group": row["group"]}
        yield from (
            ("kafka_mirror_group_reread_records", labels, row["reread"]),
            ("kafka_mirror_group_reread_at_most_records", labels, row["reread_at_most"]),
            ("kafka_mirror_group_skip_records", labels, row["skip"]),
            ("kafka_mirror_group_readiness_ratio", labels, row["readiness"]),
        )
    yield from _plane("run", document, run, version)


def text(samples: Iterable[MetricSample]) -> str:
    """Samples in the text format, grouped by name; what is not known or not a number is left out.

    :raises KeyError: a name that :data:`METRICS` does not describe.
    """
    lines: dict[str, list[str]] = {name: [] for name in METRICS}
    for name, labels, value in samples:
        if value is not None and not math.isnan(value):
            lines[name].append(f"{name}{_labels(labels)} {_number(value)}")
    return "".join(
        "\n".join((f"# HELP {name} {METRICS[name][1]}", f"# TYPE {name} gauge", *samples)) + "\n"
        for name, samples in lines.items()
        if samples
    )


def last_success(before: str) -> float | None:
    """When a report last succeeded, by the text written before."""
    sample = re.search(rf"^{SUCCESS}{{.*}} (\S+)$", before, re.MULTILINE)
    return float(sample[1]) if sample else None


def _flows(document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {
        flow["name"]: {"flow": flow["name"], "source": flow["source"], "target": flow["target"]}
        for flow in document["flows"]
    }


def _plane(
    plane: Plane, document: Mapping[str, Any], run: Mapping[str, float], version: str
) -> Iterator[MetricSample]:
    counts = Counter(
        finding["severity"] for finding in document["findings"] if not finding["accounted"]
    )
    for severity in ("warning", "critical", "unknown"):
        yield "kafka_mirror_findings", {"plane": plane, "severity": severity}, counts[severity]
    yield from report_samples(plane, document["verdict"]["exit_code"], run, version)


def report_samples(
    plane: Plane, status: int, run: Mapping[str, float], version: str
) -> Iterator[MetricSample]:
    """Samples of the making of a report; all there is if it could not be made.

    :param status: the exit status; ``run``: see :func:`lag_samples`.
    """
    labels = {"plane": plane}
    yield from (
        ("kafka_mirror_report_last_run_timestamp_seconds", labels, run["at"]),
        (SUCCESS, labels, run["at"] if status < 3 else run.get("success")),
        ("kafka_mirror_report_interval_seconds", labels, run["interval"]),
        ("kafka_mirror_report_duration_seconds", labels, run["duration"]),
        ("kafka_mirror_report_exit_status", labels, status),
        ("kafka_mirror_report_info", labels | {"version": version}, 1),
    )


def _labels(labels: Labels) -> str:
    escaped = {
        name: _shown(value).replace("\\", r"\\").replace('"', r"\"")
        for name, value in labels.items()
    }
    inner = ",".join(f'{name}="{value}"' for name, value in escaped.items())
    return f"{{{inner}}}" if inner else ""


def _shown(value: str) -> str:
    """A label that differs where names differ: a file with two equal series is refused.

    Names of groups have no bound of Kafka's; a long one is cut and told apart by its digest.
    """
    if len(value) > LABEL_LENGTH:
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        value = f"{value[:LABEL_LENGTH]}...{digest}"
    return figures.plain(value.replace("\\", r"\\"))


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
