"""Lab hosts, entered through the namespaces and control groups of their first process.

A module costs milliseconds and not a start of the container engine: playbooks run in less than half
the time.
"""

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

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "container": "podman",
}
CGROUPS = Path("/sys/fs/cgroup")


def _cgroup_lists(process: str) -> list[Path]:
    """The lists a process has to be written into to share the control groups of another.

    A JVM whose groups lie outside of what it sees cannot measure itself, and Spark fails.
    """
    # The second version's only hierarchy has no name; beside those of the first it is unified.
    unified = "unified" if (CGROUPS / "unified").is_dir() else ""
    found = []
    for line in Path(f"/proc/{process}/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        hierarchy = CGROUPS / (controllers.removeprefix("name=") or unified)
        if hierarchy.is_dir():
            found.append(hierarchy / path.lstrip("/") / "cgroup.procs")
    return found


class Connection(ConnectionBase):  # type: ignore[misc]  # Ansible is not typed
    """A lab host."""

    transport = "lab"
    has_pipelining = True

    def _connect(self) -> None:
        """Find the first process of the host: another one after each start."""
        name = self.get_option("remote_addr")
        argv = ["podman", "container", "inspect", "--format", "{{.State.Pid}}", name]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        self._first_process = done.stdout.strip()
        if self._first_process in ("", "0"):
            raise AnsibleConnectionFailure(
                f"{name} does not run: {done.stderr.strip() or 'it is stopped'}"
            )
        self._cgroup_lists = _cgroup_lists(self._first_process)
        self._connected = True

    def close(self) -> None:
        """Nothing stays open."""
        self._connected = False

    def _join(self) -> None:
        for one in self._cgroup_lists:
            one.write_text("0", encoding="ascii")  # the process that writes

    def _run(self, argv: list[str], data: bytes | None = None) -> tuple[int, bytes, bytes]:
        entered = ["nsenter", "--target", self._first_process, "--all", "--", *argv]
        try:
            done = subprocess.run(
                entered,
                preexec_fn=self._join,  # safe here: a worker of Ansible has one thread
                input=b"" if data is None else data,
                capture_output=True,
                check=False,
                env=ENVIRONMENT,
            )
        except subprocess.SubprocessError as error:
            name = self.get_option("remote_addr")
            raise AnsibleConnectionFailure(
                f"{name}: its control groups cannot be joined; has it stopped meanwhile?"
            ) from error
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
