"""Environment files are read as systemd reads them."""

import pytest

from mirror_report.checks.sysconfig import read_environment


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('MM_INCLUDE="orders"', "orders"),
        (r'MM_INCLUDE="a\\.b|c"', r"a\.b|c"),
        (r'MM_INCLUDE="\$x\"y\`"', '$x"y`'),
        ("MM_INCLUDE='a b'", "a b"),
        ("MM_INCLUDE=orders", "orders"),
    ],
)
def test_value_is_unquoted(line: str, value: str) -> None:
    assert read_environment(f"# comment\n{line}\n")["MM_INCLUDE"] == value


def test_comments_and_other_lines_are_skipped() -> None:
    assert read_environment('#A="x"\n;B=y\n\nnothing\nC="z"\n') == {"C": "z"}
