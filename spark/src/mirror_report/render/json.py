"""The report as a document: one JSON object, described by the packaged JSON Schema."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, TextIO, cast, get_args, get_type_hints

from mirror_report.model import Document, Report
from mirror_report.render import figures
from mirror_report.state.store import StateError

SCHEMA_VERSION = "2.1.0"


@dataclasses.dataclass(frozen=True)
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


def write(answer: Answer, out: TextIO, *, wide: bool) -> None:  # noqa: ARG001
    """Print a document, as a whole."""
    out.write(dumps(answer.document))


def document(record: Document) -> dict[str, Any]:
    """Plain data of a document; unknown is null, never 0."""
    text = json.dumps(dataclasses.asdict(record))
    # JSON has no word for what is not a number; nor is it known.
    return cast("dict[str, Any]", json.loads(text, parse_constant=lambda _: None))


def dumps(plain: Mapping[str, Any]) -> str:
    """Text of a document."""
    text = json.dumps(plain, ensure_ascii=False, indent=2)
    # JSON itself escapes the controls in texts, and writes ends of lines between them.
    shown = (figures.plain(line, json.dumps) for line in text.split("\n"))
    return "\n".join(shown) + "\n"


def loads(text: str) -> dict[str, Any]:
    """Document of a text.

    :raises StateError: damaged, or of another major version.
    """
    try:
        plain: dict[str, Any] = json.loads(text)
        version = str(plain["schema_version"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise StateError(
            "the last report is damaged", "Make a new one: mirror-report run"
        ) from None
    if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise StateError(
            f"the last report has schema {version}, this release reads {SCHEMA_VERSION}",
            "Make a new one: mirror-report run",
        )
    try:
        return cast("dict[str, Any]", _completed(plain, Report))
    except (KeyError, TypeError, AttributeError):
        raise StateError(
            "the last report is not whole", "Make a new one: mirror-report run"
        ) from None


def _completed(plain: Any, hint: Any) -> Any:
    """Data with the fields that a later minor release has added, as they are by default."""
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        return {
            field.name: _completed(plain[field.name], hints[field.name])
            if field.name in plain
            else _default(field)
            for field in dataclasses.fields(hint)
        }
    inner = [arg for arg in get_args(hint) if arg is not Ellipsis]
    if isinstance(plain, list) and len(inner) == 1:
        return [_completed(value, inner[0]) for value in plain]
    if isinstance(plain, dict) and len(inner) == 2:
        return {name: _completed(value, inner[1]) for name, value in plain.items()}
    return plain


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise KeyError(field.name)
    return field.default
