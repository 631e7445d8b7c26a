"""Lab hosts, entered as lab/enter does."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection import ConnectionBase, ensure_connect

DOCUMENTATION = r"""
name: lab
short_description: Run modules as root in a container of this machine
description:
  - Enters namespaces and control groups of its first process; root on this machine alone may.
extends_documentation_fragment:
  - connection_pipelining
options:
  remote_addr:
    description: The container.
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_host
"""

ENTER = Path(__file__).resolve().parents[1] / "enter"
NOT_ENTERED = 125


class Connection(ConnectionBase):  # type: ignore[misc]  # Ansible is not typed
    """A lab host."""

    transport = "lab"
    has_pipelining = True

    def _connect(self) -> None:
        """Nothing is held open."""
        self._connected = True

    def close(self) -> None:
        """Nothing stays open."""
        self._connected = False

    def _run(self, argv: list[str], data: bytes | None = None) -> tuple[int, bytes, bytes]:
        entered = [str(ENTER), self.get_option("remote_addr"), *argv]
        done = subprocess.run(entered, input=data or b"", capture_output=True, check=False)
        if done.returncode == NOT_ENTERED:
            raise AnsibleConnectionFailure(os.fsdecode(done.stderr).strip())
        return done.returncode, done.stdout, done.stderr

    @ensure_connect  # type: ignore[untyped-decorator]
    def exec_command(
        self, cmd: str, in_data: bytes | None = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a command in the host.

        :returns: exit status, standard output, standard error.
        """
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return self._run(shlex.split(cmd), in_data)

    @ensure_connect  # type: ignore[untyped-decorator]
    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file into the host."""
        super().put_file(in_path, out_path)
        write = ["sh", "-c", 'exec cat > "$1"', "sh", out_path]
        status, _, error = self._run(write, Path(in_path).read_bytes())
        if status != 0:
            raise AnsibleError(f"{out_path} was not written: {os.fsdecode(error).strip()}")

    @ensure_connect  # type: ignore[untyped-decorator]
    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file out of the host."""
        super().fetch_file(in_path, out_path)
        status, content, error = self._run(["cat", in_path])
        if status != 0:
            raise AnsibleError(f"{in_path} was not read: {os.fsdecode(error).strip()}")
        Path(out_path).write_bytes(content)
