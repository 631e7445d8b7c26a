"""Two workers verify the whole mirror; secrets are readable only where needed."""

from __future__ import annotations

import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from labkit.answers import classes, parity
from labkit.controller import ROOT
from labkit.site import words

COUNTS = {"orders": 20000, "payments": 3000}
EVENTS = "/var/lib/mirror-report/events"
CREDENTIALS = "/etc/mirror-report-executor"
WORKERS = ("worker1", "worker2")
SITE = "/opt/mirror-report/venv"
JAVA = "/usr/lib/jvm/java-17-openjdk-amd64"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# What an unprivileged user sees of every process.
SEEN = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' ' '"


def events(lab):
    """What Spark wrote down of what it did."""
    lines = lab.desk.shell(f"find {EVENTS} -type f -exec cat {{}} +").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.fixture(scope="module")
def verified(lab):
    """The report of a whole mirror, Spark's events, and processes as another user saw them."""
    for topic, count in COUNTS.items():
        lab.produce(topic, count=count)
    lab.wait_mirrored("orders", list(COUNTS))
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(lab.report, "run")
        seen = dict.fromkeys(("mirror1", "master1", *WORKERS), "")
        while not running.done():
            for name in seen:
                seen[name] += lab.host(name).run(*NOBODY, "sh", "-c", SEEN, check=False).stdout
        answer = running.result()
    return answer, events(lab), seen


@pytest.fixture(scope="module")
def cluster_secret(lab):
    """The secret of Spark's cluster, as the inventory derives it."""
    return hashlib.sha256(lab.passwords["east"]["admin"].encode()).hexdigest()


def test_every_record_is_verified(verified):
    status, document = verified[0]
    assert document["findings"] == []
    assert status == 0
    assert document["spark_started"]
    for topic, count in COUNTS.items():
        row = parity(document, topic, "orders")
        assert classes(row) == {}
        assert row["verified_records"] == count


def test_both_workers_read(verified, measured):
    ended = [event for event in verified[1] if event["Event"] == "SparkListenerTaskEnd"]
    hosts = [event["Task Info"]["Host"] for event in ended]
    tasks = {name: hosts.count(name) for name in WORKERS}
    measured(tasks=tasks)
    assert set(hosts) == set(WORKERS)
    assert min(tasks.values()) > 3


def test_executors_need_no_python(lab, verified):
    for name in WORKERS:
        environment = lab.host(name).shell("systemctl show --property=Environment spark.service")
        assert "PYSPARK_PYTHON=/nonexistent" in environment
    assert not [
        event for event in verified[1] if "python" in str(event.get("RDD Info", "")).lower()
    ]


def test_the_cluster_s_secret_is_in_one_file_and_in_nothing_that_others_see(
    lab, verified, cluster_secret
):
    seen = verified[2]
    assert "org.apache.spark.deploy.SparkSubmit" in seen["mirror1"]
    for name in WORKERS:
        assert "CoarseGrainedExecutorBackend" in seen[name]
        assert "spark.authenticate=true" in seen[name]
    for text in seen.values():
        assert cluster_secret not in text
    places = "/etc /opt/mirror-report /run/systemd /usr/local/bin /var/lib /var/log"
    found = lab.desk.run(
        "sh", "-c", f"grep -rlF -f - --exclude-dir=jars {places}", stdin=cluster_secret, check=False
    )
    file = "/etc/mirror-report/credentials/spark-defaults.conf"
    assert found.stdout.split() == [file]
    assert lab.desk.shell(f"stat --format '%U %a' {file}").split() == ["root", "600"]


@pytest.mark.usefixtures("verified")
def test_the_master_refuses_whoever_does_not_know_the_secret(lab):
    program = (
        "from pyspark.sql import SparkSession as S; S.builder.master('spark://master1:7077')"
        ".appName('stranger').config('spark.driver.host', 'mirror1')"
        ".config('spark.driver.memory', '450m').getOrCreate()"
    )
    environment = ("env", "-C", "/", "HOME=/tmp", "PATH=/usr/bin:/bin", f"JAVA_HOME={JAVA}")
    done = lab.desk.run(*NOBODY, *environment, f"{SITE}/bin/python", "-c", program, check=False)
    assert done.status != 0
    assert "All masters are unresponsive" in done.text
    shown = page(lab.host("master1"), "http://master1:8080/json/")
    assert "mirror-report" in shown
    assert "stranger" not in shown


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("mirror_report_spark_properties", {"spark.authenticate": False}),
        ("mirror_report_spark_properties", {"spark.network.crypto.enabled": False}),
        ("mirror_report_spark_secrets", {}),
    ],
)
@pytest.mark.parametrize("playbook", ["preflight.yml", "report.yml"])
def test_a_cluster_that_lets_others_in_is_refused(lab, playbook, variable, value):
    done = lab.playbook(playbook, {variable: value}, "--limit", "mirror1", check=False)
    assert done.status != 0
    assert variable in done.stdout
    assert "changed=0" in done.stdout


@pytest.mark.usefixtures("verified")
def test_no_secret_is_in_what_spark_writes_down_or_shows(lab, cluster_secret):
    secrets = [
        words(password) for identities in lab.passwords.values() for password in identities.values()
    ]
    secrets.append(cluster_secret)
    assert all(len(secret) >= 10 for secret in secrets)
    shown = [lab.desk.shell(f"find {EVENTS} -type f -exec cat {{}} +")]
    assert "SparkListenerSQLExecutionStart" in shown[0], "there is a plan to search"
    for name in WORKERS:
        host = lab.host(name)
        shown.append(host.shell("find /var/lib/spark -name 'std*' -exec cat {} +"))
        shown.append(host.shell("journalctl --no-pager --unit spark.service"))
        shown.append(page(host, f"http://{name}:8081/json/"))
    shown.append(page(lab.host("master1"), "http://master1:8080/json/"))
    shown.append(page(lab.host("master1"), "http://master1:8080/"))
    assert "mirror-report" in shown[-1], "the application is listed"
    for text in shown:
        for secret in secrets:
            assert secret not in text


def page(host, address):
    """Fetch a page."""
    fetch = f"import urllib.request as u; print(u.urlopen('{address}', timeout=20).read().decode())"
    return host.run("python3", "-c", fetch).stdout


def test_credentials_are_the_executors_alone(lab):
    for name in (*WORKERS, "mirror1"):
        host = lab.host(name)
        found = host.shell(f"stat --format '%U %a' {CREDENTIALS} {CREDENTIALS}/*").splitlines()
        assert found[0] == "root 755", "or its owner could set links where root writes"
        assert set(found[1:]) == {"mirror-report 400"}
        held = host.shell(f"ls {CREDENTIALS}")
        assert ".password" not in held
        assert "spark-defaults" not in held
    assert lab.host("master1").run("test", "-e", CREDENTIALS, check=False).status == 1


def test_spark_submit_runs_the_same_program_by_the_documented_commands(lab):
    lab.produce("orders", count=500)
    lab.wait_mirrored("orders", list(COUNTS))
    page = (ROOT / "docs/report/spark.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```\n(site=.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = lab.desk.run("sh", "-c", commands, check=False)
    assert done.status == 0, done.text[-3000:]
    document = json.loads(done.stdout[done.stdout.index("{") :])
    assert parity(document, "orders", "orders")["verified_records"] == COUNTS["orders"] + 500


def test_one_worker_proves_what_two_prove(lab, measured):
    """What a second worker brings, on the same records; docs/sizing.md has the numbers."""
    lab.produce("orders", count=400_000)
    lab.wait_mirrored("orders", ["orders"])

    def proved():
        """Records of the topic, and seconds that Spark's jobs took without its start."""
        lab.desk.shell(f"find {EVENTS} -type f -delete")
        status, document = lab.report("prove", "--flow", "orders", "--topic", "orders")
        assert status == 0, document["findings"]
        times = [
            [event[f"{what} Time"] for event in events(lab) if event["Event"] == kind]
            for what, kind in (
                ("Submission", "SparkListenerJobStart"), ("Completion", "SparkListenerJobEnd"),
            )
        ]  # fmt: skip
        seconds = (max(times[1]) - min(times[0])) / 1000
        return parity(document, "orders", "orders")["verified_records"], seconds

    by_two = [proved() for _ in range(3)]
    worker = lab.host("worker2")
    worker.shell("systemctl stop spark.service")
    try:
        by_one = [proved() for _ in range(3)]
    finally:
        worker.shell("systemctl start spark.service")
    measured(by_two=by_two, by_one=by_one)
    assert {records for records, _ in (*by_two, *by_one)} == {by_two[0][0]}
    assert by_two[0][0] > 400_000


@pytest.mark.parametrize("playbook", ["preflight.yml", "report.yml"])
def test_a_worker_whose_user_others_share_is_refused(lab, playbook):
    lab.host("worker1").shell("useradd --non-unique --uid 970 --gid 970 guest")
    try:
        done = lab.playbook(playbook, {}, "--limit", "mirror1", check=False)
    finally:
        lab.host("worker1").shell("sed -i /^guest:/d /etc/passwd /etc/shadow")
    assert done.status != 0
    assert "worker1: mirror-report has the number 970 of guest" in done.stdout
    assert "changed=0" in done.stdout


def test_credentials_are_taken_back(lab):
    lab.playbook("report.yml", {"mirror_report_executor_credentials": False})
    for name in (*WORKERS, "mirror1"):
        assert lab.host(name).run("test", "-e", CREDENTIALS, check=False).status == 1
    lab.produce("orders", count=100)  # otherwise Spark would not be needed
    lab.wait_mirrored("orders", list(COUNTS))
    status, document = lab.report("run")
    assert status == 3
    assert "mirror_report_executor_credentials" in json.dumps(document)
