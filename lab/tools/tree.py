#!/usr/bin/env python3
"""Record a host's files and report later changes. Needs only Python.

``tree.py save FILE`` writes what stands below the watched roots; ``tree.py compare FILE`` prints
every difference and exits 1 if there is one; ``tree.py added FILE`` prints the paths that are new.
A directory's own times are left out: a temporary file inside it is no change of the host.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

ROOTS = ("/etc", "/opt", "/usr", "/var/lib", "/home")
# What a running Debian host writes by itself.
LIVING = (
    "/var/lib/systemd/",
    "/var/lib/private",
    "/etc/resolv.conf",
    "/etc/mtab",
    "/etc/.pwd.lock",
)


def walk() -> Iterator[tuple[str, list[object]]]:
    """Yield every path with what identifies its state."""
    for root in ROOTS:
        for directory, names, files in os.walk(root):
            for name in [*names, *files]:
                path = f"{directory}/{name}"
                if path.startswith(LIVING) or "/__pycache__" in path:
                    continue
                found = os.lstat(path)
                state: list[object] = [oct(found.st_mode), found.st_uid, found.st_gid]
                if stat.S_ISLNK(found.st_mode):
                    state.append(str(Path(path).readlink()))
                elif not stat.S_ISDIR(found.st_mode):
                    state += [found.st_size, found.st_mtime_ns]
                yield path, state


def main(arguments: list[str]) -> int:
    """Save, compare or list."""
    action, file = arguments
    now = dict(walk())
    if action == "save":
        Path(file).write_text(json.dumps(now), encoding="utf-8")
        return 0
    before = json.loads(Path(file).read_text(encoding="utf-8"))
    added = sorted(set(now) - set(before))
    if action == "added":
        print("\n".join(added))
        return 0
    lines = [f"added {path}" for path in added]
    lines += [f"removed {path}" for path in sorted(set(before) - set(now))]
    lines += [
        f"changed {path}: {before[path]} -> {now[path]}"
        for path in sorted(set(before) & set(now))
        if before[path] != now[path]
    ]
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
