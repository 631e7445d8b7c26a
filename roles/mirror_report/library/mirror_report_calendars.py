#!/usr/bin/python
"""Have systemd validate the calendars of timers; changes nothing."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: mirror_report_calendars
short_description: Have systemd validate the calendars of timers
description:
  - Refuses what C(systemd-analyze calendar) of this host does not understand, and what never
    elapses again. Says how far apart the times of the others are. Changes nothing.
options:
  calendars:
    description: Name of a variable to its calendar, as C(OnCalendar) of a timer takes it.
    type: dict
    required: true
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: Let systemd validate the calendars of the timers
  mirror_report_calendars:
    calendars:
      mirror_report_schedule: "*:0/15"
  register: calendars
"""

RETURN = r"""
intervals:
  description: Name of a variable to the seconds between two times of its calendar, the longest of
    them. It does not depend on when this is asked.
  returned: success
  type: dict
  sample: {mirror_report_schedule: 900}
"""

EXAMPLE = "'*:0/5' (every five minutes), 'hourly' or 'Mon..Fri 08:00'"
ITERATIONS = 3000
# Where the times that are compared begin: so many reach the pause of a weekend, even if a calendar
# elapses every minute of the other days.
FRIDAY = "2021-01-01 00:00:00 UTC"
# As systemd 252 (Iter.) and 257 (Iteration) write it.
TIME = re.compile(r"(?:Next elapse|Iter(?:\.|ation) #\d+): \w+ (\S+ \S+) UTC$", re.MULTILINE)

Run = Callable[[Sequence[str]], tuple[int, str, str]]


def times(answer: str) -> list[datetime]:
    """When a calendar elapses, as systemd-analyze says it in UTC."""
    return [
        datetime.strptime(time, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        for time in TIME.findall(answer)
    ]


def interval(run: Run, calendar: str) -> float:
    """Longest time between two times of a calendar, in seconds.

    :raises ValueError: it is none, or does not elapse again; the message says which.
    """
    status, answer, problem = run(["--iterations=2", calendar])
    if status != 0:
        raise ValueError(f"is no calendar of systemd ({' '.join(problem.split())})")
    coming = times(answer)
    if not coming:
        raise ValueError("never elapses again")
    # From a fixed time on, or the answer would change from one hour to the next.
    past = times(run([f"--iterations={ITERATIONS}", f"--base-time={FRIDAY}", calendar])[1])
    gaps = [(after - before).total_seconds() for before, after in pairwise(past)]
    longest = max(gaps, default=0.0)
    if len(coming) < 2 or longest <= 0:
        raise ValueError("elapses only once more")
    return longest


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={"calendars": {"type": "dict", "required": True}}, supports_check_mode=True
    )
    program = module.get_bin_path("systemd-analyze", required=True)
    # Times are asked for in UTC and read in English; pauses of a calendar are the same there.
    environment = {"LC_ALL": "C", "TZ": "UTC"}

    def run(arguments: Sequence[str]) -> tuple[int, str, str]:
        *options, calendar = arguments
        command = [program, "calendar", *options, "--", calendar]
        answer: tuple[int, str, str] = module.run_command(command, environ_update=environment)
        return answer

    intervals, wrong = {}, []
    for name, calendar in module.params["calendars"].items():
        try:
            intervals[name] = interval(run, str(calendar))
        except ValueError as error:
            wrong.append(f"{name}: {str(calendar)!r} {error}")
    if wrong:
        module.fail_json(
            msg=f"{'; '.join(wrong)}. Write it as OnCalendar of a systemd timer takes it, for "
            f"example {EXAMPLE}; `systemd-analyze calendar` judges it. Nothing was changed"
        )
    module.exit_json(changed=False, intervals=intervals)


if __name__ == "__main__":
    main()
