"""Where Spark keeps what does not fit into memory: directories of one session, and their bound."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from mirror_report.config import Spark

PREFIX = "mirror-report-scratch-"
LOCK = "lock"
INTERVAL_SECONDS = 1.0


def places(settings: Spark, environment: Mapping[str, str]) -> list[Path]:
    """The directories below which Spark is to have its own, one per disk; as Spark finds them."""
    chosen = environment.get("SPARK_LOCAL_DIRS") or settings.properties.get("spark.local.dir")
    return [Path(place) for place in (chosen or tempfile.gettempdir()).split(",")]


@contextlib.contextmanager
def directories(below: Sequence[Path]) -> Iterator[list[Path]]:
    """One new directory in each place, as long as this lasts; those of killed processes go.

    Each has a file that its process holds locked: whoever gets the lock knows that nobody is left.

    :raises OSError: one cannot be made.
    """
    with contextlib.ExitStack() as held:
        made = []
        for place in below:
            remove_abandoned(place)
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            held.callback(shutil.rmtree, path, ignore_errors=True)
            lock = held.enter_context((path / LOCK).open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            made.append(path)
        yield made


def remove_abandoned(place: Path) -> None:
    """Remove directories of this user whose process is gone."""
    for path in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.is_symlink() or path.stat().st_uid != os.geteuid():
                continue
            with (path / LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)


def size(below: Sequence[Path]) -> int:
    """Bytes of all files; those that vanish meanwhile count for nothing."""
    total = 0
    for place in below:
        for directory, _, names in os.walk(place):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.lstat(Path(directory, name)).st_size
    return total


@contextlib.contextmanager
def bounded(
    below: Sequence[Path], limit: int | None, stop: Callable[[], object], exceeded: threading.Event
) -> Iterator[None]:
    """Call ``stop``, again and again, while directories hold more than they may.

    :param limit: bytes; ``None``: no bound.
    :param exceeded: set as soon as they do.
    """
    over = threading.Event()

    def watch(most: int) -> None:
        while not over.wait(INTERVAL_SECONDS):
            if size(below) > most:
                exceeded.set()
                with contextlib.suppress(Exception):  # the JVM may be gone
                    stop()

    if limit is None:
        yield
        return
    thread = threading.Thread(target=watch, args=(limit,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
