"""A plugin of pytest: the tests of Anthropic's memory tool in a folder are run against Keepward's, under the same names."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.lib.tools import _beta_builtin_memory_tool as theirs
from anyio import Path as AsyncPath

from keepward import Memory
from keepward.integrations import anthropic as ours
from keepward.integrations.files import content_of

#: By a part of a test's name, why it does not apply.
LEFT_OUT = {
    "symlink": "there are no links",
    "umask": "there are no folders on a disk",
    "too_many_lines": "a file of five megabytes is refused when it is made: sizes are policy",
}
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")


class Folder:
    """A folder on a disk that holds what a tool keeps: the tests read and write files beside the tool."""

    def __init__(self, base_path: str) -> None:
        self.base_path = Path(base_path)
        self.memory_root = self.base_path / "memories"
        self.memory_root.mkdir()
        self.tool = ours.MemoryTool(Memory.open(":memory:", scope="/t", embedder=None))

    def carry_out(self, name: str, command: Any) -> str:
        """Take in what is on the disk, carry a command out, and write what the tool has then."""
        for path in filter(Path.is_file, self.memory_root.rglob("*")):
            content = path.read_bytes().decode()
            self.tool.files.write(path.relative_to(self.memory_root).parts, content)
        try:
            return str(getattr(self.tool, name)(command))
        finally:
            shutil.rmtree(self.memory_root)
            self.memory_root.mkdir()
            for parts, record in self.tool.files.all(()).items():
                path = self.memory_root.joinpath(*parts)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content_of(record).encode())


class Sync(ours.MemoryTool):
    """What the tests make."""

    def __init__(self, base_path: str) -> None:
        self.folder = Folder(base_path)
        self.base_path, self.memory_root = self.folder.base_path, self.folder.memory_root
        super().__init__(self.folder.tool.files.memory)
        vars(self).update({name: partial(self.folder.carry_out, name) for name in COMMANDS})


class Async(ours.AsyncMemoryTool):
    """The same, awaited."""

    def __init__(self, base_path: str) -> None:
        self.folder = Folder(base_path)
        self.base_path, self.memory_root = self.folder.base_path, AsyncPath(self.folder.memory_root)
        super().__init__(self.folder.tool.files.memory)
        self.tool = SimpleNamespace(**{name: partial(self.folder.carry_out, name) for name in COMMANDS})


def pytest_configure() -> None:
    """Put ours in the place of theirs, before a test is collected."""
    theirs.BetaLocalFilesystemMemoryTool, theirs.BetaAsyncLocalFilesystemMemoryTool = Sync, Async


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply."""
    out = [each for each in items if any(part in each.name for part in LEFT_OUT)]
    items[:] = [each for each in items if each not in out]
    config.hook.pytest_deselected(items=out)
