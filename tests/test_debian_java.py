"""Which Java a host gets, by its release and architecture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.computing import compute
from tests.loading import ROOT

# How Debian names the packages and directories of its Java.
HOSTS = {
    "bookworm": (12, "x86_64", "openjdk-17-jre-headless", "java-17-openjdk-amd64"),
    "trixie": (13, "x86_64", "openjdk-21-jre-headless", "java-21-openjdk-amd64"),
    "trixie-arm": (13, "aarch64", "openjdk-21-jre-headless", "java-21-openjdk-arm64"),
}


@pytest.mark.parametrize("role", ["kafka", "mirror_report"])
def test_kafka_and_spark_run_on_the_java_of_the_hosts_release(role: str, tmp_path: Path) -> None:
    shown = {"package": f"{role}_java_package", "home": f"{role}_java_home"}
    hosts = {
        name: {
            "facts": {
                "distribution": "Debian",
                "distribution_major_version": str(release),
                "architecture": architecture,
            }
        }
        for name, (release, architecture, _, _) in HOSTS.items()
    }
    assert compute(tmp_path, [ROOT / "roles" / role], shown, hosts) == {
        name: {"package": package, "home": f"/usr/lib/jvm/{home}"}
        for name, (_, _, package, home) in HOSTS.items()
    }


def test_images_of_the_lab_have_the_same_java_at_hand() -> None:
    recipe = (ROOT / "lab/host-image").read_text()
    packages = dict(re.findall(r"^  (\w+)\) java=(\S+) ;;$", recipe, re.MULTILINE))
    assert packages == {name: HOSTS[name][2] for name in ("bookworm", "trixie")}
