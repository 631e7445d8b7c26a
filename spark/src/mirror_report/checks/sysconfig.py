"""Environment files as systemd reads them, for comparing them with the model."""

from __future__ import annotations

import re

_LINE = re.compile(r"^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)$")


def read_environment(text: str) -> dict[str, str]:
    r"""Variables of an environment file.

    Understands what the product writes: one ``KEY="value"`` per line, with ``\"``, ``\\``, ``\$``
    and ``\``` escaped, besides single quotes and bare words of a hand edit.

    Format: ``systemd.exec(5)``, EnvironmentFile=.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or line.lstrip().startswith(("#", ";")):
            continue
        name, raw = match[1], match[2].strip()
        if len(raw) >= 2 and raw[0] == raw[-1] == '"':
            found[name] = re.sub(r'\\(["\\$`])', r"\1", raw[1:-1])
        elif len(raw) >= 2 and raw[0] == raw[-1] == "'":
            found[name] = raw[1:-1]
        else:
            found[name] = re.sub(r"\\(.)", r"\1", raw)
    return found
