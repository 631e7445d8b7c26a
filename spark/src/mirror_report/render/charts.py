"""Geometry of the page's drawings: numbers for inline SVG, no markup."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from mirror_report.render import figures
from mirror_report.render.rows import Row, rank

WIDTH, HEIGHT = 600, 80
HOURS = 168
HOUR_MS = 3_600_000
STATUSES = ("mismatch", "unknown", "unverifiable", "skipped", "in_flight", "verified")
# Status -> height of its bar, of 12: who sees no colours sees what is wrong, too.
HEIGHTS: Mapping[str, int] = {
    "mismatch": 12, "unknown": 9, "unverifiable": 9, "skipped": 6, "in_flight": 4, "verified": 4,
}  # fmt: skip


def lines(history: Sequence[Row]) -> list[dict[str, Any]]:
    """Lag over time, one drawing per topic that was behind, the most behind first.

    A line through the last observation of each point; where a point stands for observations that
    differ, their range behind it.

    :param history: rows of :class:`~mirror_report.model.lag.LagPoint`.
    """
    grouped: dict[tuple[str, str], list[Row]] = {}
    for point in history:
        grouped.setdefault((point["flow"], point["topic"]), []).append(point)
    drawn = (_line(*key, sorted(points, key=_at)) for key, points in grouped.items())
    late = (topic for topic in drawn if topic["highest"])
    return sorted(late, key=lambda topic: (-(topic["now"] or 0), -topic["highest"], topic["topic"]))


def _at(point: Row) -> int:
    return int(point["at_ms"])


def _since(point: Row) -> int:
    return _at(point) if point["since_ms"] is None else int(point["since_ms"])


def _line(flow: str, topic: str, points: Sequence[Row]) -> dict[str, Any]:
    first, last = _since(points[0]), _at(points[-1])
    highest = max((point["highest"] for point in points if point["highest"] is not None), default=0)

    def x(at_ms: int) -> float:
        return round((at_ms - first) * WIDTH / max(1, last - first), 1)

    def y(lag: int) -> float:
        return round(HEIGHT - 2 - (HEIGHT - 6) * lag / max(1, highest), 1)

    places = [
        None if point["lag_records"] is None else (x(_at(point)), y(point["lag_records"]))
        for point in points
    ]
    ranges = [
        f"M{x(_since(point))} {y(point['highest'])} H{max(x(_at(point)), x(_since(point)) + 1)} "
        f"V{y(point['lowest'])} H{x(_since(point))}Z"
        for point in points
        if point["highest"] is not None
        and (point["lag_records"] is None or point["lowest"] < point["highest"])
    ]
    now = points[-1]["lag_records"]
    return {
        "flow": flow,
        "topic": topic,
        "pieces": list(_pieces(places)),
        "ranges": " ".join(ranges),
        "highest": highest,
        "now": now,
        "first_ms": first,
        "last_ms": last,
        "label": (
            f"Lag of {topic} from {figures.moment(first)} to {figures.moment(last)}: "
            f"now {figures.number(now)}, at most {figures.number(highest)} records"
        ),
    }


def _pieces(places: Sequence[tuple[float, float] | None]) -> Iterator[dict[str, str]]:
    """Paths of what is known; where it is not the line has a gap."""
    for _, run in groupby(places, lambda place: place is not None):
        piece = [place for place in run if place is not None]
        if piece:
            path = " ".join(f"{x} {y}" for x, y in piece)
            start, end = piece[0][0], piece[-1][0]
            yield {
                "line": f"M{path}" if len(piece) > 1 else f"M{path} h1",
                "area": f"M{start} {HEIGHT} L{path} L{end} {HEIGHT}Z",
            }


def strips(topics: Sequence[Row], most: int) -> tuple[list[dict[str, Any]], int]:
    """Status of each partition by hour: a drawing per topic, the worst first.

    :param topics: rows of :class:`~mirror_report.model.content.TopicParity`.
    :param most: how many partitions may be drawn.
    :returns: the drawings, and how many partitions are left out.
    """
    every = [
        (min(rank(STATUSES, status) for _, status in hours), i, name)
        for i, topic in enumerate(topics)
        for name, hours in topic["strip"].items()
        if hours
    ]
    chosen: dict[int, list[str]] = {}
    for _, i, name in sorted(every)[:most]:
        chosen.setdefault(i, []).append(name)
    drawn = [_strips_of(topics[i], sorted(names, key=_number)) for i, names in chosen.items()]
    return drawn, len(every[most:])


def _strips_of(topic: Row, names: Sequence[str]) -> dict[str, Any]:
    hours = sorted({at for strip in topic["strip"].values() for at, _ in strip})[-HOURS:]
    place = {at: i for i, at in enumerate(hours)}
    return {
        "flow": topic["flow"],
        "topic": topic["topic"],
        "hours": len(hours),
        "first_ms": hours[0],
        "last_ms": hours[-1] + HOUR_MS,
        "partitions": [_strip(name, topic["strip"][name], place) for name in names],
    }


def _number(name: str) -> tuple[int, str]:
    return (int(name) if name.isdigit() else -1, name)


def _strip(name: str, hours: Sequence[Any], place: Mapping[int, int]) -> dict[str, Any]:
    cells = sorted((place[at], at, status) for at, status in hours if at in place)
    bars = [
        {
            "x": run[0][0],
            "width": len(run),
            "y": 12 - HEIGHTS.get(status, 12),
            "height": HEIGHTS.get(status, 12),
            "status": status,
            "title": (
                f"{figures.moment(run[0][1])} to {figures.moment(run[-1][1] + HOUR_MS)}: "
                f"{figures.words(status)}"
            ),
        }
        for status, run in _runs(cells)
    ]
    counts = Counter(status for _, _, status in cells).most_common()
    summary = ", ".join(f"{count} {figures.words(status)}" for status, count in counts)
    title = "All partitions" if name == "*" else f"Partition {name}"
    return {
        "name": "all" if name == "*" else name,
        "bars": bars,
        "label": f"{title}, hours: {summary or 'none of late'}",
    }


def _runs(cells: Sequence[tuple[int, int, str]]) -> Iterator[tuple[str, list[Any]]]:
    """Neighbouring hours of one status."""
    for (status, _), run in groupby(
        enumerate(cells), lambda numbered: (numbered[1][2], numbered[1][0] - numbered[0])
    ):
        yield status, [cell for _, cell in run]
