"""How a mirror is started: as Kafka's documentation does it, or as the role's unit does."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "roles/mirror_model/module_utils"))

import yaml  # noqa: E402
from mirror_model.layout import HOST  # noqa: E402
from mirror_model.render import to_java_properties  # noqa: E402
from mirror_model.site import mirror_site  # noqa: E402

RELEASES = {"mm1": "kafka_2.13-3.9.2", "mm2": "kafka_2.13-4.3.1"}
ROLE_DEFAULTS = yaml.safe_load((ROOT / "roles/mirrormaker/defaults/main.yml").read_text())
NAME = "mirrormaker"
BANDWIDTH_MBIT = 2000


@dataclass(frozen=True)
class Flow:
    """What is to be mirrored.

    :param alias: name of the source; of each trial another, so that it begins at the beginning.
    :param source: address of the source as the mirror sees it; ``target`` likewise.
    """

    engine: str
    alias: str
    topic: str
    source: str
    target: str

    @property
    def target_topic(self) -> str:
        """Where its copies are."""
        return self.topic if self.engine == "mm1" else f"{self.alias}.{self.topic}"


@dataclass(frozen=True)
class Settings:
    """What an inventory sets of a mirror, beside clusters and flow.

    :param consumer: properties of the client that reads, ``producer`` of the one that writes; null
        removes a default.
    :param round_trips: milliseconds to the source and to the target, as an inventory says it;
        ``None``: near.
    :param parallel: streams or tasks; ``None``: the default.
    :param heap: as the inventory spells it; empty: the default.
    :param jvm: Java's options of the garbage collector; empty: the role's.
    """

    consumer: Mapping[str, Any] = field(default_factory=dict)
    producer: Mapping[str, Any] = field(default_factory=dict)
    round_trips: tuple[int | None, int | None] = (None, None)
    parallel: int | None = None
    heap: str = ""
    jvm: str = ""


@dataclass(frozen=True)
class Start:
    """A command and its environment."""

    command: list[str]
    environment: dict[str, str]


def stock(flow: Flow, kafka: Path, directory: Path) -> Start:
    """The least that Kafka's documentation asks for; everything else is Kafka's default."""
    script = kafka / RELEASES[flow.engine] / "bin"
    environment = {"LOG_DIR": str(directory / "logs")}
    if flow.engine == "mm1":
        files = {
            "consumer.properties": {
                "bootstrap.servers": flow.source, "group.id": flow.alias,
                "auto.offset.reset": "earliest",
            },
            "producer.properties": {"bootstrap.servers": flow.target},
        }  # fmt: skip
        _write(files, directory)
        arguments = [
            f"{script}/kafka-mirror-maker.sh", "--consumer.config",
            f"{directory}/consumer.properties", "--producer.config",
            f"{directory}/producer.properties", "--include", re.escape(flow.topic),
        ]  # fmt: skip
        return Start(arguments, environment)
    factors = (
        "replication.factor", "offset-syncs.topic.replication.factor",
        "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor",
        "offset.storage.replication.factor", "config.storage.replication.factor",
        "status.storage.replication.factor",
    )  # fmt: skip
    properties = {
        "clusters": f"{flow.alias},west",
        f"{flow.alias}.bootstrap.servers": flow.source,
        "west.bootstrap.servers": flow.target,
        f"{flow.alias}->west.enabled": True,
        f"{flow.alias}->west.topics": flow.topic,
        # There is one broker.
        **dict.fromkeys(factors, 1),
    }
    _write({"mm2.properties": properties}, directory)
    command = [f"{script}/connect-mirror-maker.sh", f"{directory}/mm2.properties"]
    return Start([*command, "--clusters", "west"], environment)


def rendered(flow: Flow, kafka: Path, directory: Path, settings: Settings) -> Start:
    """What the role's unit starts, from an inventory with these settings."""
    described: dict[str, Any] = {
        "name": "bench", "engine": flow.engine, "source": flow.alias, "target": "west",
        "topics": [flow.topic],
    }  # fmt: skip
    instance: dict[str, Any] = {"hosts": ["here"], "flows": ["bench"]}
    instance["distance"] = {
        alias: {"round_trip_ms": trip, "bandwidth_mbit": BANDWIDTH_MBIT}
        for alias, trip in zip((flow.alias, "west"), settings.round_trips, strict=True)
        if trip
    }
    if settings.heap:
        instance["heap"] = settings.heap
    if flow.engine == "mm1":
        described["group_id"] = flow.alias
        instance["consumer_properties"] = dict(settings.consumer)
        instance["producer_properties"] = dict(settings.producer)
        if settings.parallel is not None:
            instance["num_streams"] = settings.parallel
    else:
        described["properties"] = {f"consumer.{k}": v for k, v in settings.consumer.items()}
        instance["worker_properties"] = {f"producer.{k}": v for k, v in settings.producer.items()}
        if settings.parallel is not None:
            described["tasks_max"] = settings.parallel
    clusters = {
        flow.alias: {"bootstrap_servers": [flow.source]},
        "west": {"bootstrap_servers": [flow.target]},
    }
    site = mirror_site(clusters, [described], {NAME: instance}, {})
    made = site.process(NAME, {"brokers": 1}).placed(replace(HOST, configuration=str(directory)))
    _write(made.properties, directory)
    environment = {
        "KAFKA_JVM_PERFORMANCE_OPTS": settings.jvm
        or " ".join(ROLE_DEFAULTS["mirrormaker_jvm_performance_options"]),
        "KAFKA_HEAP_OPTS": f"-Xms{made.heap} -Xmx{made.heap}",
        "KAFKA_OPTS": " ".join(ROLE_DEFAULTS["mirrormaker_jvm_options"]),
        "LOG_DIR": str(directory / "logs"),
    }
    arguments = [
        word
        for option, variable in made.arguments
        for word in (option, str(made.environment[variable]))
        if word
    ]
    script = kafka / RELEASES[flow.engine] / "bin" / made.script
    return Start([str(script), *arguments], environment)


def _write(files: Mapping[str, Mapping[str, Any]], directory: Path) -> None:
    for name, properties in files.items():
        (directory / name).write_text(to_java_properties(properties))
