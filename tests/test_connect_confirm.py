"""Whatever keeps a worker from being confirmed: its host is taken back, and the run says why."""

from __future__ import annotations

import base64
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml

from tests.loading import ROOT
from tests.playing import ansible_playbook

ROLES = ROOT / "roles"
USER, PASSWORD = "deployer", "deployer-secret-1"
LOGIN = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
# As tasks/main.yml of role mirrormaker does, when role kafka_connect has included it.
PLAY = f"""
- hosts: all
  connection: local
  gather_facts: false
  any_errors_fatal: true
  vars_files: [{ROLES}/kafka_connect/vars/main.yml]
  tasks:
    - import_role: # its modules
        name: kafka_connect
        tasks_from: before
      when: false
    - any_errors_fatal: false
      block:
        - include_role:
            name: mirrormaker
            tasks_from: confirm
          vars: &process
            mirrormaker_name: "{{{{ kafka_connect_name }}}}"
            mirrormaker_variable: kafka_connect_clusters
            mirrormaker_asks: {ROLES}/kafka_connect/tasks/answers.yml
      rescue:
        - include_role:
            name: mirrormaker
            tasks_from: go_back
          vars:
            <<: *process
            mirrormaker_failure: "{{{{ ansible_failed_result.msg }}}}"
"""


class Asked(BaseHTTPRequestHandler):
    """One question to a worker that knows one user."""

    server: Worker

    def do_GET(self) -> None:
        """Answer."""
        known = self.headers["Authorization"] == LOGIN
        said = self.server.said if known else b"{}"
        self.send_response(200 if known else 401)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Worker(ThreadingHTTPServer):
    """Answers everybody who logs in with the same."""

    daemon_threads = True

    def __init__(self, said: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.said = said


@contextmanager
def worker(said: bytes) -> Iterator[int]:
    """Port of a worker."""
    with Worker(said) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


CASES: dict[str, dict[str, Any]] = {
    "mumbles": {"said": b"[1]", "reason": "is no answer of a worker's"},
    # The worker that answers is none that this run started.
    "another": {"said": b"{}", "reason": "no process with the new configuration keeps running"},
    "unasked": {"said": b"{}", "reason": "patience", "kafka_connect_patience_seconds": "long"},
    "lost": {
        "port": 9, "reason": "its process ended 3 times, exit status 1",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run says that confirms a worker of each case on a host of its own."""
    folder = tmp_path_factory.mktemp("confirm")
    client = folder / "mirror-report"
    client.write_text(
        "#!/bin/sh\n[ $2 != --ended ] || echo its process ended 3 times, exit status 1\n"
    )
    client.chmod(0o755)
    (folder / "host_vars").mkdir()
    (folder / "group_vars").mkdir()
    (folder / "group_vars/all.yml").symlink_to(ROLES / "kafka_connect/defaults/main.yml")
    with ExitStack() as stack:
        ports = {
            name: case.get("port") or stack.enter_context(worker(case["said"]))
            for name, case in CASES.items()
        }
        rest = {"listener": "loopback", "users": {USER: PASSWORD}, "client": USER}
        variables = {
            "ansible_python_interpreter": sys.executable,
            "kafka_clusters": {"w": {"bootstrap_servers": ["w:9092"]}},
            "mirror_flows": [],
            "kafka_connect_clusters": {
                f"connect-{name}": {"kafka": "w", "hosts": [name], "port": port, "rest": rest}
                for name, port in ports.items()
            },
            "mirror_accept": [],
            "mirror_model_groups": {"kafka_connect": list(CASES)},
            "kafka_client_program": str(client),
            # No process is waited for: three have ended since this run began.
            "mirrormaker_ended_before": -3,
            "mirrormaker_mended_kinds": [],
            "kafka_release_prefix": "/kafka/",
            "kafka_java_home": "/java",
            "kafka_connect_bind_address": "",
            "__mirrormaker_credentials": {"generations": {}},
            "__mirrormaker_found": {
                "systemd_version": 252, "user_exists": True,
                "directory": {"identity": None, "ownership": None},
            },
        }  # fmt: skip
        for name, case in CASES.items():
            own = {key: value for key, value in case.items() if key.startswith("kafka_connect")}
            own["kafka_connect_name"] = f"connect-{name}"
            (folder / f"host_vars/{name}.yml").write_text(yaml.safe_dump(own))
        (folder / "variables.yml").write_text(yaml.safe_dump(variables))
        (folder / "hosts").write_text("\n".join(CASES))
        (folder / "play.yml").write_text(PLAY)
        done = ansible_playbook(folder, "-i", "hosts", "-e", "@variables.yml", "play.yml")
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", CASES)
def test_whatever_failed_the_host_goes_back_and_the_run_says_why(played: str, name: str) -> None:
    found = re.search(f"connect-{name} on {name} is not confirmed: .*", played)
    assert found
    assert CASES[name]["reason"] in found[0]
    assert "No configuration was confirmed on this host before" in found[0]
