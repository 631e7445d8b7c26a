#!/usr/bin/python
"""Build the report's wheel on the controller and bundle it with the wheels it needs."""

import fcntl
import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: mirror_report_bundle
short_description: Builds the wheel of the report once and bundles it with its dependencies
description:
  - Builds a wheel from a source tree, keyed by a hash of the tree, below one directory.
  - Packs it, with the wheels of a wheelhouse, into one archive that is quick to send to a host.
  - Runs on the controller. Concurrent calls wait for each other; what exists is used again.
options:
  source: {description: Directory with pyproject.toml and src., type: path, required: true}
  directory: {description: Where wheels and archives are kept., type: path, required: true}
  wheelhouse: {description: Wheels that go with it; empty for none., type: str, default: ""}
  exclude: {description: Patterns of wheels left out., type: list, elements: str, default: []}
  prefix: {description: Directory inside the archive., type: str, required: true}
"""

# The oldest moment a zip file can name: the same source gives the same bytes.
SOURCE_DATE_EPOCH = 315532800
KEPT = 5


class BundleError(Exception):
    """The wheel cannot be built; the message says what to do."""


def source_files(source: Path) -> list[Path]:
    """Files that decide what the wheel holds, in a fixed order.

    :param source: directory with ``pyproject.toml`` and ``src``.
    :returns: the files, without caches and build leftovers.
    :raises BundleError: the directory is not the source of the report.
    """
    project = source / "pyproject.toml"
    if not project.is_file() or not (source / "src").is_dir():
        raise BundleError(f"mirror_report_source: {source} holds no pyproject.toml and src/")
    top = [path for path in (project, source / "README.md") if path.is_file()]
    package = [
        path
        for path in sorted((source / "src").rglob("*"))
        if path.is_file()
        and path.suffix not in {".pyc", ".pyo"}
        and not any(part.endswith(".egg-info") for part in path.parts)
    ]
    return top + package


def content_hash(source: Path, files: list[Path]) -> str:
    """Hash of names and contents.

    :param source: directory the names are relative to.
    :param files: files in a fixed order.
    :returns: SHA-256 in hexadecimal.
    """
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(source)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def build_wheel(source: Path, files: list[Path], target: Path, wheelhouse: str) -> None:
    """Build the wheel from a copy of the source; ``target`` appears whole or not at all.

    :param source: directory with ``pyproject.toml``.
    :param files: what to copy of it.
    :param target: directory that will hold the wheel alone.
    :param wheelhouse: directory that may hold the build tools, or empty.
    :raises BundleError: pip is missing or the build failed.
    """
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        tree, out = Path(scratch) / "tree", Path(scratch) / "out"
        for path in files:
            copy = tree / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            copy.chmod(0o644)
        command = [
            sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
            "--disable-pip-version-check", "--no-input", "--wheel-dir", str(out),
        ]  # fmt: skip
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH)}
        # What is at hand comes first: a closed site has no index to fetch build tools from.
        ways = [["--no-build-isolation", "--check-build-dependencies"]]
        if wheelhouse and any(Path(wheelhouse).expanduser().glob("setuptools-*.whl")):
            ways.append(["--no-index", "--find-links", str(Path(wheelhouse).expanduser())])
        ways.append([])
        attempts: list[subprocess.CompletedProcess[str]] = []
        for isolation in ways:
            attempts.append(
                subprocess.run(
                    [*command, *isolation, str(tree)],
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
            )
            if attempts[-1].returncode == 0:
                break
        else:
            said = "\n".join(attempt.stderr.strip()[-1500:] for attempt in attempts)
            raise BundleError(
                f"{sys.executable} could not build the wheel of {source}. It needs pip and, where "
                f"no package index can be reached, setuptools and wheel. It said:\n{said}"
            )
        out.chmod(0o755)
        out.replace(target)


def bundle_key(wheel: Path, others: list[Path], prefix: str) -> str:
    """Name of the archive that holds exactly these wheels.

    :param wheel: the wheel of the report, below a directory named by its hash.
    :param others: the wheels it needs.
    :param prefix: directory inside the archive.
    :returns: 16 hexadecimal digits.
    """
    digest = hashlib.sha256(f"{wheel.parent.name}\0{prefix}\0".encode())
    for path in others:
        status = path.stat()
        digest.update(f"{path.name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def pack(archive: Path, wheels: list[Path], prefix: str) -> None:
    """Write the archive of the wheels; it appears whole or not at all.

    :param archive: file to write.
    :param wheels: what it holds.
    :param prefix: directory inside the archive.
    """
    part = archive.with_suffix(".part")
    with tarfile.open(part, "w") as tar:
        for depth in range(1, len(Path(prefix).parts) + 1):
            directory = tarfile.TarInfo("/".join(Path(prefix).parts[:depth]))
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            directory.mtime = int(time.time())
            tar.addfile(directory)
        for path in wheels:
            info = tar.gettarinfo(str(path), arcname=f"{prefix}/{path.name}")
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            info.mode = 0o644
            with path.open("rb") as content:
                tar.addfile(info, content)
    part.replace(archive)


def prune(directory: Path, keep: Path) -> None:
    """Remove all but the newest entries.

    :param directory: where they lie.
    :param keep: the entry in use, kept whatever its age.
    """
    keep.touch()
    entries = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in entries[KEPT:]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def bundle(
    source: Path, directory: Path, wheelhouse: str, exclude: list[str], prefix: str, check: bool
) -> dict[str, Any]:
    """Make sure that wheel and archive exist.

    :param source: source of the report.
    :param directory: where wheels and archives are kept.
    :param wheelhouse: directory of further wheels, or empty.
    :param exclude: patterns of wheels left out of the archive.
    :param prefix: directory inside the archive.
    :param check: compute only; build and write nothing.
    :returns: ``changed``, ``hash`` of the source and the path ``archive`` (empty if not built).
    :raises BundleError: see :func:`build_wheel`.
    """
    files = source_files(source)
    identity = content_hash(source, files)
    others: list[Path] = []
    if wheelhouse:
        others = [
            path
            for path in sorted(Path(wheelhouse).expanduser().glob("*.whl"))
            if not any(fnmatch.fnmatch(path.name, pattern) for pattern in exclude)
            and not path.name.startswith("mirror_report-")
        ]
        if not others and not check:
            raise BundleError(
                f"mirror_report_wheelhouse: {wheelhouse} holds no wheels. Fill it, or leave the "
                "variable empty to install from the package index of the host."
            )
    if check:
        return {"changed": False, "hash": identity, "archive": ""}
    changed = False
    wheels, archives = directory / "wheels", directory / "bundles"
    for path in (wheels, archives):
        path.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home = wheels / identity[:16]
        if not home.is_dir():
            build_wheel(source, files, home, wheelhouse)
            changed = True
        wheel = next(home.glob("*.whl"))
        archive = archives / f"{bundle_key(wheel, others, prefix)}.tar"
        if not archive.is_file():
            pack(archive, [wheel, *others], prefix)
            changed = True
        prune(wheels, home)
        prune(archives, archive)
    return {"changed": changed, "hash": identity, "archive": str(archive)}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "path", "required": True},
            "directory": {"type": "path", "required": True},
            "wheelhouse": {"type": "str", "default": ""},
            "exclude": {"type": "list", "elements": "str", "default": []},
            "prefix": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    try:
        result = bundle(
            Path(module.params["source"]).resolve(),
            Path(module.params["directory"]).expanduser(),
            module.params["wheelhouse"],
            module.params["exclude"],
            module.params["prefix"],
            module.check_mode,
        )
    except (BundleError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
