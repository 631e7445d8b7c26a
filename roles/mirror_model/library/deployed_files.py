#!/usr/bin/python
"""Bring a set of small files, links and directories to what they shall be, all in one call."""

from __future__ import annotations

import contextlib
import errno
import grp
import json
import os
import pwd
import secrets
import stat
from collections.abc import Iterator, Mapping
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
  - Below a directory that is not root's no link is followed. What lies in such a directory is made
    and removed as its owner, belongs to him, and is never shown.
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


@dataclass(frozen=True)
class Place:
    """The directory that a path lies in, held open: what is done there cannot be led elsewhere.

    :param owner: of the directory.
    """

    path: Path
    directory: int
    owner: int

    def look(self) -> os.stat_result | None:
        """What lies there, a link itself; ``None``: nothing."""
        try:
            return os.stat(self.path.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, flags: int, mode: int = 0) -> int:
        """Open what lies there; a link is not followed, and a pipe not waited for."""
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(self.path.name, flags, mode, dir_fd=self.directory)

    def read(self) -> bytes | None:
        """Content of a file; ``None``: there is none."""
        found = self.look()
        if found is None or not stat.S_ISREG(found.st_mode):
            return None
        with os.fdopen(self.open(os.O_RDONLY), "rb") as stream:
            return stream.read()

    def beside(self, name: str) -> Place:
        """Another name in the same directory."""
        return Place(self.path.with_name(name), self.directory, self.owner)

    def replace_by(self, other: Place) -> None:
        """Take what lies under another name of the directory."""
        os.rename(
            other.path.name, self.path.name, src_dir_fd=self.directory, dst_dir_fd=self.directory
        )

    def remove(self) -> None:
        """Remove what lies there, unless it is a directory."""
        os.unlink(self.path.name, dir_fd=self.directory)


@contextlib.contextmanager
def at(path: Path) -> Iterator[Place | None]:
    """Go where a path lies, and be for the time whoever owns that directory.

    Links are followed as long as all above them is root's. Below, somebody else could set one.

    :returns: ``None``: the directory is not there.
    :raises WrongError: a link in a directory that is not root's.
    """
    todo = list(reversed(path.parent.parts[1:]))
    opened = [os.open("/", os.O_RDONLY | os.O_DIRECTORY)]
    ours = True
    followed = 0
    try:
        while todo:
            name = todo.pop()
            if name == "..":
                opened.append(os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=opened[-1]))
                continue
            ours = ours and os.fstat(opened[-1]).st_uid == 0
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            try:
                opened.append(os.open(name, flags, dir_fd=opened[-1]))
            except FileNotFoundError:
                yield None
                return
            except OSError as error:
                if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
                    raise
                followed += 1
                todo += _led_to(path, name, opened, ours=ours and followed < LINKS)
        owner = os.fstat(opened[-1]).st_uid
        with acting_as(owner):
            yield Place(path, opened[-1], owner)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        for one in opened:
            os.close(one)


def _led_to(path: Path, name: str, opened: list[int], *, ours: bool) -> list[str]:
    """Parts of what a link leads to, the last first; one that begins at / leaves / opened alone."""
    try:
        target = os.readlink(name, dir_fd=opened[-1])
    except OSError as error:
        raise WrongError(f"{path}: {name} is no directory; move it away") from error
    if not ours:
        raise WrongError(f"{path}: {name} is a link that is not root's; move it away")
    if target.startswith("/"):
        while len(opened) > 1:
            os.close(opened.pop())
    return [part for part in reversed(target.split("/")) if part not in {"", "."}]


LINKS = 40
"""As many as the kernel follows."""


@contextlib.contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Be a user for the time: he gains nothing by what is done in his name."""
    if os.geteuid() != 0 or user == 0:
        yield
        return
    try:
        known = pwd.getpwuid(user)
        group, groups = known.pw_gid, os.getgrouplist(known.pw_name, known.pw_gid)
    except KeyError:
        group, groups = 65534, [65534]
    before = os.getgroups(), os.getegid()
    os.setgroups(groups)
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(before[1])
        os.setgroups(before[0])


def as_wanted(one: Wanted) -> bool:
    """Whether a path is what it shall be.

    :raises WrongError: a directory is where a file shall be, or the other way round.
    """
    with at(one.path) as place:
        found = place.look() if place else None
        if place is None or found is None:
            return False
        directory = one.content is None
        if stat.S_ISLNK(found.st_mode) and directory and place.owner == 0:
            found = one.path.stat()
        if stat.S_ISDIR(found.st_mode) != directory:
            raise WrongError(f"{one.path} is {'no' if directory else 'a'} directory; move it away")
        if not directory and not stat.S_ISREG(found.st_mode):
            return False
        if not one.replace:
            return True
        same = (found.st_mode & 0o7777, (found.st_uid, found.st_gid)) == (one.mode, one.ids)
        return same and (directory or place.read() == one.content)


def make(one: Wanted) -> None:
    """Make a path what it shall be; a file is there whole, the old or the new, at any time.

    :raises WrongError: its user or group is missing, or its directory is another user's.
    """
    if None in one.ids:
        raise WrongError(f"{one.path}: its user or group is not there; make it first")
    owner, group = (-1 if one_id is None else one_id for one_id in one.ids)
    if one.content is None:
        _make_above(one.path)
    with at(one.path) as place:
        if place is None:
            raise WrongError(f"{one.path}: its directory is not there; make it first")
        if place.owner not in (owner, 0):
            if one.replace:
                raise WrongError(f"{one.path}: its directory is not root's; name its owner")
            owner, group = -1, -1
        if one.content is None:
            with contextlib.suppress(FileExistsError):
                os.mkdir(one.path.name, 0o700, dir_fd=place.directory)
            flags = os.O_RDONLY | os.O_DIRECTORY
            if place.owner == 0:
                # As everywhere, a link of root's may stand for a directory.
                folder = os.open(one.path.name, flags, dir_fd=place.directory)
            else:
                folder = place.open(flags)
            try:
                os.fchown(folder, owner, group)
                os.fchmod(folder, one.mode)
            finally:
                os.close(folder)
            return
        temporary = place.beside(f".{one.path.name}.{secrets.token_hex(8)}")
        try:
            with os.fdopen(temporary.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as to:
                to.write(one.content)
                os.fchown(to.fileno(), owner, group)
                os.fchmod(to.fileno(), one.mode)
                to.flush()
                os.fsync(to.fileno())
            place.replace_by(temporary)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                temporary.remove()
            raise


def _make_above(path: Path) -> None:
    """Make the directories above one that are missing."""
    for above in reversed(path.parents[:-1]):
        with at(above) as place:
            if place is not None and place.look() is None:
                os.mkdir(above.name, 0o777, dir_fd=place.directory)


def leads_to(path: Path, target: str) -> bool:
    """Whether a path is a link to a target.

    :raises WrongError: something else than a link is there; it may be somebody's file.
    """
    with at(path) as place:
        found = place.look() if place else None
        if place is None or found is None:
            return False
        if not stat.S_ISLNK(found.st_mode):
            raise WrongError(f"{path} is no link; move it away")
        return os.readlink(path.name, dir_fd=place.directory) == target


def link(path: Path, target: str) -> None:
    """Set a link; it leads to the old target or the new one at any time."""
    with at(path) as place:
        if place is None:
            raise WrongError(f"{path}: its directory is not there; make it first")
        temporary = place.beside(f".{path.name}.{secrets.token_hex(8)}")
        os.symlink(target, temporary.path.name, dir_fd=place.directory)
        place.replace_by(temporary)


def is_there(path: Path) -> bool:
    """Whether something lies at a path, and be it a link that leads nowhere."""
    with at(path) as place:
        return place is not None and place.look() is not None


def remove(path: Path) -> None:
    """Remove a file or a link."""
    with at(path) as place:
        if place is not None:
            place.remove()


def recorded(record: Path) -> set[str]:
    """Read the paths of a record; one that cannot be read names none."""
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {str(path) for path in found} if isinstance(found, list) else set()


def difference(path: Path, content: bytes | None) -> dict[str, str]:
    """Show what becomes of a file, in Ansible's form; ``None``: it goes."""
    with at(path) as place:
        before = (place.read() if place and place.owner == 0 else None) or b""
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
        gone = [Path(path) for path in sorted(unwanted) if is_there(Path(path))]
        shown = [difference(one.path, one.content) for one in todo if one.content is not None]
        shown += [difference(path, None) for path in gone]
        if not module.check_mode:
            # First, so that a run that dies in between is finished by the next.
            for path in gone:
                remove(path)
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
