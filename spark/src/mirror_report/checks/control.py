"""Topics in which a mirror keeps its state, and what somebody else writes there: no I/O."""

from collections.abc import Iterable

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding, ForeignRecords

# How long a record is spoken of; it stays where it is, for nobody else should write there.
SPOKEN_OF_MS = 24 * 3_600_000


def foreign(flow: Flow, records: Iterable[ForeignRecords], now_ms: int) -> list[Finding]:
    """Records that the mirror did not write, for a day after they were read.

    :param now_ms: by the clock that ``read_at_ms`` is of.
    """
    return [
        finding(
            "control_record",
            f"{found.topic}-{found.partition} on {flow.target}: {found.count} record(s) are not "
            f"what {flow.engine.title} writes, the last one at offset {found.offset}: {found.why}. "
            "The report passes over them",
            f"Find out who may write to {found.topic}: kafka-acls.sh --list --topic {found.topic} "
            f"on {flow.target}. Nobody but {flow.instance} has to. Leave the topic itself as it "
            "is: it holds the positions of the mirror",
            flow=flow.name,
            topic=found.topic,
            count=found.count,
        )
        for found in records
        if now_ms - found.read_at_ms < SPOKEN_OF_MS
    ]
