#!/usr/bin/python
"""Keep the file of users that a web server asks; a password that is unchanged keeps its hash."""

import ctypes
import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_files.paths import PathError, existing, group_id

DOCUMENTATION = r"""
---
module: mirror_report_users
short_description: Keep the file of users that a web server asks
description:
  - Writes C(name:hash) lines, salted SHA-512 of crypt(3), for root and one group alone.
  - Hashes with the host's own crypt(3), the one that the web server verifies with, so neither
    the controller nor the host needs a Python library for it.
options:
  path:
    description: The file. Its directory is made if it is missing.
    type: path
    required: true
  group:
    description: The group that may read it. In check mode it may be missing.
    type: str
    required: true
  users:
    description: Name to password, as the filter C(web_user_problems) finds nothing against.
    type: dict
    required: true
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: Write the users of a site
  mirror_report_users:
    path: /etc/mirror-report/users/htpasswd
    group: www-data
    users: "{{ vault_report_users }}"
"""

RETURN = r"""
written:
  description: Names whose password is new or has changed.
  returned: always
  type: list
removed:
  description: Names of users that are removed.
  returned: always
  type: list
"""

SALT = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def crypt(password: str, setting: str) -> str:
    """Hash a password as the host's C library does.

    :param setting: ``$6$<salt>``, or a whole hash to verify against.
    :raises OSError: this crypt(3) does not know the method.
    """
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    answer = library.crypt(password.encode("utf-8"), setting.encode("ascii"))
    if not answer or answer.startswith(b"*"):
        raise OSError("crypt(3) of this host does not know SHA-512")
    return str(answer.decode("ascii"))


def verified(password: str, hashed: str) -> bool:
    """Whether a hash as this module writes it is that of a password."""
    return hashed.startswith("$6$") and hmac.compare_digest(crypt(password, hashed), hashed)


def read(path: Path) -> dict[str, str]:
    """Name to hash of a file as it is; empty if there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError):
        return {}
    return {
        name: hashed for name, colon, hashed in (line.partition(":") for line in lines) if colon
    }


def hashes(users: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
    """Name to hash as it shall be: the present one where it is that of the password."""
    return {
        name: present[name]
        if verified(password, present.get(name, ""))
        else crypt(password, "$6$" + "".join(secrets.choice(SALT) for _ in range(16)))
        for name, password in sorted(users.items())
    }


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "group": {"type": "str", "required": True},
            "users": {"type": "dict", "required": True, "no_log": True},
        },
        supports_check_mode=True,
    )
    path, users = Path(module.params["path"]), module.params["users"]
    group = group_id(module.params["group"])
    if group is None and not module.check_mode:
        module.fail_json(msg=f"group: {module.params['group']!r} is not there")
    try:
        present = read(path)
        users_hashed = hashes(users, present)
        status = path.stat() if path.exists() else None
        access = status and (status.st_mode & 0o7777, status.st_uid, status.st_gid)
        changed = users_hashed != present or access != (0o640, 0, group)
        if changed and not module.check_mode:
            text = "".join(f"{name}:{hashed}\n" for name, hashed in users_hashed.items())
            with existing(path.parent) as entry:
                entry.make_directory(0o750, 0, group)
            with existing(path) as entry:
                entry.write(text.encode("utf-8"), 0o640, 0, group)
    except (PathError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=changed,
        written=[name for name, hashed in users_hashed.items() if present.get(name) != hashed],
        removed=sorted(set(present) - set(users_hashed)),
    )


if __name__ == "__main__":
    main()
