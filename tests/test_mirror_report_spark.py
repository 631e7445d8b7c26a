"""A Spark that others could reach is refused in the inventory, by the rules of the report."""

from __future__ import annotations

import sys

import pytest

from tests.loading import ROOT, load
from tests.playing import ansible_playbook

spark = load("roles/mirror_report/filter_plugins/mirror_report.py", "mirror_report_filters")
SECRET = {"spark.authenticate.secret": "hushhush"}
FAR = "spark://h:7077"


@pytest.mark.parametrize(
    ("master", "properties", "secrets"),
    [
        ("local[*]", {"spark.eventLog.enabled": True}, {}),
        (FAR, {"spark.executor.memory": "1g", "spark.authenticate": True}, SECRET),
        ("yarn", {}, {}),
    ],
)
def test_a_spark_that_answers_the_report_alone_is_good(master, properties, secrets):
    assert spark.mirror_report_spark_problems(master, properties, secrets) == []


@pytest.mark.parametrize(
    ("master", "properties", "secrets", "variable", "said"),
    [
        ("local[*]", {"spark.authenticate": False}, {}, "properties", "spark.authenticate must"),
        (FAR, {"spark.network.crypto.enabled": "false"}, SECRET, "properties", "must be true"),
        (FAR, {"spark.io.encryption.enabled": False}, SECRET, "properties", "must be true"),
        (FAR, SECRET, SECRET, "properties", "put it into mirror_report_spark_secrets"),
        (FAR, {}, {}, "secrets", "spark.authenticate.secret is missing"),
        (FAR, {}, {"spark.authenticate.secret": ""}, "secrets", "is missing"),
        ("local-cluster[2,1,512]", {}, {}, "secrets", "is missing"),
    ],
)
def test_what_lets_others_in_is_named_and_no_secret_is_shown(
    master, properties, secrets, variable, said
):
    [problem] = spark.mirror_report_spark_problems(master, properties, secrets)
    assert problem.startswith(f"mirror_report_spark_{variable}")
    assert said in problem
    assert "hushhush" not in problem


OWN = ["x", "970", "970", "", "/var/lib/mirror-report", "/usr/sbin/nologin"]
OTHER = ["x", "1000", "1000", "", "/home/anna", "/bin/bash"]


def test_a_user_of_the_executors_that_nobody_shares_is_good():
    hosts = {host: {"mirror-report": OWN, "anna": OTHER} for host in ("m", "w1", "w2")}
    assert spark.mirror_report_executor_problems(hosts, "mirror-report") == []


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ({}, "w has no user mirror-report"),
        ({"mirror-report": OWN, "spark": OWN}, "w: mirror-report has the number 970 of spark"),
        (
            {"mirror-report": ["x", "0", *OWN[2:]], "root": ["x", "0", "0", "", "", "/bin/bash"]},
            "w: mirror-report has the number 0 of root",
        ),
        ({"mirror-report": [*OWN[:5], "/bin/bash"]}, "w: somebody may log in as mirror-report"),
        ({"mirror-report": [*OWN[:5], ""]}, "whose shell is unset"),
        ({"mirror-report": ["x", "971", *OWN[2:]]}, "970 on m, 971 on w"),
    ],
)
def test_a_user_of_the_executors_that_others_share_is_named_with_the_cure(users, said):
    places = {"m": {"mirror-report": OWN}, "w": users}
    problems = spark.mirror_report_executor_problems(places, "mirror-report")
    assert any(said in problem for problem in problems)
    assert all("mirror_report_executor_credentials: " in problem for problem in problems)
    assert all("one and the same number" in problem for problem in problems)


def test_a_host_without_the_user_of_the_executors_gets_no_credentials(tmp_path):
    (tmp_path / "play.yml").write_text("""
- hosts: all
  gather_facts: false
  tasks:
    - include_role: {name: mirror_report, tasks_from: executor_users}
""")
    wanted = {True: 2, False: 0}
    for credentials, status in wanted.items():
        done = ansible_playbook(
            ROOT, "-i", "worker,", "-c", "local", str(tmp_path / "play.yml"),
            "-e", f"ansible_python_interpreter={sys.executable}",
            "-e", f"{{mirror_report_executor_credentials: {str(credentials).lower()}}}",
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        assert ("worker has no user mirror-report" in done.stdout + done.stderr) == credentials
