"""``publish``: the last report, put where the web view shows it."""

from argparse import ArgumentParser, Namespace

from mirror_report.commands import shared
from mirror_report.model import ReportError
from mirror_report.render import Answer, formats
from mirror_report.state.store import PUBLISHED, Store


def add_options(parser: ArgumentParser) -> None:
    """``publish`` has no options."""


def answer(options: Namespace) -> Answer:
    """Copy the last report of all flows.

    :raises ReportError: no web view is configured, or the report cannot be read or written.
    """
    settings = shared.settings(options)
    if settings.web_directory is None:
        raise ReportError("web_directory: not set, so there is no place to publish to", "Set it")
    try:
        Store(settings.state_directory).publish(settings.web_directory, PUBLISHED)
    except FileNotFoundError:
        return formats.lines("no report yet")
    return formats.lines(f"{settings.web_directory}: published")
