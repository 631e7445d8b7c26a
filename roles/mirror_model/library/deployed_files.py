#!/usr/bin/python
"""Bring a set of small files, links and directories to what they shall be, all in one call."""

from __future__ import annotations

import grp
import json
import os
import pwd
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: deployed_files
short_description: Bring a set of small files, links and directories to what they shall be
description:
  - Makes directories, replaces files as a whole, sets links, and removes what is no longer wanted.
    One call costs a host less than one file of M(ansible.builtin.template).
  - Contents may be shown as a difference; secrets belong into M(service_credentials).
options:
  directories:
    description:
      - Path to mode (default 0755), owner and group (default root). Those above are made, too.
      - With C(replace) false a directory that is there stays as it is.
    type: dict
    default: {}
  files:
    description:
      - Path to content, mode (default 0644), owner and group (default root).
      - With C(replace) false a file that is there stays as it is.
    type: dict
    default: {}
  links:
    description: Path of a symbolic link to what it leads to.
    type: dict
    default: {}
  absent:
    description: Files that shall not be there.
    type: list
    elements: path
    default: []
  record:
    description:
      - JSON file, made by the module, that names the files and links of the last call with it.
      - What it names and is no longer wanted is removed.
    type: path
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: Write configuration and unit
  deployed_files:
    directories:
      /etc/mirror-report: {}
    files:
      /etc/mirror-report/config.yaml:
        content: "{{ lookup('ansible.builtin.template', 'config.yaml.j2') }}"
        group: mirror-report
        mode: "0640"
    record: /etc/mirror-report/deployed.json
"""

RETURN = r"""
written:
  description: Paths that are new or have changed, in content, mode or owner.
  returned: always
  type: list
removed:
  description: Files that are no longer wanted.
  returned: always
  type: list
"""

Ids = tuple[int | None, int | None]
KEYS = ("content", "mode", "owner", "group", "replace")


class WrongError(ValueError):
    """What is asked for, or what is there, does not allow it; the message names the path."""


@dataclass(frozen=True)
class Wanted:
    """What a path shall be.

    :param content: ``None``: a directory.
    :param ids: of owner and group; ``None``: there is no such user or group yet.
    :param replace: whether one that is there is brought to this, too.
    """

    path: Path
    content: bytes | None
    mode: int
    ids: Ids
    replace: bool = True


def wanted(path: str, entry: Mapping[str, Any], *, directory: bool) -> Wanted:
    """Read one entry.

    :raises WrongError: an unknown key, or no content.
    """
    unknown = set(entry) - set(KEYS[1:] if directory else KEYS)
    if unknown or (not directory and "content" not in entry):
        what = f"{', '.join(sorted(unknown))} is not known" if unknown else "has no content"
        raise WrongError(f"{path}: {what}")
    content = None if directory else str(entry["content"]).encode("utf-8")
    mode = int(str(entry.get("mode", "0755" if directory else "0644")), 8)
    owner, group = entry.get("owner", "root"), entry.get("group", "root")
    ids = (user_id(owner), group_id(group))
    return Wanted(Path(path), content, mode, ids, bool(entry.get("replace", True)))


def user_id(name: str) -> int | None:
    """Id of a user, if there is one of that name."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def group_id(name: str) -> int | None:
    """Id of a group, if there is one of that name."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def as_wanted(one: Wanted) -> bool:
    """Whether a path is what it shall be.

    :raises WrongError: a directory is where a file shall be, or the other way round.
    """
    directory = one.content is None
    if not one.path.exists() or (one.path.is_symlink() and not directory):
        return False
    if one.path.is_dir() != directory:
        raise WrongError(f"{one.path} is {'no' if directory else 'a'} directory; move it away")
    if not one.replace:
        return True
    found = one.path.stat()
    same = (found.st_mode & 0o7777, (found.st_uid, found.st_gid)) == (one.mode, one.ids)
    return same and (directory or one.path.read_bytes() == one.content)


def make(one: Wanted) -> None:
    """Make a path what it shall be; a file is there whole, the old or the new, at any time.

    :raises WrongError: its user or group is missing.
    """
    if None in one.ids:
        raise WrongError(f"{one.path}: its user or group is not there; make it first")
    owner, group = (-1 if one_id is None else one_id for one_id in one.ids)
    if one.content is None:
        one.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(one.path, owner, group)
        one.path.chmod(one.mode)
        return
    handle, temporary = tempfile.mkstemp(dir=one.path.parent, prefix=f".{one.path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(one.content)
            os.fchown(stream.fileno(), owner, group)
            os.fchmod(stream.fileno(), one.mode)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(one.path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def leads_to(path: Path, target: str) -> bool:
    """Whether a path is a link to a target.

    :raises WrongError: something else than a link is there; it may be somebody's file.
    """
    if path.is_symlink():
        return str(path.readlink()) == target
    if path.exists():
        raise WrongError(f"{path} is no link; move it away")
    return False


def link(path: Path, target: str) -> None:
    """Set a link; it leads to the old target or the new one at any time."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.symlink_to(target)
    temporary.replace(path)


def recorded(record: Path) -> set[str]:
    """Read the paths of a record; one that cannot be read names none."""
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {str(path) for path in found} if isinstance(found, list) else set()


def difference(path: Path, content: bytes | None) -> dict[str, str]:
    """Show what becomes of a file, in Ansible's form; ``None``: it goes."""
    before = path.read_bytes() if path.is_file() else b""
    after = content or b""
    return {
        "before": before.decode("utf-8", "replace"),
        "after": after.decode("utf-8", "replace"),
        "before_header": str(path),
        "after_header": str(path),
    }


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={
            "directories": {"type": "dict", "default": {}},
            "files": {"type": "dict", "default": {}},
            "links": {"type": "dict", "default": {}},
            "absent": {"type": "list", "elements": "path", "default": []},
            "record": {"type": "path"},
        },
        supports_check_mode=True,
        no_log=True,  # contents would fill the host's journal
    )
    given = module.params
    unwanted = set(given["absent"])
    try:
        everything = [wanted(p, e or {}, directory=True) for p, e in given["directories"].items()]
        everything += [wanted(p, e, directory=False) for p, e in given["files"].items()]
        if given["record"]:
            names = sorted({*given["files"], *given["links"]})
            unwanted |= recorded(Path(given["record"])) - set(names)
            entry = {"content": json.dumps(names, indent=2) + "\n"}
            everything.append(wanted(given["record"], entry, directory=False))
        todo = [one for one in everything if not as_wanted(one)]
        links = {p: to for p, to in given["links"].items() if not leads_to(Path(p), to)}
        gone = [Path(path) for path in sorted(unwanted) if os.path.lexists(path)]
        shown = [difference(one.path, one.content) for one in todo if one.content is not None]
        shown += [difference(path, None) for path in gone]
        if not module.check_mode:
            # First, so that a run that dies in between is finished by the next.
            for path in gone:
                path.unlink()
            for one in todo:
                make(one)
            for path, target in links.items():
                link(Path(path), target)
    except (WrongError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(todo or links or gone),
        written=[*(str(one.path) for one in todo), *links],
        removed=[str(path) for path in gone],
        diff=shown,
    )


if __name__ == "__main__":
    main()
