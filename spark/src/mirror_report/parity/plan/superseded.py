"""What the state holds of another baseline than the present one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mirror_report.config import Flow
from mirror_report.parity.context import RunContext
from mirror_report.parity.plan.sides import Drop
from mirror_report.parity.state import Manifest, TopicKey, basis, changes, fed_by


@dataclass
class Superseded:
    """What no longer counts.

    :param manifest: without it.
    :param drops: rows to leave out; ``rebuilt``: topics whose results no longer count, by the flow
        that judged them.
    :param renewed: topics that begin again because a further flow has come to feed them.
    """

    manifest: Manifest
    drops: list[Drop] = field(default_factory=list)
    rebuilt: list[TopicKey] = field(default_factory=list)
    renewed: list[TopicKey] = field(default_factory=list)

    def leave(self, flows: Sequence[Flow], flow: str, topic: str) -> None:
        """Forget a topic that another flow judges from now on, or that begins again."""
        of_name = {each.name: each for each in flows}
        known = (key[2] for key in self.manifest.sides if key[:2] == (flow, "source"))
        feeds = ((origin, *fed_by(flow, origin)) for origin in known)
        origins = [
            origin
            for origin, via, name in feeds
            if via in of_name and of_name[via].target_topic(name) == topic
        ]
        self.manifest = changes.forget_topic(self.manifest, flow, topic, origins)
        self.drops += [Drop(flow, "source", origin) for origin in origins]
        self.drops.append(Drop(flow, "target", topic))


def superseded(context: RunContext, manifest: Manifest) -> Superseded:
    """What rests on another baseline than the present one, or on no flow at all."""
    flows = {flow.name: flow for flow in context.settings.flows}
    found = Superseded(manifest)
    for name, known in sorted(manifest.baselines.items()):
        if name not in flows or known != basis(flows[name], context.baseline(name)):
            found.manifest = changes.forget_flow(found.manifest, name)
            found.drops.append(Drop(name))
    for name in sorted(found.manifest.baselines):
        recorded = context.baseline(name).get("topics", {})
        for origin, at_ms in sorted(found.manifest.topic_baselines.get(name, {}).items()):
            if origin in recorded and recorded[origin]["recorded_at_ms"] != at_ms:
                _renew(context, found, flows[name], origin)
    return found


def _renew(context: RunContext, found: Superseded, flow: Flow, origin: str) -> None:
    topic = flow.target_topic(origin)
    judges = {key[0] for key in found.manifest.sides if key[1:] == ("target", topic)}
    for judge in sorted(judges):
        if context.settings.flow(judge).target == flow.target:
            found.leave(context.settings.flows, judge, topic)
            found.rebuilt.append((judge, topic))
    found.renewed.append((flow.name, topic))
