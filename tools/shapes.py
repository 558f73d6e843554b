"""Print the numbers that a reader of the code feels: `python tools/shapes.py [--list NUMBER] [PART ...]`.

`--list` prints what one number counts, for example `--list helpers`. A part is a folder of `src/keepward`; lines,
helpers and late imports are counted in the named parts only. `calls` runs one `remember` on a store in memory.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import grimp

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "keepward"
#: The shapes of what a caller asks for, of a receipt, and of an answer, which are no shapes of a stored memory.
NO_MEMORIES = (
    "core/change.py",
    "core/compiled.py",
    "core/browse.py",
    "core/copies.py",
    "mcp/",
    "http/",
    "interchange/",
)
#: A class that wraps a stored memory to rank or compile it is a shape of it too, whichever of these it wraps.
WRAPPERS = ("ports/", "retrieval/", "context/", "storage/")
WRAPPED = ("Record", "MemoryFields")
#: A class with so many fields of another, and half of its own among them, is a shape of the same thing.
SHARED_FIELDS = 4


class Code:
    """The modules of the package, by path."""

    def __init__(self, parts: list[str]) -> None:
        self.all = {path.relative_to(SOURCES).as_posix(): path.read_text("utf-8") for path in SOURCES.rglob("*.py")}
        self.trees = {path: ast.parse(text) for path, text in sorted(self.all.items())}
        self.parts = parts

    def chosen(self) -> Iterator[tuple[str, ast.Module]]:
        """Yield the modules of the chosen parts."""
        for path, tree in self.trees.items():
            if not self.parts or any(path == part or path.startswith(f"{part}/") for part in self.parts):
                yield path, tree

    def classes(self) -> Iterator[tuple[str, ast.ClassDef]]:
        """Yield each class of values with the path of its module; those that name arguments of a call are left out."""
        arguments = {"TypedDict"}
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    if arguments & {*map(ast.unparse, node.bases)}:
                        arguments.add(node.name)
                    else:
                        yield path, node


def lines(code: Code) -> list[str]:
    """Return each file with its lines, comments and blank lines included."""
    return [f"{len(code.all[path].splitlines()):6} {path}" for path, _ in code.chosen()]


def helpers(code: Code) -> list[str]:
    """Return the private functions that one other place of their module calls; one with a decorator is no helper."""
    found = []
    for path, tree in code.chosen():
        uses, called = Counter(_names(tree)), {name for node in ast.walk(tree) for name in _called(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_private = node.name.startswith("_") and not node.name.endswith("__")
                if is_private and not node.decorator_list and uses[node.name] == 1 and node.name in called:
                    found.append(f"{path}:{node.lineno} {node.name}, {(node.end_lineno or 0) - node.lineno + 1} lines")
    return found


def late_imports(code: Code) -> list[str]:
    """Return the imports of the package inside functions and blocks."""
    return [
        f"{path}:{node.lineno} {node.module}"
        for path, tree in code.chosen()
        for node in _late(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "keepward"
    ]


def circles(_: Code) -> list[str]:
    """Return each set of modules that import one another when they run, late imports included."""
    graph = grimp.build_graph("keepward", exclude_type_checking_imports=True)
    below = {module: _reachable(graph, module) for module in graph.modules}
    rings = {frozenset({other for other in reached if module in below[other]}) for module, reached in below.items()}
    return [", ".join(sorted(ring)) for ring in rings if ring]


def filters(code: Code) -> list[str]:
    """Return the classes that say which memories are meant."""
    return _alike(code, "core/query.py", "Filter", NO_MEMORIES)


def memories(code: Code) -> list[str]:
    """Return the classes that hold the fields of a stored memory."""
    wrapping = [
        f"{path} {node.name}: wraps {ast.unparse(each.annotation)}"
        for path, node in code.classes()
        for each in node.body
        if path.startswith(WRAPPERS) and isinstance(each, ast.AnnAssign) and ast.unparse(each.annotation) in WRAPPED
    ]
    return _alike(code, "core/memory.py", "Record", (*NO_MEMORIES, "core/query.py", "core/proposal.py")) + wrapping


def namesakes(code: Code) -> list[str]:
    """Return the public names that several classes have."""
    places: dict[str, list[str]] = {}
    for path, node in code.classes():
        if not node.name.startswith("_"):
            places.setdefault(node.name, []).append(path)
    return [f"{name}: {', '.join(paths)}" for name, paths in places.items() if len(paths) > 1]


def shapes(code: Code) -> list[str]:
    """Return the classes that spell their own JSON instead of having that of their fields."""
    return [
        f"{path}:{node.lineno} {name}.{each.name}"
        for path, node in code.classes()
        for name in [node.name]
        for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name in ("to_dict", "from_dict", "as_json", "to_json")
    ]


def calls(_: Code) -> list[str]:
    """Return the files of the package that the second `remember` of a handle enters."""
    from keepward import Memory

    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(f"{SOURCES}/"):
            entered.add(Path(path).relative_to(SOURCES).as_posix())

    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember("Ana likes tea.", tier="archival")
        sys.setprofile(note)
        memory.remember("Ben likes coffee.", tier="archival")
        sys.setprofile(None)
    return sorted(entered)


NUMBERS: dict[str, tuple[str, Callable[[Code], list[str]]]] = {
    "filters": ("shapes of a filter", filters),
    "memories": ("shapes of a stored memory", memories),
    "shapes": ("classes that spell their own JSON", shapes),
    "calls": ("files that one `remember` enters", calls),
    "helpers": ("private functions that one place calls", helpers),
    "late": ("imports of the package inside functions and blocks", late_imports),
    "circles": ("circles of modules", circles),
    "namesakes": ("names of several classes", namesakes),
    "files": ("files of the package", lines),
}


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name


def _called(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            yield name


def _late(node: ast.AST, *, inside: bool = False) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if inside and isinstance(child, ast.ImportFrom):
            yield child
        deep = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Try | ast.With)
        yield from _late(child, inside=inside or deep)


def _reachable(graph: grimp.ImportGraph, module: str) -> set[str]:
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        new = graph.find_modules_directly_imported_by(waiting.pop()) - reached
        reached |= new
        waiting += new
    return reached


def _alike(code: Code, module: str, name: str, apart: tuple[str, ...]) -> list[str]:
    """Return the classes with many fields of a class, outside the modules whose paths begin with one of ``apart``."""
    fields = {(path, node.name): _fields(node) for path, node in code.classes()}
    known = fields[module, name]
    return [
        f"{path} {other}: {len(own & known)} of {len(own)} fields"
        for (path, other), own in fields.items()
        if not path.startswith(apart) and len(own & known) >= max(SHARED_FIELDS, len(own) / 2)
    ]


def _fields(node: ast.ClassDef) -> set[str]:
    return {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def main() -> None:
    """Print the table, or what one number counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", choices=NUMBERS, help="print what one number counts")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    code = Code(options.parts)
    if options.list:
        print(*NUMBERS[options.list][1](code), sep="\n")
        return
    for name, (what, count) in NUMBERS.items():
        print(f"{len(count(code)):7,}  {what} ({name})")
    print(f"{sum(len(code.all[path].splitlines()) for path, _ in code.chosen()):7,}  lines of the package")


if __name__ == "__main__":
    main()
