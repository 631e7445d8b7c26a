"""How the report reaches a cluster."""

from __future__ import annotations

from dataclasses import dataclass

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class Cluster:
    """How the report reaches one cluster.

    :param identity: names the credentials: ``<alias>.<identity>.password`` and so on.
    :param principal: who the brokers' ACLs take this identity for, such as ``User:mirror``.
    :param ssl_ca: whether a ``<alias>.<identity>.ca.pem`` credential exists.
    :param ssl_certificate: whether there is ``.cert.pem`` with its ``.key.pem``.
    """

    alias: str
    bootstrap_servers: tuple[str, ...]
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    username: str | None = None
    identity: str = "report"
    principal: str | None = None
    ssl_ca: bool = False
    ssl_certificate: bool = False

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    def credential(self, kind: str) -> str:
        """Name of one credential of this cluster, kind being password, jaas, ca.pem, ..."""
        return f"{self.alias}.{self.identity}.{kind}"
