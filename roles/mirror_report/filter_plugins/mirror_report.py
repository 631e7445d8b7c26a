"""Filters: the report's memory, who could reach Spark, and the timers of a host."""

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

MIB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
# Java's classes, compiled code and threads; Python and what it holds (docs/sizing.md).
BESIDE_HEAP_MIB = 768


def report_memory_max(heap: str, properties: Mapping[str, Any]) -> str:
    """What a report may hold in all, as systemd's ``MemoryMax``: its heap by half again, and more.

    :param heap: ``mirror_report_heap``.
    :param properties: ``mirror_report_spark_properties``; those about the driver's memory win, as
        Spark has it. Executors elsewhere do not count.
    :returns: mebibytes, such as ``2304M``.
    :raises AnsibleFilterError: a size that Java would not take; the message names the variable.
    """
    of_spark = "mirror_report_spark_properties['{}']".format
    own = properties.get("spark.driver.memory")
    total = 1.5 * (
        _mebibytes(of_spark("spark.driver.memory"), own, "m")
        if own is not None
        else _mebibytes("mirror_report_heap", heap, "b")
    )
    if str(properties.get("spark.memory.offHeap.enabled", "")).lower() == "true":
        name = "spark.memory.offHeap.size"
        total += _mebibytes(of_spark(name), properties.get(name, "0"), "b")
    return f"{int(total) + BESIDE_HEAP_MIB}M"


def _mebibytes(name: str, size: object, unit: str) -> float:
    """A size in mebibytes.

    :param unit: of a number that names none.
    """
    parts = re.fullmatch(r"(\d+)([bkmgt]?)b?", str(size).strip().lower())
    if parts is None:
        raise AnsibleFilterError(f"{name}: {size!r} is no size such as 512m or 2g; set one")
    return int(parts[1]) * {**MIB, "b": 1 / 1024**2}[parts[2] or unit]


def mirror_report_spark_problems(
    master: str, properties: Mapping[str, Any], secrets: Mapping[str, Any]
) -> list[str]:
    """Why others than the report could reach Spark's processes, or see its secrets.

    :param secrets: Spark's keys that nobody may see, SECRET.
    :returns: messages that name the variable and the cure, and hold no secret.
    """
    rules = _rules()
    problems: list[str] = [*rules.problems(str(master), properties)]
    if rules.takes_secret(str(master)) and not secrets.get(rules.SECRET):
        problems.append(
            f"mirror_report_spark_secrets: {rules.SECRET} is missing, which {master} must ask for; "
            "take it from a vault"
        )
    return problems


def mirror_report_executor_problems(
    places: Mapping[str, Mapping[str, Sequence[str]]], user: str
) -> list[str]:
    """Why the credentials of executors would be another's, too.

    :param places: host to its users, each the fields of ``passwd`` but the name: password, number,
        number of the group, comment, home, shell.
    :param user: who executes, and owns the credentials.
    :returns: messages that name the variable and the cure.
    """
    problems = []
    for host, users in places.items():
        if user not in users:
            problems.append(f"{host} has no user {user}")
            continue
        number, shell = users[user][1], users[user][5]
        others = sorted(name for name, it in users.items() if it[1] == number and name != user)
        if others:
            problems.append(f"{host}: {user} has the number {number} of {', '.join(others)}")
        if shell.rpartition("/")[2] not in {"nologin", "false"}:
            shown = shell or "unset"
            problems.append(f"{host}: somebody may log in as {user}, whose shell is {shown}")
    numbers = {host: users[user][1] for host, users in places.items() if user in users}
    if len(set(numbers.values())) > 1:
        by_host = ", ".join(f"{number} on {host}" for host, number in numbers.items())
        problems.append(f"{user} has more than one number: {by_host}")
    return [
        f"mirror_report_executor_credentials: {problem}. On each host make a user {user} with one "
        "and the same number, which no other user has, and the shell /usr/sbin/nologin; run "
        "Spark's workers as that user; or set it to false"
        for problem in problems
    ]


def _rules() -> Any:
    """The report's own rules, by which inventory and configuration are validated alike."""
    source = Path(__file__).resolve().parents[3] / "spark/src/mirror_report/spark_security.py"
    spec = importlib.util.spec_from_file_location("mirror_report_spark_security", source)
    if spec is None or spec.loader is None:
        raise AnsibleFilterError(f"cannot load {source}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _units(shown: str) -> list[dict[str, str]]:
    """Properties of each unit, as ``systemctl show`` prints them with an empty line between."""
    return [
        {name: value for name, _, value in (line.partition("=") for line in block.splitlines())}
        for block in shown.split("\n\n")
    ]


def timers_elapsed(shown: str) -> list[str]:
    """Timers that are active without a next trigger.

    systemd read a calendar that never elapses, or none at all. Another calendar does not wake them,
    and a start does nothing, because they are active. A timer whose service runs has no next
    trigger either, and is well.

    :param shown: what ``systemctl show`` printed of the units: Id, SubState.
    """
    return [unit["Id"] for unit in _units(shown) if unit.get("SubState") == "elapsed"]


def timers_as_wanted(shown: str, runs_by_timer: Mapping[str, bool]) -> bool:
    """Whether systemd knows the units as they are written and runs the timers that are wanted.

    :param shown: what ``systemctl show`` printed of the units: Id, ActiveState, SubState,
        UnitFileState, NeedDaemonReload.
    :param runs_by_timer: name of a timer to whether it runs.
    """
    units = {unit.get("Id", ""): unit for unit in _units(shown)}
    if timers_elapsed(shown) or any(u.get("NeedDaemonReload") == "yes" for u in units.values()):
        return False
    on = {"ActiveState": "active", "UnitFileState": "enabled"}
    return all(
        (units.get(timer, {}).get(name) == value) == runs
        for timer, runs in runs_by_timer.items()
        for name, value in on.items()
    )


class FilterModule:
    """The filters this role brings along."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to filter."""
        return {
            "report_memory_max": report_memory_max,
            "mirror_report_executor_problems": mirror_report_executor_problems,
            "mirror_report_spark_problems": mirror_report_spark_problems,
            "timers_elapsed": timers_elapsed,
            "timers_as_wanted": timers_as_wanted,
        }
