"""A valid site for tests to change, and a Java process that reads rendered files."""

from __future__ import annotations

import copy
import datetime
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mirror_model import site as sites
from mirror_model.kafka_names import line_of
from mirror_model.layout import HOST
from mirror_model.process import Process
from mirror_model.validate import validate_site
from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
CACHE = Path(
    os.environ.get("MIRROR_LAB_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-mirror-lab"
)
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

# What a flow of patterns leaves out that keeps names (docs/security.md).
CONTROL = (
    r"mm2.*[._-]internal", r".+[._-]checkpoints[._-]+internal",
    r"connect(?:-[0-9a-z]+)*-(?:configs?|offsets|status)",
)  # fmt: skip

PAIR = {
    "ssl_certificate": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
    "ssl_key": "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n",
}


def certificate_of(subject: x509.Name) -> str:
    """A certificate as PEM text; Kafka and Python would refuse it for its age."""
    key = ec.generate_private_key(ec.SECP256R1())
    day = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject).issuer_name(subject).public_key(key.public_key()).serial_number(1)
        .not_valid_before(day).not_valid_after(day + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    return made.public_bytes(serialization.Encoding.PEM).decode()


class Site(dict[str, Any]):
    """An inventory, and what validation says about it."""

    @property
    def model(self) -> sites.Site:
        """What the inventory is to the model."""
        return sites.Site(
            self["clusters"], self["flows"], self["instances"], self["connect_clusters"],
            self["accept"],
        )  # fmt: skip

    def process(self, name: str = "mirrormaker", /, **node: Any) -> Process:
        """The process of an owner as a host starts it."""
        return self.model.process(name, node).placed(HOST)

    def findings(self) -> dict[str, list[str]]:
        """Errors and warnings."""
        return validate_site(self.model, self["hosts"], self["groups"], advisories=ADVISORIES)

    def validate(self) -> dict[str, list[str]]:
        """Errors and warnings, but for those that every site gets.

        These are of advisories that no release mends; test_advisories.py has them.
        """
        said = self.findings()
        unmended = [entry["text"] for entry in ADVISORIES if not entry["fixed"]]
        warnings = [line for line in said["warnings"] if not any(text in line for text in unmended)]
        return {**said, "warnings": warnings}

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


def refused(site: Site, *words: str) -> str:
    """The one error of a site; it must contain all words."""
    errors = site.validate()["errors"]
    assert len(errors) == 1, errors
    for word in words:
        assert word in errors[0]
    assert "CANARY" not in errors[0]
    return errors[0]


def mentioned(site: Site, *words: str) -> None:
    """A site passes with one warning; it must contain all words."""
    found = site.validate()
    assert found["errors"] == []
    assert len(found["warnings"]) == 1
    for word in words:
        assert word in found["warnings"][0]
    assert "CANARY" not in str(found)


@pytest.fixture
def site() -> Site:
    return Site(copy.deepcopy(SITE))


@pytest.fixture
def connect_site() -> Site:
    """A flow with groups on two workers, and a flow in the other direction on one of its own."""
    made = copy.deepcopy(SITE)
    made["clusters"]["west"] = {
        **copy.deepcopy(made["clusters"]["east"]), "bootstrap_servers": ["west1:9092"],
    }  # fmt: skip
    made["flows"] = [
        {"name": "orders", "engine": "mm2-connect", "connect": "connect-west", "source": "east",
         "target": "west", "topics": ["orders"], "consumer_groups": ["billing"]},
        {"name": "back", "engine": "mm2-connect", "connect": "connect-east", "source": "west",
         "target": "east", "topics": ["refunds", "heartbeats"],
         "properties": {"emit.heartbeats.enabled": True, "producer.override.linger.ms": 7}},
    ]  # fmt: skip
    rest = {
        "ssl_ca": made["clusters"]["east"]["ssl_ca"],
        "users": {"deployer": "CANARY-rest-1"},
        "client": "deployer",
    }
    made["instances"] = {}
    made["connect_clusters"] = {
        "connect-west": {"kafka": "west", "hosts": ["mirror1", "mirror2"], "rest": rest},
        "connect-east": {"kafka": "east", "hosts": ["mirror1"], "port": 8444, "rest": rest},
    }
    made["groups"] = {"kafka_connect": ["mirror1", "mirror2"], "mirror_report": ["report1"]}
    return Site(made)


@pytest.fixture
def mm2_site() -> Site:
    """Two flows of MirrorMaker 2 in one process."""
    made = copy.deepcopy(SITE)
    made["flows"] = [
        {"name": "orders", "engine": "mm2", "source": "east", "target": "west",
         "topics": ["orders", r"payments\..*"], "consumer_groups": ["billing"]},
        {"name": "clicks", "engine": "mm2", "source": "north", "target": "west",
         "topics": ["clicks"]},
    ]  # fmt: skip
    made["instances"] = {"mirrormaker": {"hosts": ["mirror1"], "flows": ["orders", "clicks"]}}
    return Site(made)


@pytest.fixture
def mm1(site: Site) -> Site:
    """One flow of literal names, with an identity of its own for every purpose."""
    del site["flows"][1], site["instances"]["mirrormaker-back"]
    site.flow["topics"] = ["orders", "payments.eu"]
    site["clusters"]["west"] = {**site["clusters"]["east"], "bootstrap_servers": ["west1:9092"]}
    return site


@pytest.fixture
def mm2(mm2_site: Site) -> Site:
    """The flow of groups alone, with an identity of its own for every purpose."""
    del mm2_site["flows"][1]
    mm2_site["instances"]["mirrormaker"]["flows"] = ["orders"]
    east = mm2_site["clusters"]["east"]
    mm2_site["clusters"]["west"] = {**east, "bootstrap_servers": ["west1:9092"]}
    return mm2_site


@pytest.fixture(scope="session")
def java() -> Iterator[Callable[[str], Any]]:
    """Look up a class of a running Java: the JDK's, Kafka's client library's."""
    jars = [*(CACHE / "jars").glob("*kafka-clients*.jar")]
    assert jars, f"no kafka-clients in {CACHE}/jars: run 'make bootstrap' first"
    logging = [*Path(pyspark.__file__).parent.glob("jars/slf4j-api*.jar")]
    with java_with(jars + logging) as class_named:
        yield class_named


@pytest.fixture(scope="session", params=["3.9.2", "4.3.1"])
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kafka]:
    """Look up a class of each Kafka release that instances run from."""
    archive = CACHE / f"archives/kafka_2.13-{request.param}.tgz"
    assert archive.exists(), f"no {archive}: run 'make bootstrap' first"
    directory = tmp_path_factory.mktemp("kafka")
    subprocess.run(
        ["tar", "-xzf", str(archive), "-C", str(directory), "--wildcards", "*/libs/*.jar"],
        check=True,
    )
    with java_with([*directory.glob("*/libs/*.jar")]) as class_named:
        yield Kafka(request.param, line_of(request.param), class_named)


@dataclass(frozen=True)
class Kafka:
    """A release, its key tables' line and its classes."""

    version: str
    line: str
    class_named: Callable[[str], Any]

    def map(self, properties: Mapping[str, str]) -> Any:
        """A map of Java."""
        made = self.class_named("java.util.HashMap")()
        for name, value in properties.items():
            made.put(name, value)
        return made


@contextmanager
def java_with(jars: Sequence[Path]) -> Iterator[Callable[[str], Any]]:
    """A Java with these libraries, asked for classes by their names."""
    gateway = JavaGateway.launch_gateway(classpath=":".join(map(str, jars)), die_on_exit=True)
    try:

        def class_named(name: str) -> Any:
            found: Any = gateway.jvm
            for part in name.split("."):
                found = getattr(found, part)
            return found

        yield class_named
    finally:
        gateway.shutdown()
