"""``lag``: how far every flow is behind, with findings."""

import gc
from argparse import ArgumentParser, Namespace

from mirror_report import metrics
from mirror_report.checks.verdict import verdict
from mirror_report.commands import shared
from mirror_report.lag.measure import measure_lag
from mirror_report.model import (
    LagDocument,
)
from mirror_report.render import SCHEMA_VERSION, Answer, formats
from mirror_report.state.store import Store


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``lag``."""
    shared.flow(parser)
    shared.formats(parser)
    shared.wide(parser)


def answer(options: Namespace) -> Answer:
    """Measure lag, and leave it in the metrics file.

    :raises ReportError: the configuration or the flow's name is wrong.
    """
    # The process lives for a second and leaves nothing to collect.
    gc.disable()
    settings = shared.settings(options)
    with metrics.recorded(settings, "lag", options.flow) as recorded:
        lag = measure_lag(settings, Store(settings.state_directory), options.flow)
        document = recorded.write(
            LagDocument(SCHEMA_VERSION, verdict(lag.findings), lag.flows, lag.rows, lag.findings)
        )
    return formats.with_verdict(document)
