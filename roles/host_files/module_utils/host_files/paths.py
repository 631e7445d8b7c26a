"""Paths on a host, reached without following a link that another user could have set.

Below a directory that is another user's, what is done is done as that user.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import json
import os
import pwd
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# Symbolic links that are followed in one path, as many as the Linux kernel follows.
LINKS = 40
# Flags of opening something: a link is not followed, and a pipe not waited for.
SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Group of a user id without an account.
NOBODY = 65534


class PathError(ValueError):
    """What is asked for, or what is there, does not allow it; the message names the path."""


@dataclass(frozen=True)
class Entry:
    """A name in a directory that is held open.

    :param path: the whole path, for messages.
    :param directory: file descriptor of the directory.
    :param owner: user id of the directory's owner.
    """

    path: Path
    directory: int
    owner: int

    def status(self) -> os.stat_result | None:
        """What lies there, a link itself; ``None``: nothing."""
        try:
            return os.stat(self.path.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, flags: int, mode: int = 0) -> int:
        """Open what lies there, unless it is a link."""
        return os.open(self.path.name, flags | SAFELY, mode, dir_fd=self.directory)

    def read(self) -> bytes | None:
        """Content of a file; ``None``: there is none."""
        status = self.status()
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        with os.fdopen(self.open(os.O_RDONLY), "rb") as stream:
            return stream.read()

    def write(self, content: bytes, mode: int, owner: int, group: int) -> None:
        """Replace what lies there by a file: the old or the new is there whole, at any time.

        :param owner: user id; -1: the writer's.
        :param group: group id; -1: the writer's.
        """
        temporary = self._temporary()
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(temporary.open(flags, 0o600), "wb") as stream:
                stream.write(content)
                os.fchown(stream.fileno(), owner, group)
                os.fchmod(stream.fileno(), mode)
                stream.flush()
                os.fsync(stream.fileno())
            self._replace_by(temporary)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                temporary.remove()
            raise

    def link(self, target: str) -> None:
        """Make it a link; it leads to the old target or the new one at any time."""
        temporary = self._temporary()
        os.symlink(target, temporary.path.name, dir_fd=self.directory)
        self._replace_by(temporary)

    def make_directory(self, mode: int, owner: int, group: int) -> None:
        """Make it a directory, or give the one that is there this mode, owner and group."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.path.name, 0o700, dir_fd=self.directory)
        # Among root's own files a link may stand for a directory.
        flags = os.O_RDONLY | os.O_DIRECTORY | (0 if self.owner == 0 else SAFELY)
        handle = os.open(self.path.name, flags, dir_fd=self.directory)
        set_access(handle, mode, owner, group)

    def remove(self) -> None:
        """Remove what lies there, unless it is a directory."""
        os.unlink(self.path.name, dir_fd=self.directory)

    def _temporary(self) -> Entry:
        return replace(self, path=self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}"))

    def _replace_by(self, other: Entry) -> None:
        os.rename(
            other.path.name, self.path.name, src_dir_fd=self.directory, dst_dir_fd=self.directory
        )


def user_id(name: str) -> int | None:
    """Id of a user, ``None`` if there is none of that name."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def group_id(name: str) -> int | None:
    """Id of a group, ``None`` if there is none of that name."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


@contextlib.contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Have the rights of a user id inside the block: that user gains nothing by what is done.

    Changes nothing for root's own id, or where the process is not root.
    """
    if os.geteuid() != 0 or user == 0:
        yield
        return
    try:
        account = pwd.getpwuid(user)
        group, groups = account.pw_gid, os.getgrouplist(account.pw_name, account.pw_gid)
    except KeyError:
        group, groups = NOBODY, [NOBODY]
    own_groups, own_group = os.getgroups(), os.getegid()
    os.setgroups(groups)
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own_group)
        os.setgroups(own_groups)


def set_access(handle: int, mode: int, owner: int, group: int) -> None:
    """Give what is open its mode, owner and group, and close it."""
    try:
        os.fchown(handle, owner, group)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Entry | None]:
    """Open the directory that a path lies in, and act as its owner inside the block.

    Links are followed as long as every directory above them is root's. Below, another user could
    have set one.

    :returns: ``None``: the directory is not there.
    :raises PathError: a link in a directory that is not root's.
    :raises OSError: from the block too, always with the path as file name.
    """
    names = list(reversed(path.parent.parts[1:]))
    handles = [os.open("/", os.O_RDONLY | os.O_DIRECTORY)]
    roots = True
    followed = 0
    try:
        while names:
            name = names.pop()
            roots = roots and os.fstat(handles[-1]).st_uid == 0
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            try:
                handles.append(os.open(name, flags, dir_fd=handles[-1]))
            except FileNotFoundError:
                yield None
                return
            except OSError as error:
                if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
                    raise
                followed += 1
                names += _target(path, name, handles, follow=roots and followed < LINKS)
        owner = os.fstat(handles[-1]).st_uid
        with acting_as(owner):
            yield Entry(path, handles[-1], owner)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        for handle in handles:
            os.close(handle)


@contextlib.contextmanager
def existing(path: Path) -> Iterator[Entry]:
    """Open the directory that a path lies in, as :func:`opened` does.

    :raises PathError: the directory is not there.
    """
    with opened(path) as entry:
        if entry is None:
            raise PathError(f"{path}: its directory is not there; make it first")
        yield entry


def _target(path: Path, name: str, handles: list[int], *, follow: bool) -> list[str]:
    """Names in the target of a link, the last first; an absolute one leaves / open alone."""
    try:
        target = os.readlink(name, dir_fd=handles[-1])
    except OSError as error:
        raise PathError(f"{path}: {name} is no directory; move it away") from error
    if not follow:
        raise PathError(f"{path}: {name} is a link that is not root's; move it away")
    if target.startswith("/"):
        while len(handles) > 1:
            os.close(handles.pop())
    return [part for part in reversed(target.split("/")) if part not in {"", "."}]


def read_object(path: Path) -> dict[str, Any] | None:
    """Read what a role remembers on a host as a JSON object; ``None``: nothing that can be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
