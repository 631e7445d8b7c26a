"""What a running command prints: failures an operator can act on, and its progress."""

from collections.abc import Callable

# Called with a line of what is being done.
Progress = Callable[[str], None]


class ReportError(Exception):
    """Something an operator can act on.

    :param message: what happened, without a full stop.
    :param action: what to do next, with the exact command where there is one.
    :param kind: of the table of :mod:`mirror_report.checks.kinds`, which has the exit status; by
        default that of the class.
    """

    kind = "unreachable"

    def __init__(self, message: str, action: str = "", kind: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.action = action
        self.kind = kind or self.kind

    def __str__(self) -> str:
        return f"{self.message}. {self.action}" if self.action else self.message


def sentence(error: BaseException) -> str:
    """First line of an unexpected error; some have no text."""
    try:
        first = str(error).strip().partition("\n")[0][:300]
    except Exception:  # a Java error asks a JVM that may be gone
        first = "no more is known"
    return f"{type(error).__name__}: {first}"
