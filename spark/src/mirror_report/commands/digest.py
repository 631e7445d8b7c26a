"""``digest``: one side of a flow as a bundle of digests, made near its cluster.

Between two data centres go kilobytes then, instead of the records of one of them.
"""

import contextlib
import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from mirror_report.commands import shared
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.model import ClusterSnapshot, Progress, ReportError
from mirror_report.observe import Snapshots
from mirror_report.parity import without_spark
from mirror_report.parity.plan.bundle import describe, to_read
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.parity.state import Bundle, Side
from mirror_report.parity.state import bundle as bundles
from mirror_report.render import Answer, formats
from mirror_report.state.store import Store

SIDES = ("source", "target")
STANDARD_OUTPUT = "-"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``digest``."""
    shared.flow(parser, "the flow, if there are several")
    parser.add_argument("--side", choices=SIDES, required=True, help="which cluster is read")
    parser.add_argument(
        "--output", metavar="PATH", default=STANDARD_OUTPUT,
        help="file or directory of the bundle (default: standard output)",
    )  # fmt: skip


def answer(options: Namespace) -> Answer:
    """Write a bundle; the answer names the file.

    :raises ReportError: the cluster cannot be read, or the file cannot be written.
    """
    if options.output == STANDARD_OUTPUT and sys.stdout.isatty():
        raise ReportError("a digest is not for a terminal", "Name a file with --output")
    written: list[str] = []
    digest_side(
        shared.settings(options), options.flow, options.side,
        lambda bundle: _output(options.output, bundle, written), shared.show_progress,
    )  # fmt: skip
    return formats.lines(*written)


def digest_side(
    settings: Settings,
    flow_name: str | None,
    side: Side,
    open_output: Callable[[Bundle], AbstractContextManager[BinaryIO]],
    progress: Progress,
) -> Bundle:
    """Digest one side of a flow, asking the cluster of that side alone.

    :param open_output: where the bundle goes.
    :raises ReportError: the cluster cannot be read.
    """
    flow, take = _only(settings, flow_name), Snapshots(settings)
    holds_positions = flow.engine.positions_side == side
    # What is below a position must be on the target: it is read last.
    if side == "source":
        snapshot = take.source(flow)
        positions = take.positions(flow) if holds_positions else None
    else:
        positions = take.positions(flow) if holds_positions else None
        snapshot = take.target(flow)
    made = describe(
        flow, side, snapshot, positions, _floors(settings, flow, side, snapshot),
        settings.bucket_seconds * 1000,
    )  # fmt: skip
    ranges = to_read(made)
    records = sum(part.records for part in ranges)
    progress(f"digesting {records} records of the {side}")
    with tempfile.TemporaryDirectory() as scratch:
        rows = Path(scratch) / "rows" if ranges else None
        if rows is not None:
            try:
                # Every other step works without Spark.
                from mirror_report.parity.spark import session, source  # noqa: PLC0415
                from mirror_report.parity.steps import bundle  # noqa: PLC0415
            except ImportError as error:
                raise without_spark(error) from error
            expected = sum(part.bytes for part in ranges)
            clusters = [settings.clusters[flow.alias(side)]]
            how = source.for_distance(settings.spark, expected, clusters)
            opened = session.open_session(how, expected, records, clusters)
            with opened as spark, spark_errors():
                unread = bundle.write_rows(spark, settings, ranges, rows, progress)
            made = bundles.with_unreadable(made, unread.records, unread.topics)
        with open_output(made) as out:
            bundles.pack(made, rows, out)
    return made


def _only(settings: Settings, name: str | None) -> Flow:
    if name is not None:
        return settings.flow(name)
    if len(settings.flows) == 1:
        return settings.flows[0]
    names = ", ".join(flow.name for flow in settings.flows)
    raise ConfigError(f"a digest is of one flow: choose with --flow one of {names or 'none'}")


def _floors(
    settings: Settings, flow: Flow, side: Side, snapshot: ClusterSnapshot
) -> dict[str, dict[str, int]]:
    """Where verification begins, if this host knows the flow's baseline."""
    recorded = Store(settings.state_directory).load("baseline").get(flow.name, {}).get("topics", {})
    here = side == "source"
    # What may have been copied before the baseline cannot be told apart by digests.
    where = "required" if here else "target"
    return {
        name: dict(recorded.get(name if here else flow.source_topic(name), {}).get(where) or {})
        for name in snapshot.topics
    }


@contextlib.contextmanager
def _output(where: str, bundle: Bundle, written: list[str]) -> Iterator[BinaryIO]:
    """Open what a bundle is written to: a file appears when it is whole.

    :param where: file, directory (the file is named by flow and side), or ``-``.
    :param written: the file's name is added.
    """
    if where == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        return
    path = Path(where)
    if path.is_dir():
        path /= f"{bundle.flow}-{bundle.side}.digest"
    new: Path | None = None
    try:
        # A name that nobody can have put a link to.
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        new = Path(name)
        with os.fdopen(descriptor, "wb") as out:
            yield out
        new.chmod(0o640)
        new.replace(path)
    except OSError as error:
        raise ReportError(
            f"{path} cannot be written: {error.strerror}",
            "Name another place with --output; - is standard output",
        ) from error
    finally:
        if new is not None:
            new.unlink(missing_ok=True)
    written.append(str(path))
