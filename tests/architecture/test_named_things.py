"""A name in double backquotes, in a comment or docstring, is a name that exists."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import keepward

SOURCE = Path(keepward.__file__).parent
WORD = re.compile(r"[A-Za-z_]\w*")
#: Strings that may be names: commands, options, columns, settings, headers.
NAMING = re.compile(r"[\w.:/$-]{1,60}(?: [\w.:/$-]{1,60}){0,4}")
#: Names of other programs, and texts that are examples of what a detector reads.
FOREIGN = frozenset(
    [
        "Host",
        "Sec",
        "Fetch",
        "Site",
        "Expect",
        "FilteredRE2",
        "IBAN",
        "PERSON",
        "MemoryManager",
        "framework",
        "rwc",
        "FULL",
        "synchronous",
        "rand",
        "bf5",
        "u0000",
        "SQLITE_BUSY_SNAPSHOT",
        "read_graph",
        "im_start",
        "API_KEY",
        "CLAY_KEY",
        "cache_key",
        "token_count",
        "some_password",
        "wrongPassword1",
        "a1B2",
        "c3D4",
        "c0met",
        "design",
        "glacier",
        "orbit",
        "saffron",
        "f0a77c2",
        "claude1",
        "claude2",
        "like_this",
        "likeThis",
        "Linz",
        "tabs",
    ]
)


def _quoted(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and docstrings of a file with their first lines."""
    text = path.read_text()
    if path.suffix == ".sql":
        yield from ((n, line) for n, line in enumerate(text.splitlines(), 1) if line.startswith("--"))
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node, clean=False)
            if doc:
                yield node.body[0].lineno, doc
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _defined() -> tuple[set[str], dict[Path, set[str]], dict[str, set[str]]]:
    """Return the names of the package, the variables of each module, and the names in each module."""
    shared, local, members = {*dir(builtins), *keyword.kwlist, "keepward"}, {}, {}
    for path in SOURCE.rglob("*.py"):
        tree, own = ast.parse(path.read_text()), local.setdefault(path, set())
        shared |= {*path.relative_to(SOURCE).with_suffix("").parts}
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    shared.add(name)
                case ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.Attribute(attr=name):
                    shared.add(name)
                case ast.alias(name=name, asname=other):
                    shared |= {*name.split("."), other or name}
                case ast.ImportFrom(module=str(name)):
                    shared |= {*name.split(".")}
                case ast.Name(id=name):
                    own.add(name)
                case ast.Constant(value=str(text)) if NAMING.fullmatch(text):
                    shared |= {*WORD.findall(text)}
            names = [getattr(node, field, None) for field in ("name", "attr", "arg", "id")]
            members.setdefault(path.stem, set()).update(name for name in names if isinstance(name, str))
            if isinstance(node, ast.Module | ast.ClassDef):
                for part in node.body:
                    for target in getattr(part, "targets", [getattr(part, "target", None)]):
                        shared |= {
                            each.id for each in ast.walk(target or part) if isinstance(each, ast.Name) and target
                        }
    for path in (*SOURCE.rglob("*.sql"), *SOURCE.rglob("*.toml")):
        shared |= {*WORD.findall(re.sub(r"(?m)^(--|#).*", "", path.read_text()))}
    return shared, local, members


def test_a_quoted_name_exists() -> None:
    shared, local, members = _defined()
    unknown = []
    for path in (*SOURCE.rglob("*.py"), *SOURCE.rglob("*.sql")):
        for first, text in _quoted(path):
            for match in re.finditer(r"``([^`]+)``", text):
                names = {name for name in WORD.findall(match[1]) if name not in shared | local.get(path, set())}
                # What a module of ours is said to have, it defines.
                for owner, name in re.findall(r"\b(\w+)\.([A-Za-z_]\w*)\b(?!\.py)", match[1]):
                    if owner in members and name not in members[owner] and name not in {"py", "sql", "toml", "json"}:
                        names.add(f"{owner}.{name}")
                line = first + text[: match.start()].count("\n")
                if names - FOREIGN:
                    unknown.append(f"{path.relative_to(SOURCE)}:{line} ``{match[1]}``: {sorted(names - FOREIGN)}")
    assert unknown == []
