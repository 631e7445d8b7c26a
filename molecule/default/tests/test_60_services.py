"""Services are confined: by systemd's own measure, and by what a process in one can do."""

from __future__ import annotations

import pytest
from labkit.hosts import Unit, exposure
from labkit.sandbox import HOME, Sandbox, allowed

BROKER = ["/var/lib/kafka-broker", "/var/log/kafka-broker"]
REPORT = [
    f"/var/{place}"
    for place in (
        "cache/mirror-report", "lib/mirror-report", "lib/mirror-report-metrics",
        "lib/mirror-report-web",
    )
]  # fmt: skip
# What any user can do who is not confined; some kernels refuse the first.
OF_NO_CONCERN = {"new namespace", "32-bit personality", "netlink socket", "file with set-user-ID"}
SERVICES = [
    ("mirror1", "mirrormaker", ["/var/cache/mirrormaker", "/var/log/mirrormaker"]),
    (
        "mirror1",
        "mirrormaker-payments",
        ["/var/cache/mirrormaker-payments", "/var/log/mirrormaker-payments"],
    ),
    ("mirror1", "mirror-report", REPORT),
    ("mirror1", "mirror-report-lag", REPORT),
    ("source1", "kafka-broker", BROKER),
    ("target1", "kafka-broker", BROKER),
]
# Root's own, with no right but to read the journal, units and what root alone may read of mirrors.
ROOTS = ("mirror1", "mirror-report-units", ["/run/mirror-report-units"])


def test_every_service_is_among_them(lab):
    found = {
        (host.name, file.removesuffix(".service"))
        for host in lab.hosts
        for file in host.shell("cd /etc/systemd/system; find . -name '*.service' -type f").split()
    }
    assert found == {(name, f"./{unit}") for name, unit, _ in (*SERVICES, ROOTS)}


@pytest.mark.parametrize(("name", "unit", "own"), SERVICES)
def test_exposure_is_low(lab, measured, name, unit, own):
    assert own
    found = exposure(lab.host(name), f"{unit}.service")
    measured(unit=unit, exposure=found)
    assert found <= 1.5


@pytest.mark.parametrize(("name", "unit", "own"), SERVICES)
def test_a_service_can_do_only_what_it_has_to(lab, name, unit, own):
    assert Sandbox(lab.host(name)).of_unit(unit, own) == allowed(own)


@pytest.mark.parametrize(("name", "unit", "own"), SERVICES)
def test_a_host_short_of_memory_knows_what_to_end_first(lab, name, unit, own):
    assert own
    shown = lab.host(name).shell(f"systemctl show {unit} -p MemoryMax -p OOMScoreAdjust")
    found = dict(line.split("=") for line in shown.split())
    assert found["MemoryMax"].isdecimal()
    assert found["OOMScoreAdjust"] == ("1000" if "report" in unit else "-500")


def test_what_root_runs_for_the_report_can_do_little_more(lab, measured):
    name, unit, own = ROOTS
    found = exposure(lab.host(name), f"{unit}.service")
    measured(unit=unit, exposure=found)
    assert found <= 1.5
    could = Sandbox(lab.host(name)).of_unit(unit, own)
    assert could - {"signal to systemd"} == allowed(own), "the same user may send signals"


@pytest.mark.parametrize("name", ["mirrormaker", "mirrormaker-payments"])
def test_a_mirror_s_collector_is_ours_and_not_that_of_kafka_s_script(lab, name):
    unit = Unit(lab.mirror, f"{name}.service")
    options = lab.mirror.read(f"/proc/{unit.pid}/cmdline").split("\0")
    assert "-XX:+UseG1GC" in options
    assert [option for option in options if "Pause" in option] == []


def test_a_command_of_the_report_can_do_only_what_its_service_can(lab):
    assert Sandbox(lab.mirror).of_command("mirror-report", REPORT) == allowed(REPORT)


def test_the_web_server_s_process_reaches_nothing_of_the_host(lab):
    """Debian's own unit, which other sites share: only its user confines it."""
    could = Sandbox(lab.mirror).of_unit("nginx", REPORT, user="www-data")
    assert could - OF_NO_CONCERN == {f"list {HOME}", f"write to {HOME}", *allowed([])}
