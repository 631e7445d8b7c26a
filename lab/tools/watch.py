#!/usr/bin/env python3
"""Observe the arguments and the environment of every process until asked to end.

First line of standard input: a JSON list of words; any further line, or its end, ends the watch.
Standard output: the number of observations, and where a word was found. Needs only Python.
"""

from __future__ import annotations

import json
import select
import sys
from pathlib import Path

PAUSE_SECONDS = 0.5


def observe(words: list[bytes]) -> set[str]:
    """Name the processes whose arguments or environment contain a word now."""
    hits = set()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            contents = {name: (process / name).read_bytes() for name in ("cmdline", "environ")}
        except OSError:
            continue
        for name, content in contents.items():
            if any(word in content for word in words):
                program = contents["cmdline"].split(b"\0", 1)[0].decode(errors="replace")
                hits.add(f"{name} of {program}")
    return hits


def main() -> int:
    """Watch and print."""
    words = [word.encode() for word in json.loads(sys.stdin.readline())]
    observations = 0
    hits: set[str] = set()
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        observations += 1
        hits |= observe(words)
    print(json.dumps({"observations": observations, "hits": sorted(hits)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
