"""Links, pipes and files of others below the report's directories are not followed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_report import cli
from mirror_report.state.history import History
from mirror_report.state.store import PUBLISHED, StateError, Store, read_below

CANARY = "canary-5e1f"
NOBODY = 65534


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """What only its owner reads; as JSON, so that parsing it says nothing."""
    path = tmp_path / "secret"
    path.write_text(json.dumps({"schema": 1, "data": {CANARY: CANARY}}))
    path.chmod(0o600)
    return path


def link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def pipe(path: Path, _secret: Path) -> None:
    os.mkfifo(path)


def linked_directory(path: Path, secret: Path) -> None:
    path.parent.rmdir()
    path.parent.symlink_to(secret.parent)
    (secret.parent / path.name).hardlink_to(secret)


def folder(path: Path, _secret: Path) -> None:
    path.mkdir()


def foreign(path: Path, secret: Path) -> None:
    """Root's own file, under a name in the directory of somebody else."""
    path.hardlink_to(secret)
    for directory in (path.parent, path.parent.parent):
        os.chown(directory, NOBODY, NOBODY)


Plant = Callable[[Path, Path], None]
PLANTS = [link, pipe, linked_directory, folder, foreign]


def command(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a state, metrics and a web view; one that hangs is an error."""
    config = tmp_path / "config.json"
    servers = {"bootstrap_servers": ["127.0.0.1:1"]}
    flow = {"name": "orders", "source": "east", "target": "west", "topics": ["t"],
            "include": "t", "group_id": "g"}  # fmt: skip
    config.write_text(
        json.dumps(
            {
                "version": 1,
                "clusters": {"east": servers, "west": servers},
                "flows": [flow],
                "state_directory": str(tmp_path / "state"),
                "metrics_directory": str(tmp_path / "metrics"),
                "web_directory": str(tmp_path / "web"),
            }
        )
    )
    argv = [sys.executable, "-m", "mirror_report.cli", "--config", str(config), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=60, env=environment
    )


@pytest.mark.parametrize("plant", PLANTS)
def test_show_follows_nothing_and_waits_for_nothing(
    tmp_path: Path, secret: Path, plant: Plant
) -> None:
    path = tmp_path / "state/reports/latest.json"
    path.parent.mkdir(parents=True)
    plant(path, secret)
    done = command(tmp_path, "show", "--json")
    assert done.returncode == 3
    assert f"{path} cannot be read" in done.stderr
    assert "mirror-report run" in done.stderr
    assert CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("size", "text", "said"),
    [(129 * 2**20, "", "it is larger than 128 MiB"), (0, "[" * 200_000, "is damaged")],
)
def test_show_reads_no_document_without_bound(
    tmp_path: Path, size: int, text: str, said: str
) -> None:
    path = tmp_path / "state/reports/latest.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    if size:
        os.truncate(path, size)
    done = command(tmp_path, "show", "--json")
    assert done.returncode == 3
    assert said in done.stderr
    assert "mirror-report run" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "latest.json").write_text("é" * 8)
    (tmp_path / "short.json").write_text("é" * 5)
    real = os.fstat

    def before_it_grew(descriptor: int) -> os.stat_result:
        return os.stat_result((*real(descriptor)[:6], 0, *real(descriptor)[7:]))

    monkeypatch.setattr(os, "fstat", before_it_grew)
    with pytest.raises(OSError, match="larger than"):
        read_below(tmp_path, "latest.json", most_bytes=10)
    assert read_below(tmp_path, "short.json", most_bytes=10) == "é" * 5


def test_a_report_is_shown_to_whoever_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "state/reports/latest.json"
    path.parent.mkdir(parents=True)
    path.write_text("whole")
    for entry in (path, path.parent, path.parent.parent):
        os.chown(entry, NOBODY, NOBODY)
    assert read_below(tmp_path / "state", "reports/latest.json") == "whole"


@pytest.mark.parametrize("plant", PLANTS)
def test_nothing_but_a_report_is_published(tmp_path: Path, secret: Path, plant: Plant) -> None:
    (tmp_path / "web").mkdir()
    path = tmp_path / "state/reports/latest.html"
    path.parent.mkdir(parents=True)
    plant(path, secret)
    done = command(tmp_path, "publish")
    assert done.returncode == 3
    assert f"{path} cannot be read" in done.stderr
    assert list((tmp_path / "web").iterdir()) == []


def test_publish_says_what_it_did(tmp_path: Path) -> None:
    done = command(tmp_path, "publish")
    assert (done.returncode, done.stdout) == (0, "no report yet\n")
    for name in PUBLISHED:
        Store(tmp_path / "state").write_report(name, name)
    done = command(tmp_path, "publish")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/web: published\n")
    assert {file.name: file.read_text() for file in (tmp_path / "web").iterdir()} == {
        name: name for name in PUBLISHED
    }


@pytest.mark.parametrize("plant", [link, pipe])
def test_metrics_take_the_place_of_what_was_planted(
    tmp_path: Path, secret: Path, plant: Plant
) -> None:
    secret.write_text('kafka_mirror_report_last_success_timestamp_seconds{plane="lag"} 4711\n')
    path = tmp_path / "metrics/mirror_report.prom"
    path.parent.mkdir()
    plant(path, secret)
    done = command(tmp_path, "lag", "--json")
    assert [finding["kind"] for finding in json.loads(done.stdout)["findings"]] == ["unreachable"]
    assert not path.is_symlink()
    assert "kafka_mirror_report_exit_status" in path.read_text()
    assert "4711" not in path.read_text()
    assert secret.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("plant", [link, pipe, folder])
@pytest.mark.parametrize("name", ["baseline.json", "lock"])
def test_a_baseline_ends_whatever_stands_in_its_place(
    tmp_path: Path, secret: Path, plant: Plant, name: str
) -> None:
    before = secret.read_text()
    (tmp_path / "state").mkdir()
    plant(tmp_path / "state" / name, secret)
    done = command(tmp_path, "baseline")
    assert done.returncode == 3
    assert str(tmp_path / "state" / name) in done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert secret.read_text() == before


@pytest.mark.parametrize("plant", [link, pipe])
def test_history_is_neither_read_from_nor_added_to_what_was_planted(
    tmp_path: Path, secret: Path, plant: Plant
) -> None:
    before = secret.read_text()
    (tmp_path / "history/positions").mkdir(parents=True)
    for name in ("lock", "positions/orders.jsonl"):
        plant(tmp_path / "history" / name, secret)
    history = History(tmp_path, 30)
    with pytest.raises(StateError, match="lock cannot be written"), history.lock():
        pass
    with pytest.raises(StateError, match=r"orders\.jsonl cannot be written"):
        history.append("orders", {"at": 1}, 0, list)
    with pytest.raises(StateError, match=r"orders\.jsonl cannot be read"):
        history.lines("orders")
    assert secret.read_text() == before
