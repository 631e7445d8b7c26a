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


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings as a person should read them."""
    return sorted(
        findings,
        key=lambda each: (
            -ORDER.index(each.effective),
            each.flow or "",
            each.topic or "",
            each.kind,
            each.partition if each.partition is not None else -1,
        ),
    )


def once(findings: Sequence[Finding]) -> list[Finding]:
    """Findings without repetitions, and without what follows from a permission that is named."""
    lacking = {each.flow for each in findings if each.kind == "missing_permission"}
    kept: dict[Any, Finding] = {}
    for each in findings:
        if each.kind != "permission" or each.flow not in lacking:
            # Flows may share a permission; the command that grants it names it.
            kept.setdefault(each.action if each.kind == "missing_permission" else each, each)
    return list(kept.values())


def failure(error: ReportError, flow: str | None = None) -> Finding:
    """The finding an error stands for."""
    return finding(error.kind, error.message, error.action, flow=flow)


def verdict(findings: Sequence[Finding]) -> Verdict:
    """Exit status and sentence for a list of findings; the worst wins."""
    concerned = [each for each in worst_first(findings) if each.effective != "ok"]
    if not concerned:
        return Verdict(0, "ok", "whole: no finding")
    severity = concerned[0].effective
    others = sum(each.effective == severity for each in concerned) - 1
    more = f" (and {others} more)" if others else ""
    return Verdict(EXIT_CODES[severity], severity, f"{severity}: {concerned[0].message}{more}")
