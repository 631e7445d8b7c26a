"""Records of MirrorMaker 2 and Kafka Connect, as their own serializers write them."""

import json
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_report.kafka import record_formats
from mirror_report.kafka.record_formats import FormatError

source_offset = partial(
    record_formats.source_offset, connector="MirrorSourceConnector", cluster="east"
)
PLACE = b'["MirrorSourceConnector",{"cluster":"east","partition":1,"topic":"t1"}]'
NAMES = st.text(st.characters(codec="utf-8"), max_size=40)
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(-1, 2**63 - 1)


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def test_source_offset_of_a_real_record() -> None:
    assert source_offset(PLACE, b'{"offset":499}') == (("t1", 1), 499)
    assert source_offset(PLACE, b'{"offset":499}', cluster="west") is None


def test_forgotten_source_offset_has_none() -> None:
    assert source_offset(PLACE, None) == (("t1", 1), None)


@pytest.mark.parametrize(
    "key",
    [
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"east","targetClusterAlias":"west"}]',
        b'["MirrorCheckpointConnector",{"partition":0,"topic":"t","group":"g"}]',
    ],
)
def test_offsets_of_other_connectors_are_of_no_interest(key: bytes) -> None:
    assert source_offset(key, b'{"offset":0}') is None


@given(topic=NAMES, cluster=NAMES, partition=INT32, offset=st.none() | st.integers(0, 2**63 - 1))
def test_source_offsets_come_back(
    topic: str, cluster: str, partition: int, offset: int | None
) -> None:
    place = {"cluster": cluster, "partition": partition, "topic": topic}
    key = json.dumps(["MirrorSourceConnector", place], ensure_ascii=False).encode()
    value = None if offset is None else json.dumps({"offset": offset}).encode()
    assert source_offset(key, value, cluster=cluster) == ((topic, partition), offset)


def test_offset_sync_of_a_real_record() -> None:
    key, value = b"\x00\x02t1\x00\x00\x00\x01", b"\x00" * 7 + b"e" + b"\x00" * 7 + b"d"
    assert record_formats.offset_sync(key, value) == (("t1", 1), (101, 100))


@given(topic=NAMES, partition=INT32, upstream=INT64, downstream=INT64)
def test_offset_syncs_come_back(topic: str, partition: int, upstream: int, downstream: int) -> None:
    key = string(topic) + struct.pack(">i", partition)
    value = struct.pack(">qq", upstream, downstream)
    assert record_formats.offset_sync(key, value) == ((topic, partition), (upstream, downstream))


@given(group=NAMES, topic=NAMES, partition=INT32, upstream=INT64, downstream=INT64, metadata=NAMES)
def test_checkpoints_come_back(
    group: str, topic: str, partition: int, upstream: int, downstream: int, metadata: str
) -> None:
    key = string(group) + string(topic) + struct.pack(">i", partition)
    value = struct.pack(">hqq", 0, upstream, downstream) + string(metadata)
    assert record_formats.checkpoint(key, value) == (
        (group, topic, partition),
        (upstream, downstream),
    )


def test_status_of_real_records() -> None:
    value = b'{"state":"FAILED","trace":"a.B: why\\n\\tat c","worker_id":"w","generation":4}'
    assert record_formats.status(b"status-task-MirrorSourceConnector-12", value) == (
        ("MirrorSourceConnector", 12),
        ("FAILED", "a.B: why"),
    )
    value = b'{"state":"RUNNING","trace":null,"worker_id":"w","generation":3,"version":"4.3.1"}'
    assert record_formats.status(b"status-connector-MirrorSourceConnector", value) == (
        ("MirrorSourceConnector", None),
        ("RUNNING", None),
    )


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (None, None),
        ("", None),
        ("a.B: why\n\tat c", "a.B: why"),
        ("a.B: in vain\n\tat c\nCaused by: d.E: so\n\tat f\nCaused by: g.H: why\n\t... 2 more\n",
         "a.B: in vain; first cause: g.H: why"),
    ],
)  # fmt: skip
def test_the_reason_of_a_failure_has_its_first_cause(trace: str | None, reason: str | None) -> None:
    value = json.dumps({"state": "FAILED", "trace": trace}).encode()
    assert record_formats.status(b"status-task-c-0", value) == (("c", 0), ("FAILED", reason))


def test_status_of_what_is_gone_is_none() -> None:
    found = record_formats.status(b"status-task-MirrorSourceConnector-1", None)
    assert found == (("MirrorSourceConnector", 1), None)


def test_topics_a_connector_used_are_no_status() -> None:
    assert record_formats.status(b"status-topic-t:connector-MirrorSourceConnector", b"{}") is None


@pytest.mark.parametrize(
    ("decode", "key", "value"),
    [
        (source_offset, None, b'{"offset":1}'),
        (source_offset, b"\xff", b'{"offset":1}'),
        (source_offset, b'{"cluster":"east"}', b'{"offset":1}'),
        (source_offset, b'["MirrorSourceConnector",{"topic":"t"}]', b'{"offset":1}'),
        (source_offset, PLACE.replace(b"1,", b'"1",'), b'{"offset":1}'),
        (source_offset, PLACE, b"{}"),
        (source_offset, PLACE, b'{"offset":"1"}'),
        (source_offset, PLACE, b'{"offset":-1}'),
        (source_offset, PLACE, b"1"),
        (record_formats.offset_sync, None, bytes(16)),
        (record_formats.offset_sync, string("t") + bytes(4), None),
        (record_formats.offset_sync, string("t") + bytes(4), bytes(17)),
        (record_formats.offset_sync, string("t") + bytes(5), bytes(16)),
        (record_formats.offset_sync, b"\x00\x09t" + bytes(4), bytes(16)),
        (record_formats.offset_sync, b"\xff\xfft" + bytes(4), bytes(16)),
        (record_formats.offset_sync, b"\x00\x01\xff" + bytes(4), bytes(16)),
        (record_formats.checkpoint, string("g") + string("t") + bytes(4), b"\x00\x01" + bytes(18)),
        (record_formats.checkpoint, string("g") + string("t") + bytes(4), bytes(18)),
        (record_formats.checkpoint, string("g") + string("t") + bytes(4), bytes(21)),
        (record_formats.status, b"other", b"{}"),
        (record_formats.status, b"\xff", b"{}"),
        (record_formats.status, b"status-connector-c", b"[]"),
        (record_formats.status, b"status-connector-c", b'{"state":1}'),
        (source_offset, b"[" * 100_000, b'{"offset":1}'),
        (source_offset, PLACE, b'{"offset":' + b"9" * 20 + b"}"),
        (record_formats.status, b"status-connector-c", b'{"state":"RUNNING","generation":[]}'),
        (record_formats.status, b"status-connector-c", b'{"state":"FAILED","trace":{}}'),
    ],
)
def test_what_is_not_of_its_format_is_refused(
    decode: Callable[..., Any], key: bytes | None, value: bytes | None
) -> None:
    with pytest.raises(FormatError):
        decode(key, value)
