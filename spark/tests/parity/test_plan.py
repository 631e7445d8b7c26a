"""What a run reads: decided from offsets, ids, baseline and budget, without Spark."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_report.config.cluster import Cluster
from mirror_report.config.flow import Flow
from mirror_report.config.settings import Spark
from mirror_report.engines import MM2
from mirror_report.model.cluster import ClusterSnapshot, PartitionSnapshot, TopicSnapshot
from mirror_report.model.findings import Finding
from mirror_report.parity import FINGERPRINT_VERSION
from mirror_report.parity.errors import ParityError
from mirror_report.parity.plan import topics as plan
from mirror_report.parity.plan.ranges import Range, chunks, join, within_budget
from mirror_report.parity.spark import session, source
from mirror_report.parity.spark.errors import explain
from mirror_report.parity.state.manifest import Gap, Memory, SideMemory, basis

FLOW = Flow(name="f", source="a", target="b", include="t|u", topics=("t", "u"))
MINUTE = 60_000


def topic(name: str = "t", ident: str = "id", logs: Any = ((0, 10),), **configs: str) -> Any:
    partitions = {p: PartitionSnapshot(*log) for p, log in enumerate(logs)}
    return TopicSnapshot(name, ident, partitions, configs, None)


def cluster(*topics: TopicSnapshot, errors: dict[str, str] | None = None) -> ClusterSnapshot:
    return ClusterSnapshot("a", "id", 1_000, {one.name: one for one in topics}, errors or {})


def memory(**sides: SideMemory) -> Memory:
    found = Memory(FINGERPRINT_VERSION, MINUTE)
    for side, one in sides.items():
        found.sides["f", side, "t"] = one  # type: ignore[index]
    return found


def planned(
    source_topic: TopicSnapshot,
    target_topic: TopicSnapshot | None = None,
    known: Memory | None = None,
    baseline: dict[str, Any] | None = None,
) -> plan.FlowPlan:
    return plan.plan_flow(
        FLOW,
        known or memory(),
        baseline or {},
        cluster(source_topic),
        cluster(*([target_topic] if target_topic else [])),
    )


def loaded(text: str) -> Memory:
    return Memory.load(json.loads(text), FINGERPRINT_VERSION, MINUTE, Path("/state"))


def spans(found: plan.FlowPlan) -> list[tuple[str, int, int, int]]:
    return [(one.side, one.partition, one.start, one.end) for one in found.ranges]


def test_everything_is_read_the_first_time() -> None:
    found = planned(topic(logs=((0, 10), (5, 7), (3, 3))), topic(ident="other", logs=((0, 4),)))
    assert spans(found) == [("source", 0, 0, 10), ("source", 1, 5, 7), ("target", 0, 0, 4)]
    assert (found.gaps, found.reopened) == ([], [])


def test_reading_goes_on_where_it_stopped() -> None:
    known = memory(source=SideMemory("id", {0: 0}, {0: 8}))
    assert spans(planned(topic(), known=known)) == [("source", 0, 8, 10)]
    grown = planned(topic(logs=((0, 8), (0, 3))), known=known)
    assert spans(grown) == [("source", 1, 0, 3)], "a new partition is read from its start"


def test_a_mirror_copies_up_to_the_high_watermark() -> None:
    log = PartitionSnapshot(0, 5, 9)
    one = TopicSnapshot("t", "id", {0: log}, {}, None)
    assert spans(planned(one)) == [("source", 0, 0, 9)]


def test_a_side_that_is_read_committed_ends_where_transactions_are_decided() -> None:
    one = TopicSnapshot("t", "id", {0: PartitionSnapshot(0, 5, 9)}, {}, None)
    committed = replace(FLOW, source_isolation="read_committed")
    known = memory()
    for flow, spans_of_both in (
        (committed, [("source", 0, 0, 5), ("target", 0, 0, 9)]),
        (FLOW, [("source", 0, 0, 9), ("target", 0, 0, 9)]),
    ):
        found = plan.plan_flow(flow, known, {}, cluster(one), cluster(one))
        assert spans(found) == spans_of_both
    assert basis(committed, {}) != basis(FLOW, {}), "other records are for real"


BASELINE = {
    "recorded_at_ms": 1,
    "topics": {
        "t": {
            "source": {"0": 4},
            "target": {"0": 6},
            "required": {"0": 5},
            "untouched": {"0": 8},
            "sought": {"0": 1},
            "recorded_at_ms": 1,
            "source_id": "id",
            "target_id": "there",
        }
    },
}


def test_reading_begins_at_the_baseline() -> None:
    found = planned(topic(), topic(ident="there"), baseline=BASELINE)
    assert spans(found) == [("source", 0, 4, 10), ("target", 0, 6, 10)]
    source, target = (found.begin["f", one, "t"] for one in ("source", "target"))
    assert (source.required, source.untouched, source.sought) == ({0: 5}, {0: 8}, {})
    assert (target.required, target.untouched, target.sought) == ({}, {}, {0: 1})


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_is_left_open_by_a_baseline_ends_with_the_logs_it_is_of(side: str) -> None:
    """Records of a topic made anew count all, whatever their offsets."""
    known = memory()
    idents = {"source": "id", "target": "there"}
    for made in (idents, {**idents, side: "another"}):
        found = plan.plan_flow(
            FLOW, known, BASELINE, cluster(topic(ident=made["source"])),
            cluster(topic(ident=made["target"])),
        )  # fmt: skip
        known.sides |= found.begin
    assert [one.kind for one in found.reopened] == ["topic_reset"]
    for one in known.sides.values():
        assert (one.required, one.untouched, one.sought) == ({}, {}, {})


def test_a_source_that_got_shorter_has_no_records_from_before_the_baseline() -> None:
    known = memory()
    for end in (10, 6):
        found = plan.plan_flow(
            FLOW, known, BASELINE, cluster(topic(logs=((0, end),))), cluster(topic(ident="there"))
        )
        known.sides |= {
            key: replace(one, next=dict.fromkeys(one.next, end)) for key, one in found.begin.items()
        }
    assert [one.kind for one in found.reopened] == ["rewind"]
    assert known.sides["f", "source", "t"].required == {}
    assert known.sides["f", "target", "t"].sought == {0: 1}


def test_a_source_that_lost_its_beginning_before_the_first_look_is_remembered() -> None:
    def older(known: Memory, start: int, baseline: Mapping[str, Any] = {}) -> dict[int, int]:
        found = plan.plan_flow(
            FLOW, known, baseline, cluster(topic(logs=((start, 10),))), cluster(topic())
        )
        known.sides |= found.begin
        return found.begin["f", "target", "t"].older

    assert older(memory(), 4) == {0: 10}
    assert older(memory(), 0) == {}
    known = memory()
    assert [older(known, 0), older(known, 4)] == [{}, {}], "it was whole at the first look"
    full = {"topics": {"t": {"source": {"0": 4}, "required": {"0": 4}, "target": {"0": 0},
                             "older": {"0": 7}, "source_id": None, "target_id": None}}}  # fmt: skip
    assert older(memory(), 4, full) == {0: 7}


def test_a_topic_that_appeared_after_the_baseline_counts_from_its_first_record() -> None:
    found = plan.plan_flow(FLOW, memory(), BASELINE, cluster(topic("u", logs=((2, 5),))), cluster())
    assert spans(found) == [("source", 0, 2, 5)]
    assert [(gap.start, gap.end) for gap in found.gaps] == [(0, 2)]


@pytest.mark.parametrize(("start", "gap"), [(8, []), (9, [(8, 9)]), (10, [(8, 10)])])
def test_what_expired_unread_is_a_gap(start: int, gap: list[tuple[int, int]]) -> None:
    known = memory(source=SideMemory("id", {0: 0}, {0: 8}))
    found = planned(topic(logs=((start, 10),)), known=known)
    assert [(one.start, one.end) for one in found.gaps] == gap
    assert all(one.until_ms == 1_000 for one in found.gaps)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_topic_created_again_is_read_anew(side: str) -> None:
    known = memory(
        source=SideMemory("id", {0: 0}, {0: 8}), target=SideMemory("there", {0: 0}, {0: 8})
    )
    ids = {"source": "id", "target": "there"} | {side: "new"}
    found = planned(topic(ident=ids["source"]), topic(ident=ids["target"]), known=known)
    assert [(one.kind, one.side) for one in found.reopened] == [("topic_reset", side)]
    assert [(one.side, one.origin) for one in found.drops] == [(side, "t")]
    assert (side, 0, 0, 10) in spans(found)
    # What a new source topic no longer has may well be on the target.
    assert len(found.gaps) == (side == "source")


def test_a_topic_created_again_since_the_baseline_is_noticed() -> None:
    found = planned(topic(ident="new"), topic(ident="there"), baseline=BASELINE)
    assert [one.kind for one in found.reopened] == ["topic_reset"]
    assert ("source", 0, 0, 10) in spans(found), "the baseline of the old topic means nothing"


def test_a_log_that_got_shorter_is_read_anew() -> None:
    known = memory(source=SideMemory("id", {0: 0, 1: 0}, {0: 12, 1: 3}))
    found = planned(topic(logs=((0, 10), (0, 3))), known=known)
    assert [(one.kind, one.partition) for one in found.reopened] == [("rewind", 0)]
    assert spans(found) == [("source", 0, 0, 10), ("source", 1, 0, 3)]


def test_a_deleted_target_is_noticed() -> None:
    known = memory(target=SideMemory("there", {0: 0}, {0: 8}))
    found = planned(topic(), known=known)
    assert [(one.kind, one.side, one.detail) for one in found.reopened] == [
        ("topic_reset", "target", "deleted")
    ]


def test_a_source_topic_that_is_gone_is_left_behind() -> None:
    known = memory(source=SideMemory("id", {0: 0}, {0: 8}))
    found = plan.plan_flow(FLOW, known, {}, cluster(), cluster(topic()))
    assert found.topics == []
    assert [(one.topic, one.origins) for one in found.departed] == [("t", ("t",))]
    assert [(one.side, one.origin) for one in found.drops] == [("source", "t"), ("target", "t")]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_compacted_topic_is_not_read_by_bucket(side: str) -> None:
    compacted = topic(**{"cleanup.policy": "compact"})
    plain = topic(**{"cleanup.policy": "delete"})
    found = planned(*((compacted, plain) if side == "source" else (plain, compacted)))
    assert (found.ranges, found.topics[0].judged) == ([], False)
    assert (found.topics[0].strategy, found.topics[0].skip) == ("latest_by_key", None)


def test_a_topic_that_cannot_be_read_is_unknown() -> None:
    found = plan.plan_flow(FLOW, memory(), {}, cluster(errors={"t": "forbidden"}), cluster())
    assert [(one.topic, one.unknown) for one in found.topics] == [("t", "source: forbidden")]
    found = plan.plan_flow(FLOW, memory(), {}, cluster(topic()), cluster(errors={"t": "forbidden"}))
    assert [(one.topic, one.unknown) for one in found.topics] == [("t", "target: forbidden")]
    assert found.ranges == []


def test_a_position_past_the_end_is_of_an_earlier_topic() -> None:
    taken = {"t": {0: 10, 1: 4, 2: 7}, "gone": {0: 5}}
    after = cluster(topic(logs=((0, 10), (0, 3))))
    assert plan.of_present_topics(taken, after) == {"t": {0: 10, 2: 7}, "gone": {0: 5}}


ranges = st.lists(
    st.tuples(st.sampled_from(["source", "target"]), st.integers(0, 50), st.integers(1, 1000)),
    min_size=1,
    max_size=8,
).map(
    lambda some: [
        Range("f", side, "t", "t", number, start, start + length, 10.0)  # type: ignore[arg-type]
        for number, (side, start, length) in enumerate(some)
    ]
)


def offsets(some: list[Range]) -> list[tuple[str, int, int]]:
    return [(r.side, r.partition, at) for r in some for at in range(r.start, r.end)]


@given(ranges, st.integers(1, 20_000))
def test_a_budget_cuts_the_newest_and_loses_nothing(some: list[Range], budget: int) -> None:
    now, later = within_budget(some, budget)
    assert sorted(offsets([*now, *later])) == sorted(offsets(some))
    assert {one.partition for one in now} == {one.partition for one in some}, "each gets on"
    cut = {one.partition: one.end for one in now}
    assert all(cut[one.partition] == one.start for one in later), "oldest first"
    assert sum(one.bytes for one in now) <= budget + 10 * len(some)
    assert within_budget(some, None) == (some, [])


@given(ranges, st.integers(10, 20_000))
def test_pieces_are_bounded_and_complete(some: list[Range], size: int) -> None:
    pieces = chunks(some, size)
    assert sorted(offsets([one for piece in pieces for one in piece])) == sorted(offsets(some))
    for piece in pieces:
        assert sum(one.bytes for one in piece) <= size + 10 * len(some)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 8)), max_size=12))
def test_ranges_are_joined_into_reads(some: list[tuple[int, int, int]]) -> None:
    given_ranges = [Range("f", "source", "t", "t", p, at, at + n) for p, at, n in some]
    groups = join(given_ranges)
    read = offsets([one for group in groups for one in group])
    assert len(read) == len(set(read)), "nothing is read twice"
    assert set(read) == set(offsets(given_ranges))
    for group in groups:
        assert len({one.partition for one in group}) == len(group)


def test_what_digests_rest_on_is_the_baseline_the_engine_and_the_names() -> None:
    mm2 = replace(FLOW, engine=MM2)
    bases = [
        basis(FLOW, BASELINE),
        basis(FLOW, {}),
        basis(mm2, BASELINE),
        basis(replace(mm2, replication_policy="prefix"), BASELINE),
    ]
    assert all(bases.count(one) == 1 for one in bases)
    assert json.loads(json.dumps(bases)) == bases, "as the manifest keeps them"


def test_what_is_remembered_survives_the_manifest() -> None:
    known = memory(source=SideMemory("id", {0: 1}, {0: 8}))
    known.gaps.append(Gap("f", "source", "t", "t", 0, 1, 2, 3))
    known.positions = {"f": {"t": {0: 7}}}
    known.summaries = {"f": {"t": {"now": {"missing": 1}}}}
    known.baselines = {"f": basis(FLOW, BASELINE)}
    text = json.dumps(known.dump())
    assert loaded(text) == known
    assert loaded("{}") == Memory(FINGERPRINT_VERSION, MINUTE), "nothing was remembered yet"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("fingerprint_version", FINGERPRINT_VERSION + 1, "Install the release that wrote it"),
        ("format", 1, "Install the release that wrote it"),
        ("bucket_ms", 2 * MINUTE, "Set bucket_seconds back"),
        ("sides", [{"flow": "f"}], "damaged"),
        ("gaps", None, "damaged"),
    ],
)
def test_what_cannot_be_gone_on_from_is_refused_with_the_cure(
    name: str, value: Any, told: str
) -> None:
    manifest = memory(source=SideMemory("id", {0: 1}, {0: 8})).dump()
    with pytest.raises(ParityError, match=told) as error:
        loaded(json.dumps({**manifest, name: value}))
    assert "mv /state/parity.json /state/parity " in str(error.value)


def test_news_are_kept_until_a_report_has_told_them() -> None:
    known = memory()
    one = Finding("critical", "reset", "f", "t", None, None, "reset", "look")
    known.now_runs("1", ["f"], lambda _: False)
    known.news.append(one)
    again = loaded(json.dumps(known.dump()))
    again.now_runs("2", ["f"], lambda run: run == "1")
    assert again.news == [one], "run 1 did not come to its end"
    again.finished["f"] = "2"
    again.now_runs("3", ["f"], lambda _: False)
    assert (again.news, again.untold) == ([one], {"f": ["2", "3"]}), "nobody got the report of 2"
    again.finished["f"] = "3"
    again.now_runs("4", ["other"], lambda _: True)
    assert again.news == [one], "a run of another flow"
    again.now_runs("5", ["f"], lambda _: True)
    assert (again.news, again.untold["f"]) == ([], ["5"])


def test_spark_is_given_references_and_no_secrets(tmp_path: Path) -> None:
    for kind in ("jaas", "ca.pem", "cert.pem"):
        (tmp_path / f"east.report.{kind}").touch()
    secured = Cluster(
        "east", ("h:1", "h:2"), "SASL_SSL", "SCRAM-SHA-512", "report", "report", ssl_ca=True
    )
    found = source.options(secured, tmp_path)
    where = f"${{dir:{tmp_path}:east.report."
    assert found["kafka.sasl.jaas.config"] == where + "jaas}"
    assert found["kafka.ssl.truststore.certificates"] == where + "ca.pem}"
    assert found["kafka.bootstrap.servers"] == "h:1,h:2"
    with pytest.raises(ParityError, match="credentials from files"):
        source.options(secured, None)
    certified = Cluster("east", ("h:1",), "SSL", ssl_certificate=True)
    with pytest.raises(ParityError, match=r"'east\.report\.key\.pem' is not in"):
        source.options(certified, tmp_path)
    (tmp_path / "east.report.key.pem").touch()
    found = source.options(certified, tmp_path)
    assert found["kafka.ssl.keystore.certificate.chain"] == where + "cert.pem}"
    assert found["kafka.ssl.keystore.key"] == where + "key.pem}"
    assert not any("jaas" in name for name in source.options(Cluster("a", ("h:1",)), None))


@pytest.mark.parametrize(
    ("heap", "gigabytes", "round_trip_ms", "poll", "partition_mib"),
    [
        ("4g", 0.1, 50, 5000, 1),
        ("4g", 1, 0.2, 5000, 2),
        ("4g", 1, None, 5000, 2),
        ("2g", 1, 50, 20_000, 16),
        ("1g", 1, 50, 5000, 2),
    ],
)
def test_fetches_fit_what_is_read_the_distance_and_the_heap(
    heap: str, gigabytes: float, round_trip_ms: float | None, poll: int, partition_mib: int
) -> None:
    found = source.fetch_sizes(Spark(heap=heap), gigabytes * 1e9, round_trip_ms)
    assert int(found["max.poll.records"]) == poll
    assert int(found["max.partition.fetch.bytes"]) == partition_mib * 1024**2


def test_what_is_fetched_can_be_said_and_wins() -> None:
    told = Spark(fetch={"max.poll.records": "7"})
    sizes = source.fetch_sizes(told, 1e9, None)
    found = source.options(Cluster("a", ("h:1",)), None, sizes)
    assert found["kafka.max.poll.records"] == "7"
    assert found["kafka.fetch.max.wait.ms"] == "10", "a task would wait after its last record"
    assert found["kafka.allow.auto.create.topics"] == "false", "asking must not create"


def test_on_a_cluster_the_heap_that_reads_is_an_executors() -> None:
    far = Spark(master="spark://h:7077", properties={"spark.executor.memory": "4g"})
    assert int(source.fetch_sizes(far, 1e9, 50)["max.poll.records"]) == 20_000


def test_the_round_trip_is_measured_by_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        found = source.round_trip(Cluster("a", ("127.0.0.1:1", address)))
    assert found is not None
    assert found > 0
    assert source.round_trip(Cluster("a", (address,))) is None, "nobody listens any more"


def test_executors_elsewhere_find_credentials_where_this_host_has_them_too(tmp_path: Path) -> None:
    (tmp_path / "east.report.jaas").touch()
    secured = Cluster("east", ("h:1",), "SASL_PLAINTEXT", "PLAIN", "report", "report")
    some = [Range("f", "source", "t", "t", 0, 0, 10)]
    far = Spark(master="spark://h:7077", credentials_directory=str(tmp_path))
    found = source.connection(far, secured, Path("/run/credentials/unit"), some)
    assert found["kafka.sasl.jaas.config"] == f"${{dir:{tmp_path}:east.report.jaas}}"
    with pytest.raises(ParityError, match="mirror_report_executor_credentials"):
        source.connection(Spark(master="spark://h:7077"), secured, tmp_path, some)
    plain = Cluster("west", ("h:1",))
    assert source.connection(Spark(master="spark://h:7077"), plain, None, some)


def test_a_session_is_made_for_what_it_has_to_do(tmp_path: Path) -> None:
    (tmp_path / "spark-sql-kafka.jar").touch()
    (tmp_path / "kafka-clients.jar").touch()
    local = session.configuration(Spark(jars_directory=str(tmp_path)), 0)
    assert local["spark.driver.extraClassPath"] == (
        f"{tmp_path}/kafka-clients.jar:{tmp_path}/spark-sql-kafka.jar"
    )
    assert "TieredStopAtLevel=1" in local["spark.driver.extraJavaOptions"]
    assert local["spark.sql.codegen.wholeStage"] == "false", "compiling costs more than it saves"
    far = session.configuration(
        Spark(master="spark://h:7077", jars_directory=str(tmp_path), properties={"a": "b"}), 1e9
    )
    assert "spark.sql.codegen.wholeStage" not in far
    assert "spark.driver.extraClassPath" not in far
    assert far["spark.jars"].count(",") == 1
    assert far["a"] == "b"
    (tmp_path / "spark-sql-kafka.jar").unlink()
    with pytest.raises(ParityError, match="jars_directory"):
        session.configuration(Spark(jars_directory=str(tmp_path)), 0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Py4JJavaError: java.lang.OutOfMemoryError: Java heap space", "spark.heap"),
        ("org.apache.kafka...OffsetOutOfRangeException {t-0=5}", "vanished while"),
        ("UnknownTopicOrPartitionException: This server does not host", "topic vanished"),
        ("TopicAuthorizationException: Not authorized", "READ permission"),
        ("Failed to find data source: kafka", "jars_directory"),
        ("java.io.IOException: No space left on device", "no space"),
        ("[PATH_NOT_FOUND] Path does not exist", "baseline"),
        ("something else\nand more", "something else"),
    ],
)
def test_errors_of_spark_are_told_with_their_cure(text: str, told: str) -> None:
    assert told in explain(text)


def test_what_was_found_is_news_until_a_report_of_its_flow_is_written() -> None:
    reports: set[str] = set()
    one = Memory(FINGERPRINT_VERSION, MINUTE)

    def run(name: str, *flows: str, told: bool = False) -> dict[str, list[str]]:
        one.now_runs(name, flows, reports.__contains__)
        if told:
            reports.add(name)
        return one.untold

    assert run("1", "f", "g") == {"f": ["1"], "g": ["1"]}
    assert run("2", "f", told=True) == {"f": ["1", "2"], "g": ["1"]}
    assert one.is_news("f", "1"), "the report of the second run still tells it"
    assert run("3", "f", "g") == {"f": ["3"], "g": ["1", "3"]}
    assert (one.is_news("f", "1"), one.is_news("g", "1")) == (False, True)
    assert loaded(json.dumps(one.dump())).untold == one.untold
