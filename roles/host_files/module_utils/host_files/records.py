"""JSON files with which a role remembers what it did on a host."""

import json
from pathlib import Path
from typing import Any


def read_object(path: Path) -> dict[str, Any] | None:
    """Read a JSON object from a file, ``None`` if there is none that can be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
