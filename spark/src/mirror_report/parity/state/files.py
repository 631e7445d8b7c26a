"""The manifest and the rows it names, on disk: loaded, checked, saved. No Spark.

Nothing is kept before it is whole: rows are written to a directory of their own, then one manifest
is renamed into place, then what it no longer names is removed.
"""

import contextlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mirror_report.model import ReportError
from mirror_report.parity import ParityError
from mirror_report.parity.state.manifest import Manifest
from mirror_report.state.store import Store, last_report_name, start_again, unwritable

MANIFEST = "parity"


def load(store: Store, bucket_ms: int) -> Manifest:
    """The manifest of the last run; an empty one if there was none.

    :raises ReportError: it is damaged or of another release; the message says what to do.
    """
    return Manifest.load(store.load(MANIFEST), bucket_ms, store.directory)


def leave_refused(store: Store, bucket_ms: int) -> None:
    """Leave a manifest behind that this release cannot use; the next run starts again.

    :raises StateError: it cannot be moved.
    """
    try:
        load(store, bucket_ms)
    except ReportError:
        path = store.directory / f"{MANIFEST}.json"
        try:
            path.replace(path.with_name(f"{path.name}.former"))
        except OSError as error:
            raise unwritable(path, error) from error


def last_report(store: Store, flow: str) -> Mapping[str, Any]:
    """The last report on a flow; empty: there is none, or it cannot be read."""
    documents: list[dict[str, Any]] = [{}]
    for name in (last_report_name("json", None), last_report_name("json", flow)):
        with contextlib.suppress(OSError, ValueError):
            document = json.loads(store.report(name))
            if isinstance(document, dict) and isinstance(document.get("generated_at"), str):
                documents.append(document)
    return max(documents, key=lambda document: str(document.get("generated_at", "")))


def check(store: Store, manifest: Manifest) -> None:
    """Make sure that all rows that count are there.

    :raises ParityError: a file is not as it was written.
    """
    for name in sorted(manifest.rows()):
        for file, size in manifest.files.get(name, {}).items():
            path = store.parity_directory / name / file
            if not path.is_file() or path.stat().st_size != size:
                raise ParityError(
                    f"{path} is damaged or gone", f"Start again: {start_again(store.directory)}"
                )


def save(store: Store, manifest: Manifest) -> Manifest:
    """Put the manifest in place, then remove rows it no longer names.

    :returns: the manifest with the files of its rows.
    :raises StateError: it cannot be written.
    """
    directory = store.parity_directory
    needed = manifest.rows()
    written = {
        name: {file.name: file.stat().st_size for file in (directory / name).glob("*.parquet")}
        for name in needed - manifest.files.keys()
    }
    manifest = replace(manifest, files={**manifest.files, **written})
    store.commit(MANIFEST, manifest.dump())
    for run in directory.iterdir() if directory.is_dir() else ():
        kept = [rows for rows in run.iterdir() if f"{run.name}/{rows.name}" in needed]
        for rows in run.iterdir():
            if rows not in kept:
                shutil.rmtree(rows, ignore_errors=True)
        if not kept:
            shutil.rmtree(run, ignore_errors=True)
    return manifest
