"""Kills of a mirror while records flow through it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from labkit.controller import wait
from labkit.hosts import Unit
from labkit.lab import Lab

ACKNOWLEDGED = 2000
"""Records of every round."""
MIRRORED = 1000
RATE = 1000
"""Records a second."""


@dataclasses.dataclass(frozen=True)
class Flowed:
    """Records of a topic that a cluster acknowledged, and those that its mirror committed."""

    acknowledged: int
    mirrored: int

    def since(self, before: Flowed) -> Flowed | None:
        """Those in between, if they are enough for a kill to hurt."""
        acknowledged = self.acknowledged - before.acknowledged
        mirrored = self.mirrored - before.mirrored
        enough = acknowledged >= ACKNOWLEDGED and mirrored >= MIRRORED
        return Flowed(acknowledged, mirrored) if enough else None


def kill_rounds(lab: Lab, unit: Unit, flow: str, topic: str, rounds: int = 3) -> list[Flowed]:
    """Kill a mirror again and again, each time when enough records flowed since the last time.

    :param topic: on the source; written to meanwhile, and mirrored to its end afterwards.
    :returns: what flowed before each kill.
    """
    with lab.producing(topic, rate=RATE) as production:

        def flowed() -> Flowed:
            positions = lab.probe(lab.positions(flow))[0].get(topic, {})
            return Flowed(production.acknowledged(), sum(positions.values()))

        done = [_kill(unit, flowed) for _ in range(rounds)]
    lab.wait_mirrored(flow, [topic])
    return done


def _kill(unit: Unit, flowed: Callable[[], Flowed]) -> Flowed:
    """Kill it when enough records flowed, and wait until systemd has started it again."""
    begun = flowed()
    since: Flowed = wait("records flow", lambda: flowed().since(begun))
    killed, restarts = unit.pid, unit.restarts
    assert killed
    unit.host.run("kill", "-KILL", str(killed))
    wait("a new process", lambda: unit.pid not in {0, killed}, 60)
    assert unit.restarts == restarts + 1
    return since
