"""What works where a package has no wheel: words have the same stems, and recall by words says that it is no more."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Makes the imports fail that are named in the first argument, as if the packages were not installed.
BLOCK = """
import importlib.util, sys
blocked = sys.argv.pop(1).split()
for each in blocked:
    sys.modules[each] = None
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in blocked else found(name, *more)
"""


def _without(packages, program, *args, cwd=None):
    command = [sys.executable, "-c", BLOCK + program, packages, *args]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=cwd, check=False)


def test_stems_without_pystemmer_are_the_same():
    program = """
from keepward.retrieval.tokenizer import _stemmer
print(type(_stemmer()).__module__, " ".join(map(_stemmer().stemWord, sys.stdin.read().split())))
"""
    pages = [path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")]
    words = sorted({word for page in pages for word in re.findall("[a-z]+", page.lower())})
    assert len(words) > 3_000
    command = [sys.executable, "-c", BLOCK + program]
    own, other = (
        subprocess.run([*command, blocked], input=" ".join(words), capture_output=True, text=True, check=True).stdout
        for blocked in ("", "Stemmer")
    )
    assert own.split()[0] == "Stemmer"
    assert other.split()[0] == "snowballstemmer.english_stemmer"
    assert own.split()[1:] == other.split()[1:]


LIFE = """
from keepward.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("missing", ["onnxruntime", pytest.param("tokenizers", marks=pytest.mark.slow)])
def test_recall_without_the_runtime_is_by_words_and_says_so(tmp_path, monkeypatch, missing):
    monkeypatch.setenv("KEEPWARD_DB", str(tmp_path / "m.db"))
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path))
    monkeypatch.delenv("KEEPWARD_EMBEDDER", raising=False)
    assert _without(missing, LIFE, "remember", "The deploy target is db-7.").returncode == 0
    recalled = _without(missing, LIFE, "recall", "deploy target")
    assert "db-7" in recalled.stdout
    assert f"the package {missing} is not installed" in recalled.stderr
    checked = _without(missing, LIFE, "doctor").stdout
    assert f"needs the package {missing}" in " ".join(checked.split())
