"""Names of engines stand in their module alone; other code asks for facts."""

import ast
from pathlib import Path

import mirror_report

PACKAGE = Path(mirror_report.__file__).parent
NAMES = ("mm1", "mm2", "MM1", "MM2", "MirrorMaker 1", "MirrorMaker 2")
OF_ALL_ENGINES = ("checks/kinds.py", "render/prometheus.py")
"""Tables of what findings and metrics mean, for readers of no flow in particular."""


def docstrings(tree: ast.AST) -> set[int]:
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def named(tree: ast.AST) -> list[str]:
    """Engines' names in a module's code: as text, and as what they are imported by."""
    quiet = docstrings(tree)
    words = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet
    ]
    words += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    words += [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    words += [node.name for node in ast.walk(tree) if isinstance(node, ast.alias)]
    return [word for word in words if any(name in word for name in NAMES)]


def test_names_of_engines_stand_in_their_module_alone() -> None:
    found = {
        str(path.relative_to(PACKAGE)): words
        for path in sorted(PACKAGE.rglob("*.py"))
        if (words := named(ast.parse(path.read_text())))
    }
    assert set(found) - set(OF_ALL_ENGINES) == {"engines.py"}, found


def test_a_name_in_code_is_found() -> None:
    source = (
        '"""MirrorMaker 1."""\nif flow.engine == "mm1" or flow.engine is engines.MM2:\n    pass'
    )
    assert sorted(named(ast.parse(source))) == ["MM2", "mm1"]
