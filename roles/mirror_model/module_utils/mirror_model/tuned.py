"""Tuned defaults of Kafka's clients, whatever engine they belong to."""

from typing import Any

CONSUMER_DEFAULTS: dict[str, Any] = {
    "fetch.max.wait.ms": 100,
    "fetch.min.bytes": 65536,
    "max.poll.records": 4000,
    "metadata.max.age.ms": 60000,
    "receive.buffer.bytes": 1048576,
}
# Tuned at unchanged guarantees: idempotence with five requests in flight keeps the order.
PRODUCER_DEFAULTS: dict[str, Any] = {
    "acks": "all",
    "batch.size": 327680,
    "buffer.memory": 67108864,
    "enable.idempotence": True,
    "linger.ms": 20,
    "max.in.flight.requests.per.connection": 5,
    "max.request.size": 8388608,
    "metadata.max.age.ms": 60000,
}
