"""The pytest plug-in: each test of a file such as ``agent.memory.yaml`` is a test of pytest.

The store is that of ``--keepward-db``, of ``keepward_db`` in the settings of pytest, of ``KEEPWARD_DB``, or your own.
It is opened as its owner. A file's tests run together, on one state.

Late imports: pytest starts as fast as without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from keepward.core.memory_test import MemoryTestResult, MemoryTestRun

_ENDS = (".memory.yaml", ".memory.yml", ".memory.toml")
_DB = "The store that memory tests read; default: KEEPWARD_DB, or your own."


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("keepward").addoption("--keepward-db", metavar="PATH", help=_DB)
    parser.addini("keepward_db", _DB)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(_ENDS):
        return None
    return MemoryFile.from_parent(parent, path=file_path)


class MemoryFile(pytest.File):
    """A file of memory tests."""

    _run: MemoryTestRun | None = None

    def collect(self) -> Iterator[pytest.Item]:
        from keepward.errors import InvalidInput
        from keepward.memory_tests import read_tests

        try:
            self.tests = read_tests(self.path)
        except InvalidInput as exc:
            raise self.CollectError(str(exc)) from None
        for number, (test, line) in enumerate(self.tests):
            earlier = sum(other.title == test.title for other, _ in self.tests[:number])
            name = f"{test.title} ({earlier + 1})" if earlier else test.title
            yield MemoryItem.from_parent(self, name=name, number=number, line=line)

    def results(self) -> MemoryTestRun:
        """Return the results of all tests of the file."""
        if self._run is None:
            from keepward import Actor, Memory

            db = self.config.getoption("--keepward-db") or self.config.getini("keepward_db")
            db = db or os.environ.get("KEEPWARD_DB") or None
            with Memory.open(db, actor=Actor.operator(), create=False, maintenance=False) as memory:
                self._run = memory.run_tests([test for test, _ in self.tests], label=self.path.name)
        return self._run


class _Failed(Exception):
    """A memory test that failed."""


class MemoryItem(pytest.Item):
    """One memory test."""

    def __init__(self, *, number: int, line: int, **common: Any) -> None:
        super().__init__(**common)
        self._number, self._line = number, line

    def runtest(self) -> None:
        from keepward.memory_tests import report

        file: Any = self.parent
        result: MemoryTestResult = file.results()[self._number]
        if not result.passed:
            raise _Failed(report(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from keepward.errors import KeepwardError

        if isinstance(excinfo.value, _Failed | KeepwardError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self._line - 1 if self._line else None, self.name
