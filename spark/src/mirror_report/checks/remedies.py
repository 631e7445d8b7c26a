"""The commands findings name: whole, quoted, ready to be pasted; no I/O.

Those of Kafka's own tools name the brokers as the report reaches them. Where a cluster wants a
login, who pastes one adds ``--command-config`` and a file of properties: no text holds a secret.
"""

import shlex
from collections.abc import Mapping

from mirror_report.config import Cluster, Flow


def tool(cluster: Cluster, script: str, *words: str) -> str:
    """Command line of one of Kafka's scripts, such as ``kafka-topics.sh``."""
    return shlex.join([script, "--bootstrap-server", ",".join(cluster.bootstrap_servers), *words])


def alter_topic(cluster: Cluster, topic: str, configs: Mapping[str, str]) -> str:
    """Command that sets configurations of a topic."""
    added = ",".join(
        # The tool takes a value apart at commas unless it is bracketed.
        f"{key}=[{value}]" if "," in value else f"{key}={value}"
        for key, value in configs.items()
    )
    return tool(
        cluster, "kafka-configs.sh", "--alter", "--entity-type", "topics", "--entity-name", topic,
        "--add-config", added,
    )  # fmt: skip


def journal(flow: Flow) -> str:
    """Command that shows the end of the mirror's journal; for :func:`host` of the flow."""
    return f"journalctl -u {flow.instance}.service -n 100"


def service(flow: Flow, verb: str) -> str:
    """Command that starts, stops or restarts the mirror's process."""
    return flow.engine.control.format(verb=verb, instance=flow.instance)


def connector(flow: Flow, verb: str, name: str = "") -> str:
    """What starts, stops or restarts a connector of the flow: the process, if it is its own.

    :param name: by default, what copies records.
    """
    control = flow.engine.connector_control.get(verb)
    if control is None:
        return service(flow, verb)
    return control.format(connector=name or flow.connectors[0], instance=flow.instance)


def start_mirror(flow: Flow) -> str:
    """What to do about a mirror without a process: why it has none, and how to start it."""
    return f"On {host(flow)}: {service(flow, 'status')}; {journal(flow)}; {service(flow, 'start')}"


def host(flow: Flow) -> str:
    """Where the mirror's process runs, by words if that is not known."""
    return flow.hosts[0] if flow.hosts else "its host"


def prove_topic(flow: str, topic: str) -> str:
    """Command that proves a topic at rest, whatever its timestamps and whatever the baseline."""
    return f"mirror-report prove --flow {flow} --topic {topic}"


def renew(flow: Flow, topic: str = "") -> str:
    """Command that accepts what was lost: verification begins again from now.

    :param topic: of the source; verification of the others goes on.
    """
    return f"{_baseline(flow, topic)} --renew"


def full_history(flow: Flow, topic: str) -> str:
    """Command that compares all that both sides hold of a topic of the source."""
    return f"{_baseline(flow, topic)} --full-history"


def _baseline(flow: Flow, topic: str) -> str:
    of_topic = f" --topic {shlex.quote(topic)}" if topic else ""
    return f"mirror-report baseline --flow {flow.name}{of_topic}"
