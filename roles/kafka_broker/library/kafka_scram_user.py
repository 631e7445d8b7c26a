"""Ansible module: a SCRAM user of a Kafka cluster who can log in with the given password."""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_admin_client import (
    CONNECTION,
    AuthenticationRefusedError,
    ClusterError,
    admin_client,
    wait_for_cluster,
)

try:
    from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
except ImportError:  # admin_client names the interpreter that lacks it
    ScramMechanism = UserScramCredentialUpsertion = None

DOCUMENTATION = r"""
module: kafka_scram_user
short_description: A SCRAM user of a Kafka cluster who can log in with the given password
description:
  - Kafka never gives a SCRAM credential back, so a login shows whether the password is right.
  - The credential is written only if the user has none for the mechanism or the login is refused.
options:
  connection:
    description: How an administrator reaches the cluster, as C(kafka_python_client) returns it.
  login:
    description: How the user is to reach the cluster; names user, password and mechanism.
  timeout:
    description: Seconds until the cluster counts as unreachable.
    type: float
    default: 30
extends_documentation_fragment: [kafka_client, kafka_client.login]
author: kafka-mirror
attributes:
  check_mode: {support: full, description: Logs in, writes nothing.}
"""

EXAMPLES = r"""
- name: Let the mirror log in
  kafka_scram_user:
    connection: "{{ kafka_clusters | kafka_python_client('source', 'admin') }}"
    login: "{{ kafka_clusters | kafka_python_client('source', 'mirror') }}"
"""

RETURN = r"""
reason: {description: Why the credential was written., type: str, returned: changed}
"""


def reason_to_write(admin: Any, login: Mapping[str, Any], timeout: float) -> str | None:
    """Why the user's credential has to be written.

    :param admin: a connected admin client.
    :param login: connection of the user.
    :param timeout: seconds until the cluster counts as unreachable.
    :returns: the reason, or ``None`` when the user can log in with this password.
    :raises ClusterError: the listener for users does not answer.
    """
    user, mechanism = login["username"], login["sasl_mechanism"]
    described = admin.describe_user_scram_credentials([user]).get(user, {})
    names = {info["mechanism"].name for info in described.get("credential_infos", [])}
    if mechanism.replace("-", "_") not in names:
        return f"user {user} had no {mechanism} credential"
    try:
        wait_for_cluster(login, timeout)
        return None
    except AuthenticationRefusedError:
        return f"user {user} could not log in with this password"


def write(admin: Any, login: Mapping[str, Any], timeout: float) -> None:
    """Write the credential and wait until it is good for a login.

    :param admin: a connected admin client.
    :param login: connection of the user.
    :param timeout: seconds until a login has to succeed.
    :raises ClusterError: the cluster refused the credential, or the login with it.
    """
    user = login["username"]
    mechanism = ScramMechanism[login["sasl_mechanism"].replace("-", "_")]
    answer = admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion(user, mechanism, login["password"])]
    )
    if answer.get(user):
        raise ClusterError(f"the cluster refused the credential of user {user}: {answer[user]}")
    wait_for_cluster(login, timeout, new_login=True)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "connection": CONNECTION,
            "login": CONNECTION,
            "timeout": {"type": "float", "default": 30.0},
        },
        supports_check_mode=True,
    )
    login, timeout = module.params["login"], module.params["timeout"]
    if login["sasl_mechanism"] not in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        module.fail_json(
            msg=f"login.sasl_mechanism of user {login['username']} is {login['sasl_mechanism']}: "
            "only SCRAM-SHA-256 and SCRAM-SHA-512 keep their users in the cluster"
        )
    if not login["username"] or not login["password"]:
        module.fail_json(msg="login.username and login.password are needed")
    try:
        with admin_client(module.params["connection"], timeout) as admin:
            reason = reason_to_write(admin, login, timeout)
            if reason and not module.check_mode:
                write(admin, login, timeout)
    except ClusterError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=reason is not None, **({"reason": reason} if reason else {}))


if __name__ == "__main__":
    main()
