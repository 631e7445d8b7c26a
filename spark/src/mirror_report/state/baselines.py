"""The manifest ``baseline``: where verification starts, by flow and topic of the source.

The keys are those of :class:`Baseline` and :class:`TopicBaseline`; of the sides of a topic,
``source`` and ``target`` are where they start, ``source_id`` and ``target_id`` their ids.
"""

from collections.abc import Mapping
from typing import Any

from mirror_report.model import SIDES, Baseline, SideBaseline, TopicBaseline
from mirror_report.state.partitions import contents_of, epochs_of, offsets, pairs_as_texts, texts
from mirror_report.state.store import StateError, Store

# Of a topic, an offset per partition.
_OFFSETS = ("required", "untouched", "sought", "older", "log_start")
# What the logs of a side are known by: pairs per partition; they came later than the others.
_PAIRS = ("leader_epochs", "last_records")


def load(store: Store) -> dict[str, Baseline]:
    """The baselines of all flows that have one.

    :raises StateError: as of :meth:`Store.load`.
    """
    return {flow: of_flow(plain) for flow, plain in store.load("baseline").items()}


def of_flow(plain: Mapping[str, Any]) -> Baseline:
    """A flow's entry of the manifest; empty: there is none."""
    return Baseline(
        plain.get("recorded_at_ms"),
        plain.get("losses_since_ms", 0),
        plain.get("group_existed", False),
        {name: _topic(topic) for name, topic in plain.get("topics", {}).items()},
        plain.get("accepted", {}),
    )


def _topic(plain: Mapping[str, Any]) -> TopicBaseline:
    source, target = (
        SideBaseline(
            plain.get(f"{side}_id"),
            offsets(plain.get(side)),
            epochs_of(plain.get("leader_epochs", {}).get(side)),
            contents_of(plain.get("last_records", {}).get(side)),
        )
        for side in SIDES
    )
    return TopicBaseline(
        plain.get("recorded_at_ms", 0),
        source,
        target,
        **{name: offsets(plain.get(name)) for name in _OFFSETS},
        losses_since_ms=plain.get("losses_since_ms"),
        cut_by_time="required" not in plain,
    )


def dump(baseline: Baseline) -> dict[str, Any]:
    """What the manifest holds of a flow; JSON types only."""
    topics = {name: dump_topic(topic) for name, topic in baseline.topics.items()}
    plain = {**vars(baseline), "topics": topics}
    return plain if baseline.accepted else {k: v for k, v in plain.items() if k != "accepted"}


def dump_topic(topic: TopicBaseline) -> dict[str, Any]:
    """What the manifest holds of a topic; JSON types only."""
    alone = topic.losses_since_ms
    return {
        "recorded_at_ms": topic.recorded_at_ms,
        **{side: texts(topic.side(side).start) for side in SIDES},
        **{f"{side}_id": topic.side(side).topic_id for side in SIDES},
        **{name: texts(getattr(topic, name)) for name in _OFFSETS},
        **{
            name: {side: pairs_as_texts(getattr(topic.side(side), name)) for side in SIDES}
            for name in _PAIRS
        },
        **({} if alone is None else {"losses_since_ms": alone}),
    }


def refuse_cut_by_time(flow: str, baseline: Baseline) -> None:
    """Refuse a flow's baseline that cannot tell which records count.

    :raises StateError: it was recorded by an earlier release, which cut by time.
    """
    if any(topic.cut_by_time for topic in baseline.topics.values()):
        raise StateError(
            f"the baseline of flow {flow} was recorded by an earlier release, which cut by time "
            "and left out records that came later",
            f"Record it again: mirror-report baseline --flow {flow} --renew",
        )
