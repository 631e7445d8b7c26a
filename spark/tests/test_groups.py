"""What a group that moved to the target now would lose or read again, and what is said of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_report import engines
from mirror_report.checks import elections, failover, groups
from mirror_report.checks.translated_offsets import translate
from mirror_report.config import Cluster, Credentials, Flow
from mirror_report.kafka import offset_syncs
from mirror_report.kafka.connection import ClusterError, UnreadableError
from mirror_report.kafka.mirror_topics import Tail
from mirror_report.kafka.records import HashedRecord
from mirror_report.model import (
    ClusterSnapshot,
    Epochs,
    Finding,
    GroupOffsets,
    GroupParity,
    OffsetSync,
    PartitionSnapshot,
    Place,
    TopicSnapshot,
    Translation,
)

NOW = 1_800_000_000_000
FLOW = Flow(
    "orders", "east", "west", "t.*", engines.MM2, topics=("t.*",), group_id="east-mm2",
    replication_policy="prefix", consumer_groups=("billing.*",), instance="mirrormaker",
    offset_syncs_topic="syncs", checkpoints_topic="checkpoints",
)  # fmt: skip
WEST = Cluster("west", ("west1:9092",))
# Until 200 the distances are equal; 50 of the next records were copied twice.
SYNCS = ((0, 0), (100, 100), (150, 150), (200, 200), (300, 350))


def log(end: int, start: int = 0) -> PartitionSnapshot:
    return PartitionSnapshot(start, end, end)


def syncs(some: Sequence[tuple[int, int]]) -> tuple[OffsetSync, ...]:
    return tuple(OffsetSync(*pair, NOW - 1000) for pair in some)


def found(
    offset: int, some: Sequence[tuple[int, int]] = SYNCS, *, ends: tuple[int, int] = (400, 450)
) -> tuple[int | None, bool, int]:
    mapped = translate(offset, syncs(some), log(ends[0]), log(ends[1]))
    return mapped.offset, mapped.exact, mapped.at_most


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (100, (100, True, 100)),
        (150, (150, True, 150)),
        (300, (350, True, 350)),
        # Between two syncs with equal distances as much may be passed over as is repeated.
        (120, (101, False, 150)),
        # Between these two syncs the target got more than the source had.
        (250, (201, False, 350)),
        # Behind the last one nothing is proved.
        (320, (351, False, 450)),
    ],
)
def test_image_is_exact_where_syncs_prove_it(offset: int, expected: Any) -> None:
    assert found(offset) == expected


def test_offset_below_every_sync_has_no_image() -> None:
    assert found(50, SYNCS[1:]) == (None, False, 100)
    assert found(50, ()) == (None, False, 450)


def test_equal_distances_make_a_place_probable_and_no_more() -> None:
    some = syncs(SYNCS)
    assert translate(120, some, log(400), log(450)).estimate == 120
    assert translate(250, some, log(400), log(450)).estimate is None
    assert translate(320, some, log(400), log(450)).estimate is None


def test_bounds_that_meet_are_exact() -> None:
    assert found(320, ends=(400, 351)) == (351, True, 351)


def test_syncs_beyond_the_logs_are_of_a_former_topic() -> None:
    assert found(150, [*SYNCS, (900, 300)]) == (150, True, 150)
    assert found(250, [(0, 0), (200, 500)]) == (1, False, 450)


@settings(deadline=None)
@given(
    copies=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    foreign=st.lists(st.integers(0, 2), min_size=40, max_size=40),
    at=st.integers(0, 39),
    chosen=st.sets(st.integers(0, 39)),
)
def test_exact_images_are_true_and_bounds_hold(
    copies: list[int], foreign: list[int], at: int, chosen: set[int]
) -> None:
    """Against a mirror that writes records more than once, passes some over, and is not alone."""
    first: list[int | None] = []
    end = 0
    for count, others in zip(copies, foreign, strict=False):
        first.append(end if count else None)
        end += count + others
    at = min(at, len(copies) - 1)
    true = next((place for place in first[at:] if place is not None), end)
    some = [(u, d) for u, d in enumerate(first) if d is not None and u in chosen]
    mapped = translate(at, syncs(some), log(len(copies)), log(end))
    if mapped.offset is None:
        assert not any(upstream <= at for upstream, _ in some)
    elif mapped.exact:
        assert mapped.offset == true
    else:
        assert mapped.offset <= true <= mapped.at_most


# Groups


def topic(name: str, *parts: PartitionSnapshot) -> TopicSnapshot:
    return TopicSnapshot(name, "id", dict(enumerate(parts)), {}, None)


def cluster(*topics: TopicSnapshot) -> ClusterSnapshot:
    return ClusterSnapshot("c", "c", NOW, {snapshot.name: snapshot for snapshot in topics})


def scene(
    *, ends: tuple[int, int] = (400, 450), starts: tuple[int, int] = (0, 0),
    checkpoint: tuple[int, int] | None = (150, 150), **more: Any,
) -> groups.Scene:  # fmt: skip
    written = {} if checkpoint is None else {
        ("billing", "t", 0): OffsetSync(*checkpoint, NOW - 60_000)
    }  # fmt: skip
    given: dict[str, Any] = {
        "flow": FLOW, "bound": 10,
        "source": cluster(topic("t", log(ends[0], starts[0]))),
        "target": cluster(topic("east.t", log(ends[1], starts[1]))),
        "translation": Translation({("t", 0): syncs(SYNCS)}, written),
    } | more  # fmt: skip
    return groups.Scene(**given)


def group(source: int, target: int | None, state: str | None = "Empty") -> GroupOffsets:
    return GroupOffsets(
        "billing", {"t": {0: source}}, {} if target is None else {"east.t": {0: target}}, state
    )


def judged(offsets: GroupOffsets, **more: Any) -> GroupParity:
    (row,), _ = groups.parities(scene(**more), [offsets])
    return row


def states(row: GroupParity) -> tuple[str, int | None, int | None, float | None]:
    assert row.state == row.partitions[0].state
    return row.state, row.reread, row.skip, row.readiness


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (150, 150, ("ready", 0, 0, 1.0)),
        (150, 140, ("ready", 10, 0, 1.0)),
        (150, 139, ("reread", 11, 0, 0.0)),
        (150, 157, ("skip", 0, 7, 0.0)),
        # Only bounds are known here: 201 at least, 350 at most.
        (250, 195, ("reread", 6, 0, 0.0)),
        (250, 220, ("unknown", 0, None, 0.0)),
        (250, 353, ("skip", 0, 3, 0.0)),
        (150, None, ("not_synced", None, None, 0.0)),
    ],
)
def test_state_follows_from_the_image(source: int, target: int | None, expected: Any) -> None:
    assert states(judged(group(source, target))) == expected


def test_row_shows_what_it_rests_on() -> None:
    (row,) = judged(group(150, 140)).partitions
    assert (row.topic, row.target_topic, row.partition) == ("t", "east.t", 0)
    assert (row.source_offset, row.image, row.image_exact, row.target_offset) == (
        150, 150, True, 140,
    )  # fmt: skip
    assert (row.checkpoint, row.checkpoint_age_seconds) == ((150, 150), 60)


def test_without_a_bound_everything_may_be_read_again() -> None:
    assert states(judged(group(150, 0), bound=None)) == ("ready", 150, 0, 1.0)


def test_without_a_sync_below_it_a_position_is_unmapped() -> None:
    none = Translation({("t", 0): syncs(SYNCS[3:])}, {})
    assert states(judged(group(150, 0), translation=none)) == ("unmapped", None, None, 0.0)


THROUGH = {("t", 0): 400}


def test_end_of_the_source_is_the_end_of_the_target_where_that_is_proved() -> None:
    (row,) = judged(group(400, 450), drained=THROUGH).partitions
    # Behind the last copy there may be records of others.
    assert (row.image, row.image_exact, row.image_estimate) == (351, False, 450)
    proved = judged(group(400, 450), drained=THROUGH, proofs={("billing", "t", 0): 450})
    assert states(proved) == ("ready", 0, 0, 1.0)
    none = Translation({}, {})
    # The target holds nothing, so there is nothing to read again.
    empty = {"ends": (400, 450), "starts": (0, 450), "translation": none}
    assert states(judged(group(400, 450), drained=THROUGH, **empty)) == ("ready", 0, 0, 1.0)
    # It was through with less than there is now.
    assert judged(group(400, 450), drained={("t", 0): 390}, **empty).state == "unmapped"
    assert judged(group(400, 450), drained=THROUGH, shared={"t"}, **empty).state == "unmapped"


def test_ends_are_compared_where_the_mirror_alone_is_through() -> None:
    def probe(offset: int, **more: Any) -> groups.Probe | None:
        return groups.unproved(scene(**more), [group(offset, 1)]).get(("billing", "t", 0))

    assert probe(400, drained=THROUGH) == groups.Probe(400, (380, 400), (430, 450), 450)
    # Transaction markers may be all that is left for it.
    assert probe(395, drained=THROUGH) == groups.Probe(395, (380, 400), (430, 450), 450)
    assert probe(379, drained=THROUGH) == groups.Probe(379, (379, 399), (409, 449), None)
    assert probe(400) is None
    assert probe(400, drained=THROUGH, shared={"t"}) is None
    assert probe(395, drained=THROUGH, shared={"t"}) == groups.Probe(
        395, (395, 400), (425, 450), None
    )


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "Unknown"])
def test_group_that_works_on_the_target_has_positions_of_its_own(state: str) -> None:
    assert states(judged(group(150, 300, state))) == ("active_on_target", None, None, None)


@pytest.mark.parametrize("state", ["Empty", "Dead", None])
def test_group_that_rests_on_the_target_is_judged(state: str | None) -> None:
    assert judged(group(150, 157, state)).state == "skip"


def test_topic_that_is_not_mirrored_is_not_the_flows_matter() -> None:
    other = GroupOffsets("billing", {"other": {0: 5}}, {}, None)
    assert groups.parities(scene(), [other]) == ([], {})


def test_position_without_a_partition_on_the_target_is_unknown() -> None:
    assert judged(group(150, 1), target=cluster()).state == "unknown"


def test_position_beyond_the_end_of_the_source_is_unknown() -> None:
    assert judged(group(500, 1)).state == "unknown"


def test_what_the_target_no_longer_holds_is_skipped() -> None:
    row = judged(group(150, 140), starts=(0, 160))
    assert states(row) == ("skip", 0, 10, 0.0)
    # Nor does the source: the group would not have read it either.
    gone = judged(group(150, 140), starts=(160, 160), proofs={("billing", "t", 0): 160})
    assert states(gone) == ("ready", 0, 0, 1.0)


def test_compared_record_makes_a_bound_exact() -> None:
    (row,) = judged(group(250, 205), proofs={("billing", "t", 0): 203}).partitions
    assert (row.image, row.image_exact, row.skip, row.state) == (203, True, 2, "skip")


def test_checkpoint_is_a_bound_where_syncs_say_less() -> None:
    row = judged(group(250, 220), checkpoint=(240, 230))
    assert (row.partitions[0].image, row.state, row.reread) == (230, "reread", 10)
    # It is about a later position.
    assert judged(group(250, 220), checkpoint=(260, 230)).state == "unknown"
    none = Translation({}, {("billing", "t", 0): OffsetSync(150, 140, NOW)})
    assert judged(group(150, 140), translation=none, bound=400).state == "ready"


@pytest.mark.parametrize(
    ("written", "some"),
    [
        # A sync that lies behind it on the source does not on the target.
        ((240, 230), [(200, 200), (300, 210)]),
        # Before a side went back, what is on the other one was something else.
        ((240, 230), [(200, 200, True), (300, 350)]),
        # The target is shorter.
        ((240, 460), [(200, 200), (300, 350)]),
    ],
)
def test_checkpoint_of_former_logs_is_no_bound(
    written: tuple[int, int], some: list[tuple[Any, ...]]
) -> None:
    known = [OffsetSync(up, down, NOW, *began) for up, down, *began in some]
    checkpoints = {("billing", "t", 0): OffsetSync(*written, NOW - 1)}
    (row,) = judged(
        group(250, 220), translation=Translation({("t", 0): known}, checkpoints)
    ).partitions
    assert (row.image, row.state) == (201, "unknown" if some[1][1] > 210 else "skip")
    (row,) = judged(
        group(250, 220),
        translation=Translation(
            {("t", 0): known}, {("billing", "t", 0): OffsetSync(240, 205, NOW + 1)}
        ),
    ).partitions
    assert row.image == 205


def test_records_are_compared_where_syncs_prove_nothing() -> None:
    wanted = groups.unproved(scene(), [group(250, 1)])
    assert list(wanted.values()) == [groups.Probe(250, (250, 270), (230, 270), None)]
    assert groups.unproved(scene(), [group(150, 1)]) == {}
    assert groups.unproved(scene(), [group(400, 1)]) == {}, "no record stands there"


def test_positions_that_may_be_too_far_are_compared_first() -> None:
    some = [
        replace(group(250, target), group=f"billing-{number}")
        for number, target in enumerate((1, 240, 2))
    ]
    first, *_ = groups.unproved(scene(), some)
    assert first == ("billing-1", "t", 0)


def late(seen: groups.Scene, offsets: GroupOffsets) -> tuple[str, groups.Late]:
    (row,), remembered = groups.parities(seen, [offsets])
    return row.state, remembered


def test_checkpoint_that_does_not_follow_is_stale_after_a_while() -> None:
    offsets, seen = group(190, 1), scene(bound=None, checkpoint=(90, 1))
    state, first = late(seen, offsets)
    assert (state, list(first)) == ("ready", ["billing t 0"])
    source = replace(seen.source, taken_at_ms=NOW + 181_000)
    assert late(replace(seen, source=source, late=first), offsets)[0] == "stale"
    soon = replace(seen.source, taken_at_ms=NOW + 179_000)
    assert late(replace(seen, source=soon, late=first), offsets)[0] == "ready"
    # A newer checkpoint starts the wait again.
    other = scene(bound=None, checkpoint=(95, 2), source=source, late=first)
    assert late(other, offsets)[0] == "ready"


def test_checkpoint_at_the_groups_position_is_never_stale() -> None:
    assert late(scene(), group(150, 150)) == ("ready", {})


def test_checkpoint_that_could_not_be_moved_is_never_stale() -> None:
    # Both 160 and 190 are one past the sync at 150 for MirrorMaker 2.
    assert late(scene(bound=None, checkpoint=(160, 151)), group(190, 150)) == ("ready", {})


def test_group_that_never_reached_the_target_is_stale_after_a_while() -> None:
    offsets = group(150, None)
    state, first = late(scene(checkpoint=None), offsets)
    assert (state, len(first)) == ("not_synced", 1)
    source = replace(scene().source, taken_at_ms=NOW + 200_000)
    assert late(scene(checkpoint=None, source=source, late=first), offsets)[0] == "stale"


def test_checkpoints_that_could_not_be_read_make_nothing_stale() -> None:
    blind = Translation({("t", 0): syncs(SYNCS)}, None)
    assert late(scene(translation=blind), group(190, 150))[1] == {}


def test_group_is_as_bad_as_its_worst_partition_and_as_ready_as_their_share() -> None:
    part = log(400)
    seen = scene(
        source=cluster(topic("t", *[part] * 4)),
        target=cluster(topic("east.t", *[log(450)] * 4)),
        translation=Translation({("t", p): syncs(SYNCS) for p in range(3)}, {}),
    )
    offsets = GroupOffsets(
        "billing", {"t": dict.fromkeys(range(4), 150)},
        {"east.t": {0: 150, 1: 100, 2: 160, 3: 1}}, "Empty",
    )  # fmt: skip
    (row,), _ = groups.parities(seen, [offsets])
    assert [part.state for part in row.partitions] == ["ready", "reread", "skip", "unmapped"]
    assert (row.state, row.readiness, row.reread, row.skip) == ("skip", 0.25, 50, 10)
    # Of the last one nothing is known, so there may be more.
    assert (row.reread_at_most, row.skip_at_most) == (None, None)
    assert [(part.reread_at_most, part.skip_at_most) for part in row.partitions] == [
        (0, 0), (50, 0), (0, 10), (None, None),
    ]  # fmt: skip


def test_bound_is_never_shown_as_the_number_itself() -> None:
    row = judged(group(250, 195))
    assert (row.reread, row.reread_at_most, row.skip, row.skip_at_most) == (6, 155, 0, 0)
    lower = judged(group(250, 201))
    assert (lower.reread, lower.reread_at_most) == (0, 149)
    beyond = judged(group(250, 353))
    assert (beyond.skip, beyond.skip_at_most) == (3, 152)


def test_partition_of_which_nothing_is_known_makes_no_zero_of_its_group() -> None:
    part = log(400)
    seen = scene(
        source=cluster(topic("t", part, part)),
        target=cluster(topic("east.t", log(450), log(450))),
        translation=Translation({("t", 0): syncs(SYNCS)}, {}),
    )
    offsets = GroupOffsets("billing", {"t": {0: 150, 1: 150}}, {"east.t": {0: 150, 1: 1}}, "Empty")
    (row,), _ = groups.parities(seen, [offsets])
    assert (row.state, row.reread, row.reread_at_most, row.skip) == ("unmapped", 0, None, None)
    # One that has read nothing can miss nothing.
    idle = replace(offsets, source={"t": {0: 150, 1: 0}}, target={"east.t": {0: 150}})
    (row,), _ = groups.parities(seen, [idle])
    assert (row.reread, row.reread_at_most, row.skip) == (0, 0, 0)


# What is said


def said(*rows: GroupParity) -> list[Finding]:
    findings = [*failover.findings(FLOW, WEST, rows)]
    assert all(each.action and each.flow == "orders" for each in findings)
    return findings


def test_ready_groups_and_those_at_work_are_no_finding() -> None:
    assert said(judged(group(150, 150)), judged(group(150, 300, "Stable"))) == []
    assert said(judged(group(150, None))) == []


def test_skip_is_critical_with_the_command_that_mends_it() -> None:
    (finding,) = said(judged(group(150, 157)))
    assert (finding.severity, finding.kind, finding.topic, finding.count) == (
        "critical",
        "group_skip",
        "t",
        7,
    )
    assert "never read 7 records" in finding.message
    assert (
        "kafka-consumer-groups.sh --bootstrap-server west1:9092 --group billing --reset-offsets "
        "--topic east.t:0 --to-offset 150 --execute" in finding.action
    )


def test_skip_for_retention_asks_for_longer_retention() -> None:
    (finding,) = said(judged(group(150, 140), starts=(0, 160)))
    assert "retention.ms" in finding.action


@pytest.mark.parametrize(
    ("row", "kind", "count", "words"),
    [
        (judged(group(150, 100)), "group_reread", 50, "read 50 records of t again"),
        (judged(group(250, 100)), "group_reread", 101, "at least 101 and at most 250 records"),
        (judged(group(250, 220)), "group_unknown", 1, "--to-offset 201 --execute"),
        (judged(group(50, 1), translation=Translation({}, {})), "group_unmapped", 1,
         "--topic east.t:0 --to-earliest --execute"),
        (judged(group(190, 1), checkpoint=(90, 1), late={"billing t 0": ([90, 1], NOW - 200_000)}),
         "group_stale", 1, "journalctl -u mirrormaker.service"),
    ],
)  # fmt: skip
def test_other_states_are_warnings(row: GroupParity, kind: str, count: int, words: str) -> None:
    (finding,) = said(row)
    assert (finding.severity, finding.kind, finding.count) == ("warning", kind, count)
    assert words in finding.message + finding.action


def test_several_partitions_are_reset_together() -> None:
    (first,) = judged(group(150, 157)).partitions
    row = GroupParity("orders", "billing", "skip", 0, 0, 14, (first, replace(first, partition=1)))
    (finding,) = said(row)
    assert "printf '%s\\n' east.t,0,150 east.t,1,150 > offsets.csv && " in finding.action
    assert "--from-file offsets.csv --execute" in finding.action


# What is read


def decoded(*pairs: tuple[int, int]) -> list[OffsetSync]:
    tail = Tail()
    for upstream, downstream in pairs:
        value = upstream.to_bytes(8, "big") + downstream.to_bytes(8, "big")
        record = SimpleNamespace(key=b"\0\1t\0\0\0\0", value=value, timestamp=NOW)
        key, syncs = offset_syncs.history(tail, record)
        tail.latest[key] = syncs
    (some,) = offset_syncs.by_partition(Tail.load(json.loads(json.dumps(tail.dump())))).values()
    return some


def fed(*pairs: tuple[int, int]) -> list[tuple[int, int]]:
    return [(sync.upstream, sync.downstream) for sync in decoded(*pairs)]


def test_syncs_add_up_oldest_first() -> None:
    assert fed((0, 0), (100, 101), (200, 202)) == [(0, 0), (100, 101), (200, 202)]


def test_source_offset_that_goes_back_makes_older_syncs_worthless() -> None:
    assert fed((0, 0), (100, 100), (50, 180), (90, 220)) == [(50, 180), (90, 220)]
    # Of the target: it lost its tail, or was created again.
    assert fed((0, 0), (100, 100), (150, 40), (190, 80)) == [(150, 40), (190, 80)]


def test_first_sync_after_a_side_went_back_says_so() -> None:
    def begins(*pairs: tuple[int, int]) -> list[bool]:
        return [sync.begins for sync in decoded(*pairs)]

    assert begins((0, 0), (100, 100)) == [False, False]
    assert begins((0, 0), (100, 100), (50, 180), (90, 220)) == [True, False]
    assert begins((0, 0), (100, 100), (150, 40)) == [True]
    # It was written once more, here with the position of a later copy.
    assert begins((0, 0), (100, 100), (50, 180), (50, 180), (50, 190)) == [True]
    many = decoded((9, 9), *((n * 100, 10 + n * 100) for n in range(500)))
    assert (many[0].upstream, many[0].begins, len(many) < 200) == (0, True, True)


def test_repeated_source_offset_keeps_the_newest_place() -> None:
    assert fed((0, 0), (100, 100), (100, 130)) == [(0, 0), (100, 130)]


def test_old_syncs_are_thinned_out_and_the_way_back_stays() -> None:
    kept = [upstream for upstream, _ in fed(*((n * 100, n * 100) for n in range(5000)))]
    assert len(kept) <= 2 * offset_syncs.SYNCS_KEPT
    newest = kept[-1]
    assert (kept[0], newest) == (0, 499_900)
    for offset in range(0, newest, 1000):
        below = max(upstream for upstream in kept if upstream <= offset)
        assert offset - below <= newest - offset + 100


@pytest.mark.parametrize(
    ("record", "other", "same"),
    [
        (HashedRecord(1, b"a", 5), HashedRecord(7, b"a", 5), True),
        (HashedRecord(1, b"a", 5), HashedRecord(7, b"a", 6), False),
        (HashedRecord(1, b"a", 5), HashedRecord(7, b"b", 5), False),
        (HashedRecord(1, b"a", 5), HashedRecord(7, b"a", None), True),
    ],
)
def test_copies_agree_in_content_and_time_unless_a_broker_stamps_them(
    record: HashedRecord, other: HashedRecord, same: bool
) -> None:
    assert record.same_as(other) is same


# Logs that lost their newest records and grew past them


def seen(leader: int, at_ms: int, *, end: int = 400) -> ClusterSnapshot:
    led = replace(log(end), leader_epoch=leader)
    return replace(cluster(topic("t", led)), taken_at_ms=at_ms)


def looked(*looks: tuple[int, int, Epochs | None]) -> elections.Elections:
    """What several looks know of a log: leader epoch, time, and what its leader tells of epochs."""
    known: dict[Place, elections.Elections] = {}
    for leader, at_ms, told in looks:
        now = seen(leader, at_ms)
        found = {place: told for place in elections.epochs_to_ask(now, known) if told is not None}
        noted = elections.updated(now, elections.load(elections.dump(known)), found)
        known = elections.load(json.loads(json.dumps(elections.dump(noted))))
    return known["t", 0]


DAY = 24 * 3_600_000
LOOKED = (3, NOW - DAY, None)


def exact(
    source: elections.Elections | None, target: elections.Elections | None = None
) -> list[tuple[int | None, bool]]:
    """Where offsets 100 and 200 are, which have syncs."""
    around = scene(
        checkpoint=None,
        source_elections={} if source is None else {("t", 0): source},
        target_elections={} if target is None else {("east.t", 0): target},
    )
    images = [around.image("billing", "t", 0, offset) for offset in (100, 200)]
    return [(one.offset, one.exact) for one in images if one is not None]


def test_a_sync_proves_its_place_while_its_log_has_one_leader() -> None:
    assert exact(looked(LOOKED, (3, NOW, None))) == [(100, True), (200, True)]
    assert exact(looked((0, NOW, None))) == [(100, True), (200, True)], "there was no other before"


def test_a_sync_of_a_tail_that_was_lost_proves_nothing() -> None:
    # The mirror was past it and did not step back: no sync says so.
    lost = looked(LOOKED, (4, NOW, ((4, 150),)))
    assert exact(lost) == [(100, True), (101, False)]
    assert exact(None, lost) == [(100, True), (101, False)]
    # What was written since is about what is there.
    assert lost.allow(200, NOW + elections.SLACK_MS + 1)
    assert not lost.allow(200, NOW)
    # A clean election begins at the end of the log.
    assert exact(looked(LOOKED, (4, NOW, ((4, 400),)))) == [(100, True), (200, True)]
    checkpoint = scene(checkpoint=(190, 190), source_elections={("t", 0): lost})
    (found,) = [checkpoint.image("billing", "t", 0, 195)]
    assert found is not None
    assert found.offset == 101, "nor does a checkpoint there"


@pytest.mark.parametrize(
    "looks",
    [
        [(3, NOW, None)],
        [LOOKED, (4, NOW, None)],
        [LOOKED, (4, NOW, ())],
    ],
    ids=["looked at for the first time", "its leader does not tell", "its log keeps no epochs"],
)
def test_a_sync_is_a_bound_where_an_election_may_have_gone_unseen(looks: Any) -> None:
    assert exact(looked(*looks)) == [(100, False), (200, False)]
    assert exact(None, looked(*looks)) == [(100, False), (200, False)]
    unproved = scene(checkpoint=None, source_elections={("t", 0): looked(*looks)})
    few = translate(102, syncs([(100, 100), (105, 101)]), log(400), log(450), NOW)
    assert (few.offset, few.exact, few.at_most) == (101, False, 101)
    (probe,) = groups.unproved(unproved, [group(100, 100)]).values()
    assert (probe.ours[0], probe.theirs) == (100, (100, 120)), "its record decides"


def test_what_is_kept_of_elections_is_bounded() -> None:
    many = [(n, NOW - DAY + n, ((n, 10 * n),)) for n in range(4, 40)]
    known = looked(LOOKED, *many)
    assert (known.epoch, len(known.begun), known.begun[0][0]) == (39, elections.KEPT, 40)
    assert looked(LOOKED, *many, (40, NOW, ((40, 5),))).begun == ((5, NOW),)


# What cannot be read


class Own:
    """The target's client, of a mirror whose own topics hold one batch each."""

    cluster = WEST

    def snapshot(self, _: Any, names: Any, *, settings: bool) -> ClusterSnapshot:
        """Topics with a record."""
        assert not settings
        return cluster(*(topic(name, log(1)) for name in names))


@pytest.mark.parametrize("name", ["syncs", "checkpoints"])
def test_what_a_damaged_batch_of_the_mirror_may_hold_is_unknown_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def catch_up(_: Any, __: Any, reads: Any, ___: float) -> dict[str, ClusterError]:
        for read, tail, _ in reads:
            tail.next = {0: 0 if read.name == name else 1}
        return {name: UnreadableError(f"{name} cannot be read")}

    monkeypatch.setattr(offset_syncs, "catch_up", catch_up)
    own: Any = Own()
    read = offset_syncs.translation(own, Credentials(), FLOW, {}, ())
    assert [problem.kind for problem in read.problems] == ["unreadable"]
    assert (read.syncs is None, read.checkpoints is None) == (name == "syncs", name != "syncs")
    if name == "syncs":
        # An older sync may be contradicted by one of those.
        assert states(judged(group(150, 150), translation=read)) == ("unknown", None, None, 0.0)
