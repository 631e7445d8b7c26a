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
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # what all benchmarks share

from clusters import ROOT, Lab, commit, create
from common import RELEASE, MeasurementError, broker, free_ports, proxies, routes_of
from lag import lag
from trials import Trial, Trials, spread

AGAINST = ", against"  # what follows the name of a variant of another checkout
INCREMENT = 600
RUNS = {"run": "512m", "run_1g": "1g"}  # the whole command, by its heap


def full(lab: Lab, variant: str) -> Trial:
    """All records of a topic, by one reader or by the report's command."""
    lab.fill("full", lab.records, lab.source, lab.target)
    if variant not in RUNS:
        return lab.reader(variant)
    commit(lab.source, "mirrormaker-full", ["full"])
    return whole(lab, lab.configuration("full", "full", RUNS[variant]))


def whole(lab: Lab, config: Path) -> Trial:
    """The report's command, which verifies every record of the topic."""
    shutil.rmtree(config.parent / "state", ignore_errors=True)  # otherwise nothing new is read
    trial, said = lab.report(config, "run", "--json")
    records = sum(int(row["verified_records"]) for row in said["parity"])
    if records != lab.records:
        raise MeasurementError(f"{records} of {lab.records} records verified: {said['findings']}")
    return {**trial, "records": records, "records_per_s": 2 * records / trial["seconds"]}


# What the report chooses for a cluster so far away, on two processors with a heap of 2 GiB.
FAR_TASKS = "local[6]"
FAR = {
    "max.poll.records": "20000",
    "max.partition.fetch.bytes": "16777216",
    "fetch.max.bytes": "16777216",
}


def distance(lab: Lab, variant: str) -> Trial:
    """A full digest of a cluster so many milliseconds away."""
    lab.fill("full", lab.records, lab.source)
    source = lab.via[int(variant)]
    return lab.reader("cold_digest", source=source, heap="2g", fetch=FAR, master=FAR_TASKS)


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


# Milliseconds between two records: each has a minute of its own, or thousands have the same one.
STEPS = {"spread": 60_000, "together": 1}
FEW = 14


def minutes(lab: Lab, variant: str) -> Trial:
    """A run of a few new records, after one that compared many."""
    config, now_ms = lab.configuration(variant, variant), int(time.time() * 1000)
    if f"{lab.source}/{variant}" not in lab.filled:
        lab.filled.add(f"{lab.source}/{variant}")
        create(lab.source, [variant], **{"retention.ms": "-1"})
        step = STEPS[variant]
        lab.write(variant, lab.records, step, now_ms - lab.records * step)
    if not (config.parent / "state").exists():
        commit(lab.source, f"mirrormaker-{variant}", [variant])
        lab.report(config, "run", "--json")
    lab.write(variant, FEW, 1, now_ms)
    commit(lab.source, f"mirrormaker-{variant}", [variant])
    trial, said = lab.report(config, "run", "--json")
    (topic,) = said["parity"]
    if topic["verified_records"] != topic["source_records"]:
        raise MeasurementError(f"{variant}: not all is verified: {said['findings']}")
    return trial


# Java's first compiler alone, and both.
COMPILERS = {"first": "-XX:TieredStopAtLevel=1", "both": "-XX:TieredStopAtLevel=4"}


def encrypted(lab: Lab, variant: str) -> Trial:
    """The whole command over TLS, by Java's compilers."""
    lab.fill("full", lab.records, lab.source)
    commit(lab.source, "mirrormaker-encrypted", ["full"])
    options = f"-XX:MetaspaceSize=256m -XX:+UseSerialGC {COMPILERS[variant]}"
    properties = {"spark.driver.extraJavaOptions": options}
    return whole(lab, lab.configuration("encrypted", "full", "1g", tls=True, properties=properties))


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
            "confluent", "confluent_stock", "kafka_python", "run", "run_1g",
        ),
        {
            "digest.cpu_of_count": ("digest", "cpu_s", "count", "cpu_s"),
            "digest.rate_of_count": ("digest", "records_per_s", "count", "records_per_s"),
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
    "minutes": Scenario(
        minutes,
        tuple(STEPS),
        {
            f"spread.{number}_of_together": ("spread", number, "together", number)
            for number in ("cpu_s", "seconds", "peak_mib")
        },
    ),
    "encrypted": Scenario(
        encrypted, ("first", "both"),
        {f"both.{number}_of_first": ("both", number, "first", number)
         for number in ("cpu_s", "seconds")},
    ),
    "lag": Scenario(
        lag,
        ("mm1", "mm2", "idle"),
        {f"{name}.seconds": (name, "seconds", None, "") for name in ("mm1", "mm2", "idle")},
    ),
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
        routes = routes_of(trips)
        credentials, pem = certified(directory / "credentials")
        ports = free_ports(2)
        source = stack.enter_context(
            broker(kafka, directory / "east", dict(routes.values()), tls=(ports[0], pem))
        )
        target = stack.enter_context(broker(kafka, directory / "west", tls=(ports[1], pem)))
        lab = Lab(
            kafka, cache / "jars", directory, source, target,
            (f"localhost:{ports[0]}", f"localhost:{ports[1]}"), credentials,
            options.records, options.record_bytes,
        )  # fmt: skip
        lab.via.update(stack.enter_context(proxies(routes)))
        labs = [lab]
        if options.against is not None:
            labs.append(
                replace(lab, directory=directory / "against", checkout=options.against.resolve())
            )
        for measured in labs:
            measured.directory.mkdir(exist_ok=True)
            measured.report(measured.configuration("archive", "archive"), "archive")
        yield labs


def certified(directory: Path) -> tuple[Path, Path]:
    """Where the report finds the authority of both clusters, and the brokers' key and certificate.

    Clusters are called a and b.
    """
    asked = {"directory": str(directory), "certificates": [{"name": "broker"}]}
    subprocess.run(
        [sys.executable, str(ROOT / "lab/certificates.py")],
        input=json.dumps(asked), text=True, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    for alias in ("a", "b"):
        shutil.copy(directory / "lab.ca.pem", directory / f"{alias}.report.ca.pem")
    pem = directory / "broker.both.pem"
    pem.write_text((directory / "broker.key").read_text() + (directory / "broker.pem").read_text())
    return directory, pem


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

    def worked_out(trials: Mapping[str, Sequence[Trial]]) -> dict[str, Any]:
        extended = {
            name: [{**trial, **_per_gb(trial, options.record_bytes)} for trial in some]
            for name, some in trials.items()
        }
        return {"ratios": ratios(scenario, trials), "spread": spread(extended)}

    try:
        trials = Trials(options.output, shape, worked_out)
    except ValueError as error:
        parser.error(str(error))
    names = options.variants or scenario.variants
    with laboratory(options) as labs:
        turns = [labs, labs[::-1]]  # or who comes first has the machine as the other left it
        for number, place, name in itertools.product(
            range(options.trials), range(len(labs)), names
        ):
            lab = turns[number % 2][place]
            variant = name if lab is labs[0] else f"{name}{AGAINST}"
            trials.take(variant, number, functools.partial(scenario.measure, lab, name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
