"""An import inside a function or block says why it is not at the top of its module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import keepward

SOURCE = Path(keepward.__file__).parent


def _late(node: ast.AST, *, inside: bool = False) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if inside and isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        deep = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Try | ast.With)
        yield from _late(child, inside=inside or deep)


def test_a_late_import_has_a_reason() -> None:
    unexplained = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        tree, lines = ast.parse(text), text.splitlines()
        if "Late imports:" in (ast.get_docstring(tree) or ""):
            continue
        explained = -1
        for node in sorted(_late(tree), key=lambda node: node.lineno):
            above = lines[node.lineno - 2].strip()
            has_comment = any("#" in line for line in lines[node.lineno - 1 : node.end_lineno]) or above.startswith("#")
            if has_comment or node.lineno - 1 == explained:
                explained = node.end_lineno or node.lineno
            else:
                unexplained.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert unexplained == []
