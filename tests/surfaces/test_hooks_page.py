"""The page on hooks shows what a session begins with: its commands are run, and print what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keepward import Actor, Memory
from support.samples import blocks

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "hooks.md").read_text()
#: A day, or a time of day.
WHEN = r"\d{4}-\d\d-\d\d(?: [A-Z]\w\w)?|\d\d:\d\d:\d\d"


@pytest.mark.slow
@pytest.mark.promise("F15")
def test_session_begins_with_what_the_page_says(tmp_path):
    (sample,) = (block for block in blocks("console", PAGE) if "hook start" in block)
    commands = [line.removeprefix("$ ").partition("   #")[0] for line in sample.splitlines() if line.startswith("$ ")]
    shown = sample.partition("#")[2].partition("\n")[2]
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    store = tmp_path / "m.db"
    environ = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KEEPWARD_DB": str(store),
    }
    out = ""
    for command in ["keepward init", *commands]:
        began = int(time.time())
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=tmp_path / "shop",
            env=environ,
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        out = done.stdout
        # The page has a time on each line, and memories of one second share theirs.
        while int(time.time()) == began:
            time.sleep(0.01)
    assert re.sub(WHEN, "WHEN", out).rstrip() == re.sub(WHEN, "WHEN", shown).rstrip()
    config = tmp_path / ".config" / "keepward"
    with Memory.open(store, actor=Actor.operator("me"), config_dir=config) as memory:
        (start,) = (line for line in memory.receipts(limit=1).items if line.budget_tokens == 1_500)
    assert f"This start has {start.tokens} tokens" in PAGE
