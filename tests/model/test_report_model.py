"""What the report has to know."""

from __future__ import annotations

from typing import Any

import pytest
from mirror_model.logins import kafka_credentials

from tests.model.conftest import CONTROL, ROOT, Site
from tests.model.test_instances import report


def test_the_report_gets_what_runs(site: Site) -> None:
    site.instance["mm1_options"] = {"offset.commit.interval.ms": 2000}
    site["accept"] = ["identity:mirrormaker", "enable.auto.commit:orders"]
    model = report(site)
    assert [flow["name"] for flow in model["flows"]] == ["orders", "back"]
    assert model["flows"][0].pop("permissions")
    assert model["flows"][0] == {
        "name": "orders", "engine": "mm1", "source": "east", "target": "west",
        "topics": ["orders", r"payments\..*"], "topics_exclude": [],
        "include": rf"(?!(?:{'|'.join(CONTROL)})$)(?:orders|payments\..*)",
        "left_out": [*CONTROL], "worker_principal": "User:ANONYMOUS",
            "identity": "mirror",
        "start": "earliest", "group_id": "mirrormaker-orders",
        "instance": "mirrormaker", "hosts": ["mirror1"], "commit_interval_ms": 2000,
        "sysconfig": "/etc/sysconfig/mirrormaker", "accept": ["enable.auto.commit:orders"],
        "parallelism": 1,
        "round_trips_ms": {},
        "source_isolation": "read_uncommitted", "target_isolation": "read_uncommitted",
    }  # fmt: skip
    assert model["clusters"]["east"] == {
        "bootstrap_servers": ["east1:9092", "east2:9092"], "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN", "username": "mirror-report", "identity": "report",
        "ssl_ca": True, "ssl_certificate": False, "principal": "User:mirror-report",
    }  # fmt: skip
    assert "north" not in model["clusters"]


def test_the_report_understands_its_model(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "spark/src")
    from mirror_report.config.load import parse

    site.flow["topics"].append("payments.eu")
    site["accept"] = ["regex-without-auto-creation:orders"]
    model = report(site)
    files = {
        name: content
        for alias in model["clusters"]
        for name, content in kafka_credentials(site.model, alias, "report").items()
    }
    settings = parse({"version": 1, **model, "credentials": files})
    assert [flow.name for flow in settings.flows] == ["orders", "back"]
    assert settings.flows[0].matches("payments.eu")
    assert settings.flows[0].accept == ("regex-without-auto-creation:orders",)
    assert settings.flows[0].is_regex
    assert not settings.flows[1].is_regex


def test_the_report_reads_the_source_as_the_mirror_does(site: Site) -> None:
    level = {"consumer.isolation.level": "read_committed"}
    site["clusters"]["east"]["properties"] = {"isolation.level": "read_committed"}
    site["flows"][1]["properties"] = level
    model = report(site)["flows"]
    assert [flow["source_isolation"] for flow in model] == ["read_committed", "read_committed"]
    site.instance["consumer_properties"] = {"isolation.level": None}
    model = report(site)["flows"]
    assert [flow["source_isolation"] for flow in model] == ["read_uncommitted", "read_committed"]
    assert {flow["target_isolation"] for flow in model} == {"read_uncommitted"}


def test_the_report_of_one_flow(site: Site) -> None:
    site["flows"][1] |= {"source": "west", "target": "north"}
    assert report(site, "back") == report(site, ["back"])
    assert set(report(site, "back")["clusters"]) == {"west", "north"}
    assert len(report(site, "back")["flows"]) == 1


@pytest.mark.parametrize("change", [{"state": "absent"}, {"hosts": []}])
def test_the_report_leaves_out_what_has_no_place(site: Site, change: dict[str, Any]) -> None:
    site["instances"]["mirrormaker-back"] |= change
    assert [flow["name"] for flow in report(site)["flows"]] == ["orders"]
