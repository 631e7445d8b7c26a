"""Digest bundles: what is in them, and which of them belong together."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirror_report.config import Flow
from mirror_report.engines import MM2
from mirror_report.model import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.parity import ParityError
from mirror_report.parity.plan import bundle as planned
from mirror_report.parity.state import Bundle, BundleTopic, bundle

FLOW = Flow("orders", "east", "west", ".*", engine=MM2, group_id="g", replication_policy="prefix")


def topic(name: str, **configs: str) -> TopicSnapshot:
    logs = {0: PartitionSnapshot(5, 20), 1: PartitionSnapshot(0, 0)}
    return TopicSnapshot(name, f"id-{name}", logs, configs, None)


def snapshot(*topics: TopicSnapshot, errors: dict[str, str] | None = None) -> ClusterSnapshot:
    return ClusterSnapshot(
        "east", "c-east", 1000, {entry.name: entry for entry in topics}, errors or {}
    )


def made(side: Any = "source", **changes: Any) -> Bundle:
    of_side: dict[str, Any] = {
        "source": {"cluster_id": "c-east", "positions": None},
        "target": {"cluster_id": "c-west", "positions": {"t": {0: 20}}},
    }[side]
    described = planned.describe(FLOW, side, snapshot(topic("t")), None, {}, 60_000)
    return replace(described, **{**of_side, **changes})


def test_a_bundle_says_what_of_each_topic_is_in_it() -> None:
    found = planned.describe(
        FLOW, "source",
        snapshot(topic("t"), topic("table", **{"cleanup.policy": "compact,delete"}),
                 errors={"shut": "no permission"}),
        None, {"t": {0: 12}}, 60_000,
    )  # fmt: skip
    assert found.topics["t"] == BundleTopic("east.t", "id-t", {"0": (12, 20), "1": (0, 0)})
    assert found.topics["shut"].unknown == "no permission"
    assert "compacted" in (found.topics["table"].skip or "")
    (only,) = planned.to_read(found)
    assert (only.origin, only.topic, only.start, only.end) == ("t", "east.t", 12, 20)


def test_without_a_baseline_a_bundle_begins_where_the_log_does() -> None:
    assert made().topics["t"].ranges["0"] == (5, 20)
    past = planned.describe(FLOW, "source", snapshot(topic("t")), None, {"t": {0: 99}}, 60_000)
    assert past.topics["t"].ranges["0"] == (20, 20), "a baseline past the end leaves nothing"


def test_a_target_that_writes_its_own_timestamps_cannot_be_compared_by_them() -> None:
    rewritten = topic("east.t", **{"message.timestamp.type": "LogAppendTime"})
    found = planned.describe(FLOW, "target", snapshot(rewritten), None, {}, 60_000)
    assert "timestamps" in (found.topics["east.t"].skip or "")
    found = planned.describe(FLOW, "source", snapshot(rewritten), None, {}, 60_000)
    assert found.topics["east.t"].skip is None, "the copy keeps what the source wrote"


def test_a_bundle_is_the_same_after_its_journey(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "part-0.parquet").write_bytes(b"rows")
    (rows / "_SUCCESS").touch()
    packed = io.BytesIO()
    bundle.pack(made("target"), rows, packed)
    path = tmp_path / "one.digest"
    path.write_bytes(packed.getvalue())
    found, files = bundle.unpack(path, tmp_path)
    assert found == made("target")
    assert [file.read_bytes() for file in files] == [b"rows"]


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.digest"
    with pytest.raises(ParityError, match="Is it there"):
        bundle.unpack(path, tmp_path)
    path.write_text("something else")
    with pytest.raises(ParityError, match="no digest bundle"):
        bundle.unpack(path, tmp_path)
    packed = io.BytesIO()
    bundle.pack(made(schema_version=9), None, packed)
    path.write_bytes(packed.getvalue())
    with pytest.raises(ParityError, match="schema 9, this release reads 1"):
        bundle.unpack(path, tmp_path)


def test_a_pair_is_found_whatever_its_order() -> None:
    assert bundle.both_sides(made("target"), made()) == (made(), made("target"))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (made(), "both bundles are of the source"),
        (made("target", fingerprint_version=99), "fingerprint"),
        (made("target", bucket_ms=1), "bucket_seconds"),
        (made("target", flow="payments"), "two flows"),
        (made("target", engine="mm1"), "two engines"),
        (made("target", names=""), "names topics"),
        (made("target", source="north"), "two sources"),
        (made("target", target="north"), "two targets"),
        (made("target", cluster_id="c-east"), "both are of cluster c-east"),
        (made("target", taken_at_ms=999), "older than the source's"),
        (made("target", positions=None), "neither bundle holds committed positions"),
    ],
)
def test_bundles_that_do_not_belong_together_are_refused(other: Bundle, message: str) -> None:
    with pytest.raises(ParityError, match=message):
        bundle.both_sides(made(), other)
