"""``archive``: the classes Spark loads, kept so that it starts faster."""

from __future__ import annotations

from pathlib import Path

from mirror_report.commands.flows import Progress
from mirror_report.config.settings import Settings
from mirror_report.parity.errors import without_spark


def archive(settings: Settings, progress: Progress) -> tuple[Path, bool]:
    """Make the archive for the present Java, Spark and jars, unless there is one.

    :returns: where it lies, and whether it is new.
    :raises ReportError: it cannot be made.
    """
    try:
        # Spark is only needed here; most commands work without it.
        from mirror_report.parity import rehearsal  # noqa: PLC0415
    except ImportError as error:
        raise without_spark(error) from error
    return rehearsal.make(settings.spark, progress)
