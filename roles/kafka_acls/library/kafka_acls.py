"""Ansible module: permissions of a cluster, added and never removed."""

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_admin_client import CONNECTION, ClusterError, admin_client

try:
    from kafka import errors
    from kafka.admin import (
        ACL,
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        ResourcePattern,
        ResourcePatternFilter,
        ResourceType,
    )
except ImportError:  # admin_client names the interpreter that lacks it
    pass

DOCUMENTATION = r"""
module: kafka_acls
short_description: Permissions of a cluster, added and never removed
description:
  - Adds the permissions that are missing, for clients from any address.
  - What the same principals are allowed besides is named and left.
options:
  connection:
    description: How an administrator reaches the cluster, as C(kafka_python_client) returns it.
  permissions:
    description:
      - Rows of the filter C(mirror_permissions), of which C(principal), C(resource), C(name),
        C(pattern), C(operation) and, where it is there, C(deny) count.
    type: list
    elements: dict
    required: true
  timeout:
    description: Seconds until the cluster counts as unreachable.
    type: float
    default: 10
extends_documentation_fragment: kafka_client
author: kafka-mirror
attributes:
  check_mode: {support: full, description: Nothing is added.}
  diff_mode: {support: full, description: Shows what is added.}
"""

EXAMPLES = r"""
- name: Allow what the mirrors of this cluster need
  kafka_acls:
    connection: "{{ kafka_clusters | kafka_python_client('east', 'admin') }}"
    permissions: "{{ kafka_clusters | mirror_permissions(mirror_flows, mirrormaker_instances)
                     | selectattr('cluster', 'equalto', 'east') }}"
"""

RETURN = r"""
added: {description: Permissions that were missing, in words., type: list, returned: success}
unneeded:
  description: What else the same principals are allowed or denied, in words.
  type: list
  returned: success
"""


def acl(row: Mapping[str, Any]) -> ACL:
    """One permission as Kafka keeps it, for clients from any address."""
    return ACL(
        principal=row["principal"],
        host="*",
        operation=ACLOperation[row["operation"]],
        permission_type=ACLPermissionType.DENY if row.get("deny") else ACLPermissionType.ALLOW,
        resource_pattern=ResourcePattern(
            ResourceType[row["resource"].upper().replace("-", "_")],
            row["name"],
            ACLResourcePatternType[row["pattern"].upper()],
        ),
    )


def words(acl: ACL) -> str:
    """One permission as a person reads it."""
    resource = acl.resource_pattern
    kind = resource.resource_type.name.lower().replace("_", "-")
    beginning = "*" if resource.pattern_type == ACLResourcePatternType.PREFIXED else ""
    address = "" if acl.host == "*" else f" from {acl.host}"
    return (
        f"{acl.permission_type.name.lower()} {acl.principal} {acl.operation.name} on {kind} "
        f"{resource.resource_name}{beginning}{address}"
    )


def existing(admin: Any, principals: Iterable[str]) -> list[ACL]:
    """Everything the cluster holds about some principals."""
    anything = {
        "host": None,
        "operation": ACLOperation.ANY,
        "permission_type": ACLPermissionType.ANY,
        "resource_pattern": ResourcePatternFilter(
            ResourceType.ANY, None, ACLResourcePatternType.ANY
        ),
    }
    return [
        binding
        for principal in principals
        for binding in admin.describe_acls(ACLFilter(principal=principal, **anything))[0]
    ]


def add(admin: Any, missing: list[ACL]) -> None:
    """Add permissions.

    :raises ClusterError: the cluster refused one; the message names it.
    """
    done = admin.create_acls(missing)
    if done["failed"]:
        refused = [words(binding) for binding in missing if binding not in done["succeeded"]]
        reasons = sorted({error.__name__ for error in done["failed"]})
        raise ClusterError(f"the cluster refused {'; '.join(refused)}: {', '.join(reasons)}")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "connection": CONNECTION,
            "permissions": {"type": "list", "elements": "dict", "required": True},
            "timeout": {"type": "float", "default": 10.0},
        },
        supports_check_mode=True,
    )
    connection, rows = module.params["connection"], module.params["permissions"]
    try:
        with admin_client(connection, module.params["timeout"]) as admin:
            try:
                needed = [acl(row) for row in rows]
                before = existing(admin, dict.fromkeys(binding.principal for binding in needed))
                missing = [binding for binding in needed if binding not in before]
                if missing and not module.check_mode:
                    add(admin, missing)
            except errors.SecurityDisabledError:
                raise ClusterError(
                    "the brokers check no permissions (authorizer.class.name is not set), so none "
                    "can be added"
                ) from None
            except errors.ClusterAuthorizationFailedError:
                raise ClusterError(
                    f"user {connection.get('username') or 'anonymous'} may not read or write "
                    "permissions: give kafka_clusters.<alias>.identities.admin a super user, or "
                    "ALTER on the cluster"
                ) from None
    except ClusterError as error:
        servers = ", ".join(connection["bootstrap_servers"])
        text = str(error)
        module.fail_json(msg=text if servers in text else f"{servers}: {text}")
    present = sorted(map(words, before))
    added = [words(binding) for binding in missing]
    module.exit_json(
        changed=bool(missing),
        added=added,
        unneeded=sorted(words(binding) for binding in before if binding not in needed),
        diff={
            "before": "".join(f"{line}\n" for line in present),
            "after": "".join(f"{line}\n" for line in sorted(present + added)),
        },
    )


if __name__ == "__main__":
    main()
