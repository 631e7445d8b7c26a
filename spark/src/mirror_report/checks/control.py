"""Topics in which a mirror keeps its state, and who else writes or may write there: no I/O."""

from collections.abc import Iterable, Mapping, Sequence

from mirror_report.checks.verdict import finding
from mirror_report.config import Flow
from mirror_report.model import Finding, ForeignRecords

# For so long a record is reported; it stays in its topic.
SPOKEN_OF_MS = 24 * 3_600_000


def control_records(flow: Flow, records: Iterable[ForeignRecords], now_ms: int) -> list[Finding]:
    """Records that the mirror did not write, for a day after they were read.

    :param now_ms: by the clock that ``read_at_ms`` is of.
    """
    return [
        finding(
            "control_record",
            f"{part.topic}-{part.partition} on {flow.target}: {part.count} record(s) are not "
            f"what {flow.engine.title} writes, the last one at offset {part.offset}: {part.why}. "
            "The report passes over them",
            f"Find out who may write to {part.topic}: kafka-acls.sh --list --topic {part.topic} "
            f"on {flow.target}. Nobody but {flow.instance} has to. Leave the topic itself as it "
            "is: it holds the positions of the mirror",
            flow=flow.name,
            topic=part.topic,
            count=part.count,
        )
        for part in records
        if now_ms - part.read_at_ms < SPOKEN_OF_MS
    ]


# Principal, operation, and whether it is allowed.
Granted = Sequence[tuple[str, str, bool]]
# Whoever may do one of these to a topic steers the mirror: settings let its records expire.
CHANGES = ("WRITE", "ALTER", "ALTER_CONFIGS", "DELETE")
EVERYBODY = "User:*"


def access(flow: Flow, granted: Mapping[str, Granted]) -> list[Finding]:
    """Who else may write where the mirror keeps its state, or read the key of its workers.

    Workers that no inventory has write there as whom only their owner knows: who may is a note
    then. Nobody is another where nobody knows who the mirror is.

    :param granted: topic of the target -> what everybody is allowed there.
    """
    if flow.worker_principal is None:
        return []
    describe = _others if flow.hosts else _somebody
    return [
        describe(flow, topic, who, may, why)
        for topic, rows in granted.items()
        for operations, may, why in (
            (CHANGES, "write or change", "what they do there steers the mirror"),
            (
                ("READ",) if topic == flow.config_topic else (),
                "read",
                "it holds the key by which workers take orders without a password",
            ),
        )
        if (who := sorted(_allowed(rows, operations) - {flow.worker_principal}))
    ]


def _others(flow: Flow, topic: str, who: Sequence[str], may: str, why: str) -> Finding:
    return finding(
        "control_access",
        f"{topic} on {flow.target}: {', '.join(who)} may {may} it, and {why}",
        "Take away what lets them, unless they are the mirror under another name: kafka-acls.sh "
        f"--list --topic {topic} on {flow.target} shows it. Of the report playbooks/acls.yml "
        "denies it",
        flow=flow.name,
        topic=topic,
    )


def _somebody(flow: Flow, topic: str, who: Sequence[str], may: str, why: str) -> Finding:
    return finding(
        "control_access",
        f"{topic} on {flow.target}: {', '.join(who)} may {may} it, the workers of {flow.instance} "
        f"among them, and {why}",
        "Ask the owner of the workers whether these are all that have to. Take nothing away that "
        "workers need: they would stop",
        flow=flow.name,
        topic=topic,
    ).rated("ok")


def _allowed(rows: Granted, operations: Sequence[str]) -> set[str]:
    """Principals that are allowed one of the operations and not denied it."""
    principals: set[str] = set()
    for operation in operations:
        rules = [(who, allowed) for who, granted, allowed in rows if granted in (operation, "ALL")]
        denied = {who for who, allowed in rules if not allowed}
        if EVERYBODY not in denied:
            principals |= {who for who, allowed in rules if allowed} - denied
    return principals
