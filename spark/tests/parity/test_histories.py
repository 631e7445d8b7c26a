"""Random histories of producers, mirrors, clusters and reports: each report tells what is so.

A history that fails is made as short as it gets in some minutes, printed as the steps it took, and
tried first by the next long run.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from history_oracle import Answer, Finding, Memory, answer
from history_world import Clusters, Mirrored, Stage
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from parity_clusters import HOUR, MINUTE, SIDES, settings_of
from parity_commands import in_this_process, one_session
from parity_deaths import MOMENTS, KilledError, dying
from parity_records import Content, jars_directory
from pyspark.sql import SparkSession

from mirror_report import cli

pytestmark = pytest.mark.skipif(jars_directory() is None, reason="run `make bootstrap`: no jars")

LIMIT_MS = 3 * HOUR
"""A retention that keeps all records but those that came late."""
HISTORIES = settings(
    deadline=None,
    # Each step asks real brokers, and each report runs Spark.
    suppress_health_check=[
        HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.large_base_example,
        HealthCheck.data_too_large,
    ],
    print_blob=True,
)  # fmt: skip

FLOWS = st.sampled_from(["loose", "kept"])
WHEN = st.sampled_from(["as usual", "late", "of the future"])
KEYS = st.lists(st.sampled_from([None, b"a", b"b", b"c"]), min_size=1, max_size=4)
PARTITIONS = st.integers(0, 3)
SIDE = st.sampled_from(SIDES)


class History(RuleBasedStateMachine):
    """One history, of a topic of each engine.

    :param told: counts what reports said, over all histories.
    """

    def __init__(self, clusters: Clusters, directory: Path, told: Counter[str]) -> None:
        super().__init__()
        self.stage = Stage(clusters)
        self.topics = self.stage.topics
        self.memories = {flow: Memory(topic) for flow, topic in self.topics.items()}
        self.told = told
        # After it little is left of what was there before.
        self.rare = 3
        now = int(time.time() * 1000)
        self.times = {
            "as usual": now - now % HOUR - 30 * MINUTE,
            "late": now - now % HOUR - 6 * HOUR,
            "of the future": now + 40 * MINUTE,
        }
        state = directory / self.topics["loose"].name
        state.mkdir()
        self.configuration = state.with_suffix(".json")
        document = {
            "version": 1,
            "clusters": {
                side: {"bootstrap_servers": [address]}
                for side, address in clusters.world.brokers.items()
            },
            "flows": [self._flow(topic) for topic in self.topics.values()],
            "state_directory": str(state),
            "budget": {"scrub_bytes": 0},
        }
        self.configuration.write_text(json.dumps(document))

    def _flow(self, topic: Mirrored) -> dict[str, Any]:
        flow = {
            "name": topic.flow, "source": "source", "target": "target", "topics": [topic.name],
            "include": topic.name, "group_id": topic.name,
        }  # fmt: skip
        own = settings_of(self.stage.clusters.connect)
        mm2 = {"engine": "mm2", "replication_policy": "identity", **own}
        return flow | mm2 if topic.keeps_partitions else flow

    def _place(self, topic: Mirrored) -> tuple[int, int]:
        """What the mirror copies next; a new record if nothing waits."""
        if not self.stage.waiting(topic):
            self._produced(topic, "as usual", 0, [b"a"], 0)
        return self.stage.waiting(topic)[0]

    def _produced(
        self, topic: Mirrored, when: str, partition: int, keys: Iterable[bytes | None], minute: int
    ) -> None:
        records: list[tuple[int, Content]] = []
        for key in keys:
            self.stage.numbers += 1
            number = b"%d" % self.stage.numbers
            at = self.times[when] + minute * MINUTE + self.stage.numbers % 3
            content = (key, number, at, (("number", number),) if self.stage.numbers % 2 else ())
            records.append((partition % len(topic.source.partitions), content))
        self.stage.produce(topic, records)

    # -- what happens -----------------------------------------------------------------------------

    @initialize(keys=KEYS, when=WHEN)
    def begin(self, keys: list[bytes | None], when: str) -> None:
        """Something is there, and mirrored."""
        for topic in self.topics.values():
            self._produced(topic, when, 0, keys, 0)
            self._produced(topic, "as usual", 1, [b"a", b"b"], 1)
            self.stage.copy(topic, self.stage.waiting(topic))
            self.stage.commit(topic)

    @rule(
        flows=st.sampled_from([["loose", "kept"], ["loose"], ["kept"]]), when=WHEN,
        partition=PARTITIONS, keys=KEYS, minute=st.integers(0, 1),
    )  # fmt: skip
    def produce(
        self, flows: list[str], when: str, partition: int, keys: list[bytes | None], minute: int
    ) -> None:
        """Produce to a partition, in time, late or ahead of it."""
        for flow in flows:
            self._produced(self.topics[flow], when, partition, keys, minute)

    @rule(limit=st.sampled_from([100, 2]), commits=st.booleans())
    def mirror(self, limit: int, commits: bool) -> None:
        """Copy what waits, or the first of it."""
        for topic in self.topics.values():
            self._place(topic)
            self.stage.copy(topic, self.stage.waiting(topic)[:limit])
            if commits:
                self.stage.commit(topic)

    @rule(flow=FLOWS)
    def commit(self, flow: str) -> None:
        """Commit what was copied."""
        self.stage.commit(self.topics[flow])

    @rule(flow=FLOWS, count=st.integers(1, 3))
    def crash(self, flow: str, count: int) -> None:
        """Kill the mirror: what it has copied and not committed, it copies again."""
        topic = self.topics[flow]
        self._place(topic)
        self.stage.copy(topic, self.stage.waiting(topic)[:count])
        self.stage.crash(topic)

    @rule(flow=FLOWS, commits=st.booleans())
    def lose(self, flow: str, commits: bool) -> None:
        """Pass over a record."""
        topic = self.topics[flow]
        self.stage.skip(topic, *self._place(topic))
        if commits:
            self.stage.commit(topic)

    @rule(flow=FLOWS, what=st.sampled_from(["value", "headers", "at", "far"]))
    def corrupt(self, flow: str, what: str) -> None:
        """Copy a record with another value, header or timestamp."""
        topic = self.topics[flow]
        partition, offset = self._place(topic)
        at = topic.source.partitions[partition][offset][2]
        changed: dict[str, dict[str, Any]] = {
            "value": {"value": b"altered"},
            "headers": {"headers": (("number", b"altered"),)},
            "at": {"at": at + 2 * MINUTE},
            # Where the late ones are, so that others come there.
            "far": {"at": at + self.times["late"] - self.times["as usual"]},
        }
        self.stage.copy(topic, [(partition, offset)], **changed[what])
        self.stage.commit(topic)

    @rule(flow=FLOWS, partition=PARTITIONS, count=st.integers(1, 2))
    def repeat(self, flow: str, partition: int, count: int) -> None:
        """Copy records again."""
        topic = self.topics[flow]
        some = [number for number, end in enumerate(topic.copied) if end]
        for at in some[partition % len(some) :][:1] if some else []:
            end = topic.copied[at]
            begin = max(topic.source.starts[at], end - count)
            self.stage.copy(topic, [(at, offset) for offset in range(begin, end)])

    @rule(flow=FLOWS, partition=PARTITIONS, when=WHEN)
    def intrude(self, flow: str, partition: int, when: str) -> None:
        """Write to the target beside the mirror."""
        topic = self.topics[flow]
        self.stage.numbers += 1
        content = (b"foreign", b"%d" % self.stage.numbers, self.times[when], ())
        self.stage.intrude(topic, partition % len(topic.target.partitions), content)

    @rule(flow=FLOWS, side=SIDE, partition=PARTITIONS, share=st.sampled_from([0.5, 1.0]))
    def delete(self, flow: str, side: str, partition: int, share: float) -> None:
        """Remove the beginning of a log, as retention of the source does, or by hand."""
        topic = self.topics[flow]
        log = topic.log(side)
        pairs = enumerate(zip(log.starts, log.ends, strict=True))
        some = [number for number, (start, end) in pairs if start < end]
        for at in some[partition % len(some) :][:1] if some else []:
            start, end = log.starts[at], log.ends[at]
            self.stage.delete(topic, side, at, start + math.ceil(share * (end - start)))

    @rule(flow=FLOWS)
    def truncate(self, flow: str) -> None:
        """Remove from the source what the mirror has not copied yet, and all before it."""
        topic = self.topics[flow]
        partition, _ = self._place(topic)
        self.stage.delete(topic, "source", partition, topic.source.ends[partition])

    @rule(flow=FLOWS)
    def retention(self, flow: str) -> None:
        """Shorten the retention of the target, or take that back."""
        topic = self.topics[flow]
        self.stage.keep(topic, LIMIT_MS if topic.limit_ms is None else None)

    @precondition(lambda self: self.rare > 0)
    @rule(flow=FLOWS, side=SIDE)
    def recreate(self, flow: str, side: str) -> None:
        """Delete a topic on one side and create it again."""
        self.rare -= 1
        self.stage.recreate(self.topics[flow], side)

    @precondition(lambda self: self.rare > 0)
    @rule()
    def grow(self) -> None:
        """Add partitions."""
        self.rare -= 1
        for topic in self.topics.values():
            self.stage.grow(topic)

    # -- what is asked of the report --------------------------------------------------------------

    @precondition(lambda self: self.rare > 0)
    @rule(flow=FLOWS, full=st.booleans())
    def baseline(self, flow: str, full: bool) -> None:
        """Start over, from now on or with all that is there."""
        self.rare -= 1
        self._stop()
        how = "--full-history" if full else "--renew"
        status, printed = self._call("baseline", "--flow", flow, how)
        assert status == 0, printed
        self.memories[flow].start_over(full=full)

    @rule()
    def report(self) -> None:
        """Make a report."""
        self._stop()
        self._hold(*self._call("run", "--json"))

    @rule(moment=st.sampled_from(MOMENTS), left=st.integers(0, 6))
    def killed_report(self, moment: str, left: int) -> None:
        """A run that dies before its report is there changes nothing of what the next one tells."""
        self._stop()
        before = self._reports()
        with dying(moment, left), contextlib.suppress(KilledError):
            self._hold(*self._call("run", "--json"))
            return
        self.told["killed"] += 1
        for made in self._reports() - before:
            text = made.read_text()
            self._hold(json.loads(text)["verdict"]["exit_code"], text)
        self._hold(*self._call("run", "--json"))

    @rule()
    def untold_report(self) -> None:
        """What a run found that dies before its report is written, the next one tells."""
        self._stop()
        with dying("report"), contextlib.suppress(KilledError):
            self._call("run", "--json")
        self._observe()

    def teardown(self) -> None:
        """At last all is mirrored, and told twice: as found, and as known."""
        for topic in self.topics.values():
            self.stage.copy(topic, self.stage.waiting(topic))
            self.stage.commit(topic)
        self.report()
        self.report()

    def _reports(self) -> set[Path]:
        """Reports that are there; what is in one has been told."""
        return set(self.configuration.with_suffix("").glob("reports/2*.json"))

    def _stop(self) -> None:
        """The mirror has no process while the report looks."""
        for topic in self.topics.values():
            self.stage.crash(topic)

    def _call(self, *arguments: str) -> tuple[int, str]:
        """Exit status and output of a command."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), in_this_process():
            status = cli.main(["--config", str(self.configuration), *arguments])
        return status, printed.getvalue()

    def _observe(self) -> set[Finding]:
        """Let the oracle see what a run has seen: what offsets say."""
        offsets = {found for memory in self.memories.values() for found in memory.observe()}
        now = int(time.time() * 1000)
        for memory in self.memories.values():
            memory.read(now)
        return offsets

    def _hold(self, status: int, printed: str) -> None:
        """Compare a report with what the oracle says."""
        offsets = self._observe()
        expected = answer(self.memories.values(), offsets)
        for memory in self.memories.values():
            memory.told()
        found = told(status, json.loads(printed))
        assert found == expected, f"\nsaid:     {found}\nexpected: {expected}"
        self.told.update(["report", *(kind for _, kind, _ in found.findings)])
        self.told.update(status for status, _ in found.topics.values())


def told(status: int, document: dict[str, Any]) -> Answer:
    """What a report says, in the oracle's words."""
    topics = {}
    for row in document["parity"]:
        numbers = {
            **row["counts"],
            **{f"known_{name}": count for name, count in row["accounted"].items()},
            **{name: row[f"{name}_records"]
               for name in ("source", "target", "verified", "in_flight", "skipped")},
        }  # fmt: skip
        topics[row["flow"]] = row["status"], {name: n for name, n in numbers.items() if n}
    findings = {
        (found["flow"] or "", found["kind"], found["severity"])
        for found in document["findings"]
        if not found["accounted"]
    }
    return Answer(status, topics, findings)


@pytest.fixture
def play(
    spark: SparkSession, two_brokers: tuple[str, str], tmp_path: Path
) -> Iterator[Callable[..., Counter[str]]]:
    """Play histories by some settings, and count what reports said."""
    clusters = Clusters(two_brokers)

    def play(**given: Any) -> Counter[str]:
        counted: Counter[str] = Counter()
        factory = functools.partial(History, clusters, tmp_path, counted)
        run_state_machine_as_test(factory, settings=settings(HISTORIES, **given))
        return counted

    with one_session(spark):
        yield play
    clusters.close()


def test_reports_tell_what_is_so(play: Callable[..., Counter[str]]) -> None:
    counted = play(max_examples=2, stateful_step_count=15, derandomize=True, database=None)
    assert counted["report"] >= 6, "enough was told"
    assert counted["missing"] + counted["corrupt_value"] + counted["duplicate"] + counted["extra"]


@pytest.mark.long
def test_reports_tell_what_is_so_through_hundreds_of_steps(
    play: Callable[..., Counter[str]],
) -> None:
    wanted = {
        "missing", "corrupt_value", "corrupt_headers", "altered_timestamp", "duplicate", "extra",
        "deleted_early", "unverifiable", "reset", "truncated", "verified", "mismatch", "killed",
    }  # fmt: skip
    counted = play(max_examples=16, stateful_step_count=25)
    for _ in range(4):
        # Chance may leave out a kind; then some more are played.
        if not wanted - counted.keys():
            break
        counted += play(max_examples=4, stateful_step_count=25)
    print(counted)
    assert counted["report"] >= 60, "enough was told"
    assert not wanted - counted.keys(), "all of them were told"
