"""The manifest ``baseline``: where verification starts, by flow and topic of the source.

Of a flow: ``recorded_at_ms``, ``losses_since_ms`` (from then on it is reported what the source
dropped before it was copied), ``group_existed`` (somebody had committed positions), ``topics``. Of
a topic, offsets by partition:

* ``source``: read from here, the committed position; ``required``: from here on each record has to
  be on the target; ``untouched``: from here on none was copied before ``target`` was read;
* ``target``: read from here, the ends of the logs; ``sought``: from here on lies what was copied
  last before that; ``older``: below lie copies of what the source had lost by then;
* ``log_start``: what the source had dropped up to here is accepted;
* ``leader_epochs``, ``last_records``, by side: what the logs are known by
  (:mod:`parity.plan.lost_tails`);

and ``recorded_at_ms``, ``source_id``, ``target_id``, and ``losses_since_ms`` where it was recorded
again alone. Of topics that are no longer mirrored, ``accepted`` of a flow says until when (ms) what
was lost of them is accepted.
"""

from collections.abc import Mapping
from typing import Any

from mirror_report.state.store import StateError


def check(flow: str, entry: Mapping[str, Any]) -> None:
    """Make sure that a flow's baseline says of each record whether it counts.

    :param entry: the flow's; empty: there is none.
    :raises StateError: it was recorded by an earlier release, which cut by time.
    """
    if any("required" not in topic for topic in entry.get("topics", {}).values()):
        raise StateError(
            f"the baseline of flow {flow} was recorded by an earlier release, which cut by time "
            "and left out records that came later",
            f"Record it again: mirror-report baseline --flow {flow} --renew",
        )
