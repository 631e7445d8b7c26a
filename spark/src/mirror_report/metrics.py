"""The metrics files: written as a whole after every ``lag`` and ``run`` of all flows."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mirror_report import __version__
from mirror_report.checks.verdict import EXIT_CODES, failure, verdict, worst_first
from mirror_report.config import Settings
from mirror_report.model import Finding, LagDocument, Report
from mirror_report.render import json as render_json
from mirror_report.render import prometheus
from mirror_report.render.prometheus import MetricSample, Plane
from mirror_report.state.store import (
    REPORT_BYTES,
    LockedError,
    StateError,
    read_below,
    write_atomically,
)

D = TypeVar("D", LagDocument, Report)
FILES: Mapping[Plane, str] = {"lag": prometheus.LAG_FILE, "run": prometheus.RUN_FILE}
# The collector of metrics is no member of the report's group.
MODE = 0o644


class Metrics:
    """What one run of a command leaves for Prometheus.

    :param path: the file; ``None``: none is configured, or the command is about one flow alone.
    :param interval: seconds between runs.
    :param of_document: document, figures of the run and our release -> metrics.
    """

    def __init__(
        self,
        path: Path | None,
        plane: Plane,
        interval: float,
        of_document: Callable[
            [Mapping[str, Any], Mapping[str, float], str], Iterable[MetricSample]
        ],
    ) -> None:
        self._path = path
        self._plane: Plane = plane
        self._interval = interval
        self._of_document = of_document
        self._started = time.time()

    def write(self, document: D) -> D:
        """Replace the file by the metrics of a document.

        :returns: the document; if that failed, with a finding about it.
        """
        problem = self._replace(
            lambda run: self._of_document(render_json.document(document), run, __version__)
        )
        if problem is None:
            return document
        findings = worst_first([*document.findings, problem])
        return replace(document, findings=findings, verdict=verdict(findings))

    def write_failure(self) -> None:
        """Replace the file by one that holds only that there is no report."""
        status = EXIT_CODES["unknown"]
        self._replace(lambda run: prometheus.report_samples(self._plane, status, run, __version__))

    def _replace(
        self, samples: Callable[[Mapping[str, float]], Iterable[MetricSample]]
    ) -> Finding | None:
        if self._path is None:
            return None
        now = time.time()
        run = {"at": now, "duration": now - self._started, "interval": self._interval}
        try:
            text = read_below(self._path.parent, self._path.name, most_bytes=REPORT_BYTES)
            before = prometheus.last_success(text)
        except (OSError, ValueError):
            before = None
        if before is not None:
            run["success"] = before
        try:
            write_atomically(self._path, prometheus.text(samples(run)), MODE)
        except StateError as error:
            return failure(error)
        return None


@contextlib.contextmanager
def recorded(settings: Settings, plane: Plane, flow: str | None) -> Iterator[Metrics]:
    """Metrics of one run; if it fails, the file holds that.

    :param flow: the command is about this flow alone.
    """
    directory = settings.metrics_directory if flow is None else None
    path = None if directory is None else Path(directory) / FILES[plane]
    metrics = (
        Metrics(path, plane, settings.interval_seconds, prometheus.run_samples)
        if plane == "run"
        else Metrics(
            path, plane, settings.lag_interval_seconds,
            partial(prometheus.lag_samples, partitions=settings.metrics_partitions),
        )
    )  # fmt: skip
    try:
        yield metrics
    except LockedError:
        # The run that holds the state writes them.
        raise
    except Exception:
        metrics.write_failure()
        raise
