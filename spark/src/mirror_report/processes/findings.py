"""Findings about flows' processes on this host, by what root recorded of them."""

import time
from collections.abc import Collection, Sequence
from pathlib import Path

from mirror_report import units
from mirror_report.checks import processes
from mirror_report.config import Flow
from mirror_report.model import Finding, PartitionLag

# A record is renewed once a minute; one that is older than three intervals is out of date.
MINUTE = 60.0
FRESH_INTERVALS = 3


def processes_of(
    flows: Sequence[Flow],
    findings: Sequence[Finding],
    rows: Sequence[PartitionLag] = (),
    *,
    units_file: str | None,
    interval_seconds: float,
    instances: Collection[str] | None,
) -> list[Finding]:
    """What root recorded of the flows' processes on this host, as findings.

    :param findings: what is known of the flows beside it; ``rows``: their lag.
    :param units_file: where root leaves the record; ``None``: it does not.
    :param interval_seconds: how far apart observations of lag are.
    :param instances: mirrors and workers that this host shall have; ``None``: not known.
    """
    if not units_file:
        return []
    records = units.read_records(Path(units_file))
    oldest = time.time() - FRESH_INTERVALS * max(interval_seconds, MINUTE)
    if records is None or any(record.at < oldest for record in records):
        return [processes.not_recorded(units_file)]
    kinds = {
        flow.name: [finding.kind for finding in findings if finding.flow == flow.name]
        for flow in flows
    }
    of_flows = [
        finding
        for flow in flows
        for finding in processes.findings(
            flow, records, kinds[flow.name], [row for row in rows if row.flow == flow.name]
        )
    ]
    if instances is None:
        return of_flows
    resting = [
        finding
        for flow in flows
        for finding in processes.resting(flow, records, instances, kinds[flow.name])
    ]
    return [*of_flows, *resting, *processes.undeclared(records, instances)]
