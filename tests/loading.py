"""Import of programs and plug-ins of the repository that lie on no search path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def load(path: str, name: str) -> ModuleType:
    """Import a file of the repository under a name, once.

    :param path: relative to the repository.
    """
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec
        assert spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


certificates = load("lab/certificates.py", "lab_certificates")

MODULE_UTILS = [str(path) for path in ROOT.glob("roles/*/module_utils")]
"""What modules share; on a host, Ansible puts it into ansible.module_utils."""
