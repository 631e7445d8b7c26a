"""How long certificates are good for: certificates in, findings out; no I/O."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from mirror_report.checks.verdict import finding
from mirror_report.model import Certificate, Finding

DAY_MS = 86_400_000


def findings(
    certificates: Iterable[Certificate], warn_days: float | None, now_ms: int
) -> Iterator[Finding]:
    """Certificates that have ended or end soon, and those nobody could examine.

    :param warn_days: fewer days left than this are worth a warning; ``None``: never.
    """
    for certificate in certificates:
        left = (
            None if certificate.ends_at_ms is None else (certificate.ends_at_ms - now_ms) / DAY_MS
        )
        if certificate.problem and not certificate.expired:
            yield finding(
                "not_checked",
                f"{_named(certificate)} could not be examined: {certificate.problem}",
                "Correct what it says; mirror-report lag checks again",
            )
        elif left is None or left <= 0 or (warn_days is not None and left < warn_days):
            yield finding(
                "certificate_expiry",
                f"{_named(certificate)} {_ending(certificate, left)}",
                _action(certificate),
            ).rated("critical" if left is None or left <= 0 else "warning")


def _named(certificate: Certificate) -> str:
    text = {
        "broker": f"the certificate of {certificate.holder} on {certificate.alias}",
        "authority": f"a certificate in ssl_ca of {certificate.alias}",
        "client": f"a certificate of {certificate.holder} for {certificate.alias}",
    }[certificate.role]
    return f"{text} ({certificate.subject})" if certificate.subject else text


def _ending(certificate: Certificate, left: float | None) -> str:
    """:param left: days; ``None``: it is only known that it has ended."""
    if left is None or certificate.ends_at_ms is None:
        return "has ended, or one that vouches for it has"
    at = datetime.fromtimestamp(certificate.ends_at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if left <= 0:
        return f"ended {int(-left)} day(s) ago, on {at}"
    return f"ends in {int(left)} day(s), on {at}"


def _action(certificate: Certificate) -> str:
    where = f"kafka_clusters.{certificate.alias}"
    return {
        "broker": f"Give that broker a new certificate that {where}.ssl_ca vouches for, and "
        "restart it",
        "authority": f"Put the next authority into {where}.ssl_ca beside this one and deploy, "
        "then renew what it signed, then take it out",
        "client": f"Put a new ssl_certificate and its ssl_key into {where}.identities and deploy: "
        "what uses them is restarted",
    }[certificate.role]
