"""The state directory: manifests, reports and the lock.

Every manifest is a JSON file replaced as a whole (temporary file, fsync, rename, fsync of the
directory), so a run that dies leaves either the old state or the new one.
"""

import contextlib
import errno
import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from io import FileIO
from pathlib import Path, PurePath
from typing import Any

from mirror_report.model import ReportError

SCHEMA = 1
REPORTS_KEPT = 30
# A report of 10,000 topics is a tenth of it; who owns the directory could put anything there.
REPORT_BYTES = 128 * 2**20
# What a web server shows.
PUBLISHED = ("latest.html", "latest.json")


# Manifests that a run can do without, and what their loss costs.
EXPENDABLE = {
    "topics": "a topic that was created again since the last run is not noticed by its id",
    "losses": "what the source had dropped by now is not reported any more",
    "mirrors": "the mirror's own topics are read again",
    "shifts": "this run has no earlier offsets to compare with",
    "survey": "this run reports topics as if for the first time",
    "groups": "this run reports groups as if for the first time",
}


def start_again(directory: Path) -> str:
    """How to start again: the parity state is left behind, the baseline kept."""
    return (
        f"`mv {directory}/parity.json {directory}/parity --backup=numbered -t /var/tmp`, then "
        "mirror-report run compares everything since the baseline and names once what the last "
        "report knew to be lost (mirror-report show has it until then)"
    )


def last_report_name(suffix: str, flow: str | None) -> str:
    """Name of the last report; that of one flow does not stand for all of them."""
    return f"latest.{suffix}" if flow is None else f"latest-{flow}.{suffix}"


class StateError(ReportError):
    """The report's own state cannot be used."""

    kind = "state"


class LockedError(StateError):
    """Another run holds the state directory."""


class Store:
    """What the report remembers, below one directory.

    :param directory: the state directory; it must exist and be writable by the report's user.

    Manifests in use: ``baseline`` (where verification starts), ``topics`` (ids of topics),
    ``losses`` (records that were never mirrored), ``mirrors`` (what was read of a mirror's own
    topics), ``shifts`` (offset shifts at the last run), ``survey`` and ``groups`` (what the last
    run reported of topics and groups), ``parity`` (digests verified so far; written by parity),
    ``marks`` (what stands for the ids of topics that have none).
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.parity_directory = directory / "parity"
        self.reports_directory = directory / "reports"

    def load(self, name: str) -> dict[str, Any]:
        """One manifest; empty if it was never written.

        One of :data:`EXPENDABLE` that is damaged is moved aside: it is empty from then on.

        :raises StateError: unreadable, damaged, or written by another release.
        """
        path = self._manifest(name)
        try:
            document = json.loads(read_below(self.directory, path.name))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise StateError(f"{path} is damaged", self._go_on_without(name)) from error
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise StateError(
                f"{path} has schema {schema!r}, this release knows {SCHEMA}",
                f"Install the release that wrote it, or do without it. {self._go_on_without(name)}",
            )
        data = document.get("data")
        if not isinstance(data, dict):
            raise StateError(f"{path} is damaged: its data is not a map", self._go_on_without(name))
        return data

    def commit(self, name: str, data: Mapping[str, Any]) -> None:
        """Replace one manifest as a whole.

        :raises StateError: it cannot be written.
        """
        text = json.dumps({"schema": SCHEMA, "data": data}, sort_keys=True, ensure_ascii=False)
        write_atomically(self._manifest(name), text + "\n")

    def changing(self, name: str) -> AbstractContextManager[None]:
        """Keep other processes from changing a manifest between its load and its commit.

        :raises StateError: the directory cannot be written.
        """
        return alone(self.directory / f"{name}.lock")

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the state directory alone, however the run was started.

        :raises LockedError: another process holds it; the message names it.
        """
        path = self.directory / "lock"
        with _open_lock(path) as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                handle.seek(0)
                holder = handle.read().decode(errors="replace").strip() or "another process"
                raise LockedError(
                    f"{self.directory} is in use: {holder}",
                    "Wait for it to end, or watch it with `journalctl -fu mirror-report`",
                ) from None
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            try:
                handle.truncate(0)
                handle.write(f"process {os.getpid()}, since {since}\n".encode())
            except OSError as error:
                raise unwritable(path, error) from error
            try:
                yield
            finally:
                handle.truncate(0)

    def write_report(self, name: str, text: str) -> None:
        """Publish one rendered report, readable by the report's group."""
        write_atomically(self.reports_directory / name, text)

    def has_report(self, run_id: str) -> bool:
        """Whether a run got as far as its report."""
        return (self.reports_directory / f"{run_id}.json").exists()

    def report(self, name: str) -> str:
        """Text of one rendered report.

        :raises OSError: it does not exist, or cannot be read; ``strerror`` says why.
        """
        path = f"{self.reports_directory.name}/{name}"
        return read_below(self.directory, path, most_bytes=REPORT_BYTES)

    def publish(self, directory: str, names: Iterable[str]) -> None:
        """Copy rendered reports to where a web server shows them.

        The directory's own mode says who may read it.

        :raises StateError: they cannot be read or written.
        :raises FileNotFoundError: there is no report yet.
        """
        for name in names:
            try:
                text = self.report(name)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise StateError(
                    f"{self.reports_directory / name} cannot be read: {error.strerror}"
                ) from error
            write_atomically(Path(directory) / name, text, 0o644)

    def prune_reports(self, keep: int = REPORTS_KEPT) -> None:
        """Drop all but the newest dated reports; run ids sort by time."""
        for path in sorted(self.reports_directory.glob("[0-9]*.json"))[:-keep]:
            path.unlink(missing_ok=True)

    def _go_on_without(self, name: str) -> str:
        """How to go on without a manifest, or what it costs to have moved it aside."""
        path = self._manifest(name)
        if name == "parity":
            return f"Start again: {start_again(self.directory)}"
        if name not in EXPENDABLE:
            return (
                f"Move it away: `mv {path} /var/tmp/`, then record where verification starts: "
                "mirror-report baseline --full-history"
            )
        aside = path.with_name(f"{path.name}.damaged")
        with contextlib.suppress(OSError):
            path.replace(aside)
        return f"Nothing: it was moved to {aside}, and {EXPENDABLE[name]}"

    def _manifest(self, name: str) -> Path:
        return self.directory / f"{name}.json"


def open_plain(path: str | os.PathLike[str], flags: int, dir_fd: int | None = None) -> int:
    """Open a file, also as ``opener`` of :func:`open`: follow no link, wait for no pipe.

    :raises OSError: as of :func:`os.open`, or it is no file; ``strerror`` says so.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags, 0o666, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise OSError(error.errno, "a link stands there, and none is followed") from error
        raise
    kind = stat.S_ISDIR if flags & os.O_DIRECTORY else stat.S_ISREG
    if not kind(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no file")
    return descriptor


def read_below(
    directory: Path, name: str, errors: str = "strict", most_bytes: int | None = None
) -> str:
    """Text of a file below a directory that may be another user's.

    That user must not lead a reader elsewhere: no link below the directory is followed, and what is
    read belongs to the owner of the directory, unless that is the reader.

    :param name: relative to the directory.
    :param errors: what becomes of bytes that are no text, as of :meth:`bytes.decode`.
    :param most_bytes: a larger file is not read.
    :raises OSError: it does not exist, or must not be read; ``strerror`` says why.
    """
    *folders, last = PurePath(name).parts
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        owner = os.fstat(place).st_uid
        for folder in folders:
            below = open_plain(folder, os.O_RDONLY | os.O_DIRECTORY, place)
            os.close(place)
            place = below
        descriptor = open_plain(last, os.O_RDONLY, place)
    finally:
        os.close(place)
    with os.fdopen(descriptor, "rb") as handle:
        if os.geteuid() != owner != os.fstat(descriptor).st_uid:
            raise OSError(errno.EINVAL, "it is not of the owner of its directory")
        # Its owner may let it grow meanwhile, so the size is that of what was read.
        data = handle.read(-1 if most_bytes is None else most_bytes + 1)
    if most_bytes is not None and len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes // 2**20} MiB")
    return data.decode("utf-8", errors)


def write_atomically(path: Path, text: str, mode: int = 0o640) -> None:
    """Replace a file as a whole; a crash leaves the old one.

    :raises StateError: it cannot be written.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            os.fchmod(handle.fileno(), mode)
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        Path(temporary).replace(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise unwritable(path, error) from error


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock for a moment; wait for another holder.

    :raises StateError: it cannot be written.
    """
    with _open_lock(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _open_lock(path: Path) -> FileIO:
    """Open a lock's file, unbuffered: what a full disk refuses is not tried again at its end."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    except OSError as error:
        raise unwritable(path, error) from error
    return FileIO(descriptor, "ab+")


def unwritable(path: Path, error: OSError) -> StateError:
    """The error of a file of the state that cannot be written."""
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return StateError(
        f"{path} cannot be written: {error.strerror}",
        "Free some space there" if full else "Run as root or as the report's user",
    )
