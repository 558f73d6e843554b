"""Print the private functions that one other place names: `python tools/single_use.py [--list] [PART ...]`.

Such a function is often a piece of its caller, or a step that a stranger has to look up. A part is a folder of
`src/keepward`; without one, all parts are counted.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "keepward"


def names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a module mentions, but those it defines."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name


def private(tree: ast.AST) -> Iterator[str]:
    """Yield the private functions and methods of a module."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("_"):
                if not name.endswith("__"):
                    yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print each of them, with its file")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    modules = {path.relative_to(SOURCES): ast.parse(path.read_text()) for path in sorted(SOURCES.rglob("*.py"))}
    counts: Counter[str] = Counter()
    for path, tree in modules.items():
        part = path.parts[0] if len(path.parts) > 1 else "(top)"
        if options.parts and part not in options.parts:
            continue
        # A private name belongs to its module, so its users stand there.
        uses = Counter(names(tree))
        for name in private(tree):
            if uses[name] == 1:
                counts[part] += 1
                if options.list:
                    print(f"{path}  {name}")
    for part, count in counts.most_common():
        print(f"{count:5}  {part}")
    print(f"{counts.total():5}  in all")


if __name__ == "__main__":
    main()
