"""The library, the command line, the server and two writers by the rules of Windows, without what Unix alone has.

`tests/support/windows_rules` makes the rules. It is no proof for Windows, which only a run there is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RULES = Path(__file__).parents[1] / "support" / "windows_rules"
WRITERS = Path(__file__).parents[1] / "unit" / "stores" / "writers.py"
#: Every text file in the code of Keepward needs an encoding: the default of Windows is not UTF-8.
NEEDS_ENCODING = "import warnings; warnings.filterwarnings('error', category=EncodingWarning, module='keepward')\n"


@pytest.fixture
def environ(tmp_path):
    own = {name: value for name, value in os.environ.items() if not name.startswith(("KEEPWARD_", "XDG_"))}
    rules = {"PYTHONPATH": str(RULES), "WINDOWS_RULES_ROOT": str(tmp_path), "PYTHONWARNDEFAULTENCODING": "1"}
    keepward = {"KEEPWARD_HOME": str(tmp_path / "home"), "KEEPWARD_DATA": str(tmp_path), "KEEPWARD_EMBEDDER": "none"}
    # The code page of a console, which has no emoji.
    return own | rules | keepward | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}


@pytest.fixture
def python(environ, tmp_path):
    def run(program: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", NEEDS_ENCODING + program],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode("cp1252")
        return done.stdout.decode("cp1252")

    return run


@pytest.fixture
def cli(environ, tmp_path):
    def run(*args: str) -> str:
        command = [sys.executable, "-m", "keepward", *args]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, (args, done.stdout.decode("cp1252"), done.stderr.decode("cp1252"))
        return done.stdout.decode("cp1252")

    return run


def test_rules_refuse_what_windows_refuses(python, tmp_path):
    program = """
import os
from pathlib import Path

def tried(call, *args):
    try:
        call(*args)
    except OSError as fault:
        return type(fault).__name__
    return "allowed"

Path("a").write_bytes(b"1")
Path("b").write_bytes(b"2")
with open("b", "rb"):
    print(tried(os.replace, "a", "b"), tried(os.remove, "b"), tried(os.rename, "a", "b"))
print(tried(os.replace, "a", "b"), tried(os.mkdir, "what?"), tried(os.open, ".", os.O_RDONLY))
"""
    assert python(program).split() == [
        *["PermissionError"] * 2,
        "FileExistsError",
        "allowed",
        "OSError",
        "PermissionError",
    ]


def test_client_needs_no_module_of_unix(python):
    # A client has no store, and imports nothing that locks one.
    said = python("import sys\nfrom keepward import Client\nprint('keepward.storage.sqlite' in sys.modules)\n")
    assert said.split() == ["False"]


LIFE = """
from pathlib import Path
from keepward import Actor, Memory
from keepward.interchange import load, write_notes, write_vault

owner = Actor.operator()
with Memory.open("m.db", actor=owner) as mem:
    first = mem.remember("The deploy target is db-7. \\N{ROCKET}")
    mem.remember("CON is a name, and so is NUL: what? <a> | b. ", key="con: what?")
    blob = mem.put_blob(b"line\\nline\\r\\n\\x1a end")
    assert "db-7" in mem.recall("Where is the deploy target?")[0].memory.text
    assert mem.read_blob(blob.ref) == b"line\\nline\\r\\n\\x1a end"
    # Another handle has the file open.
    with Memory.open("m.db", actor=owner) as other:
        other.remember("Two handles write.")
        assert mem.verify().ok
        mem.backup("b.db")
        assert write_notes(mem, "notes") == 3
        write_vault(mem, "vault.jsonl")
        assert b"\\r" not in Path("vault.jsonl").read_bytes()
        mem.erase(mem.plan_erase(first.id).digest, first.id)
        assert first.id not in [each.id for each in other.list_memories()]
    assert mem.verify().ok
Memory.restore_backup("b.db", "r.db", actor=owner)
with Memory.open("r.db", actor=owner) as restored:
    # The list of erasures holds for the backup as well.
    print([each.text[:3] for each in restored.list_memories(sort="created", ascending=True)])
with Memory.open("n.db", actor=owner) as new:
    # The erased memory does not come back.
    load(new, "vault.jsonl")
    print(len(new.list_memories()))
"""


def test_life_of_a_store(python):
    assert python(LIFE).splitlines() == ["['CON', 'Two']", "2"]


@pytest.mark.slow
def test_command_line_with_the_code_page_of_a_console(cli, tmp_path):
    cli("init")
    cli("remember", "The deploy target is db-7 \N{ROCKET}, says Zo\xeb.")
    recalled = cli("recall", "Where do we deploy?")
    assert "db-7" in recalled
    assert "Zo\xeb" in recalled
    assert "remembered" in cli("log")
    cli("verify")
    cli("backup", str(tmp_path / "b.db"))
    cli("export", str(tmp_path / "vault.jsonl"))


ASK = """
import time
from pathlib import Path
from keepward import Client, StoreUnavailable
(token,) = Path("home/stores").glob("*/owner.token")
with Client({url!r}, token=token.read_text("ascii").strip()) as mem:
    # The first process prints the address before a worker has opened the store.
    for _ in range(600):
        try:
            mem.remember("The deploy target is db-7.")
            break
        except StoreUnavailable:
            time.sleep(0.1)
    print(mem.recall("Where is the deploy target?")[0].memory.text)
"""


@pytest.mark.slow
def test_server_answers_and_stops(environ, tmp_path, python):
    command = [sys.executable, "-m", "keepward", "serve", "--port", "0", "--workers", "2"]
    server = subprocess.Popen(
        command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        printed = ""
        for line in iter(server.stdout.readline, ""):
            printed += line
            if line.startswith("stop"):
                break
        found = re.search(r"http://127\.0\.0\.1:\d+", printed)
        assert found is not None, printed
        assert python(ASK.format(url=found[0])).strip() == "The deploy target is db-7."
    finally:
        server.terminate()
        _, log = server.communicate(timeout=60)
    assert "Traceback" not in log


@pytest.mark.slow
def test_writers_of_two_processes_take_turns(environ, tmp_path):
    writers = [
        subprocess.Popen(
            [sys.executable, str(WRITERS), str(tmp_path / "m.db"), str(tmp_path / "home"), name, "30"],
            env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    said = [each.communicate(timeout=120) for each in writers]
    assert [line for _, err in said for line in err.splitlines() if "another process is writing" not in line] == []
    assert sorted(int(line) for out, _ in said for line in out.split()) == list(range(1, 61))
