"""Over HTTP a token finds nothing erased in a scope that it does not see, and guesses count as changes."""

from __future__ import annotations

import pytest
from http_fixtures import HttpTestServer

PIN = "The blue boat has berth 4711"
GUESSES = "# Notes\n\n" + "".join(f"- The blue boat has berth {n}\n" for n in range(4705, 4715))


@pytest.fixture
def world(tmp_path):
    world = HttpTestServer(tmp_path, writes_per_minute=3)
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


BATCH = [f"The blue boat has berth {n}" for n in range(4705, 4715)]


def imported(client, texts):
    body = "# Notes\n\n" + "".join(f"- {each}\n" for each in texts)
    return client.post("/memory/import?name=notes.md", content=body)


def batch(client, texts):
    return client.post("/memory/items/batch", json={"items": [{"text": text} for text in texts]})


@pytest.mark.parametrize("send", [batch, imported])
def test_batch_with_erased_text_counts_as_all_its_texts(world, send):
    near = world.bearer(scope="/agents/ana")
    statuses = [send(near, BATCH).status_code, send(near, ["Tea is on the left"]).status_code]
    # Three a minute: the wait is until nine further texts and the next call are paid for.
    world.ticks.now += 140
    statuses.append(send(near, ["Tea is on the left"]).status_code)
    world.ticks.now += 60
    assert [*statuses, send(near, ["Tea is on the left"]).status_code] == [200, 429, 429, 200]


@pytest.mark.parametrize("send", [batch, imported])
def test_a_batch_without_erased_text_counts_once(world, send):
    near = world.bearer(scope="/agents/ana")
    texts = [each for each in BATCH if each != PIN]
    assert [send(near, texts).status_code, send(near, ["Tea is on the left"]).status_code] == [200, 200]
