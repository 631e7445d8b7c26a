"""What identities are allowed, and what the check of the report says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from labkit.controller import ROOT
from labkit.lab import Lab
from labkit.site import Variables

# Hosts of mirrors have it, and no command of that name.
PROGRAM = "/opt/mirror-report/venv/bin/mirror-report"
KEYS = ("cluster", "principal", "resource", "name", "pattern", "operation")
Row = Mapping[str, Any]


class Checks:
    """The settings of each identity's check, and the permissions it was granted.

    :param variables: those that differ from the inventory's.
    """

    def __init__(self, lab: Lab, variables: Variables | None = None) -> None:
        self.lab = lab
        lab.playbook(ROOT / "molecule/support/check_settings.yml", variables)
        self.files = lab.mirror.shell("ls /root/check-*.json").split()
        self.settings = {name: json.loads(lab.mirror.read(name)) for name in self.files}
        self.settings["report"] = yaml.safe_load(lab.desk.read("/etc/mirror-report/config.yaml"))

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Every permission: whose check, and the row with its principal."""
        for asked, settings in self.settings.items():
            unique = {}
            for flow in settings["flows"]:
                for row in flow["permissions"]:
                    principal = settings["clusters"][row["cluster"]]["principal"]
                    permission = {**row, "principal": principal}
                    unique[tuple(str(permission[key]) for key in KEYS)] = permission
            yield from ((asked, row) for row in unique.values())

    def findings(self, asked: str) -> list[dict[str, Any]]:
        """Run the check of one identity; returns its findings."""
        if asked == "report":
            argv = ["mirror-report", "check", "--json"]
            done = self.lab.desk.run(*argv, check=False)
        else:
            script = f"{PROGRAM} --config - check --json < {asked}"
            done = self.lab.mirror.run("sh", "-c", script, check=False)
        document = json.loads(done.stdout)
        assert document["flows"], done.text
        found: list[dict[str, Any]] = document["findings"]
        return found

    def without(self, asked: str, row: Row) -> list[dict[str, Any]]:
        """Findings of the check while one permission is revoked."""
        step = {"cluster": row["cluster"], "rows": [row]}
        assert self.lab.probe({"do": "revoke", **step})[0] == 1, f"{row} was not granted"
        try:
            return self.findings(asked)
        finally:
            self.lab.probe({"do": "grant", **step})

    def end(self) -> None:
        """Remove the settings, which hold secrets."""
        self.lab.mirror.run("rm", *self.files)


def named(finding: Mapping[str, Any], row: Row) -> bool:
    """Whether a finding names exactly this permission."""
    name = "the cluster" if row["resource"] == "cluster" else row["name"]
    words = (row["principal"], row["operation"], name, row["cluster"])
    return all(word in finding["message"] for word in words)
