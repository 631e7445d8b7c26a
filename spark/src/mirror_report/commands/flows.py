"""Which flows a command is about, what is remembered of them, and their line in a report."""

from collections.abc import Iterable, Sequence
from typing import Any

from mirror_report.checks.verdict import failure
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.model import Finding, FlowStatus
from mirror_report.observe import Observed
from mirror_report.state.store import StateError, Store


def chosen(settings: Settings, flow: str | None) -> tuple[Flow, ...]:
    """Flows a command is about.

    :raises ConfigError: unknown name, or no flow at all.
    """
    if flow is not None:
        return (settings.flow(flow),)
    if not settings.flows:
        raise ConfigError("flows: empty, there is nothing to look at")
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
        target_cluster_id=observed.target.cluster_id if observed else None,
        group_id=flow.group_id,
        group_state=observed.group.state if observed else None,
        target_brokers=observed.target_brokers if observed else None,
        topics=tuple(observed.source.topics) if observed else (),
    )
