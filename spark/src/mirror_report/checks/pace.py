"""How fast a source grows and its mirror follows, and when the mirror has caught up: no I/O."""

from mirror_report.checks.partition_history import PartitionHistory

# What a mirror copies within so many commit intervals is no backlog, but how it works.
COMMITS_APART = 2


def rates(
    past: PartitionHistory, base: int | None, now_ms: int, end: int, next_offset: int
) -> tuple[float | None, float | None]:
    """Offsets per second of the source and of the mirror; ``None``: not known.

    :param base: time (ms) of the observation that rates start from.
    :param end: log end now; ``next_offset``: next one to copy now.
    """
    if base is None:
        return None, None
    seconds = (now_ms - base) / 1000
    former_end, former = past.end_at(base), past.next_offset_at(base)
    produced = None if former_end is None else (end - former_end) / seconds
    # A mirror that was set back has no rate.
    set_back = former is None or former > next_offset
    return produced, None if set_back else (next_offset - (former or 0)) / seconds


def catching_up(
    records: int,
    produced: float | None,
    mirrored: float | None,
    *,
    measured_seconds: float,
    commit_seconds: float,
) -> tuple[float | None, bool | None]:
    """Seconds until nothing waits at these rates, and whether that ever comes.

    :param records: those that wait.
    :param measured_seconds: for which the rates were measured; positions move once per commit.
    """
    if records == 0:
        return 0.0, True
    if produced is None or mirrored is None or measured_seconds < commit_seconds:
        return None, None
    if mirrored > 0 and records <= COMMITS_APART * commit_seconds * mirrored:
        return records / mirrored, True
    if mirrored > produced:
        return records / (mirrored - produced), True
    return None, False
