"""Wrong inputs are refused; services keep running and the host stays unchanged."""

from __future__ import annotations

import re
import subprocess

import pytest
from labkit.answers import changed
from labkit.hosts import Unit


def bad_expression(_lab, variables):
    variables["mirror_flows"][1]["topics"] = ["payments\\.(?=x).*"]


def wrong_password(_lab, variables):
    identities = variables["kafka_clusters"]["west"]["identities"]
    identities["mirror"]["password"] = "not the password"


def key_is_missing(lab, variables):
    identities = variables["kafka_clusters"]["west"]["identities"]
    identities["mirror"]["ssl_certificate"] = lab.certificate("stranger.pem")


def regex_is_not_accepted(_lab, variables):
    """The mirror's identity may not ask the target whether it creates topics."""
    variables["mirror_accept"] = []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(bad_expression, ["mirror_flows"], id="bad-regex"),
        pytest.param(
            wrong_password, ["target1", "password"], id="wrong-password", marks=pytest.mark.long
        ),
        pytest.param(key_is_missing, ["ssl_key"], id="missing-key"),
        pytest.param(
            regex_is_not_accepted,
            ["mirror_accept", "regex-without-auto-creation:payments"],
            id="regex-not-accepted",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_wrong_inventory_is_refused_and_the_host_untouched(
    lab, orders, payments, outputs, change, named
):
    variables = lab.changed(lambda variables: change(lab, variables))
    message = refused(lab, [orders, payments], outputs, "mirrormaker.yml", variables)
    assert [word for word in named if word not in message] == []


@pytest.mark.parametrize(
    ("playbook", "calendar", "why"),
    [
        ("preflight.yml", "every 5 minutes", "is no calendar of systemd"),
        ("site.yml", "2020-01-01", "never elapses again"),
    ],
    ids=["unreadable", "past"],
)
def test_a_calendar_that_starts_no_reports_is_refused_before_anything_changes(
    lab, orders, payments, outputs, playbook, calendar, why
):
    wrong = {"mirror_report_schedule": calendar, "mirror_report_random_delay": "1h"}
    message = refused(lab, [orders, payments], outputs, playbook, wrong)
    assert f"mirror_report_schedule: '{calendar}' {why}" in message.replace("''", "'")
    assert "*:0/5" in message


@pytest.mark.long
def test_a_timer_without_a_next_trigger_is_started_again(lab, outputs):
    timers = [Unit(lab.mirror, f"mirror-report{which}.timer") for which in ("", "-lag")]
    for timer in timers:
        path = f"/etc/systemd/system/{timer.name}"
        right = lab.mirror.read(path)
        lab.mirror.write(path, re.sub("OnCalendar=.*", "OnCalendar=every 5 minutes", right))
        lab.mirror.run("systemctl", "daemon-reload")
    # One file is restored by hand, which does not start its timer; the role restores the other.
    lab.mirror.write(path, right)
    lab.mirror.run("systemctl", "daemon-reload")
    for timer in timers:
        assert timer.show()["SubState"] == "elapsed"
        assert timer.active, "so that a start does nothing"
    outputs.append(lab.playbook("report.yml").text)
    for timer in timers:
        shown = timer.show()
        assert shown["SubState"] == "waiting"
        assert shown["NextElapseUSecRealtime"], timer.name
    again = lab.playbook("report.yml")
    outputs.append(again.text)
    recap = changed(again.stdout)
    assert lab.mirror.name in recap
    assert not any(recap.values()), recap


def refused(lab, units, outputs, playbook, variables):
    """Run a playbook that has to fail; returns its message."""
    host = units[0].host
    tree = host.tree()
    before = [(unit.pid, unit.show()["InvocationID"]) for unit in units]
    done = lab.playbook(playbook, variables, check=False)
    outputs.append(done.text)
    assert done.status != 0
    assert [(unit.pid, unit.show()["InvocationID"]) for unit in units] == before
    assert all(unit.active for unit in units)
    changes = host.changes(tree).splitlines()
    assert [line for line in changes if "/var/lib/kafka-broker/data/" not in line] == []
    found = re.split("^(?:fatal|failed): ", done.text, maxsplit=1, flags=re.MULTILINE)
    assert len(found) == 2, done.text[-3000:]
    return " ".join(found[1].split())


@pytest.fixture
def broker(lab):
    """The broker of the target."""
    return Unit(lab.host("target1"), "kafka-broker.service")


@pytest.mark.parametrize(
    ("name", "cause"), [("expired", "expired"), ("stranger", "kafka_broker_ssl_ca")]
)
def test_a_broker_s_wrong_certificate_is_refused(lab, broker, outputs, name, cause):
    wrong = {
        "kafka_broker_ssl_certificate": lab.certificate(f"{name}.pem"),
        "kafka_broker_ssl_key": lab.certificate(f"{name}.key"),
    }
    assert cause in refused(lab, [broker], outputs, "brokers.yml", wrong)


def test_a_secret_among_the_broker_s_properties_is_refused(lab, broker, outputs):
    name = "listener.name.client.plain.sasl.jaas.config"
    wrong = {"kafka_broker_properties": {name: "in clear", "log.dir": "${env:HOME}"}}
    message = refused(lab, [broker], outputs, "brokers.yml", wrong)
    assert f"{name}, log.dir would stand in clear" in message
    assert "in clear" not in message.replace("stand in clear", "")


def test_an_archive_signed_by_somebody_else_is_refused(lab, broker, outputs, tmp_path):
    archive = lab.archive("4.3.1")
    gpg = ["gpg", "--batch", "--quiet", "--homedir", str(tmp_path), "--passphrase", ""]
    for who in ("project", "stranger"):
        subprocess.run([*gpg, "--quick-generate-key", who, "ed25519", "sign"], check=True)
    keys, signature = tmp_path / "KEYS", tmp_path / "archive.asc"
    exported = subprocess.run([*gpg, "--armor", "--export", "project"], check=True, stdout=-1)
    keys.write_bytes(exported.stdout)
    subprocess.run(
        [*gpg, "--armor", "-u", "stranger", "--output", signature, "--detach-sign", archive],
        check=True,
    )
    subprocess.run(["gpgconf", "--homedir", str(tmp_path), "--kill", "all"], check=False)
    variables = {
        "kafka_releases_directory": "/opt/kafka/other",
        "kafka_archive_signature": str(signature),
        "kafka_keys_file": str(keys),
    }
    message = refused(lab, [broker], outputs, "brokers.yml", variables)
    assert "does not prove" in message


@pytest.mark.long
def test_another_archive_under_the_installed_version_is_refused(lab, orders, payments, outputs):
    variables = {"kafka_archive_sha512": "0" * 128}
    message = refused(lab, [orders, payments], outputs, "mirrormaker.yml", variables)
    assert "another archive" in message
