"""Documents and state directories without what differs from run to run.

What is left: the keys of every object, kinds, severities, states, counts, offsets, hashes and the
records' own timestamps; of rows the columns. Sentences become ``<text>``, measured numbers
``<number>``, times ``<time>``; null and empty stay what they are.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

from parity_clusters import HOUR, T0

TEXTS = {"message", "action", "text", "reason", "error", "errors", "version"}
"""Fields with wording."""
UNORDERED = {"findings", "news"}
TRENDS = {"catches_up"}
"""Known only when enough time lies between two observations, which differs from run to run."""
LATER = {
    "losses", "retention_bytes", "sized", "doubted", "certain", "foreign", "looks",
    "leader_epochs", "last_records", "replaced", "newer", "moments", "looked_at_ms", "wrong",
    "uncompared", "open_buckets", "slices", "below_records", "logs",
}  # fmt: skip
"""Keys of the state that came later than what is stored: it is read without them."""
MEASURED = re.compile(r"seconds$|rate$|bytes$|\.parquet$")
RECORDS = range(T0 - HOUR, T0 + 24 * HOUR)
TABLE = "<columns>"
LARGE = 10**11
"""Whole numbers beyond are times, in milliseconds."""
PLAIN = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}"), "<run>"),
    (re.compile(r"part-\d+-[-0-9a-f]+-c\d+"), "<part>"),
    (re.compile(r"\d{4}-\d\d-\d\d(?=\.jsonl)"), "<day>"),
)
COLUMNS = re.compile(rb'\{"type":"struct","fields":\[.*?\]\}')


def form(value: Any, key: str = "") -> Any:
    """Plain data as it is compared.

    :param key: of the object it is in.
    """
    match value:
        case dict():
            return {_plain(name): form(inner, name) for name, inner in sorted(value.items())}
        case list():
            inner = [form(each, key) for each in value]
            return sorted(inner, key=json.dumps) if key in UNORDERED else inner
        case str():
            return "<text>" if value and key in TEXTS else _plain(value)
        case bool() | None:
            return "<trend>" if key in TRENDS else value
    if MEASURED.search(key):
        return "<number>"
    return "<time>" if abs(value) > LARGE and value not in RECORDS else value


def of_state(directory: Path, ids: dict[str, str]) -> dict[str, Any]:
    """A state directory: relative path -> form of what the file holds."""
    found: dict[str, Any] = {}
    for path in kept(directory):
        name = _plain(str(path.relative_to(directory)))
        if path.suffix == ".parquet":
            found[name] = columns(path.read_bytes())
        elif path.parent.name == "reports":
            found[name] = "<file>"
        elif path.suffix == ".jsonl":
            lines = labelled(path.read_text(), ids).splitlines()
            found[name] = found.get(name, []) + [form(_read_on(json.loads(line))) for line in lines]
        else:
            found[name] = form(_read_on(json.loads(labelled(path.read_text(), ids))))
    return found


def _read_on(value: Any) -> Any:
    """What a state holds without :data:`LATER`."""
    match value:
        case dict():
            return {name: _read_on(inner) for name, inner in value.items() if name not in LATER}
        case list():
            return [_read_on(inner) for inner in value]
    return value


def of_bundle(path: Path, ids: dict[str, str]) -> dict[str, Any]:
    """A digest bundle: name in the archive -> form."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as packed:
        return {
            _plain(name): columns(packed.read(name))
            if name.endswith(".parquet")
            else form(json.loads(labelled(packed.read(name).decode(), ids)))
            for name in sorted(packed.namelist())
        }


def of_metrics(directory: Path) -> list[str]:
    """Names of all metrics, each with the names of its labels."""
    lines = [line for path in directory.glob("*.prom") for line in path.read_text().splitlines()]
    return sorted(
        {
            line[: line.find("{")] + "{" + ",".join(re.findall(r'[{,](\w+)="', line)) + "}"
            if "{" in line
            else line.partition(" ")[0]
            for line in lines
            if line and not line.startswith("#")
        }
    )


def columns(parquet: bytes) -> list[str]:
    """Columns of a Parquet file that Spark wrote, with their types."""
    schema = COLUMNS.search(parquet)
    assert schema is not None
    return [f"{field['name']} {field['type']}" for field in json.loads(schema[0])["fields"]]


def kept(directory: Path) -> list[Path]:
    """Files of a state directory that some run reads, in a fixed order."""
    return [
        path for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name[0] not in "._"
        and path.name != "lock" and path.suffix != ".html"
    ]  # fmt: skip


def labelled(text: str, ids: dict[str, str]) -> str:
    """A text with labels for ids."""
    for known, label in ids.items():
        text = text.replace(known, label)
    return text


def written(value: Any) -> str:
    """Text of plain data: objects of equal keys as tables, a line per row."""
    return rows(_packed(value))


def rows(value: Any, width: int = 120) -> str:
    """JSON in which the entries of a list have a line each, and what is short none of its own."""

    def lines(value: Any, depth: int, *, entry: bool = False) -> str:
        short = json.dumps(value, sort_keys=True, ensure_ascii=False)
        if entry or depth + len(short) <= width or not isinstance(value, dict | list) or not value:
            return short
        pad = "\n" + " " * (depth + 1)
        if isinstance(value, list):
            inner = (lines(each, depth + 1, entry=True) for each in value)
            return "[" + pad + f",{pad}".join(inner) + "]"
        inner = (f"{json.dumps(name)}: {lines(value[name], depth + 1)}" for name in sorted(value))
        return "{" + pad + f",{pad}".join(inner) + "}"

    return lines(value, 0) + "\n"


def read(text: str) -> Any:
    """Plain data of :func:`written`."""
    return _unpacked(json.loads(text))


def _packed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _packed(inner) for name, inner in value.items()}
    if not isinstance(value, list):
        return value
    keys = [sorted(row) if isinstance(row, dict) else None for row in value]
    if len(value) > 1 and keys[0] and keys.count(keys[0]) == len(keys):
        return {TABLE: keys[0], "rows": [[_packed(row[key]) for key in keys[0]] for row in value]}
    return [_packed(inner) for inner in value]


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if TABLE in value:
        rows = [map(_unpacked, row) for row in value["rows"]]
        return [dict(zip(value[TABLE], row, strict=True)) for row in rows]
    return {name: _unpacked(inner) for name, inner in value.items()}


def _plain(text: str) -> str:
    for pattern, label in PLAIN:
        text = pattern.sub(label, text)
    return text
