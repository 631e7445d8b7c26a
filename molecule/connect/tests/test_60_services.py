"""A worker is confined: by systemd's own measure, and by what a process in its unit can do."""

from __future__ import annotations

import pytest
from labkit.hosts import exposure
from labkit.sandbox import Sandbox, allowed

OWN = ["/var/cache/connect-west", "/var/log/connect-west", "/run/connect-west"]


@pytest.fixture(params=["connect1", "connect2"])
def host(lab, request):
    """A host of a worker."""
    return lab.host(request.param)


def test_exposure_is_low(host, measured):
    found = exposure(host, "connect-west.service")
    measured(exposure=found)
    assert found <= 1.5


def test_a_worker_can_do_only_what_it_has_to(host):
    assert Sandbox(host).of_unit("connect-west", OWN) == allowed(OWN)


def test_no_other_user_reads_what_its_rest_server_is_made_of(host):
    for file in (
        "rest.p12",
        "storepass/rest.storepass",
        "rest.trust.p12",
        "kafka/east.mirror.jaas",
    ):
        path = f"/run/connect-west/{file}"
        assert host.run("test", "-s", path).status == 0
        argv = ["runuser", "-u", "nobody", "--", "cat", path]
        assert "Permission denied" in host.run(*argv, check=False).text
