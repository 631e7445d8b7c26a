"""The report as one HTML page: nothing external, no script, everything escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from mirror_report.render import figures, rows


def render(report: Mapping[str, Any]) -> str:
    """Page of a report document."""
    templates = resources.files(__package__).joinpath("templates")
    style = templates.joinpath("report.css").read_text("utf-8")
    page = templates.joinpath("report.html.j2").read_text("utf-8")
    environment = Environment(
        loader=DictLoader({"page": page}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": figures.number,
        "estimate": figures.estimate,
        "seconds": figures.seconds,
        "moment": figures.moment,
        "share": figures.share,
        "bytes": figures.bytes_,
        "said": figures.said,
    }
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("page").render(
        report=report,
        style=Markup(style),  # noqa: S704 - our own file
        style_hash=digest,
        lag=rows.lag_by_topic(report["lag"]),
        # Reports of schema 1.0 know no estimates.
        estimated=any(one.get("estimate") is not None for one in report["lag"]),
        parity=rows.parity_worst_first(report["parity"]),
        classes=rows.classes(report["parity"]),
        strips={
            (one["flow"], one["source_topic"]): _strip(one["buckets"]) for one in report["parity"]
        },
    )


def _strip(buckets: Mapping[str, int]) -> list[dict[str, Any]]:
    """Shares of the bucket strip: x and width in per mille; what is there stays visible."""
    total = sum(buckets.values())
    parts: list[dict[str, Any]] = []
    x = 0.0
    for name in ("verified", "in_flight", "skipped", "unverifiable", "mismatch"):
        count = buckets.get(name, 0)
        if count:
            width = max(8.0, 1000 * count / total)
            parts.append({"name": name, "count": count, "x": round(x, 1), "width": round(width, 1)})
            x += width
    for one in parts:
        one["x"] = round(one["x"] * 1000 / x, 1)
        one["width"] = round(one["width"] * 1000 / x, 1)
    return parts
