"""The state of a run: the manifest, the plan and the findings so far."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from mirror_report.model import Finding
from mirror_report.parity.plan import RunPlan, Unread, work
from mirror_report.parity.state import Manifest


@dataclass(frozen=True)
class RunState:
    """The state of a run; each step makes another one.

    :param left: buckets that differ and wait for a later run.
    """

    manifest: Manifest
    plan: RunPlan
    findings: tuple[Finding, ...] = ()
    left: int = 0

    def with_findings(self, findings: Iterable[Finding]) -> Self:
        """Report more."""
        return replace(self, findings=(*self.findings, *findings))

    def with_new(self, findings: Iterable[Finding]) -> Self:
        """Report what no later run will find again."""
        new = [finding for finding in dict.fromkeys(findings) if finding not in self.findings]
        manifest = replace(self.manifest, new_findings=(*self.manifest.new_findings, *new))
        return replace(self, manifest=manifest).with_findings(new)

    def with_unread(self, unread: Unread) -> Self:
        """Keep what cannot be read, and leave alone topics that have too much of it."""
        return replace(
            self,
            manifest=replace(self.manifest, unreadable=unread.records),
            plan=self.plan.without(unread.topics),
        )

    def with_positions(self) -> Self:
        """Keep the positions that decided; those of other topics stay as they were."""
        positions = dict(self.manifest.positions) | {
            name: work.relevant_positions(self.manifest, self.plan, snapshot)
            for name, snapshot in self.plan.snapshots.items()
        }
        return replace(self, manifest=replace(self.manifest, positions=positions))
