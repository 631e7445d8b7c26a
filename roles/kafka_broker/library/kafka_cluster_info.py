"""Ansible module: wait until a Kafka cluster answers, and say which one it is."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_admin_client import CONNECTION, ClusterError, wait_for_cluster

DOCUMENTATION = r"""
module: kafka_cluster_info
short_description: Wait until a Kafka cluster answers, and say which one it is
description: Connects as a client does, authenticates and asks who answers. Changes nothing.
options:
  timeout:
    description: Seconds to keep trying.
    type: float
    default: 30
extends_documentation_fragment: kafka_client
author: kafka-mirror
attributes:
  check_mode: {support: full, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Wait until the broker answers
  kafka_cluster_info:
    connection: "{{ kafka_clusters | kafka_python_client('source', 'admin') }}"
    timeout: 60
"""

RETURN = r"""
cluster_id: {description: Id of the cluster., type: str, returned: success}
brokers: {description: Ids of the brokers., type: list, returned: success}
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "connection": CONNECTION,
            "timeout": {"type": "float", "default": 30.0},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(
            changed=False,
            **wait_for_cluster(module.params["connection"], module.params["timeout"]),
        )
    except ClusterError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
