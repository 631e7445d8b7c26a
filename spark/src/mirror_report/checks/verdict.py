"""What each finding means for the exit status: the table, and the worst of a list.

``critical`` beats ``unknown`` beats ``warning``: a proved loss stays visible when a cluster is
away, and what could not be asked is never taken for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mirror_report.model.errors import ReportError
from mirror_report.model.findings import Finding, Severity, Verdict

EXIT_CODES: Mapping[Severity, int] = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
ORDER: tuple[Severity, ...] = ("ok", "warning", "unknown", "critical")
WORDS: Mapping[Severity, str] = {
    "ok": "whole",
    "warning": "warning",
    "critical": "critical",
    "unknown": "unknown",
}

TABLE: Mapping[str, tuple[Severity, str]] = {
    # records
    "missing": ("critical", "records of the source are not on the target"),
    "corrupt_value": ("critical", "records arrived with another value"),
    "corrupt_headers": ("critical", "records arrived with other headers"),
    "moved": ("critical", "records arrived in another partition (MirrorMaker 2)"),
    "reordered": (
        "critical",
        "records come after others that they preceded; warning for MirrorMaker 1, by key",
    ),
    "truncated": ("critical", "the source dropped records before they were mirrored"),
    "possible_loss": (
        "warning",
        "the source dropped records that may not have been mirrored before; no more than a bound",
    ),
    "reset": ("critical", "a topic was deleted and created again"),
    "rewind": ("critical", "the end of a log went back: records it had are gone"),
    "deleted_early": ("critical", "records left the target before its retention allows"),
    "differs": ("critical", "digests differ; a warning where the target only holds more"),
    "duplicate": ("warning", "records arrived more than once"),
    "extra": ("warning", "records on the target that the source never had"),
    "altered_timestamp": ("warning", "records arrived with another timestamp"),
    "expired": ("ok", "records left the target by its retention before they were compared"),
    "unverifiable": ("warning", "records that can no longer be compared"),
    "skipped": ("warning", "content that is not compared, such as of a topic the source has lost"),
    "coverage": ("warning", "the verified share of the records due is below its bound"),
    "backlog": ("warning", "records are due and were left for the next run"),
    "offset_shift": ("warning", "offsets of source and target drifted apart (MirrorMaker 2)"),
    "not_proved": ("warning", "a topic was not at rest when it should be proved"),
    "nothing_seen": ("warning", "no record was seen since the baseline, so nothing is proved"),
    # the mirror
    "stopped": ("critical", "records wait and nobody mirrors them"),
    "stalled": ("critical", "records wait, the mirror runs and does not move"),
    "lagging": ("warning", "lag is above its bound"),
    "rewound": ("warning", "the position went back, so duplicates follow"),
    "hung_transaction": (
        "warning",
        "a transaction on the source stays open, so readers of committed records wait",
    ),
    "heartbeat": ("warning", "the newest heartbeat on the target is old (MirrorMaker 2)"),
    "task_failed": ("critical", "a connector or a task of MirrorMaker 2 has failed"),
    "unconfirmed": ("critical", "the process did not take up its work"),
    # topics and configuration
    "topic_missing": ("critical", "a mirrored topic is missing on the target"),
    "no_topics": ("warning", "no topic of the source matches"),
    "partitions_fewer": (
        "warning",
        "the target has fewer partitions than the source; critical for MirrorMaker 2",
    ),
    "compact_null_keys": ("warning", "the target is compacted and refuses records without key"),
    "message_size": ("warning", "the target accepts only smaller records than the source"),
    "timestamp_type": ("warning", "the target replaces the records' timestamps"),
    "timestamp_limit": ("warning", "the target accepts a narrower range of timestamps"),
    "retention": ("warning", "the target keeps records for a shorter time"),
    "same_cluster": ("critical", "source and target are one cluster"),
    "regex_without_auto_creation": (
        "critical",
        "a topic that matches later would block the mirror: the target creates no topics",
    ),
    "takeover": ("critical", "the target holds records the mirror has no position for"),
    "replication_factor": ("critical", "more replicas are asked for than there are brokers"),
    "internal_topic": ("critical", "a topic MirrorMaker 2 keeps for itself is not as it needs it"),
    "missing_permission": (
        "critical",
        "the mirror's identity lacks a permission; unknown for another identity",
    ),
    "no_groups": ("warning", "no consumer group of the source matches, or none was examined"),
    "orphaned": ("warning", "a topic was deleted on the source; what was mirrored is left"),
    "regex_disagreement": (
        "warning",
        "the mirror and the report do not agree on which topics the flow selects",
    ),
    "group_skip": ("critical", "a group that failed over now would never read some records"),
    "group_reread": ("warning", "a group that failed over now would re-read more than its bound"),
    "group_unmapped": ("warning", "a group's position has no counterpart on the target"),
    "group_stale": ("warning", "a group's position on the target no longer follows"),
    "group_unknown": ("warning", "whether a group would skip records cannot be told"),
    "idle_tasks": ("warning", "more streams or tasks than partitions"),
    "sysconfig_drift": ("warning", "the mirror's environment file differs from the model"),
    "certificate_expiry": ("warning", "a certificate ends soon; critical if it has ended"),
    "permission_unknown": ("warning", "whether a permission is there could not be asked"),
    "not_checked": ("warning", "something was left out because it could not be examined"),
    # what we could not find out
    "unreachable": ("unknown", "a cluster does not answer"),
    "authentication": ("unknown", "a cluster refuses our identity"),
    "permission": ("unknown", "our identity lacks a permission"),
    "unreadable": ("unknown", "a topic could not be read, and not for want of a permission"),
    "unknown_lag": ("unknown", "the position or the offsets of a partition are not known"),
    "state": ("unknown", "the report's own state cannot be used"),
    "parity_unavailable": ("unknown", "content was not compared"),
    "outdated": ("unknown", "the last report is too old to say how the mirror is"),
    "internal": ("unknown", "the report itself failed"),
}


def finding(
    kind: str,
    message: str,
    action: str,
    *,
    flow: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    count: int | None = None,
    accounted: bool = False,
    severity: Severity | None = None,
) -> Finding:
    """Make a finding, with the severity its kind has in the table unless told otherwise."""
    severity = severity or TABLE[kind][0]
    return Finding(severity, kind, flow, topic, partition, count, message, action, accounted)


def effective(one: Finding) -> Severity:
    """Severity that counts now: what an earlier run reported no longer does."""
    return "ok" if one.accounted else one.severity


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings as a person should read them."""
    return sorted(
        findings,
        key=lambda one: (
            -ORDER.index(effective(one)),
            one.flow or "",
            one.topic or "",
            one.kind,
            one.partition if one.partition is not None else -1,
        ),
    )


def failure(error: ReportError, flow: str | None = None) -> Finding:
    """Turn an error of one of the rooms into the finding it stands for."""
    kinds = {
        "UnreachableError": "unreachable",
        "AuthenticationError": "authentication",
        "DeniedError": "permission",
        "StateError": "state",
        "LockedError": "state",
        "ConfigError": "internal",
    }
    text = str(error)
    message, _, action = text.partition(". ")
    return finding(kinds.get(type(error).__name__, "unreachable"), message, action, flow=flow)


def verdict(findings: Sequence[Finding]) -> Verdict:
    """Exit status and sentence for a list of findings; the worst wins."""
    found = {effective(one) for one in findings}
    severity: Severity = next((one for one in reversed(ORDER) if one in found), "ok")
    if severity == "ok":
        return Verdict(0, "ok", "whole: no finding")
    concerned = [one for one in worst_first(findings) if effective(one) == severity]
    more = f" (and {len(concerned) - 1} more)" if len(concerned) > 1 else ""
    return Verdict(
        EXIT_CODES[severity], severity, f"{WORDS[severity]}: {concerned[0].message}{more}"
    )
