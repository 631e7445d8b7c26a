"""What docs/report.md derives from code is what the code says."""

import importlib.util
from pathlib import Path

from mirror_report.checks.verdict import TABLE
from mirror_report.cli import parser
from mirror_report.render.prometheus import METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/report.md"


def test_tables_of_findings_and_metrics_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = PAGE.read_text(encoding="utf-8")
    assert written == module.report_page(), "run docs/generate.py and commit docs/report.md"
    assert all(f"| `{name}` |" in written for name in (*TABLE, *METRICS))


def test_every_command_is_documented() -> None:
    written = PAGE.read_text(encoding="utf-8")
    (rooms,) = [one for one in parser()._actions if one.dest == "command"]
    assert rooms.choices
    for command in rooms.choices:
        assert f"| `{command}" in written, command
