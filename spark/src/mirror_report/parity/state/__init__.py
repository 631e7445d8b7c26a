"""What parity keeps between runs, and what it hands from one host to another. No Spark."""

from mirror_report.model import SIDES, Side
from mirror_report.parity.state.bundle import Bundle, BundleTopic
from mirror_report.parity.state.manifest import Manifest, basis
from mirror_report.parity.state.records import (
    BASELINE_OFFSETS,
    BEHIND_ALL,
    NEVER,
    SLACK_MS,
    Gap,
    Gone,
    Loss,
    Origin,
    Removal,
    SideState,
    TopicKey,
    Unreadable,
    Widths,
    co_fed,
    fed_by,
)
from mirror_report.parity.state.topics import Alignment, Cut, FatalTopic, Numbers, Summary, Track

__all__ = [
    "BASELINE_OFFSETS",
    "BEHIND_ALL",
    "NEVER",
    "SIDES",
    "SLACK_MS",
    "Alignment",
    "Bundle",
    "BundleTopic",
    "Cut",
    "FatalTopic",
    "Gap",
    "Gone",
    "Loss",
    "Manifest",
    "Numbers",
    "Origin",
    "Removal",
    "Side",
    "SideState",
    "Summary",
    "TopicKey",
    "Track",
    "Unreadable",
    "Widths",
    "basis",
    "co_fed",
    "fed_by",
]
