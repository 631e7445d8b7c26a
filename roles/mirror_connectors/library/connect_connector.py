#!/usr/bin/python
"""Keep the connectors of MirrorMaker 2 on a Kafka Connect cluster."""

import re
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.connect_rest import (
    Connect,
    RestError,
    answer_of_a_worker,
    connected,
    first_cause,
)

DOCUMENTATION = r"""
---
module: connect_connector
short_description: Keep connectors on a Kafka Connect cluster
description:
  - Creates connectors, changes those whose configuration differs, and brings each into its state.
    A configuration is sent only if it differs, because Connect restarts the tasks of what it is
    sent.
  - It owns what carries its mark. Other connectors are left alone, and it warns of own ones that
    are declared no more, with what they do.
  - Waits until connectors and tasks run. What has failed is restarted once. What was changed has
    to run for five seconds.
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
  connectors:
    description:
      - C(name), C(flow), C(kind), C(config) (Kafka's name to text) of each, and C(kept), keys that
        stay as they are where the connector has them.
    type: list
    elements: dict
    required: true
  state:
    description: What shall become of them.
    type: str
    default: running
    choices: [running, paused, stopped, absent]
  mark:
    description: The key of a configuration that says whose it is.
    type: str
    required: true
  oldest:
    description: The oldest release of Connect that works.
    type: str
    default: 3.8.0
  accept_new_names:
    description: Flows whose connectors may get another name, and mirror everything again.
    type: list
    elements: str
    default: []
  required:
    description:
      - Whether it is an error that nobody answers; if not, all connectors are said to be made anew.
        For check mode, where the workers are yet to be started.
    type: bool
    default: true
  patience:
    description: Seconds to wait for workers that start or rebalance, and for tasks to run.
    type: float
    default: 120
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: Keep the connectors of the flows into west
  connect_connector:
    urls: ["https://connect1:8084"]
    ca: "{{ ca }}"
    username: deployer
    password: "{{ password }}"
    connectors: "{{ connectors }}"
    mark: kafka.mirror.flow
"""

RETURN = r"""
version:
  description: Release of the workers; empty if nobody answered.
  returned: always
  type: str
states:
  description: Name of a connector to its state and those of its tasks.
  returned: always
  type: dict
sent:
  description: Names of connectors whose configuration was sent.
  returned: always
  type: list
restarted:
  description: Names of connectors of which something had failed and was restarted.
  returned: always
  type: list
undeclared:
  description: Own connectors that are declared no more, by name, with their states; they go on.
  returned: always
  type: dict
"""

ALIASES = ("source.cluster.alias", "target.cluster.alias")
# A task that may not read or write runs for a moment before it fails.
STEADY_SECONDS = 5.0
# State of a connector as the role and as Connect calls it, and what brings it there.
STATES = {
    "running": ("RUNNING", "resume"),
    "paused": ("PAUSED", "pause"),
    "stopped": ("STOPPED", "stop"),
}
# What is shown of a value that may be a secret and is no reference.
HIDDEN = "(not shown)"
SECRET = re.compile("(?i)password|jaas|secret|credential|token|key$")


@dataclass(frozen=True)
class Connector:
    """A connector as Connect describes it."""

    name: str
    config: Mapping[str, str]
    state: str
    trace: str
    tasks: Sequence[Mapping[str, Any]]

    @property
    def failed(self) -> list[str]:
        """What of it has failed, and why."""
        parts = [(f"connector {self.name}", self.state, self.trace)]
        parts += [
            (f"task {task['id']} of {self.name} on {task.get('worker_id', 'no worker')}",
             task["state"], task.get("trace", ""))
            for task in self.tasks
        ]  # fmt: skip
        return [
            f"{what} has failed: {first_cause(trace)}"
            for what, state, trace in parts
            if state == "FAILED"
        ]

    @property
    def shown(self) -> dict[str, Any]:
        """Its state and its tasks'."""
        return {"state": self.state, "tasks": [task["state"] for task in self.tasks]}


@dataclass
class Outcome:
    """What was done."""

    sent: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything was."""
        return bool(self.sent or self.moved or self.removed or self.restarted)


def path(name: str, *rest: str) -> str:
    """Where Connect has a connector."""
    return "/".join(["/connectors", urllib.parse.quote(name, safe=""), *rest])


def deployed(connect: Connect) -> dict[str, Connector]:
    """Every connector of the cluster."""
    listed, states = connect.connectors("info"), connect.connectors("status")
    connectors = {}
    with answer_of_a_worker():
        for name, entry in listed.items():
            status = states.get(name, {}).get("status", {})
            own = status.get("connector", {})
            connectors[name] = Connector(
                name, {**entry["info"]["config"]}, own.get("state", "UNASSIGNED"),
                own.get("trace", ""),
                [{**task, "id": task["id"], "state": task["state"]}
                 for task in status.get("tasks", [])],
            )  # fmt: skip
    return connectors


def release(text: str) -> tuple[int, ...]:
    """The numbers of a release; what follows them, as in 3.8.0-SNAPSHOT, is nothing."""
    return tuple(int(part) for part in text.partition("-")[0].split(".")[:3] if part.isdecimal())


def version_of(connect: Connect, given: Mapping[str, Any]) -> str:
    """The release of the workers, if it and its plug-ins will do."""
    with answer_of_a_worker():
        version = str(connect.ask("GET", "/")["version"])
        plugins = {plugin["class"] for plugin in connect.ask("GET", "/connector-plugins")}
    if release(version) < release(given["oldest"]):
        raise RestError(
            f"the workers run Kafka {version}: MirrorMaker 2 works from {given['oldest']} on; "
            "upgrade them first"
        )
    needed = {each["config"]["connector.class"] for each in given["connectors"]}
    if lacking := sorted(needed - plugins):
        raise RestError(
            f"the workers have no {', '.join(lacking)}: put Kafka's connect-mirror library where "
            "they look for plug-ins"
        )
    return version


def refuse_new_names(given: Mapping[str, Any], present: Mapping[str, Connector]) -> None:
    """Refuse what would mirror everything again.

    :raises RestError: a name or an alias is another than the one that positions are kept under.
    """
    names = {each["name"] for each in given["connectors"]}
    for each in given["connectors"]:
        name, config = each["name"], each["config"]
        if before := present.get(name):
            for key in ("connector.class", *ALIASES):
                if before.config.get(key) != config[key]:
                    raise RestError(
                        f"{name}: {key} is '{before.config.get(key)}' and would become "
                        f"'{config[key]}': positions are kept under it, so everything would be "
                        "mirrored again; take it back, or choose another name in "
                        "mirror_flows[].connectors"
                    )
            continue
        if config[given["mark"]] in given["accept_new_names"]:
            continue
        for other in present.values():
            same = other.config.get(given["mark"]) == config[given["mark"]]
            same = same and other.config.get("connector.class") == config["connector.class"]
            if same and other.name not in names:
                raise RestError(
                    f"{other.name} would become {name}: positions are kept under the name, so "
                    f"everything would be mirrored again; keep it by {each['kind']}: {other.name} "
                    f"in connectors of flow {each['flow']}, or accept it with "
                    f"'new-name:{each['flow']}' in mirror_accept"
                )


def settled(given: Mapping[str, Any], present: Mapping[str, Connector]) -> list[dict[str, Any]]:
    """The connectors that are declared, with what stays as it is."""
    connectors = []
    for each in given["connectors"]:
        before = present[each["name"]].config if each["name"] in present else {}
        stays = {
            key: before[key] for key in each["kept"] if key in before and key in each["config"]
        }
        connectors.append({**each, "config": {**each["config"], **stays}})
    return connectors


def masked(config: Mapping[str, str] | None) -> dict[str, str]:
    """A configuration to be shown: no value that may be a secret, unless it is a reference."""
    return {
        key: HIDDEN if SECRET.search(key) and not str(value).startswith("${") else value
        for key, value in sorted((config or {}).items())
    }


def validate(connect: Connect, name: str, config: Mapping[str, str]) -> None:
    """Let the plug-in validate a configuration.

    :raises RestError: it refuses it.
    """
    plugin = urllib.parse.quote(config["connector.class"].rpartition(".")[2])
    answer = connect.ask("PUT", f"/connector-plugins/{plugin}/config/validate", dict(config))
    with answer_of_a_worker():
        errors = [
            f"{each['value']['name']}: {' '.join(each['value']['errors'])}"
            for each in answer["configs"]
            if each["value"]["errors"]
        ]
    if errors:
        raise RestError(f"{name}: {'; '.join(errors)}")


def reconcile(
    connect: Connect, given: Mapping[str, Any], present: Mapping[str, Connector], *, check: bool
) -> Outcome:
    """Send what differs, and bring each connector into its state."""
    done = Outcome()
    if given["state"] == "absent":
        for each in given["connectors"]:
            before = present.get(each["name"])
            if before is None or given["mark"] not in before.config:
                continue
            done.removed.append(each["name"])
            if not check:
                connect.ask("DELETE", path(each["name"]))
        return done
    refuse_new_names(given, present)
    for each in given["connectors"]:
        name, config = each["name"], each["config"]
        if name not in present or dict(present[name].config) != config:
            validate(connect, name, config)
            done.sent.append(name)
    for each in given["connectors"]:
        name = each["name"]
        if name in done.sent and not check:
            connect.ask("PUT", path(name, "config"), each["config"])
    expected, verb = STATES[given["state"]]
    for each in given["connectors"]:
        state = present[each["name"]].state if each["name"] in present else "RUNNING"
        idle = state in ("PAUSED", "STOPPED")
        if state != expected and (idle or given["state"] != "running"):
            done.moved.append(each["name"])
            if not check:
                connect.ask("PUT", path(each["name"], verb))
    return done


def settle(connect: Connect, given: Mapping[str, Any], done: Outcome) -> dict[str, Connector]:
    """Wait until everything is in its state; what failed is restarted once.

    What was changed has to stay in its state for a while. A source connector without tasks copies
    nothing; a checkpoint connector has none while no group matches.

    :raises RestError: it is not in its state in time, with why.
    """
    deadline = time.monotonic() + given["patience"]
    state, _ = STATES[given["state"]]
    since = None
    while True:
        present = deployed(connect)
        own = [present[each["name"]] for each in given["connectors"] if each["name"] in present]
        lacking = [] if len(own) == len(given["connectors"]) else ["not all of them are there"]
        for each in own:
            if each.failed and each.name not in done.restarted:
                done.restarted.append(each.name)
                connect.ask(
                    "POST", path(each.name, "restart"), includeTasks="true", onlyFailed="true"
                )
            lacking += each.failed or _unlike(each, state)
        now = time.monotonic()
        if lacking:
            since = None
            if now > deadline:
                raise RestError("; ".join(lacking))
        else:
            since = since or now
            if now - since >= STEADY_SECONDS or not done.changed:
                return present
        connect.pause()


def _unlike(each: Connector, expected: str) -> list[str]:
    if each.state != expected:
        return [f"{each.name} is {each.state}"]
    if expected == "STOPPED":
        return []
    lacking = [
        f"task {task['id']} of {each.name} is {task['state']}"
        for task in each.tasks
        if task["state"] != expected
    ]
    copies = each.config["connector.class"].endswith("MirrorSourceConnector")
    if copies and not each.tasks and expected == "RUNNING":
        lacking.append(
            f"{each.name} has no task: no topic matches, or the source cannot be reached; look "
            "into the journal of the workers"
        )
    return lacking


def keep(given: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    """Bring a cluster's connectors to what is declared.

    :param given: parameters of the module.
    :param check: change nothing.
    :returns: what the module answers.
    :raises RestError: it cannot be, or is not in time.
    """
    declared = {each["name"]: each["config"] for each in given["connectors"]}
    connect = connected(given)
    if check and not given["required"] and not answers(connect):
        sent = [] if given["state"] == "absent" else list(declared)
        return {
            "changed": bool(sent), "version": "", "sent": sent, "restarted": [], "states": {},
            "undeclared": {}, "diff": [difference(name, None, declared[name]) for name in sent],
        }  # fmt: skip
    version = version_of(connect, given)
    before = deployed(connect)
    given = {**given, "connectors": settled(given, before)}
    done = reconcile(connect, given, before, check=check)
    at_once = given["state"] == "absent" or check
    present = deployed(connect) if at_once else settle(connect, given, done)
    after = {each["name"]: each["config"] for each in given["connectors"]}
    return {
        "changed": done.changed,
        "version": version,
        "sent": done.sent,
        "restarted": done.restarted,
        "states": {name: present[name].shown for name in after if name in present},
        "undeclared": {
            name: each.shown
            for name, each in sorted(present.items())
            if given["mark"] in each.config and name not in after
        },
        "diff": [
            difference(
                name, before[name].config if name in before else None,
                None if name in done.removed else after[name],
            )
            for name in (*done.sent, *done.removed)
        ],
    }  # fmt: skip


def difference(
    name: str, before: Mapping[str, str] | None, after: Mapping[str, str] | None
) -> dict[str, Any]:
    """What of a connector would be another, as Ansible shows it; ``None``: it is not there."""
    return {
        "before_header": name, "after_header": name,
        "before": masked(before), "after": masked(after),
    }  # fmt: skip


def answers(connect: Connect) -> bool:
    """Whether there is anybody to ask."""
    try:
        replace(connect, patience=0).ask("GET", "/")
    except RestError as error:
        return bool(error.status)
    return True


def still_there(name: str, shown: Mapping[str, Any]) -> str:
    """What is said of an own connector that is declared no more.

    :param shown: its state and its tasks'.
    """
    runs = shown["state"] == "RUNNING" and "RUNNING" in shown["tasks"]
    does = "still mirrors" if runs else f"is still there, {shown['state']}"
    return (
        f"connector {name} {does}, and no flow of the inventory names it any more: nobody watches "
        f"what it mirrors, and it may arrive twice. Put its flow back into mirror_flows, or "
        f"DELETE {path(name)} at a worker"
    )


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
            "connectors": {"type": "list", "elements": "dict", "required": True},
            "state": {
                "type": "str", "default": "running",
                "choices": ["running", "paused", "stopped", "absent"],
            },
            "mark": {"type": "str", "required": True},
            "oldest": {"type": "str", "default": "3.8.0"},
            "accept_new_names": {"type": "list", "elements": "str", "default": []},
            "required": {"type": "bool", "default": True},
            "patience": {"type": "float", "default": 120},
        },
        supports_check_mode=True,
    )  # fmt: skip
    try:
        answer = keep(module.params, check=module.check_mode)
    except RestError as error:
        module.fail_json(msg=str(error))
    for name, shown in answer["undeclared"].items():
        module.warn(still_there(name, shown))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
