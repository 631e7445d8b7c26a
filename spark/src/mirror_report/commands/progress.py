"""What a command says on standard error while it works."""

import sys
import time
import traceback
from collections.abc import Callable

from mirror_report.model import sentence

Progress = Callable[[str], None]


def show_progress(text: str) -> None:
    """Say what is being done, with the time if a person may be watching."""
    stamp = time.strftime("%H:%M:%S ") if sys.stderr.isatty() else ""
    print(f"{stamp}{text}", file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Say what went wrong."""
    print(f"mirror-report: {text}", file=sys.stderr, flush=True)


def show_traceback(error: BaseException) -> None:
    """Print where an error happened."""
    try:
        traceback.print_exception(error, file=sys.stderr)
    except Exception:  # see sentence()
        say(sentence(error))
