"""A command line to call in this process, with what it printed caught; a server over HTTP, and an agent's handle."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Memory
from keepward.cli.main import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The object on stdout; anything else beside it is an error."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in ("DB", "TENANT", "SCOPE", "ACTOR", "CONFIG", "COUNTER", "IDENTITY", "USER_FILE", "TRACE", "TOKEN"):
        monkeypatch.delenv(f"KEEPWARD_{name}", raising=False)
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEEPWARD_DATA", str(tmp_path))
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "none")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Ran(code=code, out=captured.out, err=captured.err)

    return call


@pytest.fixture
def home(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without settings of clients, on a machine without their programs."""
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("keepward.mcp.connect.has_program", lambda *_: False)
    return tmp_path


@pytest.fixture
def saved(run: Run) -> dict[str, Any]:
    """One archival fact of the owner's, as `remember --json` told of it."""
    return run("remember", "Ana prefers tabs for indentation", "--as", "operator", "--tag", "style", "--json").json


@pytest.fixture
def held(run: Run) -> dict[str, Any]:
    """A mission of the owner's and an agent's edit of it that waits."""
    run("remember", "Ship the app before Easter", "--tier", "core", "--key", "mission", "--as", "operator")
    return run("remember", "Ship the app before summer", "--tier", "core", "--key", "mission", "--json").json


@pytest.fixture(scope="session")
def reference() -> Any:
    """The program that writes the reference pages."""
    root = Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location("generate_reference", root / "tools" / "generate_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Any]:
    """A store behind the application, and clients of it."""
    from http_fixtures import HttpTestServer

    world = HttpTestServer(tmp_path)
    yield world
    world.memory.close()


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Memory]:
    """The owner's handle of a store for the protocol of tools."""
    from mcp_made import opened

    with opened(tmp_path) as memory:
        yield memory


@pytest.fixture
def agent(owner: Memory) -> Memory:
    return owner.as_actor(Actor.agent("claude"))
