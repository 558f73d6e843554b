"""`tools/release.py`, which the workflow of a release runs: no tag is released that the files do not name."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from keepward import __version__

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def release() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    import release

    yield release
    sys.path.remove(str(ROOT / "tools"))


@pytest.fixture
def root(tmp_path, release):
    """Copy the files that a release reads, with a date in the changelog."""
    for name in {name for name, _ in release.versions(ROOT)} | {"CHANGELOG.md"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    changes = tmp_path / "CHANGELOG.md"
    heading = re.compile(rf"^## {re.escape(__version__)} \(.*\)$", re.MULTILINE)
    changes.write_text(heading.sub(f"## {__version__} (2026-12-01)", changes.read_text("utf-8"), count=1), "utf-8")
    return tmp_path


def test_every_file_names_the_version_of_the_package(release):
    assert {version for _, version in release.versions(ROOT)} == {__version__}


def test_a_tag_that_all_files_name_is_released(release, root):
    assert release.main(["check", f"v{__version__}"], root) == 0


def test_another_tag_is_not(release, root, capsys):
    assert release.main(["check", "v9.9.9"], root) == 1
    assert "src/keepward/__init__.py names" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["server.json", "CITATION.cff", "deploy/kubernetes.yaml"])
def test_a_file_that_was_forgotten_is_named(release, root, capsys, name):
    file = root / name
    file.write_text(file.read_text("utf-8").replace(__version__, "0.0.1", 1), "utf-8")
    assert release.main(["check", f"v{__version__}"], root) == 1
    assert f"{name} names 0.0.1" in capsys.readouterr().err


def test_a_version_without_a_date_is_not_released(release, root, capsys):
    changes = root / "CHANGELOG.md"
    changes.write_text(changes.read_text("utf-8").replace("(2026-12-01)", "(unreleased)"), "utf-8")
    assert release.main(["check", f"v{__version__}"], root) == 1
    assert "CHANGELOG.md needs the heading" in capsys.readouterr().err


def test_notes_are_the_section_of_the_version(release, root, capsys):
    changes = root / "CHANGELOG.md"
    changes.write_text("# Changes\n\n## 0.3.0 (2026-12-09)\n\n* New\n\n## 0.2.0 (2026-12-01)\n\n* Old\n", "utf-8")
    assert release.main(["notes", "v0.3.0"], root) == 0
    assert capsys.readouterr().out == "* New\n"
    assert release.main(["notes", "v0.2.0"], root) == 0
    assert capsys.readouterr().out == "* Old\n"
    assert release.main(["notes", "v0.1.0"], root) == 1
