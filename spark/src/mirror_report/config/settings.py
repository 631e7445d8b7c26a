"""Every setting of the configuration, with its default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirror_report.config.cluster import Cluster
from mirror_report.config.credentials import Credentials
from mirror_report.config.errors import ConfigError, did_you_mean
from mirror_report.config.flow import Flow

DEFAULT_PATH = "/etc/mirror-report/config.yaml"


@dataclass(frozen=True)
class Warn:
    """Bounds above (coverage, certificates: below) which the report warns; ``None``: never.

    :param reread_records: of one partition, by a group that moved to the target. The mirror
        asks for groups once a minute and keeps them low on purpose, so some are always read again.
    """

    lag_records: int | None = None
    lag_seconds: float | None = 600
    lag_bytes: int | None = None
    coverage: float | None = 0.95
    stalled_seconds: float = 300
    heartbeat_seconds: float | None = 300
    reread_records: int | None = 10_000
    certificate_days: float | None = 21


@dataclass(frozen=True)
class Budget:
    """What one run may cost.

    :param max_bytes: read at most, all in all; like ``max_records``.
    :param deadline_seconds: no step begins later.
    :param max_lag_records: content of a flow is left alone while its mirror is further behind.
    :param scrub_bytes: read again at most, once an hour, of what was verified before; 0: nothing.
    :param state_bytes: that rows of all runs may hold in the state directory before one more is
        written.
    :param compacted_hours: how long the scan of a compacted topic counts before the next.
    :param open_minutes: for how long a minute of records may stay open before what the mirror has
        committed of it is compared by slices of offsets.
    """

    max_bytes: int | None = 21_474_836_480
    max_records: int | None = None
    deadline_seconds: float = 1500
    max_lag_records: int | None = None
    scrub_bytes: int = 67_108_864
    state_bytes: int | None = 10_737_418_240
    compacted_hours: float = 24.0
    open_minutes: float = 60.0


@dataclass(frozen=True)
class Spark:
    """How Spark is started.

    :param class_archive: directory of the archive of loaded classes that ``mirror-report archive``
        makes; ``None``: none is used.
    :param fetch: properties of a Kafka consumer that say how much is fetched at once; they win over
        what the report would choose.
    :param credentials_directory: where the credential files lie on this host and on every other
        that executes; ``None``: in this process's own directory, which others do not have.
    :param scratch_bytes: that Spark may keep on this host's disks while it works.
    :param properties: Spark's own configuration keys, verbatim;
        :mod:`mirror_report.spark_security` says which of them are not for choice.
    """

    master: str = "local[*]"
    heap: str = "1g"
    jars_directory: str | None = None
    java_home: str | None = None
    class_archive: str | None = None
    credentials_directory: str | None = None
    fetch: Mapping[str, str] = field(default_factory=dict)
    scratch_bytes: int | None = 10_737_418_240
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """The whole configuration.

    :param interval_seconds: how far apart the timer's reports are, the longest time if it differs;
        ``lag_interval_seconds``: the observations of lag between them. What is older than three of
        them is not believed.
    :param history_days: for how long it keeps lag and positions over time.
    :param metrics_directory: where files of Prometheus metrics are written; ``None``: none are.
    :param metrics_partitions: metrics of lag for each partition instead of each topic.
    :param units_file: where root leaves its record of this host's mirrors; ``None``: it does not.
    :param instances: mirrors and workers that this host shall have; ``None``: not known.
    :param web_directory: where the last report is published for a web server; ``None``: nowhere.
    """

    clusters: Mapping[str, Cluster]
    flows: tuple[Flow, ...]
    state_directory: Path = Path("/var/lib/mirror-report")
    interval_seconds: float = 900
    lag_interval_seconds: float = 60
    bucket_seconds: int = 60
    history_days: int = 30
    metrics_directory: str | None = None
    metrics_partitions: bool = False
    web_directory: str | None = None
    units_file: str | None = None
    instances: tuple[str, ...] | None = None
    warn: Warn = field(default_factory=Warn)
    budget: Budget = field(default_factory=Budget)
    spark: Spark = field(default_factory=Spark)
    credentials: Credentials = field(default_factory=Credentials, repr=False)

    def flow(self, name: str) -> Flow:
        """One flow by name.

        :raises ConfigError: there is none of that name.
        """
        for flow in self.flows:
            if flow.name == name:
                return flow
        raise ConfigError(
            f"no flow named {name!r}{did_you_mean(name, [f.name for f in self.flows])}"
        )

    def chosen(self, name: str | None) -> tuple[Flow, ...]:
        """The flow of a name, or all of them.

        :raises ConfigError: unknown name, or no flow at all.
        """
        if name is not None:
            return (self.flow(name),)
        if not self.flows:
            raise ConfigError("flows: empty, there is nothing to observe")
        return self.flows

    def into_one(self, flow: Flow) -> list[Flow]:
        """The other flows into a flow's target."""
        return [each for each in self.flows if each != flow and each.target == flow.target]

    def clusters_of(self, flows: Iterable[str]) -> list[Cluster]:
        """Sources and targets of flows by name, each once."""
        named = map(self.flow, flows)
        aliases = (alias for flow in named for alias in (flow.source, flow.target))
        return [self.clusters[alias] for alias in dict.fromkeys(aliases)]
