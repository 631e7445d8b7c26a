#!/usr/bin/env python3
"""How long MirrorMaker 2 copies nothing around starts, stops and kills, by setting.

Two single-node KRaft brokers and the mirror's processes run on loopback and end with this program.
Every trial has an alias and a topic of its own, so all of them start from nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))  # what all benchmarks share

from common import RELEASE, Node, broker, free_ports, properties_text, wait_for
from flowing import PARTITIONS, Flowing, restarted
from kafka.admin import KafkaAdminClient, NewTopic
from trials import text_of

# Each variant is what it adds to stock's properties.
DISCOVERY = {"plugin.discovery": "service_load", "west.plugin.discovery": "service_load"}
SESSION = {"west.session.timeout.ms": "6000", "west.heartbeat.interval.ms": "2000"}
FLUSH = {"west.offset.flush.interval.ms": "10000", "west.offset.flush.timeout.ms": "30000"}
DELAY = {"west.scheduled.rebalance.max.delay.ms": "0"}
VARIANTS: dict[str, dict[str, str]] = {
    "stock": {},
    "discovery": DISCOVERY,
    "session": SESSION,
    "flush": FLUSH,
    "delay": DELAY,
    "all": {**DISCOVERY, **SESSION, **FLUSH, **DELAY},
}


@dataclass
class Lab:
    """Both clusters, and where files go."""

    kafka: Path
    directory: Path
    east: str
    west: str
    engine: str
    numbers: Iterator[int] = field(default_factory=lambda: count(1))


FACTORS = {
    f"{topic}.replication.factor": "1"
    for topic in ("offset.storage", "config.storage", "status.storage")
}


class Mirror(Flowing):
    """One flow with a topic of its own under load, and the processes that mirror it.

    These are dedicated; :class:`Connect` has workers.
    """

    def __init__(self, lab: Lab, variant: Mapping[str, str], nodes: int) -> None:
        self.lab = lab
        number = next(lab.numbers)
        self.alias = f"east{number}"
        self.directory = lab.directory / self.alias
        self.directory.mkdir()
        self.ports = free_ports(nodes)
        self.starts = 0
        self.running: dict[int, Node] = {}
        self.topic = f"load{number}"
        admin = KafkaAdminClient(bootstrap_servers=lab.east)
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])
        admin.close()
        for number, port in enumerate(self.ports):
            text = properties_text(self.properties(variant, port))
            (self.directory / f"{number}.properties").write_text(text)
        super().__init__(lab.east, lab.west, self.topic, f"{self.alias}.{self.topic}")

    def properties(self, variant: Mapping[str, str], port: int) -> dict[str, str]:
        """The properties of one node."""
        rest = {
            "dedicated.mode.enable.internal.rest": "true",
            "listeners": f"http://127.0.0.1:{port}",
        }
        return {
            "clusters": f"{self.alias},west",
            f"{self.alias}.bootstrap.servers": self.lab.east,
            "west.bootstrap.servers": self.lab.west,
            f"{self.alias}->west.enabled": "true",
            f"{self.alias}->west.topics": self.topic,
            f"{self.alias}->west.tasks.max": "6",
            f"{self.alias}->west.offset-syncs.topic.location": "target",
            f"west->{self.alias}.enabled": "false",
            f"west->{self.alias}.emit.heartbeats.enabled": "false",
            "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
            **FACTORS,
            **(rest if len(self.ports) > 1 else {}),
            **variant,
        }

    def command(self, number: int) -> list[str]:
        """What starts one node."""
        script = str(self.lab.kafka / "bin" / "connect-mirror-maker.sh")
        return [script, str(self.directory / f"{number}.properties"), "--clusters", "west"]

    def start(self, number: int) -> Node:
        """Start one node."""
        self.starts += 1
        node = Node(
            self.command(number),
            self.directory / f"{self.starts}-{number}.log",
            LOG_DIR=str(self.directory / f"logs-{number}"),
            KAFKA_HEAP_OPTS="-Xms256M -Xmx1G",
        )
        self.running[number] = node
        return node

    def leader(self) -> int:
        """The node that leads the workers' group, by the nodes' logs."""
        logs = [node.log.read_text(errors="replace") for node in self.running.values()]
        joined = [line for log in logs for line in log.splitlines() if "leaderUrl='" in line]
        latest = max(joined, key=lambda line: line[:25])
        return self.ports.index(int(latest.split("leaderUrl='http://127.0.0.1:")[1].split("/")[0]))

    def end(self) -> None:
        """End everything this flow started."""
        for node in self.running.values():
            node.process.kill()
            node.process.wait(30)
        super().end()


class Connect(Mirror):
    """A flow on workers of Kafka Connect, which gets its connector as soon as one answers."""

    def properties(self, variant: Mapping[str, str], port: int) -> dict[str, str]:
        """The properties of one worker."""
        converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
        return {
            "bootstrap.servers": self.lab.west,
            "group.id": self.alias,
            "listeners": f"http://127.0.0.1:{port}",
            "key.converter": converter,
            "value.converter": converter,
            **{
                f"{kind}.storage.topic": f"{self.alias}-{kind}"
                for kind in ("offset", "config", "status")
            },
            **FACTORS,
            **{key.removeprefix("west."): value for key, value in variant.items()},
        }

    def command(self, number: int) -> list[str]:
        """What starts one worker."""
        script = str(self.lab.kafka / "bin" / "connect-distributed.sh")
        return [script, str(self.directory / f"{number}.properties")]

    def start(self, number: int) -> Node:
        """Start one worker; the first brings the connector along."""
        node = super().start(number)
        if self.starts == 1:
            threading.Thread(target=self._deploy, args=(self.ports[number],), daemon=True).start()
        return node

    def _deploy(self, port: int) -> None:
        config = {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "tasks.max": "6",
            "source.cluster.alias": self.alias,
            "target.cluster.alias": "west",
            "source.cluster.bootstrap.servers": self.lab.east,
            "target.cluster.bootstrap.servers": self.lab.west,
            "topics": self.topic,
            "offset-syncs.topic.location": "target",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        }

        def sent() -> bool:
            with (
                suppress(OSError, HTTPException),
                closing(HTTPConnection("127.0.0.1", port, timeout=30)) as asked,
            ):
                headers = {"Content-Type": "application/json"}
                asked.request("PUT", "/connectors/source/config", json.dumps(config), headers)
                return asked.getresponse().status in (200, 201)
            return False

        wait_for("the connector", sent)


ENGINES: dict[str, type[Mirror]] = {"dedicated": Mirror, "connect": Connect}


@contextmanager
def mirror(lab: Lab, variant: Mapping[str, str], nodes: int) -> Iterator[Mirror]:
    """A flow that ends with the block."""
    flow = ENGINES[lab.engine](lab, variant, nodes)
    try:
        yield flow
    finally:
        flow.end()


def restarts(lab: Lab, variant: Mapping[str, str]) -> dict[str, float]:
    """One process: first start, SIGTERM and start, kill -9 and start."""
    with mirror(lab, variant, 1) as flow:
        return restarted(flow, lambda: flow.start(0))


def takeover(lab: Lab, variant: Mapping[str, str]) -> dict[str, float]:
    """Two processes: started at once, the follower killed, the leader killed, a rolling restart."""
    result: dict[str, float] = {}
    with mirror(lab, variant, 2) as flow:
        flow.mark("first_start")
        node = flow.start(0)
        other = flow.start(1)
        result["first_start_s"] = flow.watch.growth((0,) * PARTITIONS) - node.started
        node.joined()
        other.joined()
        flow.settle()
        for role in ("follower", "leader"):
            victim = flow.leader() if role == "leader" else 1 - flow.leader()
            flow.running.pop(victim).end(signal.SIGKILL)
            killed = time.monotonic()
            flow.mark(f"{role}_killed")
            result[f"{role}_killed_s"] = flow.watch.growth(flow.marks[-1][1]) - killed
            flow.settle()
            returned = time.monotonic()
            flow.start(victim).joined()
            flow.settle()
            result[f"{role}_returns_stall_s"] = flow.watch.longest_stall(returned)
        flow.mark("rolling_restart")
        for role in ("follower", "leader"):
            number = flow.leader() if role == "leader" else 1 - flow.leader()
            stopped = time.monotonic()
            flow.running[number].end(signal.SIGTERM)
            flow.start(number).joined()
            flow.settle()
            result[f"{role}_restart_stall_s"] = flow.watch.longest_stall(stopped)
        result |= flow.counts()
    return result


SCENARIOS: dict[str, Callable[[Lab, Mapping[str, str]], dict[str, float]]] = {
    "restarts": restarts,
    "takeover": takeover,
}


def ratios(trials: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Median of every time of every variant, as part of stock's in the same run."""
    result: dict[str, float] = {}
    stock = trials.get("stock", [])
    for name, measured in trials.items():
        for key in measured[0] if measured and stock and name != "stock" else ():
            base = median(trial[key] for trial in stock)
            if base > 0 and key.endswith("_s"):
                result[f"{name}.{key}"] = round(median(trial[key] for trial in measured) / base, 2)
    return result


def main() -> int:
    """Run the trials that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafka-mirror-lab"
    parser.add_argument("--cache", type=Path, default=os.environ.get("MIRROR_LAB_CACHE", default))
    parser.add_argument("--scenario", choices=SCENARIOS, default="restarts")
    parser.add_argument("--engine", choices=ENGINES, default="dedicated")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--together", action="store_true", help="all variants of a trial at once")
    parser.add_argument("--keep", type=Path, help="directory for files and logs that stay")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    trials: dict[str, list[dict[str, float]]] = {name: [] for name in options.variants}
    with ExitStack() as stack:
        directory = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(exist_ok=True)
        archive = Path(options.cache) / "archives" / f"{RELEASE}.tgz"
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(directory)], check=True)
        kafka = directory / RELEASE
        east = stack.enter_context(broker(kafka, directory / "east"))
        west = stack.enter_context(broker(kafka, directory / "west"))
        lab = Lab(kafka, directory, east, west, options.engine)
        for number in range(options.trials):
            with ThreadPoolExecutor(len(options.variants) if options.together else 1) as pool:
                scenario = SCENARIOS[options.scenario]
                names = {pool.submit(scenario, lab, VARIANTS[n]): n for n in options.variants}
                for done in as_completed(names):
                    name, result = names[done], done.result()
                    trials[name].append({key: round(value, 2) for key, value in result.items()})
                    print(number + 1, name, trials[name][-1], flush=True)
                    report = {"ratios": ratios(trials), "trials": trials}
                    options.output.write_text(text_of(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
