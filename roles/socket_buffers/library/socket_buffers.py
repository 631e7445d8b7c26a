#!/usr/bin/python
"""Raise how large the kernel lets the buffers of TCP sockets grow, and set it back."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_files.paths import PathError, existing

DOCUMENTATION = r"""
---
module: socket_buffers
short_description: Raise how large buffers of TCP sockets may grow
description:
  - Sets the last number of C(net.ipv4.tcp_rmem) and C(net.ipv4.tcp_wmem), at once and for the next
    start of the host, where the kernel allows less.
  - What the kernel had before stands in the file, as comments, and is set again when the file goes.
options:
  receive:
    description: Bytes that the buffer of a socket must be able to receive; 0 leaves it alone.
    type: int
    default: 0
  send:
    description: The same of bytes to be sent.
    type: int
    default: 0
  file:
    description: File of C(sysctl) that keeps the limits. It goes when nothing has to be raised.
    type: path
    required: true
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: Let sockets hold 64 MiB of what far brokers send
  socket_buffers:
    receive: 67108864
    file: /etc/sysctl.d/60-mirrormaker.conf
"""

RETURN = r"""
limits:
  description: Key to its three numbers, as they are now; in check mode, as they would be.
  returned: always
  type: dict
"""

KEYS = {"net.ipv4.tcp_rmem": "receive", "net.ipv4.tcp_wmem": "send"}
KERNEL = Path("/proc/sys")
HEAD = "# Written by Ansible, role socket_buffers: limits for mirrors of far clusters.\n"
BEFORE = re.compile(r"^# before (\S+) = (\d+) (\d+) (\d+)$", re.MULTILINE)

Limits = dict[str, tuple[int, ...]]


def place(key: str) -> Path:
    """Where the kernel shows a key."""
    return KERNEL / key.replace(".", "/")


def in_kernel() -> Limits:
    """Key to its least, first and greatest size in bytes."""
    return {key: tuple(map(int, place(key).read_text().split())) for key in KEYS}


def written(limits: Limits) -> dict[str, str]:
    """Limits as text."""
    return {key: " ".join(map(str, numbers)) for key, numbers in limits.items()}


def raised(before: Limits, needed: Mapping[str, int]) -> Limits:
    """Limits that hold what is needed, and never less than before."""
    return {
        key: (*before[key][:-1], max(before[key][-1], needed[side])) for key, side in KEYS.items()
    }


def content(before: Limits, after: Limits) -> str:
    """The file: what was before as comments, what is raised as settings; empty if nothing is."""
    higher = [key for key in KEYS if after[key] != before[key]]
    old, new = written(before), written(after)
    comments = "".join(f"# before {key} = {old[key]}\n" for key in higher)
    return HEAD + comments + "".join(f"{key} = {new[key]}\n" for key in higher) if higher else ""


def keep(given: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    """Bring kernel and file to what is wanted.

    :param given: parameters of the module.
    :param check: change nothing.
    :returns: what the module answers.
    :raises PathError: the file's directory is not there.
    :raises OSError: the kernel refuses a limit, as in most containers.
    """
    path, now = Path(given["file"]), in_kernel()
    with existing(path) as entry:
        present = (entry.read() or b"").decode("utf-8")
        remembered = {key: tuple(map(int, numbers)) for key, *numbers in BEFORE.findall(present)}
        before = now | {key: remembered[key] for key in KEYS if key in remembered}
        after = raised(before, given)
        text = content(before, after)
        changed = text != present or after != now
        if changed and not check:
            if text:
                # First what remembers, then what changes: a run that dies can be undone.
                entry.write(text.encode("utf-8"), 0o644, 0, 0)
            for key, numbers in written(after).items():
                if after[key] != now[key]:
                    place(key).write_text(numbers)
            if not text:
                entry.remove()
    shown = {
        "before": present,
        "after": text,
        "before_header": str(path),
        "after_header": str(path),
    }
    return {"changed": changed, "limits": written(after), "diff": shown}


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={
            "receive": {"type": "int", "default": 0},
            "send": {"type": "int", "default": 0},
            "file": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**keep(module.params, check=module.check_mode))
    except OSError as error:
        module.fail_json(
            msg=f"the kernel's limits were not changed: {error}. In a container set them on the "
            "machine that runs it"
        )
    except PathError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
