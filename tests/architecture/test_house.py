"""Rules that a reviewer would repeat."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import keepward
from keepward import Memory
from keepward.settings import config_folder

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "keepward"
MODULES = sorted(SOURCE.rglob("*.py"))
#: Words of other systems that have another name here; see docs/reference/glossary.md.
FOREIGN = ("soul", "canon", "bank", "familiar", "mutation", "manager", "helper", "utils")


def test_a_module_opens_with_what_it_is_for() -> None:
    texts = {path: path.read_text() for path in MODULES}
    assert [path for path, text in texts.items() if text and not text.startswith(('"""', 'r"""'))] == []


def test_a_name_is_not_another_systems_word() -> None:
    named = [
        (path, name)
        for path in MODULES
        for name in re.findall(r"^ *(?:def|class) (\w+)", path.read_text(), re.MULTILINE)
        if not {*name.lower().split("_")}.isdisjoint(FOREIGN)
    ]
    assert named == []


def test_no_two_test_files_share_a_name() -> None:
    # Folders of tests are no packages: collected together, the second of a name is an error.
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts]
    names = Counter(path.name for path in files)
    assert [name for name, count in names.items() if count > 1] == []


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
    wrong = re.compile(r"(?<!>)/(?:work|home/\w+|root|Users/\w+)/")
    found = [
        name
        for name in tracked
        if (ROOT / name).suffix in {".py", ".md", ".toml", ".sql", ".txt", ""}
        and (ROOT / name).is_file()
        and name != "tests/architecture/test_house.py"
        and wrong.search((ROOT / name).read_text(errors="replace"))
    ]
    assert found == []


def test_a_test_writes_no_key_into_the_home_folder(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "store.db", embedder=None) as memory:
        memory.remember("The ferry leaves at six")
    folder = config_folder()
    assert folder.is_relative_to(tmp_path_factory.getbasetemp())
    assert any((folder / "stores").iterdir())
