"""A new client certificate is deployed while data flows: one restart of each host, nothing lost."""

from __future__ import annotations

from labkit.answers import complete

HELD = "/run/credentials/mirrormaker.service/east.mirror.*.pem"


def test_a_client_certificate_is_exchanged_under_load(lab, units, outputs, measured):
    former = lab.certificate("east-mirror.pem")
    since = [unit.host.now() for unit in units]
    with lab.producing("orders", rate=500) as production:
        production.wait_more(500)
        lab.renew("east-mirror")
        outputs.append(lab.playbook("mirrormaker.yml", None, "-vvv", "--diff").text)
        production.wait_more(500)
    lab.wait_mirrored("orders", ["orders"])
    found = lab.compare("orders")
    measured(acknowledged=found["acknowledged"], duplicated=found["duplicated"])
    assert complete(found) == {}
    assert [unit.starts(begun) for unit, begun in zip(units, since, strict=True)] == [1, 1]
    for unit in units:
        held = unit.host.shell(f"cat {HELD}")
        assert lab.certificate("east-mirror.pem") in held
        assert former not in held
    for line in lab.certificate("east-mirror.key").splitlines()[1:-1]:
        assert not [text for text in outputs if line in text]
