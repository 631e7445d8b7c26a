"""Names of client properties: obsolete, written by the model, secret in clear, or mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from .inventory import Inventory
from .schema import (
    LEGACY_KEYS,
    OWNED_BY_FLOW,
    OWNED_KEYS,
    REMOVED_OPTIONS,
    SECRET_KEYS,
)

CURES = {**REMOVED_OPTIONS, **LEGACY_KEYS}
OWNED = {**OWNED_KEYS, **OWNED_BY_FLOW}


def judge_names(
    found: Inventory,
    path: str,
    properties: Mapping[str, Any],
    known: frozenset[str],
    prefix: str = "",
    owned: Mapping[str, str] = OWNED,
) -> None:
    """Refuse property names of a client that are obsolete, misplaced or written by the model.

    Names that are merely unknown may belong to a plug-in; those that look mistyped are mentioned.

    :param found: the inventory that is judged.
    :param path: the variable that holds the properties.
    :param properties: name to value, the prefix taken off.
    :param known: names the client knows.
    :param prefix: what stands before the names in the inventory.
    :param owned: names the model writes, and what to do instead.
    """
    for name, value in properties.items():
        where = f"{path}['{prefix}{name}']"
        if name in owned or name.startswith("config.providers."):
            cure = owned.get(name, OWNED_KEYS["config.providers"])
            found.refuse(f"{where}: is written from the model; {cure}")
        elif name in CURES:
            found.refuse(f"{where}: is no longer read by any client; {CURES[name]}")
        elif name in SECRET_KEYS and not str(value or "${").startswith("${"):
            found.refuse(f"{where}: a secret must not stand in clear; {SECRET_KEYS[name]}")
        elif name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
            if near:
                found.warn(f"{where}: Kafka does not know it; did you mean '{near[0]}'?")
