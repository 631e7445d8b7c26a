"""What the manifest keeps of a topic: its numbers, its cuts, and that it ends Spark's JVM."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from mirror_report.model import Sample
from mirror_report.state.partitions import offsets, texts

# A row of :func:`results.summaries.by_topic`, without its flow and topic.
Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Summary:
    """The numbers of a topic.

    :param run_id: the run that compared it last.
    :param now: as that run found them; ``next``: as the next one repeats them.
    :param samples: class -> records of it.
    """

    run_id: str
    now: Numbers
    next: Numbers
    samples: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`dump` made."""
        samples = {
            name: tuple(Sample(**sample) for sample in of_class)
            for name, of_class in plain["samples"].items()
        }
        return cls(plain["run_id"], plain["now"], plain["next"], samples)

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            **vars(self),
            "samples": {name: [*map(vars, of_class)] for name, of_class in self.samples.items()},
            # Earlier releases that read this format look for it here.
            "buckets_in_flight": self.now.get("buckets_in_flight", 0),
        }


class Cut(NamedTuple):
    """A bucket of records begins here.

    :param upstream: source offset; ``downstream``: target offset; ``label``: when, in milliseconds.
    """

    upstream: int
    downstream: int
    label: int


@dataclass(frozen=True)
class Track:
    """The cuts of one partition, and what has to be known to go on.

    :param newest: the newest sync, a cut or not.
    :param barrier: up to this source offset the mirror may be repeating itself.
    :param raised: how often the barrier was raised since the last cut.
    """

    cuts: tuple[Cut, ...] = ()
    newest: Cut | None = None
    barrier: int = -1
    raised: int = 0

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`dump` made."""
        return cls(
            tuple(Cut(*cut) for cut in plain["cuts"]),
            Cut(*plain["seen"]) if plain["seen"] else None,
            plain["barrier"],
            plain["raised"],
        )

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            "cuts": [list(cut) for cut in self.cuts],
            "seen": list(self.newest) if self.newest else None,
            "barrier": self.barrier,
            "raised": self.raised,
        }


@dataclass(frozen=True)
class Alignment:
    """What is known of a topic that is aligned by offset syncs.

    :param ids: of it on the source and on the target.
    :param anew: it was recreated.
    :param tracks: by partition; ``pending``: syncs that are not used yet.
    :param untimed: no record of it carried a timestamp.
    """

    ids: tuple[str, ...]
    anew: bool
    tracks: Mapping[int, Track]
    pending: Mapping[int, tuple[Cut, ...]]
    untimed: bool = False

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`dump` made."""
        return cls(
            tuple(plain["ids"]),
            plain["anew"],
            {int(p): Track.load(track) for p, track in plain["tracks"].items()},
            {int(p): tuple(Cut(*sync) for sync in syncs) for p, syncs in plain["pending"].items()},
            plain["untimed"],
        )

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        return {
            **vars(self),
            "ids": list(self.ids),
            "tracks": {str(p): track.dump() for p, track in self.tracks.items()},
            "pending": {str(p): [*map(list, syncs)] for p, syncs in self.pending.items()},
        }


@dataclass(frozen=True)
class FatalTopic:
    """A topic whose records end Spark's JVM.

    :param heap: of that JVM, as Spark takes it; ``at_ms``: when it ended.
    :param starts: side and name of each of its topics -> partition -> log start offset, then.
    """

    heap: str
    at_ms: int
    starts: Mapping[tuple[str, str], Mapping[int, int]]

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`dump` made."""
        starts = ((*key.split("/", 1), offsets(parts)) for key, parts in plain["starts"].items())
        return cls(
            plain["heap"], plain["at_ms"], {(side, name): parts for side, name, parts in starts}
        )

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        starts = {"/".join(where): texts(parts) for where, parts in self.starts.items()}
        return {**vars(self), "starts": starts}
