"""Topics in which a mirror keeps its state, and what somebody else writes there: no I/O."""

from collections.abc import Iterable, Mapping, Sequence

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


# Principal, operation, and whether it is allowed.
Granted = Sequence[tuple[str, str, bool]]


def access(flow: Flow, granted: Mapping[str, Granted]) -> list[Finding]:
    """Who else may write where the mirror keeps its state, or read the key of its workers.

    :param granted: topic of the target -> what everybody is allowed there.
    """
    found = []
    for topic, rows in granted.items():
        writers = _others(flow, rows, "WRITE")
        readers = _others(flow, rows, "READ") if topic == flow.config_topic else []
        for who, may, why in (
            (writers, "write", "what they write there steers the mirror"),
            (readers, "read", "it holds the key by which workers take orders without a password"),
        ):
            if who:
                found.append(
                    finding(
                        "control_access",
                        f"{topic} on {flow.target}: {', '.join(who)} may {may} it, and {why}",
                        "Take away what lets them: kafka-acls.sh --list --topic "
                        f"{topic} on {flow.target} shows it. Of the report playbooks/acls.yml "
                        "denies it",
                        flow=flow.name,
                        topic=topic,
                    )
                )
    return found


def _others(flow: Flow, rows: Granted, operation: str) -> list[str]:
    """Principals beside the mirror's that are allowed an operation and not denied it."""
    some = [(who, allowed) for who, granted, allowed in rows if granted in (operation, "ALL")]
    denied = {who for who, allowed in some if not allowed}
    return sorted({who for who, allowed in some if allowed} - denied - {flow.worker_principal})
