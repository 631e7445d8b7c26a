"""Services are confined by this systemd too, and the web view shows the last report."""

from __future__ import annotations

import base64
import json

import pytest
from labkit.controller import wait
from labkit.hosts import exposure
from labkit.sandbox import Sandbox, allowed

OWN = {
    "mirrormaker": ["/var/cache/mirrormaker", "/var/log/mirrormaker"],
    "mirrormaker-payments": ["/var/cache/mirrormaker-payments", "/var/log/mirrormaker-payments"],
    "mirror-report": [
        "/var/cache/mirror-report", "/var/lib/mirror-report", "/var/lib/mirror-report-web",
    ],
    "kafka-broker": ["/var/lib/kafka-broker", "/var/log/kafka-broker"],
}  # fmt: skip
ASK = r"""
import json, ssl, sys, urllib.request
given = json.load(sys.stdin)
context = ssl.create_default_context(cadata=given["ca"])
asked = urllib.request.Request("https://target1:8443/latest.json", headers=given["headers"])
try:
    print(urllib.request.urlopen(asked, context=context, timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
"""


@pytest.mark.parametrize("unit", OWN)
def test_a_service_is_confined(lab, measured, unit):
    found = exposure(lab.desk, f"{unit}.service")
    measured(unit=unit, exposure=found)
    assert found <= 1.5
    assert Sandbox(lab.desk).of_unit(unit, OWN[unit]) == allowed(OWN[unit])


def test_the_pause_before_a_restart_grows(mm1, measured):
    mm1.control("restart")
    pauses = [mm1.show()["RestartUSecNext"]]
    for _ in range(2):
        killed = mm1.pid
        mm1.host.run("kill", "-KILL", str(killed))
        wait("a new process", lambda killed=killed: mm1.pid not in {0, killed})
        pauses.append(mm1.show()["RestartUSecNext"])
    measured(pauses=pauses)
    assert len(set(pauses)) == len(pauses)
    mm1.control("restart")
    assert mm1.show()["RestartUSecNext"] == pauses[0]


def test_the_web_view_shows_the_last_report_to_who_knows_the_password(lab, whole):
    def answer(headers):
        given = {"ca": lab.certificate("lab.ca.pem"), "headers": headers}
        return json.loads(lab.desk.run("python3", "-c", ASK, stdin=json.dumps(given)).stdout)

    login = f"operator:{lab.passwords['west']['report']}".encode()
    shown = answer({"Authorization": f"Basic {base64.b64encode(login).decode()}"})
    assert shown["parity"] == whole[1]["parity"]
    assert answer({}) == 401
