"""A mirror's process, by systemd and its journal."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cause:
    """Why a mirror does not run, or does not move, by the log of its process.

    :param kind: a key of ``checks.causes.WORDS``.
    :param address: of the broker that was asked; like ``topic`` empty if nothing names it.
    :param at: when it was logged last, in seconds since the epoch; the cause is the same at any
        time.
    """

    kind: str
    address: str = ""
    topic: str = ""
    at: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class JournalLine:
    """One entry of a unit's journal.

    :param at: seconds since the epoch.
    :param ended: in an entry of systemd, how the process ended, such as ``exit status 255``.
    """

    at: float
    text: str
    ended: str = ""


@dataclass(frozen=True)
class UnitState:
    """A unit as ``systemctl show`` describes it.

    :param active: such as ``active``, ``activating``, ``inactive``; ``sub``: in more detail.
    :param restarts: by systemd itself, since it was last started by hand.
    :param running_seconds: for how long its process has run; ``None``: there is none.
    """

    active: str
    sub: str
    restarts: int
    running_seconds: float | None

    @property
    def ends(self) -> int:
        """How often its process has ended by itself since it was last started by hand."""
        return self.restarts + (self.sub.startswith(("auto-restart", "failed")))


@dataclass(frozen=True)
class UnitRecord:
    """What root recorded of a mirror's unit on this host.

    :param at: when, in seconds since the epoch.
    :param history: over the last hour: when it was observed, and how often its process had ended
        by then.
    :param ended: how the last process ended that did; empty: none has.
    :param cause: why it does not run or move, by its journal; not every cause keeps it from that.
    :param refused: answers of clusters that refuse the mirror's own login; ``tried``: when one was
        tried last.
    :param problem: why it could not be observed as a whole; empty: it could.
    """

    name: str
    active: str
    sub: str
    at: float = 0.0
    running_seconds: float | None = None
    history: tuple[tuple[float, int], ...] = ()
    ended: str = ""
    cause: Cause | None = None
    refused: tuple[str, ...] = ()
    tried: float = 0.0
    problem: str = ""

    @property
    def runs(self) -> bool:
        """Whether a process is at work."""
        return self.active == "active"

    @property
    def ends(self) -> int:
        """How often its process ended within the time of the history."""
        return self.history[-1][1] - self.history[0][1] if self.history else 0


# How a process ended, and its lines.
Ended = tuple[str, Sequence[JournalLine]]
