"""What the model asks of an engine."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .acls import Row
from .control import Kept
from .keys import Clusters, Flow
from .owners import INSTANCES, Owner, OwnerKind
from .process import Process
from .validation import Validation


@dataclass(frozen=True)
class Engine:
    """One engine: facts that shared code asks for, and functions that only the engine can answer.

    Flows are filled in and know what they leave out (:meth:`.control.Control.guarded`), but not in
    ``validate``, ``kept``, ``unmirrored`` and ``prefix``. Functions that return nothing of their
    own are left out.

    :param name: as an inventory spells it, and ``files/advisories.yml``.
    :param title: as a person reads it.
    :param kafka_version: the release it runs from by default.
    :param policies: the replication policies it has, the default first.
    :param flow_keys: keys of a flow that not every engine understands, and it does.
    :param owner_keys: the same of its owner's keys.
    :param layers: owner's keys that hold properties -> the side (source, target) whose client gets
        them; empty: they are about no cluster's connection.
    :param validate: (validation, the engine's flows) notes the problems that only it has.
    :param render: (clusters, process, node) -> the process with all that its engine knows: script,
        arguments, environment, properties, its own part of the identity, positions, and where it
        has them texts, options of the JVM, what prepares it and further credentials; node holds
        ``address``, ``name`` and ``brokers`` as far as they are known.
    :param permissions: rows of ACLs that the mirror needs for a flow of an owner.
    :param report_permissions: rows that the report needs beyond topics and the size of topics.
    :param report: (clusters, flow, owner) -> the flow's keys in the report's model that depend on
        the engine, ``commit_interval_ms``, ``parallelism`` and both isolations at least.
    :param group: flow -> (alias, group) of the group whose members are the mirror's processes.
    :param fill: flow -> what the engine fills in beyond the schema's defaults.
    :param unmirrored: patterns of topics that it leaves out by itself.
    :param control_topics: patterns of the topics that owners keep for it, unless somebody chose
        other names; ``control_groups``: of the groups.
    :param kept: (owner, its flows) -> the topics and groups that the owner keeps.
    :param prefix: what stands before a topic's name on the target.
    :param memory: (clusters, flows of one owner, owner) -> the heap in mebibytes that its clients
        may take by their properties.
    :param connectors: (clusters, the engine's flows, owner, alias to its brokers, aliases of which
        they were typed) -> connectors that the owner has to run.
    :param several_flows: whether one owner runs several flows.
    :param creates_topics: whether it creates topics on the target; otherwise somebody else has to.
    :param oldest: the first release in which it works.
    :param older: what it does wrong in older ones.
    :param last_line: the last release line that has it; empty: it goes on.
    :param nodes: what advisories call its processes where several hosts listen to each other.
    :param flow_clients: prefixes of a flow's properties -> the side whose client gets them.
    """

    name: str
    title: str
    kafka_version: str
    policies: Sequence[str]
    flow_keys: frozenset[str]
    owner_keys: frozenset[str]
    layers: Mapping[str, str]
    validate: Callable[[Validation, Sequence[Flow]], None]
    render: Callable[[Clusters, Process, Mapping[str, Any]], Process]
    permissions: Callable[[Flow, Owner], list[Row]]
    report_permissions: Callable[[Flow, Owner], list[Row]]
    report: Callable[[Clusters, Flow, Owner], dict[str, Any]]
    group: Callable[[Flow], tuple[str, str]]
    fill: Callable[[Flow], Mapping[str, Any]] = lambda _: {}
    unmirrored: Callable[[Flow, Owner], Sequence[str]] = lambda *_: ()
    control_topics: Sequence[str] = ()
    control_groups: Sequence[str] = ()
    kept: Callable[[Owner, Sequence[Flow]], Sequence[Kept]] = lambda *_: ()
    prefix: Callable[[Flow, Owner], str] = lambda *_: ""
    memory: Callable[[Clusters, Sequence[Flow], Owner], float] = lambda *_: 1024
    connectors: Callable[
        [Clusters, Sequence[Flow], Owner, Mapping[str, int], Collection[str]], list[dict[str, Any]]
    ] = lambda *_: []
    several_flows: bool = False
    creates_topics: bool = False
    oldest: str = "0.0.0"
    older: str = ""
    last_line: str = ""
    nodes: str = ""
    flow_clients: Mapping[str, str] = field(default_factory=dict)
    owners: OwnerKind = INSTANCES
