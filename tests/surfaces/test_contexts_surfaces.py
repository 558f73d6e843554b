"""What a model reads, at the terminal, over HTTP and by MCP: the choice of lines is the same on every surface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_made import call, opened, served
from starlette.testclient import TestClient

from keepward import Client, Memory
from keepward.http import create_app

NOTED = "nothing was recalled"
ABOUT = [f"Ines {rest}" for rest in ("prefers pencils", "lives in Porto", "eats no nuts", "leads a team", "rows")]
#: Twenty memories are a small store, which is shown whole.
MANY = [f"Crate {n} holds {n * 3} plums" for n in range(30)]
#: Returns the text of a context, and its notes in one text.
Read = Callable[..., tuple[str, str]]


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Memory]:
    with opened(tmp_path) as memory:
        yield memory


@pytest.fixture(params=["terminal", "http", "client", "mcp"])
def surface(request: pytest.FixtureRequest) -> Iterator[tuple[Callable[[list[str]], None], Read]]:
    """Ways to store sessions of messages, and to read a context, on one surface."""
    if request.param == "terminal":
        run = request.getfixturevalue("run")

        def add(texts: list[str]) -> None:
            told = [{"role": role, "content": text} for each in texts for role, text in (("user", each),)]
            assert run("add", "-", "--session", "s1", stdin=json.dumps(told).encode()).code == 0

        def read(objective: str, budget: int | None = None) -> tuple[str, str]:
            more = [] if budget is None else ["--budget", str(budget)]
            ran = run("context", objective, *more)
            assert ran.code == 0
            return ran.out, ran.err

        yield add, read
        return
    owner = request.getfixturevalue("owner")

    def add_here(texts: list[str]) -> None:
        owner.add([{"role": "user", "content": text} for text in texts], session="s1")

    if request.param == "mcp":
        server = served(owner)

        def by_tool(objective: str, budget: int | None = None) -> tuple[str, str]:
            asked: dict[str, Any] = {"objective": objective}
            answer = call(server, "get_context", asked | ({} if budget is None else {"budget_tokens": budget}))
            return answer.structured_content["text"], json.dumps(answer.structured_content)

        yield add_here, by_tool
        return
    with TestClient(create_app(owner), base_url="http://127.0.0.1:8321") as server:
        token = owner.create_token("boss", rights="owner").secret

        def by_http(objective: str, budget: int | None = None) -> tuple[str, str]:
            asked: dict[str, Any] = {"objective": objective}
            asked |= {} if budget is None else {"budget_tokens": budget}
            answer = server.post("/memory/compile", json=asked, headers={"Authorization": f"Bearer {token}"}).json()
            return answer["text"], " ".join(answer["notes"])

        def by_client(objective: str, budget: int | None = None) -> tuple[str, str]:
            with Client("http://127.0.0.1:8321", token, transport=server) as client:
                made = client.context(objective, budget_tokens=budget)
                return made.text, " ".join(made.notes)

        yield add_here, by_http if request.param == "http" else by_client


@pytest.mark.promise("B86", "B88", "B89")
def test_a_surface_shows_few_lines_none_for_a_greeting_and_all_of_a_small_store(
    surface: tuple[Callable[[list[str]], None], Read],
) -> None:
    add, read = surface
    add(ABOUT)
    assert [text for text in ABOUT if text not in read("format this file")[0]] == []
    for greeting in ("hi", "thanks, bye", "What is 17 times 23?"):
        text, notes = read(greeting)
        assert ("Ines" in text, NOTED in notes) == (False, True)
    add(MANY)
    text, notes = read("Who is Ines?")
    assert (sum(each in text for each in ABOUT) >= 3, NOTED in notes) == (True, False)
    assert sum(each in text for each in MANY) <= 3
    assert "plums" not in read("Who wrote the Brothers Karamazov?")[0]
    full = read("Who is Ines?", 1_000)[0]
    assert [each for each in ABOUT if each not in full] == []
