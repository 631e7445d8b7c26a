"""A Spark that others could reach is refused in the inventory, by the rules of the report."""

from __future__ import annotations

import pytest

from tests.loading import load

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
