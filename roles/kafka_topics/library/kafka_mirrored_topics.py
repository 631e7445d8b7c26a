"""Ansible module: the target topics of a mirror that keeps names, with the source's partitions."""

import re
from collections.abc import Mapping

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_admin_client import CONNECTION, ClusterError, admin_client
from ansible.module_utils.kafka_topic_state import (
    Topic,
    TopicRefusedError,
    Wanted,
    config_text,
    reconcile,
    topics,
)

DOCUMENTATION = r"""
module: kafka_mirrored_topics
short_description: The target topics of a mirror that keeps names
description:
  - Lists the source's topics, takes those the mirror's regular expression matches as a whole,
    and creates on the target those that are missing, with the source's partition counts.
  - Topics with fewer partitions than the source are grown.
  - Nothing is shrunk, deleted or reconfigured.
  - What the target can never take (a name that differs from another's in C(.) and C(_) alone, or
    what a policy is against) is warned of and left out, for whoever makes topics on the source
    chooses it.
options:
  source:
    description: How to reach the source, as the filter C(kafka_python_client) returns it.
  target:
    description: How to reach the target.
  include:
    description: Regular expression of the mirror, of the subset that Java and Python read alike.
    type: str
    required: true
  configs:
    description: Topic configs of topics that are created.
    type: dict
    default: {}
  timeout:
    description: Seconds until a cluster counts as unreachable.
    type: float
    default: 10
extends_documentation_fragment: kafka_client.mirror
author: kafka-mirror
attributes:
  check_mode: {support: full, description: The broker validates the steps and does not take them.}
"""

EXAMPLES = r"""
- name: Create the target topics of the flow
  kafka_mirrored_topics:
    source: "{{ kafka_clusters | kafka_python_client('source', 'mirror') }}"
    target: "{{ kafka_clusters | kafka_python_client('target', 'admin') }}"
    include: "orders|payments\\..*"
"""

RETURN = r"""
matched: {description: Source topics the mirror takes., type: list, returned: success}
created: {description: Topics that were missing on the target., type: list, returned: success}
grown: {description: Topics that got partitions., type: list, returned: success}
refused: {description: Topics that the target can never take., type: list, returned: success}
"""


def wanted_topics(
    source: Mapping[str, Topic], include: str, brokers: int, configs: Mapping[str, str | None]
) -> list[Wanted]:
    """List what the target needs.

    :param source: the source's topics by name.
    :param include: the mirror's regular expression; it has to match the whole name.
    :param brokers: number of brokers of the target, the most replicas it can hold.
    :param configs: configs of topics that are created.
    :returns: the topics by name; internal ones are never mirrored.
    """
    pattern = re.compile(include)
    return [
        Wanted(
            name=name,
            partitions=topic.partitions,
            replication_factor=min(topic.replication_factor, brokers),
            configs=configs,
        )
        for name, topic in sorted(source.items())
        if not topic.internal and pattern.fullmatch(name)
    ]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "source": CONNECTION,
            "target": CONNECTION,
            "include": {"type": "str", "required": True},
            "configs": {"type": "dict", "default": {}},
            "timeout": {"type": "float", "default": 10.0},
        },
        supports_check_mode=True,
    )
    timeout = module.params["timeout"]
    configs = {name: config_text(value) for name, value in module.params["configs"].items()}
    created, grown, refused = [], [], []
    try:
        with admin_client(module.params["source"], timeout) as admin:
            source = topics(admin)
        with admin_client(module.params["target"], timeout) as admin:
            brokers = len(admin.describe_cluster()["brokers"])
            target = topics(admin)
            mirrored = wanted_topics(source, module.params["include"], brokers, configs)
            for topic in mirrored:
                existing = target.get(topic.name)
                # An existing topic keeps its replicas and configs: they are the target's own.
                need = topic if existing is None else Wanted(topic.name, topic.partitions)
                try:
                    steps = reconcile(admin, existing, need, module.check_mode)
                except TopicRefusedError as error:
                    refused.append(topic.name)
                    module.warn(f"{error}; list it in topics_exclude of the flow")
                    continue
                if steps.create:
                    created.append(topic.name)
                elif steps.grow_to:
                    grown.append(topic.name)
    except ClusterError as error:
        module.fail_json(msg=str(error))
    except re.error as error:
        module.fail_json(msg=f"include {module.params['include']!r}: {error}")
    module.exit_json(
        changed=bool(created or grown),
        matched=[topic.name for topic in mirrored],
        created=created,
        grown=grown,
        refused=refused,
    )


if __name__ == "__main__":
    main()
