"""Runs of the report that die where it hurts, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from mirror_report.parity.spark.row_storage import RowStorage
from mirror_report.state.store import Store

MOMENTS = ("rows", "before", "after")


class KilledError(BaseException):
    """Ends the run at this point."""


@contextlib.contextmanager
def dying(moment: str, left: int = 0) -> Iterator[None]:
    """Let a run die, if it gets that far.

    :param moment: when ``rows`` were written, right ``before`` or ``after`` a manifest is renamed,
        or before its ``report`` is written.
    :param left: how often it passes that moment before.
    """
    write, commit, write_report = RowStorage.write, Store.commit, Store.write_report

    def reached(here: str) -> None:
        nonlocal left
        if here == moment:
            left -= 1
            if left < 0:
                raise KilledError

    def written(storage: RowStorage, *given: Any) -> str:
        name = write(storage, *given)
        reached("rows")
        return name

    def committed(store: Store, *given: Any) -> None:
        reached("before")
        commit(store, *given)
        reached("after")

    def reported(store: Store, *given: Any) -> Any:
        reached("report")
        return write_report(store, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowStorage, "write", written)
        patch.setattr(Store, "commit", committed)
        patch.setattr(Store, "write_report", reported)
        yield
