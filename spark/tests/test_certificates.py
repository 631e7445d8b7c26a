"""How long certificates are good for: read as another reader does, and asked of real servers."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mirror_report.check.flows import check_flows
from mirror_report.checks import certificates
from mirror_report.checks.certificates import DAY_MS
from mirror_report.config import Cluster, Credentials
from mirror_report.config.load import parse
from mirror_report.kafka.certificates import CertificateError, bootstrap, examine, read
from mirror_report.kafka.connection import AuthenticationError
from mirror_report.kafka.metadata import connect
from mirror_report.lag.measure import measure_lag
from mirror_report.model import Certificate, Finding
from mirror_report.state.store import Store

NOW = 1_800_000_000_000
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=400)
LOOPBACK = "127.0.0.1"


class Pair:
    """A certificate and its key, signed by itself (then it is an authority) or by another."""

    def __init__(
        self,
        name: str = "broker",
        ends: datetime = LATER,
        *,
        by: "Pair | None" = None,
        organization: str = "Ä & Söhne",
    ) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        self.certificate: x509.Certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(by.certificate.subject if by else subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(LONG_AGO)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName(
                    [x509.IPAddress(ip_address(LOOPBACK)), x509.DNSName("localhost")]
                ),
                critical=False,
            )
            .sign(by.key if by else self.key, hashes.SHA256())
        )

    @property
    def der(self) -> bytes:
        """The certificate as a server sends it."""
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> str:
        """The certificate as text."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The key as text."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()


@pytest.mark.parametrize(
    "ends",
    [
        datetime(2037, 1, 2, 3, 4, 5, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
    ids=["two digits", "last of two digits", "four digits", "no end"],
)
def test_end_is_what_was_written(ends: datetime) -> None:
    assert read(Pair("east1", ends).der) == (
        "CN=east1,O=Ä & Söhne", int(ends.timestamp() * 1000),
    )  # fmt: skip


def test_certificate_of_a_long_subject_is_read() -> None:
    subject, _ = read(Pair("x" * 64, organization="y" * 60).der)
    assert subject == f"CN={'x' * 64},O={'y' * 60}"


@pytest.mark.parametrize("cut", [0, 1, 2, 5, 40, 100, -1])
def test_what_is_cut_off_is_no_certificate(cut: int) -> None:
    with pytest.raises(CertificateError):
        read(Pair().der[:cut])


@pytest.mark.parametrize(
    "der", [b"\x30\x00", b"\x05\x00", b"\x30\x80", b"\xff" * 40, b"\x30\x03\x30\x01\x05"]
)
def test_something_else_is_no_certificate(der: bytes) -> None:
    with pytest.raises(CertificateError):
        read(der)


def seen(days: float | None, role: str = "broker", **more: object) -> Certificate:
    ends = None if days is None else NOW + int(days * DAY_MS)
    holder = "broker 1 (east1:9094)" if role == "broker" else "identity mirror"
    return Certificate("east", role, holder, "CN=east1", ends, **more)  # type: ignore[arg-type]


def judge(certificate: Certificate, warn_days: float | None = 21) -> list[Finding]:
    return [*certificates.findings([certificate], warn_days, NOW)]


@pytest.mark.parametrize(
    ("days", "bound", "severity"),
    [
        (21, 21, None),
        (20.99, 21, "warning"),
        (0.5, 21, "warning"),
        (0, 21, "critical"),
        (-3.5, 21, "critical"),
        (5, None, None),
        (-1, None, "critical"),
        (40, 60, "warning"),
    ],
)
def test_bound_divides(days: float, bound: float | None, severity: str | None) -> None:
    found = judge(seen(days), bound)
    wanted = [(severity, "certificate_expiry")] if severity else []
    assert [(finding.severity, finding.kind) for finding in found] == wanted


def test_message_names_the_certificate_and_its_end() -> None:
    (found,) = judge(seen(12.4))
    assert found.message == (
        "the certificate of broker 1 (east1:9094) on east (CN=east1) ends in 12 day(s), on "
        "2027-01-27 17:36 UTC"
    )
    (found,) = judge(seen(-2))
    assert "ended 2 day(s) ago, on 2027-01-13 08:00 UTC" in found.message


@pytest.mark.parametrize(
    ("role", "words", "cure"),
    [
        ("broker", "certificate of broker 1 (east1:9094) on east", "Give that broker"),
        ("authority", "a certificate in ssl_ca of east", "kafka_clusters.east.ssl_ca"),
        ("client", "a certificate of identity mirror for east", "kafka_clusters.east.identities"),
    ],
)
def test_every_role_has_its_cure(role: str, words: str, cure: str) -> None:
    (found,) = judge(seen(1, role))
    assert words in found.message
    assert cure in found.action


def test_what_could_not_be_examined_is_said() -> None:
    (found,) = judge(seen(None, problem="timed out"))
    assert (found.severity, found.kind) == ("warning", "not_checked")
    assert "could not be examined: timed out" in found.message


def test_refused_because_it_ended_is_critical() -> None:
    (found,) = judge(seen(None, problem="certificate has expired", expired=True), None)
    assert (found.severity, found.kind) == ("critical", "certificate_expiry")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Serve TLS handshakes with a certificate on a local port, and nothing behind them."""
    listeners: list[socket.socket] = []

    def served(pair: Pair, client_authority: Pair | None = None) -> int:
        place = tmp_path / f"{len(listeners)}.pem"
        place.write_text(pair.key_pem + pair.pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place)
        if client_authority:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=client_authority.pem)
        listener = socket.create_server((LOOPBACK, 0))
        listeners.append(listener)
        threading.Thread(target=_handshakes, args=(listener, context), daemon=True).start()
        return int(listener.getsockname()[1])

    yield served
    for listener in listeners:
        listener.close()


def _handshakes(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            plain, _ = listener.accept()
        except OSError:
            return
        try:
            with context.wrap_socket(plain, server_side=True) as secured:
                secured.recv(1)
        except OSError:
            plain.close()


AUTHORITY = Pair("authority", LATER + timedelta(days=100))


def examined(
    port: int, *, client: Pair | None = None, ca: str = AUTHORITY.pem
) -> list[Certificate]:
    cluster = Cluster(
        "east", (f"{LOOPBACK}:{port}",), "SSL", ssl_ca=True, ssl_certificate=client is not None
    )
    secrets = {"east.report.ca.pem": ca}
    if client:
        secrets |= {"east.report.cert.pem": client.pem, "east.report.key.pem": client.key_pem}
    return examine(cluster, Credentials(secrets), {"broker 1": (LOOPBACK, port)})


def test_broker_shows_its_certificate(serve: Callable[..., int]) -> None:
    authority, broker = examined(serve(Pair("east1", by=AUTHORITY)))
    assert (authority.role, authority.subject) == ("authority", "CN=authority,O=Ä & Söhne")
    assert (broker.role, broker.holder, broker.subject, broker.problem) == (
        "broker", "broker 1", "CN=east1,O=Ä & Söhne", "",
    )  # fmt: skip
    assert broker.ends_at_ms == int(LATER.timestamp() * 1000)


def test_every_authority_and_the_own_certificate_are_examined(serve: Callable[..., int]) -> None:
    other = Pair("next authority", datetime(2040, 1, 1, tzinfo=UTC))
    client = Pair("mirror", datetime(2030, 1, 1, tzinfo=UTC), by=AUTHORITY)
    port = serve(Pair("east1", by=AUTHORITY), AUTHORITY)
    found = examined(port, client=client, ca=f"# now\n{AUTHORITY.pem}\n# next\n{other.pem}")
    assert [
        (certificate.role, certificate.subject.partition(",")[0], certificate.problem)
        for certificate in found
    ] == [
        ("authority", "CN=authority", ""),
        ("authority", "CN=next authority", ""),
        ("client", "CN=mirror", ""),
        ("broker", "CN=east1", ""),
    ]


def test_broker_whose_certificate_has_ended_is_known_to(serve: Callable[..., int]) -> None:
    *_, broker = examined(serve(Pair("east1", datetime(2021, 1, 1, tzinfo=UTC), by=AUTHORITY)))
    assert broker.expired
    assert broker.problem == "certificate has expired"


def test_broker_nobody_vouches_for_is_not_examined(serve: Callable[..., int]) -> None:
    *_, broker = examined(serve(Pair("stranger")))
    assert (broker.expired, broker.ends_at_ms) == (False, None)
    assert "self-signed" in broker.problem


def test_broker_that_is_away_is_not_examined() -> None:
    with closing(socket.create_server((LOOPBACK, 0))) as listener:
        port = listener.getsockname()[1]
    *_, broker = examined(port)
    assert "ConnectionRefusedError" in broker.problem


def test_authority_that_is_no_certificate_is_said() -> None:
    broken = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
    authority, broker = examined(1, ca=broken)
    assert authority.problem == "not an X.509 certificate"
    assert "holds no PEM certificate" in broker.problem
    authority, _ = examined(1, ca="nothing")
    assert authority.problem == "no PEM certificate"


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_without_tls_no_connection_is_opened(protocol: str) -> None:
    with closing(socket.create_server((LOOPBACK, 0))) as listener:
        listener.settimeout(0.3)
        port = listener.getsockname()[1]
        cluster = Cluster("east", (f"{LOOPBACK}:{port}",), protocol, ssl_ca=True)
        assert examine(cluster, Credentials({}), {"broker 1": (LOOPBACK, port)}) == []
        with pytest.raises(TimeoutError):
            listener.accept()


def test_brokers_of_the_configuration_are_split() -> None:
    cluster = Cluster("east", ("east1:9094", "[::1]:9095"), "SSL")
    assert bootstrap(cluster) == {"east1:9094": ("east1", 9094), "[::1]:9095": ("::1", 9095)}


def test_check_tells_why_a_cluster_is_refused(serve: Callable[..., int]) -> None:
    ended = Pair("east1", datetime(2021, 1, 1, tzinfo=UTC), by=AUTHORITY)
    given = {"bootstrap_servers": [f"{LOOPBACK}:{serve(ended)}"], "security_protocol": "SSL"}
    settings = parse(
        {
            "version": 1,
            "clusters": {
                "east": given | {"ssl_ca": True},
                "west": {"bootstrap_servers": [f"{LOOPBACK}:1"]},
            },
            "flows": [
                {"name": "f", "source": "east", "target": "west", "include": "t", "group_id": "g"}
            ],
            "credentials": {"east.report.ca.pem": AUTHORITY.pem},
        }
    )
    found = {finding.kind: finding for finding in check_flows(settings).findings}
    assert set(found) == {
        "authentication", "unreachable", "permission_unknown", "certificate_expiry",
    }  # fmt: skip
    assert found["certificate_expiry"].severity == "critical"
    assert f"certificate of {given['bootstrap_servers'][0]} on east" in (
        found["certificate_expiry"].message
    )


def test_without_an_authority_the_report_asks_for_pem(serve: Callable[..., int]) -> None:
    cluster = Cluster("east", (f"{LOOPBACK}:{serve(Pair('east1', by=AUTHORITY))}",), "SSL")
    with (
        pytest.raises(AuthenticationError, match=r"needs PEM: set kafka_clusters.east.ssl_ca"),
        connect(cluster, Credentials({})),
    ):
        pass


def test_lag_and_check_warn_of_a_real_brokers_certificate(
    start_broker: Callable[..., Any], source_broker: Any, sasl_users: Any, tmp_path: Path
) -> None:
    broker = Pair("west1", datetime.now(UTC) + timedelta(days=10, hours=1), by=AUTHORITY)
    keystore = tmp_path / "keystore.pem"
    keystore.write_text(broker.key_pem + broker.pem)
    protocols = (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL,SCRAM:SASL_SSL,CERTIFIED:SSL,"
        "ELSEWHERE:SASL_SSL,EXPIRED:SASL_SSL"
    )
    started = start_broker(
        **{
            "listener.security.protocol.map": protocols,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keystore),
        }
    )
    west = {
        "bootstrap_servers": [started.sasl], "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN", "username": "reader", "ssl_ca": True,
    }  # fmt: skip
    document = {
        "version": 1,
        "clusters": {
            "east": {"bootstrap_servers": [source_broker.bootstrap]},
            "west": west,
        },
        "flows": [
            {"name": "f", "source": "east", "target": "west", "include": "t", "group_id": "g"}
        ],
        "credentials": {
            "west.report.ca.pem": AUTHORITY.pem,
            "west.report.password": sasl_users["reader"],
        },
    }
    settings = parse(document)
    for found in (
        measure_lag(settings, Store(tmp_path / "state")).findings,
        check_flows(settings).findings,
    ):
        (expiry,) = [finding for finding in found if finding.kind == "certificate_expiry"]
        assert expiry.severity == "warning"
        assert f"certificate of broker 1 ({started.sasl}) on west (CN=west1," in expiry.message
        assert "ends in 10 day(s)" in expiry.message
    unbound = parse(document | {"warn": {"certificate_days": 10}})
    found = measure_lag(unbound, Store(tmp_path / "state")).findings
    assert "certificate_expiry" not in {finding.kind for finding in found}
