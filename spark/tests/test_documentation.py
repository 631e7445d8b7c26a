"""What the report's pages derive from code is what the code says."""

import importlib.util
from pathlib import Path

from mirror_report.checks.kinds import TABLE
from mirror_report.cli import parser
from mirror_report.render.prometheus import METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/report"


def test_tables_of_findings_and_metrics_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for page, text in module.report_pages().items():
        written = page.read_text(encoding="utf-8")
        assert written == text, f"run docs/generate.py and commit {page.name}"
    for page, names in (("findings.md", TABLE), ("outputs.md", METRICS)):
        written = (PAGES / page).read_text(encoding="utf-8")
        assert all(f"| `{name}` |" in written for name in names)


def test_every_command_is_documented() -> None:
    written = (PAGES / "commands.md").read_text(encoding="utf-8")
    (commands,) = [action for action in parser()._actions if action.dest == "command"]
    assert commands.choices
    for command in commands.choices:
        assert f"| `{command}" in written, command
