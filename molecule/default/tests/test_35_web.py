"""The web view shows the last report, over TLS and with a password, and nothing else."""

from __future__ import annotations

import base64
import json

import pytest

# Requests a list of paths, each with a login or without; prints status, headers and text.
ASK = r"""
import base64, http.client, json, ssl, sys
given = json.load(sys.stdin)
context = ssl.create_default_context(cadata=given["ca"])
answers = []
for path, login in given["requests"]:
    connection = http.client.HTTPSConnection("mirror1", 8443, context=context, timeout=20)
    headers = {"Authorization": "Basic " + login} if login else {}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    answers.append([answer.status, {k.lower(): v for k, v in answer.getheaders()}, text])
print(json.dumps(answers))
"""
PAGES = ["/", "/latest.html", "/latest.json"]
ELSEWHERE = [
    "/config.yaml",
    "/reports/",
    "/baseline.json",
    "/latest.html/../../mirror-report/baseline.json",
    "/../mirror-report/baseline.json",
    "/%2e%2e/mirror-report/baseline.json",
    "/latest.html%00",
    "/.latest.html",
]


def ask(lab, *requests):
    """Answers to requests, asked on the report's host with the lab's authority alone."""
    document = {"ca": lab.certificate("lab.ca.pem"), "requests": requests}
    done = lab.mirror.run("python3", "-c", ASK, stdin=json.dumps(document))
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def login(lab):
    """The login of the inventory's user, as a browser sends it."""
    return base64.b64encode(f"operator:{lab.passwords['west']['report']}".encode()).decode()


def test_nobody_sees_a_page_without_the_password(lab):
    wrong = base64.b64encode(b"operator:operator").decode()
    answers = ask(lab, *[(path, given) for path in PAGES for given in (None, wrong)])
    assert {status for status, _, _ in answers} == {401}


def test_the_last_report_is_shown_to_who_knows_it(lab, login):
    answers = ask(lab, *[(path, login) for path in PAGES])
    assert [status for status, _, _ in answers] == [200, 200, 200]
    last = json.loads(lab.mirror.run("mirror-report", "show", "--json", check=False).stdout)
    # A command adds the age.
    shown = json.loads(answers[2][2])
    assert shown["run_id"] == last["run_id"]
    assert shown | {key: last[key] for key in ("verdict", "age_seconds")} == last
    page = lab.mirror.read("/var/lib/mirror-report/reports/latest.html")
    assert answers[0][2] == answers[1][2] == page
    for _, headers, _ in answers:
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "." not in headers["server"], "no version"


def test_nothing_else_is_there(lab, login):
    answers = ask(lab, *[(path, login) for path in ELSEWHERE])
    assert {status for status, _, _ in answers} <= {400, 404}, answers


def test_the_web_server_could_not_show_more_if_it_wanted(lab):
    places = [
        "/var/lib/mirror-report/baseline.json",
        "/etc/mirror-report/config.yaml",
        "/etc/mirror-report/tls/key.pem",
        "/etc/mirror-report/credentials/east.report.password",
    ]
    assert lab.mirror.run("ls", *places).status == 0
    for place in places:
        argv = ["runuser", "-u", "www-data", "--", "cat", place]
        assert lab.mirror.run(*argv, check=False).status != 0, place
    files = lab.mirror.run("stat", "--format=%a %U:%G", "/etc/mirror-report/users/htpasswd").stdout
    assert files.strip() == "640 root:www-data"


def test_who_guesses_passwords_is_slowed_down(lab):
    wrong = base64.b64encode(b"operator:guess").decode()
    answers = ask(lab, *[("/", wrong)] * 60)
    found = [status for status, _, _ in answers]
    assert set(found) == {401, 429}
    assert found.count(401) < 60
