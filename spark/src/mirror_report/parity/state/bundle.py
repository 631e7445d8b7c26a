"""A digest bundle: what one side of a flow holds, in a file small enough to carry to the other.

A zip archive of one manifest and the digest rows as Parquet.
"""

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

from mirror_report.engines import ENGINES
from mirror_report.model import Positions, Side
from mirror_report.parity import FINGERPRINT_VERSION, ParityError, grouped
from mirror_report.parity.state.manifest_records import TopicKey, Unreadable
from mirror_report.state.partitions import offsets

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
ROWS = "rows/"
# What both bundles must have in common, and what it means if they do not.
SAME = {
    "fingerprint_version": "they were made by releases that fingerprint records differently",
    "bucket_ms": "their buckets differ in width (bucket_seconds)",
    "flow": "they are of two flows",
    "engine": "their flow is mirrored by two engines",
    "names": "their flow names topics on the target differently",
    "source": "their flow has two sources",
    "target": "their flow has two targets",
}


@dataclass(frozen=True)
class BundleTopic:
    """One topic of a bundle.

    :param topic: its name on the target.
    :param ranges: partition -> first offset, offset after the last.
    :param skip: why its content cannot be compared.
    :param unknown: why nothing is known of it.
    :param unreadable: partition, offset and timestamp (ms) of records that Spark cannot read.
    """

    topic: str
    topic_id: str = ""
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    skip: str | None = None
    unknown: str | None = None
    unreadable: Sequence[tuple[int, int, int]] = ()


@dataclass(frozen=True)
class Bundle:
    """The manifest of a bundle.

    :param names: how the flow names topics on the target: the name of a topic without one.
    :param topics: name on this side -> the topic.
    :param positions: committed positions, if this side holds them.
    """

    flow: str
    side: Side
    engine: str
    names: str
    source: str
    target: str
    cluster_id: str
    taken_at_ms: int
    bucket_ms: int
    topics: Mapping[str, BundleTopic]
    positions: Positions | None
    fingerprint_version: int = FINGERPRINT_VERSION
    schema_version: int = SCHEMA_VERSION

    @property
    def keeps_partitions(self) -> bool:
        """Whether records arrive in the partition they came from."""
        return ENGINES[self.engine].keeps_partitions

    @property
    def records(self) -> int:
        """Offsets in its ranges: an upper bound of its records."""
        return sum(
            end - start for topic in self.topics.values() for start, end in topic.ranges.values()
        )


def with_unreadable(
    bundle: Bundle, records: Iterable[Unreadable], unknown: Mapping[TopicKey, str]
) -> Bundle:
    """A bundle with the records that are not in its digests.

    :param unknown: (flow, topic on the target) -> why nothing is known of it.
    """
    of_origins = grouped(records, attrgetter("origin"))
    place = attrgetter("partition", "offset", "timestamp_ms")
    return replace(
        bundle,
        topics={
            name: replace(
                topic,
                unknown=topic.unknown or unknown.get((bundle.flow, topic.topic)),
                unreadable=tuple(sorted(map(place, of_origins.get(name, ())))),
            )
            for name, topic in bundle.topics.items()
        },
    )


def beyond(bundle: Bundle, topic: str) -> list[Unreadable]:
    """Records of a topic of the target that its digests do not hold."""
    return [
        Unreadable(bundle.flow, bundle.side, topic, origin, *place, described.topic_id)
        for origin, described in bundle.topics.items()
        if described.topic == topic
        for place in described.unreadable
    ]


def pack(bundle: Bundle, rows: Path | None, out: BinaryIO) -> None:
    """Write a bundle.

    :param rows: directory of Parquet files; ``None``: there is no record.
    """
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(MANIFEST, json.dumps(asdict(bundle), indent=1))
        for file in sorted(rows.glob("*.parquet")) if rows is not None else ():
            packed.write(file, f"{ROWS}{file.name}")


def unpack(path: Path, directory: Path) -> tuple[Bundle, list[Path]]:
    """Read a bundle.

    :param directory: where its rows go.
    :returns: its manifest, and the files of its rows.
    :raises ParityError: it is no bundle, or of another release.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            plain = json.loads(packed.read(MANIFEST))
            files: list[Path] = []
            for name in packed.namelist():
                if name.startswith(ROWS) and name.endswith(".parquet"):
                    # A name of our own: what an archive calls its files is not to be trusted.
                    file = directory / f"{len(files)}.parquet"
                    file.write_bytes(packed.read(name))
                    files.append(file)
    except OSError as error:
        raise ParityError(f"{path} cannot be read: {error.strerror}", "Is it there?") from error
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ParityError(
            f"{path} is no digest bundle, or damaged", "Make it again: mirror-report digest"
        ) from error
    if (version := plain.get("schema_version")) != SCHEMA_VERSION:
        raise ParityError(
            f"{path} has schema {version}, this release reads {SCHEMA_VERSION}",
            "Make both bundles and compare them with one release",
        )
    if plain.get("engine") not in ENGINES:
        raise ParityError(
            f"{path} is of engine {plain.get('engine')}, which this release does not know",
            "Compare both bundles with the release that made them",
        )
    return _bundle(plain), files


def _bundle(plain: dict[str, Any]) -> Bundle:
    topics = {
        name: BundleTopic(
            **{
                **entry,
                "ranges": {p: tuple(r) for p, r in entry["ranges"].items()},
                "unreadable": tuple(tuple(place) for place in entry.get("unreadable", ())),
            }
        )
        for name, entry in plain["topics"].items()
    }
    committed = plain["positions"]
    positions = (
        None if committed is None else {name: offsets(parts) for name, parts in committed.items()}
    )
    return Bundle(**{**plain, "topics": topics, "positions": positions})


def both_sides(first: Bundle, other: Bundle) -> tuple[Bundle, Bundle]:
    """Both bundles as source and target.

    :raises ParityError: they do not belong together.
    """
    if {first.side, other.side} != {"source", "target"}:
        raise ParityError(
            f"both bundles are of the {first.side}",
            "Compare one of the source with one of the target",
        )
    source, target = (first, other) if first.side == "source" else (other, first)
    for name, meaning in SAME.items():
        if getattr(source, name) != getattr(target, name):
            raise ParityError(
                f"the bundles do not belong together: {meaning} ({getattr(source, name)} and "
                f"{getattr(target, name)})",
                "Make both with the configuration of one flow",
            )
    if source.cluster_id == target.cluster_id:
        raise ParityError(
            f"the bundles do not belong together: both are of cluster {source.cluster_id}",
            "Correct bootstrap_servers where one of them was made",
        )
    if target.taken_at_ms < source.taken_at_ms:
        raise ParityError(
            "the target's bundle is older than the source's, so records would seem to be missing",
            f"Make the target's again: mirror-report digest --flow {target.flow} --side target",
        )
    if source.positions is None and target.positions is None:
        raise ParityError("neither bundle holds committed positions", "Make both again")
    return source, target
