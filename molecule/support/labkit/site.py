"""The inventory of a scenario: its hosts, its clusters, and the secrets of the lab."""

from __future__ import annotations

import copy
import json
import re
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from labkit.controller import CACHE, ROOT
from labkit.hosts import Host

Variables = dict[str, Any]


class Site:
    """Hosts, clusters and variables of a scenario, with passwords and certificates."""

    def __init__(self, scenario: Path) -> None:
        self.inventory = scenario / "inventory"
        text = (self.inventory / "group_vars/all.yml").read_text(encoding="utf-8")
        self.variables: Variables = yaml.safe_load(text)
        self.prefix = self.variables["lab_prefix"]
        self.clusters: Variables = self.variables["kafka_clusters"]
        self.secrets: Path = CACHE / "secrets" / self.prefix
        self.retired: list[str] = []
        self.authorities = ["lab"]
        groups = yaml.safe_load((self.inventory / "hosts.yml").read_text(encoding="utf-8"))["all"]
        self.hosts = self._group(groups, "lab")
        on_connect = "kafka_connect" in groups["children"]
        self.mirrors = self._group(groups, "kafka_connect" if on_connect else "mirrormaker")
        self.mirror = self.mirrors[0]
        # Where the report and the tests' own tools run.
        self.desk = self._group(groups, "mirror_report")[0]

    def _group(self, groups: Variables, name: str) -> tuple[Host, ...]:
        return tuple(Host(self.prefix, host) for host in groups["children"][name]["hosts"])

    def host(self, name: str) -> Host:
        """One host by its name."""
        (found,) = (host for host in self.hosts if host.name == name)
        return found

    @property
    def passwords(self) -> dict[str, dict[str, str]]:
        """The password of every identity of every cluster, as it is now."""
        text = (self.secrets / "passwords.json").read_text(encoding="utf-8")
        passwords: dict[str, dict[str, str]] = json.loads(text)
        return passwords

    def retire(self, cluster: str, identity: str) -> None:
        """Give an identity a new password in the vault; the next run of the site applies it."""
        passwords = self.passwords
        self.retired.append(passwords[cluster][identity])
        passwords[cluster][identity] = f'{cluster}{identity}"\\$ é{secrets.token_hex(8)}'
        (self.secrets / "passwords.json").write_text(json.dumps(passwords), encoding="utf-8")

    def archive(self, version: str) -> Path:
        """The cached archive of a Kafka release."""
        return CACHE / "archives" / f"kafka_2.13-{version}.tgz"

    def certificate(self, name: str) -> str:
        """PEM text of one of the lab's certificates or keys: a file's name."""
        return (self.secrets / "tls" / name).read_text(encoding="ascii")

    def authority(self) -> str:
        """PEM text of the authorities that clients trust now."""
        return "".join(self.certificate(f"{name}.ca.pem") for name in self.authorities)

    def renew(self, *names: str, authority: str = "lab") -> None:
        """Make certificates again, with new keys; the next run of the site uses them."""
        for name in names:
            for ending in ("pem", "key"):
                (self.secrets / "tls" / f"{name}.{ending}").unlink()
        document = {
            "directory": str(self.secrets / "tls"),
            "certificates": [{"name": name, "authority": authority} for name in names],
        }
        argv = [sys.executable, str(ROOT / "lab/certificates.py")]
        subprocess.run(argv, input=json.dumps(document), text=True, check=True, capture_output=True)

    def connection(self, cluster: str, identity: str = "admin") -> dict[str, Any]:
        """Connection settings of the lab's tools for a cluster."""
        model = self.clusters[cluster]
        connection = {key: model[key] for key in ("bootstrap_servers", "security_protocol")}
        who = model["identities"][identity]
        if model["security_protocol"].endswith("SSL"):
            connection["ssl_ca"] = self.authority()
        if "ssl_certificate" in who:
            connection["ssl_certificate"] = self.certificate(f"{cluster}-{identity}.pem")
            connection["ssl_key"] = self.certificate(f"{cluster}-{identity}.key")
        if "username" in who:
            connection |= {key: who[key] for key in ("sasl_mechanism", "username")}
            connection["password"] = self.passwords[cluster][identity]
        return connection

    def changed(self, change: Callable[[Variables], None]) -> Variables:
        """Copy the inventory's variables and change the copy."""
        variables = copy.deepcopy(self.variables)
        change(variables)
        return {key: value for key, value in variables.items() if value != self.variables.get(key)}


def words(secret: str) -> str:
    """The longest part of a password that no escaping changes."""
    return max((str(part) for part in re.findall(r"[A-Za-z0-9]+", secret)), key=len)
