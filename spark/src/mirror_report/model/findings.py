"""Findings, and the verdict."""

from dataclasses import dataclass, replace
from typing import Literal, Self

Severity = Literal["ok", "warning", "critical", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One fact that the report states, with what to do about it.

    :param kind: a key of the table of :mod:`mirror_report.checks.kinds`.
    :param count: records or partitions concerned, if countable.
    :param action: what to do next, with the exact command where there is one.
    :param accounted: already reported by an earlier run; no longer raises the verdict.
    """

    severity: Severity
    kind: str
    flow: str | None
    topic: str | None
    partition: int | None
    count: int | None
    message: str
    action: str
    accounted: bool = False

    @property
    def effective(self) -> Severity:
        """Severity that counts: what an earlier run reported is ``ok``."""
        return "ok" if self.accounted else self.severity

    def rated(self, severity: Severity) -> Self:
        """The same, of another severity than its kind has as a rule."""
        return replace(self, severity=severity)


@dataclass(frozen=True)
class Verdict:
    """The worst finding, as an exit status and a sentence."""

    exit_code: int
    severity: Severity
    text: str
