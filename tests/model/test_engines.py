"""The core imports no engine, and names of engines stand only in their own modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from mirror_model.engines import ENGINES

from tests.model.conftest import ROOT

ROLE = ROOT / "roles/mirror_model"
PACKAGE = ROLE / "module_utils/mirror_model"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py"
}
# What the filters call: it reaches engines through their registry.
ENTRIES = (
    "advisories", "collisions", "instances", "logins", "operators", "permissions",
    "processes", "report", "site", "validate",
)  # fmt: skip
# The schema lists the keys of all engines, so a new one adds to it.
NAMED = ("engines", "schema")
# A key of the schema, and topics of Kafka's own that are called after an engine.
KAFKAS = re.compile(r"mm1_options|mm2-offset-syncs|mm2\.\*")
NAME = re.compile(rf"\b({'|'.join(ENGINES)})\b", re.IGNORECASE)


def room(module: str) -> str:
    return module.partition(".")[0]


def imports(module: str) -> Iterator[str]:
    """The package's modules that a module imports, for types alone or not."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith("mirror_model") for name in node.names)
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            for name in node.names:
                inner = ".".join(filter(None, [*base, name.name]))
                yield inner if inner in MODULES else ".".join(filter(None, base))


GRAPH = {module: set(imports(module)) for module in MODULES}


def test_every_import_is_known() -> None:
    assert {found for imported in GRAPH.values() for found in imported} <= set(MODULES)
    assert sum(map(len, GRAPH.values())) > 2 * len(MODULES)


def test_imports_point_one_way() -> None:
    assert set(TopologicalSorter(GRAPH).static_order()) == set(MODULES)


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) not in ("engines", *ENTRIES)])
def test_the_core_imports_no_engine_and_nothing_that_reaches_one(module: str) -> None:
    assert not {found for found in GRAPH[module] if room(found) in ("engines", *ENTRIES)}


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("engines.")])
def test_an_engine_imports_the_core_and_itself(module: str) -> None:
    own = ".".join(module.split(".")[:2])
    others = {found for found in GRAPH[module] if room(found) in ("engines", *ENTRIES)}
    assert all(found == own or found.startswith(f"{own}.") for found in others)


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) in ENTRIES])
def test_entry_points_reach_engines_through_the_registry(module: str) -> None:
    assert {found for found in GRAPH[module] if room(found) == "engines"} <= {"engines"}


def words(path: Path) -> Iterator[str]:
    """Identifiers and texts of a file, docstrings included; a variable may be called after one."""
    for node in ast.walk(ast.parse(path.read_text())):
        for _, value in ast.iter_fields(node):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str):
                    yield KAFKAS.sub("", item).replace("_", " ")


@pytest.mark.parametrize(
    "path",
    [*(path for module, path in MODULES.items() if room(module) not in NAMED),
     ROLE / "filter_plugins/mirror_model.py"],
    ids=lambda path: str(path.relative_to(ROLE)),
)  # fmt: skip
def test_no_engine_is_named_outside_its_own_module(path: Path) -> None:
    assert not [word for word in words(path) if NAME.search(word)]


def test_every_engine_is_registered_by_its_own_name() -> None:
    assert {name: engine.name for name, engine in ENGINES.items()} == {
        name: name for name in ENGINES
    }
