"""A public name stands for one thing in the whole package; each name says what it holds."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import mirror_report

PACKAGE = Path(mirror_report.__file__).parent
ROLES = Path(__file__).parents[2] / "roles"
TREES = {
    str(path.relative_to(PACKAGE)): ast.parse(path.read_text())
    for path in sorted(PACKAGE.rglob("*.py"))
}
# Rooms that deal with one subject have a file of its name each: its records in model/, what is read
# of it in kafka/, its findings in checks/, and the layers of parity.
SUBJECTS = frozenset({
    "baseline", "bundle", "certificates", "classify", "cluster", "compare", "content", "digests",
    "errors", "findings", "flow", "flows", "groups", "hours", "lag", "losses", "observe",
    "offset_syncs", "permissions", "positions", "processes", "prove", "records", "retention",
    "scans", "slices", "state", "topics", "units",
})  # fmt: skip
# They say that there is a value, not which.
VAGUE = frozenset({"found", "known", "some", "wanted", "seen", "there"})


def types(tree: ast.Module) -> Iterator[str]:
    """Public classes and type aliases of a module; constants are in capitals."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            names = [statement.name]
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        else:
            continue
        yield from (name for name in names if name[0].isupper() and not name.isupper())


def functions(tree: ast.Module) -> Iterator[str]:
    """Public functions of a module."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
            yield statement.name


def imported(tree: ast.Module) -> Iterator[str]:
    """What a module takes out of the package, with the module it is from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mirror_report"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def bindings(tree: ast.Module) -> Iterator[str]:
    """Names of variables, parameters, functions and fields that a module binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def file_name(path: str) -> str:
    """The name by which a file is imported: a package has that of its directory."""
    place = Path(path)
    return place.parent.name if place.stem == "__init__" else place.stem


def repeated(names: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: where for name, where in names.items() if len(where) > 1}


def test_no_type_stands_for_two_things() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in TREES.items():
        for name in types(tree):
            found[name].append(path)
    assert len(found) > 100
    assert repeated(found) == {}


def test_no_function_that_is_read_without_its_module_stands_for_two_things() -> None:
    files = (path.removesuffix(".py").removesuffix("/__init__") for path in TREES)
    modules = {f"mirror_report.{file.replace('/', '.')}" for file in files}
    taken = {name for tree in TREES.values() for name in imported(tree)}
    bare = {name.rpartition(".")[2] for name in taken - modules}
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in TREES.items():
        for name in functions(tree):
            if name in bare:
                found[name].append(path)
    assert len(found) > 100
    assert repeated(found) == {}


def test_no_function_that_is_read_with_its_module_stands_for_two_things() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in TREES.items():
        for name in functions(tree):
            found[f"{file_name(path)}.{name}"].append(path)
    assert len(found) > 500
    assert repeated(found) == {}


def test_no_file_stands_for_two_things() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in TREES:
        # A command's file is named as what is typed.
        if not path.startswith("commands/"):
            found[file_name(path)].append(path)
    assert len(found) > 100
    assert set(repeated(found)) == SUBJECTS


def test_no_binding_has_a_name_that_does_not_say_what_it_holds() -> None:
    trees = TREES | {str(path): ast.parse(path.read_text()) for path in ROLES.rglob("*.py")}
    assert len(trees) > len(TREES) + 50
    vague = {path: VAGUE & set(bindings(tree)) for path, tree in trees.items()}
    assert {path: names for path, names in vague.items() if names} == {}


def test_a_type_is_known_by_its_name() -> None:
    source = (
        "class View: pass\nclass _Own: pass\nPlace = tuple[str, int]\nKNOWN = 3\nvalue = 1\n"
        "Row: TypeAlias = dict\nLIMIT: int = 2"
    )
    assert list(types(ast.parse(source))) == ["View", "Place", "Row"]


def test_functions_and_bindings_are_told_from_what_is_only_used() -> None:
    source = (
        "from mirror_report.model import sentence\nfrom os import path\n"
        "def read(found): return [known for known in seen]\ndef _own(): there = some\n"
        "class Watch:\n    wanted: int\n    def look(self): pass"
    )
    tree = ast.parse(source)
    assert list(functions(tree)) == ["read"]
    assert list(imported(tree)) == ["mirror_report.model.sentence"]
    assert VAGUE & set(bindings(tree)) == {"found", "known", "there", "wanted"}
