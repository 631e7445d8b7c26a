"""Keep the bytecode of modules that Python imports from archives.

Ansible sends every task as an archive of sources, and Python compiles again what it imports from
one. The system's Python of lab hosts loads this at its start.
"""

import _imp
import contextlib
import marshal
import os
import zipimport
from io import FileIO
from types import CodeType

CACHE = "/var/cache/zip-bytecode"
_compile = zipimport._compile_source  # type: ignore[attr-defined]  # no public name


def _compile_once(path: str, source: bytes) -> CodeType:
    name = f"{CACHE}/{_imp.source_hash(0, source).hex()}"
    with contextlib.suppress(OSError, EOFError, ValueError), FileIO(name) as file:
        # Read whole: marshal asks a file for a few bytes at a time.
        kept: CodeType = marshal.loads(file.readall())  # noqa: S302  # root alone may write there
        return kept
    code: CodeType = _compile(path, source)
    fresh = f"{name}.{os.getpid()}"
    with contextlib.suppress(OSError):
        with FileIO(fresh, "w") as file:
            marshal.dump(code, file)
        os.rename(fresh, name)  # noqa: PTH104  # pathlib would cost each start
    return code


zipimport._compile_source = _compile_once  # type: ignore[attr-defined]
