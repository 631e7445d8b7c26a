"""Findings and the verdict: the worst of a list is the exit status.

``critical`` beats ``unknown`` beats ``warning``: a proved loss stays visible when a cluster is
away, and what could not be asked is never taken for good.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mirror_report.checks.kinds import TABLE
from mirror_report.model import Finding, ReportError, Severity, Verdict

EXIT_CODES: Mapping[Severity, int] = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
ORDER: tuple[Severity, ...] = ("ok", "warning", "unknown", "critical")
WORDS: Mapping[Severity, str] = {
    "ok": "whole",
    "warning": "warning",
    "critical": "critical",
    "unknown": "unknown",
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
    """Make a finding, with the severity of its kind unless another is given."""
    severity = severity or TABLE[kind].severity
    return Finding(severity, kind, flow, topic, partition, count, message, action, accounted)


def effective(one: Finding) -> Severity:
    """Severity that counts: what an earlier run reported is ``ok``."""
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


def once(found: Sequence[Finding]) -> list[Finding]:
    """Findings without repetitions, and without what follows from a permission that is named."""
    lacking = {one.flow for one in found if one.kind == "missing_permission"}
    kept: dict[Any, Finding] = {}
    for one in found:
        if one.kind != "permission" or one.flow not in lacking:
            # Flows may share a permission; the command that grants it names it.
            kept.setdefault(one.action if one.kind == "missing_permission" else one, one)
    return list(kept.values())


def failure(error: ReportError, flow: str | None = None) -> Finding:
    """The finding an error stands for."""
    return finding(error.kind, error.message, error.action, flow=flow)


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
