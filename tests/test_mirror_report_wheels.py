"""The report's Python packages are locked by their SHA-256; what is not the same is refused."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.loading import ROOT, load
from tests.playing import run_module

ROLE = ROOT / "roles/kafka_client"
LOCKS = ROLE / "files/python"
BUNDLE = "roles/kafka_client/library/kafka_client_bundle.py"
ENVIRONMENT = "roles/kafka_client/library/kafka_client_environment.py"
CACHE = Path(
    os.environ.get("MIRROR_LAB_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kafka-mirror-lab"
)
SMALL = "mdurl-0.1.2-py3-none-any.whl"
bundle = load(BUNDLE, "kafka_client_bundle")


def locked(path: Path) -> dict[str, str]:
    """Package -> version of a lock."""
    found = bundle.locked(path.read_text())
    assert all(found.values()), "each has a digest"
    return dict(found.keys())


def test_the_locks_pin_what_the_report_asks_for_and_agree() -> None:
    client, spark = (locked(LOCKS / f"{name}.txt") for name in ("client", "spark"))
    assert client.items() < spark.items() <= locked(ROOT / "requirements.txt").items()
    project = tomllib.loads((ROOT / "spark/pyproject.toml").read_text())["project"]
    for lock, asked in (
        (client, project["dependencies"]), (spark, project["optional-dependencies"]["spark"]),
    ):  # fmt: skip
        pins = [each.split("==") for each in asked if "==" in each]
        assert pins
        assert {bundle.canonical(name): version for name, version in pins}.items() <= lock.items()
        assert {bundle.canonical(each.split("=")[0].split(">")[0]) for each in asked} <= set(lock)


def test_a_digest_joins_its_package_alone_and_before_a_marker() -> None:
    text = "a==1.0 ; os_name == 'nt' \\\n    --hash=sha256:" + "1" * 64 + "\na-b==1.0 \\\n    -\n"
    changed = bundle.with_digests(text, {Path("a_b-1.0-py3-none-any.whl"): "2" * 64})
    assert changed == text.replace("a-b==1.0 ", f"a-b==1.0 --hash=sha256:{'2' * 64} ")
    marked = bundle.with_digests(text, {Path("a-1.0-py3-none-any.whl"): "2" * 64})
    assert bundle.locked(marked)["a", "1.0"] == {"1" * 64, "2" * 64}


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """The lab's, as a directory of its own."""
    place = tmp_path / "wheelhouse"
    place.mkdir()
    for wheel in (CACHE / "wheels").glob("*.whl"):
        (place / wheel.name).symlink_to(wheel)
    return place


@pytest.fixture
def bundled(tmp_path: Path, wheelhouse: Path) -> Any:
    """The module of the controller, run as the role does."""

    def run(**changes: Any) -> dict[str, Any]:
        given = {
            "source": str(ROOT / "spark"), "directory": str(tmp_path / "built"),
            "wheelhouse": str(wheelhouse), "locks": str(LOCKS), "prefix": "wheels", "spark": True,
            "digests": yaml.safe_load((CACHE / "built-wheels.yml").read_text()), **changes,
        }  # fmt: skip
        return run_module(BUNDLE, given)

    return run


def alter(wheel: Path) -> None:
    """Turn over one bit in the middle; name, size and time stay."""
    content, times = bytearray(wheel.read_bytes()), wheel.stat()
    content[len(content) // 2] ^= 1
    wheel.unlink()
    wheel.write_bytes(content)
    os.utime(wheel, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_an_altered_wheel_leaves_the_controller_in_no_archive(
    bundled: Any, wheelhouse: Path
) -> None:
    first = bundled()
    assert first["changed"]
    assert [Path(path).name.split("-")[0] for path in first["loose"]] == ["py4j", "pyspark"]
    assert not bundled()["changed"]
    for name in (SMALL, "py4j-0.10.9.9-py2.py3-none-any.whl"):
        alter(wheelhouse / name)
        refused = bundled()
        assert refused["failed"]
        assert str(wheelhouse / name) in refused["msg"]
        assert "mirror_report_wheel_digests" in refused["msg"]
        (wheelhouse / name).unlink()
        (wheelhouse / name).symlink_to(CACHE / "wheels" / name)
    assert not bundled()["changed"]


def test_a_wheel_that_was_built_here_needs_its_digest_said(bundled: Any) -> None:
    refused = bundled(digests={})
    assert refused["failed"]
    assert "pyspark-4.2.0-py2.py3-none-any.whl: " in refused["msg"], "as it is written down"


def test_what_a_wheelhouse_lacks_is_named(bundled: Any, wheelhouse: Path) -> None:
    (wheelhouse / SMALL).unlink()
    (wheelhouse / "py4j-0.10.9.9-py2.py3-none-any.whl").unlink()
    assert "no wheel of mdurl 0.1.2, py4j 0.10.9.9" in bundled()["msg"]
    assert "no wheel of mdurl 0.1.2." in bundled(spark=False)["msg"]


@pytest.mark.long
def test_a_host_installs_what_is_locked_and_refuses_an_altered_wheel(
    bundled: Any, tmp_path: Path
) -> None:
    home, wheels = tmp_path / "environment", tmp_path / "wheels"

    def install(source: str, **changes: Any) -> dict[str, Any]:
        made = bundled()
        subprocess.run(["tar", "-xf", made["archive"], "-C", str(tmp_path)], check=True)
        for name in changes.pop("altered", ()):
            alter(wheels / name)
        given = {
            "path": str(home), "python": "/usr/bin/python3", "source": source,
            "wheels": str(wheels), "locks": made["locks"], **changes,
        }  # fmt: skip
        return run_module(ENVIRONMENT, given)

    def works() -> bool:
        command = [str(home / "bin/mirror-report"), "--help"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    refused = install("one", altered=[next(wheel_names("mirror_report", bundled))])
    assert refused["failed"]
    assert "DO NOT MATCH THE HASHES" in refused["msg"]
    assert not (home / "bin/mirror-report").exists()
    assert install("one")["changed"]
    assert works()
    assert not install("one")["changed"]
    # Unlike what is there already, this is looked at.
    subprocess.run(
        [str(home / "bin/python"), "-m", "pip", "uninstall", "--quiet", "--yes", "mdurl"],
        check=True,
    )
    refused = install("two", altered=[SMALL])
    assert "DO NOT MATCH THE HASHES" in refused["msg"]
    assert not (home / ".mirror-report.json").exists(), "made again by the next run"
    assert install("two")["changed"]
    assert works()
    marker = json.loads((home / ".mirror-report.json").read_text())
    assert marker["lock"] == bundled()["locks"]["client"]


def wheel_names(package: str, bundled: Any) -> Any:
    """Names of a package's wheels in the archive."""
    with tarfile.open(bundled()["archive"]) as archive:
        names = [Path(name).name for name in archive.getnames()]
    return (name for name in names if name.startswith(f"{package}-"))


def test_a_controller_without_build_tools_gets_the_locked_ones(
    wheelhouse: Path, tmp_path: Path
) -> None:
    python = bundle.build_tools(tmp_path / "tools", LOCKS / "build.txt", str(wheelhouse))
    version = subprocess.run(
        [python, "-c", "import setuptools; print(setuptools.__version__)"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert version.stdout.strip() == locked(LOCKS / "build.txt")["setuptools"]
    alter(wheelhouse / "wheel-0.48.0-py3-none-any.whl")
    with pytest.raises(bundle.BundleError, match="DO NOT MATCH THE HASHES"):
        bundle.build_tools(tmp_path / "again", LOCKS / "build.txt", str(wheelhouse))
