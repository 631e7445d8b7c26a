"""Releases that an instance may run from."""

from __future__ import annotations

import pytest

from tests.model.conftest import Site, refused


@pytest.mark.parametrize("version", ["4.0.0", "4.3.1"])
def test_mirrormaker_1_ended_with_3_9(site: Site, version: str) -> None:
    site.instance["kafka_version"] = version
    refused(site, "mirrormaker_instances.mirrormaker.kafka_version", "set it to 3.9.2")


def test_release_that_misroutes_records(site: Site) -> None:
    site.instance["kafka_version"] = "3.9.1"
    refused(
        site, "mirrormaker_instances.mirrormaker.kafka_version", "CVE-2026-35554", "mirror_accept"
    )
    site["accept"] = ["CVE-2026-35554"]
    found = site.validate()
    assert found["errors"] == []
    assert any("CVE-2026-35554" in warning for warning in found["warnings"])


def test_version_that_is_none(site: Site) -> None:
    site.instance["kafka_version"] = "latest"
    refused(site, "mirrormaker_instances.mirrormaker.kafka_version", "does not match")
