"""Where on the target a group would have to go on to miss nothing and repeat nothing: no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mirror_report.model import OffsetSync, PartitionSnapshot


@dataclass(frozen=True)
class Image:
    """The place on the target of an offset of the source.

    :param offset: of the record at the source's offset; ``None``: nothing leads there.
    :param exact: otherwise it lies at or after ``offset``.
    :param at_most: it lies at or before this.
    :param translated: what the mirror makes of the offset with the same syncs; it is never
        beyond the true place.
    :param candidate: where it would be if every record since the last sync was copied once.
    :param estimate: where it probably is; it decides nothing.
    """

    offset: int | None
    exact: bool
    at_most: int
    translated: int | None = None
    candidate: int | None = None
    estimate: int | None = None

    def proved(self, offset: int) -> Image:
        """The same, found to be at one offset."""
        return Image(offset, True, offset, self.translated)

    def at_least(self, offset: int) -> Image:
        """The same, known not to be before an offset."""
        return replace(self, offset=max(self.offset or 0, min(offset, self.at_most)))

    def at_end(self, copy: PartitionSnapshot) -> Image:
        """The same, of a position that is the source's end, of which everything is copied.

        What others wrote into the target lies before or behind the last copied record; only in an
        empty log it makes no difference.
        """
        if copy.log_start == copy.end:
            return self.proved(copy.end)
        return replace(self, estimate=copy.end)


def translate(
    offset: int,
    syncs: Sequence[OffsetSync],
    log: PartitionSnapshot,
    copy: PartitionSnapshot,
    proves_from_ms: int = -1,
) -> Image:
    """Translate one offset.

    Two syncs with as many offsets between them on one side as on the other make it probable that
    every record between them was copied once. They do not prove it: as many markers may have been
    passed over as records were repeated.

    :param offset: next one to read, within the source's log.
    :param syncs: of the partition, oldest first.
    :param log: the source's partition, ``copy``: the target's, asked before the source's.
    :param proves_from_ms: a sync that was written by then proves no place: a side may have lost its
        newest records since, unseen.
    """
    fitting = [sync for sync in syncs if sync.upstream < log.end and sync.downstream < copy.end]
    below = [sync for sync in fitting if sync.upstream <= offset]
    above = [sync for sync in fitting if sync.upstream > offset]
    at_most = above[0].downstream if above else copy.end
    if not below:
        return Image(None, False, at_most)
    last = below[-1]
    passed = offset - last.upstream
    proves = all(sync.timestamp_ms > proves_from_ms for sync in (last, *above[:1]))
    if passed == 0:
        place = Image(last.downstream, True, last.downstream, last.downstream)
        return place if last.timestamp_ms > proves_from_ms else replace(
            place, exact=False, at_most=at_most, candidate=place.offset, estimate=place.offset
        )  # fmt: skip
    translated, candidate = last.downstream + 1, last.downstream + passed
    even = above and above[0].upstream - last.upstream == above[0].downstream - last.downstream
    return Image(
        translated, proves and translated >= at_most, max(translated, at_most), translated,
        candidate, candidate if even else None,
    )  # fmt: skip


def holds(checkpoint: OffsetSync, syncs: Sequence[OffsetSync], copy: PartitionSnapshot) -> bool:
    """Whether a checkpoint may be about the logs as they are.

    One that a log went back after, or that a sync contradicts, is about former records.

    :param syncs: of the partition, oldest first.
    """
    if syncs and syncs[0].begins and checkpoint.timestamp_ms <= syncs[0].timestamp_ms:
        return False
    above = [sync.downstream for sync in syncs if sync.upstream >= checkpoint.upstream]
    return checkpoint.downstream <= min([copy.end, *above])
