#!/usr/bin/python
"""What one host has of one service: unit, process, configuration. Changes nothing."""

import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_files.paths import read_object, user_id

DOCUMENTATION = r"""
---
module: service_unit_state
short_description: State of one service of these roles on a host
description:
  - Reads what systemd, the running process and the configuration directory say about one service.
  - Changes nothing, so it runs in check mode too.
options:
  name:
    description: The service, which is also the name of unit, user and configuration directory.
    type: str
    required: true
  files:
    description: Files the process reads when it starts; newer ones than the process are reported.
    type: list
    elements: path
    default: []
  fingerprint:
    description: What the process should have been started with, as its unit says it.
    type: str
    default: ""
  owner:
    description: Role that writes the unit; its second line says so.
    type: str
    default: ""
  client:
    description: Program whose presence is reported.
    type: path
    default: ""
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: See what runs
  service_unit_state:
    name: mirrormaker
  register: found
"""

RETURN = r"""
unit:
  description: load_state, active_state, sub_state, result, enabled, needs_reload, restarts, status.
  returned: always
  type: dict
process:
  description:
    - pid (0 if none), fingerprint it was started with, outdated files, and of a process without any
      current (started with O(fingerprint)) and as_written (with that of the unit on the host).
  returned: always
  type: dict
directory:
  description:
    - exists, empty, ownership (null if the marker is missing), identity (null if unknown),
      last_good (whether a configuration is kept to go back to).
  returned: always
  type: dict
unit_file:
  description: exists, ours (written by this role), fingerprint of what it starts.
  returned: always
  type: dict
user_exists:
  description: Whether a user of the instance's name is known to the host.
  returned: always
  type: bool
client:
  description: Whether the program named by O(client) is there.
  returned: always
  type: bool
systemd_version:
  description: Major version of systemd, 0 if there is none.
  returned: always
  type: int
"""

CONFIGURATION = Path("/etc")
UNITS = Path("/etc/systemd/system")
# A unit's template carries this line; a unit without it belongs to someone else.
UNIT_MARKER = "# Owner: role {}"
# The variable of a unit that holds its fingerprint: MM_FINGERPRINT, KAFKA_BROKER_FINGERPRINT.
FINGERPRINT = r"(?:MM|KAFKA_BROKER)_FINGERPRINT"
PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "UnitFileState",
    "NeedDaemonReload",
    "NRestarts",
    "MainPID",
    "ExecMainStatus",
    "ExecMainStartTimestampMonotonic",
)


def properties_of(text: str) -> dict[str, str]:
    """Lines of ``systemctl show`` as a dictionary."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name: value for name, _, value in pairs}


def version_of(text: str) -> int:
    """Major version in the first line of ``systemctl --version``, 0 if it is not there."""
    match = re.match(r"systemd (\d+)", text)
    return int(match.group(1)) if match else 0


def fingerprint_of(environment: bytes) -> str:
    """The fingerprint in a process environment as in ``/proc/<pid>/environ``, or nothing."""
    match = re.search(rb"(?:^|\0)" + FINGERPRINT.encode() + rb"=([^\0]*)", environment)
    return match.group(1).decode("ascii", "replace") if match else ""


def newer_than(started: float, now: float, times: Mapping[str, float]) -> list[str]:
    """Files changed after the process started.

    :param started: when the process started, seconds since the epoch.
    :param now: the present; a time stamp from the future says nothing and is left out.
    :param times: file name to modification time.
    """
    return sorted(name for name, changed in times.items() if started < changed <= now)


def process_state(shown: Mapping[str, str], files: Iterable[str]) -> dict[str, Any]:
    """Describe the main process: pid, fingerprint, files that changed since it started."""
    pid = int(shown.get("MainPID") or 0)
    state: dict[str, Any] = {"pid": pid, "fingerprint": "", "outdated": []}
    if pid == 0:
        return state
    try:
        state["fingerprint"] = fingerprint_of(Path(f"/proc/{pid}/environ").read_bytes())
    except OSError:  # it has just ended
        state["pid"] = 0
        return state
    # From the monotonic clock, so that a clock set right after boot does not age the process.
    now = time.time()
    elapsed = time.monotonic() - int(shown["ExecMainStartTimestampMonotonic"] or 0) / 1e6
    times = {name: Path(name).stat().st_mtime for name in files if Path(name).is_file()}
    state["outdated"] = newer_than(now - elapsed, now, times)
    return state


def directory_state(directory: Path) -> dict[str, Any]:
    """Describe the configuration directory: whose it is and what it remembers."""
    exists = directory.is_dir()
    return {
        "exists": exists,
        "empty": exists and not any(directory.iterdir()),
        "ownership": read_object(directory / "ownership.json"),
        "identity": read_object(directory / "identity.json"),
        "last_good": (directory / "last-good.json").is_file(),
    }


def unit_file_state(unit_file: Path, owner: str) -> dict[str, Any]:
    """Say whether there is a unit file, whether its role wrote it, and what it starts."""
    exists = unit_file.is_file()
    text = unit_file.read_text(encoding="utf-8", errors="replace") if exists else ""
    written = re.search(rf"^Environment={FINGERPRINT}=(\w+)$", text, re.MULTILINE)
    fingerprint = written.group(1) if written else ""
    return {
        "exists": exists,
        "ours": UNIT_MARKER.format(owner) in text.splitlines(),
        "fingerprint": fingerprint,
    }


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "files": {"type": "list", "elements": "path", "default": []},
            "fingerprint": {"type": "str", "default": ""},
            "owner": {"type": "str", "default": ""},
            "client": {"type": "path", "default": ""},
        },
        supports_check_mode=True,
    )
    name = module.params["name"]
    systemctl = module.get_bin_path("systemctl")
    shown: dict[str, str] = {}
    version = 0
    if systemctl:
        version = version_of(module.run_command([systemctl, "--version"])[1])
        show = [systemctl, "show", f"--property={','.join(PROPERTIES)}", f"{name}.service"]
        shown = properties_of(module.run_command(show)[1])
    process = process_state(shown, module.params["files"])
    unit_file = unit_file_state(UNITS / f"{name}.service", module.params["owner"])
    untouched = process["pid"] > 0 and not process["outdated"]
    module.exit_json(
        changed=False,
        systemd_version=version,
        unit={
            "load_state": shown.get("LoadState", ""),
            "active_state": shown.get("ActiveState", ""),
            "sub_state": shown.get("SubState", ""),
            "result": shown.get("Result", ""),
            "enabled": shown.get("UnitFileState", "") == "enabled",
            "needs_reload": shown.get("NeedDaemonReload", "no") == "yes",
            "restarts": int(shown.get("NRestarts") or 0),
            "status": int(shown.get("ExecMainStatus") or 0),
        },
        process={
            **process,
            "current": untouched and process["fingerprint"] == module.params["fingerprint"],
            "as_written": untouched and process["fingerprint"] == unit_file["fingerprint"],
        },
        directory=directory_state(CONFIGURATION / name),
        unit_file=unit_file,
        user_exists=user_id(name) is not None,
        client=bool(module.params["client"]) and Path(module.params["client"]).is_file(),
    )


if __name__ == "__main__":
    main()
