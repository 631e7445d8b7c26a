"""A service of its own measures lag, without output, also beside a running report."""

from __future__ import annotations

import json

HISTORY = "/var/lib/mirror-report/history/positions"
COLLECTOR = "/var/lib/prometheus/node-exporter"


def seen(host):
    """Digest of what is remembered of each flow's positions."""
    lines = host.shell(f"cd {HISTORY}; sha256sum orders.jsonl payments.jsonl").splitlines()
    return dict(reversed(line.split()) for line in lines)


def test_the_timer_measures_lag_and_hands_it_to_the_node_exporter_without_a_word(lab):
    host = lab.mirror
    assert host.run("systemctl", "is-active", "mirror-report-lag.timer").stdout.strip() == "active"
    before, since = seen(host), host.now()
    # As if a report were being made at the same time.
    lock = "/var/lib/mirror-report/lock"
    host.run("flock", "--no-fork", lock, "systemctl", "start", "mirror-report-lag.service")
    shown = dict(
        line.split("=", 1)
        for line in host.run("systemctl", "show", "mirror-report-lag").stdout.splitlines()
        if "=" in line
    )
    assert shown["Result"] == "success"
    after = seen(host)
    assert set(after) == {"orders.jsonl", "payments.jsonl"}
    assert not set(after.items()) & set(before.items()), "both flows were observed"
    argv = [
        "journalctl",
        "--no-pager",
        "--output=cat",
        "--unit=mirror-report-lag",
        "--since",
        since,
    ]
    said = host.run(*argv).stdout.splitlines()
    assert [line for line in said if not line.startswith("--")] == []
    # Metrics are readable by everybody.
    metrics = host.run("runuser", "-u", "nobody", "--", "cat", f"{COLLECTOR}/mirror_report.prom")
    assert 'kafka_mirror_lag_records{flow="orders",source="east",target="west"' in metrics.stdout
    assert json.loads(host.run("mirror-report", "lag", "--json", check=False).stdout)["lag"]
