"""Reading records that anybody may have written, in a child whose memory is bounded.

kafka-python decompresses a batch as a whole and refuses it for one byte it does not expect, so one
producer could end the report, or hide all other topics from it. A child that fails is asked again
for each half of its partitions, until those are known that cannot be read.
"""

import contextlib
import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from mirror_report.kafka.connection import UnreadableError
from mirror_report.model import Place, ReportError

# Of address space beside what the process had when it began to read.
MEMORY_BYTES = 192 * 1024 * 1024
# A child that fails costs its time again, in which halves are asked.
ATTEMPTS = 3

Asked = TypeVar("Asked")
Read = TypeVar("Read")


@dataclass
class Guarded(Generic[Read]):
    """What could be read.

    :param failed: partition -> why nothing of it can be.
    """

    answers: dict[Place, Read] = field(default_factory=dict)
    failed: dict[Place, str] = field(default_factory=dict)


def each(
    read: Callable[[Mapping[Place, Asked]], Guarded[Read]],
    asked: Mapping[Place, Asked],
    timeout_seconds: float,
) -> Guarded[Read]:
    """What a function returns for partitions: for all of them at once, unless it fails for one.

    :param read: takes up to ``timeout_seconds``; what it returns can be pickled. It may find
        itself which partition fails, which costs the others nothing.
    :raises ReportError: as the function does.
    """
    whole: Guarded[Read] = Guarded()
    deadline = time.monotonic() + ATTEMPTS * timeout_seconds
    waiting = [dict(asked)] if asked else []
    while waiting:
        part = waiting.pop()
        left = deadline - time.monotonic()
        if left <= 0:
            whole.failed |= dict.fromkeys(part, "there was no time left to read it")
            continue
        answer, why = _in_child(lambda: read(part), left)  # noqa: B023  it is called at once
        if why is None:
            whole.answers |= answer.answers
            whole.failed |= answer.failed
        elif len(part) == 1:
            whole.failed |= dict.fromkeys(part, why)
        else:
            places = list(part)
            halves = places[: len(places) // 2], places[len(places) // 2 :]
            waiting += [{place: part[place] for place in half} for half in halves]
    return whole


def _in_child(call: Callable[[], Any], timeout_seconds: float) -> tuple[Any, str | None]:
    """What a call returns in a child, or why it does not."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _answer(call, theirs)
    os.close(theirs)
    try:
        answer = b"".join(_received(ours, time.monotonic() + timeout_seconds))
    finally:
        os.close(ours)
        # It may be stuck, or have ended long ago.
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not answer.endswith(DONE):
        return None, "it could not be read in time, or within the memory for it"
    kind, value = pickle.loads(answer[: -len(DONE)])  # noqa: S301  our own child wrote it
    if kind == "refused":
        raise value
    return (value, None) if kind == "read" else (None, value)


# Behind an answer that is whole.
DONE = b"\0whole"


def _answer(call: Callable[[], Any], out: int) -> None:
    """Write what a call returns, and end."""
    try:
        # What is left of the parent must not run here: no cleanup, no traceback.
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        bound = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
        try:
            answer: tuple[str, Any] = ("read", call())
        except UnreadableError as error:
            answer = ("failed", error.message)
        except ReportError as error:
            answer = ("refused", error)
        except MemoryError:
            answer = ("failed", "one batch of it takes more memory than there is for reading")
        except Exception as error:  # whatever a client makes of foreign bytes
            answer = ("failed", f"the client cannot read it ({type(error).__name__}: {error})")
        with open(out, "wb", closefd=False) as stream:
            stream.write(pickle.dumps(answer) + DONE)
    finally:
        os._exit(0)


def _received(descriptor: int, deadline: float) -> Iterator[bytes]:
    """All that is written to a pipe, up to a time."""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left)[0]:
            return
        if not (part := os.read(descriptor, 1 << 16)):
            return
        yield part
