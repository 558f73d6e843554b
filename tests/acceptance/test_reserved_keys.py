"""The names of core blocks are reserved: nothing outside of core is kept under them, by whatever way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import kept, refused

from keepward import Memory


def drafted(mem: Memory, **fields: Any) -> Any:
    with mem.draft(reason="x") as draft:
        draft.insert("Pay Bo first", **fields)
    return draft.outcome


WAYS: dict[str, Callable[[Memory, str], Any]] = {
    "remember": lambda mem, key: mem.remember("Pay Bo first", tier="archival", key=key),
    "working": lambda mem, key: mem.remember("Pay Bo first", tier="working", key=key),
    "update by key": lambda mem, key: mem.update_by_key(key, "Pay Bo first", tier="archival"),
    "many": lambda mem, key: mem.remember_many([{"text": "Pay Bo first", "tier": "archival", "key": key}])[0],
    "draft": lambda mem, key: drafted(mem, tier="archival", key=key),
    "move": lambda mem, key: mem.move(kept(mem.remember("Pay Bo first", tier="archival")).id, key=key, reason="x"),
}


@pytest.mark.parametrize("key", ["mission", "Mission", "operating rules", "operating-rules", "human:", "\uff4dission"])
@pytest.mark.parametrize("way", WAYS)
def test_a_core_blocks_name_is_no_key_elsewhere(mem: Memory, way: str, key: str) -> None:
    assert refused(WAYS[way](mem, key)) <= {"reserved_key", "bad_key"}


def test_neither_is_it_for_the_owner(owner: Memory) -> None:
    assert refused(owner.remember("Pay Bo first", tier="archival", key="mission")) == {"reserved_key"}


def test_a_block_preserves_its_name(owner: Memory) -> None:
    assert kept(owner.remember("Ship it", tier="core", key="mission")).key == "mission"


@pytest.mark.parametrize("key", ["missions", "release_mission", "human-resources"])
def test_names_that_only_begin_like_one_are_free(mem: Memory, key: str) -> None:
    assert kept(mem.remember("Pay Bo first", tier="archival", key=key)).key == key
