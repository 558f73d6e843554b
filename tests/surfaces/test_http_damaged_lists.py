"""A damaged commit over HTTP and at the terminal: the lists answer with what is intact, and name what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support import tamper

HELP = ("commit 2 is damaged and not shown", "`keepward verify`", "`keepward store recover`")


def damage(path: Path) -> None:
    tamper.edit(path, "commits", "at = at + 1", "seq = 2")


@pytest.fixture
def bent(world: Any) -> Any:
    """Return a server whose second commit of three was edited behind it."""
    for number in range(3):
        world.memory.remember(f"Mill {number} grinds rye", tier="archival")
    damage(world.path)
    return world


def test_commits_over_http_name_the_damaged_one(bent: Any) -> None:
    page = bent.owner.get("/memory/commits").json()
    assert [each["commit"]["seq"] for each in page["items"]] == [3, 1]
    assert [each["seq"] for each in page["damaged"]] == [2]
    assert all(part in page["notes"][0] for part in HELP)


@pytest.mark.parametrize(
    "address",
    ["news?since=2026-01-01", "activity", "sources", "diff?earlier=0", "receipts", "commits?limit=1", "status"],
)
def test_every_list_answers_while_a_commit_is_damaged(bent: Any, address: str) -> None:
    assert bent.owner.get(f"/memory/{address}").status_code == 200


def test_news_over_http_name_the_damaged_commit(bent: Any) -> None:
    news = bent.owner.get("/memory/news?since=2026-01-01").json()
    assert len(news["learned"]["newest"]) == 2
    assert any("commit 2" in note and HELP[1] in note for note in news["notes"])


def test_log_at_the_terminal_names_the_damaged_commit(run: Any) -> None:
    for number in range(3):
        run("remember", f"Mill {number} grinds rye", "--tier", "archival")
    path = Path(run("status", "--json").json["path"])
    damage(path)
    shown = run("log")
    assert (shown.code, all(part in shown.err for part in HELP)) == (0, True)
    assert [each["commit"]["seq"] for each in run("log", "--json").json["items"]] == [3, 1]


def test_damaged_commit_over_http_is_shown_with_what_is_wrong(bent: Any) -> None:
    answer = bent.owner.get("/memory/commits/2")
    assert (answer.status_code, "ETag" in answer.headers) == (200, False)
    assert any("commit 2" in note and HELP[1] in note for note in answer.json()["damage"])
    memory = answer.json()["steps"][0]["after"]["id"]
    history = bent.owner.get(f"/memory/items/{memory}/history").json()
    assert "commit 2" in history["items"][0]["damage"][0]
    assert "commit 2" in bent.owner.get(f"/memory/blame/{memory}").json()["origins"][0]["made"]["damage"][0]
    receipt = answer.json()["details"]["receipt"]
    assert "commit 2" in bent.owner.get(f"/memory/receipts/{receipt}").json()["damage"][0]


@pytest.mark.parametrize("command", ["show", "history", "blame"])
def test_damaged_commit_at_the_terminal_is_shown_with_what_is_wrong(run: Any, command: str) -> None:
    record = run("remember", "Mill grinds rye", "--tier", "archival", "--json").json["records"][0]
    path = Path(run("status", "--json").json["path"])
    tamper.edit(path, "commits", "at = at + 1", "seq = 1")
    shown = run(command, "1" if command == "show" else record["id"])
    assert (shown.code, "commit 1 is damaged" in shown.err, HELP[1] in shown.err) == (0, True, True)
    assert "Mill grinds rye" in shown.out
