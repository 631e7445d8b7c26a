"""Which strategy a topic is compared by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_report import engines
from mirror_report.config import Flow
from mirror_report.model import TopicSnapshot
from mirror_report.parity.plan.strategies import Choice, choose

MM1 = Flow(name="f", source="a", target="b", include="t", group_id="g")
MM2 = replace(MM1, engine=engines.MM2)


def topic(**configs: str) -> TopicSnapshot:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    return TopicSnapshot("t", "id", {}, settings, None)


PLAIN = topic(cleanup_policy="delete", message_timestamp_type="CreateTime")
APPENDED = topic(message_timestamp_type="LogAppendTime")
COMPACTED = topic(cleanup_policy="compact,delete")


@pytest.mark.parametrize("flow", [MM1, MM2], ids=["mm1", "mm2"])
def test_timestamps_decide_where_the_target_keeps_them(flow: Flow) -> None:
    for target in (PLAIN, topic(), None):
        assert choose(flow, [PLAIN], target) == Choice("timestamp")
    assert choose(flow, [APPENDED], PLAIN) == Choice("timestamp"), "the source's are kept"


@pytest.mark.parametrize("flow", [MM1, MM2], ids=["mm1", "mm2"])
def test_compaction_on_either_side_leaves_the_latest_of_each_key(flow: Flow) -> None:
    assert choose(flow, [COMPACTED], PLAIN).reason == "compacted on the source"
    assert choose(flow, [PLAIN], COMPACTED).reason == "compacted on the target"
    both = choose(flow, [PLAIN, COMPACTED], COMPACTED)
    assert both == Choice("latest_by_key", "compacted on the source and the target")
    rewritten = topic(cleanup_policy="compact", message_timestamp_type="LogAppendTime")
    assert choose(flow, [PLAIN], rewritten).strategy == "latest_by_key"
    assert choose(flow, [COMPACTED], None).strategy == "latest_by_key"


def test_without_timestamps_of_the_source_offsets_align_if_the_mirror_tells_them() -> None:
    for options in ({"target": APPENDED}, {"target": PLAIN, "untimed": True}):
        assert choose(MM2, [PLAIN], **options).strategy == "offset_syncs"  # type: ignore[arg-type]
        chosen = choose(MM1, [PLAIN], **options)  # type: ignore[arg-type]
        assert chosen.strategy == "none"
        assert "MirrorMaker 1 says nothing" in chosen.reason
    assert "LogAppendTime" in choose(MM2, [PLAIN], APPENDED).reason
    assert "no timestamps" in choose(MM2, [PLAIN], None, untimed=True).reason
