"""The dashboard asks for metrics that the report writes, adds up what adds up, and names units."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mirror_report.render.prometheus import METRICS

from tests.loading import ROOT
from tests.test_alerts import metrics_of, promtool

DASHBOARD = json.loads((ROOT / "files/dashboards/mirror.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
# What Grafana calls the unit that a metric's name ends in.
UNITS = {"_seconds": "s", "_bytes": "bytes", "_ratio": "percentunit", "_per_second": "cps"}
SUMMED = ("_records", "_bytes", "_per_second", "_partitions", "_differences", "_findings")

panel = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])


def queries() -> Iterator[tuple[dict[str, Any], str]]:
    """Every query with its panel."""
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel, target["expr"]


def test_every_metric_is_asked_for_and_none_that_nobody_writes() -> None:
    asked = {name for _, query in queries() for name in metrics_of(query)}
    assert asked == set(METRICS)


def test_every_query_is_one_that_prometheus_understands(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": re.sub(r"\$\w+", ".*", query)}
        for number, (_, query) in enumerate(queries())
    ]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = promtool("check", "rules", path)
    assert done.returncode == 0, done.stdout + done.stderr


@panel
def test_a_panel_shows_the_unit_of_its_metric(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        for name in metrics_of(target["expr"]):
            bare = name.removesuffix("_timestamp_seconds")
            unit = next((word for end, word in UNITS.items() if bare.endswith(end)), "short")
            expected = "s" if bare != name else unit
            assert panel["fieldConfig"]["defaults"]["unit"] == expected, name


@panel
def test_counts_are_added_and_ages_are_not(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        query = target["expr"]
        for name in metrics_of(query):
            found = re.search(rf"(\w+)(?: by \([^)]*\))? ?\({name}\b", query)
            if name.endswith(SUMMED):
                assert found, query
                assert found[1] == "sum", query
            elif found:
                assert found[1] in {"max", "min"}, query


@panel
def test_what_has_a_flow_or_a_topic_can_be_chosen_by_it(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        for name in metrics_of(target["expr"]):
            for label in {"flow", "topic"} & set(METRICS[name][0].split(", ")):
                chosen = re.search(rf'{name}{{[^}}]*\b{label}=~"\${label}"', target["expr"])
                assert chosen, target["expr"]


def test_variables_come_from_metrics_that_are_written() -> None:
    assert list(VARIABLES) == ["datasource", "flow", "topic"]
    for name in ("flow", "topic"):
        found = re.fullmatch(r"label_values\((\w+).*, (\w+)\)", VARIABLES[name]["definition"])
        assert found
        assert found[2] == name
        assert name in METRICS[found[1]][0].split(", ")


def test_panels_have_a_place_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}  # fmt: skip
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
