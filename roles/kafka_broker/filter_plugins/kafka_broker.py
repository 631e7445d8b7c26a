"""Filter about certificates: as whom Kafka knows the holder of one."""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from cryptography import x509
from cryptography.x509.oid import NameOID

# What Java writes as a word; anything else it writes as a number and an encoded value.
WORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
}
ESCAPED = frozenset(',=+<>#;"\\')


def certificate_principal(certificate: str) -> str:
    """The principal Kafka gives to whoever holds a certificate.

    :param certificate: PEM text.
    :returns: ``User:`` and the subject as ``X500Principal.getName()`` of Java writes it.
    """
    try:
        [holder, *_] = x509.load_pem_x509_certificates(certificate.encode())
    except ValueError:
        raise AnsibleFilterError("certificate: holds no certificate as PEM text") from None
    parts = []
    for rdn in reversed(holder.subject.rdns):
        attributes = list(rdn)
        value = str(attributes[0].value)
        if (
            len(attributes) > 1
            or attributes[0].oid not in WORDS
            or ESCAPED & set(value)
            or value != value.strip()
        ):
            raise AnsibleFilterError(
                f"the certificate's subject holds '{rdn.rfc4514_string()}', for which Kafka's "
                "super.users has no plain word; use a subject of CN, OU, O, L, ST and C without "
                'any of , = + < > # ; " \\'
            )
        parts.append(f"{WORDS[attributes[0].oid]}={value}")
    return f"User:{','.join(parts)}"


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {"certificate_principal": certificate_principal}
