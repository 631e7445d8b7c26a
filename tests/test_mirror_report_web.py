"""A certificate that would take down every site of a web server is refused in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loading import certificates, load

web = load("roles/mirror_report/filter_plugins/mirror_report.py", "mirror_report_filters")


@pytest.fixture
def pairs(tmp_path: Path) -> dict[str, tuple[str, str]]:
    """Name to certificate and key."""
    for name, days in (("good", 30), ("other", 30), ("expired", -1)):
        certificates.ensure(tmp_path, certificates.Wanted(name, [name], days=days))
    return {
        name: tuple((tmp_path / f"{name}.{ending}").read_text() for ending in ("pem", "key"))
        for name in ("good", "other", "expired")
    }


def test_a_pair_that_belongs_together_is_good(pairs):
    assert web.web_certificate_problems(*pairs["good"]) == []


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("good", "other", "does not belong"),
        ("expired", "expired", "expired on"),
        ("/etc/ssl/a.pem", "good", "no certificate"),
        ("good", "/etc/ssl/a.key", "no key"),
    ],
)
def test_what_nginx_could_not_work_with_is_named_and_the_key_is_not_shown(
    pairs, certificate, key, said
):
    given = [
        pairs[name][index] if name in pairs else name
        for index, name in enumerate((certificate, key))
    ]
    (problem,) = web.web_certificate_problems(*given)
    assert said in problem
    assert problem.startswith("mirror_report_web_")
    assert given[1].splitlines()[-1] not in problem
