"""A mirror written by hand on librdkafka: read, write, flush, commit; a peer to measure against.

``loop.py SOURCE TARGET TOPIC GROUP``
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer

COMMIT_SECONDS = 10


def main() -> None:
    """Copy until it is ended."""
    source, target, topic, group = sys.argv[1:]
    consumer = Consumer({
        "bootstrap.servers": source, "group.id": group, "enable.auto.commit": False,
        "auto.offset.reset": "earliest", "fetch.queue.backoff.ms": 10,
    })  # fmt: skip
    producer = Producer({
        "bootstrap.servers": target, "enable.idempotence": True, "acks": "all", "linger.ms": 20,
        "batch.size": 327_680,
    })  # fmt: skip
    consumer.subscribe([topic])
    committed = time.monotonic()
    while True:
        messages: list[Any] = consumer.consume(4000, 0.1)
        for message in messages:
            if message.error() is not None:
                raise SystemExit(str(message.error()))
            while True:
                try:
                    producer.produce(
                        topic, message.value(), message.key(), headers=message.headers(),
                        timestamp=message.timestamp()[1],
                    )  # fmt: skip
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
        if time.monotonic() - committed > COMMIT_SECONDS:
            if producer.flush(60):
                raise SystemExit("the target does not take what was read")
            consumer.commit(asynchronous=False)
            committed = time.monotonic()


if __name__ == "__main__":
    main()
