"""Metrics: the names that are promised, unknown left out, a file replaced as a whole."""

import io
import json
import math
import re
from pathlib import Path

import pytest
from sample_reports import NOW, empty, parity, partition_lag, report, whole

from mirror_report import metrics
from mirror_report.config import Settings
from mirror_report.config.load import load_settings
from mirror_report.model import Finding, LagDocument, Report
from mirror_report.render import json as render_json
from mirror_report.render import prometheus
from mirror_report.state.store import LockedError, StateError

RUN = {"at": 1_800_000_000.5, "duration": 1.5, "interval": 900.0}


def lag_document(base: Report) -> LagDocument:
    return LagDocument(base.schema_version, base.verdict, base.flows, base.lag, base.findings)


def of_lag(base: Report, *, partitions: bool = False) -> str:
    plain = render_json.document(lag_document(base))
    return prometheus.text(prometheus.lag_samples(plain, RUN, "1.2", partitions=partitions))


def of_run(base: Report) -> str:
    return prometheus.text(prometheus.run_samples(render_json.document(base), RUN, "1.2"))


def read(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read the text format as a collector does; every line is understood or it fails."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    described: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in described, "a name is described once"
            described.add(name)
            continue
        if line.startswith("# TYPE "):
            assert line.endswith(" gauge")
            continue
        match = re.fullmatch(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)', line)
        assert match, line
        labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or "")
        key = (match[1], frozenset((name, _plain(value)) for name, value in labels))
        assert key not in found, f"twice: {line}"
        assert match[1] in described
        found[key] = float(match[3].replace("+Inf", "inf"))
    return found


def _plain(value: str) -> str:
    return json.loads(f'"{value}"') if "\\" in value else value


def value(text: str, name: str, **labels: str) -> float | None:
    """The one value of a metric that has at least these labels."""
    some = [
        number
        for (found, its), number in read(text).items()
        if found == name and labels.items() <= dict(its).items()
    ]
    assert len(some) <= 1
    return some[0] if some else None


@pytest.mark.parametrize("base", [report(), whole(), empty()])
def test_everything_written_is_read_back(base: Report) -> None:
    both = {**read(of_lag(base)), **read(of_run(base))}
    assert len(both) == len(read(of_lag(base))) + len(read(of_run(base))), "files share no series"
    assert not [number for number in both.values() if math.isnan(number)]


def test_names_and_labels_are_the_documented_ones() -> None:
    seen: dict[str, set[str]] = {}
    topics = [*report().parity, parity("table", scanned_at_ms=NOW)]
    whole_run = of_run(report(backlog_bytes=7, verdict=whole().verdict, parity=topics))
    for name, labels in (*read(of_lag(report())), *read(whole_run)):
        seen.setdefault(name, set()).update(label for label, _ in labels)
    promised = {
        name: {label for label in labels.split(", ") if label}
        for name, (labels, _) in prometheus.METRICS.items()
    }
    assert seen == promised


def test_unknown_is_absent_and_never_is_infinite() -> None:
    text = of_lag(report())
    assert value(text, "kafka_mirror_lag_records", topic="hidden") is None
    assert value(text, "kafka_mirror_state", topic="hidden", state="UNKNOWN") == 1
    assert value(text, "kafka_mirror_state", topic="hidden", state="OK") == 0
    assert value(text, "kafka_mirror_eta_seconds", topic="payments") == math.inf
    assert value(text, "kafka_mirror_heartbeat_age_seconds", flow="orders") is None
    assert value(text, "kafka_mirror_heartbeat_age_seconds", flow="clicks") == 1.5
    assert "nan" not in text.lower()


def test_not_a_number_is_left_out() -> None:
    row = partition_lag("t", 0, lag_seconds=math.nan, lag_records=7)
    text = of_lag(whole(lag=[row]))
    assert value(text, "kafka_mirror_lag_seconds") is None
    assert value(text, "kafka_mirror_lag_records", topic="t") == 7


def test_partitions_take_the_place_of_topics() -> None:
    text = of_lag(report(), partitions=True)
    assert value(text, "kafka_mirror_lag_records", topic="payments", partition="0") == 1200
    assert value(text, "kafka_mirror_lag_records", topic="payments", partition="1") == 0
    names = [labels for name, labels in read(text) if name == "kafka_mirror_lag_records"]
    assert all("partition" in dict(labels) for labels in names)


def test_parity_topics_and_groups_are_reported() -> None:
    text = of_run(report())
    payments = {"flow": "orders", "source": "east", "target": "west", "topic": "payments"}
    records = "kafka_mirror_parity_records"
    assert value(text, records, **payments, **{"class": "duplicate"}) == 1
    assert value(text, records, topic="dark", **{"class": "missing"}) is None
    through = "kafka_mirror_parity_verified_through_timestamp_seconds"
    assert value(text, through, **payments) == NOW / 1000
    assert value(text, "kafka_mirror_retention_breach_seconds", **payments) == -90
    assert value(text, "kafka_mirror_topic_config_differences", **payments, kind="risk") == 2
    assert value(text, "kafka_mirror_topic_partitions", **payments, cluster="target") == 4
    assert value(text, "kafka_mirror_topic_partitions", topic="__internal") is None
    assert value(text, "kafka_mirror_parity_coverage_ratio", flow="clicks") is None
    assert value(text, "kafka_mirror_parity_coverage_ratio", flow="orders") == 0.9474
    assert value(text, "kafka_mirror_group_readiness_ratio", group="group-skip") == 0.5
    assert value(text, "kafka_mirror_group_skip_records", group="dark") is None


def test_each_compacted_topic_has_the_time_of_its_scan() -> None:
    scanned = parity("table", scanned_at_ms=NOW)
    text = of_run(report(parity=[scanned, parity("plain")]))
    name = "kafka_mirror_parity_scanned_timestamp_seconds"
    assert value(text, name, topic="table") == NOW / 1000
    assert value(text, name, topic="plain") is None


def test_names_of_anything_are_escaped() -> None:
    odd = 'a"b\\c\nd'
    text = of_lag(whole(lag=[partition_lag(odd, 0, lag_records=3)]))
    assert value(text, "kafka_mirror_lag_records", topic=r'a"b\\c\nd') == 3


def test_names_that_look_alike_when_escaped_stay_two_rows() -> None:
    lag = [partition_lag(name, 0, lag_records=3) for name in ("a\x1b", r"a\x1b")]
    rows = [
        line for line in of_lag(whole(lag=lag)).splitlines() if "kafka_mirror_lag_records{" in line
    ]
    assert len(set(rows)) == 2


def test_long_names_are_bounded_and_stay_two_rows() -> None:
    long = [partition_lag("g" * 5000 + end, 0, lag_records=3) for end in "ab"]
    rows = [
        line for line in of_lag(whole(lag=long)).splitlines() if "kafka_mirror_lag_records{" in line
    ]
    assert len(set(rows)) == 2
    assert max(len(row) for row in rows) < 500


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    document = {"version": 1, "clusters": {}, "flows": [], "metrics_directory": str(tmp_path)}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(document)))
    return load_settings("-")


def written(settings: Settings, document: LagDocument, flow: str | None = None) -> list[Finding]:
    """Findings that the document has more than it had before."""
    with metrics.recorded(settings, "lag", flow) as recorded:
        after = recorded.write(document)
    return [finding for finding in after.findings if finding not in document.findings]


def test_file_is_for_everybody_and_a_vanished_topic_vanishes(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "mirror_report.prom"
    assert written(settings, lag_document(report())) == []
    assert path.stat().st_mode & 0o777 == 0o644
    assert value(path.read_text(), "kafka_mirror_lag_records", topic="payments") == 1200
    written(settings, lag_document(whole()))
    assert 'topic="payments"' not in path.read_text()
    assert [file.name for file in tmp_path.iterdir()] == ["mirror_report.prom"]


def test_one_flow_does_not_speak_for_all(settings: Settings, tmp_path: Path) -> None:
    assert written(settings, lag_document(whole()), flow="orders") == []
    assert list(tmp_path.iterdir()) == []


def test_failure_is_reported_and_the_last_success_remembered(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "mirror_report.prom"
    written(settings, lag_document(whole()))
    success = value(path.read_text(), prometheus.SUCCESS)
    assert success is not None
    for error in (StateError("full disk"), RuntimeError("what happened")):
        with pytest.raises(type(error)), metrics.recorded(settings, "lag", None):
            raise error
        assert value(path.read_text(), "kafka_mirror_report_exit_status", plane="lag") == 3
        assert value(path.read_text(), prometheus.SUCCESS) == success
        assert "kafka_mirror_lag_records" not in path.read_text()


def test_run_that_finds_another_at_work_leaves_its_metrics_alone(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "mirror_report.prom"
    written(settings, lag_document(whole()))
    before = path.read_text()
    with pytest.raises(LockedError), metrics.recorded(settings, "lag", None):
        raise LockedError("in use")
    assert path.read_text() == before


def test_directory_that_cannot_be_written_is_a_finding(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "mirror_report.prom").mkdir()
    (found,) = written(settings, lag_document(whole()))
    assert (found.kind, found.severity) == ("state", "unknown")
    assert "mirror_report.prom" in found.message
