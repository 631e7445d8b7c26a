"""What MirrorMaker 2 and Kafka Connect write into topics: bytes in, plain values out.

Formats of Kafka 3.9 and 4.3: ``MirrorUtils`` and ``OffsetStorageWriter`` (source offsets),
``OffsetSync``, ``Checkpoint``, ``KafkaStatusBackingStore``. Numbers are big-endian,
a STRING is an INT16 length and UTF-8. A record that is not exactly of its format is refused:
positions decide, so none is guessed. Readers pass over it and report it; otherwise anybody who may
write there could hide everything that the mirror wrote.
"""

import json
import re
import struct
from typing import Any

from mirror_report.model import GroupPlace, Place

# Of checkpoints; offset syncs carry none.
VERSION = 0
# Of an INT64, as offsets are.
LARGEST = 2**63 - 1


class FormatError(ValueError):
    """Bytes that are not what the topic should hold."""


def source_offset(
    key: bytes | None, value: bytes | None, connector: str, cluster: str
) -> tuple[Place, int | None] | None:
    """A record of the offsets topic: a place on a source cluster, and the last offset copied.

    :param connector: the name of the one that copies; ``cluster``: alias of the source.
    :returns: ``None`` for other connectors and clusters; as the offset: forgotten (a tombstone).
    :raises FormatError: not of this format.
    """
    parsed = _json(key, "key")
    if not isinstance(parsed, list) or len(parsed) != 2 or not isinstance(parsed[0], str):
        raise FormatError(f"key {_shown(key)} is not [connector, partition]")
    name, place = parsed
    if name != connector:
        return None
    held = None if value is None else _json(value, "value")
    try:
        alias, topic, partition = place["cluster"], place["topic"], place["partition"]
        offset = None if held is None else held["offset"]
    except (KeyError, TypeError):
        raise FormatError(f"{_shown(key)} = {_shown(value)} is no source offset") from None
    if not (isinstance(alias, str) and isinstance(topic, str) and _number(partition)):
        raise FormatError(f"key {_shown(key)} is no place on a source")
    if offset is not None and not _number(offset):
        raise FormatError(f"value {_shown(value)} is no offset")
    return ((topic, partition), offset) if alias == cluster else None


def offset_sync(key: bytes | None, value: bytes | None) -> tuple[Place, tuple[int, ...]]:
    """A record of the offset-syncs topic: a place on the source, and its offsets on both sides.

    :raises FormatError: not of this format.
    """
    topic, rest = _string(key)
    (partition,) = _numbers(">i", rest)
    return (topic, partition), _numbers(">qq", value)


def checkpoint(key: bytes | None, value: bytes | None) -> tuple[GroupPlace, tuple[int, ...]]:
    """A record of the checkpoints topic: a group's place on the target, and offsets on both sides.

    :raises FormatError: not of this format.
    """
    group, rest = _string(key)
    topic, rest = _string(rest)
    (partition,) = _numbers(">i", rest)
    versioned = _versioned(value)
    offsets = _numbers(">qq", versioned[:16])
    _, rest = _string(versioned[16:])
    _numbers("", rest)
    return (group, topic, partition), offsets


def status(
    key: bytes | None, value: bytes | None
) -> tuple[tuple[str, int | None], tuple[str, str | None] | None] | None:
    """A record of the status topic: connector and task, and its state with why it failed.

    :returns: ``None`` for the topics a connector has used; as the task: the connector itself; as
        the state: it is gone (a tombstone).
    :raises FormatError: not of this format.
    """
    try:
        name = (key or b"").decode()
    except UnicodeDecodeError:
        raise FormatError(f"key {_shown(key)} is no text") from None
    if name.startswith("status-topic-"):
        return None
    task = re.fullmatch(r"status-task-(.+)-(\d+)", name)
    subject = task or re.fullmatch(r"status-connector-(.+)", name)
    if subject is None:
        raise FormatError(f"key {_shown(key)} is neither connector nor task")
    about = subject[1], int(task[2]) if task else None
    if value is None:
        return about, None
    held = _json(value, "value")
    if not isinstance(held, dict) or not isinstance(held.get("state"), str):
        raise FormatError(f"value {_shown(value)} has no state")
    trace = held.get("trace")
    if not (isinstance(trace, str | None) and isinstance(held.get("generation", -1), int)):
        raise FormatError(f"value {_shown(value)} has no trace or no generation")
    return about, (held["state"], _reason(trace or ""))


def _reason(trace: str) -> str | None:
    """Why a task failed: the first line of its trace, as Java prints it, and its first cause."""
    first, *rest = trace.splitlines() or [""]
    mark = "Caused by: "
    causes = [line.removeprefix(mark) for line in rest if line.startswith(mark)]
    return f"{first}; first cause: {causes[-1]}" if causes else first or None


def _json(data: bytes | None, what: str) -> Any:
    try:
        return json.loads(data or b"")
    except (ValueError, RecursionError):
        raise FormatError(f"{what} {_shown(data)} is no JSON") from None


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _string(data: bytes | None) -> tuple[str, bytes]:
    """A STRING and what follows it."""
    data = data or b""
    length = int.from_bytes(data[:2], "big", signed=True)
    text = data[2 : 2 + length]
    if len(data) < 2 or len(text) != length:
        raise FormatError(f"{_shown(data)} does not begin with a STRING")
    try:
        return text.decode(), data[2 + length :]
    except UnicodeDecodeError:
        raise FormatError(f"{_shown(data)} does not begin with UTF-8") from None


def _numbers(layout: str, data: bytes | None) -> tuple[int, ...]:
    """Numbers and nothing after them."""
    if len(data or b"") != struct.calcsize(layout):
        raise FormatError(f"{_shown(data)} has not {struct.calcsize(layout)} bytes")
    return struct.unpack(layout, data or b"")


def _versioned(data: bytes | None) -> bytes:
    """What follows the version."""
    data = data or b""
    if data[:2] != VERSION.to_bytes(2, "big"):
        raise FormatError(f"{_shown(data)} has not version {VERSION}")
    return data[2:]


def _shown(data: bytes | None) -> str:
    return "null" if data is None else repr(data[:80])
