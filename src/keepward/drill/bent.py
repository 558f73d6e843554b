"""Attacks on the bytes: what somebody who can write the store's file does behind its back.

The attacker knows the format, recomputes every hash where that helps, and lacks the key alone.

Invariants
(1) Each attack is undone, byte for byte, before the next one; so each is seen by itself.
(2) An attack is held when no read returns what was bent and ``verify`` names a fault; its control is that the same
    read gave the memory, and ``verify`` found nothing, just before.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from keepward.drill.drill import Attack, Ground, Tried, kept, note, refusal, table
from keepward.errors import KeepwardError
from keepward.model.codec import commitment, encode_record
from keepward.model.commit import events_hash, recompute
from keepward.model.policy import Policy

ATTACKS, attack = table()
#: A word that no memory holds, and what it is bent into: as long, so that no page moves.
WORD, BENT = "quillharbour", "quillbreaker"
#: What is bent in the file, as SQL; the names in it are those of `_facts`.
EDITS: dict[str, tuple[str, str]] = {
    "edit_text": (
        "a text is edited in the file",
        "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), :word, :bent) AS BLOB) WHERE memory_id = :id",
    ),
    "edit_trust": ("a memory's trust is edited in the file", "UPDATE records SET trust = trust - 1 WHERE id = :id"),
    "edit_term": ("a memory's term is moved in the file", "UPDATE records SET expires_at = 1 WHERE id = :id"),
    "edit_status": ("a status is edited in the file", "UPDATE records SET status = 'retired' WHERE id = :id"),
    "edit_ranking": ("ranking inputs are edited", "UPDATE records SET terms = x'00' WHERE id = :id"),
    "insert_row": (
        "a memory is inserted into the file",
        """CREATE TEMP TABLE e AS SELECT * FROM events WHERE memory_id = :id;
        UPDATE e SET n = n + 1, memory_id = :forged,
            payload = CAST(replace(CAST(payload AS TEXT), :id, :forged) AS BLOB);
        UPDATE e SET payload_commit = commitment(salt, payload);
        CREATE TEMP TABLE r AS SELECT * FROM records WHERE id = :id;
        UPDATE r SET id = :forged, n = n + 1, position = position + 1, arrival = arrival + 1;
        INSERT INTO events SELECT * FROM e;
        INSERT INTO records SELECT * FROM r""",
    ),
    "delete_event": ("a version is deleted from the file", "DELETE FROM events WHERE memory_id = :id"),
    "delete_record": ("a memory is deleted from the file", "DELETE FROM records WHERE id = :id"),
    "rewrite_chain": (
        "a commit is rewritten, hashes and all",
        """UPDATE events SET payload = :payload, payload_commit = :promise WHERE memory_id = :id;
        UPDATE commits SET events_hash = :joined, hash = :hash WHERE id = :commit;
        UPDATE tenants SET hash = :hash WHERE tenant = :tenant""",
    ),
}
#: What a commit and what is computed from it stand in, with the head.
TABLES = ("commits", "events", "records", "marks", "tenants")


class Seen(NamedTuple):
    """What another process sees of the file."""

    #: All that reads give of a memory; empty when they refuse it.
    given: str
    #: The code of the last refusal, empty where nothing was refused.
    code: str
    #: Which checks of ``verify`` find a fault.
    faults: set[str]

    @property
    def whole(self) -> bool:
        """Whether everything is as it should be."""
        return bool(self.given) and not (self.code or self.faults)


def _victim(ground: Ground) -> str:
    """Return the id of a memory in the newest commit."""
    return str(note(ground.owner, f"Ships land at {WORD} pier {ground.owner.status()['commits'] + 1}.").records[0].id)


def _facts(ground: Ground, memory_id: str) -> dict[str, Any]:
    """Return what statements name: a memory of the newest commit, and that commit bent, with every hash new."""
    commit, events = list(ground.owner.journal(after=ground.owner.log(limit=1)[0].commit.seq - 1))[-1]
    payload = (events[0].payload or b"").replace(WORD.encode(), BENT.encode())
    promise = commitment(events[0].salt, payload)
    bent = [replace(events[0], payload=payload, payload_commit=promise), *events[1:]]
    hashes = {"joined": events_hash(bent), "hash": recompute(commit, bent)}
    names = {"id": memory_id, "forged": memory_id[:-4] + "d1ff", "commit": commit.id, "tenant": ground.tenant}
    return {**names, "word": WORD, "bent": BENT, "payload": payload, "promise": promise, **hashes}


def _look(ground: Ground, *ids: str) -> Seen:
    """Open the file as another process would, and read all that it gives of these memories."""
    given: list[str] = []
    faults: set[str] = set()
    code = ""
    try:
        with ground.opened() as again:
            code = refusal(lambda: faults.update(fault.check for fault in again.verify().faults))
            found: list[Any] = []
            code = refusal(lambda: found.append(again.get(ids[0]))) or code
            refusal(lambda: found.extend(map(again.get, ids[1:])))
            refusal(lambda: found.extend(hit.memory for hit in again.recall(f"ships {WORD} {BENT}")))
            given += [encode_record(each).decode() for each in found if each.id in ids]
    except KeepwardError as fault:
        code = fault.code
    return Seen("".join(given), code, faults)


@contextmanager
def _aside(ground: Ground) -> Iterator[None]:
    """Close the store while it is attacked; put its file and its noted heads back after that, and open it again."""
    ground.owner.close()
    before, home = ground.folder.parent / "before", ground.folder.parent / "config"
    shutil.copytree(home, before)
    shutil.copyfile(ground.path, before / "copy.db")
    try:
        yield
    finally:
        _place(ground, before / "copy.db")
        shutil.rmtree(home)
        (before / "copy.db").unlink()
        before.rename(home)
        ground.begin()


def _place(ground: Ground, file: Path) -> None:
    for beside in ("-wal", "-shm"):
        ground.path.with_name(ground.path.name + beside).unlink(missing_ok=True)
    shutil.copyfile(file, ground.path)


def _execute(ground: Ground, statements: str, facts: dict[str, Any]) -> None:
    """Run statements behind the store's back, without its key."""
    with closing(sqlite3.connect(ground.path, isolation_level=None)) as raw:
        raw.create_function("commitment", 2, commitment)
        for statement in statements.split(";"):
            raw.execute(statement, facts)


def _edit(statements: str) -> Callable[[Ground], Tried]:
    """Return an attack that edits the file, and looks for the memory, and for one that was forged."""

    def run(ground: Ground) -> Tried:
        facts = _facts(ground, _victim(ground))
        with _aside(ground):
            before = _look(ground, facts["id"])
            _execute(ground, statements, facts)
            after = _look(ground, facts["id"], facts["forged"])
        held = bool(after.faults) and after.given in {"", before.given}
        refused = "" if after.given else "; reads refuse it"
        return Tried(held, before.whole, f"verify: {', '.join(sorted(after.faults))}{refused}")

    return run


_BENT = "SET body = CAST(replace(CAST(body AS TEXT), :word, :bent) AS BLOB)"
ATTACKS += [Attack(name, title, _edit(statements)) for name, (title, statements) in EDITS.items()]


@attack("a receipt is edited")
def bend_receipt(ground: Ground) -> Tried:
    memory_id = _victim(ground)
    receipt = ground.owner.context(f"ships {WORD}").receipt.id
    facts = {"id": receipt, "word": '"version":1', "bent": '"version":2'}
    control = ground.owner.replay(receipt).same
    with _aside(ground):
        control = control and _look(ground, memory_id).whole
        _execute(ground, f"UPDATE documents {_BENT} WHERE id = :id", facts)
        with ground.opened() as again:
            code, faults = refusal(again.replay, receipt), again.verify().faults
    return Tried(bool(code and faults), control, f"replay: {code}")


@attack("a proposal is edited while it waits")
def bend_proposal(ground: Ground) -> Tried:
    said = note(ground.agent, f"Keep {WORD} open.", **ground.core)
    if said.outcome != "quarantined":
        return Tried(not kept(said), False, said.outcome)
    item = said.item
    with _aside(ground):
        _execute(ground, f"UPDATE documents {_BENT} WHERE id = :id", {"word": WORD, "bent": BENT, "id": item.id})
        with ground.opened() as again:
            code = refusal(again.approve, item.id, digest=item.digest)
            held = bool(code) and BENT not in again.snapshot().text
    control = kept(ground.owner.approve(item.id, digest=item.digest)) or not held
    return Tried(held, control, f"approval: {code}")


def _replaced(ground: Ground, change: Callable[[Path], None]) -> Tried:
    """Attack the whole file, with a copy at hand of how it was before the newest commit; see what the anchor says."""
    older, memory_id = ground.folder.parent / "older.db", _victim(ground)
    with _aside(ground):
        shutil.copyfile(ground.path, older)
    _victim(ground)
    with _aside(ground):
        before = _look(ground, memory_id)
        change(older)
        after = _look(ground, memory_id)
    return Tried(after.code == "tampered" and "anchor" in after.faults, before.whole, f"anchor: {after.code}")


@attack("the newest commit is cut off")
def cut_tail(ground: Ground) -> Tried:
    def cut(older: Path) -> None:
        back = (f"DELETE FROM main.{name}; INSERT INTO main.{name} SELECT * FROM older.{name}" for name in TABLES)
        _execute(ground, f"ATTACH :older AS older; {'; '.join(back)}", {"older": str(older)})

    return _replaced(ground, cut)


@attack("an older copy is put back")
def restore_older(ground: Ground) -> Tried:
    return _replaced(ground, lambda older: _place(ground, older))


@attack("every table is emptied")
def empty_tables(ground: Ground) -> Tried:
    def empty(_: Path) -> None:
        with closing(sqlite3.connect(ground.path)) as raw:
            names = [name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        gone = [name for name in names if name not in {"meta", "migrations"} and not name.startswith("sqlite_")]
        _execute(ground, "; ".join(f"DELETE FROM {name}" for name in gone), {})

    return _replaced(ground, empty)


@attack("a store from elsewhere is put in place")
def foreign_store(ground: Ground) -> Tried:
    memory_id, text = _victim(ground), f"ships {WORD}"
    secret = ground.owner.create_token(name="drill-thief", rights="owner").secret

    def tried(memory: Any) -> list[str]:
        reads = (refusal(memory.get, memory_id), refusal(memory.recall, text), refusal(memory.context, text))
        return [*reads, refusal(memory.snapshot), refusal(memory.holding, secret)]

    control = not any(tried(ground.owner))
    with ground.opened("stranger") as stranger:
        codes = set(tried(stranger))
    return Tried(codes == {"not_adopted"}, control, f"opening: {', '.join(sorted(codes))}")


@attack("settings from elsewhere loosen policy")
def foreign_settings(ground: Ground) -> Tried:
    from keepward import accepted
    from keepward.config import FILE_NAME, load

    file, home = ground.folder / FILE_NAME, ground.folder.parent / "config"
    file.write_text('embedder = "http:https://thief.example/v1#m"\n[policy.access]\ncore = "read_write"\n')
    try:
        found = load(store=ground.path, environ={"KEEPWARD_HOME": str(home)})
        accepted.accept(home, file, file.read_bytes())
        meant = load(store=ground.path, environ={"KEEPWARD_HOME": str(home)})
    finally:
        file.unlink()
    usual = Policy()
    held = (found.policy.access, found.embedder) == (usual.access, "auto")
    control = meant.policy.access != usual.access and meant.embedder != "auto"
    return Tried(held, control, f"not accepted: {', '.join(found.withheld)}")


@attack("the file is cut to nothing")
def cut_file(ground: Ground) -> Tried:
    memory_id = _victim(ground)
    with _aside(ground):
        before = _look(ground, memory_id)
        ground.path.write_bytes(b"")
        code = _look(ground, memory_id).code
        held = bool(code) and ground.path.stat().st_size == 0
    return Tried(held, before.whole, f"opening: {code}")
