"""What commands share: options, the flows they are about, what is said on standard error."""

import sys
import time
import traceback
from argparse import ArgumentParser, ArgumentTypeError, Namespace, _MutuallyExclusiveGroup
from collections.abc import Iterable, Sequence
from typing import Any

from mirror_report.checks.verdict import failure
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.config.load import load
from mirror_report.model import Finding, FlowStatus, sentence
from mirror_report.observe import Observed
from mirror_report.render import figures
from mirror_report.state.store import StateError, Store

FORMATS = ("terminal", "json", "nagios")


def flow(parser: ArgumentParser, text: str = "only this flow") -> None:
    """Add ``--flow``."""
    parser.add_argument("--flow", metavar="NAME", help=text)


def formats(parser: ArgumentParser) -> _MutuallyExclusiveGroup:
    """Add the formats of an answer; returns the group of options that exclude each other."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--format", choices=FORMATS, default="terminal",
        help="text, one JSON object, or one line with performance data (default terminal)",
    )  # fmt: skip
    json(group, "short for --format json")
    return group


def json(parser: ArgumentParser | _MutuallyExclusiveGroup, text: str) -> None:
    """Add ``--json``."""
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", default="terminal", help=text
    )


def wide(parser: ArgumentParser) -> None:
    """Add ``--wide``."""
    parser.add_argument("--wide", action="store_true", help="every row, and partition by partition")


def positive(text: str) -> float:
    """A number above 0."""
    if not 0 < (value := float(text)) < float("inf"):
        raise ArgumentTypeError("a number above 0 is expected")
    return value


def whole(text: str) -> int:
    """A whole number above 0."""
    if (value := int(text)) < 1:
        raise ArgumentTypeError("a number above 0 is expected")
    return value


def settings(options: Namespace) -> Settings:
    """Configuration that the options name.

    :raises ReportError: it cannot be read, or is wrong.
    """
    return load(options.config)


def chosen(settings: Settings, flow: str | None) -> tuple[Flow, ...]:
    """Flows a command is about.

    :raises ConfigError: unknown name, or no flow at all.
    """
    if flow is not None:
        return (settings.flow(flow),)
    if not settings.flows:
        raise ConfigError("flows: empty, there is nothing to observe")
    return settings.flows


def aliases(flows: Sequence[Flow]) -> list[str]:
    """Clusters of some flows, with repetitions."""
    return [alias for flow in flows for alias in (flow.source, flow.target)]


def load_manifests(
    store: Store, names: Iterable[str], findings: list[Finding]
) -> dict[str, dict[str, Any]]:
    """Manifests by name; one that cannot be used is empty.

    :param findings: a finding is added for each of those.
    """
    found = {}
    for name in names:
        try:
            found[name] = store.load(name)
        except StateError as error:
            found[name] = {}
            findings.append(failure(error))
    return found


def into_one(settings: Settings, flow: Flow) -> list[Flow]:
    """The other flows into a flow's target."""
    return [each for each in settings.flows if each != flow and each.target == flow.target]


def status_of(flow: Flow, observed: Observed | None) -> FlowStatus:
    """One line of the report about a flow.

    :param observed: ``None``: it could not be observed.
    """
    return FlowStatus(
        name=flow.name,
        engine=flow.engine.name,
        source=flow.source,
        target=flow.target,
        source_cluster_id=observed.source.cluster_id if observed else None,
        target_cluster_id=observed.target.cluster_id or None if observed else None,
        group_id=flow.group_id,
        group_state=observed.group.state if observed else None,
        target_brokers=observed.target.brokers if observed else None,
        topics=tuple(observed.source.topics) if observed else (),
        source_brokers=observed.source.brokers if observed else None,
    )


def show_progress(text: str) -> None:
    """Say what is being done, with the time if a person may be watching."""
    stamp = time.strftime("%H:%M:%S ") if sys.stderr.isatty() else ""
    print(f"{stamp}{figures.plain(text)}", file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Say what went wrong."""
    print(f"mirror-report: {figures.plain(text)}", file=sys.stderr, flush=True)


def show_traceback(error: BaseException) -> None:
    """Print where an error happened."""
    try:
        traceback.print_exception(error, file=sys.stderr)
    except Exception:  # see sentence()
        say(sentence(error))
