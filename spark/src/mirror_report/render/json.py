"""The report as a document: one JSON object, described by the packaged JSON Schema."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from mirror_report.model import CheckDocument, LagDocument, Report, ReportError

SCHEMA_VERSION = "2.0.0"


class DocumentError(ReportError):
    """A stored report cannot be read."""


def document(one: Report | LagDocument | CheckDocument) -> dict[str, Any]:
    """Plain data of a document; unknown is null, never 0."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(one)))
    return plain


def dumps(plain: Mapping[str, Any]) -> str:
    """Text of a document."""
    return json.dumps(plain, ensure_ascii=False, indent=2) + "\n"


def loads(text: str) -> dict[str, Any]:
    """Document of a text.

    :raises DocumentError: damaged, or of another major version.
    """
    try:
        plain: dict[str, Any] = json.loads(text)
        version = str(plain["schema_version"])
    except (ValueError, TypeError, KeyError):
        raise DocumentError(
            "the last report is damaged. Make a new one: mirror-report run"
        ) from None
    if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise DocumentError(
            f"the last report has schema {version}, this release reads {SCHEMA_VERSION}. "
            "Make a new one: mirror-report run"
        )
    return plain


def schema() -> dict[str, Any]:
    """The packaged JSON Schema."""
    text = resources.files(__package__).joinpath("report.schema.json").read_text("utf-8")
    plain: dict[str, Any] = json.loads(text)
    return plain
