"""The web view: a site with the last report, and no certificate that would stop the web server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.computing import Computed, compute
from tests.loading import ROOT, certificates, load

web = load(
    "roles/mirror_report_web/filter_plugins/mirror_report_web.py", "mirror_report_web_filters"
)


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


REPORT, WEB = ROOT / "roles/mirror_report", ROOT / "roles/mirror_report_web"
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "addresses": {"mirror_report_web_listen": ["443", "[::]:443"]},
    "insisting": {"mirror_report_web_hsts_seconds": 86400},
}


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Computed:
    """The site and where the report publishes, by case."""
    given = {"mirror_report_web": True, "mirror_report_web_report": "{{ __mirror_report_for_web }}"}
    shown = {
        "site": "__mirror_report_web_site_content",
        "published": "__mirror_report_config.web_directory",
    }
    hosts = {name: {**given, **case} for name, case in CASES.items()}
    return compute(tmp_path_factory.mktemp("web"), [REPORT, WEB], shown, hosts)


def test_the_site_shows_the_last_report_and_nothing_else(computed: Computed) -> None:
    site = computed["addresses"]["site"]
    shown = re.findall(r"location (.*) \{\n\s*(?:rewrite .*\n\s*)?\}", site)
    assert shown == ["= /", "= /latest.html", "= /latest.json"]
    assert "limit_req zone=mirror_report burst=20 nodelay;" in site
    assert "location / {\n        return 404;" in site
    assert re.findall(r"root (.*);", site) == [computed["addresses"]["published"]]
    assert re.findall(r"listen (.*) ssl;", site) == ["443", "[::]:443"]
    assert "max-age=86400" in computed["insisting"]["site"]
    assert "Strict-Transport-Security" not in computed["plain"]["site"]
