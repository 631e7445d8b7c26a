"""Findings about a topic's content, and what to do about them; pure."""

from collections.abc import Iterator, Mapping, Sequence

from mirror_report.checks import remedies
from mirror_report.checks.kinds import TABLE
from mirror_report.checks.verdict import finding
from mirror_report.config import Cluster, Flow
from mirror_report.engines import PositionStore
from mirror_report.model import CLASSES, Finding, Sample, TopicParity

TEXTS: Mapping[str, str] = {
    "missing": "records of the source are not on the target",
    "duplicate": "records are on the target more often than on the source",
    "corrupt_value": "records arrived with another value",
    "corrupt_headers": "records arrived with other headers",
    "altered_timestamp": "records arrived with another timestamp",
    "moved": "records arrived in another partition",
    "reordered": "records come after records that they preceded on the source",
    "extra": "records on the target were never on the source",
    "deleted_early": "records left the target before its retention allows",
    "expired": "records had left the target by its retention before they were compared",
    "unverifiable": "records can no longer be compared",
}
# Of the records that are unverifiable, those whose header keys Java cannot read.
REPLACED = "records have header keys that are no UTF-8"
WRITE_UTF8 = (
    "Make the producer write header keys as UTF-8: Java's clients, the mirror's among them, "
    "replace other bytes by U+FFFD"
)
OLDER = "records on the target may be of what the source no longer held at the first observation"
PARTITIONS_NAMED = 8


def findings(topic: TopicParity, flow: Flow, clusters: Mapping[str, Cluster]) -> list[Finding]:
    """One finding for each class with records; what an earlier run reported is accounted."""
    source, target = clusters[flow.source], clusters[flow.target]
    return [
        *(
            _of_class(topic, kind, _action(kind, topic, flow, source, target))
            for kind in CLASSES
            if topic.counts.get(kind)
        ),
        *_accounted(topic),
        *_not_compared(topic, flow),
    ]


def _accounted(topic: TopicParity) -> Iterator[Finding]:
    """What an earlier run reported, and what comes of an older time."""
    for kind, count in topic.accounted.items():
        if count and kind != "unverifiable":
            yield Finding(
                "warning", kind, topic.flow, topic.topic, None, count,
                f"{_name(topic)}: {count} {TEXTS[kind]} (known)", "", accounted=True,
            )  # fmt: skip
    if older := topic.accounted.get("unverifiable", 0):
        yield finding(
            "unverifiable", f"{_name(topic)}: {older} {OLDER}", "Nothing: each source loses "
            "records by its retention; what comes from now on is compared",
            flow=topic.flow, topic=topic.topic, count=older,
        ).rated("ok")  # fmt: skip


def _not_compared(topic: TopicParity, flow: Flow) -> Iterator[Finding]:
    """Records of which it is not known whether they arrived."""
    if topic.status != "skipped" and topic.skipped_records and topic.strategy != "latest_by_key":
        yield finding(
            "skipped",
            f"{_name(topic)}: {topic.skipped_records} records were mirrored about when the "
            "baseline was recorded, and were not found: whether they arrived is not known",
            f"With the producers at rest, {remedies.prove_topic(topic.flow, topic.topic)} compares "
            f"everything; {remedies.renew(flow, topic.source_topic)} leaves them out",
            flow=topic.flow, topic=topic.topic, count=topic.skipped_records,
        )  # fmt: skip
    if topic.open_unjudged:
        yield finding(
            "not_judged",
            f"{_name(topic)}: {topic.open_unjudged} records below the committed position, in "
            "minutes that stay open, were not judged for losses",
            "mirror-report run again. If it stays, raise budget.max_bytes and "
            "budget.deadline_seconds, or, with the producers at rest, compare everything: "
            f"{remedies.prove_topic(topic.flow, topic.topic)}",
            flow=topic.flow, topic=topic.topic, count=topic.open_unjudged,
        )  # fmt: skip
    if topic.status == "skipped":
        yield finding(
            "skipped", f"{_name(topic)}: not compared: {topic.reason}",
            "Compare this topic by other means", flow=topic.flow, topic=topic.topic,
            count=topic.skipped_records or None,
        )  # fmt: skip
    if topic.status == "unknown":
        yield finding(
            "parity_unavailable", f"{_name(topic)}: not compared: {topic.reason}",
            "mirror-report run again", flow=topic.flow, topic=topic.topic,
        )  # fmt: skip


def _of_class(topic: TopicParity, kind: str, action: str) -> Finding:
    partitions = topic.partitions.get(kind, {})
    text = TEXTS[kind]
    if kind == "unverifiable" and topic.strategy == "none":
        text = f"records cannot be compared while they move: {topic.reason}"
    elif kind == "unverifiable" and topic.samples.get(kind):
        first = topic.samples[kind][0]
        text = (
            f"{text}; timestamps that do not fit into microseconds, the first in partition "
            f"{first.partition} on the {first.side} at offset {first.offset}: {first.timestamp_ms}"
        )
    elif kind == "unverifiable" and topic.strategy == "offset_syncs":
        text = f"{text}: {topic.reason}"
    if kind == "unverifiable" and topic.replaced_records:
        same = topic.replaced_records == topic.counts[kind]
        text = REPLACED if same else f"{text}; {topic.replaced_records} {REPLACED}"
        action = WRITE_UTF8 if same else f"{action}. {WRITE_UTF8}"
    # Order within a topic is only promised with its partitions.
    minor = kind == "reordered" and not partitions
    return Finding(
        "warning" if minor else TABLE[kind].severity, kind, topic.flow, topic.topic,
        int(next(iter(partitions))) if len(partitions) == 1 else None, topic.counts[kind],
        f"{_name(topic)}: {topic.counts[kind]} {text}{_in(partitions)}", action,
    )  # fmt: skip


def _name(topic: TopicParity) -> str:
    return f"{topic.flow}/{topic.topic}"


def _in(partitions: Mapping[str, int]) -> str:
    if not partitions:
        return ""
    if len(partitions) == 1:
        return f", partition {next(iter(partitions))}"
    worst = sorted(partitions.items(), key=lambda item: -item[1])
    named = ", ".join(f"{partition} ({count})" for partition, count in worst[:PARTITIONS_NAMED])
    more = len(worst) - PARTITIONS_NAMED
    return f", partitions {named}" + (f" and {more} more" if more > 0 else "")


def _action(kind: str, topic: TopicParity, flow: Flow, source: Cluster, target: Cluster) -> str:
    samples = topic.samples.get(kind, [])
    show = _show_one(samples, topic, source, target)
    describe = remedies.tool(
        target, "kafka-configs.sh", "--describe", "--entity-type", "topics", "--entity-name",
        topic.topic,
    )  # fmt: skip
    on_host = f"on {remedies.host(flow)}"
    leave_out = f"{remedies.renew(flow, topic.source_topic)} leaves them out"
    texts = {
        "missing": _mirror_again(samples, topic, flow, source) or show,
        "duplicate": "Expected after the mirror was killed (at least once), see "
        f"`{remedies.journal(flow)}` {on_host}; the next run accounts for them",
        "corrupt_value": f"Find what writes or converts beside the mirror. {show}",
        "corrupt_headers": "Find what rewrites headers, such as a header.converter that is not "
        f"ByteArrayConverter. {show}",
        "altered_timestamp": f"See whether the target replaces timestamps: {describe}; the next "
        "run accounts for them",
        "moved": "Find what writes beside the mirror, or chooses partitions instead of it. "
        f"{show}",
        "reordered": "Find out whether the producer may overtake itself: grep -E "
        f"'idempotence|in.flight|retries' -r /etc/{flow.instance}/ {on_host}. {show}",
        "extra": f"Find the other writer of this topic; the next run accounts for them. {show}",
        "deleted_early": f"Find out who deletes records there: {describe}",
        "expired": "Nothing, unless the target should keep records longer: "
        + remedies.alter_topic(target, topic.topic, {"retention.ms": "<milliseconds>"}),
        "unverifiable": f"Run the report more often than retention removes records; {leave_out}",
    }  # fmt: skip
    if kind == "unverifiable" and samples:
        return (
            "Make the producer of these records write timestamps in milliseconds; the report "
            f"forgets a record that expires. {show}"
        )
    if kind == "unverifiable" and topic.strategy in ("none", "offset_syncs"):
        proof = (
            "Stop the producers, wait until the mirror has caught up, then "
            f"{remedies.prove_topic(topic.flow, topic.topic)}"
        )
        return proof if topic.strategy == "none" else f"{proof}. {leave_out}"
    return texts[kind]


def _show_one(
    samples: Sequence[Sample], topic: TopicParity, source: Cluster, target: Cluster
) -> str:
    """How to see the first record of which there is a sample, on each side it is known on."""
    first = {sample.side: sample for sample in reversed(samples)}
    commands = [
        remedies.tool(
            cluster, "kafka-console-consumer.sh", "--topic", name, "--partition",
            str(first[side].partition), "--offset", str(first[side].offset), "--max-messages", "1",
        )
        for side, cluster, name in (
            ("source", source, topic.source_topic), ("target", target, topic.topic),
        )
        if side in first
    ]  # fmt: skip
    if not commands:
        return "mirror-report show --json has the partitions"
    return "To see one: " + " and ".join(commands)


def _mirror_again(
    samples: Sequence[Sample], topic: TopicParity, flow: Flow, source: Cluster
) -> str | None:
    """How to bring missing records over, where the position can be moved back."""
    if flow.engine.positions is not PositionStore.SOURCE_GROUP or not samples:
        return None
    oldest = min(samples, key=lambda sample: sample.offset)
    move = remedies.tool(
        source, "kafka-consumer-groups.sh", "--group", flow.group_id, "--topic",
        f"{topic.source_topic}:{oldest.partition}", "--reset-offsets", "--to-offset",
        str(oldest.offset), "--execute",
    )  # fmt: skip
    return (
        f"Mirror again from there on, with duplicates (likewise for other partitions): on "
        f"{remedies.host(flow)} {remedies.service(flow, 'stop')}, then {move}, then "
        f"{remedies.service(flow, 'start')}"
    )
