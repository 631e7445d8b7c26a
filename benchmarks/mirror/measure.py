#!/usr/bin/env python3
"""How fast mirrors copy, near and far: as Kafka starts them, as this package does, and peers.

Two single-node brokers, proxies that delay every byte, and one mirror at a time run on loopback
and end with this program. Variants of a scenario take turns, trial by trial; what was measured
stays in the output file, so a run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # what all benchmarks share

from common import MeasurementError, Node, broker, proxies, routes_of, wait_for
from flowing import PARTITIONS, Flowing, restarted
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from mirror import content, engines
from mirror.engines import Flow, Settings, Start
from mirror.process import Copying
from mirror_model import tuned
from trials import Trial, Trials, spread

HERE = Path(__file__).resolve().parent
TRIPS = (0, 10, 50, 150)
PLACES = {
    "near": (None, None),
    **{f"read_{trip}": (trip, None) for trip in TRIPS},
    **{f"write_{trip}": (None, trip) for trip in TRIPS},
}
"""Name -> round trips in milliseconds to the source and to the target; ``None``: no proxy."""


@dataclass
class Lab:
    """Both clusters, and the topic that is mirrored.

    :param kafka: where the releases lie.
    :param source: round trip -> address as seen from so far; ``None``: itself. ``target`` likewise.
    :param box: seconds of copying after which a trial ends.
    """

    kafka: Path
    directory: Path
    source: dict[int | None, str]
    target: dict[int | None, str]
    records: int
    record_bytes: int
    compression: str
    box: float
    topic: str = "load"
    digests: array[int] = field(default_factory=lambda: array("Q"))
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def fill(self) -> None:
        """Write what is mirrored, once.

        The target gets it as well, and loses it again: what brokers run is compiled then.
        """
        if self.digests:
            return
        for address in (self.target[None], self.source[None]):
            create(address, self.topic)
            content.fill(address, self.topic, self.records, self.record_bytes, self.compression)
            self.digests = content.digests(address, self.topic, ends(address, self.topic))
        delete(self.target[None], self.topic)


def create(address: str, topic: str) -> None:
    """Create a topic that takes large records, and whose files go at once when it is deleted."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    configs = {"max.message.bytes": "8000000", "file.delete.delay.ms": "1000"}
    admin.create_topics([NewTopic(topic, PARTITIONS, 1, topic_configs=configs)])
    admin.close()


def delete(address: str, topic: str) -> None:
    """Delete a topic, and wait until it is gone."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.delete_topics([topic])
    wait_for(f"the end of {topic}", lambda: topic not in admin.list_topics(), 60)
    admin.close()


def ends(address: str, topic: str) -> list[int]:
    """Log end offsets by partition."""
    consumer = KafkaConsumer(bootstrap_servers=address)
    parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = consumer.end_offsets(parts)
    consumer.close()
    return [found[part] for part in parts]


def started(lab: Lab, flow: Flow, settings: Settings | None) -> Start:
    """How a mirror is started, with a directory of its own.

    :param settings: of an instance that the model renders; ``None``: as Kafka comes.
    """
    directory = lab.directory / flow.alias
    directory.mkdir()
    if settings is None:
        return engines.stock(flow, lab.kafka, directory)
    return engines.rendered(flow, lab.kafka, directory, settings)


def mirror(lab: Lab, engine: str, place: str, settings: Settings | None) -> Trial:
    """Copy the topic with a mirror, and compare.

    :param settings: of an instance that the model renders; ``None``: as Kafka comes.
    """
    lab.fill()
    read, write = PLACES[place]
    alias = f"t{next(lab.numbers)}"
    flow = Flow(
        "mm1" if engine == "librdkafka" else engine, alias, lab.topic, lab.source[read],
        lab.target[write],
    )  # fmt: skip
    if engine == "librdkafka":
        addresses = [flow.source, flow.target, flow.topic, alias]
        start = Start([sys.executable, str(HERE / "loop.py"), *addresses], {})
    else:
        there = settings and replace(settings, round_trips=PLACES[place])
        start = started(lab, flow, there)
    if flow.target_topic == lab.topic:
        create(lab.target[None], lab.topic)
    node = Node(start.command, lab.directory / f"{alias}.log", **start.environment)
    copying = Copying(lab.target[None], flow.target_topic, node, lab.records, lab.box)
    try:
        trial = copying.watch()
        copying.end()
    finally:
        node.process.kill()
        node.process.wait(30)
    copies = content.digests(lab.target[None], flow.target_topic, copying.ends)
    delete(lab.target[None], flow.target_topic)
    per_record = trial.pop("cpu_s_per_record")
    found = content.compared(lab.digests, copies)
    if trial["boxed"]:
        found.pop("lost")
    elif found["lost"]:
        raise MeasurementError(f"{engine} lost {found['lost']:.0f} records")
    return {**trial, "cpu_s_per_gb": per_record / lab.record_bytes * 1e9, **found}


def perf(lab: Lab, tool: str) -> Trial:
    """Kafka's own tools, which only read or only write."""
    lab.fill()
    script = f"{lab.kafka}/{engines.RELEASES['mm2']}/bin/kafka-{tool}-perf-test.sh"
    if tool == "consumer":
        command = [
            script, "--bootstrap-server", lab.source[None], "--topic", lab.topic, "--messages",
            str(lab.records), "--hide-header", "--timeout", "60000",
        ]  # fmt: skip
        # Times, megabytes, their rate, records and theirs, ...; the last is the rate of fetching.
        pattern = r", ([\d.]+)$"
    else:
        create(lab.target[None], lab.topic)
        producer = tuned.producer(tuned.NEAR) | {"bootstrap.servers": lab.target[None]}
        command = [
            script, "--topic", lab.topic, "--num-records", str(lab.records), "--record-size",
            str(lab.record_bytes), "--throughput", "-1", "--producer-props",
            *(f"{key}={value}" for key, value in producer.items()),
        ]  # fmt: skip
        pattern = r"records sent, ([\d.]+) records/sec"
    done = subprocess.run(
        command, check=True, capture_output=True, text=True,
        env={**os.environ, "KAFKA_HEAP_OPTS": "-Xmx1g"},
    )  # fmt: skip
    if tool == "producer":
        delete(lab.target[None], lab.topic)
    lines = [line for line in done.stdout.splitlines() if re.search(pattern, line)]
    found = re.search(pattern, lines[-1]) if lines else None
    if found is None:
        raise MeasurementError(f"{tool}: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    return {"records_per_s": float(found[1])}


@dataclass(frozen=True)
class Restarts:
    """Stops and kills a mirror near both clusters, of a topic of its own under a light load."""

    engine: str
    settings: Settings | None

    def measure(self, lab: Lab) -> Trial:
        """Take one trial (:func:`flowing.restarted`)."""
        alias = f"t{next(lab.numbers)}"
        flow = Flow(self.engine, alias, f"flowing-{alias}", lab.source[None], lab.target[None])
        start = started(lab, flow, self.settings)
        create(flow.source, flow.topic)
        if flow.target_topic == flow.topic:
            create(flow.target, flow.topic)
        nodes: list[Node] = []

        def node() -> Node:
            log = lab.directory / flow.alias / f"log{len(nodes)}"
            nodes.append(Node(start.command, log, **start.environment))
            return nodes[-1]

        flowing = Flowing(flow.source, flow.target, flow.topic, flow.target_topic)
        try:
            return restarted(flowing, node)
        finally:
            for each in nodes:
                each.process.kill()
                each.process.wait(30)
            flowing.end()


@dataclass(frozen=True)
class Variant:
    """What takes a turn.

    :param engine: an engine, ``librdkafka``, or ``consumer`` and ``producer``: a tool of Kafka.
    :param settings: ``None``: as Kafka comes.
    """

    engine: str
    place: str = "near"
    settings: Settings | None = None

    def measure(self, lab: Lab) -> Trial:
        """Take one trial."""
        if self.engine in {"consumer", "producer"}:
            return perf(lab, self.engine)
        return mirror(lab, self.engine, self.place, self.settings)


def named(places: Sequence[str], **ways: Settings | None) -> dict[str, Variant]:
    """Each engine, each way, at each place: ``mm1.stock.near``.

    In this order: what is compared among places has its turns one after the other.
    """
    return {
        f"{engine}.{way}.{place}": Variant(engine, place, settings)
        for engine, (way, settings), place in itertools.product(
            engines.RELEASES, ways.items(), places
        )
    }


TOOLS = {name: Variant(name) for name in ("consumer", "producer", "librdkafka")}
# What Kafka's script chooses.
PAUSE_GOAL = "-XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35"
PARALLEL_GC = "-XX:+UseParallelGC"
MIB = 1 << 20
# What was rendered before, and each of its keys taken away or made smaller.
BEFORE = Settings(
    consumer={
        "fetch.max.bytes": None, "max.partition.fetch.bytes": None, "max.poll.records": 4000,
        "receive.buffer.bytes": MIB,
    },
    producer={"buffer.memory": 64 * MIB, "send.buffer.bytes": None},
    heap="1g", jvm=PAUSE_GOAL,
)  # fmt: skip


def without(settings: Settings, *keys: str) -> Settings:
    """Settings without some properties of the consumer."""
    return replace(settings, consumer={**settings.consumer, **dict.fromkeys(keys)})


KEYS = {
    "stock": None,
    "before": BEFORE,
    "before_heap_2g": replace(BEFORE, heap="2g"),
    "before_one_task": replace(BEFORE, parallel=1),
    "before_parallel_gc": replace(BEFORE, jvm=PARALLEL_GC),
    "before_regions_8m": replace(BEFORE, jvm=f"{PAUSE_GOAL} -XX:G1HeapRegionSize=8m"),
    "before_no_pause_goal": replace(BEFORE, jvm=""),
    "before_buffer_16m": replace(BEFORE, producer={**BEFORE.producer, "buffer.memory": 16 * MIB}),
    **{
        f"before_no_{key}": without(BEFORE, key)
        for key in ("max.poll.records", "receive.buffer.bytes", "fetch.min.bytes")
    },
    "rendered": Settings(),
    **{f"rendered_heap_{size}": Settings(heap=size) for size in ("320m", "512m", "1g")},
    "rendered_parallel_gc": Settings(jvm=PARALLEL_GC),
    "rendered_pause_goal": Settings(jvm=PAUSE_GOAL),
    "rendered_buffer_8m": Settings(producer={"buffer.memory": 8 * MIB}),
    "rendered_poll_4000": Settings(consumer={"max.poll.records": 4000}),
    "rendered_fetch_stock": without(Settings(), "fetch.max.bytes", "max.partition.fetch.bytes"),
    "rendered_buffer_64m": Settings(producer={"buffer.memory": 64 * MIB}),
    "rendered_receive_1m": Settings(consumer={"receive.buffer.bytes": MIB}),
    "rendered_no_fetch.min.bytes": without(Settings(), "fetch.min.bytes"),
    **{
        f"rendered_no_{key}": Settings(producer={key: None})
        for key in ("batch.size", "linger.ms", "send.buffer.bytes")
    },
    **{f"rendered_parallel_{number}": Settings(parallel=number) for number in (1, 2)},
}
# What reading from far away depends on.
READ_KEYS = {
    "rendered": Settings(),
    "receive_stock": without(Settings(), "receive.buffer.bytes"),
    **{
        f"receive_{size}m": Settings(consumer={"receive.buffer.bytes": size * MIB})
        for size in (1, 4)
    },
    **{
        f"fetch_{size}m": Settings(
            consumer={"max.partition.fetch.bytes": size * MIB, "fetch.max.bytes": 50 * MIB}
        )
        for size in (1, 4)
    },
    "poll_4000": Settings(consumer={"max.poll.records": 4000}),
    **{f"parallel_{number}": Settings(parallel=number) for number in (1, 2, 6)},
}
# What writing far away depends on.
WRITE_KEYS = {
    "rendered": Settings(),
    **{f"batch_{size}k": Settings(producer={"batch.size": size << 10}) for size in (320, 640)},
    **{f"buffer_{size}m": Settings(producer={"buffer.memory": size * MIB}) for size in (16, 32)},
    "heap_1g": Settings(heap="1g"),
    **{f"parallel_{number}": Settings(parallel=number) for number in (1, 2)},
    "parallel_gc": Settings(jvm=PARALLEL_GC),
    "pause_goal": Settings(jvm=PAUSE_GOAL),
}
SCENARIOS: Mapping[str, Mapping[str, Variant | Restarts]] = {
    "places": {
        **named(["near", "read_0", "read_50", "write_0", "write_50"], stock=None,
                rendered=Settings()),
        **TOOLS,
    },
    "far": named([f"{way}_{trip}" for way in ("read", "write") for trip in (10, 150)],
                 rendered=Settings()),
    "near": {**named(["near"], stock=None, rendered=Settings()), **TOOLS},
    # Of sources with --compression: what it costs to compress again what was written compressed.
    "compression": named(
        ["near"], none=Settings(),
        **{kind: Settings(producer={"compression.type": kind}) for kind in ("lz4", "zstd", "gzip")},
    ),
    "restarts": {
        f"{engine}.{way}.near": Restarts(engine, settings)
        for engine in engines.RELEASES
        for way, settings in (("stock", None), ("rendered", Settings()))
    },
    "read_keys": named(["read_50"], **READ_KEYS),
    "write_keys": named(["write_50"], **WRITE_KEYS),
    "mm1_keys": {f"mm1.{name}.near": Variant("mm1", "near", way) for name, way in KEYS.items()},
    "mm2_keys": {f"mm2.{name}.near": Variant("mm2", "near", way) for name, way in KEYS.items()},
}  # fmt: skip


# What is divided by stock's.
COMPARED = (
    "records_per_s", "cpu_s_per_gb", "peak_mib", "first_record_s",
    "first_start_s", "first_start_cpu_s", "after_sigterm_s", "after_kill_s",
)  # fmt: skip


def ratios(trials: Mapping[str, Sequence[Trial]]) -> dict[str, float]:
    """Medians of a run divided by others of the same run.

    Of each way and place by stock's and by the defaults' there (``_of_stock``, ``_of_rendered``),
    of each far place by the same through a proxy that does not delay (``_of_0_ms``), and near by
    the serial bound: as fast as both perf tools one after the other.
    """

    def middle(name: str, number: str) -> float | None:
        some = trials.get(name)
        return median(trial[number] for trial in some) if some and number in some[0] else None

    found: dict[str, float] = {}

    def divide(name: str, above: float | None, below: float | None) -> None:
        if above is not None and below:
            found[name] = round(above / below, 3)

    rates = [middle(tool, "records_per_s") for tool in ("consumer", "producer")]
    serial = 1 / sum(1 / rate for rate in rates if rate) if all(rates) else None
    for name in trials:
        engine, _, rest = name.partition(".")
        way, _, place = rest.rpartition(".")
        rate = middle(name, "records_per_s")
        for other in ("stock", "rendered"):
            if way and way not in {"stock", other}:
                for number in COMPARED:
                    divide(f"{name}.{number}_of_{other}", middle(name, number),
                           middle(f"{engine}.{other}.{place}", number))  # fmt: skip
        if place not in {"", "near"}:
            side = place.partition("_")[0]
            divide(f"{name}.rate_of_near", rate, middle(f"{engine}.{way}.near", "records_per_s"))
            divide(f"{name}.rate_of_0_ms", rate,
                   middle(f"{engine}.{way}.{side}_0", "records_per_s"))  # fmt: skip
        if place == "near" or name == "librdkafka":
            divide(f"{name}.rate_of_serial_bound", rate, serial)
    return found


@contextmanager
def laboratory(options: argparse.Namespace) -> Iterator[Lab]:
    """Both clusters, each with proxies before it."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.scratch)))
        for release in engines.RELEASES.values():
            archive = Path(options.cache) / "archives" / f"{release}.tgz"
            subprocess.run(["tar", "-xzf", str(archive), "-C", str(directory)], check=True)
        sides: list[dict[int | None, str]] = []
        for side in ("east", "west"):
            routes = routes_of(TRIPS)
            kafka = directory / engines.RELEASES["mm2"]
            address = stack.enter_context(
                broker(kafka, directory / side, dict(routes.values()), heap="1g")
            )
            far = stack.enter_context(proxies(routes))
            sides.append({None: address, **dict(far.items())})
        yield Lab(
            directory, directory, sides[0], sides[1], options.records, options.record_bytes,
            options.compression, options.box,
        )  # fmt: skip


def main() -> int:
    """Take the trials that the command line asks for and that the output does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafka-mirror-lab"
    parser.add_argument("--cache", type=Path, default=os.environ.get("MIRROR_LAB_CACHE", default))
    parser.add_argument("--scenario", choices=SCENARIOS, required=True)
    parser.add_argument("--variants", nargs="+", help="some of the scenario's, default all")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--record-bytes", type=int, default=1024)
    parser.add_argument("--compression", choices=["none", "gzip", "zstd", "lz4"], default="none",
                        help="of the source's batches")  # fmt: skip
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--box", type=float, default=60, help="seconds of copying per trial")
    parser.add_argument("--scratch", type=Path, help="where topics lie while it runs")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # brokers and proxies end with us
    shape: dict[str, Any] = {
        "records": options.records, "record_bytes": options.record_bytes,
        "compression": options.compression, "box": options.box,
    }  # fmt: skip
    try:
        trials = Trials(
            options.output, shape, lambda some: {"ratios": ratios(some), "spread": spread(some)}
        )
    except ValueError as error:
        parser.error(str(error))
    variants = SCENARIOS[options.scenario]
    with laboratory(options) as lab:
        for number, name in itertools.product(
            range(options.trials), options.variants or list(variants)
        ):
            trials.take(name, number, functools.partial(variants[name].measure, lab))
            time.sleep(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
