#!/usr/bin/python
"""Keep what a confirmed mirror was started with, and bring it back."""

import base64
import grp
import json
import os
import pwd
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_files.paths import (
    PathError,
    existing,
    group_id,
    opened,
    read_object,
    user_id,
)

DOCUMENTATION = r"""
---
module: mirrormaker_last_good
short_description: Keep what a confirmed mirror was started with, and bring it back
description:
  - With O(state=kept) copies files and credentials, with modes and owners, into one file that only
    root reads. Call it once the process that was started with them is confirmed.
  - With O(state=restored) they are again what they were then, and files that were not among them
    are removed. They are no newer than they were, so a process that was started with them before is
    not outdated. One that was started with others has to be started again by the caller.
options:
  path:
    description: File that keeps them.
    type: path
    required: true
  files:
    description:
      - Files the process is started with, in the order in which they are written. One that is
        missing counts as such.
    type: list
    elements: path
    required: true
  credentials:
    description: Directory of the credentials. All files in it are kept.
    type: path
    required: true
  client:
    description: Settings with which the clusters were asked, kept as they are. Secret.
    type: str
    default: ""
  state:
    description: What to do.
    type: str
    choices: [kept, restored]
    required: true
author:
  - kafka-mirror maintainers (@kafka-mirror)
"""

EXAMPLES = r"""
- name: Keep what works
  mirrormaker_last_good:
    path: /etc/mirrormaker/last-good.json
    files: [/etc/mirrormaker/mm2.properties, /etc/systemd/system/mirrormaker.service]
    credentials: /etc/mirrormaker/credentials
    state: kept
"""

RETURN = r"""
present:
  description: Whether a configuration is kept.
  returned: always
  type: bool
restored:
  description: Whether anything was unlike, and is again what was kept.
  returned: with O(state=restored)
  type: bool
client:
  description: The settings that were kept with it. Secret.
  returned: with O(state=restored)
  type: str
"""

# One file: content in Base64, mode, owner and group by name, when it was written in nanoseconds
# (not kept by former releases). ``None``: there was none.
Kept = dict[str, Any] | None


def kept_of(path: Path) -> Kept:
    """Describe a file as it is now."""
    with opened(path) as entry:
        content = entry.read() if entry else None
        status = entry.status() if entry else None
    if content is None or status is None:
        return None
    return {
        "content": base64.b64encode(content).decode("ascii"),
        "mode": stat.S_IMODE(status.st_mode),
        "owner": pwd.getpwuid(status.st_uid).pw_name,
        "group": grp.getgrgid(status.st_gid).gr_name,
        "modified": status.st_mtime_ns,
    }


def like(one: Kept, other: Kept) -> bool:
    """Whether two files are the same, whenever they were written."""
    when = {"modified": 0}
    return one == other or (one is not None and other is not None and one | when == other | when)


def bring_back(path: Path, kept: Kept) -> None:
    """Make a file what it was.

    :raises PathError: its owner or group is gone.
    """
    with existing(path) as entry:
        if kept is None:
            entry.remove()
            return
        owner, group = user_id(kept["owner"]), group_id(kept["group"])
        if owner is None or group is None:
            raise PathError(f"{path}: {kept['owner']} or {kept['group']} is not there any more")
        entry.write(base64.b64decode(kept["content"]), kept["mode"], owner, group)
        # A process that was started with it is not older than it.
        if (when := kept.get("modified")) is not None:
            os.utime(path.name, ns=(when, when), dir_fd=entry.directory, follow_symlinks=False)


def all_files(files: Iterable[str], credentials: Path) -> list[str]:
    """Files that are there or could be: the generations first, credentials, then the others."""
    names = sorted(map(str, credentials.iterdir())) if credentials.is_dir() else []
    first, *others = files
    return [first, *names, *others]


def keep(given: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the files into one; nothing is written if it holds the same."""
    path = Path(given["path"])
    names = all_files(given["files"], Path(given["credentials"]))
    document = {"files": {name: kept_of(Path(name)) for name in names}, "client": given["client"]}
    if changed := read_object(path) != document:
        with existing(path) as entry:
            entry.write(json.dumps(document).encode("ascii"), 0o600, 0, 0)
    return {"changed": changed, "present": True}


def restore(given: Mapping[str, Any]) -> dict[str, Any]:
    """Write what was kept, the unit last, as it was written in the first place."""
    document = read_object(Path(given["path"]))
    if document is None:
        return {"changed": False, "present": False, "restored": False, "client": ""}
    kept = document["files"]
    names = dict.fromkeys([*kept, *all_files(given["files"], Path(given["credentials"]))])
    unlike = [name for name in names if not like(kept_of(Path(name)), kept.get(name))]
    for name in unlike:
        bring_back(Path(name), kept.get(name))
    return {
        "changed": bool(unlike),
        "present": True,
        "restored": bool(unlike),
        "client": document["client"],
    }


def main() -> None:
    """Run as an Ansible module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "files": {"type": "list", "elements": "path", "required": True},
            "credentials": {"type": "path", "required": True},
            "client": {"type": "str", "default": "", "no_log": True},
            "state": {"type": "str", "choices": ["kept", "restored"], "required": True},
        }
    )
    act = keep if module.params["state"] == "kept" else restore
    try:
        answer = act(module.params)
    except (PathError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
