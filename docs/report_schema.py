"""JSON Schema of the documents, derived from the records of :mod:`mirror_report.model`.

``generate.py`` writes it to where the package has it; a test fails if that file differs.
"""

import dataclasses
import inspect
import json
import re
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from mirror_report.model import (
    CheckDocument,
    CompareDocument,
    GroupsDocument,
    LagDocument,
    ProofDocument,
    Report,
)

PACKAGED = Path(__file__).resolve().parents[1] / "spark/src/mirror_report/render/report.schema.json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
# Command -> what it prints with ``--json``.
DOCUMENTS: Mapping[str, type] = {
    "run": Report,
    "show": Report,
    "lag": LagDocument,
    "check": CheckDocument,
    "groups": GroupsDocument,
    "prove": ProofDocument,
    "compare": CompareDocument,
}
SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}

# Besides timestamps; every other number is 0 or more.
MAY_BE_NEGATIVE = frozenset(("breach_seconds", "produce_rate", "mirror_rate", "strip"))

# Field, or record and field -> what its type does not say.
NARROWER: Mapping[str, Mapping[str, Any]] = {
    "coverage": {"maximum": 1},
    "exit_code": {"maximum": 3},
    "generated_at": {"format": "date-time"},
    "valid_until": {"format": "date-time"},
    "key_hash": {"pattern": "^[0-9a-f]*$"},
    "PartitionLag.partition": {"minimum": -1},
    "readiness": {"maximum": 1},
    "record_hash": {"pattern": "^[0-9a-f]*$"},
}


def derive(version: str) -> dict[str, Any]:
    """The schema: a report at the root, every document and record below ``$defs``.

    :param version: semantic version of the documents.
    """
    major = version.partition(".")[0]
    defs: dict[str, Any] = {}
    for document in DOCUMENTS.values():
        _record(document, defs)
        defs[document.__name__]["properties"]["schema_version"]["pattern"] = rf"^{major}\.\d+\.\d+$"
    return {
        "$schema": DRAFT,
        "$id": f"mirror-report/{major}",
        "title": "Documents of mirror-report",
        "description": (
            "At the root the report of one run. "
            + "; ".join(
                f"{command} --json: #/$defs/{one.__name__}" for command, one in DOCUMENTS.items()
            )
            + ". Unknown is null, never 0. Within a major version fields are only added."
        ),
        "$ref": "#/$defs/Report",
        "$defs": dict(sorted(defs.items())),
    }


def text(version: str) -> str:
    """The schema as it is packaged."""
    return json.dumps(derive(version), indent=1, ensure_ascii=False) + "\n"


def packaged() -> dict[str, Any]:
    """The schema that the package has."""
    schema: dict[str, Any] = json.loads(PACKAGED.read_text(encoding="utf-8"))
    return schema


def _record(kind: type, defs: dict[str, Any]) -> dict[str, Any]:
    """Reference to a dataclass, described in ``defs`` if it is not yet."""
    name = kind.__name__
    if name not in defs:
        defs[name] = {}
        summary, meanings = _documented(kind)
        hints = get_type_hints(kind)
        properties = {
            field.name: ({"description": meanings[field.name]} if field.name in meanings else {})
            | _of(hints[field.name], name, field.name, defs)
            for field in dataclasses.fields(kind)
        }
        defs[name] = {
            "description": summary,
            "type": "object",
            "required": sorted(properties),
            "properties": properties,
        }
    return {"$ref": f"#/$defs/{name}"}


def _documented(kind: type) -> tuple[str, dict[str, str]]:
    """First sentence of a record's docstring, and what its ``:param`` lines say."""
    whole = (inspect.getdoc(kind) or "").replace("``", "")
    summary, *rest = re.split(r"^:param (\w+):", whole, flags=re.MULTILINE)
    plain = [" ".join(part.split()) for part in rest]
    return summary.partition("\n")[0], dict(zip(plain[::2], plain[1::2], strict=True))


def _of(hint: Any, owner: str, name: str, defs: dict[str, Any]) -> dict[str, Any]:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        schemas = [_of(part, owner, name, defs) for part in inner if part is not type(None)]
        return _or_null(schemas[0]) if type(None) in inner else schemas[0]
    if dataclasses.is_dataclass(hint):
        return _record(hint, defs)  # type: ignore[arg-type]
    if origin is Literal or hint in SCALARS:
        return {"enum": list(inner)} if inner else _scalar(SCALARS[hint], owner, name)
    items = [_of(part, owner, name, defs) for part in inner if part is not Ellipsis]
    if issubclass(origin or object, Mapping):
        return {"type": "object", "additionalProperties": items[1]}
    if origin is tuple and Ellipsis not in inner:
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    return {"type": "array", "items": items[0]}


def _scalar(kind: str, owner: str, name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": kind}
    if kind in ("integer", "number") and not name.endswith("_ms") and name not in MAY_BE_NEGATIVE:
        schema["minimum"] = 0
    return {**schema, **NARROWER.get(name, {}), **NARROWER.get(f"{owner}.{name}", {})}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    if "type" in schema:
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
