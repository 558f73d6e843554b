"""Queries of frequent calls read the rows that they return by an index, and not the whole tenant."""

import sqlite3

import pytest

from keepward import Memory
from keepward.storage.sql import SQL


@pytest.mark.parametrize("name", ["known_trust", "same_digest", "superseded"])
def test_a_repeated_text_is_found_by_its_digest(tmp_path, name):
    path = tmp_path / "store.db"
    with Memory.open(path, embedder=None, config_dir=tmp_path / "config") as mem:
        mem.remember("The ferry leaves at noon")
    values = dict.fromkeys(("tenant", "digest", "trait", "id", "tier", "scope", "sensitivity", "now"), "x") | {
        "scopes": "[]",
        "include_sensitive": 0,
    }
    with sqlite3.connect(path) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", values)]
    db.close()
    found = "trait (tenant=? AND trait=?)" if name == "known_trust" else "digest (digest=? AND tenant=?)"
    assert f"features_{found}" in "".join(plan)
    # ``f`` is what was found by its digest.
    assert {step for step in plan if step.startswith("SCAN")} <= {"SCAN f", "SCAN json_each VIRTUAL TABLE INDEX 1:"}


def test_the_memories_of_a_branch_are_found_by_their_scopes(tmp_path):
    path = tmp_path / "store.db"
    with Memory.open(path, embedder=None, config_dir=tmp_path / "config") as mem:
        mem.remember("The ferry leaves at noon")
    values = {"tenant": "default", "path": "/@try", "low": "/@try/", "high": "/@try0", "active": 0}
    with sqlite3.connect(path) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {SQL['on_branch']}", values)]
    db.close()
    assert "INDEX listed_counts (tenant=? AND scope>? AND scope<?)" in "".join(plan)
