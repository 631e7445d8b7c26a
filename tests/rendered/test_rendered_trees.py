"""Hosts get the bytes that they got: of every inventory here, and of sites drawn from the schema.

Where a difference is meant, ``MIRROR_WRITE_TREES=1 pytest tests/rendered -m long`` writes the
digests again; ``rendering.py`` shows the texts behind them.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.rendered.rendering import all_trees

KEPT = Path(__file__).parent / "trees.txt"


@pytest.mark.long
def test_hosts_get_the_bytes_they_got() -> None:
    rows = [
        f"{inventory} {owner} {part} {name} {digest(content)}"
        for inventory, trees in all_trees()
        for owner, tree in trees.items()
        for part, contents in tree.items()
        for name, content in (contents.items() if isinstance(contents, dict) else [("-", contents)])
    ]
    if os.environ.get("MIRROR_WRITE_TREES"):
        KEPT.write_text("".join(f"{row}\n" for row in sorted(rows)))
    different = set(rows) ^ set(KEPT.read_text().splitlines())
    assert not different, "\n".join(sorted(different))


def digest(content: object) -> str:
    """Sixteen digits that stand for what is written."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
