"""Engines that mix the facts of ours, and a flow of any of them."""

from collections.abc import Iterator
from dataclasses import fields, replace

from mirror_report.config import Flow, Permission
from mirror_report.engines import MM1, MM2, Engine

FACTS = [field.name for field in fields(Engine) if field.name not in ("name", "title")]


def crossed() -> Iterator[Engine]:
    """Each engine with each fact of the other, and two that are half and half."""
    for engine, other in ((MM1, MM2), (MM2, MM1)):
        mixes = {fact: [fact] for fact in FACTS} | {"mixed": FACTS[::2]}
        for name, taken in mixes.items():
            facts = {fact: getattr(other, fact) for fact in taken}
            yield replace(engine, name=f"{engine.name}-{name}", title="Made-Up", **facts)


MADE_UP = list(crossed())
EVERY = [MM1, MM2, *MADE_UP]


def flow_of(engine: Engine) -> Flow:
    """A flow from east to west, with whatever an engine may want to know."""
    return Flow(
        "orders", "east", "west", "t.*|__.*", engine, topics=("t.*", "__.*"),
        topics_exclude=("t-old",), group_id="g", instance="unit", hosts=("mirror1",), parallelism=9,
        replication_policy="prefix", consumer_groups=("app.*",), offset_topic="offsets",
        status_topic="status", config_topic="configs", offset_syncs_topic="syncs",
        checkpoints_topic="checkpoints", replication_factors={"x": 3},
        permissions=(Permission("west", "topic", "t", "prefixed", "WRITE", "records are lost"),),
    )  # fmt: skip
