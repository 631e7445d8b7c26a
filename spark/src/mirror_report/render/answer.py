"""What a command answers, before it has a format."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a command answers.

    :param kind: the record its document is of, see :mod:`mirror_report.model.document`.
    :param document: plain data; unknown is null, never 0.
    :param page: where the page of a report lies.
    """

    kind: type
    document: Mapping[str, Any]
    exit_code: int = 0
    page: str | None = None
