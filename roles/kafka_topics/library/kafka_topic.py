"""Ansible module: a Kafka topic, created and grown, never shrunk or deleted."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_admin_client import CONNECTION, ClusterError, admin_client
from ansible.module_utils.kafka_topic_state import Wanted, config_text, reconcile, topics

DOCUMENTATION = r"""
module: kafka_topic
short_description: A Kafka topic, created and grown, never shrunk or deleted
description:
  - Creates the topic, adds partitions, and sets the configs that are named; other configs stay.
  - Fewer partitions or another replication factor than the topic has are warned about and left.
options:
  connection:
    description: How to reach the cluster, as the filter C(kafka_python_client) returns it.
    type: dict
    required: true
    suboptions:
      bootstrap_servers:
        description: Brokers to ask first.
        type: list
        elements: str
        required: true
      security_protocol:
        description: How the listener is secured.
        type: str
        default: PLAINTEXT
        choices: [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]
      sasl_mechanism: {description: SASL mechanism., type: str}
      username: {description: User., type: str}
      password: {description: Password., type: str}
      ssl_ca: {description: Certificate authority, as PEM text., type: str}
      ssl_certificate: {description: Client certificate, as PEM text., type: str}
      ssl_key: {description: 'Its private key, PKCS#8 PEM text.', type: str}
  name:
    description: The topic.
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
author: kafka-mirror
attributes:
  check_mode: {support: full, description: The broker validates the steps and does not take them.}
  diff_mode: {support: full, description: Shows partitions and the named configs.}
"""

EXAMPLES = r"""
- name: Create the topic of orders
  kafka_topic:
    connection: "{{ kafka_clusters | kafka_python_client('source', 'admin') }}"
    name: orders
    partitions: 6
    configs: {retention.ms: 604800000}
"""

RETURN = r"""
created: {description: Whether the topic was missing., type: bool, returned: success}
grown_to: {description: The new number of partitions., type: int, returned: when grown}
configs: {description: Configs that were set, null for those reset., type: dict, returned: success}
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "connection": {"type": "dict", "required": True, "options": CONNECTION},
            "name": {"type": "str", "required": True},
            "partitions": {"type": "int", "default": -1},
            "replication_factor": {"type": "int", "default": -1},
            "configs": {"type": "dict", "default": {}},
            "timeout": {"type": "float", "default": 10.0},
        },
        supports_check_mode=True,
    )
    wanted = Wanted(
        name=module.params["name"],
        partitions=module.params["partitions"],
        replication_factor=module.params["replication_factor"],
        configs={name: config_text(value) for name, value in module.params["configs"].items()},
    )
    try:
        with admin_client(module.params["connection"], module.params["timeout"]) as admin:
            before = topics(admin).get(wanted.name)
            steps = reconcile(admin, before, wanted, module.check_mode)
    except ClusterError as error:
        module.fail_json(msg=str(error))
    for warning in steps.warnings:
        module.warn(warning)
    old = {"partitions": before.partitions} if before else {}
    new = {**old, "configs": dict(steps.configs)} if before else {"configs": dict(wanted.configs)}
    if steps.create or steps.grow_to:
        new["partitions"] = steps.grow_to or wanted.partitions
    module.exit_json(
        changed=steps.changes,
        created=steps.create,
        configs=dict(steps.configs),
        **({"grown_to": steps.grow_to} if steps.grow_to else {}),
        diff={"before": old, "after": new} if steps.changes else {},
    )


if __name__ == "__main__":
    main()
