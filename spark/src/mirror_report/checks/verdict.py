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
    count: int | None = None,
) -> Finding:
    """Make a finding, with the severity of its kind."""
    return Finding(TABLE[kind].severity, kind, flow, topic, None, count, message, action)


def effective(found: Finding) -> Severity:
    """Severity that counts: what an earlier run reported is ``ok``."""
    return "ok" if found.accounted else found.severity


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings as a person should read them."""
    return sorted(
        findings,
        key=lambda found: (
            -ORDER.index(effective(found)),
            found.flow or "",
            found.topic or "",
            found.kind,
            found.partition if found.partition is not None else -1,
        ),
    )


def once(findings: Sequence[Finding]) -> list[Finding]:
    """Findings without repetitions, and without what follows from a permission that is named."""
    lacking = {found.flow for found in findings if found.kind == "missing_permission"}
    kept: dict[Any, Finding] = {}
    for found in findings:
        if found.kind != "permission" or found.flow not in lacking:
            # Flows may share a permission; the command that grants it names it.
            kept.setdefault(found.action if found.kind == "missing_permission" else found, found)
    return list(kept.values())


def failure(error: ReportError, flow: str | None = None) -> Finding:
    """The finding an error stands for."""
    return finding(error.kind, error.message, error.action, flow=flow)


def verdict(findings: Sequence[Finding]) -> Verdict:
    """Exit status and sentence for a list of findings; the worst wins."""
    levels = {effective(found) for found in findings}
    severity: Severity = next((level for level in reversed(ORDER) if level in levels), "ok")
    if severity == "ok":
        return Verdict(0, "ok", "whole: no finding")
    concerned = [found for found in worst_first(findings) if effective(found) == severity]
    more = f" (and {len(concerned) - 1} more)" if len(concerned) > 1 else ""
    return Verdict(
        EXIT_CODES[severity], severity, f"{WORDS[severity]}: {concerned[0].message}{more}"
    )
