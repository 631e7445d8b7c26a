#!/usr/bin/python
"""Build the report's wheel on the controller and bundle it with the wheels it needs."""

import fcntl
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: kafka_client_bundle
short_description: Builds the wheel of the report once and bundles it with its dependencies
description:
  - Builds a wheel from a source tree, keyed by a hash of the tree, below one directory.
  - Packs it, with the wheels of a wheelhouse and the locks, into one archive that is quick to send
    to a host.
  - Refuses a wheel whose SHA-256 is neither locked nor given in I(digests).
  - Runs on the controller. Concurrent calls wait for each other; what exists is used again.
options:
  source: {description: Directory with pyproject.toml and src., type: path, required: true}
  directory: {description: Where wheels and archives are kept., type: path, required: true}
  wheelhouse: {description: Wheels that go with it; empty for none., type: str, default: ""}
  digests:
    description: SHA-256 of wheels of the wheelhouse that were built from a locked source, by name.
    type: dict
    default: {}
  locks:
    description: Directory with the locks client.txt, spark.txt (holds the former) and build.txt.
    type: path
    required: true
  spark: {description: Whether Spark has to be in the wheelhouse., type: bool, default: false}
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


def sha256(path: Path) -> str:
    """Digest of a file in hexadecimal."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def canonical(name: str) -> str:
    """A package's name as all of its spellings have it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(text: str) -> dict[tuple[str, str], set[str]]:
    """What a lock names, as pip reads it: package and version -> SHA-256 of its files."""
    pinned = {}
    for line in text.replace("\\\n", " ").splitlines():
        if pin := re.match(r"([\w.-]+)==([^\s;]+)", line):
            digests = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
            pinned[canonical(pin[1]), pin[2]] = digests
    return pinned


def of_wheel(path: Path) -> tuple[str, str]:
    """Package and version, by the name of a wheel."""
    name, version = path.name.split("-")[:2]
    return canonical(name), version


def locked_wheels(
    wheelhouse: Path, lock: dict[tuple[str, str], set[str]], digests: dict[str, str]
) -> dict[Path, str]:
    """Wheels of a wheelhouse that a lock names, with their SHA-256; others are passed over.

    :param digests: of wheels that were built from a locked source, by name.
    :raises BundleError: one of them is not what the lock names.
    """
    wheels = {}
    for path in sorted(wheelhouse.glob("*.whl")):
        if of_wheel(path) not in lock:
            continue
        digest = wheels[path] = sha256(path)
        if digest not in lock[of_wheel(path)] and digests.get(path.name) != digest:
            raise BundleError(
                f"mirror_report_wheelhouse: {path} has the SHA-256 {digest}, which the lock of the "
                "report does not name. Fetch it again. If you built it from a source that the lock "
                f"names, write into mirror_report_wheel_digests: {path.name}: {digest}"
            )
    return wheels


def with_digests(text: str, wheels: dict[Path, str]) -> str:
    """A lock that names the digests of some wheels as well, where it does not."""
    for path, digest in wheels.items():
        name, version = of_wheel(path)
        if digest not in text:
            pin = rf"(?m)^({re.escape(name)}=={re.escape(version)}\b[^\\\n]*)"
            text = re.sub(pin, rf"\1--hash=sha256:{digest} ", text)
    return text


def build_tools(place: Path, lock: Path, wheelhouse: str) -> str:
    """Make an environment with the tools that build a wheel, each of a locked digest.

    :param place: where the environment is made.
    :param lock: lock of the tools.
    :param wheelhouse: directory that may hold them; otherwise they come from the package index.
    :returns: its interpreter.
    :raises BundleError: they cannot be had.
    """
    python = str(place / "bin" / "python")
    links = ["--no-index", "--find-links", wheelhouse] if wheelhouse else []
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    for command in (
        [sys.executable, "-m", "venv", str(place)],
        [*pip, "--require-hashes", *links, "--requirement", str(lock)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BundleError(
                f"{sys.executable} has no setuptools and wheel, and those of {lock} cannot be "
                f"installed beside it. Install them, or bring a package index or "
                f"mirror_report_wheelhouse with them. It said:\n{done.stderr.strip()[-1500:]}"
            )
    return python


def build_wheel(
    source: Path, files: list[Path], target: Path, wheelhouse: str, tools: Path
) -> None:
    """Build the wheel from a copy of the source; ``target`` appears whole or not at all.

    :param source: directory with ``pyproject.toml``.
    :param files: what to copy of it.
    :param target: directory that will hold the wheel alone.
    :param wheelhouse: directory that may hold the build tools, or empty.
    :param tools: lock of the build tools, for a controller that has none.
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
            "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check",
            # An environment that pip makes for the build would hold what no lock names.
            "--no-build-isolation", "--check-build-dependencies", "--no-input",
            "--wheel-dir", str(out), str(tree),
        ]  # fmt: skip

        def build(python: str) -> subprocess.CompletedProcess[str]:
            environment = {**os.environ, "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH)}
            return subprocess.run(
                [python, *command], env=environment, capture_output=True, text=True, check=False
            )

        done = build(sys.executable)
        if done.returncode != 0:
            done = build(build_tools(Path(scratch) / "tools", tools, wheelhouse))
        if done.returncode != 0:
            raise BundleError(
                f"{sys.executable} could not build the wheel of {source}. It said:\n"
                f"{done.stderr.strip()[-1500:]}"
            )
        out.chmod(0o755)
        out.replace(target)


def bundle_key(wheels: dict[Path, str], texts: dict[str, str], prefix: str) -> str:
    """Name of the archive that holds exactly these wheels and texts.

    :param wheels: with their SHA-256.
    :param texts: by name.
    :param prefix: directory inside the archive.
    :returns: 16 hexadecimal digits.
    """
    named = {path.name: digest for path, digest in wheels.items()}
    return hashlib.sha256(repr((prefix, named, texts)).encode()).hexdigest()[:16]


def pack(archive: Path, wheels: Iterable[Path], texts: dict[str, str], prefix: str) -> None:
    """Write the archive of wheels and texts; it appears whole or not at all.

    :param archive: file to write.
    :param wheels: what it holds.
    :param texts: by name, what it holds besides.
    :param prefix: directory inside the archive.
    """
    part = archive.with_suffix(".part")
    with tarfile.open(part, "w") as tar:
        for depth in range(1, len(Path(prefix).parts) + 1):
            directory = tarfile.TarInfo("/".join(Path(prefix).parts[:depth]))
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            directory.mtime = int(time.time())
            tar.addfile(directory)
        contents = {path.name: path.read_bytes() for path in wheels}
        contents |= {name: text.encode() for name, text in texts.items()}
        for name, content in contents.items():
            info = tarfile.TarInfo(f"{prefix}/{name}")
            info.mode, info.mtime, info.size = 0o644, int(time.time()), len(content)
            tar.addfile(info, io.BytesIO(content))
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


@dataclass(frozen=True)
class Wheelhouse:
    """Wheels that go with the report.

    :param directory: where they lie; empty for none.
    :param digests: see :func:`locked_wheels`.
    :param spark: whether Spark has to be among them.
    """

    directory: str
    digests: dict[str, str]
    spark: bool


def from_wheelhouse(wheelhouse: Wheelhouse, locks: Path) -> tuple[dict[Path, str], dict[Path, str]]:
    """What the report needs of a wheelhouse, with SHA-256: without Spark, and of Spark.

    :param locks: directory of the locks.
    :raises BundleError: a wheel is missing, or is not what the lock names.
    """
    if not wheelhouse.directory:
        return {}, {}
    client, every = (locked((locks / f"{name}.txt").read_text()) for name in ("client", "spark"))
    wheels = locked_wheels(Path(wheelhouse.directory), every, wheelhouse.digests)
    missing = (every if wheelhouse.spark else client).keys() - {of_wheel(path) for path in wheels}
    if missing:
        names = ", ".join(f"{name} {version}" for name, version in sorted(missing))
        raise BundleError(
            f"mirror_report_wheelhouse: {wheelhouse.directory} holds no wheel of {names}. Fill it "
            "as docs/operations.md says, or leave the variable empty to install from the package "
            "index of the host."
        )
    ours = {path: digest for path, digest in wheels.items() if of_wheel(path) in client}
    return ours, {path: digest for path, digest in wheels.items() if path not in ours}


def bundle(
    source: Path,
    directory: Path,
    wheelhouse: Wheelhouse,
    locks: Path,
    prefix: str,
    *,
    check: bool,
) -> dict[str, Any]:
    """Make sure that wheel and archive exist.

    :param source: source of the report.
    :param directory: where wheels and archives are kept.
    :param locks: directory of the locks.
    :param prefix: directory inside the archive.
    :param check: compute only; build and write nothing.
    :returns: ``changed``, ``hash`` of the source, the path ``archive`` (empty if not built),
        ``loose`` (wheels of Spark that no archive is packed for) and ``locks`` (name -> SHA-256).
    :raises BundleError: see :func:`build_wheel` and :func:`from_wheelhouse`.
    """
    files = source_files(source)
    identity = content_hash(source, files)
    others, loose = from_wheelhouse(wheelhouse, locks)
    texts = {
        path.name: with_digests(path.read_text(), {**others, **loose})
        for path in sorted(locks.glob("*.txt"))
    }
    result: dict[str, Any] = {
        "changed": False,
        "hash": identity,
        "archive": "",
        "loose": [str(path) for path in loose],
        "locks": {
            Path(name).stem: hashlib.sha256(text.encode()).hexdigest()
            for name, text in texts.items()
        },
    }
    if check:
        return result
    wheels, archives = directory / "wheels", directory / "bundles"
    for path in (wheels, archives):
        path.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home = wheels / identity[:16]
        if no_wheel := not home.is_dir():
            build_wheel(source, files, home, wheelhouse.directory, locks / "build.txt")
        wheel = next(home.glob("*.whl"))
        packed = {wheel: sha256(wheel), **others}
        texts["own.txt"] = f"mirror-report=={of_wheel(wheel)[1]} --hash=sha256:{packed[wheel]}\n"
        archive = archives / f"{bundle_key(packed, texts, prefix)}.tar"
        if no_archive := not archive.is_file():
            pack(archive, packed, texts, prefix)
        prune(wheels, home)
        prune(archives, archive)
    return {**result, "changed": no_wheel or no_archive, "archive": str(archive)}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "path", "required": True},
            "directory": {"type": "path", "required": True},
            "wheelhouse": {"type": "str", "default": ""},
            "digests": {"type": "dict", "default": {}},
            "locks": {"type": "path", "required": True},
            "spark": {"type": "bool", "default": False},
            "prefix": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    # Nobody else on the controller may write into what hosts install, whatever the caller's umask.
    os.umask(os.umask(0o022) | 0o022)
    try:
        result = bundle(
            Path(given["source"]).resolve(),
            Path(given["directory"]).expanduser(),
            Wheelhouse(
                str(Path(given["wheelhouse"]).expanduser()) if given["wheelhouse"] else "",
                given["digests"],
                given["spark"],
            ),
            Path(given["locks"]),
            given["prefix"],
            check=module.check_mode,
        )
    except (BundleError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
