"""Releases that have the engine, in which it works, and that are open to no refused advisory."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..advisories import kafka_advisories
from ..engines import engine_of
from ..inventory import Inventory
from ..kafka_names import line_of, release


def judge_versions(found: Inventory, advisories: Sequence[Mapping[str, Any]]) -> None:
    """Judge the release of whatever is to run.

    :param advisories: entries of ``files/advisories.yml``.
    """
    for owner, flow in found.running():
        engine = engine_of(flow)
        path, version = f"{owner.path}.kafka_version", owner.version(engine.kafka_version)
        if engine.last_line and line_of(version) != engine.last_line:
            found.refuse(
                f"{path}: Kafka {version} has no {engine.title}, which ended with "
                f"{engine.last_line}; set it to {engine.kafka_version}"
            )
            continue
        if release(version) < release(engine.oldest):
            found.refuse(
                f"{path}: {engine.title} of Kafka {version} {engine.older}; "
                f"set it to {engine.oldest} or newer"
            )
        for entry in kafka_advisories(version, engine.name, found.accept, advisories=advisories):
            report = found.refuse if entry["refused"] else found.warn
            report(f"{path}: {entry['text']}")
