"""Known security advisories of the releases of Kafka and of kafka-python."""

from collections.abc import Mapping, Sequence
from typing import Any

from .engines import ENGINES
from .kafka_names import release
from .keys import ModelError
from .site import Site

# What is not Java runs no Kafka, and has releases of its own.
LIBRARY = "kafka-python"
OTHER_PROCESSES = ("broker", "client", LIBRARY, "nodes")


def is_open(version: str, fixed: Sequence[str], since: str = "0.0.0") -> bool:
    """Whether a release is open to what later releases fixed.

    :param version: a release.
    :param since: the first affected release.
    :param fixed: the first fixed release of every line that got the fix; newer lines have it too.
        Empty: none is known, so all later ones are open.
    """
    own, fixes = release(version), [release(fix) for fix in fixed]
    same_line = [fix for fix in fixes if fix[:2] == own[:2]]
    end = same_line[0] if same_line else max(fixes, default=None)
    return release(since) <= own and (end is None or own < end)


def kafka_advisories(
    version: str,
    process: str,
    accept: Sequence[str] = (),
    *,
    advisories: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The advisories that concern one process of one release.

    :param version: the release that is to run.
    :param process: an engine or one of :data:`OTHER_PROCESSES`; ``client`` is any other Java
        client, ``kafka-python`` what the report and the modules connect with, ``nodes`` the
        server by which several hosts of one owner ask each other.
    :param accept: ``mirror_accept``; an accepted advisory is reported, not refused.
    :param advisories: the entries of ``files/advisories.yml``.
    :returns: maps of ``cve``, ``text`` (with the cure) and ``refused``, in the table's order.
    :raises ModelError: an unknown process or a malformed version.
    """
    processes = (*ENGINES, *OTHER_PROCESSES)
    if process not in processes:
        raise ModelError(f"process '{process}' is not one of {', '.join(processes)}")
    product = LIBRARY if process == LIBRARY else "Kafka"
    concerning = []
    for entry in advisories:
        verdict = entry["processes"].get(process)
        if verdict is None or not is_open(version, entry["fixed"], entry.get("since", "0.0.0")):
            continue
        refused = verdict == "refused" and entry["cve"] not in accept
        fixed = " or ".join(entry["fixed"])
        cure = f"use {fixed}" if fixed else "no fixed release is known here, read the advisory"
        if refused:
            cure += f", or list '{entry['cve']}' in mirror_accept"
        concerning.append({
            "cve": entry["cve"],
            "text": f"{entry['cve']} ({product} {version}): {entry['text']}; {cure}",
            "refused": refused,
        })  # fmt: skip
    return concerning


def site_advisories(
    site: Site, process: str, version: str, *, advisories: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The advisories that concern a process of a site, as of :func:`kafka_advisories`."""
    return kafka_advisories(version, process, site.mirror_accept, advisories=advisories)
