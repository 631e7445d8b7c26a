"""A public name of a class or of a type stands for one thing in the whole package."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import mirror_report

PACKAGE = Path(mirror_report.__file__).parent


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


def test_no_name_stands_for_two_things() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in types(ast.parse(path.read_text())):
            found[name].append(str(path.relative_to(PACKAGE)))
    assert len(found) > 100
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_a_type_is_known_by_its_name() -> None:
    source = (
        "class View: pass\nclass _Own: pass\nPlace = tuple[str, int]\nKNOWN = 3\nvalue = 1\n"
        "Row: TypeAlias = dict\nLIMIT: int = 2"
    )
    assert list(types(ast.parse(source))) == ["View", "Place", "Row"]
