"""``archive``: the classes Spark loads, kept so that it starts faster."""

from argparse import ArgumentParser, Namespace

from mirror_report.commands import shared
from mirror_report.parity import without_spark
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """``archive`` has no options."""


def answer(options: Namespace) -> Answer:
    """Make the archive for the present Java, Spark and jars, unless there is one.

    :raises ReportError: it cannot be made.
    """
    settings = shared.settings(options)
    try:
        # Spark is only needed here; most commands work without it.
        from mirror_report.parity.spark import rehearsal  # noqa: PLC0415
    except ImportError as error:
        raise without_spark(error) from error
    path, made = rehearsal.make(settings.spark, shared.show_progress)
    return formats.lines(f"{path}: {'made' if made else 'unchanged, it fits'}")
