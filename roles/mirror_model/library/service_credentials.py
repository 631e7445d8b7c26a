#!/usr/bin/python
"""Keep a service's credentials; a changed one gets a new generation before it is written."""

from __future__ import annotations

import grp
import json
import os
import pwd
import secrets
import stat
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
  owner:
    description:
      - A user who owns the credentials and alone reads them. The directory stays root's, or he
        could set links where root writes. In check mode he may be missing.
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
    wanted: Mapping[str, bytes], present: Mapping[str, bytes | None], generations: Mapping[str, str]
) -> Plan:
    """Compare the credentials wanted with those present.

    :param wanted: file name to content as it shall be.
    :param present: file name to content as it is; ``None``: it is no file.
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


def read(path: Path) -> bytes | None:
    """Read a file; ``None``: it is none. A link is not followed, and a pipe not waited for."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return None
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        return stream.read()


def write_whole(path: Path, content: bytes, mode: int, ids: tuple[int, int] = (-1, -1)) -> None:
    """Write a file, so that it is there whole or not at all.

    :param ids: of owner and group; -1: as the writer's.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chown(temporary, *ids)
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


def loose(directory: Path, modes: tuple[int, int], owner: int, group: int | None) -> list[Path]:
    """Find what others than root, the owner and the group could get at, or those could not.

    :param directory: of the credentials.
    :param modes: of the directory and of a credential.
    :param owner: id of the owner of a credential; the directory is root's.
    :param group: id of the group; without one, any will do where it may nothing.
    :returns: the directory first, or files in it.
    """
    expected = {directory: (modes[0], 0)}
    expected |= {one: (modes[1], owner) for one in directory.iterdir() if not one.is_symlink()}
    found = {path: path.lstat() for path in expected}
    return [
        path
        for path, (mode, user) in expected.items()
        if (found[path].st_mode & 0o7777, found[path].st_uid) != (mode, user)
        or group not in (None, found[path].st_gid)
    ]


def shut(path: Path, mode: int, owner: int, group: int) -> None:
    """Give a file or directory its owner and mode, and nothing that a link leads to."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.fchown(handle, owner, group)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def group_id(name: str | None) -> int | None:
    """Id of a group, if there is one of that name."""
    try:
        return grp.getgrnam(name).gr_gid if name else None
    except KeyError:
        return None


def user_id(name: str | None) -> int | None:
    """Id of a user, if there is one of that name; nobody's name is root's."""
    try:
        return pwd.getpwnam(name).pw_uid if name else 0
    except KeyError:
        return None


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
    directory = Path(module.params["directory"])
    remembered = Path(module.params["generations"]) if module.params["generations"] else None
    shared = module.params["group"]
    modes = (0o750, 0o640) if shared else (0o700, 0o600)
    if module.params["owner"]:
        modes = (0o755, 0o400)
    group, owner = group_id(shared), user_id(module.params["owner"])
    if shared and group is None and not module.check_mode:
        module.fail_json(msg=f"group: '{shared}' is not there; make it first")
    if owner is None and not module.check_mode:
        module.fail_json(msg=f"owner: '{module.params['owner']}' is not there; make it first")
    keeper = -1 if owner is None else owner
    wanted = {
        name: str(content).encode("utf-8") for name, content in module.params["credentials"].items()
    }
    exists = directory.is_dir()
    present = {p.name: read(p) for p in directory.iterdir()} if exists else {}
    before = read_generations(remembered) if remembered else {}
    todo = plan(wanted, present, before)
    forgotten = remembered and (todo.generations != before or not remembered.exists())
    open_paths = loose(directory, modes, keeper, group) if exists else []
    changed = bool(todo.written or todo.removed or open_paths or not exists or forgotten)
    if changed and not module.check_mode:
        if not exists:
            directory.mkdir(mode=0o700, parents=False)
            open_paths = [directory]
        for path in open_paths:
            is_file = path != directory
            shut(path, modes[is_file], keeper if is_file else 0, group or 0)
        if remembered and forgotten:
            text = json.dumps(todo.generations, indent=2, sort_keys=True) + "\n"
            write_whole(remembered, text.encode("utf-8"), 0o600)
        for name in todo.written:
            write_whole(directory / name, wanted[name], modes[1], (keeper, group or 0))
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
