"""Which advisories concern which process of which release."""

from __future__ import annotations

import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from mirror_model.advisories import OTHER_PROCESSES, is_open, kafka_advisories
from mirror_model.engines import ENGINES
from mirror_model.kafka_names import release
from mirror_model.keys import ModelError

from tests.loading import ROOT
from tests.model.conftest import ADVISORIES, Site


def about(version: str, process: str, *accept: str) -> list[tuple[str, bool]]:
    found = kafka_advisories(version, process, accept, advisories=ADVISORIES)
    return [(entry["cve"], entry["refused"]) for entry in found]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("3.9.1", True), ("3.9.2", False), ("3.9.3", False), ("3.8.1", True), ("4.0.1", True),
     ("4.0.2", False), ("4.1.1", True), ("4.1.2", False), ("4.2.0", False), ("4.3.0", False)],
)  # fmt: skip
def test_a_fix_holds_for_its_line_and_for_newer_lines(version: str, expected: bool) -> None:
    assert is_open(version, ["3.9.2", "4.0.2", "4.1.2", "4.2.0"]) is expected


def test_a_line_without_a_fix_stays_open() -> None:
    assert is_open("4.1.2", ["4.2.2", "4.3.2", "4.4.0"])


def test_misrouting_is_refused_unless_accepted() -> None:
    assert ("CVE-2026-35554", True) in about("3.9.1", "mm1")
    assert ("CVE-2026-35554", False) in about("3.9.1", "mm1", "CVE-2026-35554")
    assert ("CVE-2026-35554", True) in about("4.1.1", "mm2")
    assert about("3.9.2", "mm1") == about("4.3.1", "mm2") == []


def test_the_broker_pair_is_warned_about() -> None:
    unfixed = [("CVE-2026-110985", False)]
    pair = [("CVE-2026-111108", False), ("CVE-2026-111115", False)]
    assert about("4.3.1", "broker") == unfixed + pair
    assert about("4.2.1", "broker") == [*unfixed, *pair, ("CVE-2026-111073", False)]
    for fixed in ("4.2.2", "4.3.2", "4.4.0"):
        assert about(fixed, "broker") == unfixed
    assert about("4.3.1", "client") == []


def test_an_advisory_without_a_known_fix_stays_open_and_says_so() -> None:
    assert is_open("99.0.0", [])
    [found] = kafka_advisories("99.0.0", "broker", [], advisories=ADVISORIES)
    assert "CVE-2026-110985 (Kafka 99.0.0)" in found["text"]
    assert "no fixed release is known" in found["text"]


def test_kafka_python_has_its_own_releases() -> None:
    both = [("CVE-2026-10142", False), ("CVE-2026-10143", False)]
    assert about("2.3.1", "kafka-python") == both
    assert about("2.3.2", "kafka-python") == []
    [first, _] = kafka_advisories("2.3.1", "kafka-python", [], advisories=ADVISORIES)
    assert "(kafka-python 2.3.1)" in first["text"]
    assert first["text"].endswith("use 2.3.2")


@pytest.mark.parametrize(
    "pins",
    ["requirements.txt", "roles/kafka_client/files/python/spark.txt", "spark/pyproject.toml"],
)
def test_the_kafka_python_that_is_installed_is_free_of_advisories(pins: str) -> None:
    [version] = re.findall(r"kafka-python==([0-9.]+)", (ROOT / pins).read_text())
    assert about(version, "kafka-python") == []


def test_a_release_before_the_first_affected_one_is_not_open() -> None:
    assert not is_open("3.9.2", ["4.1.2", "4.2.0"], since="4.1.0")
    assert is_open("4.1.0", ["4.1.2", "4.2.0"], since="4.1.0")
    assert "CVE-2026-33557" in dict(about("4.1.1", "broker"))
    assert "CVE-2026-33557" not in dict(about("3.9.2", "broker") + about("4.1.2", "broker"))


def test_a_connect_worker_has_its_own() -> None:
    assert about("3.9.0", "mm2-connect")[:4] == [
        ("CVE-2026-35554", True), ("CVE-2026-33558", False), ("CVE-2025-27817", False),
        ("CVE-2025-27818", False),
    ]  # fmt: skip
    assert "CVE-2023-25194" in dict(about("3.3.2", "mm2-connect"))
    assert {by for by, refused in about("4.3.1", "mm2-connect") if not refused} == {
        entry["cve"] for entry in ADVISORIES
        if entry.get("library") in ("jetty", "jackson")
        and entry["processes"] and not entry["fixed"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("hosts", "warned"), [(["mirror1"], False), (["mirror1", "mirror2"], True)]
)
def test_nodes_that_listen_to_each_other_are_open_to_what_jetty_is(
    mm2_site: Site, hosts: list[str], warned: bool
) -> None:
    mm2_site.instance["hosts"] = hosts
    said = mm2_site.findings()
    assert said["errors"] == []
    assert any("CVE-2026-12611" in line for line in said["warnings"]) is warned


LIBRARIES = {"lz4-java": "lz4-java", "jetty-server": "jetty", "jackson-databind": "jackson"}


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_what_is_said_of_a_library_fits_what_the_archive_bundles(version: str) -> None:
    place = os.environ.get("MIRROR_LAB_CACHE", "~/.cache/kafka-mirror-lab")
    archive = Path(place).expanduser() / "archives" / f"kafka_2.13-{version}.tgz"
    bundled = {}
    with tarfile.open(archive) as files:
        for name in files.getnames():
            for jar, library in LIBRARIES.items():
                if found := re.search(rf"/{jar}-([0-9]+\.[0-9]+\.[0-9]+)[^/]*\.jar$", name):
                    bundled[library] = found[1]
    assert set(bundled) == set(LIBRARIES.values())
    for entry in ADVISORIES:
        if "library" in entry and entry["fixed"]:
            of_kafka = is_open(version, entry["fixed"])
            assert of_kafka is is_open(bundled[entry["library"]], entry["library_fixed"]), entry


@pytest.mark.parametrize("process", [*ENGINES, *OTHER_PROCESSES])
def test_what_the_lab_runs_is_free_of_what_is_refused(process: str) -> None:
    assert not any(refused for _, refused in about("4.3.1", process))


@pytest.mark.parametrize("entry", ADVISORIES, ids=lambda entry: entry["cve"])
def test_every_advisory_is_whole(entry: dict[str, Any]) -> None:
    of_library = {"library", "library_fixed", "link"} if "library" in entry else set()
    assert set(entry) - {"since", "why"} == {"cve", "text", "processes", "fixed"} | of_library
    assert ("why" in entry) is (not entry["processes"]), "nobody is open to it for a reason"
    assert entry.get("link", "https://").startswith("https://")
    assert re.fullmatch(r"CVE-20[0-9]{2}-[0-9]{4,6}", entry["cve"])
    assert entry["processes"].keys() <= {*ENGINES, *OTHER_PROCESSES}
    assert set(entry["processes"].values()) <= {"refused", "warned"}
    fixes = [release(version) for version in entry["fixed"]]
    assert fixes == sorted(fixes)
    assert not fixes or release(entry.get("since", "0.0.0")) < fixes[0]


def test_the_text_names_the_advisory_and_the_cure() -> None:
    misrouting, *_ = kafka_advisories("3.9.1", "mm1", [], advisories=ADVISORIES)
    assert "CVE-2026-35554" in misrouting["text"]
    assert "3.9.2" in misrouting["text"]
    assert "mirror_accept" in misrouting["text"]


@pytest.mark.parametrize("version", ["3.9", "4", "latest", "", "3.9.2-rc1"])
def test_a_version_has_three_numbers(version: str) -> None:
    with pytest.raises(ModelError, match="three numbers"):
        release(version)


def test_an_unknown_process_is_refused() -> None:
    with pytest.raises(ModelError, match="mm1, mm2, mm2-connect, broker, client, kafka-python"):
        kafka_advisories("3.9.2", "mm3", [], advisories=ADVISORIES)
