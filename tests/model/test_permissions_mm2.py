"""Permissions of MirrorMaker 2 and of the report on it."""

from __future__ import annotations

import pytest

from tests.model.conftest import Site
from tests.model.test_permissions import of, rows, short

MIRRORED = ["CREATE", "WRITE", "ALTER", "ALTER_CONFIGS"]


WORKERS = [
    "group east-mm2 READ",
    *(
        f"topic mm2-{topic}.east.internal {operation}"
        for topic in ("configs", "offsets", "status")
        for operation in ("CREATE", "READ", "WRITE")
    ),
]


SYNCS = [
    f"topic mm2-offset-syncs.east.internal {operation}" for operation in ("CREATE", "WRITE", "READ")
]


CHECKPOINTS = [
    f"topic east.checkpoints.internal {operation}" for operation in ("CREATE", "WRITE", "READ")
]


def test_mm2_with_groups(mm2: Site) -> None:
    assert of(mm2, "east", "mirror") == [
        "topic orders READ", "topic orders DESCRIBE_CONFIGS",
        "topic payments.* READ", "topic payments.* DESCRIBE_CONFIGS",
        "group billing DESCRIBE",
    ]  # fmt: skip
    assert of(mm2, "west", "mirror") == [
        *WORKERS,
        *(f"topic east.orders {operation}" for operation in (*MIRRORED, "READ")),
        *(f"topic east.payments.* {operation}" for operation in (*MIRRORED, "READ")),
        "group billing READ",
        *SYNCS,
        *CHECKPOINTS,
    ]


def test_mm2_without_groups(mm2: Site) -> None:
    mm2.flow.update({"consumer_groups": [], "topics": ["orders"]})
    assert of(mm2, "east", "mirror") == ["topic orders READ", "topic orders DESCRIBE_CONFIGS"]
    assert of(mm2, "west", "mirror") == [
        *WORKERS, *(f"topic east.orders {operation}" for operation in MIRRORED), *SYNCS[:2],
    ]  # fmt: skip


def test_mm2_that_keeps_names(mm2: Site) -> None:
    mm2.flow.update({"replication_policy": "identity", "consumer_groups": []})
    mirrored = [row for row in of(mm2, "west", "mirror") if row.endswith((" CREATE", " ALTER"))]
    assert [row for row in mirrored if "internal" not in row] == [
        "topic orders CREATE", "topic orders ALTER",
        "topic payments.* CREATE", "topic payments.* ALTER",
    ]  # fmt: skip


def test_mm2_with_a_separator_of_its_own(mm2: Site) -> None:
    mm2.instance["worker_properties"] = {"replication.policy.separator": "_"}
    found = " ".join(of(mm2, "west", "mirror"))
    for name in ("east_orders ", "east_payments.* ", "mm2-offset-syncs_east_internal ",
                 "east_checkpoints_internal ", "mm2-status.east.internal "):  # fmt: skip
        assert f"topic {name}" in found


def test_mm2_is_not_given_what_it_never_mirrors(mm2: Site) -> None:
    mm2.flow["topics"] = ["__consumer_offsets", "west.orders", "orders"]
    assert of(mm2, "east", "mirror")[:2] == ["topic orders READ", "topic orders DESCRIBE_CONFIGS"]
    assert "__consumer_offsets" not in str(rows(mm2))


def test_more_nodes_need_no_more(mm2: Site) -> None:
    before = rows(mm2)
    mm2.instance["hosts"] = ["mirror1", "mirror2"]
    assert rows(mm2) == before


@pytest.mark.parametrize(
    ("key", "value", "more", "fewer"),
    [
        ("emit.heartbeats.enabled", True,
         ["west topic heartbeats CREATE", "west topic heartbeats WRITE"], []),
        # Null removes our default, so that Kafka's holds.
        ("emit.heartbeats.enabled", None,
         ["west topic heartbeats CREATE", "west topic heartbeats WRITE"], []),
        ("emit.offset-syncs.enabled", None, [], []),
        ("sync.topic.acls.enabled", "true",
         ["east cluster kafka-cluster DESCRIBE", "west cluster kafka-cluster ALTER"], []),
        ("sync.topic.configs.enabled", False, [],
         ["west topic east.orders ALTER_CONFIGS", "west topic east.payments.* ALTER_CONFIGS"]),
        ("emit.offset-syncs.enabled", False, [], [f"west {row}" for row in sorted(SYNCS)]),
    ],
)  # fmt: skip
def test_what_a_property_changes(
    mm2: Site, key: str, value: object, more: list[str], fewer: list[str]
) -> None:
    before = short((row for row in rows(mm2) if row["identity"] == "mirror"), "cluster")
    mm2.flow["properties"] = {key: value}
    after = short((row for row in rows(mm2) if row["identity"] == "mirror"), "cluster")
    assert sorted(set(after) - set(before)) == sorted(more)
    assert sorted(set(before) - set(after)) == sorted(fewer)


def test_the_report_on_mm2(mm2: Site) -> None:
    mm2.flow["topics"] = ["orders"]
    assert of(mm2, "east", "report") == [
        "topic orders READ", "topic orders DESCRIBE_CONFIGS", "cluster kafka-cluster DESCRIBE",
        "group billing DESCRIBE",
    ]  # fmt: skip
    assert sorted(of(mm2, "west", "report")) == sorted([
        "topic east.orders READ", "topic east.orders DESCRIBE_CONFIGS",
        "cluster kafka-cluster DESCRIBE",
        "group east-mm2 DESCRIBE",
        "group billing DESCRIBE",
        *(f"topic mm2-{topic}.east.internal READ"
          for topic in ("offsets", "status", "offset-syncs")),
        *(f"topic mm2-{topic}.east.internal DESCRIBE_CONFIGS"
          for topic in ("offsets", "status", "offset-syncs", "configs")),
        "topic mm2-configs.east.internal DESCRIBE",
        "topic east.checkpoints.internal READ",
        "topic east.checkpoints.internal DESCRIBE_CONFIGS",
    ])  # fmt: skip


def test_the_report_on_mm2_that_syncs_no_groups(mm2: Site) -> None:
    mm2.flow["consumer_groups"] = []
    found = " ".join(of(mm2, "east", "report") + of(mm2, "west", "report"))
    assert "checkpoints" not in found
    assert "group billing" not in found


def test_nobody_is_given_offset_syncs_that_nobody_writes(mm2: Site) -> None:
    assert "offset-syncs" in str(rows(mm2))
    mm2.flow["properties"] = {"emit.offset-syncs.enabled": False}
    assert "offset-syncs" not in str(rows(mm2))
