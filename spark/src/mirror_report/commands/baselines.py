"""``baseline``: where verification starts."""

from __future__ import annotations

from typing import Any

from mirror_report.commands.checked import same_cluster
from mirror_report.commands.flows import aliases, chosen
from mirror_report.config import ConfigError, Flow, Settings
from mirror_report.observe import Clients, look, open_clients
from mirror_report.state.store import StateError, Store


def baseline(
    settings: Settings, flow_name: str | None, *, full_history: bool, renew: bool
) -> dict[str, bool]:
    """Record where verification starts.

    :param full_history: compare everything both logs still hold, replacing what was recorded.
    :param renew: replace what was recorded by the state of now.
    :returns: flow -> whether something was recorded (a baseline is kept unless told otherwise).
    :raises ReportError: a cluster cannot be read; nothing is recorded for any flow then.
    """
    store = Store(settings.state_directory)
    flows = chosen(settings, flow_name)
    with store.lock():
        recorded = store.load("baseline")
        due = [one for one in flows if full_history or renew or one.name not in recorded]
        if due:
            ids = store.load("topics")
            with open_clients(settings, aliases(due)) as clients:
                for flow in due:
                    entry = _baseline_of(clients, flow, full_history)
                    recorded[flow.name] = entry
                    ids[flow.name] = {
                        side: {
                            flow.target_topic(name) if side == "target" else name: one[f"{side}_id"]
                            for name, one in entry["topics"].items()
                            if one[f"{side}_id"] is not None
                        }
                        for side in ("source", "target")
                    }
            store.commit("baseline", recorded)
            store.commit("topics", ids)
    return {one.name: one in due for one in flows}


def _baseline_of(clients: Clients, flow: Flow, full_history: bool) -> dict[str, Any]:
    observed = look(clients, flow, {})
    same = same_cluster(flow, observed)
    if same:
        raise ConfigError(f"{same[0].message}. {same[0].action}")
    problems = {**observed.source.errors, **observed.target.errors}
    if problems:
        raise StateError("no baseline recorded: " + "; ".join(problems.values()))
    topics: dict[str, Any] = {}
    for name, ours in observed.source.topics.items():
        there = flow.target_topic(name)
        theirs = observed.target.topics.get(there)
        commits = {} if full_history else observed.positions.get(name, {})
        source = {
            str(p): commits.get(
                p, one.log_end if flow.start == "latest" and not full_history else one.log_start
            )
            for p, one in ours.partitions.items()
        }
        target = {
            str(p): one.log_start if full_history else one.end
            for p, one in (theirs.partitions if theirs else {}).items()
        }
        skip = None
        if commits and theirs is not None:
            # Asked after the offsets: what arrives in between is skipped, never called missing.
            newest = clients.get(flow.target).max_timestamps(there, list(theirs.partitions))
            skip = max(newest.values(), default=None)
        topics[name] = {
            "source": source,
            "log_start": {str(p): one.log_start for p, one in ours.partitions.items()},
            "target": target,
            "skip_through_ms": skip,
            "source_id": ours.topic_id,
            "target_id": theirs.topic_id if theirs else None,
        }
    return {
        "recorded_at_ms": observed.source.taken_at_ms,
        "group_existed": bool(observed.positions),
        "topics": topics,
    }
