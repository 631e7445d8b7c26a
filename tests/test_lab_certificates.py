"""When the lab makes a certificate, and when it keeps one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.loading import certificates

HOST = certificates.Wanted("source1", ["source1", "localhost"])


def load(directory: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((directory / f"{name}.pem").read_bytes())


def test_a_good_certificate_is_kept(tmp_path):
    assert certificates.ensure(tmp_path, HOST)
    assert not certificates.ensure(tmp_path, HOST)


def test_nobody_else_can_read_what_is_written(tmp_path):
    certificates.ensure(tmp_path, HOST)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize(
    "other",
    [
        certificates.Wanted("source1", ["elsewhere", "localhost"]),
        certificates.Wanted("source1", ["source1", "localhost"], authority="other"),
    ],
)
def test_other_names_or_another_authority_make_another_certificate(tmp_path, other):
    certificates.ensure(tmp_path, HOST)
    assert certificates.ensure(tmp_path, other)


def test_a_certificate_near_its_end_is_renewed(tmp_path):
    certificates.ensure(tmp_path, certificates.Wanted(HOST.name, HOST.hosts, days=20))
    assert certificates.ensure(tmp_path, HOST)


def test_a_lost_key_is_replaced_together_with_its_certificate(tmp_path):
    certificates.ensure(tmp_path, HOST)
    (tmp_path / "source1.key").unlink()
    assert certificates.ensure(tmp_path, HOST)


def test_an_expired_certificate_can_be_had_and_is_kept(tmp_path):
    expired = certificates.Wanted("old", ["source1"], days=-1)
    assert certificates.ensure(tmp_path, expired)
    assert load(tmp_path, "old").not_valid_after_utc < certificates.NOW
    assert not certificates.ensure(tmp_path, expired)


def test_a_certificate_is_issued_by_its_authority_for_both_ends(tmp_path):
    certificates.ensure(tmp_path, HOST)
    load(tmp_path, "source1").verify_directly_issued_by(load(tmp_path, "lab.ca"))
    purposes = load(tmp_path, "source1").extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    assert set(purposes.value) == {
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    }
