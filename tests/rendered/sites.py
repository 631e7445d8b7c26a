"""Sites that nobody wrote: valid inventories drawn from the schema, the same each time."""

from __future__ import annotations

import random
from typing import Any

from mirror_model.site import mirror_site
from mirror_model.validate import validate_site

ALIASES = ("east", "west", "north", "south")
TOPICS = ("orders", r"team{0}\..*", "a.b-{0}", r"pay\.[a-z]+", r"(eu|us)-{0}\.\d+", r".*-log{0}")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
CONSUMER = {"fetch.max.bytes": 1048576, "client.rack": "a b", "isolation.level": "read_committed"}
PRODUCER = {"compression.type": "zstd", "linger.ms": 7, "buffer.memory": 33554432}


def sites(count: int, pem: str, key: str) -> list[dict[str, Any]]:
    """Inventories that validation accepts.

    :param count: how many.
    :param pem: a certificate; ``key``: a private key, as PEM text.
    :returns: variables of all hosts of each site, and its ``hosts``.
    """
    accepted: list[dict[str, Any]] = []
    seed = 0
    while len(accepted) < count:
        site = _Draw(random.Random(seed), len(accepted), pem, key).site()  # noqa: S311  # no secret
        seed += 1
        if not _errors(site):
            accepted.append(site)
    return accepted


def _errors(site: dict[str, Any]) -> list[str]:
    hosts = site["hosts"]
    read = mirror_site(
        site["kafka_clusters"], site["mirror_flows"], site["mirrormaker_instances"],
        site["kafka_connect_clusters"], site["mirror_accept"],
    )  # fmt: skip
    return validate_site(read, hosts, {"mirror_report": hosts}, advisories=[])["errors"]


class _Draw:
    """One site, drawn part by part."""

    def __init__(self, draw: random.Random, number: int, pem: str, key: str) -> None:
        self.draw, self.pem, self.key = draw, pem, key
        self.hosts = [f"site{number}{letter}" for letter in "ab"[: draw.randint(1, 2)]]

    def some(self, choices: dict[str, Any], odds: float = 0.5) -> dict[str, Any]:
        return {key: value for key, value in choices.items() if self.draw.random() < odds}

    def placed(self) -> list[str]:
        return sorted(self.draw.sample(self.hosts, self.draw.randint(1, len(self.hosts))))

    def site(self) -> dict[str, Any]:
        aliases = self.draw.sample(ALIASES, self.draw.randint(2, 4))
        clusters = {alias: self.cluster(alias) for alias in aliases}
        flows: list[dict[str, Any]] = []
        instances: dict[str, Any] = {}
        workers: dict[str, Any] = {}
        for number in range(self.draw.randint(1, 3)):
            engine = self.draw.choice(("mm1", "mm2", "mm2", "mm2-connect"))
            own = self.flows(engine, aliases, number)
            flows += own
            if engine == "mm2-connect":
                workers[f"connect-{number}"] = self.worker(own[0]["target"])
                for flow in own:
                    flow["connect"] = f"connect-{number}"
            else:
                name = f"mirrormaker-{number}" if number else "mirrormaker"
                instances[name] = self.instance(engine, own, aliases)
        return {
            "hosts": self.hosts, "kafka_clusters": clusters, "mirror_flows": flows,
            "mirrormaker_instances": instances, "kafka_connect_clusters": workers,
            "mirror_accept": [f"takeover:{flow['name']}" for flow in flows],
            "kafka_connect_rest_certificate": self.pem, "kafka_connect_rest_key": self.key,
        }  # fmt: skip

    def cluster(self, alias: str) -> dict[str, Any]:
        protocol = self.draw.choice(PROTOCOLS)
        cluster: dict[str, Any] = {
            "bootstrap_servers": [f"{alias}{n}:9092" for n in range(1, self.draw.randint(2, 4))],
            "security_protocol": protocol,
            **self.some({"properties": {"reconnect.backoff.max.ms": 7000}}, 0.3),
        }
        if protocol.endswith("SSL"):
            cluster |= self.some({"ssl_ca": self.pem})
        if protocol != "PLAINTEXT":
            names = ["mirror", *self.some({"report": 1, "payments": 1, "admin": 1})]
            cluster["identities"] = {name: self.identity(alias, name, protocol) for name in names}
        return cluster

    def identity(self, alias: str, name: str, protocol: str) -> dict[str, Any]:
        if protocol == "SSL":
            return {"ssl_certificate": self.pem, "ssl_key": self.key}
        return {
            "sasl_mechanism": self.draw.choice(MECHANISMS), "username": f"{alias}-{name}",
            "password": f'{alias}{name}"\\$ é{self.draw.randint(0, 9)}',
        }  # fmt: skip

    def flows(self, engine: str, aliases: list[str], number: int) -> list[dict[str, Any]]:
        target = self.draw.choice(aliases)
        policy = {} if engine == "mm1" else self.some({"replication_policy": "identity"}, 0.4)
        return [
            {
                "name": f"{engine}-{number}-{place}", "engine": engine, "target": target,
                "source": self.draw.choice([alias for alias in aliases if alias != target]),
                "topics": [
                    pattern.format(number * 10 + place)
                    for pattern in self.draw.sample(TOPICS, self.draw.randint(1, 3))
                ],
                **policy,
                **self.some({"start": "latest", "topics_exclude": ["a.b-7", r"pay\.x.*"]}, 0.3),
                **({"group_id": "former"} if engine == "mm1" and place == number else {}),
                **({} if engine == "mm1" else self.some({
                    "consumer_groups": ["billing", "app.*"], "tasks_max": 3,
                    "properties": {"emit.checkpoints.interval.seconds": 5, "offset.lag.max": 50},
                })),
            }
            for place in range(1 if engine == "mm1" else self.draw.randint(1, 2))
        ]  # fmt: skip

    def owner(self, aliases: list[str]) -> dict[str, Any]:
        return {
            "hosts": self.placed(),
            **self.some({
                "heap": "700m", "state": "stopped", "identity": "payments",
                "distance": {self.draw.choice(aliases): {"round_trip_ms": 60}},
            }, 0.3),
        }  # fmt: skip

    def instance(
        self, engine: str, flows: list[dict[str, Any]], aliases: list[str]
    ) -> dict[str, Any]:
        only = {
            "num_streams": 3, "mm1_options": {"offset.commit.interval.ms": 5000},
            "consumer_properties": CONSUMER, "producer_properties": PRODUCER,
        } if engine == "mm1" else {
            "kafka_version": "3.9.2", "worker_properties": {"offset.flush.interval.ms": 9000},
        }  # fmt: skip
        return {
            "flows": [flow["name"] for flow in flows], **self.owner(aliases), **self.some(only),
        }  # fmt: skip

    def worker(self, kafka: str) -> dict[str, Any]:
        return {
            "kafka": kafka, **self.owner([kafka]),
            **self.some({"port": 18083, "group_id": "workers", "topics": {"config": "its-config"}}),
            "rest": {
                "ssl_ca": self.pem, "users": {"deployer": "twelve-letters-and-more"},
                "client": "deployer",
            },
            **self.some({"worker_properties": {"offset.flush.interval.ms": 9000}}),
        }  # fmt: skip
