"""What was recorded of flows' processes on this host."""

import time
from collections.abc import Sequence
from pathlib import Path

from mirror_report import units
from mirror_report.checks import processes
from mirror_report.config import Flow, Settings
from mirror_report.model import Finding, PartitionLag

MINUTE = 60.0


FRESH_INTERVALS = 3


def processes_of(
    settings: Settings,
    flows: Sequence[Flow],
    found: Sequence[Finding],
    rows: Sequence[PartitionLag] = (),
) -> list[Finding]:
    """What was recorded of the flows' processes on this host, as findings.

    :param found: what is known of the flows beside it; ``rows``: their lag.
    """
    if not settings.units_file:
        return []
    records = units.read(Path(settings.units_file))
    # A record that is not renewed says nothing of now.
    oldest = time.time() - FRESH_INTERVALS * max(settings.lag_interval_seconds, MINUTE)
    if records is None or any(record.at < oldest for record in records):
        return processes.not_recorded(settings.units_file)
    kinds = {flow.name: [one.kind for one in found if one.flow == flow.name] for flow in flows}
    of_flows = [
        each
        for flow in flows
        for each in processes.judge(
            flow, records, kinds[flow.name], [row for row in rows if row.flow == flow.name]
        )
    ]
    if (here := settings.instances) is None:
        return of_flows
    resting = [
        each for flow in flows for each in processes.resting(flow, records, here, kinds[flow.name])
    ]
    return [*of_flows, *resting, *processes.undeclared(records, here)]
