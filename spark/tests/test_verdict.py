"""Kinds of findings and the verdict: the worst finding decides, unknown is never 0."""

from dataclasses import replace

import pytest

from mirror_report.checks.kinds import TABLE
from mirror_report.checks.verdict import EXIT_CODES, failure, finding, verdict, worst_first
from mirror_report.config import ConfigError
from mirror_report.kafka.connection import AuthenticationError, DeniedError, UnreachableError
from mirror_report.model import ReportError
from mirror_report.state.store import LockedError

EXPECTED = {
    0: "expired repaired",
    1: "altered_timestamp possible_loss hung_transaction heartbeat "
    "duplicate extra unverifiable skipped not_judged coverage backlog nothing_seen lagging "
    "rewound not_running undeclared no_topics partitions_fewer compact_null_keys message_size "
    "timestamp_type timestamp_limit retention sysconfig_drift offset_shift no_groups idle_tasks "
    "distance certificate_expiry permission_unknown not_checked not_proved orphaned "
    "foreign_topic control_access control_record name_too_long broker_too_old regex_disagreement "
    "group_reread group_unmapped group_stale group_unknown",
    2: "missing corrupt_value corrupt_headers moved reordered "
    "truncated reset rewind deleted_early stopped stalled restarting hindered "
    "name_collides topic_missing same_cluster regex_without_auto_creation task_failed takeover "
    "replication_factor internal_topic missing_permission group_skip differs",
    3: "unreachable authentication permission unreadable unknown_lag state parity_unavailable "
    "outdated internal",
}


@pytest.mark.parametrize(
    ("kind", "code"), [(kind, code) for code, some in EXPECTED.items() for kind in some.split()]
)
def test_kind_has_its_exit_status(kind: str, code: int) -> None:
    assert verdict([finding(kind, "message", "action")]).exit_code == code


def test_table_holds_nothing_else() -> None:
    assert set(TABLE) == {kind for some in EXPECTED.values() for kind in some.split()}
    assert all(kind.meaning and kind.cure for kind in TABLE.values())


def test_no_finding_is_whole() -> None:
    assert verdict([]).exit_code == EXIT_CODES["ok"] == 0


def test_critical_beats_unknown_beats_warning() -> None:
    warning, critical, unknown = (
        finding(kind, kind, "") for kind in ("duplicate", "missing", "unreachable")
    )
    assert verdict([warning, unknown]).exit_code == 3
    assert verdict([warning, unknown, critical]).exit_code == 2
    assert [judged.kind for judged in worst_first([warning, unknown, critical])] == [
        "missing", "unreachable", "duplicate",
    ]  # fmt: skip


def test_what_an_earlier_run_reported_no_longer_counts() -> None:
    assert verdict([replace(finding("duplicate", "m", "a"), accounted=True)]).exit_code == 0


def test_text_names_the_worst_and_counts_the_rest() -> None:
    found = [finding("missing", "5 missing", ""), finding("corrupt_value", "1 corrupt", "")]
    assert verdict(found).text == "critical: 1 corrupt (and 1 more)"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnreachableError("x is away", "Start it"), "unreachable"),
        (AuthenticationError("refused", "Compare"), "authentication"),
        (DeniedError("may not", "Grant"), "permission"),
        (LockedError("in use", "Wait"), "state"),
        (ConfigError("wrong", "Correct"), "internal"),
        (ReportError("other", "Cure"), "unreachable"),
    ],
)
def test_error_becomes_a_finding_with_its_cure(error: ReportError, kind: str) -> None:
    found = failure(error)
    assert (found.severity, found.kind) == ("unknown", kind)
    assert f"{found.message}. {found.action}" == str(error)
