"""Open transactions that hold back readers of committed records.

Asked only where the last stable offset lies below the high watermark, and answered as far as our
identity may know: READ on a topic shows its producers, DESCRIBE on a transactional id since when
its transaction is open.
"""

from collections.abc import Mapping
from typing import Any, cast

from kafka import TopicPartition
from kafka.errors import KafkaError

from mirror_report.kafka.metadata import ClusterClient
from mirror_report.model import ClusterSnapshot, OpenTransaction, Place

PARTITIONS_ASKED = 500
NONE = -1


def open_transactions(
    client: ClusterClient, snapshot: ClusterSnapshot
) -> dict[Place, OpenTransaction]:
    """The oldest open transaction of each partition that has one; absent: none, or not known."""
    places = [
        TopicPartition(name, number)
        for name, topic in snapshot.topics.items()
        for number, one in topic.partitions.items()
        if one.high_watermark is not None and one.log_end < one.high_watermark
    ][:PARTITIONS_ASKED]
    if not places:
        return {}
    held = _oldest(_producers(client, places))
    owners = _owners(client, {one.producer_id for one in held.values()})
    found: dict[Place, OpenTransaction] = {}
    for place, one in held.items():
        name, started_ms = owners.get(one.producer_id, (None, None))
        # Without that it has been open at least since its producer last wrote there.
        since = one.last_timestamp if started_ms is None else started_ms
        found[place] = OpenTransaction(
            int(one.current_transaction_start_offset),
            max(0.0, (snapshot.taken_at_ms - since) / 1000),
            started_ms is None,
            name,
        )
    return found


def _oldest(described: Mapping[Any, Any]) -> dict[Place, Any]:
    """The producer whose transaction begins first, by partition."""
    found: dict[Place, Any] = {}
    for at, state in described.items():
        transactions = [
            one for one in state.active_producers if one.current_transaction_start_offset != NONE
        ]
        if transactions:
            found[at.topic, at.partition] = min(
                transactions, key=lambda one: int(one.current_transaction_start_offset)
            )
    return found


def _producers(client: ClusterClient, places: list[TopicPartition]) -> Mapping[Any, Any]:
    """What the brokers know of the partitions' producers, as far as they say it."""
    try:
        return cast("Mapping[Any, Any]", client.admin.describe_producers(places))
    except KafkaError:
        # One partition that is refused spoils the answer for all of its topic.
        topics = sorted({at.topic for at in places})
    if len(topics) == 1:
        return {}
    parts = [[at for at in places if at.topic == name] for name in topics]
    return {at: one for part in parts for at, one in _producers(client, part).items()}


def _owners(client: ClusterClient, producers: set[int]) -> dict[int, tuple[str | None, int | None]]:
    """Producer id -> its transactional id, and since when its transaction is open (ms)."""
    try:
        listed = client.admin.list_transactions(producer_id_filters=sorted(producers))
        names = {one.transactional_id: one.producer_id for some in listed.values() for one in some}
        described = client.admin.describe_transactions(sorted(names)) if names else {}
    except KafkaError:
        return {}
    return {
        names[name]: (name, int(one.transaction_start_time_ms))
        for name, one in described.items()
        if one.transaction_start_time_ms > 0
    }
