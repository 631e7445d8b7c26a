"""Certificates, authorities and users change while data flows: one restart each, no loss."""

from __future__ import annotations

import pytest
from labkit.answers import complete
from labkit.controller import wait
from labkit.hosts import Unit
from labkit.site import words

pytestmark = pytest.mark.long
HOSTS = ("source1", "source2", "target1")


@pytest.fixture(scope="module", autouse=True)
def begun_again(lab):
    """Record the baselines again: earlier losses stay critical until then."""
    for flow in ("orders", "orders-north"):
        lab.desk.run("mirror-report", "baseline", "--flow", flow, "--renew")


@pytest.fixture
def changing(lab, mirror, outputs, measured):
    """Run the site with changes while both sources are written; nothing may be lost."""
    brokers = [Unit(lab.host(name), "kafka-broker.service") for name in HOSTS]

    def change(restarts, *, broker_restarts=(0, 0, 0), **changed):
        since = [unit.host.now() for unit in (mirror, *brokers)]
        with (
            lab.producing("orders", rate=200) as east,
            lab.producing("orders", cluster="north", rate=200) as north,
        ):
            east.wait_more(200)
            north.wait_more(200)
            variables = {"test_ca": lab.authority(), **changed}
            outputs.append(lab.playbook("site.yml", variables, "-vvv", "--diff").text)
            east.wait_more(200)
            north.wait_more(200)
        lab.wait_mirrored("orders", ["orders"])
        lab.wait_mirrored("orders-north", ["orders"])
        found = {
            source: lab.compare("orders", source, f"{source}.") for source in ("east", "north")
        }
        measured(
            duplicated={source: comparison["duplicated"] for source, comparison in found.items()}
        )
        assert [complete(comparison) for comparison in found.values()] == [{}, {}]
        starts = [unit.starts(begin) for unit, begin in zip((mirror, *brokers), since, strict=True)]
        assert starts == [restarts, *broker_restarts]

    return change


def test_a_new_client_certificate_is_one_restart(lab, changing, stands):
    key = lab.certificate("north-mirror.key").splitlines()[1]
    assert stands(key)
    lab.renew("north-mirror")
    changing(1)
    assert stands(key) == {}


def test_a_new_certificate_of_the_target_is_one_restart_of_its_broker(lab, changing, stands):
    key = lab.certificate("target1.key").splitlines()[1]
    assert stands(key)
    lab.renew("target1")
    changing(0, broker_restarts=(0, 0, 1))
    assert stands(key) == {}


def test_a_new_authority_takes_the_place_of_the_old_one(lab, changing):
    names = (*HOSTS, "north-admin", "north-mirror", "north-report")
    lab.renew("mirror1", authority="next")
    lab.authorities = ["lab", "next"]
    changing(1, broker_restarts=(1, 1, 1))
    lab.renew(*names, authority="next")
    changing(1, broker_restarts=(1, 1, 1))
    lab.authorities = ["next"]
    changing(1, broker_restarts=(1, 1, 1))


def test_a_new_user_with_plain_takes_the_place_of_the_old_one(lab, changing, stands):
    password = words(lab.passwords["west"]["mirror"])
    assert stands(password)

    def both(variables):
        identities = variables["kafka_clusters"]["west"]["identities"]
        identities["previous"] = dict(identities["mirror"])
        identities["mirror"] |= {"username": "west-mirror-2", "password": 'another "one" \\ é'}

    def new_alone(variables):
        both(variables)
        del variables["kafka_clusters"]["west"]["identities"]["previous"]

    changing(1, broker_restarts=(0, 0, 1), **lab.changed(both))
    changing(0, broker_restarts=(0, 0, 1), **lab.changed(new_alone))
    assert stands(password) == {}


def test_the_report_still_calls_the_mirror_whole(lab, measured):
    def only_repeated():
        # A restart may have repeated records; that is the only warning allowed.
        status, document = lab.report("lag")
        reported = {(finding["severity"], finding["kind"]) for finding in document["findings"]}
        return status in {0, 1} and reported <= {("warning", "offset_shift")}

    wait("nothing in flight", only_repeated)
    status, document = lab.report("run")
    measured(coverage=document["coverage"])
    lost = [
        finding
        for finding in document["findings"]
        if finding["severity"] in {"critical", "unknown"}
    ]
    assert (lost, status in {0, 1}) == ([], True), document["findings"]
