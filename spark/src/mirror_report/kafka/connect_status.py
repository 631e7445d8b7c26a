"""Connectors and tasks of a mirror: Kafka Connect's status topic on the target."""

import json
from typing import Any

from mirror_report.kafka import formats
from mirror_report.kafka.tails import Tail
from mirror_report.model import WorkerState


def decode(record: Any) -> tuple[str, Any] | None:
    """Connector and task -> state, and the first line of a failure's trace."""
    found = formats.status(record.key, record.value)
    if found is None:
        return None
    key = json.dumps([found.connector, found.task])
    if found.state is None:
        return key, None
    return key, [found.state, (found.trace or "").partition("\n")[0] or None]


def workers(tail: Tail) -> tuple[WorkerState, ...]:
    """The connectors and tasks that exist."""
    return tuple(
        WorkerState(*json.loads(key), *value) for key, value in sorted(tail.latest.items())
    )
