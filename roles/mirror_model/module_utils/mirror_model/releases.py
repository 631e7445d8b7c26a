"""Kafka's release numbers."""

from __future__ import annotations

import re
from typing import Any

from .errors import ModelError


def release(version: Any) -> tuple[int, int, int]:
    """The numbers of a release.

    :raises ModelError: not of the form 3.9.2.
    """
    found = re.fullmatch(r"([0-9]+)\.([0-9]+)\.([0-9]+)", str(version))
    if found is None:
        raise ModelError(f"Kafka version '{version}': write three numbers, such as 3.9.2")
    return int(found[1]), int(found[2]), int(found[3])


def line_of(version: Any) -> str:
    """The release line whose key tables hold for a release: 3.9 or 4.3.

    :raises ModelError: not of the form 3.9.2.
    """
    return "3.9" if release(version) < (4, 0, 0) else "4.3"
