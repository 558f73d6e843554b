"""Released mem0, LangMem and Graphiti go through the comparison of memory systems, with a model that answers by rule."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from evals.memory_systems import SYSTEMS

from support.chat_model import ChatModel, chatting

ROOT = Path(__file__).parents[2]
OTHERS = ("mem0", "langmem", "graphiti")
TALK = {
    "sample_id": "talk-1",
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ben", "dia_id": "D1:1", "text": "I teach chess."}],
        "session_2_date_time": "9:10 am on 9 May, 2023",
        "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "My boat is called Heron."}],
    },
    "qa": [{"question": "What is the boat of Ada called?", "answer": "Heron", "evidence": ["D2:1"], "category": 4}],
}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment that has the systems, as the page installs them."""
    folder = tmp_path_factory.mktemp("systems")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    packages = [word for name in OTHERS for word in shlex.split(SYSTEMS[name].install)]
    found = str(folder / "bin" / "python")
    install = [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, f"keepward[all] @ {ROOT.as_uri()}", *packages], check=True)
    return found


@pytest.mark.proof
@pytest.mark.nightly
@pytest.mark.parametrize("system", OTHERS)
def test_a_released_system_stores_finds_and_is_counted(system, python, tmp_path):
    data = tmp_path / "talks.json"
    data.write_text(json.dumps([TALK]), "utf-8")
    with chatting(ChatModel()) as model:
        options = ["--dataset", "locomo", "--data", data, "--url", model.url, "--model", "rule", "--embedder", "hashed"]
        options += ["--results", tmp_path / "results.jsonl", "--systems", system, "--json"]
        done = subprocess.run(
            [python, "-m", "evals.compare_systems", *map(str, options)],
            cwd=ROOT,
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        printed = json.loads(done.stdout)
        found = printed["systems"][system]
        assert (found["right"], found["failed"]) == (100, 0)
        # Each of the two sessions is read by the model; an answer and its judge are two calls more.
        assert found["storing"]["calls"] >= 2
        assert len(model.asked) == found["storing"]["calls"] + 2
        assert printed["versions"][system]
