"""What the identity lacks of what a flow needs: answers of a cluster in, findings out; no I/O.

A permission on names that begin alike, or on all, is there if it is granted on the names the flow
has now, and on one that nobody uses: if that is allowed, later names are.
"""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mirror_report.checks.verdict import finding
from mirror_report.config import Cluster, Flow, Permission
from mirror_report.model import Access, Finding, Resource, Severity

CLUSTER = "kafka-cluster"
EVERY = "*"
# A name, or the end of one, for what does not exist yet.
NOBODYS = "mirror-report-probe"

Answers = Mapping[Resource, Access]


@dataclass(frozen=True)
class Lack:
    """One permission that is not there.

    :param example: the name that was refused.
    :param pressing: the flow needs it now, not only for names to come.
    """

    row: Permission
    example: str
    pressing: bool = True


def rows_of(flow: Flow, alias: str) -> list[Permission]:
    """What the flow needs on one of its clusters."""
    return [row for row in flow.permissions if row.cluster == alias]


def names_of(
    flow: Flow, row: Permission, topics: Collection[str], groups: Collection[str]
) -> list[str]:
    """Resources a permission is about now, without those nobody uses.

    :param topics: those of the source that the flow mirrors.
    :param groups: those of the source whose offsets it syncs.
    """
    if row.resource == "cluster":
        return [CLUSTER]
    if row.pattern == "literal" and row.name != EVERY:
        return [row.name]
    names: Iterable[str] = ()
    if row.resource == "topic":
        names = topics if row.cluster == flow.source else map(flow.target_topic, topics)
    elif row.resource == "group":
        names = groups
    return sorted(name for name in names if row.name == EVERY or name.startswith(row.name))


def nobodys(row: Permission) -> str | None:
    """A name the permission allows and nobody uses; ``None`` if it is about one name alone."""
    if row.resource not in ("topic", "group"):
        return None
    if row.name == EVERY:
        return NOBODYS
    return f"{row.name}{NOBODYS}" if row.pattern == "prefixed" else None


def questions(
    flow: Flow, rows: Iterable[Permission], topics: Collection[str], groups: Collection[str]
) -> dict[Resource, set[str]]:
    """What has to be asked: resource -> operations."""
    asked: dict[Resource, set[str]] = {}
    for row in rows:
        for name in [*names_of(flow, row, topics, groups), nobodys(row)]:
            if name is not None:
                asked.setdefault((row.resource, name), set()).add(row.operation)
    return asked


def findings(
    flow: Flow,
    cluster: Cluster,
    rows: Iterable[Permission],
    answers: Answers,
    topics: Collection[str],
    groups: Collection[str],
) -> Iterator[Finding]:
    """One finding per permission that is missing, and one for all that could not be asked.

    :param rows: what is needed on the cluster that answered.
    :param topics: as of :func:`names_of`, like ``groups``.
    """
    unknown: dict[Permission, str] = {}
    for row in rows:
        lack = _lack(row, names_of(flow, row, topics, groups), answers)
        if isinstance(lack, Lack):
            yield _missing(flow, cluster, lack)
        elif lack:
            unknown[row] = lack
    if unknown:
        yield _unknown(flow, cluster, unknown)


def _lack(row: Permission, names: Sequence[str], answers: Answers) -> Lack | str:
    """The lack, or why it is unknown; an empty text: it is allowed."""

    def access(name: str) -> Access:
        return answers.get((row.resource, name), Access())

    granted = {name: access(name).operations.get(row.operation) for name in names}
    refused = [name for name, allowed in granted.items() if allowed is False]
    if refused:
        # What exists has no need of being created.
        needed = [name for name in refused if row.operation != "CREATE" or not access(name).exists]
        return Lack(row, (needed or refused)[0], pressing=bool(needed))
    probe = nobodys(row)
    later = access(probe).operations.get(row.operation) if probe else True
    if later is False and (row.operation == "CREATE" or not names):
        return Lack(row, probe or row.name, pressing=not names)
    if later is False:
        return "allowed on the names that are visible, and not on others that begin so"
    if not names and later is None:
        return f"no {row.resource} that begins so is visible"
    unanswered = next((name for name, allowed in granted.items() if allowed is None), None)
    if unanswered is None:
        return ""
    absent = access(unanswered).exists is False
    return f"{unanswered} does not exist yet" if absent else "Kafka does not say"


def principal_of(cluster: Cluster) -> str:
    """Our identity as ACLs name it, as far as the configuration has it."""
    if cluster.principal:
        return cluster.principal
    unnamed = "<subject of its certificate>" if cluster.ssl_certificate else "ANONYMOUS"
    return f"User:{cluster.username or unnamed}"


def _missing(flow: Flow, cluster: Cluster, lack: Lack) -> Finding:
    row = lack.row
    severity: Severity
    if cluster.identity == flow.identity:
        severity = "critical" if lack.pressing else "warning"
    else:
        # Without settings, and what belongs to the cluster, the report still proves records.
        less = row.resource == "cluster" or row.operation == "DESCRIBE_CONFIGS"
        severity = "warning" if less else "unknown"
    example = "" if lack.example in (row.name, CLUSTER) else f" (asked about {lack.example})"
    return finding(
        "missing_permission",
        f"{principal_of(cluster)} (identity {cluster.identity}) lacks {_named(row)} on "
        f"{cluster.alias}{example}" + (f": {row.why}" if row.why else ""),
        grant(cluster, row),
        flow=flow.name,
        topic=lack.example if row.resource == "topic" and lack.example != nobodys(row) else None,
    ).rated(severity)


def _unknown(flow: Flow, cluster: Cluster, why: Mapping[Permission, str]) -> Finding:
    """One finding for all that could not be asked."""
    return finding(
        "permission_unknown",
        f"{principal_of(cluster)} (identity {cluster.identity}) on {cluster.alias}: could not "
        "be asked: " + "; ".join(f"{_named(row)} ({text})" for row, text in why.items()),
        f"{_acls(cluster)} --list --principal {shlex.quote(principal_of(cluster))} shows what "
        "is granted; mirror-report check asks again",
        flow=flow.name,
        count=len(why),
    )


def not_configured(flow: Flow) -> Finding:
    """A flow whose permissions are not in the configuration."""
    return finding(
        "permission_unknown",
        f"what flow {flow.name} needs is not in the configuration, so permissions were not checked",
        "Deploy the report with its role, which derives what is needed from the inventory and "
        "writes it as the flow's `permissions`",
        flow=flow.name,
    )


def grant(cluster: Cluster, row: Permission) -> str:
    """The command that grants a permission, for who may administer the cluster."""
    words = [
        _acls(cluster), "--add", "--allow-principal", shlex.quote(principal_of(cluster)),
        "--operation", row.operation.replace("_", " ").title().replace(" ", ""),
        f"--{row.resource}",
    ]  # fmt: skip
    if row.resource != "cluster":
        words.append(shlex.quote(row.name))
    if row.pattern == "prefixed":
        words += ["--resource-pattern-type", "prefixed"]
    return " ".join(words)


def _acls(cluster: Cluster) -> str:
    return f"kafka-acls.sh --bootstrap-server {','.join(cluster.bootstrap_servers)}"


def _named(row: Permission) -> str:
    if row.resource == "cluster":
        return f"{row.operation} on the cluster"
    if row.name == EVERY:
        return f"{row.operation} on every {row.resource}"
    begins = "s that begin with" if row.pattern == "prefixed" else ""
    return f"{row.operation} on {row.resource}{begins} {row.name}"
