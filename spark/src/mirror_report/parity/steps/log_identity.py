"""What identifies logs later on: leader epochs, or else single records."""

import contextlib
from collections.abc import Mapping

from mirror_report.model import ClusterSnapshot, Contents, Epochs, Place, ReportError
from mirror_report.parity.context import TakeSnapshots
from mirror_report.parity.plan import lost_tails


def with_identity(
    take: TakeSnapshots, now: ClusterSnapshot, last: Mapping[str, lost_tails.LastLook]
) -> ClusterSnapshot:
    """A snapshot with what its logs are known by; what does not answer stays unknown.

    :param last: topic -> what was known of it before; the others are left alone.
    """
    epochs: dict[Place, Epochs] = {}
    contents: dict[Place, Contents] = {}
    with contextlib.suppress(ReportError):
        if logs := lost_tails.epochs_wanted(now, last):
            epochs = take.epochs(now.alias, logs)
    for offsets in lost_tails.contents_wanted(now, last, epochs):
        with contextlib.suppress(ReportError):
            for place, content in (take.contents(now.alias, offsets) if offsets else {}).items():
                contents[place] = (*contents.get(place, ()), (offsets[place], content))
    return lost_tails.with_answers(now, last, epochs, contents)
