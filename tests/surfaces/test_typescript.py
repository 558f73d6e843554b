"""The TypeScript client has every operation and error of the library; `make typescript` makes it so."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from keepward import errors

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "clients" / "typescript" / "src"


@pytest.fixture
def typescript() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    import typescript

    yield typescript
    sys.path.remove(str(ROOT / "tools"))


def test_its_operations_and_types_are_those_of_the_api(typescript):
    # The first lines have the hash of the schemas that its types were made of.
    assert (SOURCES / "operations.ts").read_text("utf-8") == typescript.operations(), "run `make typescript`"


def test_its_errors_are_those_of_the_library():
    theirs = dict(
        re.findall(r"^export class (\w+) extends (\w+) ", (SOURCES / "errors.ts").read_text("utf-8"), re.MULTILINE)
    )
    ours = {
        each.__name__: each.__base__.__name__
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.KeepwardError)
    }
    assert theirs == ours | {"KeepwardError": "Error"}


def test_each_error_has_the_code_of_the_library():
    codes = re.findall(r"^  (\w+): (\w+),$", (SOURCES / "errors.ts").read_text("utf-8"), re.MULTILINE)
    assert {name: code for code, name in codes} == {
        each.__name__: each.code
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.KeepwardError)
    }
