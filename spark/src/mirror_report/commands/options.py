"""Options that several commands share, and the values they take."""

from argparse import ArgumentParser, ArgumentTypeError, _MutuallyExclusiveGroup

FORMATS = ("terminal", "json", "nagios")


def flow(parser: ArgumentParser, text: str = "look only at this flow") -> None:
    """Add ``--flow``."""
    parser.add_argument("--flow", metavar="NAME", help=text)


def formats(parser: ArgumentParser) -> _MutuallyExclusiveGroup:
    """Add the formats of an answer; returns the group of options that exclude each other."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--format", choices=FORMATS, default="terminal",
        help="text, one JSON object, or one line with performance data (default terminal)",
    )  # fmt: skip
    json(group, "short for --format json")
    return group


def json(parser: ArgumentParser | _MutuallyExclusiveGroup, text: str) -> None:
    """Add ``--json``."""
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", default="terminal", help=text
    )


def wide(parser: ArgumentParser) -> None:
    """Add ``--wide``."""
    parser.add_argument("--wide", action="store_true", help="every row, and partition by partition")


def positive(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ArgumentTypeError("a number above 0 is expected")
    return value


def whole(text: str) -> int:
    """A whole number above 0."""
    value = int(text)
    if value < 1:
        raise ArgumentTypeError("a number above 0 is expected")
    return value
