"""The page in Chromium: no console error, no sideways scroll, sorting, filtering, both schemes."""

import dataclasses
import functools
import html as markup
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sample_reports import empty, report, whole

from mirror_report.checks.verdict import finding, verdict
from mirror_report.model import Report
from mirror_report.render import freshness, html
from mirror_report.render import json as render_json

CHROMIUM = shutil.which("chromium")
LIGHT, DARK = "1", "0"
PHONE, DESK = 390, 1280

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="run `make bootstrap`: no chromium")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a directory without logging."""

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server with the pages and the harness that opens them."""
    directory = tmp_path_factory.mktemp("site")
    shutil.copy(Path(__file__).parent / "harness.html", directory)
    lost = [finding("missing", "t: 2 records missing", "look")]
    proved = whole(findings=lost, verdict=verdict(lost))
    pages = {
        "everything": report(), "whole": whole(), "empty": empty(), "fresh": aged(whole(), 200),
        "old": aged(whole(), 13 * 86_400), "lost": aged(proved, 13 * 86_400),
    }  # fmt: skip
    for name, base in pages.items():
        (directory / f"{name}.html").write_text(html.render(render_json.document(base)))
    broken = (directory / "whole.html").read_text().replace("<h1>", "<h1 onclick='x()'>", 1)
    (directory / "broken.html").write_text(broken.replace("use strict", "use lax"))
    handler = functools.partial(Quiet, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def aged(base: Report, seconds: int) -> Report:
    """A report as if it was made so long ago, by a timer of a quarter of an hour."""
    made = datetime.now(UTC) - timedelta(seconds=seconds)
    until = made + timedelta(seconds=2700)
    return dataclasses.replace(
        base,
        generated_at=made.strftime(freshness.FORM),
        valid_until=until.strftime(freshness.FORM),
    )


def browse(site: str, directory: Path, pages: str, widths: str, scheme: str) -> Any:
    """Open pages in the harness; returns what it observed and what the console said."""
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--disable-gpu", "--no-first-run", "--dump-dom",
            *(["--no-sandbox"] if os.getuid() == 0 else []),
            f"--user-data-dir={directory}", "--virtual-time-budget=20000",
            "--enable-logging=stderr", "--v=0",
            f"--blink-settings=preferredColorScheme={scheme}",
            f"{site}/harness.html?{pages}#{widths}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "HOME": str(directory)},
    )  # fmt: skip
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout
    assert found[1], done.stderr
    return (
        {
            (observed["page"], observed["width"]): observed
            for observed in json.loads(markup.unescape(found[1]))
        },
        [line for line in done.stderr.splitlines() if "CONSOLE" in line],
    )


@pytest.fixture(scope="module")
def light(site: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    pages = "everything.html,whole.html,empty.html"
    return browse(site, tmp_path_factory.mktemp("light"), pages, f"{PHONE},{DESK}", LIGHT)


def test_console_says_nothing(light: Any) -> None:
    seen, console = light
    assert len(seen) == 6
    assert all("mirror report" in page["title"] for page in seen.values())
    assert console == []


def test_page_does_not_scroll_sideways(light: Any) -> None:
    wide = {key: (page["overflow"], page["unfolded"]) for key, page in light[0].items()}
    assert wide == dict.fromkeys(wide, (0, 0))


def test_page_tells_its_age_and_what_is_too_old_is_unknown(site: str, tmp_path: Path) -> None:
    seen, console = browse(site, tmp_path, "fresh.html,old.html,lost.html", f"{DESK}", LIGHT)
    assert console == []
    fresh, old, lost = (seen[f"{name}.html", DESK] for name in ("fresh", "old", "lost"))
    assert (fresh["verdict"], fresh["tone"]) == ("whole: no finding (made 3 min ago)", "verdict ok")
    assert old["verdict"] == (
        "unknown: this report is too old; it said: whole: no finding (made 13 d ago)"
    )
    assert old["tone"] == "verdict unknown"
    assert old["title"].startswith("unknown: ")
    assert lost["verdict"] == "critical: t: 2 records missing (made 13 d ago, too old)"
    assert lost["tone"] == "verdict critical"


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_columns_sort_both_ways_and_unknown_stays_last(light: Any, width: int) -> None:
    seen = light[0]["everything.html", width]
    values = [
        [int(text.replace(",", "")) for text in seen[way] if text != "unknown"]
        for way in ("ascending", "descending")
    ]
    assert values[0] == sorted(values[0])
    assert values[1] == sorted(values[1], reverse=True)
    assert values[0][-1] > values[0][0]
    assert seen["ascending"][-1] == seen["descending"][-1] == "unknown"
    assert (seen["sorted"], seen["turned"]) == ("ascending", "descending")
    assert seen["focused"], "a header is a button, so the keyboard reaches it"


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_rows_are_filtered_by_text_and_by_need(light: Any, width: int) -> None:
    seen = light[0]["everything.html", width]
    assert seen["filtered"]
    assert all(seen["filtered"])
    assert seen["output"] == f"{len(seen['filtered'])} of {seen['rows']} shown"
    assert seen["needing"] == 0
    assert 0 < seen["left"] < seen["rows"] == seen["again"]


def test_both_colour_schemes(light: Any, site: str, tmp_path: Path) -> None:
    def brightness(colour: str) -> int:
        return sum(int(channel) for channel in re.findall(r"\d+", colour)[:3])

    dark, console = browse(site, tmp_path, "everything.html", f"{PHONE}", DARK)
    assert console == []
    day, night = light[0]["everything.html", PHONE], dark["everything.html", PHONE]
    assert brightness(day["background"]) - brightness(day["text"]) > 500
    assert brightness(night["text"]) - brightness(night["background"]) > 500


def test_a_page_that_is_tampered_with_does_nothing(site: str, tmp_path: Path) -> None:
    seen, console = browse(site, tmp_path, "broken.html", f"{DESK}", LIGHT)
    assert "rows" not in seen["broken.html", DESK], "the script ran though it is not the page's own"
    assert any("Content Security Policy" in line for line in console)
