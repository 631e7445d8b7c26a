"""What each identity must be allowed on each cluster, as data: ACLs, reports and checks read it.

Only what is needed, as measured with a broker that refuses everything else. Kafka's authorizers
let READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS imply DESCRIBE_CONFIGS.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import regex
from .errors import ModelError
from .filled import cluster_of, layered, placed
from .mm2 import internal_topics, separator_of, unmirrored, worker_group
from .mm2_names import FLOW_DEFAULTS, FLOW_KAFKAS
from .principals import principal_of

MIRROR = "mirror"
IMPLIED_BY = {
    "DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",),
}
CLUSTER = "kafka-cluster"

Row = dict[str, Any]
Name = tuple[str, str, bool]
"""Name or beginning, pattern, and whether it stands for more than the flow takes."""


def mirror_permissions(
    clusters: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    instances: Mapping[str, Any],
    report_identity: str = "report",
) -> list[Row]:
    """What the flows that an instance places on hosts need, each permission once.

    :param clusters: ``kafka_clusters``.
    :param flows: ``mirror_flows``.
    :param instances: ``mirrormaker_instances``.
    :param report_identity: who the report connects as.
    :returns: rows in the inventory's order: ``cluster`` (alias), ``identity``, ``principal``,
        ``flows`` (names), ``resource`` (topic, group or cluster), ``name``, ``pattern`` (literal or
        prefixed), ``operation``, ``why`` (what fails without it) and ``wider`` (whether it allows
        more than the flows take). No row implies another.
    :raises ModelError: an unknown cluster, or a principal that nobody knows.
    """
    rows: list[Row] = []
    for flow, _, instance in placed(flows, instances):
        for identity in dict.fromkeys((MIRROR, report_identity)):
            needed = flow_permissions(flow, instance, identity)
            if identity == MIRROR == report_identity:
                needed += _of_report(flow, instance)
            for row in needed:
                principal = principal_of(clusters, row["cluster"], identity)
                if principal is None:
                    raise ModelError(
                        f"kafka_clusters.{row['cluster']}.identities.{identity}.principal: set it; "
                        "the inventory does not show as whom the brokers know this identity"
                    )
                who = {"identity": identity, "principal": principal, "flows": [flow["name"]]}
                rows.append({"cluster": row["cluster"], **who, **row})
    return _least(rows)


def flow_permissions(
    flow: Mapping[str, Any], instance: Mapping[str, Any], identity: str
) -> list[Row]:
    """What one flow needs for one identity: the mirror's, or any other, which is the report's.

    :param flow: the flow, filled in.
    :param instance: its instance, filled in.
    :returns: rows as of :func:`mirror_permissions`, without identity, principal and flows.
    """
    if identity != MIRROR:
        return _least(_of_report(flow, instance))
    return _least((_of_mm2 if flow["engine"] == "mm2" else _of_mm1)(flow, instance))


def _of_mm1(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> list[Row]:
    source, target = flow["source"], flow["target"]
    topics = _topics(flow, instance)
    return [
        *_rows(source, "topic", topics, {
            "READ": "MirrorMaker 1 ends with status 255, or mirrors nothing and says nothing if it "
            "may see none of the topics",
        }),
        *_rows(source, "group", _literal(flow["group_id"]), {
            "READ": "MirrorMaker 1 ends with status 255",
        }),
        *_rows(target, "topic", topics, {
            "WRITE": "MirrorMaker 1 ends with status 255 at the first record",
        }),
    ]  # fmt: skip


def _of_mm2(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> list[Row]:
    source, target = flow["source"], flow["target"]
    groups = _names(flow["consumer_groups"])
    own = internal_topics(flow, instance)
    workers = [own[f"{topic}_topic"] for topic in ("config", "offset", "status")]
    enabled = _enabled(flow)
    topics = {
        "CREATE": "MirrorMaker 2 does not create the topics on the target and only warns",
        "WRITE": "MirrorMaker 2's tasks fail at the first record",
        "ALTER": "MirrorMaker 2 does not add the source's new partitions and only warns",
    }
    if "sync.topic.configs.enabled" in enabled:
        topics["ALTER_CONFIGS"] = "topic configs do not follow; MirrorMaker 2 only warns"
    if groups:
        topics["READ"] = "group offsets do not follow: 'Unable to sync offsets', without a reason"
    rows = [
        *_rows(source, "topic", _topics(flow, instance), {
            "READ": "MirrorMaker 2 cannot read the topics, or does not see them",
            "DESCRIBE_CONFIGS": "MirrorMaker 2 creates no new topic on the target",
        }),
        *_rows(source, "group", groups, {
            "DESCRIBE": "group offsets do not follow: 'Error querying offsets'",
        }),
        *_rows(target, "group", _literal(worker_group(flow)), {
            "READ": "MirrorMaker 2 ends with status 1 after most of a minute",
        }),
        *_rows(
            target, "topic", _literal(*workers),
            dict.fromkeys(("CREATE", "READ", "WRITE"), "MirrorMaker 2 ends with status 1"),
        ),
        *_rows(target, "topic", _mirrored(flow, instance), topics),
        *_rows(target, "group", groups, {
            "READ": "group offsets do not follow: 'Error querying for consumer group'",
        }),
    ]  # fmt: skip
    if "emit.offset-syncs.enabled" in enabled:
        syncs = dict.fromkeys(("CREATE", "WRITE"), "MirrorMaker 2 cannot keep offset syncs")
        if groups:
            syncs["READ"] = "MirrorMaker 2 floods its journal, and group offsets do not follow"
        rows += _rows(target, "topic", _literal(own["offset_syncs_topic"]), syncs)
    if groups:
        rows += _rows(target, "topic", _literal(own["checkpoints_topic"]), {
            "CREATE": "group offsets do not follow",
            "WRITE": "group offsets do not follow",
            "READ": "group offsets are translated less exactly after a start",
        })  # fmt: skip
    if "emit.heartbeats.enabled" in enabled:
        rows += _rows(target, "topic", _literal("heartbeats"),
                      dict.fromkeys(("CREATE", "WRITE"), "the heartbeat task fails"))  # fmt: skip
    if "sync.topic.acls.enabled" in enabled:
        rows += _rows(source, "cluster", _literal(CLUSTER),
                      {"DESCRIBE": "ACLs do not follow: an error at every interval"})  # fmt: skip
        rows += _rows(target, "cluster", _literal(CLUSTER), {"ALTER": "ACLs do not follow"})
    return rows


def _enabled(flow: Mapping[str, Any]) -> set[str]:
    """What of MirrorMaker 2's switches is on."""
    # A property set to null is left out, so that Kafka's own default holds.
    values = FLOW_KAFKAS | layered(FLOW_DEFAULTS, flow["properties"])
    return {key for key, value in values.items() if str(value).lower() == "true"}


def _of_report(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> list[Row]:
    source, target = flow["source"], flow["target"]
    compared = {
        "READ": "the report cannot compare the records",
        "DESCRIBE_CONFIGS": "the report cannot compare the topics' settings",
    }
    rows = [
        *_rows(source, "topic", _topics(flow, instance), compared),
        *_rows(target, "topic", _mirrored(flow, instance), compared),
        *(
            row
            for alias in (source, target)
            for row in _rows(alias, "cluster", _literal(CLUSTER), {
                "DESCRIBE": "the report guesses how large topics are, by which it bounds a run",
            })
        ),
    ]  # fmt: skip
    if flow["engine"] == "mm1":
        return [
            *rows,
            *_rows(source, "group", _literal(flow["group_id"]), {
                "DESCRIBE": "the report cannot tell how far the mirror is",
            }),
            *_rows(target, "cluster", _literal(CLUSTER), {
                "DESCRIBE_CONFIGS": "the report cannot tell whether the brokers create topics",
            }),
        ]  # fmt: skip
    groups = _names(flow["consumer_groups"])
    if groups:
        rows += _rows(source, "cluster", _literal(CLUSTER), {
            "DESCRIBE": "the report does not see the groups whose offsets follow",
        })  # fmt: skip
    for alias in (source, target):
        rows += _rows(alias, "group", groups, {
            "DESCRIBE": "the report cannot tell what a group would lose or read again after a "
            "failover",
        })  # fmt: skip
    own = internal_topics(flow, instance)
    read = {
        own["offset_topic"]: "the report cannot tell how far the mirror is",
        own["status_topic"]: "the report cannot tell which task failed",
    }
    if "emit.offset-syncs.enabled" in _enabled(flow):
        read[own["offset_syncs_topic"]] = "the report cannot estimate between two commits"
    if groups:
        read[own["checkpoints_topic"]] = "the report cannot tell whether group offsets follow"
    kept = [*read, own["config_topic"]]
    for topic, why in read.items():
        rows += _rows(target, "topic", _literal(topic), {"READ": why})
    return [
        *rows,
        *_rows(target, "topic", _literal(*kept), {
            "DESCRIBE": "the report cannot tell whether MirrorMaker 2's topics are there",
            "DESCRIBE_CONFIGS": "the report cannot tell whether they are compacted",
        }),
        *_rows(target, "group", _literal(worker_group(flow)), {
            "DESCRIBE": "the report cannot tell whether the mirror runs",
        }),
    ]  # fmt: skip


def _rows(
    alias: str, resource: str, names: Iterable[Name], operations: Mapping[str, str]
) -> list[Row]:
    return [
        {
            "cluster": alias, "resource": resource, "name": name, "pattern": pattern,
            "operation": operation, "why": why, "wider": wider,
        }
        for name, pattern, wider in names
        for operation, why in operations.items()
    ]  # fmt: skip


def _literal(*names: str) -> list[Name]:
    return [(name, "literal", False) for name in names]


def _names(patterns: Iterable[str], prefix: str = "", taken: str = ".*") -> list[Name]:
    """The names and beginnings of some patterns.

    :param prefix: what stands before each name.
    :param taken: regular expression of the names that count.
    """
    found: list[Name] = []
    for pattern in patterns:
        for text, whole in regex.beginnings(pattern):
            if not whole:
                name = prefix + text
                found.append((name, "prefixed", True) if name else ("*", "literal", True))
            elif re.fullmatch(taken, text):
                found.append((prefix + text, "literal", False))
    return found


def _topics(flow: Mapping[str, Any], instance: Mapping[str, Any], prefix: str = "") -> list[Name]:
    excluded = list(flow["topics_exclude"])
    if flow["engine"] == "mm2":
        excluded += unmirrored(flow, instance)
    return _names(flow["topics"], prefix, regex.include_regex(flow["topics"], excluded))


def _mirrored(flow: Mapping[str, Any], instance: Mapping[str, Any]) -> list[Name]:
    """The flow's topics by their names on the target."""
    prefixed = flow["replication_policy"] == "prefix"
    return _topics(flow, instance, flow["source"] + separator_of(instance) if prefixed else "")


def _covers(one: Row, other: Row) -> bool:
    """Whether a permission includes another."""
    if any(one.get(key) != other.get(key) for key in ("cluster", "principal", "resource")):
        return False
    if one["operation"] not in (other["operation"], *IMPLIED_BY.get(other["operation"], ())):
        return False
    if one["pattern"] == "literal":
        same = one["name"] == other["name"] and other["pattern"] == "literal"
        return bool(one["name"] == "*" or same)
    return bool(other["name"] != "*" and other["name"].startswith(one["name"]))


def _least(rows: Iterable[Row]) -> list[Row]:
    """The rows of which none includes another; each belongs to the flows of those it replaces."""
    least: list[Row] = []
    for row in rows:
        wide = next((kept for kept in least if _covers(kept, row)), None)
        if wide is not None:
            _take_over(wide, row)
            continue
        replaced = [kept for kept in least if _covers(row, kept)]
        place = least.index(replaced[0]) if replaced else len(least)
        merged = dict(row)
        for kept in reversed(replaced):
            _take_over(merged, kept, before=True)
        least.insert(place, merged)
        least = [kept for kept in least if not any(kept is one for one in replaced)]
    return least


def _take_over(row: Row, other: Row, *, before: bool = False) -> None:
    """Let a row stand for another, which it includes."""
    first, second = (other, row) if before else (row, other)
    if "flows" in row:
        row["flows"] = list(dict.fromkeys([*first["flows"], *second["flows"]]))
    if row["operation"] == other["operation"] and other["why"] not in row["why"]:
        row["why"] = f"{first['why']}; {second['why']}"


def to_kafka_acls(permissions: Sequence[Row], clusters: Mapping[str, Any]) -> dict[str, list[str]]:
    """Permissions as commands of Kafka's own tool.

    :param permissions: rows of :func:`mirror_permissions`.
    :param clusters: ``kafka_clusters``.
    :returns: alias to commands for a shell, one for each principal and resource. Each reads the
        login of somebody who may write ACLs from ``admin.properties``.
    """
    operations: dict[tuple[str, ...], list[str]] = {}
    for row in permissions:
        key = tuple(row[part] for part in ("cluster", "principal", "resource", "pattern", "name"))
        operations.setdefault(key, []).append(row["operation"])
    commands: dict[str, list[str]] = {}
    for (alias, principal, resource, pattern, name), some in operations.items():
        servers = ",".join(cluster_of(clusters, alias)["bootstrap_servers"])
        words = [
            "kafka-acls.sh", "--bootstrap-server", servers, "--command-config", "admin.properties",
            "--add", "--allow-principal", principal,
            *(word for one in some for word in ("--operation", one.title().replace("_", ""))),
            *(["--cluster"] if resource == "cluster"
              else [f"--{resource}", name, "--resource-pattern-type", pattern]),
        ]  # fmt: skip
        commands.setdefault(alias, []).append(shlex.join(words))
    return commands
