#!/usr/bin/python
"""Make the Python environment of the report on a host, whole or not at all."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_files.paths import read_object

DOCUMENTATION = r"""
module: kafka_client_environment
short_description: Makes the Python environment of the report
description:
  - Installs a wheel of the report and what it needs into a virtual environment.
  - A marker written last says what is installed. An environment without one, or of another Python,
    is made again from nothing; one with another source or lock, or without a wanted extra, is
    brought up to date and keeps the extras it has.
  - pip takes nothing whose SHA-256 it is not given.
  - In check mode it says what would be done.
options:
  path: {description: The environment., type: path, required: true}
  python: {description: Interpreter it is made of., type: path, required: true}
  source: {description: Hash of the source of the wheel., type: str, required: true}
  extras: {description: Extras wanted., type: list, elements: str, default: []}
  locks:
    description: SHA-256 of the locks, by name (client, spark).
    type: dict
    required: true
  wheels:
    description: >-
      Directory with the wheel, and what pip may install, with hashes (client.txt, spark.txt,
      build.txt, own.txt); removed when the environment is whole.
    type: path
    required: true
  index: {description: Whether pip may ask a package index., type: bool, default: false}
  pip_arguments: {description: Further arguments., type: list, elements: str, default: []}
"""

MARKER = ".mirror-report.json"


class MakeError(Exception):
    """The environment cannot be made; the message says what to do."""


def run(command: list[str], doing: str) -> None:
    """Run one command.

    :param command: program and arguments.
    :param doing: what it does, for the message.
    :raises MakeError: it failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise MakeError(f"{doing} failed (status {done.returncode}):\n{said}")


def lock_of(extras: list[str]) -> str:
    """Name of the lock of an environment with some extras."""
    return "spark" if "spark" in extras else "client"


def install(parameters: dict[str, Any], marker_content: dict[str, Any], fresh: bool) -> None:
    """Make the environment, or bring it up to date, and mark it whole.

    :param parameters: parameters of the module.
    :param marker_content: content of the marker.
    :param fresh: whether to begin from nothing.
    :raises MakeError: a step failed; the environment carries no marker then.
    """
    path, wheels = Path(parameters["path"]), Path(parameters["wheels"])
    wheel = next(iter(sorted(wheels.glob("mirror_report-*.whl"))), None)
    if wheel is None:
        raise MakeError(f"{wheels} holds no wheel of the report")
    os.umask(0o022)  # every user runs the command, whatever umask the connection comes with
    (path / MARKER).unlink(missing_ok=True)
    if fresh:
        run([parameters["python"], "-m", "venv", "--clear", str(path)], "making the environment")
    pip = [
        str(path / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input",
        "--disable-pip-version-check", "--no-cache-dir", "--no-warn-script-location",
        # What pip fetches for a build by itself is in no lock.
        "--require-hashes", "--no-build-isolation", "--find-links", str(wheels),
        *([] if parameters["index"] else ["--no-index"]), *parameters["pip_arguments"],
    ]  # fmt: skip
    locked, own = (
        ["--requirement", str(wheels / f"{name}.txt")]
        for name in (lock_of(marker_content["extras"]), "own")
    )
    if parameters["index"]:
        run([*pip, "--requirement", str(wheels / "build.txt")], "installing what builds wheels")
    run([*pip, *locked, *own], "installing the report and what it needs")
    if not fresh:
        # The version may be the old one, and then pip keeps the old content.
        run([*pip, "--force-reinstall", "--no-deps", *own], "replacing the report")
    run([str(path / "bin" / "python"), "-I", "-c", "import mirror_report"], "loading the report")
    marker = path / f"{MARKER}.part"
    marker.write_text(json.dumps(marker_content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    marker.replace(path / MARKER)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "python": {"type": "path", "required": True},
            "source": {"type": "str", "required": True},
            "extras": {"type": "list", "elements": "str", "default": []},
            "locks": {"type": "dict", "required": True},
            "wheels": {"type": "path", "required": True},
            "index": {"type": "bool", "default": False},
            "pip_arguments": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    parameters = module.params
    present = read_object(Path(parameters["path"]) / MARKER) or {}
    python = str(Path(parameters["python"]).resolve())
    fresh = present.get("python") != python
    kept = [] if fresh else present.get("extras", [])
    extras = sorted({*kept, *parameters["extras"]})
    lock = parameters["locks"][lock_of(extras)]
    marker = {"source": parameters["source"], "python": python, "extras": extras, "lock": lock}
    changed = present != marker
    spark = "spark" in extras and ("spark" not in kept or present.get("lock") != lock)
    try:
        if changed and not module.check_mode:
            install(parameters, marker, fresh)
        if not module.check_mode:
            shutil.rmtree(parameters["wheels"], ignore_errors=True)
    except (MakeError, OSError) as error:
        module.fail_json(msg=f"mirror_report: {error}")
    module.exit_json(changed=changed, outdated=changed, present=bool(present), needs_spark=spark)


if __name__ == "__main__":
    main()
