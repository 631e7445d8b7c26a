#!/usr/bin/python
"""What runs on a Kafka Connect cluster, and whether all that ran before runs again."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.connect_rest import (
    UNAUTHORIZED,
    Connect,
    RestError,
    answer_of_a_worker,
    connected,
    first_cause,
)

# Status of an error that is no answer of HTTP's: a worker lets in whoever asks.
OPEN = -1

DOCUMENTATION = r"""
---
module: connect_workers
short_description: What runs on a Kafka Connect cluster
description:
  - Asks a worker for the states of all connectors and tasks. Changes nothing, so it runs in check
    mode too.
  - With O(again) it waits until all of these run, and with O(closed) it makes sure that the worker
    lets nobody in without a password.
options:
  urls:
    description: Addresses of workers, of which one is enough.
    type: list
    elements: str
    required: true
  ca:
    description: Certificates of the authorities that signed the workers', as PEM text.
    type: str
  certificate:
    description: Client certificate as PEM text, where workers ask for one.
    type: str
  key:
    description: Its private key as PEM text.
    type: str
  username:
    description: Who asks.
    type: str
  password:
    description: The password.
    type: str
  required:
    description: Whether it is an error that no worker answers.
    type: bool
    default: true
  closed:
    description: Whether a worker that answers without a password is an error.
    type: bool
    default: false
  again:
    description: What has to run, as RV(running) named it before.
    type: list
    elements: str
    default: []
  patience:
    description: Seconds to wait for a worker that starts, and for what has to run.
    type: float
    default: 120
  lost:
    description:
      - Command that is asked while something is waited for. What it prints is why there is nothing
        to wait for.
    type: list
    elements: str
    default: []
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: See what runs before a worker is restarted
  connect_workers:
    urls: ["https://connect1:8084"]
    ca: "{{ ca }}"
    username: deployer
    password: "{{ password }}"
  register: before
"""

RETURN = r"""
open:
  description: Whether it failed because a worker lets in whoever asks.
  returned: failed
  type: bool
running:
  description: Connectors and tasks that run, such as C(orders-source) and C(orders-source/0).
  returned: always
  type: list
failures:
  description: What has failed, and its first cause.
  returned: always
  type: list
"""


def states(connect: Connect) -> tuple[list[str], list[str]]:
    """What runs, and what has failed and why."""
    running, failed = [], []
    with answer_of_a_worker():
        for name, entry in sorted(connect.connectors("status").items()):
            status = entry["status"]
            parts = [(name, status["connector"])]
            parts += [(f"{name}/{task['id']}", task) for task in status["tasks"]]
            for what, state in parts:
                if state["state"] == "RUNNING":
                    running.append(what)
                elif state["state"] == "FAILED":
                    failed.append(f"{what}: {first_cause(state.get('trace', ''))}")
    return running, failed


def wait(connect: Connect, again: Collection[str], patience: float) -> tuple[list[str], list[str]]:
    """States once all that ran before runs again.

    :raises RestError: some of it does not, in time, or there is nothing to wait for.
    """
    deadline = time.monotonic() + patience
    while True:
        running, failed = states(connect)
        lacking = sorted(set(again) - set(running))
        if not lacking:
            return running, failed
        if time.monotonic() > deadline:
            raise RestError(
                f"{', '.join(lacking)} ran before the restart and does not now"
                + "".join(f"; {each}" for each in failed)
            )
        connect.pause()


def require_closed(connect: Connect) -> None:
    """Make sure that nobody is let in without a password, or with a wrong one.

    :raises RestError: somebody is; its status is :data:`OPEN`.
    """
    for login in ({}, {"Authorization": "Basic bm9ib2R5Om5vYm9keQ=="}):
        try:
            replace(connect, login=login).ask("GET", "/connectors")
        except RestError as error:
            if error.status != UNAUTHORIZED:
                raise
        else:
            raise RestError(
                f"{connect.urls[0]} lets in whoever asks: its file of users is empty or not read, "
                "or something on the host starts it in another way than its unit says",
                OPEN,
            )


def state_of_workers(given: Mapping[str, Any], lost: Callable[[], str]) -> dict[str, Any]:
    """What the module answers.

    :param given: its parameters.
    :param lost: says why there is nothing to wait for; empty: there is.
    :raises RestError: no worker answers, or it is not as it has to be.
    """
    connect = replace(connected(given), lost=lost)
    try:
        running, failed = states(connect)
    except RestError as error:
        if given["required"] or error.status:
            raise
        return {"running": [], "failures": []}
    if given["closed"]:
        require_closed(connect)
    if given["again"]:
        running, failed = wait(connect, given["again"], given["patience"])
    return {"running": running, "failures": failed}


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={
            "urls": {"type": "list", "elements": "str", "required": True},
            "ca": {"type": "str"},
            "certificate": {"type": "str"},
            "key": {"type": "str", "no_log": True},
            "username": {"type": "str"},
            "password": {"type": "str", "no_log": True},
            "required": {"type": "bool", "default": True},
            "closed": {"type": "bool", "default": False},
            "again": {"type": "list", "elements": "str", "default": []},
            "patience": {"type": "float", "default": 120},
            "lost": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )

    def lost() -> str:
        status, said, _ = module.run_command(module.params["lost"] or ["true"])
        return "" if status else str(said).strip()

    try:
        module.exit_json(changed=False, **state_of_workers(module.params, lost))
    except RestError as error:
        module.fail_json(msg=str(error), open=error.status == OPEN)


if __name__ == "__main__":
    main()
