"""The page as text: nothing external, everything escaped, nothing left out silently, bounded."""

import base64
import hashlib
import itertools
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sample_reports import COMMAND, NOW, empty, huge, parity, partition_lag, point, report, whole

from mirror_report.checks import lag_over_time as over_time
from mirror_report.checks.verdict import finding
from mirror_report.model import LagPoint, Report
from mirror_report.render import charts, html
from mirror_report.render import json as render_json
from mirror_report.state.history import History

MINUTE = 60_000


def page_of(base: Report) -> str:
    return html.render(render_json.document(base))


class Elements(HTMLParser):
    """Collects elements with their attributes, and checks that they are closed in order."""

    EMPTY = frozenset(("meta", "br", "input"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element."""
        self.seen.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element that is closed at once."""
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close the element opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remember text."""
        if self._open and self._open[-1] not in ("script", "style"):
            self.text.append(data)

    @property
    def words(self) -> str:
        """All text."""
        return " ".join(" ".join(self.text).split())


@pytest.mark.parametrize("base", [report(), whole(), empty()], ids=["everything", "whole", "empty"])
def test_page_is_well_formed_and_refers_to_nothing_outside(base: Report) -> None:
    page = page_of(base)
    elements = Elements(page)
    tags = Counter(tag for tag, _ in elements.seen)
    assert not {"link", "img", "a", "iframe", "object", "form", "base"} & set(tags)
    assert (tags["script"], tags["style"], tags["h1"]) == (1, 1, 1)
    attributes = {name for _, some in elements.seen for name in some}
    assert not {"src", "href", "style", "srcset"} & attributes
    assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?://", page)


def test_policy_allows_exactly_the_page_s_own_style_and_script() -> None:
    page = page_of(report())
    policy = re.search(r'Content-Security-Policy"\s+content="([^"]+)"', page)
    assert policy is not None
    wanted = ["default-src 'none'"]
    for name, tag in (("style", "style"), ("script", "script")):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        wanted.append(f"{name}-src 'sha256-{digest}'")
    wanted += ["base-uri 'none'", "form-action 'none'"]
    assert policy[1] == "; ".join(wanted)


def test_markup_in_names_is_text() -> None:
    page = page_of(report())
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#34;x&#34;)" in page


def test_every_finding_says_what_to_do_with_the_exact_command() -> None:
    elements = Elements(page_of(report()))
    assert COMMAND in " ".join(elements.text)
    found = [entry for entry in report().findings if not entry.accounted]
    assert elements.words.count("What to do next") == len(found)


def test_tables_and_drawings_are_accessible() -> None:
    elements = Elements(page_of(report()))
    heads = [some for tag, some in elements.seen if tag == "th"]
    assert heads
    assert all(some.get("scope") == "col" for some in heads)
    drawings = [some for tag, some in elements.seen if tag == "svg" and "role" in some]
    assert len(drawings) > 10
    assert all(some["role"] == "img" and some["aria-label"] for some in drawings)
    ids = Counter(some["id"] for _, some in elements.seen if "id" in some)
    assert max(ids.values()) == 1
    named = {some["aria-labelledby"] for _, some in elements.seen if "aria-labelledby" in some}
    assert named <= set(ids)
    levels = [int(tag[1]) for tag, _ in elements.seen if re.fullmatch(r"h[1-6]", tag)]
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


def test_page_of_far_too_much_is_bounded_and_says_what_it_leaves_out() -> None:
    base = huge()
    page = page_of(base)
    assert len(page) < 3_000_000
    words = Elements(page).words
    for left in (
        f"{len(base.parity) - html.ROWS:,} more rows",
        f"{len(base.lag) - html.ROWS:,} more rows",
        f"{5 * 32 - html.STRIPS:,} more partitions",
        f"{len(base.findings) - html.FINDINGS:,} more findings",
        f"{60 - html.CHARTS} more topics that were behind",
    ):
        assert left in words
    assert "mirror-report show --wide" in words


def test_one_long_text_is_cut_and_says_so() -> None:
    page = page_of(whole(errors=["x" * 100_000]))
    assert len(page) < 40_000
    assert "xxx..." in page


def test_page_of_a_failed_run_is_still_a_page() -> None:
    words = Elements(page_of(empty())).words
    assert "the west cluster was away" in words
    assert "unknown" in words


def test_unknown_is_said_and_sorted_apart() -> None:
    page = page_of(whole(lag=[partition_lag("t", 0, "UNKNOWN", lag_records=None)]))
    assert re.search(r'data-label="records"[^>]*data-v=""[^>]*>unknown</td>', page)


def test_never_is_sorted_above_every_number() -> None:
    row = partition_lag("t", 0, "LAGGING", lag_records=4, catches_up=False, eta_seconds=None)
    assert re.search(r'data-v="Infinity"[^>]*>never</td>', page_of(whole(lag=[row])))


def drawn(*values: int | None) -> dict[str, object]:
    return line(*(point("f", "t", NOW + i * 60_000, value) for i, value in enumerate(values)))


def line(*points: LagPoint) -> dict[str, object]:
    (chart,) = charts.lines(render_json.document(whole(history=list(points)))["history"])
    return chart


def test_line_has_a_gap_where_nothing_is_known() -> None:
    assert len(drawn(5, 5, None, 5, 5)["pieces"]) == 2  # type: ignore[arg-type]
    assert drawn(5, 5, None)["now"] is None
    assert len(drawn(5)["pieces"]) == 1  # type: ignore[arg-type]


def test_observations_that_are_one_point_are_drawn_as_their_range() -> None:
    chart = line(
        point("f", "t", NOW, 0), LagPoint("f", "t", NOW + 9, 30, NOW + 3, 10, 100),
        LagPoint("f", "t", NOW + 18, None, NOW + 12, 20, 40),
    )  # fmt: skip
    assert (chart["highest"], chart["now"]) == (100, None)
    top, at_10, bottom = 4.0, round(78 - 74 * 0.1, 1), 78.0
    x = [round(at * charts.WIDTH / 18, 1) for at in (3, 9, 12, 18)]
    first, second, _ = str(chart["ranges"]).split("Z")
    assert first == f"M{x[0]} {top} H{x[1]} V{at_10} H{x[0]}"
    assert second.strip().startswith(f"M{x[2]} "), (
        "a range is drawn though the last observation failed"
    )
    (piece,) = chart["pieces"]  # type: ignore[misc]
    assert piece["line"] == f"M0.0 {bottom} {x[1]} {round(78 - 74 * 0.3, 1)}"


def numbers(path: str) -> list[tuple[float, float]]:
    """Places of a line that is drawn."""
    found = [float(number) for number in re.findall(r"[\d.]+", path.removesuffix("h1"))]
    return list(zip(found[::2], found[1::2], strict=True))


@pytest.mark.parametrize("observations", [18, over_time.SHARES, 24 * 60 + 1])
def test_numbers_of_the_chart_are_those_of_the_history(tmp_path: Path, observations: int) -> None:
    history = History(tmp_path, 30)
    lags = [max(0, 16_898 - 7_000 * i) if i < 18 else i * 977 % 5_000 for i in range(observations)]
    start = NOW - (observations - 1) * MINUTE
    for i, lag in enumerate(lags):
        history.append_lags("f", start + i * MINUTE, {"t": lag})
    points = over_time.points("f", history.lags("f", start, NOW), ["t"], NOW)
    chart = line(*points)
    assert (chart["highest"], chart["now"]) == (max(lags), lags[-1])
    assert (chart["first_ms"], chart["last_ms"]) == (start, NOW)
    known = {start + i * MINUTE: lag for i, lag in enumerate(lags)}
    covered: set[int] = set()
    for each in points:
        assert each.since_ms is not None
        inside = {at: lag for at, lag in known.items() if each.since_ms <= at <= each.at_ms}
        assert each.lag_records == known[each.at_ms]
        assert (each.lowest, each.highest) == (min(inside.values()), max(inside.values()))
        covered |= set(inside)
    for before, after in itertools.pairwise(points):
        between = {known[at] for at in known.keys() - covered if before.at_ms < at < after.at_ms}
        assert between <= {before.lag_records}, "what is left out is as before and after it"
        assert between <= {after.lag_records}
    # Back from the drawing, to a tenth of a unit: what is drawn is what was seen.
    (piece,) = chart["pieces"]  # type: ignore[misc]
    places = numbers(piece["line"])
    assert len(places) == len(points)
    for (x, y), each in zip(places, points, strict=True):
        assert x == pytest.approx((each.at_ms - start) * charts.WIDTH / (NOW - start), abs=0.06)
        seen = (charts.HEIGHT - 2 - y) * max(lags) / (charts.HEIGHT - 6)
        assert seen == pytest.approx(each.lag_records, abs=max(lags) / 1000)
    ranges = [each for each in points if each.lowest != each.highest]
    assert str(chart["ranges"]).count("Z") == len(ranges)
    assert bool(ranges) == (observations > over_time.SHARES), (
        "few observations are drawn one by one"
    )


def test_a_page_says_until_when_it_holds_without_a_script() -> None:
    words = Elements(page_of(whole())).words
    assert "Made 2026-11-21T10:00:00Z" in words
    assert "holds until 2026-11-21T10:45:12Z : later the mirror is unknown" in words


def test_page_does_not_say_0_where_nothing_is_known() -> None:
    problem = finding("parity_unavailable", "no Spark", "install it")
    page = page_of(whole(parity=[], findings=[problem], flows=empty().flows))
    for label in ("records verified", "records behind"):
        assert f"<dt>{label}</dt><dd>unknown</dd>" in page


def test_topics_that_were_never_behind_are_not_drawn() -> None:
    points = [point("f", "t", NOW + i, 0) for i in range(5)]
    assert charts.lines(render_json.document(whole(history=points))["history"]) == []


def test_strip_joins_neighbouring_hours_of_one_status() -> None:
    hour = charts.HOUR_MS
    cells = [
        (NOW, "verified"), (NOW + hour, "verified"), (NOW + 2 * hour, "mismatch"),
        (NOW + 3 * hour, "verified"),
    ]  # fmt: skip
    rows = render_json.document(whole(parity=[parity("t", strip={"0": cells})]))["parity"]
    (topic,), left = charts.strips(rows, 10)
    (strip,) = topic["partitions"]
    bars = [(bar["x"], bar["width"], bar["status"]) for bar in strip["bars"]]
    assert bars == [(0, 2, "verified"), (2, 1, "mismatch"), (3, 1, "verified")]
    assert strip["label"] == "Partition 0, hours: 3 verified, 1 mismatch"
    assert left == 0


def test_worst_strips_are_drawn_if_not_all_can_be() -> None:
    rows = render_json.document(
        whole(
            parity=[
                parity("calm", strip={str(p): [(NOW, "verified")] for p in range(5)}),
                parity("bad", strip={"0": [(NOW, "verified")], "10": [(NOW, "mismatch")]}),
            ]
        )
    )["parity"]
    drawn, left = charts.strips(rows, 2)
    names = [(topic["topic"], [each["name"] for each in topic["partitions"]]) for topic in drawn]
    assert names == [("bad", ["10"]), ("calm", ["0"])]
    assert left == 5
