"""Commands end with the documented exit status, and print what an operator needs."""

import io
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mirror_report import cli
from mirror_report.checks.verdict import finding, verdict
from mirror_report.commands import check
from mirror_report.launch import submit
from mirror_report.model import CheckDocument, FlowStatus, Report
from mirror_report.render import json as render_json
from mirror_report.state.store import Store

SECRET = "s3cret-value"


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(
        json.dumps(
            {
                "version": 1,
                # Nobody listens on port 1.
                "clusters": {"east": {"bootstrap_servers": ["127.0.0.1:1"]},
                             "west": {"bootstrap_servers": ["127.0.0.1:1"]}},
                "flows": [{"name": "orders", "source": "east", "target": "west",
                           "topics": ["t"], "include": "t", "group_id": "g"}],
                "state_directory": str(tmp_path / "state"),
            }
        )
    )  # fmt: skip
    return path


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    from mirror_report.kafka import connection

    monkeypatch.setattr(connection, "BOOTSTRAP_TIMEOUT_MS", 300)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = cli.main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("run", "--bogus"),
        ("confirm", "--timeout", "0"),
        ("run", "--deadline", "0"),
        ("run", "--max-bytes", "-1"),
        ("baseline", "--renew", "--full-history"),
        ("show", "--json", "--html-path"),
        ("lag", "--format", "xml"),
    ],
)
def test_usage_error_is_unknown_not_critical(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 3
    assert "usage:" in err


def test_help_and_version_are_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--help")[0] == 0
    assert run(capsys, "--version")[0] == 0


@pytest.mark.parametrize(
    "command", [("check",), ("lag",), ("baseline",), ("confirm", "--flow", "orders")]
)
def test_cluster_that_is_away_is_unknown_and_no_traceback(
    configuration: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    code, out, err = run(capsys, "--config", str(configuration), *command)
    assert code == 3
    assert "unreachable" in out + err
    assert "127.0.0.1:1" in out + err
    assert "Traceback" not in err


def test_run_writes_a_report_even_if_nothing_answers(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "--config", str(configuration), "run", "--json")
    assert code == 3
    assert json.loads(out)["verdict"]["severity"] == "unknown"
    assert "reading offsets" in err, "progress goes to standard error"
    code, out, _ = run(capsys, "--config", str(configuration), "show")
    assert code == 3
    assert "unreachable" in out
    code, out, _ = run(capsys, "--config", str(configuration), "show", "--html-path")
    assert Path(out.strip()).read_text().startswith("<!doctype html>")


def test_show_without_a_report_says_how_to_make_one(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "--config", str(configuration), "show")
    assert code == 3
    assert "mirror-report run" in err


def test_run_during_a_run_is_refused(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(configuration.parent / "state").lock():
        for command in ("run", "baseline"):
            code, _, err = run(capsys, "--config", str(configuration), command)
            assert code == 3
            assert "in use: process" in err


def test_unknown_flow_is_named(configuration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--config", str(configuration), "lag", "--flow", "order")
    assert code == 3
    assert "did you mean 'orders'" in err


def test_missing_configuration_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--config", "/nonexistent", "lag")
    assert code == 3
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "code"), [(None, 0), ("no_topics", 1), ("same_cluster", 2), ("permission", 3)]
)
def test_check_ends_with_the_worst_finding(
    configuration: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str | None,
    code: int,
) -> None:
    found = [finding(kind, "message", "action")] if kind else []
    document = CheckDocument(render_json.SCHEMA_VERSION, verdict(found), [], found)
    monkeypatch.setattr(check, "check_flows", lambda *_: document)
    assert run(capsys, "--config", str(configuration), "check")[0] == code
    got, out, err = run(capsys, "--config", str(configuration), "check", "--json")
    assert not err
    assert (got, json.loads(out)["verdict"]["exit_code"]) == (code, code)


def test_internal_failure_is_a_sentence_and_debug_shows_more(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("what happened")

    monkeypatch.setattr(check, "check_flows", broken)
    code, _, err = run(capsys, "--config", str(configuration), "check")
    assert code == 3
    assert "what happened" in err
    assert "Traceback" not in err
    assert "Traceback" in run(capsys, "--config", str(configuration), "--debug", "check")[2]


def test_secret_on_standard_input_appears_nowhere(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads(configuration.read_text())
    for alias in ("east", "west"):
        document["clusters"][alias] |= {
            "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512",
            "username": "u",
        }  # fmt: skip
    document["credentials"] = {"east.report.password": SECRET, "west.report.password": SECRET}
    for command in (["--debug", "run"], ["check"], ["lag", "--json"]):
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(document)))
        code, out, err = run(capsys, "--config", "-", *command)
        assert code == 3
        assert SECRET not in out + err
    written = [path for path in (configuration.parent / "state").rglob("*") if path.is_file()]
    assert len(written) >= 3
    assert not [path for path in written if SECRET in path.read_text()]


def test_light_commands_need_no_spark() -> None:
    program = (
        "import sys; import mirror_report.cli; "
        "sys.exit(any(m.split('.')[0] in ('pyspark', 'jinja2') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, env={
        "PYTHONPATH": str(Path(cli.__file__).parents[1])}).returncode == 0  # fmt: skip


def without_age(text: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(text)
    assert plain.pop("age_seconds") is not None
    plain["verdict"]["text"], made, _ = plain["verdict"]["text"].rpartition(" (made ")
    assert made
    return plain


def test_report_of_one_flow_leaves_that_of_all_alone(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.loads(run(capsys, "--config", str(configuration), "run", "--json")[1])
    single = json.loads(
        run(capsys, "--config", str(configuration), "run", "--json", "--flow", "orders")[1]
    )
    shown = run(capsys, "--config", str(configuration), "show", "--json")[1]
    assert without_age(shown) == without_age(json.dumps(whole))
    stored = json.loads((configuration.parent / "state/reports/latest.json").read_text())
    assert stored["age_seconds"] is None, "a file does not know its age"
    kept = {key: stored[key] for key in ("verdict", "age_seconds")}
    assert json.loads(shown) | kept == stored, "until when it holds is the same in both"
    shown = run(capsys, "--config", str(configuration), "show", "--json", "--flow", "orders")[1]
    assert without_age(shown) == without_age(json.dumps(single))
    page = run(capsys, "--config", str(configuration), "show", "--html-path", "--flow", "orders")
    assert page[1].strip().endswith("latest-orders.html")


def test_show_of_a_flow_without_a_report_says_how_to_make_one(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "--config", str(configuration), "show", "--flow", "orders")
    assert code == 3
    assert "mirror-report run --flow orders" in err
    code, _, err = run(capsys, "--config", str(configuration), "show", "--flow", "../orders")
    assert code == 3
    assert "no flow named" in err


@pytest.mark.parametrize("command", ["check", "lag", "run"])
def test_nagios_line_is_one_line_with_the_status_of_the_command(
    configuration: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    arguments = ("--config", str(configuration), command, "--format", "nagios")
    code, out, _ = run(capsys, *arguments)
    assert code == 3
    assert out.startswith("MIRROR UNKNOWN - unknown: ")
    assert out.count("\n") == 1
    assert " | critical=0;;;0" in out


def test_failure_is_reported_to_nagios_on_standard_output(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--config", str(configuration), "show", "--format", "nagios")
    code, out, _ = run(capsys, *arguments)
    assert code == 3
    assert out.startswith("MIRROR UNKNOWN - no report yet")


def stored(configuration: Path, age_seconds: float, settings: dict[str, Any]) -> Path:
    """The last report of all flows: whole, and so old."""
    document = json.loads(configuration.read_text()) | settings
    configuration.write_text(json.dumps(document))
    made = datetime.now(UTC) - timedelta(seconds=age_seconds)
    flows = [FlowStatus("orders", "mm1", "east", "west", "A", "B", "g", "Stable", 3, ())]
    report = Report(
        render_json.SCHEMA_VERSION, {"name": "mirror-report", "version": "0"}, "run",
        made.strftime("%Y-%m-%dT%H:%M:%SZ"), 12.0, verdict([]), 1.0, flows, [], [], 0, 0, False, [],
        [],
    )  # fmt: skip
    path = configuration.parent / "state/reports/latest.json"
    path.parent.mkdir(parents=True)
    path.write_text(render_json.dumps(render_json.document(report)))
    path.with_name("latest.html").write_text("")
    return path


FORMATS: tuple[tuple[str, ...], ...] = ((), ("--json",), ("--format", "nagios"), ("--html-path",))


@pytest.mark.parametrize(
    ("age", "settings", "expected"),
    [
        pytest.param(13 * 86_400, {}, 3, id="13-days"),
        pytest.param(2_600, {}, 0, id="less-than-three-quarters-of-an-hour"),
        pytest.param(2_800, {}, 3, id="more"),
        pytest.param(2_800, {"interval_seconds": 3600}, 0, id="timer-of-an-hour"),
        pytest.param(11_000, {"interval_seconds": 3600}, 3, id="and-older-than-three"),
    ],
)
@pytest.mark.parametrize("given", FORMATS, ids=lambda some: some[-1] if some else "terminal")
def test_a_report_older_than_three_intervals_of_its_timer_is_unknown_in_every_format(
    configuration: Path,
    capsys: pytest.CaptureFixture[str],
    given: tuple[str, ...],
    age: float,
    settings: dict[str, Any],
    expected: int,
) -> None:
    stored(configuration, age, settings)
    code, out, _ = run(capsys, "--config", str(configuration), "show", *given)
    assert code == expected
    if given == ("--html-path",):
        return
    headline = json.loads(out)["verdict"]["text"] if given == ("--json",) else out.splitlines()[0]
    assert re.search(r"\(made (\d+ [dhms] ?){1,2} ago\)", headline), headline
    word = "unknown: the last report is too old" if expected else "whole: no finding"
    assert word in headline
    if given == ("--format", "nagios"):
        assert headline.startswith(f"MIRROR {'UNKNOWN' if expected else 'OK'} - ")


def test_a_report_that_does_not_say_when_it_was_made_is_no_report(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(configuration, 5, {})
    path.write_text(json.dumps(json.loads(path.read_text()) | {"generated_at": "once"}))
    code, _, err = run(capsys, "--config", str(configuration), "show")
    assert code == 3
    assert "mirror-report run" in err


def test_lag_and_run_leave_metrics_and_one_flow_does_not(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "metrics"
    document = json.loads(configuration.read_text()) | {"metrics_directory": str(directory)}
    configuration.write_text(json.dumps(document))
    for command in ("lag", "run"):
        run(capsys, "--config", str(configuration), command, "--flow", "orders")
    assert not directory.exists()
    for command, name in (("lag", "mirror_report.prom"), ("run", "mirror_report_parity.prom")):
        run(capsys, "--config", str(configuration), command)
        text = (directory / name).read_text()
        assert f'kafka_mirror_report_exit_status{{plane="{command}"}} 3\n' in text
        assert f'kafka_mirror_findings{{plane="{command}",severity="unknown"}}' in text
        every = {"lag": 60, "run": 900}[command]
        assert f'kafka_mirror_report_interval_seconds{{plane="{command}"}} {every}\n' in text


def test_metrics_that_cannot_be_written_are_a_finding_of_every_format(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metrics").write_text("no directory")
    document = json.loads(configuration.read_text())
    document |= {"metrics_directory": str(tmp_path / "metrics")}
    configuration.write_text(json.dumps(document))
    code, out, _ = run(capsys, "--config", str(configuration), "lag", "--json")
    found = [entry for entry in json.loads(out)["findings"] if entry["kind"] == "state"]
    assert (code, len(found)) == (3, 1)
    assert "mirror_report.prom" in found[0]["message"]
    assert found[0]["action"]


def test_spark_submit_finds_a_file_that_is_the_whole_command_line() -> None:
    path = Path(submit.__file__)
    argv = [sys.executable, str(path), "--version"]
    environment = {**os.environ, "PYTHONPATH": str(path.parents[2])}
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    assert path.suffix == ".py"
    assert done.stdout.startswith("mirror-report ")
