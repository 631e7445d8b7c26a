"""A host of the report: its configuration, its state directory and its command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import golden_forms as forms
from golden_scenarios import Scenario
from parity_commands import in_this_process
from parity_records import jars_directory

import mirror_report
from mirror_report import cli

DAY_MS = 86_400_000
READ_AT = re.compile(r'("(?:read_at_ms|at|since_ms)":\s*|\[(?:null|\d+), )(\d{13})\b')
"""When something was last read of the clusters, and since when it is seen: both are waited by."""
WRITTEN_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PATIENCE = 120


class Site:
    """One host.

    :param directory: of everything it keeps.
    """

    def __init__(self, directory: Path, scenario: Scenario) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.metrics = directory / "metrics"
        self.world = scenario.world
        self._prefix = scenario.prefix
        self._configuration = directory / "config.json"
        for path in (self.state, self.metrics):
            path.mkdir(parents=True)
        jars = jars_directory()
        document = {
            "version": 1,
            "clusters": {
                alias: {"bootstrap_servers": [self.world.brokers[side]]}
                for side, alias in scenario.aliases.items()
            },
            "flows": [scenario.flow()],
            "state_directory": str(self.state),
            "metrics_directory": str(self.metrics),
            "budget": {"scrub_bytes": 0, **scenario.budget},
            "spark": {"master": "local[2]", "jars_directory": str(jars) if jars else None},
        }
        self._configuration.write_text(json.dumps(document))

    def call(self, *arguments: str) -> dict[str, Any]:
        """Run a command: its exit status, and the form of what it prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), in_this_process():
            status = cli.main(["--config", str(self._configuration), *arguments])
        text = forms.labelled(printed.getvalue(), self.world.ids())
        if "--json" not in arguments:
            return {"exit": status, "lines": len(text.splitlines())}
        document = forms.form(self._own(json.loads(text))) if text else None
        return {"exit": status, "document": document}

    def digests(self) -> dict[str, Any]:
        """Digest both sides, and compare the bundles."""
        found = {}
        paths = []
        for side in ("source", "target"):
            path = self.directory / f"{side}.digest"
            answer = self.call("digest", "--side", side, "--output", str(path))
            bundle = forms.of_bundle(path, self.world.ids())
            found[f"digest {side}"] = {**answer, "bundle": bundle}
            paths.append(str(path))
        return {**found, "compare": self.call("compare", "--json", *paths)}

    def killed_run(self, *arguments: str) -> None:
        """Begin a run in a process, and kill it once it has remembered what it read."""
        manifest = self.state / "parity.json"
        command = [sys.executable, "-m", "mirror_report.cli"]
        command += ["--config", str(self._configuration), "run", *arguments]
        environment = os.environ | {"PYTHONPATH": str(Path(mirror_report.__file__).parents[1])}
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + PATIENCE
        while not (manifest.exists() and json.loads(manifest.read_text())["data"]["open_work"]):
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline, "it read nothing in time"
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)

    def form(self) -> dict[str, Any]:
        """Form of the state directory."""
        return forms.of_state(self.state, self.world.ids())

    def form_of_metrics(self) -> list[str]:
        """Names of the metrics and of their labels."""
        return forms.of_metrics(self.metrics)

    def store(self, golden: Path) -> None:
        """Write the state directory down, with labels for the ids of topics."""
        ids = self.world.ids()
        for path in forms.kept(self.state):
            kept = golden / path.relative_to(self.state)
            kept.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".parquet":
                kept.write_bytes(path.read_bytes())
            elif path.parent.name == "reports" and path.stem != "latest":
                # Nothing but its name is ever read.
                kept.write_text("")
            else:
                text = forms.labelled(path.read_text(), ids)
                report = path.parent.name == "reports"
                kept.write_text(forms.rows(json.loads(text)) if report else text)

    def restore(self, golden: Path, stored_at_ms: int) -> None:
        """Take over a state directory as if it had been written now, on these clusters."""
        ids = {label: known for known, label in self.world.ids().items()}
        passed = int(time.time() * 1000) - stored_at_ms

        def read_at(found: re.Match[str]) -> str:
            at = int(found[2])
            return found[1] + str(at + passed if abs(at - stored_at_ms) < DAY_MS else at)

        def written_at(found: re.Match[str]) -> str:
            at = datetime.fromisoformat(found[0]) + timedelta(milliseconds=passed)
            return at.strftime("%Y-%m-%dT%H:%M:%SZ")

        for path in forms.kept(golden):
            kept = self.state / path.relative_to(golden)
            if path.suffix == ".jsonl" and path.parent.parent.name == "lag":
                kept = kept.with_stem(f"{datetime.now(UTC):%Y-%m-%d}")
            kept.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".parquet":
                kept.write_bytes(path.read_bytes())
            else:
                text = forms.labelled(path.read_text(), ids)
                kept.write_text(WRITTEN_AT.sub(written_at, READ_AT.sub(read_at, text)))

    def _own(self, document: dict[str, Any]) -> dict[str, Any]:
        """Document without the other topics of clusters that are shared."""
        rows = document.get("topics", [])
        if rows and isinstance(rows[0], dict):
            document["topics"] = [row for row in rows if self._prefix in row["topic"]]
        return document
