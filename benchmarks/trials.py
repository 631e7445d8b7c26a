"""Trials of a benchmark, kept in a file as they end, and what is worked out of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

Trial = dict[str, float]


class Trials:
    """Trials by variant; a program that was ended goes on where it was.

    :param output: JSON file of them.
    :param shape: what all of them have in common.
    :param worked_out: what else the file holds, from the trials.
    :raises ValueError: the file holds trials of another shape.
    """

    def __init__(
        self,
        output: Path,
        shape: Mapping[str, Any],
        worked_out: Callable[[Mapping[str, Sequence[Trial]]], Mapping[str, Any]],
    ) -> None:
        self._output, self._shape, self._worked_out = output, dict(shape), worked_out
        known = json.loads(output.read_text()) if output.exists() else {}
        if known.get("shape", self._shape) != self._shape:
            raise ValueError(f"{output} holds trials of {known['shape']}")
        self.by_variant: dict[str, list[Trial]] = known.get("trials", {})

    def take(self, variant: str, number: int, measure: Callable[[], Trial]) -> None:
        """Measure one trial, unless the file holds it; with the load of the machine before it."""
        done = self.by_variant.setdefault(variant, [])
        if len(done) > number:
            return
        load = os.getloadavg()[0]
        trial = {key: round(value, 9) for key, value in measure().items()}
        done.append({**trial, "load_before": load})
        print(number + 1, variant, done[-1], flush=True)
        document = {
            **self._worked_out(self.by_variant), "shape": self._shape, "trials": self.by_variant,
        }  # fmt: skip
        self._output.write_text(json.dumps(document, indent=1) + "\n")


def spread(trials: Mapping[str, Sequence[Trial]]) -> dict[str, dict[str, list[float]]]:
    """Least, median and greatest of each number of each variant."""
    return {
        name: {
            key: [round(f(trial[key] for trial in some), 3) for f in (min, median, max)]
            for key in (some[0] if some else ())
        }
        for name, some in trials.items()
    }
