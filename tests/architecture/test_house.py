"""Rules that a reviewer would repeat."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keepward

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "keepward"
MODULES = sorted(SOURCE.rglob("*.py"))
#: Words of other systems that have another name here; see docs/reference/glossary.md.
FOREIGN = ("soul", "canon", "bank", "familiar", "mutation", "manager", "helper", "utils")


@pytest.fixture(scope="module")
def parsed() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in MODULES}


def test_a_module_opens_with_what_it_is_for(parsed: dict[Path, ast.Module]) -> None:
    assert [path for path, tree in parsed.items() if tree.body and not ast.get_docstring(tree)] == []


def test_a_name_is_not_another_systems_word(parsed: dict[Path, ast.Module]) -> None:
    named = [
        (path, node.name)
        for path, tree in parsed.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not {*node.name.lower().split("_")}.isdisjoint(FOREIGN)
    ]
    assert named == []


def test_every_exported_name_can_be_imported() -> None:
    assert [name for name in keepward.__all__ if not hasattr(keepward, name)] == []


def test_every_exported_name_has_a_docstring() -> None:
    classes = [getattr(keepward, name) for name in keepward.__all__ if name[0].isupper() and not name.isupper()]
    assert [each for each in classes if isinstance(each, type) and not each.__doc__] == []


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = (
        "import sys, keepward;"
        "print([name for name in ('numpy', 'pydantic', 'rich', 'click', 'sqlite3', 're2', 'msgspec') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_file_names_a_path_of_a_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    wrong = re.compile(r"/(?:work|home/\w+|root|Users/\w+)/")
    found = [
        name
        for name in tracked
        if (ROOT / name).suffix in {".py", ".md", ".toml", ".sql", ".txt", ""}
        and (ROOT / name).is_file()
        and name != "tests/architecture/test_house.py"
        and wrong.search((ROOT / name).read_text(errors="replace"))
    ]
    assert found == []
