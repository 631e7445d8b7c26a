"""A configuration that cannot be used."""

import difflib
from collections.abc import Iterable

from mirror_report.model import ReportError


class ConfigError(ReportError):
    """The configuration cannot be used; the message names the key."""

    kind = "internal"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The nearest of the names, as the end of a message; empty if none is near."""
    close = difflib.get_close_matches(name, sorted(names), n=1)
    return f", did you mean {close[0]!r}?" if close else ""
