"""Passwords, users and certificates change while records flow: nothing is lost, nothing is left."""

from __future__ import annotations

import pytest
from labkit.answers import complete
from labkit.site import words

NEW = 'new "one" \\ é9c41e7d05ab2f386'


@pytest.fixture
def changing(lab, units, outputs, measured):
    """Run a playbook with changes while the source is written."""
    # Or there may be nothing yet to compare.
    lab.produce("orders", count=100)
    lab.wait_mirrored("orders", ["orders"])

    def change(restarts, playbook="site.yml", **changed):
        before = lab.compare("orders", prefix="east.")
        since = lab.desk.now()
        with lab.producing("orders", rate=200) as production:
            production.wait_more(200)
            outputs.append(lab.playbook(playbook, changed, "-vvv", "--diff").text)
            production.wait_more(200)
        lab.wait_mirrored("orders", ["orders"])
        found = lab.compare("orders", prefix="east.")
        measured(
            acknowledged=found["acknowledged"] - before["acknowledged"],
            duplicated=found["duplicated"] - before["duplicated"],
        )
        assert complete(found) == {}
        assert [unit.starts(since) for unit in units] == [restarts, restarts]

    return change


def users(lab, **passwords):
    """Users of the REST servers, of whom the last is the one who asks."""

    def change(variables):
        rest = variables["kafka_connect_clusters"]["connect-west"]["rest"]
        rest |= {"users": passwords, "client": list(passwords)[-1]}

    return lab.changed(change)


@pytest.mark.long
def test_a_new_user_of_the_clusters_is_one_restart_of_each_worker(lab, changing, stands):
    old = [words(lab.passwords[alias]["mirror"]) for alias in ("east", "west")]
    assert all(stands(word) for word in old)

    def second(variables):
        for alias in ("east", "west"):
            identities = variables["kafka_clusters"][alias]["identities"]
            identities["previous"] = dict(identities["mirror"])
            identities["mirror"] |= {"username": f"{alias}-mirror-2", "password": NEW}

    changing(1, **lab.changed(second))
    assert [stands(word) for word in old] == [{}, {}]
    changing(1)
    assert stands(words(NEW)) == {}


@pytest.mark.long
def test_a_password_of_rest_that_changes_in_place_is_refused_with_the_way_to_do_it(lab, units):
    running = [unit.pid for unit in units]
    done = lab.playbook("site.yml", users(lab, deployer=NEW), check=False)
    assert done.status != 0
    assert "add a user with the new password" in done.text
    assert [unit.pid for unit in units] == running


@pytest.mark.long
def test_a_user_of_rest_takes_the_place_of_another(lab, rest, changing, stands):
    old = lab.passwords["west"]["report"]
    changing(1, "kafka-connect.yml", **users(lab, operator=NEW, deployer=old))
    for user, password in (("deployer", old), ("operator", NEW)):
        assert rest.ask("/connectors", user=user, password=password)[0] == 200
    changing(1, "kafka-connect.yml", **users(lab, operator=NEW))
    assert rest.ask("/connectors", user="deployer", password=old)[0] == 401
    assert rest.ask("/connectors", user="operator", password=NEW)[0] == 200
    # Back, by the same way.
    changing(1, "kafka-connect.yml", **users(lab, deployer=old, operator=NEW))
    changing(1, "kafka-connect.yml")
    assert stands(words(NEW)) == {}


@pytest.mark.long
def test_certificates_of_rest_change(lab, rest, changing, stands):
    key = lab.certificate("connect1.key").splitlines()[1]
    assert stands(key)
    lab.renew("connect1", "connect2")
    changing(1, "kafka-connect.yml")
    assert stands(key) == {}
    assert rest.ask("/connectors")[0] == 200


@pytest.mark.long
def test_callers_show_a_certificate_where_workers_ask_for_one(lab, rest, changing):
    own = {f"ssl_{part}": lab.certificate(f"target1.{end}")
           for part, end in (("certificate", "pem"), ("key", "key"))}  # fmt: skip
    clusters = "kafka_connect_clusters"
    changing(
        1, "kafka-connect.yml",
        **lab.changed(lambda v: v[clusters]["connect-west"]["rest"].update(own)),
    )  # fmt: skip
    status, said = rest.ask("/connectors")
    assert status < 0, said
    # A worker that does not lead the others passes a restart on to the one that does.
    for worker in ("connect1", "connect2"):
        shown = {"worker": worker, "certificate": "".join(own.values())}
        assert rest.ask("/connectors", **shown)[0] == 200
        path = "/connectors/orders-checkpoint/restart?includeTasks=true"
        assert rest.ask(path, method="POST", **shown)[0] == 202
        assert rest.ask("/connectors", user=None, **shown)[0] == 401
    changing(1, "kafka-connect.yml")
    assert rest.ask("/connectors")[0] == 200
