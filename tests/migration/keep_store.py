"""Keep a store of the newest schema: ``python tests/migration/keep_store.py``, once for each schema that is released."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from keepward import Actor, Memory
from keepward.storage.file import newest_schema
from support.clock import SteppingClock

KEPT = Path(__file__).parent / "kept"


def fill(owner: Memory) -> None:
    """Write what ``test_upgrade.py`` expects."""
    ferry = owner.remember("The ferry leaves the quay at six", tier="archival", tags=["boats"])
    owner.revise(ferry.id, "The ferry leaves the quay at seven", reason="the new timetable")
    owner.remember("Never deploy on Friday", tier="core", key="mission")
    owner.as_actor(Actor.agent("scout")).remember("Deploy on Friday", tier="core", key="mission")
    owner.recall("when does the ferry leave")
    owner.context("the ferry")
    owner.revoke_token(owner.create_token("scout").token.id)


def keep(folder: Path) -> None:
    """Make the store in a folder, and write its dump and its key."""
    given = {"embedder": "hashed", "clock": SteppingClock(), "config_dir": folder / "home"}
    with Memory.open(folder / "memory.db", actor=Actor.operator("olga"), **given) as owner:
        fill(owner)
    KEPT.mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / "memory.db")) as db:
        (KEPT / f"{newest_schema():04}.sql").write_text("\n".join(db.iterdump()) + "\n")
    (key,) = folder.glob("home/stores/*/key")
    (KEPT / f"{newest_schema():04}.key").write_text(key.read_bytes().hex())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        keep(Path(made))
