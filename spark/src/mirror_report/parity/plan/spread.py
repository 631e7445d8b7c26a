"""Topics whose records are spread over too many buckets.

What a run takes grows with the buckets it compares, and a producer chooses the timestamps of its
records: each may lie in a minute of its own. So the minutes of a topic with too many of them are
put together to hours from then on, and one with too many hours is not compared.
"""

from collections.abc import Iterable

from mirror_report.checks import remedies
from mirror_report.config import Flow
from mirror_report.parity import HOUR_MS, STATUSES
from mirror_report.parity.plan import open_buckets
from mirror_report.parity.plan.run_plan import RunPlan
from mirror_report.parity.plan.topics import TopicPlan
from mirror_report.parity.state import Manifest, TopicKey, Widths

# Buckets of a topic that are not sealed, those of several lanes at one time counted once: minutes,
# or what else is configured; and hours, those of more than twenty years.
MOST_BUCKETS = 50_000
# Digests of its minutes, of both sides and all partitions.
MOST_ROWS = 500_000
MOST_HOURS = 200_000


def suspects(manifest: Manifest, plan: RunPlan) -> list[TopicKey]:
    """Topics that may have too many buckets: with one more for each record not compared yet."""
    return [
        topic.key
        for topic in plan.compared
        if topic.strategy == "timestamp" and _may_have_too_many(manifest, topic)
    ]


def _may_have_too_many(manifest: Manifest, topic: TopicPlan) -> bool:
    now = manifest.numbers(topic.key)
    compared: int = sum(now.get(f"buckets_{status}", 0) for status in STATUSES)
    target = manifest.sides.get((topic.flow, "target", topic.topic))
    partitions = max(1, len(target.next)) if target else 1
    new = open_buckets.read_since(manifest, topic)
    # The records of all partitions lie in much the same minutes.
    return (
        compared // partitions + new > MOST_BUCKETS or compared * partitions * 2 + new > MOST_ROWS
    )


def how(widths: Widths, topic: TopicKey, buckets: int, hours: int, rows: int) -> str | None:
    """The new value of :attr:`Manifest.spread` for a topic; ``None``: it stays.

    :param buckets: how many it has; ``hours``: how many it would have by hours.
    :param rows: digests, of both sides and all partitions.
    """
    minutes = topic not in widths.by_hour and widths.normal < HOUR_MS
    if minutes and hours <= MOST_HOURS:
        return "hours" if buckets > MOST_BUCKETS or rows > MOST_ROWS else None
    return "none" if max(buckets, hours) > MOST_HOURS else None


def reason(manifest: Manifest, topic: TopicPlan) -> str:
    """Why the buckets of a topic are hours; empty: they are not."""
    if topic.strategy != "timestamp" or topic.key not in manifest.bucket_widths.by_hour:
        return ""
    return "its records lie in too many minutes, so it is compared by hours"


def not_compared(manifest: Manifest, flows: Iterable[Flow]) -> dict[TopicKey, str]:
    """Topics that have too many hours, and the message for each.

    :param flows: all that are configured.
    """
    return {
        (flow.name, topic): f"its records lie in more than {MOST_HOURS} hours. Make the producer "
        f"write other timestamps, then {remedies.renew(flow, flow.origin(topic) or topic)}"
        for flow in flows
        for topic, width in manifest.spread.get(flow.name, {}).items()
        if width == "none"
    }
