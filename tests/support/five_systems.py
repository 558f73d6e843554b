"""Stores of five systems, each written in the system's own format by what its documentation says of its files."""

from __future__ import annotations

import json
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

#: Names of the files, as on the pages about moving.
VAULT, NOTES, BLOCKS, BANK, TIERS = "vault.jsonl", "notes.db", "blocks.jsonl", "state/memory.db", "memory.json"


def _line(number: int, text: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"{number:012x}",
        "text": text,
        "scope": "shared",
        "category": "project",
        "tier": "canon",
        "topic_id": None,
        "tags": [],
        "created_at": f"2026-01-{number + 1:02d}T09:00:00+00:00",
        "updated_at": None,
        "source": "manual",
        "deleted_at": None,
        "version": 1,
    } | fields


def _projects(version: int, text: str) -> dict[str, Any]:
    changed = None if version == 1 else f"2026-02-{version:02d}T09:00:00+00:00"
    about = {"tier": "register", "topic_id": "current_projects", "version": version, "updated_at": changed}
    return _line(4, f"Projects: {text}", **about)


#: Lines of an append-only vault: three versions of a register, a tombstone, three scopes, a line without a tier.
VAULT_LINES = [
    _line(1, "Mission: stabilise the harbour runtime and add tools in layers", category="mission", tags=["core"]),
    {"id": "000000000002", "text": "Ines founded the harbour office in 1998", "scope": "shared", "category": "bio",
     "created_at": "2026-01-03T09:00:00+00:00", "source": "chat", "version": 1},
    _line(3, "Never restart the pumps before the tide table is read", category="constraint"),
    _projects(1, "dashboard"),
    _projects(2, "dashboard, pump upgrade"),
    _line(5, "The backup desk is on the second floor", category="place"),
    _line(5, "The backup desk is on the second floor", category="place", version=2,
          deleted_at="2026-02-01T09:00:00+00:00", updated_at="2026-02-01T09:00:00+00:00"),
    _line(6, "Orion watches the north quay", scope="orion", category="goal"),
    _line(7, "Elysia writes the evening report", scope="elysia", category="goal"),
    _line(8, "Orion is calibrating the radar", scope="orion", tier="register", topic_id="self_state"),
    _line(9, "Reading list: tide tables, pump manual", tier="register", category="reading"),
    _line(10, "Das Büro öffnet um acht – täglich außer sonntags", category="hours", tags=["büro"]),
    _projects(3, "dashboard, pump upgrade, email integration"),
]  # fmt: skip


def write_vault(folder: Path) -> Path:
    path = folder / VAULT
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in VAULT_LINES), "utf-8")
    return path


_NOTE_COLUMNS = (
    "id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT 'user', user_id TEXT, kind TEXT NOT NULL, content TEXT NOT NULL,"
    " tags TEXT NOT NULL DEFAULT '[]', confidence REAL NOT NULL DEFAULT 1.0, stability TEXT NOT NULL DEFAULT 'stable',"
    " sensitivity TEXT NOT NULL DEFAULT 'normal', evidence TEXT NOT NULL DEFAULT '[]', job_id TEXT, expires_at TEXT,"
    " superseded_by TEXT, created_at TEXT NOT NULL"
)
_FAR, _PAST = "2099-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"


def _note(name: str, kind: str, content: str, day: int, **fields: Any) -> dict[str, Any]:
    row = {"id": name, "kind": kind, "content": content, "created_at": f"2026-03-{day:02d}T10:00:00.000Z"}
    return row | {"user_id": "ana"} | fields


#: Notes of two users: a chain of souls, rules with and without evidence, sensitive, expired and superseded notes.
NOTE_ROWS = [
    _note("soul-1", "soul", "I answer at length.", 1, stability="permanent", superseded_by="soul-2"),
    _note("soul-2", "soul", "I answer in two sentences.", 2, stability="permanent", superseded_by="soul-3"),
    _note("soul-3", "soul", "I answer in one sentence and never guess.", 3, stability="permanent"),
    _note("rule-1", "rule", "Give heights in metres", 4, evidence='["log-1"]', confidence=0.9, tags='["units"]'),
    _note("rule-2", "rule", "Greet Ana in Portuguese", 5, confidence=0.9),
    _note("log-1", "log", "Ana asked for the tide table of Porto", 6, stability="volatile", expires_at=_FAR,
          tags='["tides"]'),
    _note("log-2", "log", "Ana opened the old gate", 6, stability="volatile", expires_at=_PAST),
    *(_note(f"sum-{n}", "summary", f"Job {n}: checked berth {n}, next is berth {n + 1}", 6 + n, job_id=f"job-{n}",
            stability="stable") for n in range(1, 8)),
    _note("sum-8", "summary", "Ana's blood test came back normal", 15, sensitivity="sensitive"),
    _note("log-3", "log", "Ana moved to the harbour office", 16, superseded_by="log-4"),
    _note("log-4", "log", "Ana moved to the radar office", 17),
    _note("bob-1", "log", "Bob wants the report on Mondays", 18, user_id="bob"),
]  # fmt: skip


def write_notes(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / NOTES)) as base, base:
        base.execute(f"CREATE TABLE memory_notes ({_NOTE_COLUMNS})")
        for row in NOTE_ROWS:
            marks = ", ".join("?" * len(row))
            base.execute(f"INSERT INTO memory_notes ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    return folder / NOTES


def _block(name: str, label: str, content: str, tier: str, permission: str, **fields: Any) -> dict[str, Any]:
    row = {"id": name, "owner": "spirit", "label": label, "content": content, "tier": tier, "permission": permission}
    about = {"pinned": tier == "core", "embedding": None, "created_at": "2026-02-01T08:00:00+00:00"}
    return row | about | {"updated_at": "2026-02-01T08:00:00+00:00"} | fields


#: Rows of a table of blocks as JSON: all four permissions and three tiers, two owners, an event and a mutation.
BLOCK_ROWS = [
    _block("b-1", "persona", "I am the harbour's calm assistant.", "core", "readonly"),
    _block("b-2", "human", "Ana keeps the tide tables.", "core", "familiar"),
    _block("b-3", "mission", "Keep the harbour safe.", "core", "familiar"),
    _block("b-4", "scratch", "Today: check the radar.", "working", "readwrite"),
    _block("b-5", "journal", "Monday: fog until ten.", "archival", "append"),
    _block("b-6", "charter", "The harbour opens at five.", "archival", "readonly"),
    _block("b-7", "berths", "Berth four is for ferries.", "archival", "readwrite", embedding="[0.1,0.2]"),
    _block("b-8", "persona", "I am the mill's assistant.", "core", "readonly", owner="mill"),
    _block("b-9", "flour", "The mill grinds rye.", "archival", "readwrite", owner="mill"),
    {"id": "e-1", "block_id": "b-3", "owner": "spirit", "event_type": "create", "old_content": None,
     "new_content": "Keep the harbour safe.", "created_at": "2026-02-01T08:00:00+00:00"},
    {"id": "p-1", "block_id": "b-3", "proposed_content": "Sell the harbour.", "reason": None, "status": "pending",
     "feedback": None, "created_at": "2026-02-02T08:00:00+00:00", "resolved_at": None},
]  # fmt: skip


def write_blocks(folder: Path) -> Path:
    path = folder / BLOCKS
    path.write_text("".join(json.dumps(row) + "\n" for row in BLOCK_ROWS))
    return path


BOARD = b"\x89PNG\r\n\x1a\n" + b"board" * 30
_BANK_COLUMNS = (
    "id TEXT PRIMARY KEY, text TEXT NOT NULL, embedding BLOB, content_type TEXT NOT NULL, content_ref TEXT,"
    " source TEXT NOT NULL, importance REAL NOT NULL, access_count INTEGER NOT NULL DEFAULT 0, created_at REAL,"
    " last_accessed REAL, tags TEXT, metadata TEXT, parent_id TEXT, active INTEGER NOT NULL DEFAULT 1"
)
#: 1 March 2026, in seconds.
_MARCH = 1_772_323_200


def _memory(name: str, text: str, **fields: Any) -> dict[str, Any]:
    row = {"id": name, "text": text, "content_type": "text", "source": "user", "importance": 0.5, "tags": "[]"}
    row |= {"metadata": "{}", "created_at": _MARCH + 60.0 * int(name[-1]), "last_accessed": _MARCH + 90.0}
    return row | {"embedding": struct.pack("<384f", *[0.05] * 384), "access_count": 0} | fields


#: Memories of a bank: near-duplicates, a picture, structured data, a parent, one missing blob, an inactive one.
BANK_ROWS = [
    _memory("m-1", "Deploy with Kubernetes", source="seeded", importance=0.7, access_count=4, tags='["deploy"]'),
    _memory("m-2", "Deploy using Kubernetes", importance=0.5, access_count=3),
    _memory("m-3", "Photo of the departures board", content_type="image", content_ref="blobs/2026-03-01/board.png"),
    _memory("m-4", "Meeting notes as PDF", content_type="file", content_ref="blobs/2026-03-01/gone.pdf"),
    _memory("m-5", "API health check, all services healthy", content_type="structured",
            metadata='{"schema": "health_check", "services": 5}'),
    _memory("m-6", "Full transcript of the meeting about deployment strategy", source="assistant", importance=0.4),
    _memory("m-7", "Use blue-green releases for critical services", source="extracted", importance=0.8,
            parent_id="m-6"),
    _memory("m-8", "The old staging server is called Perch", importance=0.05, active=0),
    _memory("m-9", "The quarterly review is on the ninth", importance=0.1),
]  # fmt: skip


def write_bank(folder: Path) -> Path:
    blobs = folder / "state" / "blobs" / "2026-03-01"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / "board.png").write_bytes(BOARD)
    path = folder / BANK
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("PRAGMA journal_mode=WAL")
        base.execute(f"CREATE TABLE memories ({_BANK_COLUMNS})")
        for row in BANK_ROWS:
            marks = ", ".join("?" * len(row))
            base.execute(f"INSERT INTO memories ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    return path


#: A memory of tiers: its core blocks, and entries with their provenance, quests, sessions and times to live.
TIERED = {
    "core": {
        "persona": {"content": "I am the harbour's governed assistant.", "provenance": "soul:v3"},
        "human": {"content": "Ana prefers short answers.", "provenance": [{"type": "user_message", "ref": "msg-1"}]},
        "mission": {"content": "Keep the quays open.", "confidence": 0.95},
        "operating_rules": {"content": "Verify before delivery.", "confidence": 0.9},
        "workspace_state": {"content": "Working on quay seven.", "updated_at": "2026-02-20T08:00:00Z"},
    },
    "working": [
        {"id": "w-1", "content": "Plan: inspect the cranes first", "quest_id": "q7", "ttl_hours": 876000,
         "created_at": "2026-02-20T08:00:00Z", "provenance": "inference"},
        {"id": "w-2", "content": "Plan: paint the gate", "quest_id": "q8", "ttl_hours": 876000,
         "created_at": "2026-02-20T08:00:00Z"},
        {"id": "w-3", "content": "Call the old yard", "quest_id": "q7", "ttl_hours": 1,
         "created_at": "2026-02-20T08:00:00Z"},
    ],
    "episodic": [
        {"id": "e-1", "content": "The storm closed quay two", "session_id": "s-4", "created_at": "2026-02-18T08:00:00Z"},
        {"id": "e-2", "type": "summary", "content": "Session 4: the storm and its repairs", "session_id": "s-4",
         "created_at": "2026-02-18T20:00:00Z"},
    ],
    "archival": [
        {"id": "a-1", "content": "Quay seven was rebuilt in 1987", "confidence": 0.85, "tags": ["history"],
         "provenance": [{"type": "document", "ref": "harbour-book"}], "created_at": "2026-02-10T08:00:00Z"},
        {"id": "a-2", "content": "Quay nine was sold", "status": "quarantined", "created_at": "2026-02-10T08:00:00Z"},
    ],
}  # fmt: skip


def write_tiers(folder: Path) -> Path:
    path = folder / TIERS
    path.write_text(json.dumps(TIERED, indent=2))
    return path


#: What writes each store, with the name of its file.
WRITERS = {write_vault: VAULT, write_notes: NOTES, write_blocks: BLOCKS, write_bank: BANK, write_tiers: TIERS}
