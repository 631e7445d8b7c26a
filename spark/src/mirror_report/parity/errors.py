"""The one way in which parity fails as a whole."""

from mirror_report.model import ReportError


class ParityError(ReportError):
    """Content could not be compared; the message says why and what to do about it."""

    kind = "parity_unavailable"


def without_spark(error: ImportError) -> ParityError:
    """The error of a report that was installed without Spark."""
    return ParityError(
        f"the Python package {error.name or 'pyspark'} is missing",
        "Install the report with its Spark part: role mirror_report, or "
        "pip install 'mirror-report[spark]' into its venv",
    )
