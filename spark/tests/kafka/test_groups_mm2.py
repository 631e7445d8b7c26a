"""Consumer groups that a real MirrorMaker 2 takes along, and every topic of its source.

Comes before ``test_mm2.py``, which goes on with the same process and at last replaces it.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata
from mm2_lab import Lab, admin, until

from mirror_report.config import Settings, Warn
from mirror_report.groups.moving import examine_groups
from mirror_report.kafka import offset_syncs
from mirror_report.kafka.groups import with_coordinator
from mirror_report.model import GroupParity, GroupPartition, Report, ReportError, TopicStatus
from mirror_report.observe import open_clients
from mirror_report.report.make import make_report

pytestmark = pytest.mark.usefixtures("without_spark")
POSITIONS = {
    "follow-end": 1000, "follow-behind": 257, "follow-skips": 157, "follow-active": 100,
}  # fmt: skip


@dataclass
class Followed:
    """A topic of plain records, one of transactions, and one that is to go."""

    lab: Lab
    bulk: Lab
    gone: Lab

    @property
    def settings(self) -> Settings:
        """One flow of the three, and of groups."""
        names = [lab.topic for lab in (self.lab, self.bulk, self.gone)]
        changes = {
            "name": "followed", "topics": names, "include": "|".join(names),
            "consumer_groups": ["follow-.*"], "groups_exclude": ["follow-not"],
            "checkpoint_seconds": 1,
        }  # fmt: skip
        return replace(self.lab.settings(changes), warn=Warn(reread_records=0))

    def report(self) -> Report:
        """The whole report, as far as it needs no Spark."""
        return make_report(self.settings, None, lambda _: None)


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    with admin(bootstrap) as client:
        where = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}
        with_coordinator(lambda: client.alter_group_offsets(group, where))


def committed(lab: Lab, group: str) -> int | None:
    with admin(lab.target) as client:
        found = with_coordinator(lambda: client.list_group_offsets({group: None}))[group]
    position = found.get(TopicPartition(lab.mirrored, 0))
    return None if position is None else int(position.offset)


def _translates(lab: Lab) -> bool:
    """Whether the task that writes checkpoints is at work."""
    settings = lab.settings()
    try:
        with open_clients(settings, ["west"]) as clients:
            workers = clients.mirror_status(settings.flows[0], {}).workers
    except ReportError:
        # Its own topics are just being created.
        return False
    states = {(worker.connector, worker.task): worker.state for worker in workers}
    return states.get(("MirrorCheckpointConnector", 0)) == "RUNNING"


@pytest.fixture(scope="module")
def followed(make: Callable[[str, str], Lab]) -> Followed:
    """Everything mirrored, and the groups' positions taken along as far as they are."""
    found = Followed(*(make("prefix", name) for name in ("followed", "followed-bulk", "gone")))
    for lab in (found.lab, found.bulk, found.gone):
        lab.create()
    # A task of checkpoints forgets all but the newest of the syncs that are there when it starts;
    # so the groups come first, which it starts with, then it, then the records.
    for group, offset in POSITIONS.items():
        commit(found.lab.source, group, found.lab.topic, offset)
    # Two markers lie before it, so it is the 26th record.
    commit(found.lab.source, "follow-bulk", found.bulk.topic, 27)
    commit(found.lab.source, "follow-not", found.lab.topic, 1)
    found.lab.mirror.start("prefix")
    until(lambda: _translates(found.lab))
    found.lab.produce(1000)
    found.gone.produce(10)
    with contextlib.closing(
        KafkaProducer(bootstrap_servers=found.bulk.source, transactional_id=found.bulk.topic)
    ) as producer:
        producer.init_transactions()
        for first in range(0, 50, 10):
            producer.begin_transaction()
            for number in range(first, first + 10):
                producer.send(found.bulk.topic, value=b"%d" % number)
            producer.commit_transaction()
    found.lab.drained()
    found.bulk.drained(markers=1)
    until(lambda: all(committed(found.lab, group) is not None for group in POSITIONS))
    until(lambda: committed(found.bulk, "follow-bulk") is not None)
    until(lambda: committed(found.lab, "follow-end") == 1000)
    # What MirrorMaker 2 has once written it never takes back; before that it would overwrite this.
    commit(found.lab.target, "follow-skips", found.lab.mirrored, 400)
    return found


@contextlib.contextmanager
def at_work(lab: Lab, group: str) -> Iterator[None]:
    """A consumer of the mirrored topic that is a member of a group, and commits nothing."""
    consumer = KafkaConsumer(bootstrap_servers=lab.target, group_id=group, enable_auto_commit=False)
    consumer.subscribe([lab.mirrored])
    end = threading.Event()

    def poll() -> None:
        while not end.is_set():
            consumer.poll(timeout_ms=100)
        consumer.close(autocommit=False)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        with admin(lab.target) as client:
            until(lambda: client.describe_groups([group])[group]["group_state"] == "Stable")
        yield
    finally:
        end.set()
        thread.join()


@pytest.fixture(scope="module")
def reports(followed: Followed) -> tuple[Report, Report]:
    """One report while a topic has just gone and a group works on the target, and one more."""
    with at_work(followed.lab, "follow-active"):
        followed.report()
        with admin(followed.lab.source) as client:
            client.delete_topics([followed.gone.topic])
            until(lambda: followed.gone.topic not in client.list_topics())
        return followed.report(), followed.report()


@pytest.fixture(scope="module")
def groups(reports: tuple[Report, Report]) -> Mapping[str, GroupParity]:
    return {group.group: group for group in reports[0].groups}


def only(group: GroupParity) -> GroupPartition:
    (row,) = group.partitions
    return row


def test_every_group_of_the_flow_is_there(groups: Mapping[str, GroupParity]) -> None:
    assert {name: group.state for name, group in groups.items()} == {
        "follow-end": "ready", "follow-behind": "reread", "follow-skips": "skip",
        "follow-active": "active_on_target", "follow-bulk": "reread", "follow-not": "not_synced",
    }  # fmt: skip


def test_group_at_the_end_is_ready_at_the_end(groups: Mapping[str, GroupParity]) -> None:
    row = only(groups["follow-end"])
    assert (row.source_offset, row.image, row.image_exact, row.target_offset) == (
        1000, 1000, True, 1000,
    )  # fmt: skip
    assert (row.reread, row.skip, groups["follow-end"].readiness) == (0, 0, 1.0)


def test_group_behind_reads_again_what_mirrormaker_2_rounds_down(
    groups: Mapping[str, GroupParity],
) -> None:
    row = only(groups["follow-behind"])
    assert (row.image, row.image_exact, row.skip) == (257, True, 0)
    assert row.target_offset is not None
    assert 0 < row.target_offset < 257
    assert row.reread == 257 - row.target_offset
    assert row.checkpoint == (257, row.target_offset)


def test_position_too_far_on_the_target_is_a_skip(
    reports: tuple[Report, Report], groups: Mapping[str, GroupParity]
) -> None:
    row = only(groups["follow-skips"])
    assert (row.image, row.image_exact, row.target_offset, row.skip) == (157, True, 400, 243)
    (said,) = [finding for finding in reports[0].findings if finding.kind == "group_skip"]
    assert (said.severity, said.count) == ("critical", 243)
    assert "--topic east.prefix-followed:0 --to-offset 157 --execute" in said.action


def test_place_between_markers_is_found_by_comparing_a_record(
    groups: Mapping[str, GroupParity],
) -> None:
    row = only(groups["follow-bulk"])
    assert (row.source_offset, row.image, row.image_exact) == (27, 25, True)
    assert row.target_offset is not None
    assert row.reread == 25 - row.target_offset


def test_without_syncs_that_reach_back_a_position_is_unmapped(
    followed: Followed, reports: tuple[Report, Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reports
    # MirrorMaker 2 does not take this one along, so there is no checkpoint of it either.
    commit(followed.lab.source, "alone", followed.lab.topic, 257)
    monkeypatch.setattr(offset_syncs, "SYNCS_READ", 1)
    (flow,) = followed.settings.flows
    settings = replace(
        followed.settings,
        flows=(replace(flow, consumer_groups=("alone", "follow-.*")),),
        state_directory=followed.bulk.directory / "blind",
    )
    found = {group.group: group for group in examine_groups(settings, None, lambda _: None).groups}
    assert found["alone"].state == "unmapped"
    # The mirror is through, so this one needs none.
    assert found["follow-end"].state == "ready"


def copied(lab: Lab, name: str) -> str:
    """A compacted topic that holds what another one does, and a record that no mirror wrote."""
    there = f"forged-{name}"
    with admin(lab.target) as client:
        count = len(client.describe_topics([name])[0]["partitions"])
        client.create_topics(
            [NewTopic(there, count, 1, topic_configs={"cleanup.policy": "compact"})]
        )
        client.wait_for_topics([there])
    consumer = KafkaConsumer(bootstrap_servers=lab.target, enable_auto_commit=False)
    with (
        contextlib.closing(consumer),
        contextlib.closing(KafkaProducer(bootstrap_servers=lab.target, acks="all")) as producer,
    ):
        places = [TopicPartition(name, number) for number in range(count)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(at) < end for at, end in ends.items()):
            for some in consumer.poll(timeout_ms=200).values():
                for record in some:
                    producer.send(there, record.value, record.key, partition=record.partition)
        producer.send(there, b"zz", b"xx", partition=0)
        producer.flush(60)
    return there


def test_record_that_no_mirror_wrote_hides_nothing(followed: Followed, reports: object) -> None:
    """Whoever gets two bytes into such a topic makes no group and no lag unknown."""
    assert reports
    settings = followed.settings
    (flow,) = settings.flows
    kept = ("offset_topic", "status_topic", "offset_syncs_topic", "checkpoints_topic")
    names = {key: copied(followed.lab, getattr(flow, key)) for key in kept}
    forged = replace(
        settings,
        flows=(replace(flow, **names),),
        state_directory=settings.state_directory.with_name("forged"),
    )
    report = make_report(forged, None, lambda _: None)
    found = {group.group: group.state for group in report.groups}
    assert (found["follow-end"], found["follow-behind"]) == ("ready", "reread")
    assert {row.topic for row in report.lag} >= {followed.lab.topic, followed.bulk.topic}
    assert all(row.lag_records is not None for row in report.lag)
    said = [finding for finding in report.findings if finding.kind == "control_record"]
    assert sorted(finding.topic for finding in said) == sorted(names.values())
    assert {finding.severity for finding in said} == {"warning"}
    for finding in said:
        assert f"{finding.topic}-0 on west: 1 record(s)" in finding.message
        assert "the last one at offset " in finding.message
        assert not any(word in finding.action for word in ("--alter", "--delete", "reset"))


def topics(report: Report) -> dict[str, TopicStatus]:
    return {topic.topic: topic for topic in report.topics}


def test_every_topic_of_the_source_has_a_row(
    followed: Followed, reports: tuple[Report, Report]
) -> None:
    found = topics(reports[0])
    row = found[followed.lab.topic]
    assert (row.selected, row.reason, row.source_partitions, row.target_partitions) == (
        True, "", 1, 1,
    )  # fmt: skip
    assert row.differences == ()
    assert (found["__consumer_offsets"].selected, found["__consumer_offsets"].reason) == (
        False, "no pattern of topics matches",
    )  # fmt: skip


def test_topic_deleted_on_the_source_is_said_once(
    followed: Followed, reports: tuple[Report, Report]
) -> None:
    for report, times in zip(reports, (1, 0), strict=True):
        row = topics(report)[followed.gone.topic]
        assert (row.selected, row.source_partitions, row.target_partitions) == (False, None, 1)
        assert row.reason.startswith("orphaned")
        said = [finding.topic for finding in report.findings if finding.kind == "orphaned"]
        assert said == [followed.gone.topic] * times
