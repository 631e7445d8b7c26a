"""The timers start their services; lag is measured without output, also beside a report."""

from __future__ import annotations

import json

import pytest
from labkit.controller import wait
from labkit.hosts import Unit

HISTORY = "/var/lib/mirror-report/history/positions"
COLLECTOR = "/var/lib/prometheus/node-exporter"
NAMES = ("mirror-report", "mirror-report-lag")


def seen(host):
    """Digest of what is remembered of each flow's positions."""
    lines = host.shell(f"cd {HISTORY}; sha256sum orders.jsonl payments.jsonl").splitlines()
    return dict(reversed(line.split()) for line in lines)


@pytest.fixture
def soon(lab):
    """Let both timers elapse once in some seconds; they are what the role made afterwards."""
    host = lab.mirror
    timers = [f"{name}.timer" for name in NAMES]
    at = host.shell("date --date '+4 seconds' '+%F %T'").strip()
    for timer in timers:
        calendar = f"[Timer]\nOnCalendar=\nOnCalendar={at}\nRandomizedDelaySec=0\n"
        host.run("mkdir", "-p", f"/run/systemd/system/{timer}.d")
        host.write(f"/run/systemd/system/{timer}.d/soon.conf", calendar)
    host.shell(f"systemctl daemon-reload && systemctl restart {' '.join(timers)}")
    yield
    host.shell("rm -r /run/systemd/system/*.timer.d")
    host.shell(f"systemctl daemon-reload && systemctl restart {' '.join(timers)}")


def last(lab):
    """The last report's name for itself."""
    shown = lab.mirror.run("mirror-report", "show", "--json", check=False).stdout
    return json.loads(shown)["run_id"]


def test_the_timers_fire(lab, request):
    services = [Unit(lab.mirror, f"{name}.service") for name in NAMES]
    before = [service.show().get("InvocationID") for service in services]
    report, observed = last(lab), seen(lab.mirror)
    request.getfixturevalue("soon")

    def ended(service, invocation):
        shown = service.show()
        another = shown.get("InvocationID") not in {None, invocation}
        return another and shown["ActiveState"] == "inactive"

    for service, invocation in zip(services, before, strict=True):
        wait(service.name, lambda s=service, i=invocation: ended(s, i))
        shown = service.show()
        assert shown["Result"] == "success"
        assert shown["TriggeredBy"] == service.name.replace(".service", ".timer")
    assert last(lab) != report
    assert not set(seen(lab.mirror).items()) & set(observed.items())


def test_lag_is_measured_beside_a_report_and_handed_to_the_node_exporter_without_a_word(lab):
    host = lab.mirror
    before, since = seen(host), host.now()
    # As if a report were being made at the same time.
    lock = "/var/lib/mirror-report/lock"
    host.run("flock", "--no-fork", lock, "systemctl", "start", "mirror-report-lag.service")
    lag = Unit(host, "mirror-report-lag.service")
    assert lag.show()["Result"] == "success"
    after = seen(host)
    assert set(after) == {"orders.jsonl", "payments.jsonl"}
    assert not set(after.items()) & set(before.items()), "both flows were observed"
    said = lag.journal(since).splitlines()
    assert [line for line in said if not line.startswith("--")] == []
    # Metrics are readable by everybody.
    metrics = host.run("runuser", "-u", "nobody", "--", "cat", f"{COLLECTOR}/mirror_report.prom")
    assert 'kafka_mirror_lag_records{flow="orders",source="east",target="west"' in metrics.stdout
    assert json.loads(host.run("mirror-report", "lag", "--json", check=False).stdout)["lag"]
