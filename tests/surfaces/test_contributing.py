"""What CONTRIBUTING.md shows of adding one more is all that it takes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import keepward

ROOT = Path(__file__).parents[2]
#: Writes a memory with the new field by every way in, and prints what each says of it, and what a gate says.
TRIED = """
import json, subprocess, sys, tempfile
from pathlib import Path
from starlette.testclient import TestClient
from keepward import Actor, Memory
from keepward.http.server import create_app
from keepward.interchange import load

folder = Path(tempfile.mkdtemp())
found = {}
with Memory.open(folder / "m.db", actor=Actor.operator("olga"), embedder=None) as memory:
    made = memory.remember("The ferry leaves at nine", mood="glad")
    found["library"] = memory.get(made.id).to_dict()["mood"]
    found["in a list"] = memory.remember_many([{"text": "Fog in the bay", "mood": "grim"}])[0].records[0].mood
    found["version"] = memory.show("1").to_dict()["steps"][0]["after"]["mood"]
    found["tool"] = memory.call_tool("recall", {"query": "when does the ferry leave"}).data["hits"][0]["mood"]
    (folder / "notes.csv").write_text("text,mood\\nSnow by noon,cold\\n")
    load(memory, folder / "notes.csv")
    found["table"] = memory.recall("snow by noon")[0].memory.mood
    found["too long"] = memory.remember("Rain at noon", mood="x" * 300).outcome
    key = "AKIA" + "Q7TZ5LWM3XJ2KD4R"
    found["secret"] = key in str(memory.remember("Wind at dusk", mood=key).to_dict())
    found["verified"] = memory.verify().ok
    token = memory.create_token("phone", rights="owner").secret
    web = TestClient(create_app(memory), headers={"Authorization": f"Bearer {token}"}, base_url="http://127.0.0.1:8321")
    said = web.post("/memory/items", json={"text": "Tide at six", "mood": "calm"}).json()
    assert "id" in said, said
    found["http"] = web.get(f"/memory/items/{said['id']}").json()["mood"]
    schemas = web.get("/openapi.json").json()["components"]["schemas"]
    found["described"] = "mood" in schemas["Record"]["properties"]
shell = [sys.executable, "-m", "keepward", "--db", str(folder / "m.db")]
subprocess.run([*shell, "remember", "Gulls at ten", "--mood", "odd"], check=True, capture_output=True)
listed = subprocess.run([*shell, "list", "--json"], check=True, capture_output=True, text=True).stdout
found["command"] = "odd" in listed
print(json.dumps(found))
"""
#: Calls the new operation by every handle.
ASKED = (
    """
import asyncio, json, tempfile
from pathlib import Path
from starlette.testclient import TestClient
from keepward import Actor, AsyncMemory, Client, Memory
from keepward.http.server import create_app

folder = Path(tempfile.mkdtemp())
found = {}
with Memory.open(folder / "m.db", actor=Actor.operator("olga"), embedder=None) as memory:
    memory.remember("The ferry leaves at nine", tags=["boat"])
    memory.remember("Fog in the bay", tags=["sea"])
    found["library"] = memory.oldest(tags=["sea"]).text
    found["awaited"] = asyncio.run(AsyncMemory(memory).oldest()).text
"""
    """
with Memory.open(folder / "m.db", actor=Actor.operator("olga"), embedder=None) as memory:
    token = memory.create_token("phone", rights="owner").secret
    web = TestClient(create_app(memory), headers={"Authorization": f"Bearer {token}"}, base_url="http://127.0.0.1:8321")
    found["http"] = web.get("/memory/oldest", params={"tags": "sea"}).json()["text"]
    found["described"] = "/memory/oldest" in web.get("/openapi.json").json()["paths"]
    found["client has it"] = Client.oldest.__doc__ == Memory.oldest.__doc__
print(json.dumps(found))
"""
)


def patched(heading: str, source: Path) -> list[str]:
    """Carry out the diff under a heading of CONTRIBUTING.md in a copy of the package; return the files it names."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    diff = re.search(rf"\*\*{heading}\*\*.*?```diff\n(.*?)```", text, re.DOTALL)
    assert diff is not None
    files = []
    for part in re.split(r"^ # (?=src/)", diff[1], flags=re.MULTILINE)[1:]:
        name, *lines = part.rstrip("\n").split("\n")
        path = source / name.removeprefix("src/")
        old, at, files = path.read_text().split("\n"), 0, [*files, name]
        for sign, line in ((each[:1], each[1:]) for each in lines if each):
            if sign == "+":
                old.insert(at, line)
                at += 1
            else:
                at = old.index(line, at) + (sign == " ")
                if sign == "-":
                    del old[at]
        path.write_text("\n".join(old))
    return files


def ran(script: str, tmp_path: Path) -> dict[str, object]:
    """Run a script with the copy of the package; return what it printed."""
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "KEEPWARD_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=False, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_operation_of_the_guide_works_on_every_handle(tmp_path: Path) -> None:
    shutil.copytree(Path(keepward.__file__).parent, tmp_path / "keepward", ignore=shutil.ignore_patterns("__pycache__"))
    assert len(patched("An operation", tmp_path)) == 2
    assert ran(ASKED, tmp_path) == {
        "library": "Fog in the bay",
        "awaited": "The ferry leaves at nine",
        "http": "Fog in the bay",
        "described": True,
        "client has it": True,
    }


@pytest.mark.slow
def test_the_field_of_the_guide_works_on_every_surface(tmp_path: Path) -> None:
    shutil.copytree(Path(keepward.__file__).parent, tmp_path / "keepward", ignore=shutil.ignore_patterns("__pycache__"))
    assert len(patched("A field of a memory", tmp_path)) == 3
    assert ran(TRIED, tmp_path) == {
        "library": "glad",
        "in a list": "grim",
        "version": "glad",
        "tool": "glad",
        "table": "cold",
        "too long": "refused",
        "secret": False,
        "verified": True,
        "http": "calm",
        "described": True,
        "command": True,
    }
