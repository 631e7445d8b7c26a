#!/usr/bin/python
"""Bring a set of small files, links and directories to what they shall be, all in one call."""

import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_files.paths import PathError, existing, group_id, opened, user_id

DOCUMENTATION = r"""
---
module: deployed_files
short_description: Bring a set of small files, links and directories to what they shall be
description:
  - Makes directories, replaces files as a whole, sets links, and removes what is no longer wanted.
    One call costs a host less than one file of M(ansible.builtin.template).
  - Contents may be shown as a difference; secrets belong into M(service_credentials).
  - Below a directory that is not root's no link is followed. What lies in such a directory is made
    and removed as its owner, belongs to that user, and is never shown.
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
      - What is called like a unit of systemd is a unit. C(systemd-analyze verify) checks new ones
        together before anything is changed, but not in check mode, in which what they start may be
        missing.
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

ANALYZE = "systemd-analyze"
UNITS = (".service", ".timer")
# From this version on it can leave units alone that the checked ones only need.
RECURSIVE_ERRORS = 250
KEYS = ("content", "mode", "owner", "group", "replace")


@dataclass(frozen=True)
class Desired:
    """What a path shall be.

    :param content: ``None``: a directory.
    :param ids: of owner and group; ``None``: there is no such user or group yet.
    :param replace: whether something that is there is brought to this, too.
    """

    path: Path
    content: bytes | None
    mode: int
    ids: tuple[int | None, int | None]
    replace: bool = True


def desired(path: str, entry: Mapping[str, Any], *, directory: bool) -> Desired:
    """Read one value of the options ``directories`` or ``files``.

    :raises PathError: an unknown key, or no content.
    """
    unknown = set(entry) - set(KEYS[1:] if directory else KEYS)
    if unknown or (not directory and "content" not in entry):
        what = f"{', '.join(sorted(unknown))} is not known" if unknown else "has no content"
        raise PathError(f"{path}: {what}")
    content = None if directory else str(entry["content"]).encode("utf-8")
    mode = int(str(entry.get("mode", "0755" if directory else "0644")), 8)
    ids = user_id(entry.get("owner", "root")), group_id(entry.get("group", "root"))
    return Desired(Path(path), content, mode, ids, bool(entry.get("replace", True)))


def is_present(file: Desired) -> bool:
    """Whether a path is what it shall be.

    :raises PathError: a directory is where a file shall be, or the other way round.
    """
    with opened(file.path) as entry:
        status = entry.status() if entry else None
        if entry is None or status is None:
            return False
        directory = file.content is None
        if stat.S_ISLNK(status.st_mode) and directory and entry.owner == 0:
            status = file.path.stat()
        if stat.S_ISDIR(status.st_mode) != directory:
            raise PathError(f"{file.path} is {'no' if directory else 'a'} directory; move it away")
        if not directory and not stat.S_ISREG(status.st_mode):
            return False
        if not file.replace:
            return True
        access = status.st_mode & 0o7777, (status.st_uid, status.st_gid)
        return access == (file.mode, file.ids) and (directory or entry.read() == file.content)


def check_units(files: Iterable[Desired], scratch: str) -> None:
    """Let systemd check the units among new files.

    :param scratch: directory in which nobody else writes.
    :raises PathError: systemd refuses one, or ignores a line of it; the message is systemd's.
    """
    units = [file for file in files if file.path.suffix in UNITS and file.content is not None]
    verify = [ANALYZE, "verify"]
    if not units or shutil.which(ANALYZE) is None:
        return
    version = subprocess.run([ANALYZE, "--version"], capture_output=True, text=True, check=False)
    if int((version.stdout.split() or ["", "0"])[1]) >= RECURSIVE_ERRORS:
        verify.append("--recursive-errors=one")
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        new = [Path(directory, file.path.name) for file in units]
        for path, file in zip(new, units, strict=True):
            path.write_bytes(file.content or b"")
        done = subprocess.run([*verify, *new], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr + done.stdout).replace(f"{directory}/", "").strip()
            names = ", ".join(str(file.path) for file in units)
            raise PathError(f"systemd refuses {names}, so nothing was written: {said}")


def make(file: Desired) -> None:
    """Make a path what it shall be.

    :raises PathError: its user or group is missing, or its directory is another user's.
    """
    owner, group = file.ids
    if owner is None or group is None:
        raise PathError(f"{file.path}: its user or group is not there; make it first")
    if file.content is None:
        _make_above(file.path)
    with existing(file.path) as entry:
        if entry.owner not in (owner, 0):
            if file.replace:
                raise PathError(f"{file.path}: its directory is not root's; name its owner")
            owner, group = -1, -1
        if file.content is None:
            entry.make_directory(file.mode, owner, group)
        else:
            entry.write(file.content, file.mode, owner, group)


def _make_above(path: Path) -> None:
    """Make the directories above a path that are missing."""
    for above in reversed(path.parents[:-1]):
        with opened(above) as entry:
            if entry is not None and entry.status() is None:
                # Whatever umask the connection comes with: readable by all, writable by its owner.
                entry.make_directory(0o755, -1, -1)


def leads_to(path: Path, target: str) -> bool:
    """Whether a path is a link to a target.

    :raises PathError: something else than a link is there; it may be another program's file.
    """
    with opened(path) as entry:
        status = entry.status() if entry else None
        if entry is None or status is None:
            return False
        if not stat.S_ISLNK(status.st_mode):
            raise PathError(f"{path} is no link; move it away")
        return os.readlink(path.name, dir_fd=entry.directory) == target


def exists(path: Path) -> bool:
    """Whether anything lies at a path, even a link that leads nowhere."""
    with opened(path) as entry:
        return entry is not None and entry.status() is not None


def recorded(record: Path) -> set[str]:
    """Paths that a record names; one that cannot be read names none."""
    try:
        paths = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {str(path) for path in paths} if isinstance(paths, list) else set()


def difference(path: Path, content: bytes | None) -> dict[str, str]:
    """What becomes of a file, as Ansible shows differences; ``None``: it is removed."""
    with opened(path) as entry:
        before = (entry.read() if entry and entry.owner == 0 else None) or b""
    return {
        "before": before.decode("utf-8", "replace"),
        "after": (content or b"").decode("utf-8", "replace"),
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
        files = [desired(p, e or {}, directory=True) for p, e in given["directories"].items()]
        files += [desired(p, e, directory=False) for p, e in given["files"].items()]
        if given["record"]:
            names = sorted({*given["files"], *given["links"]})
            unwanted |= recorded(Path(given["record"])) - set(names)
            content = {"content": json.dumps(names, indent=2) + "\n"}
            files.append(desired(given["record"], content, directory=False))
        missing = [file for file in files if not is_present(file)]
        links = {p: to for p, to in given["links"].items() if not leads_to(Path(p), to)}
        removed = [Path(path) for path in sorted(unwanted) if exists(Path(path))]
        shown = [
            *(difference(file.path, file.content) for file in missing if file.content is not None),
            *(difference(path, None) for path in removed),
        ]
        if not module.check_mode:
            check_units(missing, module.tmpdir)
            # First, so that a run that dies in between is finished by the next.
            for path in removed:
                with existing(path) as entry:
                    entry.remove()
            for file in missing:
                make(file)
            for path, target in links.items():
                with existing(Path(path)) as entry:
                    entry.link(target)
    except (PathError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(missing or links or removed),
        written=[*(str(file.path) for file in missing), *links],
        removed=[str(path) for path in removed],
        diff=shown,
    )


if __name__ == "__main__":
    main()
