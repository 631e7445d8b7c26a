#!/usr/bin/python
"""Keep a service's credentials; a changed one gets a new generation before it is written."""

from __future__ import annotations

import grp
import json
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: service_credentials
short_description: Keep the credentials of a service
description:
  - Writes each credential as a file that only root reads, and removes the ones no longer wanted.
  - Remembers a random generation per credential beside them. A credential that will change gets
    its new generation first, so a run that dies in between is noticed by the next one. The
    generation says that a secret changed and nothing about the secret.
options:
  directory:
    description: Directory of the credentials, root's alone but for I(group); created if missing.
    type: path
    required: true
  generations:
    description: JSON file with the generations. Without it none are kept.
    type: path
  group:
    description: A group that may read the credentials, too. In check mode it may be missing.
    type: str
  credentials:
    description: File name to content.
    type: dict
    required: true
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: Keep the credentials
  service_credentials:
    directory: /etc/mirrormaker/credentials
    generations: /etc/mirrormaker/generations.json
    credentials:
      source.mirror.jaas: "{{ jaas }}"
"""

RETURN = r"""
generations:
  description: File name to generation. In check mode a changed credential has none yet.
  returned: always
  type: dict
written:
  description: Names of the credentials that are new or have changed.
  returned: always
  type: list
removed:
  description: Names of the credentials that are no longer wanted.
  returned: always
  type: list
"""


@dataclass(frozen=True)
class Plan:
    """What has to be done: names only, never content."""

    written: list[str]
    removed: list[str]
    generations: dict[str, str]


def plan(
    wanted: Mapping[str, bytes], present: Mapping[str, bytes], generations: Mapping[str, str]
) -> Plan:
    """Compare the credentials wanted with those present.

    :param wanted: file name to content as it shall be.
    :param present: file name to content as it is.
    :param generations: file name to generation as remembered.
    :returns: what to write and remove, and the generations as they shall be; a credential that
        changes, or whose generation was lost, has a new one.
    """
    written = sorted(name for name in wanted if present.get(name) != wanted[name])
    removed = sorted(name for name in present if name not in wanted)
    fresh = {
        name: secrets.token_hex(16)
        if name in written or not generations.get(name)
        else generations[name]
        for name in sorted(wanted)
    }
    return Plan(written=written, removed=removed, generations=fresh)


def write_whole(path: Path, content: bytes, mode: int, group: int | None = None) -> None:
    """Write a file, for a group if one is given, so that it is there whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if group is not None:
            os.chown(temporary, -1, group)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_generations(path: Path) -> dict[str, str]:
    """Read the generations; a file that cannot be read counts as forgotten."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in content.items()} if isinstance(content, dict) else {}


def loose(directory: Path, modes: tuple[int, int], group: int | None) -> list[Path]:
    """Find what others than root and the group could get at, or the group could not.

    :param directory: of the credentials.
    :param modes: of the directory and of a credential.
    :param group: id of the group; without one, any will do where it may nothing.
    :returns: the directory, or files in it.
    """
    expected = {directory: modes[0]} | dict.fromkeys(directory.iterdir(), modes[1])
    return [
        path
        for path, mode in expected.items()
        if (path.stat().st_mode & 0o7777) != mode
        or path.stat().st_uid != 0
        or group not in (None, path.stat().st_gid)
    ]


def group_id(name: str | None) -> int | None:
    """Id of a group, if there is one of that name."""
    try:
        return grp.getgrnam(name).gr_gid if name else None
    except KeyError:
        return None


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "generations": {"type": "path"},
            "group": {"type": "str"},
            "credentials": {"type": "dict", "required": True, "no_log": True},
        },
        supports_check_mode=True,
    )
    directory = Path(module.params["directory"])
    remembered = Path(module.params["generations"]) if module.params["generations"] else None
    shared = module.params["group"]
    modes = (0o750, 0o640) if shared else (0o700, 0o600)
    group = group_id(shared)
    if shared and group is None and not module.check_mode:
        module.fail_json(msg=f"group: '{shared}' is not there; make it first")
    wanted = {
        name: str(content).encode("utf-8") for name, content in module.params["credentials"].items()
    }
    exists = directory.is_dir()
    present = {p.name: p.read_bytes() for p in directory.iterdir()} if exists else {}
    before = read_generations(remembered) if remembered else {}
    todo = plan(wanted, present, before)
    forgotten = remembered and (todo.generations != before or not remembered.exists())
    open_paths = loose(directory, modes, group) if exists else []
    changed = bool(todo.written or todo.removed or open_paths or not exists or forgotten)
    if changed and not module.check_mode:
        if not exists:
            directory.mkdir(mode=0o700, parents=False)
            open_paths = [directory]
        for path in open_paths:
            os.chown(path, 0, group or 0)
            path.chmod(modes[0] if path == directory else modes[1])
        if remembered and forgotten:
            text = json.dumps(todo.generations, indent=2, sort_keys=True) + "\n"
            write_whole(remembered, text.encode("utf-8"), 0o600)
        for name in todo.written:
            write_whole(directory / name, wanted[name], modes[1], group)
        for name in todo.removed:
            (directory / name).unlink(missing_ok=True)
    generations = dict(todo.generations)
    if module.check_mode:
        generations = {n: g if before.get(n) == g else "" for n, g in generations.items()}
    module.exit_json(
        changed=changed, generations=generations, written=todo.written, removed=todo.removed
    )


if __name__ == "__main__":
    main()
