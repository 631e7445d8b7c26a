#!/usr/bin/python
"""Keep a service's credentials; a changed one gets a new generation before it is written."""

import json
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_files.paths import (
    SAFELY,
    PathError,
    existing,
    group_id,
    read_object,
    set_access,
    user_id,
)

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
  owner:
    description:
      - A user who owns the credentials and alone reads them. The directory stays root's, or that
        user could set links where root writes. In check mode the user may be missing.
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
    """What has to be done: names only, never content.

    :param written: names of credentials that are new or have changed.
    :param removed: names of credentials that are no longer wanted.
    :param generations: name to generation, as they shall be.
    """

    written: list[str]
    removed: list[str]
    generations: dict[str, str]


def plan(
    credentials: Mapping[str, bytes],
    present: Mapping[str, bytes | None],
    generations: Mapping[str, str],
) -> Plan:
    """Compare the credentials wanted with those present.

    :param credentials: file name to content as it shall be.
    :param present: file name to content as it is; ``None``: it is no file.
    :param generations: file name to generation as remembered.
    :returns: what to write and remove, and the generations as they shall be; a credential that
        changes, or whose generation was lost, has a new one.
    """
    written = sorted(name for name in credentials if present.get(name) != credentials[name])
    removed = sorted(name for name in present if name not in credentials)
    renewed = {
        name: secrets.token_hex(16)
        if name in written or not generations.get(name)
        else generations[name]
        for name in sorted(credentials)
    }
    return Plan(written=written, removed=removed, generations=renewed)


def read(path: Path) -> bytes | None:
    """Read a file; ``None``: it is none. A link is not followed, and a pipe not waited for."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return None
    with os.fdopen(os.open(path, os.O_RDONLY | SAFELY), "rb") as stream:
        return stream.read()


def read_generations(path: Path) -> dict[str, str]:
    """Name to generation; a file that cannot be read counts as forgotten."""
    return {str(name): str(value) for name, value in (read_object(path) or {}).items()}


def loose(directory: Path, modes: tuple[int, int], owner: int, group: int | None) -> list[Path]:
    """Find what others than root, the owner and the group could read or write, or those could not.

    :param directory: of the credentials.
    :param modes: of the directory and of a credential.
    :param owner: id of the owner of a credential; the directory is root's.
    :param group: id of the group; without one, any will do where it may nothing.
    :returns: the directory first, or files in it.
    """
    expected = {directory: (modes[0], 0)}
    expected |= {path: (modes[1], owner) for path in directory.iterdir() if not path.is_symlink()}
    statuses = {path: path.lstat() for path in expected}
    return [
        path
        for path, (mode, user) in expected.items()
        if (statuses[path].st_mode & 0o7777, statuses[path].st_uid) != (mode, user)
        or group not in (None, statuses[path].st_gid)
    ]


def keep(given: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    """Bring the credentials to what is wanted.

    :param given: parameters of the module.
    :param check: change nothing.
    :returns: what the module answers.
    :raises PathError: the owner or the group is missing.
    """
    directory = Path(given["directory"])
    remembered = Path(given["generations"]) if given["generations"] else None
    modes = (0o750, 0o640) if given["group"] else (0o700, 0o600)
    if given["owner"]:
        modes = (0o755, 0o400)
    group = group_id(given["group"]) if given["group"] else None
    owner = user_id(given["owner"] or "root")
    for option, number in (("group", group), ("owner", owner)):
        if given[option] and number is None and not check:
            raise PathError(f"{option}: '{given[option]}' is not there; make it first")
    file_owner = -1 if owner is None else owner
    credentials = {
        name: str(content).encode("utf-8") for name, content in given["credentials"].items()
    }
    exists = directory.is_dir()
    present = {path.name: read(path) for path in directory.iterdir()} if exists else {}
    before = read_generations(remembered) if remembered else {}
    planned = plan(credentials, present, before)
    forgotten = remembered and (planned.generations != before or not remembered.exists())
    too_open = loose(directory, modes, file_owner, group) if exists else []
    changed = bool(planned.written or planned.removed or too_open or not exists or forgotten)
    if changed and not check:
        if not exists:
            directory.mkdir(mode=0o700, parents=False)
            too_open = [directory]
        for path in too_open:
            is_file = path != directory
            handle = os.open(path, os.O_RDONLY | SAFELY)
            set_access(handle, modes[is_file], file_owner if is_file else 0, group or 0)
        if remembered and forgotten:
            text = json.dumps(planned.generations, indent=2, sort_keys=True) + "\n"
            with existing(remembered) as entry:
                entry.write(text.encode("utf-8"), 0o600, -1, -1)
        for name in planned.written:
            with existing(directory / name) as entry:
                entry.write(credentials[name], modes[1], file_owner, group or 0)
        for name in planned.removed:
            (directory / name).unlink(missing_ok=True)
    return {
        "changed": changed,
        "generations": {
            name: "" if check and before.get(name) != generation else generation
            for name, generation in planned.generations.items()
        },
        "written": planned.written,
        "removed": planned.removed,
    }


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "generations": {"type": "path"},
            "group": {"type": "str"},
            "owner": {"type": "str"},
            "credentials": {"type": "dict", "required": True, "no_log": True},
        },
        mutually_exclusive=[("group", "owner")],
        supports_check_mode=True,
    )
    try:
        module.exit_json(**keep(module.params, check=module.check_mode))
    except (PathError, OSError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
