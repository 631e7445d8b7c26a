"""State of a topic in the manifest: numbers, cuts, boundaries, looks, and that it is fatal."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from mirror_report.model import Sample
from mirror_report.state.partitions import offsets, texts

# Topic of the source -> partition -> offset.
Offsets = Mapping[str, Mapping[int, int]]
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
    """A topic that is aligned by offset syncs.

    :param ids: of it on the source and on the target.
    :param anew: the topic was recreated.
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


@dataclass(frozen=True)
class Boundary:
    """Up to where a backlog can be compared, once it is read (:mod:`plan.boundaries`).

    :param source: topic of the source -> partition -> committed position.
    :param target: partition -> end, taken after the positions.
    """

    source: Mapping[str, Mapping[int, int]]
    target: Mapping[int, int]

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`dump` made."""
        source = {origin: offsets(parts) for origin, parts in plain["source"].items()}
        return cls(source, offsets(plain["target"]))

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        source = {origin: texts(parts) for origin, parts in self.source.items()}
        return {"source": source, "target": texts(self.target)}


@dataclass(frozen=True)
class Look:
    """One look at a topic.

    :param boundary: committed positions, and the ends of the target that were taken after them.
    :param following: ends of the source that were taken after these; ``None``: not known yet.
    :param needed: a known loss was found at it, or not before it.
    """

    boundary: Boundary
    following: Offsets | None = None
    needed: bool = False

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Self:
        """What :meth:`dump` made."""
        ends = plain["following"]
        if ends is not None:
            ends = {origin: offsets(parts) for origin, parts in ends.items()}
        return cls(Boundary.load(plain), ends, plain["needed"])

    def dump(self) -> dict[str, Any]:
        """JSON types only."""
        following = None
        if self.following is not None:
            following = {origin: texts(parts) for origin, parts in self.following.items()}
        return {**self.boundary.dump(), "following": following, "needed": self.needed}

    def before(self, now: Boundary, ends: Offsets) -> Self:
        """The same look, after another one.

        :param ends: of the source, at that one.
        """
        positions: dict[str, Mapping[int, int]] = {}
        for origin, parts in self.boundary.source.items():
            again = now.source.get(origin, {})
            positions[origin] = {p: min(at, again.get(p, 0)) for p, at in parts.items()}
        following = ends if self.following is None else self.following
        return replace(self, boundary=replace(self.boundary, source=positions), following=following)
