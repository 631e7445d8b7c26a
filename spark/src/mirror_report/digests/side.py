"""One side of a flow as a bundle of digests."""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.model import Baseline, ClusterSnapshot, Progress
from mirror_report.observe import Snapshots
from mirror_report.parity import without_spark
from mirror_report.parity.plan.bundle import describe, to_read
from mirror_report.parity.spark.errors import spark_errors
from mirror_report.parity.state import Bundle, Side
from mirror_report.parity.state import bundle as bundles
from mirror_report.state import baselines
from mirror_report.state.store import Store


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
    baseline = baselines.load(Store(settings.state_directory)).get(flow.name, Baseline())
    made = describe(
        flow, side, snapshot, positions, _floors(baseline, flow, side, snapshot),
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
    baseline: Baseline, flow: Flow, side: Side, snapshot: ClusterSnapshot
) -> dict[str, Mapping[int, int]]:
    """Where verification begins.

    :param baseline: the flow's; without topics: this host knows none.
    """
    if side == "source":
        # What may have been copied before the baseline cannot be told apart by digests.
        return {name: baseline.topic(name).required for name in snapshot.topics}
    origins = {name: flow.source_topic(name) or "" for name in snapshot.topics}
    return {name: baseline.topic(origin).target.start for name, origin in origins.items()}
