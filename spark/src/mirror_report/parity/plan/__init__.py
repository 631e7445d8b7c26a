"""The plan of a run: offsets to read, and how to compare them. Pure: no Spark, no I/O."""

from mirror_report.parity.plan.differences import Differences, Rows
from mirror_report.parity.plan.offset_syncs import SyncsRead
from mirror_report.parity.plan.ranges import (
    CHUNK_BYTES,
    Range,
    Spent,
    TopicAtRest,
    total_bytes,
    total_records,
)
from mirror_report.parity.plan.run_plan import RunPlan, Superseded
from mirror_report.parity.plan.scans import CompactedTopic, ComparedTopic, Scan
from mirror_report.parity.plan.sides import Reopened
from mirror_report.parity.plan.snapshots import FlowSnapshot, FlowSnapshots
from mirror_report.parity.plan.topics import FlowPlan, TopicPlan
from mirror_report.parity.plan.unreadable import Unread
from mirror_report.parity.plan.verification_start import Observation, Watch

__all__ = [
    "CHUNK_BYTES",
    "CompactedTopic",
    "ComparedTopic",
    "Differences",
    "FlowPlan",
    "FlowSnapshot",
    "FlowSnapshots",
    "Observation",
    "Range",
    "Reopened",
    "Rows",
    "RunPlan",
    "Scan",
    "Spent",
    "Superseded",
    "SyncsRead",
    "TopicAtRest",
    "TopicPlan",
    "Unread",
    "Watch",
    "total_bytes",
    "total_records",
]
