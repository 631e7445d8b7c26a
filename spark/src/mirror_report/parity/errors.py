"""The one way in which parity fails as a whole."""

from __future__ import annotations

from mirror_report.model import ReportError


class ParityError(ReportError):
    """Content could not be compared; the message says why and what to do about it."""
