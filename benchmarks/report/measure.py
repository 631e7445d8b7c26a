#!/usr/bin/env python3
"""What the report costs, beside other ways of reading the same records in the same run.

Brokers run on loopback and end with this program. Variants of a scenario take turns, trial by
trial; what was measured stays in the output file, so a run that was ended goes on where it was.
With ``--against`` the code of another checkout takes turns with this one's on the same records.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # what all benchmarks share

from common import RELEASE, MeasurementError, answers, broker, free_ports, wait_for
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
AGAINST = ", against"  # what follows the name of a variant of another checkout
PARTITIONS = 6
TOPICS = 200
INCREMENT = 600
ENVIRONMENT = {**os.environ, "KAFKA_HEAP_OPTS": "-Xmx512m"}
# A host has what pip compiled.
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)
Trial = dict[str, float]


@dataclass
class Lab:
    """Two clusters, what fills them, and the report that reads them.

    :param directory: of what the report keeps.
    :param via: round trip in milliseconds -> address of the source as seen from so far.
    :param checkout: whose code is measured.
    """

    kafka: Path
    jars: Path
    directory: Path
    source: str
    target: str
    records: int
    record_bytes: int
    via: dict[int, str] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    checkout: Path = ROOT

    @property
    def environment(self) -> dict[str, str]:
        """In which the code that is measured is found."""
        path = f"{self.checkout / 'spark/src'}:{os.environ.get('PYTHONPATH', '')}"
        return {**ENVIRONMENT, "PYTHONPATH": path}

    @property
    def classes(self) -> Path:
        """Where the archive of Java classes lies, which the report's role makes on its host."""
        return self.directory / "classes"

    def fill(self, topic: str, records: int, *addresses: str) -> None:
        """Write records into a topic, once per address."""
        for address in addresses:
            if f"{address}/{topic}" in self.filled:
                continue
            self.filled.add(f"{address}/{topic}")
            create(address, [topic])
            self.produce(topic, records, address)

    def produce(self, topic: str, records: int, address: str) -> None:
        """Write some more records."""
        command = [
            f"{self.kafka}/bin/kafka-producer-perf-test.sh", "--topic", topic, "--num-records",
            str(records), "--record-size", str(self.record_bytes), "--throughput", "-1",
            "--producer-props", f"bootstrap.servers={address}", "batch.size=262144", "linger.ms=20",
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)

    def reader(self, name: str, **changes: object) -> Trial:
        """One reader of readers.py, in a process of its own."""
        settings = {
            "kafka": str(self.kafka), "jars": str(self.jars), "source": self.source,
            "target": self.target, "topic": "full", "records": self.records,
            "record_bytes": self.record_bytes, "heap": "1g", "classes": str(self.classes),
            **changes,
        }  # fmt: skip
        # The tool that fills topics does not fill partitions evenly, nor twice the same.
        settings["ends"] = {
            side: ends(str(settings[side]), str(settings["topic"])) for side in ("source", "target")
        }
        done = subprocess.run(
            [sys.executable, str(self.checkout / HERE.relative_to(ROOT) / "readers.py"), name],
            input=json.dumps(settings), capture_output=True, text=True, check=False,
            env=self.environment,
        )  # fmt: skip
        if done.returncode:
            raise MeasurementError(f"{name}: {done.stderr[-2000:]}")
        found: Trial = json.loads(done.stdout.splitlines()[-1])
        return found

    def configuration(self, name: str, include: str) -> Path:
        """A report whose flow has one cluster on both sides, so that all of it is mirrored."""
        place = self.directory / name
        place.mkdir(exist_ok=True)
        flow = {"name": name, "source": "a", "target": "b", "include": include,
                "group_id": f"mirrormaker-{name}"}  # fmt: skip
        spark = {"master": "local[2]", "heap": "512m", "jars_directory": str(self.jars),
                 "class_archive": str(self.classes)}  # fmt: skip
        path = place / "config.json"
        document = {
            "version": 1,
            "clusters": {
                "a": {"bootstrap_servers": [self.source]},
                "b": {"bootstrap_servers": [self.target if name == "lag" else self.source]},
            },
            "flows": [flow],
            "state_directory": str(place / "state"),
            "spark": spark,
        }
        path.write_text(json.dumps(document))
        return path

    def report(self, config: Path, *command: str) -> tuple[Trial, dict[str, Any]]:
        """One command of the report, from its start to its end.

        :returns: its cost, and its JSON output.
        """
        argv = [sys.executable, "-m", "mirror_report.cli", "--config", str(config), *command]
        before, begun = _cpu(), time.monotonic()
        with (
            subprocess.Popen(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=self.environment,
            ) as process,
            peak_of(process.pid) as peak,
        ):
            out, said = process.communicate()
        seconds = time.monotonic() - begun
        if process.returncode not in {0, 1, 2}:
            raise MeasurementError(f"{' '.join(command)}: {said[-2000:]}")
        trial = {"seconds": seconds, "cpu_s": _cpu() - before, "peak_mib": max(peak)}
        return trial, json.loads(out) if out.startswith("{") else {}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def peak_of(pid: int) -> Iterator[list[float]]:
    """Peaks in mebibytes of the memory of a process and of each that it starts, while it runs."""
    peaks = [0.0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            for process in _tree(pid):
                with suppress(OSError, StopIteration):
                    text = Path(f"/proc/{process}/status").read_text().splitlines()
                    line = next(each for each in text if each.startswith("VmHWM"))
                    peaks.append(int(line.split()[1]) / 1024)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def _tree(pid: int) -> list[int]:
    with suppress(OSError):
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(descendant for child in below for descendant in _tree(int(child)))]
    return []


def create(address: str, topics: Sequence[str]) -> None:
    """Create topics."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])
    admin.close()


def ends(address: str, topic: str) -> list[int]:
    """Log end offsets; zeros where there is no such topic."""
    consumer = KafkaConsumer(bootstrap_servers=address)
    parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = consumer.end_offsets(parts) if topic in consumer.topics() else {}
    consumer.close()
    return [found.get(part, 0) for part in parts]


def commit(address: str, group: str, topics: Sequence[str]) -> None:
    """Commit the ends of topics, as a mirror that has copied everything does."""
    consumer = KafkaConsumer(bootstrap_servers=address, group_id=group, enable_auto_commit=False)
    parts = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
    consumer.assign(parts)
    reached = consumer.end_offsets(parts)
    consumer.commit({part: OffsetAndMetadata(end, "", -1) for part, end in reached.items()})
    consumer.close()


def full(lab: Lab, variant: str) -> Trial:
    """All records of a topic, by one reader or by the report's command."""
    lab.fill("full", lab.records, lab.source, lab.target)
    if variant != "run":
        return lab.reader(variant)
    commit(lab.source, "mirrormaker-full", ["full"])
    config = lab.configuration("full", "full")
    shutil.rmtree(config.parent / "state", ignore_errors=True)  # otherwise nothing new is read
    trial, said = lab.report(config, "run", "--json")
    records = sum(int(row["verified_records"]) for row in said["parity"])
    if records != lab.records:
        raise MeasurementError(f"{records} of {lab.records} records verified: {said['findings']}")
    return {**trial, "records": records, "records_per_s": 2 * records / trial["seconds"]}


FAR = {
    "max.poll.records": "20000",
    "max.partition.fetch.bytes": "16777216",
    "fetch.max.bytes": "16777216",
}


def distance(lab: Lab, variant: str) -> Trial:
    """A full digest of a cluster so many milliseconds away."""
    lab.fill("full", lab.records, lab.source)
    return lab.reader("cold_digest", source=lab.via[int(variant)], heap="2g", fetch=FAR)


def start(lab: Lab, variant: str) -> Trial:
    """A run of a few new records, one of none, and PySpark as it comes reading as many."""
    topic = "start"
    config = lab.configuration(topic, topic)
    if not (config.parent / "state").exists():
        lab.fill(topic, INCREMENT, lab.source)
        commit(lab.source, "mirrormaker-start", [topic])
        lab.report(config, "run", "--json")
    if variant == "stock":
        return lab.reader("stock", topic=topic, target=lab.source)
    if variant == "incremental":
        lab.produce(topic, INCREMENT, lab.source)
        commit(lab.source, "mirrormaker-start", [topic])
    trial, said = lab.report(config, "run", "--json")
    return {**trial, "spark_started": float(bool(said["spark_started"]))}


def lag(lab: Lab, variant: str) -> Trial:  # noqa: ARG001
    """Lag of 200 topics of six partitions on either side."""
    topics = [f"lag-{number}" for number in range(TOPICS)]
    if "lag" not in lab.filled:
        lab.filled.add("lag")
        for address in (lab.source, lab.target):
            create(address, topics)
        time.sleep(15)  # brokers elect leaders for a while
        commit(lab.source, "mirrormaker-lag", topics)
    trial, said = lab.report(lab.configuration("lag", "lag-.*"), "lag", "--json")
    return {**trial, "partitions": len(said["lag"])}


@dataclass(frozen=True)
class Scenario:
    """What is measured by turns, and which medians are divided by which.

    :param ratios: name -> (variant, number, other variant or ``None``, its number).
    """

    measure: Callable[[Lab, str], Trial]
    variants: tuple[str, ...]
    ratios: Mapping[str, tuple[str, str, str | None, str]]


SCENARIOS = {
    "full": Scenario(
        full,
        (
            "perf", "count", "digest", "cold_digest", "one_job", "two_jobs",
            "confluent", "confluent_stock", "kafka_python", "run",
        ),
        {
            "digest.cpu_of_count": ("digest", "cpu_s", "count", "cpu_s"),
            **{
                f"{digest}.rate_of_{other}": (digest, "records_per_s", other, "records_per_s")
                for digest in ("digest", "cold_digest")
                for other in ("perf", "confluent", "confluent_stock", "kafka_python")
            },
            "one_job.rate_of_two_jobs": ("one_job", "records_per_s", "two_jobs", "records_per_s"),
            "run.peak_mib": ("run", "peak_mib", None, ""),
        },
    ),
    "distance": Scenario(
        distance, ("10", "50"),
        {"50_ms.rate_of_10_ms": ("50", "records_per_s", "10", "records_per_s")},
    ),
    "start": Scenario(
        start,
        ("stock", "incremental", "nothing"),
        {
            "incremental.cpu_of_stock": ("incremental", "cpu_s", "stock", "cpu_s"),
            "incremental.seconds": ("incremental", "seconds", None, ""),
            "nothing.seconds": ("nothing", "seconds", None, ""),
            "nothing.spark_started": ("nothing", "spark_started", None, ""),
        },
    ),
    "lag": Scenario(lag, ("lag",), {"lag.seconds": ("lag", "seconds", None, "")}),
}  # fmt: skip


def ratios(scenario: Scenario, trials: Mapping[str, Sequence[Trial]]) -> dict[str, float]:
    """Medians divided by medians of the same run, and bare ones where a goal is absolute.

    Of another checkout: the median of what each trial needed, divided by the other's beside it.
    """
    found = {}
    for name, (variant, number, other, others) in scenario.ratios.items():
        if trials.get(variant) and (other is None or trials.get(other)):
            value = median(trial[number] for trial in trials[variant])
            if other is not None:
                value /= median(trial[others] for trial in trials[other])
            found[name] = round(value, 3)
    for name in trials:
        if theirs := trials.get(f"{name}{AGAINST}"):
            for key in {"seconds", "cpu_s", "peak_mib"} & theirs[0].keys():
                pairs = zip(trials[name], theirs, strict=False)
                value = median(ours[key] / other[key] for ours, other in pairs)
                found[f"{name}.{key}_of_against"] = round(value, 3)
    return found


def spread(
    trials: Mapping[str, Sequence[Trial]], record_bytes: int
) -> dict[str, dict[str, list[float]]]:
    """Least, median and greatest of each number of each variant, and of ``cpu_s_per_gb``."""
    found = {}
    for name, some in trials.items():
        extended = [{**trial, **_per_gb(trial, record_bytes)} for trial in some]
        found[name] = {
            key: [round(f(trial[key] for trial in extended), 3) for f in (min, median, max)]
            for key in (extended[0] if extended else ())
        }
    return found


def _per_gb(trial: Trial, record_bytes: int) -> Trial:
    """Processor seconds for a gigabyte of values, where records and processor time were counted."""
    if not {"cpu_s", "records_per_s"} <= trial.keys():
        return {}
    gigabytes = trial["records_per_s"] * trial["seconds"] * record_bytes / 1e9
    return {"cpu_s_per_gb": trial["cpu_s"] / gigabytes}


@contextmanager
def laboratory(options: argparse.Namespace) -> Iterator[list[Lab]]:
    """Both clusters, and proxies to the first, for each checkout that is measured."""
    cache = Path(options.cache)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.scratch)))
        archive = cache / "archives" / f"{RELEASE}.tgz"
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(directory)], check=True)
        kafka = directory / RELEASE
        trips = [int(variant) for variant in SCENARIOS["distance"].variants]
        ports = free_ports(2 * len(trips))
        seen = dict(zip(ports[::2], ports[1::2], strict=True))
        source = stack.enter_context(broker(kafka, directory / "east", seen))
        target = stack.enter_context(broker(kafka, directory / "west"))
        lab = Lab(
            kafka, cache / "jars", directory, source, target, options.records, options.record_bytes
        )
        for trip, (listener, port) in zip(trips, seen.items(), strict=True):
            argv = [sys.executable, str(HERE / "proxy.py"), str(port), str(listener)]
            stack.enter_context(_ending(subprocess.Popen([*argv, str(trip / 1000)])))
            wait_for("a proxy", functools.partial(answers, port), 30)
            lab.via[trip] = f"127.0.0.1:{port}"
        labs = [lab]
        if options.against is not None:
            labs.append(
                replace(lab, directory=directory / "against", checkout=options.against.resolve())
            )
        for measured in labs:
            measured.directory.mkdir(exist_ok=True)
            measured.report(measured.configuration("archive", "archive"), "archive")
        yield labs


@contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait(30)


def main() -> int:
    """Run the trials that the command line asks for and that the output does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafka-mirror-lab"
    parser.add_argument("--cache", type=Path, default=os.environ.get("MIRROR_LAB_CACHE", default))
    parser.add_argument("--scenario", choices=SCENARIOS, required=True)
    parser.add_argument("--variants", nargs="+", help="some of the scenario's, default all")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--record-bytes", type=int, default=1024)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="measure the code of this one as well"
    )
    parser.add_argument("--scratch", type=Path, help="where topics lie while it runs")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # brokers and proxies end with us
    scenario = SCENARIOS[options.scenario]
    shape = {"records": options.records, "record_bytes": options.record_bytes}
    known = json.loads(options.output.read_text()) if options.output.exists() else {}
    if known.get("shape", shape) != shape:
        parser.error(f"{options.output} holds trials of {known['shape']}")
    trials: dict[str, list[Trial]] = known.get("trials", {})
    names = options.variants or scenario.variants
    with laboratory(options) as labs:
        turns = [labs, labs[::-1]]  # or who comes first has the machine as the other left it
        for number, place, name in itertools.product(
            range(options.trials), range(len(labs)), names
        ):
            lab = turns[number % 2][place]
            variant = name if lab is labs[0] else f"{name}{AGAINST}"
            done = trials.setdefault(variant, [])
            if len(done) > number:
                continue
            load = os.getloadavg()[0]
            trial = {key: round(value, 3) for key, value in scenario.measure(lab, name).items()}
            done.append({**trial, "load_before": load})
            print(number + 1, variant, done[-1], flush=True)
            document = {
                "ratios": ratios(scenario, trials), "shape": shape,
                "spread": spread(trials, options.record_bytes), "trials": trials,
            }  # fmt: skip
            options.output.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
