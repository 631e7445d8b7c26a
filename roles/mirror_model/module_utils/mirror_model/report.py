"""What the report has to know of clusters and flows."""

from collections.abc import Iterable
from typing import Any

from . import regex
from .control import excluded
from .logins import kafka_python_client
from .permissions import flow_permissions
from .principals import principal_of
from .site import Site


def mirror_report_model(
    site: Site,
    identity: str,
    only: str | Iterable[str] | None = None,
    sysconfig_directory: str = "/etc/sysconfig",
) -> dict[str, Any]:
    """The part of the report's configuration that is no secret.

    :param identity: who the report connects as, such as ``report``.
    :param only: a flow's name, or several; ``None`` takes all.
    :param sysconfig_directory: where instances keep their environment files.
    :returns: clusters (alias to connection, without password and certificates) and flows, in the
        inventory's order: those that an owner places on hosts, and their clusters. Topics and
        groups are regular expressions, literal names escaped; ``include`` also leaves out what the
        engine never mirrors. ``source_isolation`` and ``target_isolation`` say whether records of
        transactions that did not commit count. ``group_id`` is the group of the mirror's processes,
        on the cluster where the engine has it, ``identity`` as whom they connect. A flow's
        ``accept`` are the entries of ``mirror_accept`` that name it, its ``permissions`` what the
        identity needs for it; a cluster's ``principal`` is whom they are given to, ``None`` where
        the inventory does not show it.
    :raises ModelError: an unknown cluster.
    """
    chosen = None if only is None else [only] if isinstance(only, str) else list(only)
    reported = [
        {
            "name": flow["name"],
            "engine": engine.name,
            "source": flow["source"],
            "target": flow["target"],
            "topics": list(map(regex.as_regex, flow["topics"])),
            "topics_exclude": list(map(regex.as_regex, flow["topics_exclude"])),
            "include": regex.include_regex(
                flow["topics"], [*excluded(flow), *engine.unmirrored(flow, owner)]
            ),
            "left_out": list(map(regex.as_regex, flow["left_out"])),
            "start": flow["start"],
            "group_id": engine.group(flow)[1],
            "instance": owner.name,
            "hosts": owner.hosts,
            "sysconfig": f"{sysconfig_directory}/{owner.name}",
            "accept": [entry for entry in site.mirror_accept if entry.endswith(f":{flow['name']}")],
            "round_trips_ms": {
                alias: far["round_trip_ms"]
                for alias, far in owner.settings["distance"].items()
                if alias in (flow["source"], flow["target"])
            },
            "identity": owner.identity,
            "worker_principal": principal_of(site.clusters, flow["target"], owner.identity),
            "permissions": flow_permissions(flow, engine, owner, identity),
            **engine.report(site.clusters, flow, owner),
        }
        for flow, engine, owner in site.placed
        if chosen is None or flow["name"] in chosen
    ]
    aliases = dict.fromkeys(flow[side] for flow in reported for side in ("source", "target"))
    return {
        "clusters": {alias: _report_cluster(site, alias, identity) for alias in aliases},
        "flows": reported,
    }


def mirror_topic_flows(site: Site) -> list[dict[str, Any]]:
    """Placed flows whose engine creates no topics on the target, as the report sees them.

    :returns: flows of :func:`mirror_report_model`, as it is for ``mirror``.
    """
    names = [flow["name"] for flow, engine, _ in site.placed if not engine.creates_topics]
    flows: list[dict[str, Any]] = mirror_report_model(site, "mirror", only=names)["flows"]
    return flows


def _report_cluster(site: Site, alias: str, identity: str) -> dict[str, Any]:
    client = kafka_python_client(site, alias, identity)
    for secret in ("password", "ssl_key"):
        client.pop(secret, None)
    certificates = {key: key in client for key in ("ssl_ca", "ssl_certificate")}
    who = {"identity": identity, "principal": principal_of(site.clusters, alias, identity)}
    return client | certificates | who
