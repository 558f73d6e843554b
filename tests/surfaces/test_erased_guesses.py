"""Over HTTP a token finds nothing erased in a scope that it does not see, and guesses count as changes."""

from __future__ import annotations

import pytest
from http_world import World

PIN = "The blue boat has berth 4711"
GUESSES = "# Notes\n\n" + "".join(f"- The blue boat has berth {n}\n" for n in range(4705, 4715))


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path, writes_per_minute=3)
    made = world.memory.at(scope="/agents/ana").remember(PIN, tier="archival")
    world.memory.erase(world.memory.plan_erase(made.id).digest, made.id)
    world.stone = made.id
    yield world
    world.memory.close()


def test_a_token_of_another_scope_finds_nothing_by_guessing(world):
    stranger = world.bearer(scope="/agents/bo")
    tried = stranger.post("/memory/import?name=notes.md&dry_run=true", content=GUESSES)
    written = stranger.post("/memory/items", json={"text": PIN, "tier": "archival"})
    assert (world.stone in tried.text + written.text, "erased" in tried.text, written.status_code) == (
        False,
        False,
        201,
    )


def test_a_dry_run_counts_as_a_change(world):
    stranger = world.bearer(scope="/agents/bo")
    tries = [stranger.post("/memory/import?name=notes.md&dry_run=true", content=GUESSES) for _ in range(4)]
    assert [each.status_code for each in tries] == [200, 200, 200, 429]
