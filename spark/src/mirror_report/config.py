"""The report's configuration: YAML or JSON in, typed settings out.

Secrets are not part of the file: they come from the ``credentials`` map of a document on standard
input, or from the files of ``$CREDENTIALS_DIRECTORY`` that systemd fills.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from mirror_report import spark_security
from mirror_report.model import ReportError

DEFAULT_PATH = "/etc/mirror-report/config.yaml"
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ENGINES = ("mm1", "mm2")
REPLICATION_POLICIES = ("identity", "prefix")
HEARTBEATS = "heartbeats"
# MirrorMaker 2's defaults of groups.exclude and config.properties.exclude (Kafka 4.3).
GROUPS_EXCLUDE = ("console-consumer-.*", "connect-.*", "__.*")
CONFIG_EXCLUDE = (
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms", "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms", "message.timestamp.type",
    "unclean.leader.election.enable", "min.insync.replicas",
)  # fmt: skip
FETCH_KEYS = (
    "client.id",
    "client.rack",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "max.partition.fetch.bytes",
    "max.poll.records",
    "receive.buffer.bytes",
    "request.timeout.ms",
)
RESOURCES = ("topic", "group", "cluster", "transactional-id")
PATTERNS = ("literal", "prefixed")
ISOLATIONS = ("read_uncommitted", "read_committed")

T = TypeVar("T")


class ConfigError(ReportError):
    """The configuration cannot be used; the message names the key and the cure."""


class Credentials:
    """Named secrets; nothing but :meth:`read` ever shows one.

    :param values: name -> secret, from standard input.
    :param directory: where systemd put the secret files.
    """

    def __init__(
        self, values: Mapping[str, str] | None = None, directory: Path | None = None
    ) -> None:
        self._values = dict(values or {})
        self.directory = directory

    def __repr__(self) -> str:
        return "Credentials(<hidden>)"

    def read(self, name: str) -> str:
        """One secret in clear.

        :param name: for example ``east.report.password``.
        :raises ConfigError: it is in neither place, or cannot be read.
        """
        if name in self._values:
            return self._values[name]
        if self.directory is None:
            raise ConfigError(
                f"no credential {name!r}: this command needs it. Run `mirror-report` through its "
                "wrapper (as root, it loads the credentials), or pass a `credentials` map with "
                "`--config -`"
            )
        try:
            return (self.directory / name).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"credential {name!r} cannot be read from {self.directory}: {error.strerror}. "
                "Deploy the report again: the role writes and loads it"
            ) from error

    def path(self, name: str) -> Path | None:
        """File of a secret, if it lives in a file."""
        return None if self.directory is None else self.directory / name


@dataclass(frozen=True)
class Cluster:
    """How the report reaches one cluster.

    :param identity: names the credentials: ``<alias>.<identity>.password`` and so on.
    :param principal: who the brokers' ACLs take this identity for, such as ``User:mirror``.
    :param ssl_ca: whether a ``<alias>.<identity>.ca.pem`` credential exists.
    :param ssl_certificate: whether there is ``.cert.pem`` with its ``.key.pem``.
    """

    alias: str
    bootstrap_servers: tuple[str, ...]
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    username: str | None = None
    identity: str = "report"
    principal: str | None = None
    ssl_ca: bool = False
    ssl_certificate: bool = False

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    def credential(self, kind: str) -> str:
        """Name of one credential of this cluster, kind being password, jaas, ca.pem, ..."""
        return f"{self.alias}.{self.identity}.{kind}"


@dataclass(frozen=True)
class Permission:
    """One ACL that an identity needs for a flow.

    :param cluster: alias of the cluster that has to grant it.
    :param resource: ``topic``, ``group``, ``cluster`` or ``transactional-id``.
    :param name: of the resource, or what names begin with; ``*`` stands for every one.
    :param operation: Kafka's own word, such as ``READ``.
    :param why: what fails without it.
    :param wider: it allows more than the flow takes.
    """

    cluster: str
    resource: str
    name: str
    pattern: str
    operation: str
    why: str = ""
    wider: bool = False


@dataclass(frozen=True)
class Flow:
    """One mirror flow.

    :param include: the regular expression of topics, as the mirror process gets it.
    :param group_id: MirrorMaker 1: its consumer group on the source; MirrorMaker 2: the group of
        its workers on the target.
    :param accept: dangers accepted by name, such as ``regex-without-auto-creation:orders``.
    :param parallelism: streams or tasks the flow may use.
    :param replication_policy: ``prefix`` puts the source's alias before a topic's name on the
        target, ``identity`` keeps it; with ``separator`` between alias and name.
    :param consumer_groups: regular expressions of the groups whose offsets are synced.
    :param offset_topic: on the target, like the other ``*_topic``: what MirrorMaker 2 remembers.
    :param groups_exclude: regular expressions of the groups MirrorMaker 2 leaves out of those.
    :param checkpoint_seconds: how often it looks for what groups have committed.
    :param sync_topic_configs: whether it sets topics' settings on the target, all but those that
        match ``config_exclude``.
    :param replication_factors: property -> replication factor somebody asked for.
    :param permissions: what the identity of this configuration needs; empty: nothing is known.
    :param source_isolation: Kafka's word for whether records of transactions that did not commit
        count on the source, as they do to the mirror; ``target_isolation``: on the target.
    """

    name: str
    source: str
    target: str
    include: str
    engine: str = "mm1"
    topics: tuple[str, ...] = ()
    topics_exclude: tuple[str, ...] = ()
    start: str = "earliest"
    group_id: str = ""
    instance: str = "mirrormaker"
    hosts: tuple[str, ...] = ()
    commit_interval_ms: int = 60_000
    sysconfig: str | None = None
    accept: tuple[str, ...] = ()
    parallelism: int = 1
    replication_policy: str = "identity"
    separator: str = "."
    consumer_groups: tuple[str, ...] = ()
    groups_exclude: tuple[str, ...] = GROUPS_EXCLUDE
    checkpoint_seconds: int = 60
    sync_topic_configs: bool = True
    config_exclude: tuple[str, ...] = CONFIG_EXCLUDE
    offset_topic: str = ""
    status_topic: str = ""
    config_topic: str = ""
    offset_syncs_topic: str = ""
    checkpoints_topic: str = ""
    replication_factors: Mapping[str, int] = field(default_factory=dict)
    permissions: tuple[Permission, ...] = ()
    source_isolation: str = "read_uncommitted"
    target_isolation: str = "read_uncommitted"

    def isolation(self, side: str) -> str:
        """Which records of a side count: ``read_uncommitted`` (all) or ``read_committed``."""
        return self.source_isolation if side == "source" else self.target_isolation

    def matches(self, topic: str) -> bool:
        """Whether the flow mirrors a topic.

        MirrorMaker 1 takes internal ones only when named literally; what MirrorMaker 2 leaves out
        is part of ``include``.
        """
        if self.engine == "mm1" and topic.startswith("__") and topic not in self.topics:
            return False
        return re.fullmatch(self.include, topic) is not None

    def target_topic(self, source_topic: str) -> str:
        """Name on the target; MirrorMaker 2 prefixes heartbeats under any policy."""
        if self.engine == "mm2" and (
            self.replication_policy == "prefix" or source_topic.endswith(HEARTBEATS)
        ):
            return f"{self.source}{self.separator}{source_topic}"
        return source_topic

    def source_topic(self, target_topic: str) -> str | None:
        """Name on the source of a topic of the target; ``None``: it is not this flow's."""
        for name in (target_topic, target_topic.removeprefix(f"{self.source}{self.separator}")):
            if self.target_topic(name) == target_topic and self.matches(name):
                return name
        return None

    def wants(self, group: str) -> bool:
        """Whether the flow is told to take a consumer group's offsets along."""
        return any(re.fullmatch(one, group) for one in self.consumer_groups)

    def syncs(self, group: str) -> bool:
        """Whether the flow takes a consumer group's offsets along."""
        return self.wants(group) and not any(
            re.fullmatch(one, group) for one in self.groups_exclude
        )

    def syncs_setting(self, key: str) -> bool:
        """Whether the flow may set a topic's setting on the target."""
        return (
            self.engine == "mm2"
            and self.sync_topic_configs
            and not any(re.fullmatch(one, key) for one in self.config_exclude)
        )

    @property
    def named(self) -> tuple[str, ...]:
        """Topics the flow names one by one, also those beside a regular expression."""
        return tuple(one.replace("\\.", ".") for one in self.topics if _is_name(one))

    @property
    def is_regex(self) -> bool:
        """Whether topics may match that do not exist yet."""
        return not all(map(_is_name, self.topics or (self.include,)))


def _is_name(pattern: str) -> bool:
    """Whether a regular expression is one topic's name."""
    return re.fullmatch(r"[A-Za-z0-9_\-]+", pattern.replace("\\.", "_")) is not None


@dataclass(frozen=True)
class Warn:
    """Bounds above (coverage, certificates: below) which the report warns; ``None``: never.

    :param reread_records: of one partition, by a group that moved to the target. MirrorMaker 2
        looks at groups once a minute and keeps them low on purpose, so some are always read again.
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
    :param compacted_hours: how long the scan of a compacted topic counts before the next.
    """

    max_bytes: int | None = 21_474_836_480
    max_records: int | None = None
    deadline_seconds: float = 1500
    max_lag_records: int | None = None
    scrub_bytes: int = 67_108_864
    compacted_hours: float = 24.0


@dataclass(frozen=True)
class Spark:
    """How Spark is started.

    :param class_archive: directory of the archive of loaded classes that ``mirror-report archive``
        makes; ``None``: none is used.
    :param fetch: properties of a Kafka consumer that say how much is fetched at once; they win over
        what the report would choose.
    :param credentials_directory: where the credential files lie on this host and on every other
        that executes; ``None``: in this process's own directory, which others do not have.
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
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """Everything the report is told.

    :param interval_seconds: how far apart the timer's reports are, the longest time if it differs;
        ``lag_interval_seconds``: the looks at lag between them. What is older than three of them is
        not believed.
    :param history_days: for how long it keeps what it has seen: lag and positions over time.
    :param metrics_directory: where files of Prometheus metrics are written; ``None``: none are.
    :param metrics_partitions: metrics of lag for each partition instead of each topic.
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
    warn: Warn = field(default_factory=Warn)
    budget: Budget = field(default_factory=Budget)
    spark: Spark = field(default_factory=Spark)
    credentials: Credentials = field(default_factory=Credentials, repr=False)

    def flow(self, name: str) -> Flow:
        """One flow by name.

        :raises ConfigError: there is none of that name.
        """
        for one in self.flows:
            if one.name == name:
                return one
        raise ConfigError(
            f"no flow named {name!r}{_did_you_mean(name, [f.name for f in self.flows])}"
        )


def load(where: str, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the configuration.

    :param where: a path, or ``-`` for standard input (which may hold ``credentials``).
    :param environment: process environment; ``CREDENTIALS_DIRECTORY`` is looked up in it.
    :raises ConfigError: the document cannot be read or used.
    """
    environment = os.environ if environment is None else environment
    if where == "-":
        text = sys.stdin.read()
    else:
        try:
            text = Path(where).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"configuration {where} cannot be read: {error.strerror}. Name another one with "
                "--config, or deploy the report with its role"
            ) from error
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # The parser's own text would quote the line, and a line may hold a secret.
        mark = getattr(error, "problem_mark", None)
        at = f" at line {mark.line + 1}" if mark else ""
        raise ConfigError(f"configuration {where} is neither YAML nor JSON{at}") from None
    directory = environment.get("CREDENTIALS_DIRECTORY")
    return parse(document, Path(directory) if directory else None, secrets_allowed=where == "-")


def parse(
    document: Any, directory: Path | None = None, *, secrets_allowed: bool = True
) -> Settings:
    """Typed settings from a plain document.

    :raises ConfigError: an unknown key, a wrong type, a missing or undefined name.
    """
    top = _mapping(document, "the configuration")
    version = top.get("version")
    if version != 1:
        raise ConfigError(
            f"version: {version!r} is not understood, this release reads version 1. "
            "Deploy the configuration and the report from the same release"
        )
    allowed = [one.name for one in fields(Settings)] + ["version"]
    _refuse_unknown(top, allowed, "")
    clusters = {
        alias: _record(
            Cluster, {**_mapping(one, f"clusters.{alias}"), "alias": alias}, f"clusters.{alias}"
        )
        for alias, one in _mapping(top.get("clusters"), "clusters").items()
    }
    for cluster in clusters.values():
        _judge_cluster(cluster)
    flows = tuple(
        _record(Flow, _mapping(one, f"flows[{i}]"), f"flows[{i}]")
        for i, one in enumerate(_sequence(top.get("flows"), "flows"))
    )
    for flow in flows:
        _judge_flow(flow, clusters)
    if len({flow.name for flow in flows}) != len(flows):
        raise ConfigError("flows: two flows have the same name")
    values = top.get("credentials")
    if values is not None and not secrets_allowed:
        raise ConfigError(
            "credentials: secrets do not belong into the file; remove the key, the files of "
            "$CREDENTIALS_DIRECTORY are read"
        )
    bucket_seconds = _typed(top.get("bucket_seconds", 60), int, "bucket_seconds")
    if bucket_seconds < 1:
        raise ConfigError("bucket_seconds: must be at least 1")
    spark = _record(Spark, _mapping(top.get("spark") or {}, "spark"), "spark")
    _judge_spark(spark)
    budget = _record(Budget, _mapping(top.get("budget") or {}, "budget"), "budget")
    for name in ("max_bytes", "max_records", "max_lag_records", "deadline_seconds", "scrub_bytes"):
        value, least = getattr(budget, name), 0 if name == "scrub_bytes" else 1
        if value is not None and value < least:
            raise ConfigError(f"budget.{name}: must be at least {least}")
    history_days = _typed(top.get("history_days", 30), int, "history_days")
    if history_days < 1:
        raise ConfigError("history_days: must be at least 1")
    intervals = {
        name: _coerce(top.get(name, getattr(Settings, name)), "float", name)
        for name in ("interval_seconds", "lag_interval_seconds")
    }
    for name, value in intervals.items():
        if not value > 0:
            raise ConfigError(f"{name}: must be above 0")
    return Settings(
        **intervals,
        clusters=clusters,
        flows=flows,
        state_directory=Path(
            _typed(top.get("state_directory", "/var/lib/mirror-report"), str, "state_directory")
        ),
        metrics_partitions=_typed(top.get("metrics_partitions", False), bool, "metrics_partitions"),
        bucket_seconds=bucket_seconds,
        history_days=history_days,
        metrics_directory=_path(top, "metrics_directory"),
        web_directory=_path(top, "web_directory"),
        warn=_record(Warn, _mapping(top.get("warn") or {}, "warn"), "warn"),
        budget=budget,
        spark=spark,
        credentials=Credentials({} if values is None else _credential_values(values), directory),
    )


def _path(top: Mapping[str, Any], key: str) -> str | None:
    """An absolute path, or nothing."""
    if top.get(key) is None:
        return None
    path: str = _typed(top[key], str, key)
    if not path.startswith("/"):
        raise ConfigError(f"{key}: {path!r} is no absolute path")
    return path


def _judge_spark(spark: Spark) -> None:
    if re.fullmatch(r"\d+[kmgKMG]", spark.heap) is None:
        raise ConfigError(f"spark.heap: {spark.heap!r} is not a size such as 512m or 2g")
    _refuse_unknown(spark.fetch, FETCH_KEYS, "spark.fetch")
    open_doors = spark_security.problems(spark.master, spark.properties)
    if open_doors:
        raise ConfigError(open_doors[0])


def _judge_cluster(cluster: Cluster) -> None:
    where = f"clusters.{cluster.alias}"
    if not cluster.bootstrap_servers:
        raise ConfigError(f"{where}.bootstrap_servers: at least one host:port is needed")
    for server in cluster.bootstrap_servers:
        if re.fullmatch(r".+:\d{1,5}", server) is None:
            raise ConfigError(f"{where}.bootstrap_servers: {server!r} is not host:port")
    if cluster.security_protocol not in SECURITY_PROTOCOLS:
        raise ConfigError(
            f"{where}.security_protocol: {cluster.security_protocol!r} is none of "
            + ", ".join(SECURITY_PROTOCOLS)
        )
    if cluster.security_protocol.startswith("SASL"):
        if cluster.sasl_mechanism not in SASL_MECHANISMS:
            raise ConfigError(
                f"{where}.sasl_mechanism: {cluster.sasl_mechanism!r} is none of "
                + ", ".join(SASL_MECHANISMS)
            )
        if not cluster.username:
            raise ConfigError(f"{where}.username: needed with {cluster.security_protocol}")


def _judge_flow(flow: Flow, clusters: Mapping[str, Cluster]) -> None:
    where = f"flows.{flow.name}"
    if flow.engine not in ENGINES:
        raise ConfigError(f"{where}.engine: {flow.engine!r} is none of {', '.join(ENGINES)}")
    for side, alias in (("source", flow.source), ("target", flow.target)):
        if alias not in clusters:
            raise ConfigError(
                f"{where}.{side}: no cluster {alias!r} below clusters"
                + _did_you_mean(alias, clusters)
            )
    if flow.start not in ("earliest", "latest"):
        raise ConfigError(f"{where}.start: {flow.start!r} is neither earliest nor latest")
    if not flow.group_id:
        raise ConfigError(f"{where}.group_id: the group of the mirror is needed")
    if flow.engine == "mm2":
        _judge_mm2(flow, where)
    for side in ("source", "target"):
        if flow.isolation(side) not in ISOLATIONS:
            raise ConfigError(
                f"{where}.{side}_isolation: {flow.isolation(side)!r} is none of "
                + ", ".join(ISOLATIONS)
            )
    for row in flow.permissions:
        _judge_permission(flow, row, f"{where}.permissions")
    for key, some in (
        ("include", (flow.include,)),
        ("topics_exclude", flow.topics_exclude),
        ("consumer_groups", flow.consumer_groups),
        ("groups_exclude", flow.groups_exclude),
        ("config_exclude", flow.config_exclude),
    ):
        for one in some:
            try:
                re.compile(one)
            except re.error as error:
                raise ConfigError(f"{where}.{key}: not a regular expression: {error}") from None


def _judge_mm2(flow: Flow, where: str) -> None:
    if flow.replication_policy not in REPLICATION_POLICIES:
        raise ConfigError(
            f"{where}.replication_policy: {flow.replication_policy!r} is none of "
            + ", ".join(REPLICATION_POLICIES)
        )
    if not flow.separator:
        raise ConfigError(f"{where}.separator: at least one character is needed")
    for key in ("offset_topic", "status_topic", "offset_syncs_topic"):
        if not getattr(flow, key):
            raise ConfigError(f"{where}.{key}: the name of that topic is needed")


def _judge_permission(flow: Flow, one: Permission, where: str) -> None:
    for key, known in (
        ("cluster", (flow.source, flow.target)),
        ("resource", RESOURCES),
        ("pattern", PATTERNS),
    ):
        value = getattr(one, key)
        if value not in known:
            raise ConfigError(f"{where}: {key} {value!r} is none of {', '.join(known)}")


def _record(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from a mapping, each value checked against the field's annotation."""
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    _refuse_unknown(given, known, where)
    values: dict[str, Any] = {}
    for name, one in known.items():
        if name in given:
            values[name] = _coerce(given[name], str(one.type), f"{where}.{name}")
        elif one.default is MISSING and one.default_factory is MISSING:
            raise ConfigError(f"{where}.{name}: missing")
    return kind(**values)


def _coerce(value: Any, annotation: str, where: str) -> Any:
    wanted = {part.strip() for part in annotation.split("|")}
    if value is None and "None" in wanted:
        return None
    if any(one.startswith("tuple[") for one in wanted):
        return _tuple(value, "tuple[Permission, ...]" in wanted, where)
    if any(one.startswith("Mapping[") for one in wanted):
        numbers = "Mapping[str, int]" in wanted
        return {
            name: _typed(one, int, f"{where}.{name}") if numbers else _text(one)
            for name, one in _mapping(value, where).items()
        }
    if "bool" in wanted:
        return _typed(value, bool, where)
    if "float" in wanted and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kinds: dict[str, type] = {"str": str, "int": int, "float": float}
    return _typed(value, next(kind for name, kind in kinds.items() if name in wanted), where)


def _tuple(value: Any, permissions: bool, where: str) -> tuple[Any, ...]:
    given = _sequence(value, where)
    if not permissions:
        return tuple(_typed(one, str, where) for one in given)
    places = [f"{where}[{i}]" for i in range(len(given))]
    return tuple(
        _record(Permission, _mapping(one, at), at) for one, at in zip(given, places, strict=True)
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typed(value: Any, kind: type[T], where: str) -> T:
    # bool is an int to Python, and not to the person who wrote `yes`.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{where}: {kind.__name__} expected, {type(value).__name__} given")
    return value


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{where}: a map of names is expected")
    return value


def _sequence(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"{where}: a list is expected")
    return value


def _credential_values(value: Any) -> dict[str, str]:
    given = _mapping(value, "credentials")
    for name, secret in given.items():
        if not isinstance(secret, str):
            raise ConfigError(f"credentials.{name}: text is expected")
    return given


def _refuse_unknown(given: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(
                f"{where + '.' if where else ''}{name}: unknown key{_did_you_mean(name, known)}"
            )


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""
