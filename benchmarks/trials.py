"""Trials of a benchmark, kept in a file as they end, and what is worked out of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

Trial = dict[str, float]
# Of a line, and how deep a document is taken apart: file, part, variant.
WIDTH, LINES = 120, 3


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
        self._output.write_text(text_of(document) + "\n")


def text_of(value: Any, depth: int = 0) -> str:
    """JSON with a line for each trial, and for each number of a variant."""
    short = json.dumps(value)
    if not isinstance(value, dict | list) or not value or len(short) <= WIDTH or depth >= LINES:
        return short
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, list):
        return "[" + pad + f",{pad}".join(text_of(each, depth + 1) for each in value) + "]"
    inner = (f"{json.dumps(name)}: {text_of(each, depth + 1)}" for name, each in value.items())
    return "{" + pad + f",{pad}".join(inner) + "}"


def spread(trials: Mapping[str, Sequence[Trial]]) -> dict[str, dict[str, list[float]]]:
    """Least, median and greatest of each number of each variant."""
    return {
        name: {
            key: [round(f(trial[key] for trial in some), 3) for f in (min, median, max)]
            for key in (some[0] if some else ())
        }
        for name, some in trials.items()
    }
