"""Records arrive, and the workers' REST servers are closed."""

from __future__ import annotations

import pytest
from labkit.answers import changed, complete, parity
from labkit.site import words

CURL_CANNOT_TRUST = -60


@pytest.fixture(scope="module")
def delivered(lab):
    """Records on the source, mirrored: how many were there before, and how many are new."""
    before = lab.ends("east", ["test"])["test"]
    lab.produce("test", count=4000)
    lab.wait_mirrored("orders", ["test"])
    return before, 4000


def test_every_record_arrives_byte_for_byte_once_and_on_its_partition(lab, delivered, measured):
    found = lab.compare("test", prefix="east.")
    measured(acknowledged=found["acknowledged"], found=found["found"])
    before, new = delivered
    assert found["acknowledged"] == new
    # The walk-through wrote by Kafka's own tool, which keeps no log.
    assert complete(found) == ({"foreign": before} if before else {})
    assert (found["duplicated"], found["moved"]) == (0, 0)


def test_the_report_calls_a_whole_mirror_whole(lab, delivered, measured):
    status, document = lab.report("run")
    measured(coverage=document["coverage"], seconds=document["duration_seconds"])
    assert status == 0, (document["verdict"], document["findings"])
    assert parity(document, "test")["verified_records"] == sum(delivered)


@pytest.mark.parametrize("worker", ["connect1", "connect2"])
@pytest.mark.parametrize("path", ["/", "/connectors", "/admin/loggers", "/health"])
def test_nobody_is_let_in_without_the_password(rest, worker, path):
    assert rest.ask(path, worker=worker)[0] == 200
    for stranger in ({"user": None}, {"password": "wrong"}, {"user": "nobody"}):
        assert rest.ask(path, worker=worker, **stranger)[0] == 401


@pytest.mark.parametrize("worker", ["connect1", "connect2"])
def test_there_is_no_plain_http_and_no_foreign_authority(lab, rest, worker):
    plain = lab.desk.run("curl", "--silent", f"http://{worker}:8084/", check=False)
    assert plain.status != 0
    assert plain.stdout == ""
    status, said = rest.ask("/", worker=worker, authority=lab.certificate("source1.pem"))
    assert status == CURL_CANNOT_TRUST, said


def test_heartbeats_begin_on_the_source_and_come_with_its_records(lab):
    written, copied = (
        lab.ends(alias, [topic])[topic]
        for alias, topic in (("east", "heartbeats"), ("west", "east.heartbeats"))
    )
    assert min(written, copied) > 0


def test_a_worker_shows_references_and_no_secret(lab, rest):
    status, connectors = rest.ask("/connectors?expand=info&expand=status")
    assert status == 200
    assert set(connectors) == {"orders-source", "orders-checkpoint", "orders-heartbeat"}
    secrets = [
        words(password) for identities in lab.passwords.values() for password in identities.values()
    ]
    text = str(connectors)
    assert "${dir:/run/connect-west/kafka:" in text
    assert [secret for secret in secrets if secret in text] == []


def test_a_second_run_changes_nothing(lab, units):
    running = [worker.pid for worker in units]
    again = lab.playbook("site.yml").stdout
    assert changed(again) == {host.name: [] for host in lab.hosts}
    assert [worker.pid for worker in units] == running
