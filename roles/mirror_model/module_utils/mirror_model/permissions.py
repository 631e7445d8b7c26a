"""What each identity must be allowed on each cluster, as data: ACLs, reports and checks read it.

Only what is needed, as measured with a broker that refuses everything else.
"""

import shlex
from collections.abc import Collection, Sequence

from . import acls
from .acls import Row
from .clusters import aliases_of, cluster_of
from .control import Kept
from .engine import Engine
from .engines import kept_by
from .keys import Flow, ModelError
from .owners import Owner
from .principals import principal_of
from .site import Site


def mirror_permissions(site: Site, report_identity: str = "report") -> list[Row]:
    """What the flows that an owner places on hosts need, each permission once.

    :param report_identity: who the report connects as.
    :returns: rows in the inventory's order: ``cluster`` (alias), ``identity``, ``principal``,
        ``flows`` (names), ``resource`` (topic, group or cluster), ``name``, ``pattern`` (literal or
        prefixed), ``operation``, ``why`` (what fails without it) and ``wider`` (whether it allows
        more than the flows take). No row implies another. Rows with ``deny`` take away what a wider
        one allows.
    :raises ModelError: an unknown cluster, or a principal that nobody knows.
    """
    rows: list[Row] = []
    for flow, engine, owner in site.placed:
        for identity in dict.fromkeys((owner.identity, report_identity)):
            needed = flow_permissions(flow, engine, owner, identity)
            if identity == owner.identity == report_identity:
                needed += _of_report(flow, engine, owner)
            for row in needed:
                principal = principal_of(site.clusters, row["cluster"], identity)
                if principal is None:
                    raise ModelError(
                        f"kafka_clusters.{row['cluster']}.identities.{identity}.principal: set it; "
                        "the inventory does not show as whom the brokers know this identity"
                    )
                rows.append({
                    "cluster": row["cluster"], "identity": identity, "principal": principal,
                    "flows": [flow["name"]], **row,
                })  # fmt: skip
    needed = acls.least(rows)
    return [*needed, *_kept_out(site, needed)]


def _kept_out(site: Site, rows: Sequence[Row]) -> list[Row]:
    """What nobody may do to what others keep, and permissions on more than flows take allow.

    Owners may keep one thing together: connectors of two Connect clusters from one source.
    """
    as_whom = {owner.path: owner.identity for owner in site.owners}
    first: dict[tuple[str, str, str], Kept] = {}
    keepers: dict[tuple[str, str, str], set[str | None]] = {}
    for kept in kept_by(site.declared.values(), site.owners):
        place = aliases_of(site.clusters, kept.alias)[0], kept.resource, kept.name
        first.setdefault(place, kept)
        keeper = principal_of(site.clusters, kept.alias, as_whom[kept.owner])
        keepers.setdefault(place, set()).add(keeper)
    denied: list[Row] = []
    for place, kept in first.items():
        aliases = aliases_of(site.clusters, kept.alias)
        on_cluster = [row for row in rows if row["cluster"] in aliases]
        denied += _denied(on_cluster, kept, keepers[place])
    return denied


def _denied(rows: Sequence[Row], kept: Kept, keepers: Collection[str | None]) -> list[Row]:
    """What nobody but its owners may do, and a permission on more than the flows take allows.

    :param rows: the permissions on the cluster of what is kept.
    :param keepers: the owners' principals; whoever is one of them as well is let be.
    """
    denials: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row["principal"] in keepers:
            continue
        for operation, why in kept.reserved.items():
            denied = {
                **row, "resource": kept.resource, "name": kept.name, "pattern": "literal",
                "operation": operation, "wider": False, "deny": True,
                "why": f"{why} of {kept.owner}",
            }  # fmt: skip
            if row["resource"] == kept.resource and acls.covers(row, denied):
                denials.setdefault((row["principal"], operation), denied)
    return list(denials.values())


def flow_permissions(flow: Flow, engine: Engine, owner: Owner, identity: str) -> list[Row]:
    """What one flow needs for one identity: the mirror's, or any other, which is the report's.

    :param flow: the flow, filled in.
    :returns: rows as of :func:`mirror_permissions`, without identity, principal and flows.
    """
    return acls.least(
        engine.permissions(flow, owner)
        if identity == owner.identity
        else _of_report(flow, engine, owner)
    )


def _of_report(flow: Flow, engine: Engine, owner: Owner) -> list[Row]:
    unmirrored = engine.unmirrored(flow, owner)
    compared = {
        "READ": "the report cannot compare the records",
        "DESCRIBE_CONFIGS": "the report cannot compare the topics' settings",
    }
    size = {"DESCRIBE": "the report guesses how large topics are, by which it bounds a run"}
    copies = acls.topics(flow, unmirrored, engine.prefix(flow, owner))
    return [
        *acls.rows(flow["source"], "topic", acls.topics(flow, unmirrored), compared),
        *acls.rows(flow["target"], "topic", copies, compared),
        *acls.on_cluster(flow["source"], size),
        *acls.on_cluster(flow["target"], size),
        *engine.report_permissions(flow, owner),
    ]


def to_kafka_acls(permissions: Sequence[Row], site: Site) -> dict[str, list[str]]:
    """Permissions as commands of Kafka's own tool.

    :param permissions: rows of :func:`mirror_permissions`.
    :returns: alias to commands for a shell, one for each principal and resource. Each reads the
        login of somebody who may write ACLs from ``admin.properties``.
    """
    operations: dict[tuple[str, ...], list[str]] = {}
    for row in permissions:
        key = (
            *(row[part] for part in ("cluster", "principal", "resource", "pattern", "name")),
            "deny" if row.get("deny") else "allow",
        )
        operations.setdefault(key, []).append(row["operation"])
    commands: dict[str, list[str]] = {}
    for (alias, principal, resource, pattern, name, kind), named in operations.items():
        words = [
            "kafka-acls.sh",
            "--bootstrap-server", ",".join(cluster_of(site.clusters, alias)["bootstrap_servers"]),
            "--command-config", "admin.properties", "--add", f"--{kind}-principal", principal,
            *(
                word for operation in named
                for word in ("--operation", operation.title().replace("_", ""))
            ),
            *(["--cluster"] if resource == "cluster"
              else [f"--{resource}", name, "--resource-pattern-type", pattern]),
        ]  # fmt: skip
        commands.setdefault(alias, []).append(shlex.join(words))
    return commands
