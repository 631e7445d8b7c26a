"""Reading what is new, piece by piece; each piece is saved as soon as it is digested."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from mirror_report.model import another_topic
from mirror_report.parity import ParityError
from mirror_report.parity.context import RunContext
from mirror_report.parity.frames import digest, status
from mirror_report.parity.plan import (
    CHUNK_BYTES,
    FlowSnapshot,
    Range,
    RunPlan,
    Unread,
    buckets,
    ranges,
    snapshots,
    spread,
)
from mirror_report.parity.spark.records import OutOfTimeError, Reader, limited
from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.parity.state import Manifest, TopicKey, files
from mirror_report.state.store import start_again

# The rest of the time is for what differs: reading alone would never come to a result.
READING_SHARE = 0.8
# Layout of the rows on disk.
COLUMNS = f"{digest.SCHEMA}; {status.RESULTS_SCHEMA}"


@dataclass(frozen=True)
class Piece:
    """A part of what was to be read.

    :param digests: name of its rows; ``None``: nothing of it was read.
    :param ranges: what of it was read.
    :param unread: what could not be; ``unknown``: topics that changed while they were read, and
        the message for each.
    :param later: what is left for a later run, because the time is over.
    """

    digests: str | None
    ranges: Sequence[Range]
    unread: Unread
    unknown: Mapping[TopicKey, str] = field(default_factory=dict)
    later: Sequence[Range] = ()


def keep(context: RunContext, storage: RowStorage, manifest: Manifest, plan: RunPlan) -> Manifest:
    """Name the rows that still count: without those that no longer describe what is there.

    :raises ParityError: the rows of earlier runs are of another layout, or damaged.
    """
    whole = {drop.flow for drop in plan.drops if drop.side is None}
    if not manifest.baselines.keys() - whole:
        return replace(manifest, digests=(), sealed=(), results=None, columns=COLUMNS)
    if manifest.rows() and manifest.columns != COLUMNS:
        raise ParityError(
            "the parity state was written by another release, which keeps other columns",
            f"Install that one, or start again: {start_again(context.store.directory)}",
        )
    files.check(context.store, manifest)
    if not plan.drops or not manifest.rows():
        return replace(manifest, columns=COLUMNS)
    digests, sealed = storage.digests(manifest), storage.sealed(manifest)
    results = storage.results(manifest.results)
    for drop in plan.drops:
        dropped = F.col("flow") == drop.flow
        if drop.side is None:
            results = results.filter(~dropped)
        else:
            dropped &= (F.col("side") == drop.side) & (F.col("origin") == drop.origin)
        digests, sealed = digests.filter(~dropped), sealed.filter(~dropped)
    for flow, topic in plan.rebuilt:
        rebuilt = (F.col("flow") == flow) & (F.col("topic") == topic)
        results, sealed = results.filter(~rebuilt), sealed.filter(~rebuilt)
    return replace(
        manifest,
        digests=(storage.write(digests.coalesce(1), "digest-kept"),),
        sealed=(storage.write(sealed.coalesce(1), "sealed-kept"),) if manifest.sealed else (),
        results=storage.write(results.coalesce(1), "results-kept"),
        columns=COLUMNS,
    )


def read(
    context: RunContext, storage: RowStorage, plan: RunPlan, manifest_now: Callable[[], Manifest]
) -> Iterator[Piece]:
    """Digest what is new, piece by piece.

    :param manifest_now: what is by now: what a piece holds may give a topic other buckets, or none.
    """
    manifest = manifest_now()
    reader = Reader(
        context.settings, storage.session, context.progress, manifest.unreadable, plan.topic_id
    )
    total, done = ranges.total_records(plan.ranges), 0
    pieces = ranges.chunks(plan.ranges, CHUNK_BYTES)
    unknown: dict[TopicKey, str] = {}

    def write(piece: Sequence[Range], name: str) -> str:
        spans = buckets.spans(manifest, plan.topics, piece)
        records = reader.bucketed(piece, manifest_now().bucket_widths, spans)
        return storage.write(digest.digest(records).coalesce(1), name)

    def in_time(piece: Sequence[Range], name: str) -> str:
        with limited(context, storage.session):
            return write(piece, name)

    for number, planned in enumerate(pieces):
        left_out = spread.not_compared(manifest_now(), context.settings.flows)
        piece = _without(planned, {*unknown, *reader.unread.topics, *left_out})
        if not piece:
            continue
        later = [part for rest in pieces[number:] for part in rest]
        name, known_as = f"digest-{number}", ""
        if number and context.time_is_over(READING_SHARE):
            yield _left(context, reader, later)
            break
        context.progress(f"reading {done} of {total} records")
        try:
            known_as = reader.read(partial(in_time, piece, name))
        except OutOfTimeError:
            yield _left(context, reader, later)
            break
        except (PySparkException, Py4JError):
            if not (vanished := _vanished(context, manifest, plan, piece)):
                raise
            unknown |= vanished
            piece = _without(piece, unknown)
            if piece:
                known_as = reader.read(partial(write, piece, name))
        piece = _without(piece, reader.unread.topics)
        yield Piece(known_as if piece else None, piece, reader.unread, dict(unknown))
        done += ranges.total_records(piece)
    context.progress(f"read {done} of {total} records")


def _left(context: RunContext, reader: Reader, later: Sequence[Range]) -> Piece:
    context.progress(f"deadline: {ranges.total_records(later)} records wait for the next run")
    return Piece(None, (), reader.unread, later=later)


def _vanished(
    context: RunContext, manifest: Manifest, plan: RunPlan, parts: Iterable[Range]
) -> dict[TopicKey, str]:
    """Topics that changed while they were read, and the message for each; others go on."""
    now = {
        name: FlowSnapshot(
            before.flow, before.positions, context.take.source(before.flow),
            context.take.target(before.flow),
        )
        for name, before in plan.snapshots.items()
    }  # fmt: skip
    vanished = {}
    for part in parts:
        topic = snapshots.find(now, *part.key)
        another = topic and another_topic(manifest.sides[part.key].topic_id, topic.topic_id)
        log = topic.partitions.get(part.partition) if topic and not another else None
        if log is None or log.log_start > part.start or log.end < part.end:
            vanished[part.topic_key] = "it changed or vanished while it was read"
    return vanished


def _without(parts: Iterable[Range], topics: Collection[TopicKey]) -> list[Range]:
    return [part for part in parts if part.topic_key not in topics]
