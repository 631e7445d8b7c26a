"""The unit of a mirror, watched while it takes up its work."""

import time
from dataclasses import dataclass

from mirror_report import units
from mirror_report.checks import causes

# As many processes of a unit may end before it counts as one that cannot run.
ENDS = 3


@dataclass(frozen=True)
class UnitWatch:
    """The unit of the flows' process on this host.

    :param name: empty: it is not known, and not watched.
    :param before: how often its process had ended before what is watched began.
    """

    name: str = ""
    before: int = 0

    @classmethod
    def of(cls, name: str | None, before: int | None = None) -> "UnitWatch":
        """Begin to watch a unit.

        :param before: ``None``: all ends so far were before the watch.
        :raises ReportError: systemd does not answer.
        """
        begun = units.state_of(name) if name else None
        so_far = begun.ends if begun else 0
        return cls(name or "", so_far if before is None else before)

    def failed(self) -> str:
        """That its process has ended too often, how and why; empty: it has not."""
        now = units.state_of(self.name) if self.name else None
        ends = now.ends - self.before if now else 0
        if ends < ENDS:
            return ""
        why = causes.first_end(causes.by_process(units.journal_of(self.name))[0][-ends:])
        return f"its process ended {ends} times" + (f", {why}" if why else "")

    def why(self) -> str:
        """What the running process logs against its work, as the end of a sentence."""
        if not self.name:
            return ""
        cause = causes.cause(causes.by_process(units.journal_of(self.name))[1], time.time())
        return f"; by its journal, {causes.in_words(cause)}" if cause else ""
