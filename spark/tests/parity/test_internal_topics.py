"""Which topics a real MirrorMaker 1 takes whose names begin with two underscores."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import RetriableError
from real_mirrors import MirrorMaker1, until

from mirror_report.config import Flow

INTERNAL = "__consumer_offsets"
TAKEN = {
    "by pattern": ("__taken-by-pattern", "taken-by-pattern"),
    "by name": ("__taken-by-name", "taken-by-name"),
}


@pytest.mark.parametrize(
    ("how", "include"),
    [
        ("by pattern", "__(?:consumer|taken-by-pattern).*|taken-by-pattern"),
        ("by name", "|".join((INTERNAL, *TAKEN["by name"]))),
    ],
)
def test_mirrormaker1_takes_every_topic_but_those_that_brokers_mark(
    two_brokers: tuple[str, str], kafka3_home: Path, tmp_path: Path, how: str, include: str
) -> None:
    flow = Flow("flow", "east", "west", include, topics=(include,),
                group_id=f"taken-{how}", commit_interval_ms=500)  # fmt: skip
    mirror = MirrorMaker1(kafka3_home, tmp_path, two_brokers, flow)
    with contextlib.ExitStack() as stack:
        source, target = (
            stack.enter_context(contextlib.closing(KafkaAdminClient(bootstrap_servers=address)))
            for address in two_brokers
        )
        for admin in (source, target):
            admin.create_topics([NewTopic(name, 1, 1) for name in TAKEN[how]])
        producer = stack.enter_context(
            contextlib.closing(KafkaProducer(bootstrap_servers=two_brokers[0]))
        )
        for name in TAKEN[how]:
            producer.send(name, value=b"record").get(30)
        mirror.start()
        stack.callback(mirror.end, signal.SIGKILL)

        def positions() -> dict[str, int]:
            try:
                group = source.list_group_offsets({flow.group_id: None})[flow.group_id]
            except RetriableError:
                return {}
            return {partition.topic: found.offset for partition, found in group.items()}

        until(lambda: positions().keys() >= set(TAKEN[how]))
        before = positions()[TAKEN[how][0]]
        # What it has committed are records of the internal topic: it would see these, too.
        producer.send(TAKEN[how][0], value=b"record").get(30)
        until(lambda: positions()[TAKEN[how][0]] > before)
        on_source = source.list_topics()
        assert INTERNAL in on_source
        assert positions().keys() == {name for name in on_source if flow.matches(name)}
