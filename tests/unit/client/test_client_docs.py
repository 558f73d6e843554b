"""docs/howto/client.md is true: its code runs as it stands, one block after the other."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import keepward
from keepward.client import CommitEvent
from keepward.http.server import create_app
from support.clock import SteppingClock

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "client.md"


@pytest.mark.slow
def test_the_code_of_the_page_runs_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = keepward.Actor.operator("ana")
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    # Streams of a server without a port come at their end, and events have none.
    monkeypatch.setattr(
        keepward.Client, "events", lambda *_, **__: iter([CommitEvent(seq=1, event="commit", facts={"changes": []})])
    )
    with (
        keepward.Memory.open("served.db", actor=owner, embedder=None, clock=SteppingClock()) as home,
        TestClient(create_app(home)) as server,
    ):
        monkeypatch.setattr(keepward, "Client", functools.partial(keepward.Client, transport=server), raising=False)
        names: dict[str, Any] = {"token": home.create_token("orion").secret}
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
            exec(compile(block, PAGE.name, "exec"), names)
    assert "committed" in capsys.readouterr().out
