"""A valid site for tests to spoil, and a Java process that reads what we wrote."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mirror_model.judge import findings

ROOT = Path(__file__).parents[2]
ADVISORIES = yaml.safe_load((ROOT / "files/advisories.yml").read_text())["advisories"]

SITE: dict[str, Any] = {
    "clusters": {
        "east": {
            "bootstrap_servers": ["east1:9092", "east2:9092"],
            "security_protocol": "SASL_SSL",
            "ssl_ca": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
            "identities": {
                "mirror": {
                    "sasl_mechanism": "SCRAM-SHA-512",
                    "username": "mirror",
                    "password": "CANARY-east",
                },
                "report": {
                    "sasl_mechanism": "PLAIN",
                    "username": "mirror-report",
                    "password": "CANARY-report",
                },
            },
        },
        "west": {"bootstrap_servers": ["west1:9092"]},
        "north": {"bootstrap_servers": ["north1:9092"]},
    },
    "flows": [
        {
            "name": "orders",
            "engine": "mm1",
            "source": "east",
            "target": "west",
            "topics": ["orders", r"payments\..*"],
        },
        {
            "name": "back",
            "engine": "mm1",
            "source": "west",
            "target": "east",
            "topics": ["refunds"],
        },
    ],
    "instances": {
        "mirrormaker": {"hosts": ["mirror1"], "flows": ["orders"]},
        "mirrormaker-back": {"hosts": ["mirror1", "mirror2"], "flows": ["back"]},
    },
    "connect_clusters": {},
    "accept": [],
    "hosts": ["mirror1", "mirror2", "report1"],
    "groups": {"mirrormaker": ["mirror1", "mirror2"], "mirror_report": ["report1"]},
}


class Site(dict[str, Any]):
    """An inventory, and what the judge says about it."""

    def judge(self) -> dict[str, list[str]]:
        """Errors and warnings."""
        return findings(**self, advisories=ADVISORIES)

    @property
    def flow(self) -> dict[str, Any]:
        """The flow named orders."""
        chosen: dict[str, Any] = self["flows"][0]
        return chosen

    @property
    def instance(self) -> dict[str, Any]:
        """The instance that runs the flow named orders."""
        chosen: dict[str, Any] = self["instances"]["mirrormaker"]
        return chosen


@pytest.fixture
def site() -> Site:
    return Site(copy.deepcopy(SITE))


@pytest.fixture(scope="session")
def java() -> Iterator[Callable[[str], Any]]:
    """Look up a class of a running Java: the JDK's, Kafka's client library's."""
    import pyspark
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]

    cache = os.environ.get("MIRROR_LAB_CACHE") or str(
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-mirror-lab"
    )
    jars = [*Path(cache, "jars").glob("*kafka-clients*.jar")]
    assert jars, f"no kafka-clients in {cache}/jars: run 'make bootstrap' first"
    logging = [*Path(pyspark.__file__).parent.glob("jars/slf4j-api*.jar")]
    gateway = JavaGateway.launch_gateway(
        classpath=":".join(map(str, jars + logging)), die_on_exit=True
    )
    try:

        def class_named(name: str) -> Any:
            found: Any = gateway.jvm
            for part in name.split("."):
                found = getattr(found, part)
            return found

        yield class_named
    finally:
        gateway.shutdown()
