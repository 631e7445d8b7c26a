"""Changes that would repeat or lose records are refused; the mirror keeps running."""

from __future__ import annotations

import re

import pytest
from labkit.hosts import exposure
from labkit.sandbox import Sandbox, allowed


def changed_policy(variables):
    for flow in variables["mirror_flows"]:
        flow["replication_policy"] = "identity"
    variables["mirror_flows"][1]["topics"] = ["clicks"]  # two sources, one name


def renamed_alias(variables):
    clusters = variables["kafka_clusters"]
    clusters["south"] = clusters.pop("north")
    for flow in variables["mirror_flows"][1:]:
        flow["source"] = "south"


def taken_over(variables):
    flow = {"name": "taken", "engine": "mm2", "source": "west", "target": "east"}
    flow |= {"topics": ["foreign"], "replication_policy": "identity"}
    variables["mirror_flows"].append(flow)
    instance = {"hosts": ["mirror1"], "flows": ["taken"], "heap": "256m"}
    variables["mirrormaker_instances"]["mirrormaker-taken"] = instance


@pytest.fixture(scope="module")
def foreign(lab):
    """A topic on both sides, as another mirror left it: it holds records, no position is known."""
    create = {"do": "create", "topics": {"foreign": {"num_partitions": 1}}}
    lab.probe({**create, "cluster": "east"}, {**create, "cluster": "west"})
    lab.produce("foreign", count=100)
    lab.produce("foreign", count=100, cluster="west")
    lab.playbook("acls.yml", lab.changed(taken_over))


@pytest.mark.long
@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(changed_policy, "policy", id="changed-policy"),
        pytest.param(renamed_alias, "south", id="renamed-alias"),
        pytest.param(taken_over, "takeover:taken", id="records-of-another-mirror"),
    ],
)
def test_a_change_that_repeats_or_loses_records_is_refused(lab, mirror, outputs, change, named):
    before = (mirror.pid, mirror.show()["InvocationID"])
    unit = lab.mirror.read("/etc/systemd/system/mirrormaker.service")
    done = lab.playbook("mirrormaker.yml", lab.changed(change), check=False)
    outputs.append(done.text)
    assert not [
        secret
        for identities in lab.passwords.values()
        for secret in identities.values()
        if secret in done.text
    ]
    assert done.status != 0
    message = re.split("^(?:fatal|failed): ", done.text, maxsplit=1, flags=re.MULTILINE)[1]
    assert named in message
    assert (mirror.pid, mirror.show()["InvocationID"]) == before
    assert mirror.active
    assert lab.mirror.read("/etc/systemd/system/mirrormaker.service") == unit


def test_exposure_is_low(mirror, measured):
    found = exposure(mirror.host, mirror.name)
    measured(exposure=found)
    assert found <= 1.5


def test_a_process_can_do_only_what_it_has_to(mirror):
    own = ["/var/cache/mirrormaker", "/var/log/mirrormaker"]
    assert Sandbox(mirror.host).of_unit("mirrormaker", own) == allowed(own)
