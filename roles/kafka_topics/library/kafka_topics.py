"""Ansible module: topics of a Kafka cluster, created and grown, never shrunk or deleted."""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_admin_client import CONNECTION, ClusterError, admin_client
from ansible.module_utils.kafka_topic_state import (
    Plan,
    Topic,
    Wanted,
    config_text,
    reconcile,
    topics,
)

DOCUMENTATION = r"""
module: kafka_topics
short_description: Topics of a Kafka cluster, created and grown, never shrunk or deleted
description:
  - Creates topics, adds partitions, and sets the configs that are named; other configs stay.
  - Fewer partitions or another replication factor than a topic has are warned about and left.
  - What the cluster refuses of one topic does not keep the others from their steps.
options:
  topics:
    description: The topics.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      partitions:
        description: Number of partitions; -1 takes the cluster's default for a new topic.
        type: int
        default: -1
      replication_factor:
        description: Replicas of a new topic; -1 takes the cluster's default.
        type: int
        default: -1
      configs:
        description: Topic configs by Kafka's own names; null resets one to the cluster's default.
        type: dict
        default: {}
  timeout:
    description: Seconds until the cluster counts as unreachable.
    type: float
    default: 10
extends_documentation_fragment: kafka_client
author: kafka-mirror
attributes:
  check_mode: {support: full, description: The broker validates the steps and does not take them.}
  diff_mode: {support: full, description: Shows partitions and the named configs.}
"""

EXAMPLES = r"""
- name: Create the topic of orders
  kafka_topics:
    connection: "{{ kafka_clusters | kafka_python_client('source', 'admin') }}"
    topics:
      - name: orders
        partitions: 6
        configs: {retention.ms: 604800000}
"""

RETURN = r"""
created: {description: Topics that were missing., type: list, returned: success}
grown: {description: Topics that got partitions., type: list, returned: success}
configured: {description: Topics whose configs were set or reset., type: list, returned: success}
"""


def main() -> None:
    """Run the module."""
    topic = {
        "name": {"type": "str", "required": True},
        "partitions": {"type": "int", "default": -1},
        "replication_factor": {"type": "int", "default": -1},
        "configs": {"type": "dict", "default": {}},
    }
    module = AnsibleModule(
        argument_spec={
            "connection": CONNECTION,
            "topics": {"type": "list", "elements": "dict", "required": True, "options": topic},
            "timeout": {"type": "float", "default": 10.0},
        },
        supports_check_mode=True,
    )
    every = [
        Wanted(
            name=topic["name"],
            partitions=topic["partitions"],
            replication_factor=topic["replication_factor"],
            configs={name: config_text(value) for name, value in topic["configs"].items()},
        )
        for topic in module.params["topics"]
    ]
    taken: dict[str, Plan] = {}
    refused = []
    try:
        with admin_client(module.params["connection"], module.params["timeout"]) as admin:
            existing = topics(admin)
            for topic in every:
                try:
                    taken[topic.name] = reconcile(
                        admin, existing.get(topic.name), topic, module.check_mode
                    )
                except ClusterError as error:
                    refused.append(str(error))
    except ClusterError as error:
        refused.append(str(error))
    changed = any(steps.changes for steps in taken.values())
    for steps in taken.values():
        for warning in steps.warnings:
            module.warn(warning)
    if refused:
        module.fail_json(msg="\n".join(refused), changed=changed)
    pairs = [difference(existing.get(topic.name), topic, taken[topic.name]) for topic in every]
    module.exit_json(
        changed=changed,
        created=[name for name, steps in taken.items() if steps.create],
        grown=[name for name, steps in taken.items() if steps.grow_to],
        configured=[name for name, steps in taken.items() if steps.configs],
        diff=[pair for pair in pairs if pair],
    )


def difference(before: Topic | None, target: Wanted, steps: Plan) -> dict[str, Any]:
    """What ``--diff`` shows of a topic.

    :returns: ``before`` and ``after`` under a header; empty: nothing changes.
    """
    if not steps.changes:
        return {}
    old = {"partitions": before.partitions} if before else {}
    new = {**old, "configs": dict(steps.configs if before else target.configs)}
    if steps.create or steps.grow_to:
        new["partitions"] = steps.grow_to or target.partitions
    header = f"topic {target.name}"
    return {"before_header": header, "after_header": header, "before": old, "after": new}


if __name__ == "__main__":
    main()
