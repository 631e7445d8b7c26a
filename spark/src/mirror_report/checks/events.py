"""An event of a topic is one finding, with its cost inside; pure.

That a topic was created again, or that its log got shorter, shows in its ids and offsets, and in
its content as well. What the content lacks since is the cost.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mirror_report.model import Finding

# By rank: of several about one topic the first one stays.
EVENTS = ("reset", "topic_missing", "rewind", "truncated")
# What an event costs, by the content of its topic.
COSTS = ("missing", "unverifiable", "expired")

# Flow, and name on the target.
Topic = tuple[str | None, str | None]


def one_per_event(
    findings: Iterable[Finding],
    content: Iterable[Finding],
    names: Mapping[str, Mapping[str, str]],
) -> list[Finding]:
    """Findings of which those about one event are one.

    :param findings: of offsets and topics; ``content``: of what the topics hold.
    :param names: flow -> topic of the source -> its name on the target.
    :returns: both, the cost of an event within the finding about it.
    """

    def topic(finding: Finding) -> Topic:
        name = finding.topic or ""
        return finding.flow, names.get(finding.flow or "", {}).get(name, name) or None

    joint, of_content = list(findings), list(content)
    events = _events(joint, topic)
    joint += [
        other for other in of_content
        if other.kind not in (*EVENTS, *COSTS) or other.accounted or other.topic is None
        or (other.kind in EVENTS and topic(other) not in events)
    ]  # fmt: skip
    events = _events(joint, topic)
    for costly in of_content:
        if costly.kind in COSTS and costly.topic is not None and not costly.accounted:
            number = events.get(topic(costly))
            if number is None:
                joint.append(costly)
            else:
                joint[number] = _with_cost(joint[number], costly)
    return joint


def _events(findings: Sequence[Finding], topic: Callable[[Finding], Topic]) -> dict[Topic, int]:
    """Topic -> index of the finding about its event."""
    return {
        topic(finding): number
        for kind in reversed(EVENTS)
        for number, finding in reversed(list(enumerate(findings)))
        if finding.kind == kind and finding.topic is not None
    }


def _with_cost(event: Finding, costly: Finding) -> Finding:
    cost = costly.message.partition(": ")[2] or costly.message
    joint = ";" if "What it cost: " in event.message else ". What it cost:"
    return replace(event, message=f"{event.message}{joint} {cost}")
