"""Numbers of which only a bound is known are shown as that in every format."""

import dataclasses
import io

from sample_reports import group_partition, report

from mirror_report.checks import failover
from mirror_report.config import Cluster, Flow
from mirror_report.model import GroupParity
from mirror_report.render import formats, html, nagios, prometheus, terminal
from mirror_report.render import json as render_json

BOUNDED = group_partition(
    0, "reread", image=430, image_exact=False, image_estimate=2430, reread=0, reread_at_most=8000
)
# Of its other partition nothing is known.
OPEN = group_partition(
    1, "unmapped", image=None, image_exact=False, reread=None, skip=None,
    reread_at_most=None, skip_at_most=None,
)  # fmt: skip
GROUPS = [
    GroupParity("orders", "bounded", "reread", 0.0, 0, 0, (BOUNDED,), 8000, 0),
    GroupParity("orders", "open", "unmapped", 0.0, 7, None, (OPEN,), None, None),
]
BASE = report(
    groups=GROUPS,
    findings=[*failover.findings(Flow("f", "e", "w", "t"), Cluster("w", ("w:1",)), GROUPS)],
)


def test_terminal() -> None:
    out = io.StringIO()
    terminal.write(formats.report(render_json.document(BASE), "/x/latest.html"), out, wide=True)
    text = out.getvalue()
    assert text.count("≥ 0, ≤ 8,000") == 2, "its partition, and the sum"
    assert "≥ 430 (~2,430)" in text
    assert "≥ 7 " in text
    assert "again if it moved to w now" in text
    assert "at least 0 and at most 8000 records" in text


def test_page() -> None:
    text = html.render(render_json.document(BASE))
    assert text.count(">≥ 0, ≤ 8,000<") == 2
    assert ">≥ 430 (~2,430)<" in text
    assert ">≥ 7<" in text


def test_json() -> None:
    bounded, opened = render_json.document(BASE)["groups"]
    assert (bounded["reread"], bounded["reread_at_most"]) == (0, 8000)
    (place,) = bounded["partitions"]
    assert (place["reread"], place["reread_at_most"], place["image_estimate"]) == (0, 8000, 2430)
    assert (opened["reread"], opened["reread_at_most"], opened["skip"]) == (7, None, None)


def test_prometheus() -> None:
    run = {"at": 1.0, "interval": 1.0, "duration": 1.0}
    text = prometheus.text(prometheus.run_samples(render_json.document(BASE), run, "1"))
    assert 'kafka_mirror_group_reread_records{flow="orders",group="bounded"} 0\n' in text
    most = 'kafka_mirror_group_reread_at_most_records{flow="orders",group='
    assert f'{most}"bounded"}} 8000\n' in text
    assert f'{most}"open"' not in text


def test_nagios() -> None:
    bounded = dataclasses.replace(
        BASE, verdict=dataclasses.replace(BASE.verdict, text=BASE.findings[0].message)
    )
    assert "at least 0 and at most 8000 records" in nagios.summary(render_json.document(bounded))


def test_report_of_an_earlier_release_is_shown_as_it_was() -> None:
    plain = render_json.document(BASE)
    for group in plain["groups"]:
        for row in (group, *group["partitions"]):
            for key in ("reread_at_most", "skip_at_most", "image_estimate"):
                row.pop(key, None)
    out = io.StringIO()
    terminal.write(formats.report(plain, "/x/latest.html"), out, wide=True)
    assert "≥ 430" in out.getvalue()
