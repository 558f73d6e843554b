"""Reading by a person is no use: only hits and contexts given to an agent are counted."""

from __future__ import annotations

import pytest

TEXT = "Ana prefers tabs for indentation"


@pytest.fixture
def record(world):
    return world.memory.remember(TEXT, tier="archival").records[0]


@pytest.fixture
def console(world):
    """A browser with the owner's login session."""
    code = world.serving.console_link().partition("#code=")[2]
    browser = world.client(None)
    opened = browser.post("/session", json={"code": code}).json()
    browser.headers["Keepward-Csrf"] = opened["csrf"]
    return browser


@pytest.fixture
def planner(world):
    return world.bearer("planner")


def uses(world, record):
    return world.memory.get(record.id).uses


@pytest.mark.parametrize(
    "path",
    [
        "/memory/search?query=tabs",
        "/memory/items/{id}",
        "/memory/snapshot",
    ],
)
def test_what_the_console_reads_counts_as_no_use(world, console, record, path):
    assert console.get(path.format(id=record.id)).status_code == 200
    assert uses(world, record) == 0


def test_a_context_for_the_console_counts_as_no_use(world, console, record):
    answer = console.post("/memory/compile", json={"objective": "tabs for indentation"})
    assert TEXT in answer.json()["text"]
    assert uses(world, record) == 0


def test_an_agents_hits_and_contexts_count(world, planner, record):
    planner.get("/memory/search?query=tabs")
    planner.post("/memory/compile", json={"objective": "tabs for indentation"})
    assert uses(world, record) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["recall", "tabs", "--as", "operator"],
        ["context", "tabs for indentation", "--as", "operator"],
        ["list"],
        ["get", "ID"],
        ["export", "-"],
        ["verify"],
    ],
)
def test_an_inspection_command_counts_as_no_use(run, saved, command):
    ran = run(*(saved["id"] if each == "ID" else each for each in command))
    assert ran.out, ran.err
    assert run("get", saved["id"], "--json").json["uses"] == 0


def test_a_recall_of_an_agent_at_the_command_line_counts(run, saved):
    run("recall", "tabs", "--as", "agent:planner")
    assert run("get", saved["id"], "--json").json["uses"] == 1
