"""Leader epochs of logs: which leader wrote which part of a log, as the present one knows it.

A leader answers for each epoch where it begins and which one came before (OffsetForLeaderEpoch,
from Kafka 2.1 on with DESCRIBE on the topic), so epochs are found from the newest down.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest

from mirror_report.kafka.metadata import ClusterClient
from mirror_report.model import Epochs, EpochsAsked, Place

# Requests to each leader at most; each goes down by one epoch in every log. Epochs without a record
# are not kept, so it takes as many elections between records to pass over one.
ROUNDS = 64
# Of one request, for a leader may be elected right now.
ATTEMPTS = 3
PAUSE_SECONDS = 0.5
# Of a request that no replica sends.
CONSUMER = -1

# What a leader answers to an epoch: the newest one up to it, and where that ends; both are negative
# if the log keeps no epochs, as in message formats below 0.11.
EpochEnd = tuple[int, int]
AskLeaders = Callable[[Mapping[Place, int]], Mapping[Place, EpochEnd]]


def of_logs(client: ClusterClient, logs: Mapping[Place, EpochsAsked]) -> dict[Place, Epochs]:
    """Leader epochs of some logs, as :func:`walked`; a log that does not answer is left out."""

    def ask(epochs: Mapping[Place, int]) -> dict[Place, EpochEnd]:
        ends: dict[Place, EpochEnd] = {}
        for attempt in range(ATTEMPTS):
            left = {place: epoch for place, epoch in epochs.items() if place not in ends}
            if not left:
                break
            time.sleep(PAUSE_SECONDS if attempt else 0)
            with contextlib.suppress(KafkaError):
                ends |= client.admin._manager.run(_ends, client.admin, left)
        return ends

    return walked(logs, ask)


def walked(logs: Mapping[Place, EpochsAsked], ask: AskLeaders) -> dict[Place, Epochs]:
    """Epochs of some logs, as far down as each needs.

    :returns: none of a log that keeps none.
    """
    walks = {place: _Walk(needed) for place, needed in logs.items()}
    for _ in range(ROUNDS):
        # An epoch begins where those before it end; before the first one there is none.
        asked = {place: max(0, walk.at - 1) for place, walk in walks.items() if walk.at is not None}
        if not asked:
            break
        answers = ask(asked)
        for place in asked:
            walks[place].take(answers.get(place))
    return {place: walk.epochs() for place, walk in walks.items() if walk.answered}


class _Walk:
    """One log on the way down.

    :ivar at: the epoch whose beginning is not known yet; ``None``: no further one is needed.
    """

    def __init__(self, needed: EpochsAsked) -> None:
        self.at: int | None = needed.leader
        self.answered = False
        self._needed = needed
        self._newest_first: list[tuple[int, int]] = []
        self._below = -1

    def take(self, answer: EpochEnd | None) -> None:
        """Take in where the epochs before the one at hand end."""
        epoch, self.at = self.at, None
        if epoch is None or answer is None:
            return
        self.answered = True
        below, start = answer if epoch else (-1, min(answer[1], 0))
        # The log remembers no older one when another epoch begins at the same offset.
        if start < 0 or (self._newest_first and start >= self._newest_first[-1][1]):
            return
        self._newest_first.append((epoch, start))
        self._below = below
        if start > self._needed.low and below < epoch and not self._is_known(below):
            self.at = below

    def epochs(self) -> Epochs:
        """What is known by now, together with what was known before of the same log."""
        former = self._needed.former if self._is_known(self._below) else ()
        before = [(epoch, at) for epoch, at in former if epoch <= self._below]
        return (*before, *reversed(self._newest_first))

    def _is_known(self, epoch: int) -> bool:
        return any(epoch == number for number, _ in self._needed.former)


async def _ends(admin: Any, epochs: Mapping[Place, int]) -> dict[Place, EpochEnd]:
    """Ask each leader once; partitions that have none, or answer with an error, are left out."""
    request_types = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    led: dict[int, dict[str, list[Any]]] = {}
    metadata = await admin._get_cluster_metadata(sorted({name for name, _ in epochs}))
    for topic in metadata["topics"]:
        for part in topic["partitions"]:
            name, number, leader = topic["name"], part["partition_index"], part["leader_id"]
            if (name, number) in epochs and leader >= 0:
                led.setdefault(leader, {}).setdefault(name, []).append(
                    request_types.OffsetForLeaderPartition(
                        partition=number, current_leader_epoch=-1, leader_epoch=epochs[name, number]
                    )
                )
    ends = {}
    for leader, topics in led.items():
        request = OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.items()))
        with contextlib.suppress(KafkaError):
            answer = await admin._manager.send(request, node_id=leader)
            for topic in answer.topics:
                for part in topic.partitions:
                    if not part.error_code:
                        end = int(part.leader_epoch), int(part.end_offset)
                        ends[topic.topic, part.partition] = end
    return ends
