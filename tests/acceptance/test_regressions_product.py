"""How products of this kind fail before anybody has stored a thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record, quarantined_item, refused

import keepward
from keepward import Actor, Memory, ModelUnavailable, Policy, Trust

SOURCE = Path(keepward.__file__).parent
#: Run first in a child process: any attempt at a connection or a look-up ends it.
BLOCKED = """
import socket, sys
def refuse(*_, **__):
    sys.exit("it asked the network")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
"""


def bare(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script without a single environment variable, without a home, and without a network."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKED + script],
        cwd=folder,
        env={},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.promise("T1", "T24")
def test_without_network_or_environment_it_remembers_recalls_and_compiles(tmp_path: Path) -> None:
    done = bare(
        f"""
from pathlib import Path
from keepward import Memory
with Memory.open("memory.db", config_dir=Path({str(tmp_path / "config")!r})) as mem:
    out = mem.remember("Ana prefers tabs", source="user_message", evidence=["chat:42"])
    print(out.outcome, mem.recall("indentation: tabs or spaces?")[0].memory.text, mem.context("tabs").receipt.id != "")
""",
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "committed Ana prefers tabs True\n", "")


@pytest.mark.promise("T1")
def test_the_command_line_works_without_network_or_environment(tmp_path: Path) -> None:
    script = f"""
import os
os.environ["KEEPWARD_HOME"] = {str(tmp_path / "home")!r}
os.environ["KEEPWARD_DATA"] = {str(tmp_path)!r}
from keepward.cli.main import main
for words in (["init"], ["remember", "Ana prefers tabs"], ["recall", "tabs"], ["context", "tabs"], ["verify"]):
    assert main([*words, "--json"]) == 0, words
"""
    done = bare(script, tmp_path)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert (answers[2]["hits"][0]["memory"]["text"], answers[4]["ok"]) == ("Ana prefers tabs", True)


@pytest.mark.promise("T2")
def test_missing_model_is_one_line_and_not_fatal(
    opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.embedding.minilm import MiniLmEmbedder

    monkeypatch.setattr(MiniLmEmbedder, "available", staticmethod(lambda: False))
    with opened("plain", embedder="auto") as mem:
        committed_record(mem.remember("Ana prefers tabs", tier="archival"))
        assert [hit.memory.text for hit in mem.recall("tabs")] == ["Ana prefers tabs"]
        (line,) = [each for each in mem.doctor() if each.name == "embedder"]
        assert "minilm" not in line.detail
        assert "words" in line.detail


@pytest.mark.promise("T2")
def test_no_embedder_at_all_is_said_in_every_answer(opened: Callable[..., Memory]) -> None:
    with opened("plain", embedder=None) as mem:
        committed_record(mem.remember("Ana prefers tabs", tier="archival"))
        found = mem.recall("tabs")
        assert (found[0].memory.text, found.used, len(found.notes)) == ("Ana prefers tabs", ("text",), 1)
        assert mem.context("tabs").notes == found.notes


@pytest.mark.promise("T2")
def test_missing_named_model_says_how_to_install_it(
    opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KEEPWARD_MODELS", str(tmp_path))
    with pytest.raises(ModelUnavailable, match="install"):
        opened("named", embedder="minilm")
    assert not (tmp_path / "named.db").exists()


@pytest.mark.promise("F15")
def test_no_loadable_extension_is_asked_for() -> None:
    asking = [path.name for path in SOURCE.rglob("*.py") if "load_extension" in path.read_text("utf-8")]
    asking += [path.name for path in SOURCE.rglob("*.sql") if "load_extension" in path.read_text("utf-8")]
    assert asking == []


@pytest.mark.promise("F15")
def test_runs_on_sqlite_without_full_text_search_or_extensions(tmp_path: Path) -> None:
    script = f"""
import sqlite3
from pathlib import Path
real = sqlite3.connect
class Plain:
    def enable_load_extension(self, *_):
        raise AttributeError("not built in")
    load_extension = enable_load_extension
    def execute(self, sql, *given):
        assert "fts5" not in sql.lower() and "vec0" not in sql.lower(), sql
        return super().execute(sql, *given)
def connect(*given, factory=sqlite3.Connection, **named):
    return real(*given, factory=type("Restrained", (Plain, factory), {{}}), **named)
sqlite3.connect = connect
from keepward import Memory
with Memory.open("memory.db", embedder="hashed", config_dir=Path({str(tmp_path / "config")!r})) as mem:
    mem.remember("Ana prefers tabs")
    print(mem.recall("tabs")[0].memory.text, mem.verify().ok)
"""
    done = bare(script, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Ana prefers tabs True\n", "")


@pytest.mark.promise("F15")
def test_the_default_configuration_is_the_protected_one(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", embedder=None, config_dir=tmp_path / "config") as mem:
        assert (mem.actor.rights.value, mem.scope, mem.tenant) == ("agent", "/", "default")
        quarantined_item(mem.remember("Sail to Oslo", tier="core", key="mission"))
        assert "identity_is_immune" in refused(mem.remember("I am Orion", tier="core", key="persona"))
        web = committed_record(mem.remember("Refunds go by wire", tier="archival", source="web"))
        assert [hit.memory.id for hit in mem.recall("refunds", purpose="act")] == []
        status = mem.status()
        assert (status["sealed"], status["anchor"]) == (True, "kept")
    assert web.trust is Trust.WEB
    assert (tmp_path / "m.db").stat().st_mode & 0o077 == 0
    for each in (tmp_path / "config").rglob("*"):
        assert each.stat().st_mode & 0o077 == 0, each


@pytest.mark.promise("Z50", "A90")
def test_memory_that_is_off_leaves_the_host_unaffected(opened: Callable[..., Memory], tmp_path: Path) -> None:
    with opened("off") as mem:
        committed_record(mem.remember("Ana prefers tabs", tier="archival"))
    before = (tmp_path / "off.db").read_bytes()
    with opened("off", policy=Policy(enabled=False), actor=Actor.operator()) as mem:
        assert mem.remember("The ferry is blue").outcome == "refused"
        assert (list(mem.recall("tabs")), mem.context("tabs").text, mem.snapshot().text) == ([], "", "")
    assert (tmp_path / "off.db").read_bytes() == before


@pytest.mark.promise("T24")
def test_the_default_path_asks_no_model_that_counts_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("it asked a server")

    monkeypatch.setattr(httpx2, "stream", refuse)
    monkeypatch.setattr(httpx2.Client, "send", refuse)
    assert os.environ.get("KEEPWARD_EMBEDDER_KEY") is None
    with Memory.open(tmp_path / "m.db", embedder="hashed", config_dir=tmp_path / "config") as mem:
        committed_record(mem.remember("Ana prefers tabs", tier="archival"))
        assert mem.context("tabs").text
