"""What must not be deployed is refused while the old service goes on, and the host is untouched."""

from __future__ import annotations

import re

import pytest


def bad_expression(variables):
    variables["mirror_flows"][1]["topics"] = ["payments\\.(?=x).*"]


def wrong_password(variables):
    identities = variables["kafka_clusters"]["west"]["identities"]
    identities["mirror"]["password"] = "not the password"


@pytest.mark.parametrize(
    ("change", "named", "role"),
    [
        pytest.param(bad_expression, "mirror_flows", "inputs", id="bad-regex"),
        pytest.param(wrong_password, "target1", "clusters", id="wrong-password"),
    ],
)
def test_a_wrong_inventory_is_refused_and_the_host_untouched(
    lab, orders, payments, outputs, change, named, role
):
    tree = lab.mirror.tree()
    before = [(unit.pid, unit.show()["InvocationID"]) for unit in (orders, payments)]
    done = lab.playbook("mirrormaker.yml", lab.changed(change), check=False)
    outputs.append(done.text)
    assert done.status != 0, role
    message = re.split("^(?:fatal|failed): ", done.text, maxsplit=1, flags=re.MULTILINE)[1]
    assert named in message
    assert [(unit.pid, unit.show()["InvocationID"]) for unit in (orders, payments)] == before
    assert orders.active
    assert payments.active
    assert lab.mirror.changes(tree) == ""
