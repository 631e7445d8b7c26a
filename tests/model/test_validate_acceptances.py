"""What mirror_accept may list."""

from __future__ import annotations

import pytest

from tests.model.conftest import Site, refused


@pytest.mark.parametrize(
    "entry",
    ["regex-without-auto-creation:orders", "identity:mirrormaker", "CVE-2026-111108",
     "enable.auto.commit:back"],
)  # fmt: skip
def test_known_acceptance(site: Site, entry: str) -> None:
    site["accept"] = [entry]
    assert site.validate() == {"errors": [], "warnings": []}


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ("CVE-2026-35555", "did you mean 'CVE-2026-35554'?"),
        ("everything", "unknown entry"),
        ("abort.on.send.failur:orders", "did you mean 'abort.on.send.failure'?"),
        ("abort.on.send.failure:order", "did you mean 'orders'?"),
        ("identity:orders", "names no instance"),
        ("ssl.endpoint.identification.algorithm:orders", "names no cluster"),
        ("abort.on.send.failure", "did you mean 'abort.on.send.failure:<flow>'?"),
    ],
)
def test_unknown_acceptance(site: Site, entry: str, word: str) -> None:
    site["accept"] = [entry]
    refused(site, "mirror_accept", word)
