"""The permissions that the model lists are enough; the check names each that is revoked.

Scenarios link to this file as tests/test_<number>_permissions.py.
"""

from __future__ import annotations

import json

import pytest
import yaml
from labkit.controller import ROOT


class Checks:
    """The settings of each identity's check, and the permissions it was granted."""

    def __init__(self, lab):
        self.lab = lab
        lab.playbook(ROOT / "molecule/support/check_settings.yml")
        self.files = lab.mirror.shell("ls /root/check-*.json").split()
        self.settings = {name: json.loads(lab.mirror.read(name)) for name in self.files}
        self.settings["report"] = yaml.safe_load(lab.desk.read("/etc/mirror-report/config.yaml"))

    def rows(self):
        """Every permission: whose check, and the row with its principal."""
        for asked, settings in self.settings.items():
            unique = {}
            for flow in settings["flows"]:
                for row in flow["permissions"]:
                    principal = settings["clusters"][row["cluster"]]["principal"]
                    permission = {**row, "principal": principal}
                    unique[tuple(str(permission[key]) for key in KEYS)] = permission
            yield from ((asked, row) for row in unique.values())

    def findings(self, asked):
        """Run the check of one identity; returns its findings."""
        if asked == "report":
            argv = ["mirror-report", "check", "--json"]
            done = self.lab.desk.run(*argv, check=False)
        else:
            script = f"mirror-report --config - check --json < {asked}"
            done = self.lab.mirror.run("sh", "-c", script, check=False)
        found = json.loads(done.stdout)
        assert found["flows"], done.text
        return found["findings"]


KEYS = ("cluster", "principal", "resource", "name", "pattern", "operation")


def names(finding, row):
    """Whether a finding names exactly this permission."""
    name = "the cluster" if row["resource"] == "cluster" else row["name"]
    words = (row["principal"], row["operation"], name, row["cluster"])
    return all(word in finding["message"] for word in words)


@pytest.fixture(scope="module")
def checks(lab):
    """The checks; their settings, which hold secrets, are removed afterwards."""
    checks = Checks(lab)
    yield checks
    lab.mirror.run("rm", *checks.files)


def test_what_is_listed_is_enough(checks):
    for asked in checks.settings:
        found = checks.findings(asked)
        assert not [finding for finding in found if finding["kind"] == "missing_permission"], asked


@pytest.mark.long
def test_every_permission_is_missed_by_name_but_those_that_cannot_be_asked(
    lab, checks, unaskable, measured
):
    """Revoke each permission, ask, and grant it again."""
    rows = list(checks.rows())
    assert len(rows) > 10
    named, unknown = 0, set()
    for asked, row in rows:
        step = {"cluster": row["cluster"], "rows": [row]}
        assert lab.probe({"do": "revoke", **step})[0] == 1, f"{row} was not granted"
        try:
            found = checks.findings(asked)
        finally:
            lab.probe({"do": "grant", **step})
        missing = [finding for finding in found if finding["kind"] == "missing_permission"]
        assert [finding for finding in missing if not names(finding, row)] == [], row
        if missing:
            named += 1
            continue
        kinds = {finding["kind"] for finding in found}
        assert "permission_unknown" in kinds, (asked, row, found)
        unknown.add((row["principal"], row["operation"], row["resource"], row["name"]))
    measured(named=named, unknown=sorted(unknown))
    assert unknown == unaskable
