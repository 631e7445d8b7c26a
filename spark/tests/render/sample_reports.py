"""Reports to render: one with everything that can be in it, one of a whole mirror, a huge one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

from mirror_report.checks.kinds import TABLE
from mirror_report.checks.verdict import finding, verdict, worst_first
from mirror_report.model import (
    CLASSES,
    ConfigDifference,
    FlowStatus,
    GroupParity,
    GroupPartition,
    GroupState,
    LagPoint,
    LagState,
    ParityStatus,
    PartitionLag,
    Report,
    Sample,
    TopicParity,
    TopicStatus,
)
from mirror_report.render import json as render_json

EVIL = '<script>alert("x")</script>[bold]&\'</style>'
NOW = 1_800_000_000_000
HOUR = 3_600_000
LONG = "x" * 249
"""As long as Kafka lets a topic's name be, with no place to break it."""
BEYOND = 9_223_372_036_854_775
"""A timestamp, in milliseconds, that no calendar reaches."""

COMMAND = (
    "kafka-consumer-groups.sh --bootstrap-server east1:9092,east2:9092,east3:9092 "
    "--group mirrormaker-orders --topic payments:0,1,2,3,4,5 --reset-offsets --to-earliest "
    "--execute"
)


def partition_lag(topic: str, partition: int, state: LagState = "OK", **more: Any) -> PartitionLag:
    """A partition that is not behind, unless given otherwise."""
    values: dict[str, Any] = {
        "log_start": 0, "log_end": 10_000, "position": 10_000, "lag_records": 0,
        "lag_seconds": 0.0, "lag_bytes": 0, "waiting_seconds": 0.0, "produce_rate": 12.0,
        "mirror_rate": 12.0, "eta_seconds": 0.0, "catches_up": True,
        "position_source": "group_commit", "position_age_seconds": 4.0,
    }  # fmt: skip
    return PartitionLag(more.pop("flow", "orders"), topic, partition, state, **values | more)


def parity(
    source_topic: str = "orders", status: ParityStatus = "verified", **more: Any
) -> TopicParity:
    """A topic that is verified, unless given otherwise."""
    values: dict[str, Any] = {
        "flow": "orders", "source_topic": source_topic, "topic": source_topic, "status": status,
        "source_records": 100, "target_records": 100, "verified_records": 100,
        "in_flight_records": 0, "skipped_records": 0, "counts": dict.fromkeys(CLASSES, 0),
        "accounted": {}, "buckets": {"verified": 10}, "verified_through_ms": NOW,
        "newest_due_ms": NOW, "reason": "", "samples": {},
        "strip": {"*": [(NOW - hour * HOUR, "verified") for hour in range(24, 0, -1)]},
    }  # fmt: skip
    return TopicParity(**values | more)


def point(flow: str, topic: str, at_ms: int, lag: int | None) -> LagPoint:
    """One observation."""
    return LagPoint(flow, topic, at_ms, lag, at_ms, lag, lag)


def group_partition(partition: int, state: GroupState, **more: Any) -> GroupPartition:
    """What a group would meet in a partition."""
    values: dict[str, Any] = {
        "source_offset": 500, "image": 480, "image_exact": True, "checkpoint": (450, 430),
        "checkpoint_age_seconds": 12.0, "target_offset": 430, "reread": 50, "skip": 0,
    }  # fmt: skip
    values |= more
    for number in ("reread", "skip"):
        values.setdefault(f"{number}_at_most", values[number])
    return GroupPartition("orders", "east.orders", partition, state, **values)


NOTHING_KNOWN = dict.fromkeys(
    (
        "source_offset", "image", "checkpoint", "checkpoint_age_seconds", "target_offset",
        "reread", "skip",
    )
)  # fmt: skip


def report(**changes: Any) -> Report:
    """A report in which everything occurs: every class, state and kind of finding, and evil."""
    found = worst_first(
        [
            replace(
                finding("missing", f"payments: 2 records missing {EVIL}", COMMAND, flow="orders",
                        topic="payments", count=2),
                partition=3,
            ),
            finding("extra", f"{LONG}: 1 extra", f"kafka-topics.sh --describe --topic {LONG}"),
            replace(
                finding("duplicate", "orders: 1 duplicate", "wait", flow="orders"), accounted=True
            ),
            *(
                finding(kind, f"something about {kind}", f"mirror-report run # {kind}")
                for kind in TABLE
                if kind not in {"missing", "duplicate", "extra"}
            ),
        ]
    )  # fmt: skip
    states: tuple[LagState, ...] = get_args(LagState)
    group_states: tuple[GroupState, ...] = get_args(GroupState)
    statuses: tuple[ParityStatus, ...] = get_args(ParityStatus)
    nothing = dict.fromkeys(
        (
            "log_start", "log_end", "position", "lag_records", "lag_seconds", "lag_bytes",
            "waiting_seconds", "produce_rate", "mirror_rate", "eta_seconds", "catches_up",
            "position_source", "position_age_seconds",
        )
    )  # fmt: skip
    sample = Sample("source", 0, 7, NOW, "ab", "cd" * 16, None, 1024)
    values: dict[str, Any] = {
        "schema_version": render_json.SCHEMA_VERSION,
        "tool": {"name": "mirror-report", "version": "0"},
        "run_id": "20261121T100000Z-00",
        "generated_at": "2026-11-21T10:00:00Z",
        "duration_seconds": 12.5,
        "verdict": verdict(found),
        "coverage": 0.9474,
        "flows": [
            FlowStatus("orders", "mm1", "east", "west", "A" * 22, None, "mirrormaker-orders",
                       "Stable", 3, ("payments", "orders"), None, 0.9474),
            FlowStatus("clicks", "mm2", "east", "north", "A" * 22, "B" * 22, "east-mm2", None,
                       None, ("clicks",), 1.5, None),
        ],
        "lag": [
            partition_lag("payments", 0, "LAGGING", lag_records=1200, position=8800,
                          lag_seconds=75.0, waiting_seconds=3700.0, waiting_at_least=True,
                          lag_bytes=1_300_000, catches_up=False, eta_seconds=None,
                          open_transaction_seconds=400.0),
            partition_lag("payments", 1, "TRUNCATED", lost=3, lost_at_most=40),
            partition_lag("orders", 0),
            partition_lag("orders", 1),
            partition_lag("clicks", 0, "LAGGING", flow="clicks", lag_records=2000, position=8000,
                          lag_seconds=9.0, eta_seconds=61.0, estimate=9500,
                          estimate_source="offset_syncs", estimate_age_seconds=1.0),
            partition_lag("hidden", -1, "UNKNOWN", **nothing),
            partition_lag(LONG, 0, "LAGGING", lag_records=77, position=9923),
            *(partition_lag(f"state-{state}", 0, state) for state in states),
        ],
        "parity": [
            parity("payments", "mismatch", counts={kind: i for i, kind in enumerate(CLASSES)},
                   accounted={"duplicate": 1}, strategy="hash", breach_seconds=-90.0,
                   buckets=dict.fromkeys(statuses, 3), verified_records=90,
                   in_flight_records=5, samples={"missing": [sample]},
                   partitions={"missing": {"0": 1, "1": 1}},
                   strip={str(p): [(NOW - (30 - i) * HOUR, statuses[(i * i + p) % 5])
                                   for i in range(30)] for p in range(6)}),
            parity("orders", "in_flight", breach_seconds=7200.0),
            parity(LONG, "mismatch", counts={"missing": 1},
                   strip={"0": [(NOW, "mismatch")]}),
            parity("clicks", "verified", flow="clicks", topic="east.clicks",
                   strategy="offset_syncs"),
            parity("dark", "unknown", counts=dict.fromkeys(CLASSES), verified_through_ms=None,
                   newest_due_ms=None, strip={}, buckets={}, reason=f"the cluster is away {EVIL}"),
            parity("far", "unverifiable", verified_through_ms=BEYOND, newest_due_ms=BEYOND,
                   strategy="none", strip={"0": [(BEYOND, "unverifiable")]}, reason="no strategy"),
            *(parity(f"status-{status}", status) for status in statuses),
        ],
        "backlog_records": 1234,
        "backlog_bytes": None,
        "spark_started": True,
        "findings": found,
        "errors": ["the west cluster was away for a while"],
        "topics": [
            TopicStatus("orders", "payments", "payments", True, "", 6, 4, (
                ConfigDifference("retention.ms", "604800000", "86400000", "synced"),
                ConfigDifference("max.message.bytes", "2000000", EVIL, "risk"),
                ConfigDifference("cleanup.policy", None, "", "risk"),
            )),
            TopicStatus("orders", LONG, LONG, True, "", 2, 2,
                        (ConfigDifference("segment.bytes", "1", "2", "risk"),)),
            TopicStatus("clicks", "__internal", "east.__internal", False, "excluded: internal", 50,
                        None),
        ],
        "groups": [
            GroupParity("clicks", f"group-{state}", state, 0.5, 50, 0,
                        (group_partition(0, state), group_partition(1, "ready", reread=0)), 50, 0)
            for state in group_states
        ] + [
            GroupParity("clicks", LONG, "skip", 0.0, 0, 7, (group_partition(0, "skip", skip=7),),
                        0, None),
            GroupParity("clicks", "dark", "unknown", None, None, None,
                        (group_partition(0, "unknown", **NOTHING_KNOWN, image_exact=False),)),
            GroupParity("clicks", "none", "not_synced", None, None, None, ()),
        ],
        "history": [
            point("orders", "payments", NOW - i * 60_000,
                  None if 50 < i < 60 else int(1200 + 1000 * math.sin(i / 15)))
            for i in range(240, 0, -1)
        ] + [point("clicks", topic, NOW - i * 60_000, i * 9)
             for topic in ("clicks", LONG) for i in range(240, 0, -1)],
        "valid_until": "2026-11-21T10:45:12Z",
    }  # fmt: skip
    return Report(**values | changes)


def whole(**changes: Any) -> Report:
    """A mirror with which nothing is wrong."""
    values: dict[str, Any] = {
        "findings": [],
        "errors": [],
        "verdict": verdict([]),
        "coverage": 1.0,
        "flows": [FlowStatus("orders", "mm1", "east", "west", "A", "B", "g", "Stable", 3, ("t",))],
        "lag": [partition_lag("t", 0)],
        "parity": [parity("t")],
        "backlog_records": 0,
        "backlog_bytes": 0,
        "topics": [],
        "groups": [],
        "history": [],
    }
    return report(**values | changes)


def empty(**changes: Any) -> Report:
    """A run that found out nothing at all."""
    nothing: dict[str, Any] = {
        name: [] for name in ("flows", "lag", "parity", "topics", "groups", "history", "findings")
    }
    unknown = {"coverage": None, "backlog_records": None, "backlog_bytes": None}
    return report(**nothing | unknown | changes)


def huge() -> Report:
    """Far more than a page may hold: 600 topics, 60 of them with lag over a day."""
    base = report()
    topics = [f"topic-{i:04}" for i in range(600)]
    statuses: tuple[ParityStatus, ...] = ("verified", "mismatch")
    strip = {
        str(p): [(NOW - i * HOUR, statuses[i % 2]) for i in range(200, 0, -1)] for p in range(32)
    }
    history = [point("orders", topic, NOW - i * 300_000, i * 7 % 1000 + 1)
               for topic in topics[:60] for i in range(288, 0, -1)]  # fmt: skip
    return report(
        lag=[partition_lag(topic, p, "LAGGING", lag_records=5) for topic in topics
             for p in range(2)],
        parity=[parity(topic, "mismatch", strip=strip if i < 5 else {})
                for i, topic in enumerate(topics)],
        findings=base.findings * 10,
        groups=base.groups * 40,
        topics=base.topics * 300,
        history=history,
    )  # fmt: skip
