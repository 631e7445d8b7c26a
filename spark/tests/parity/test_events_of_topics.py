"""A topic that is created again: one finding, and a cure that leaves the other topics alone."""

from __future__ import annotations

import pytest
from kafka import TopicPartition
from parity_mirror import Mirror, counts, eventually
from parity_records import jars_directory

from mirror_report.baseline.record import record_baselines
from mirror_report.checks.events import one_per_event
from mirror_report.config import ConfigError
from mirror_report.lag.measure import measure_lag
from mirror_report.model import Finding, ParityResult
from mirror_report.state.store import StateError

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

FAULTS = ("reset", "rewind", "topic_missing", "truncated", "missing", "unverifiable", "extra")


def told(mirror: Mirror, **budget: int) -> tuple[list[Finding], ParityResult]:
    """What a run says of topics and of their content, as ``run`` puts it together."""
    lag = measure_lag(mirror.settings, mirror.store, topics=True)
    ids = {
        "flow": {
            side: {name: topic.topic_id for name, topic in snapshot.topics.items()}
            for seen in lag.observed.values()
            for side, snapshot in (("source", seen.source), ("target", seen.target))
        }
    }
    if not mirror.store.load("topics"):
        mirror.store.commit("topics", ids)
    content = mirror.run(**budget)
    found = one_per_event(lag.findings, content.findings, {})
    return [finding for finding in found if finding.kind in FAULTS], content


def test_a_target_topic_created_again_is_one_finding_and_is_set_back_alone(
    mirror: Mirror,
) -> None:
    other, topic = mirror.topic("other", 1), mirror.topic("topic", 1)
    for name in (other, topic):
        mirror.produce(name, 60)
        mirror.copy(name)
    assert told(mirror)[0] == []
    mirror.renew(topic, 1)
    (found,), content = told(mirror)
    assert (found.kind, found.topic) == ("reset", topic)
    assert "What it cost: 60 records of the source are not on the target" in found.message
    assert counts(content.topics[1]) == {"missing": 60}
    assert f"--topic {topic} --full-history" in found.action
    assert "--all-topics" not in found.action

    mirror.copy(topic)
    before = mirror.store.load("baseline")
    record_baselines(mirror.settings, None, full_history=False, renew=False)
    whole = mirror.store.load("baseline")
    assert not before
    record_baselines(mirror.settings, "flow", full_history=True, renew=False, topic=topic)
    after = mirror.store.load("baseline")
    assert after["flow"]["topics"][other] == whole["flow"]["topics"][other]
    assert after["flow"]["recorded_at_ms"] == whole["flow"]["recorded_at_ms"]
    assert after["flow"]["topics"][topic]["target"] == {"0": 0}
    findings, content = told(mirror)
    assert findings == []
    verified = {found.topic: found.verified_records for found in content.topics}
    assert verified[topic] == 60


def test_one_topic_is_set_back_and_the_others_go_on(mirror: Mirror) -> None:
    other, topic = mirror.topic("other", 1), mirror.topic("topic", 1)
    for name in (other, topic):
        mirror.produce(name, 60)
        mirror.copy(name)
    record_baselines(mirror.settings, None, full_history=True, renew=False)
    findings, content = told(mirror)
    assert [found.verified_records for found in content.topics] == [60, 60]
    mirror.renew(topic, 0)
    mirror.produce(topic, 30)
    mirror.copy(topic)
    findings, _ = told(mirror)
    assert [(found.kind, found.topic) for found in findings if found.kind == "reset"] == [
        ("reset", topic)
    ]
    (reset,) = [found for found in findings if found.kind == "reset"]
    assert reset.action.endswith(f"baseline --flow flow --topic {topic} --renew")
    record_baselines(mirror.settings, "flow", full_history=False, renew=True, topic=topic)
    mirror.produce(topic, 10, start=40)
    mirror.copy_since(topic, 0, commit=False)
    findings, content = told(mirror)
    assert "reset" not in [found.kind for found in findings]
    verified = {found.topic: found.verified_records for found in content.topics}
    assert verified[other] == 60, "proof of the other topic stands"


def test_a_loss_is_accepted_for_its_topic_alone(mirror: Mirror) -> None:
    names = [mirror.topic(name, 1) for name in ("one", "two")]
    record_baselines(mirror.settings, None, full_history=False, renew=False)
    for name in names:
        mirror.produce(name, 20)
        mirror.commit(name, 5)
        mirror.admins[0].delete_records({TopicPartition(name, 0): 9})
    lost = [found for found in told(mirror)[0] if found.kind == "truncated"]
    assert [(found.topic, found.count) for found in lost] == [(name, 4) for name in names]
    assert all(
        found.action.endswith(f"--topic {name} --renew")
        for found, name in zip(lost, names, strict=True)
    )
    record_baselines(mirror.settings, "flow", full_history=False, renew=True, topic=names[0])
    lost = [found for found in told(mirror)[0] if found.kind == "truncated"]
    assert [found.topic for found in lost] == names[1:]


def test_a_loss_outlives_its_topic_until_it_is_accepted_and_a_baseline_names_what_it_drops(
    mirror: Mirror,
) -> None:
    gone, other = mirror.topic("gone", 1), mirror.topic("other", 1)
    record_baselines(mirror.settings, None, full_history=True, renew=False)
    for name in (gone, other):
        mirror.produce(name, 60)
        mirror.copy(name, faults={"missing": 10})
    assert [(found.kind, found.count) for found in told(mirror)[0]] == [("missing", 10)] * 2
    mirror.admins[0].delete_topics([gone])
    eventually(lambda: gone not in mirror.admins[0].list_topics())
    for _ in range(2):
        lost = {found.topic: found for found in told(mirror)[0] if found.kind == "missing"}
        assert set(lost) == {gone, other}
        assert {(found.severity, found.count) for found in lost.values()} == {("critical", 10)}
    assert lost[gone].action.endswith(f"baseline --flow flow --topic {gone} --renew")

    for name, left in ((gone, [other]), (other, [])):
        said: list[str] = []
        record_baselines(
            mirror.settings, "flow", full_history=False, renew=True, topic=name,
            progress=said.append,
        )  # fmt: skip
        assert said == [
            f"accepted, and reported no more: flow/{name}: "
            "10 records of the source are not on the target"
        ]
        found = [found.topic for found in told(mirror)[0] if found.kind == "missing"]
        assert found == left


def test_records_that_the_size_of_the_log_cannot_have_removed_were_deleted(mirror: Mirror) -> None:
    topic = mirror.topic("small", 1, retention_bytes=str(10**9))
    mirror.produce(topic, 60)
    mirror.copy(topic)
    assert told(mirror)[0] == []
    mirror.admins[1].delete_records({TopicPartition(topic, 0): 60})
    for _ in range(2):
        assert counts(told(mirror)[1].topics[0]) == {"deleted_early": 60}


def test_a_topic_that_cannot_be_set_back_is_refused_and_nothing_is_recorded(
    mirror: Mirror,
) -> None:
    topic = mirror.topic("topic", 1)
    with pytest.raises(ConfigError, match="--full-history"):
        record_baselines(mirror.settings, None, full_history=False, renew=False, topic=topic)
    with pytest.raises(ConfigError, match="does not mirror it"):
        record_baselines(mirror.settings, None, full_history=False, renew=True, topic="elsewhere")
    with pytest.raises(StateError, match="no baseline yet"):
        record_baselines(mirror.settings, None, full_history=False, renew=True, topic=topic)
    record_baselines(mirror.settings, None, full_history=False, renew=False)
    before = mirror.store.load("baseline")
    with pytest.raises(StateError, match="is not on a"):
        record_baselines(
            mirror.settings, None, full_history=False, renew=True, topic=f"{mirror.prefix}.absent"
        )
    assert mirror.store.load("baseline") == before
