"""Attacks by statements: what somebody who can write the store's file, or its tables, does behind its back.

The attacker knows the format, recomputes every hash where that helps, and lacks the key alone.

Invariants
(1) Each attack is undone, row for row, before the next one; so each is seen by itself.
(2) An attack is held when no read returns what was bent and ``verify`` names a fault; its control is that the same
    read gave the memory, and ``verify`` found nothing, just before.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from keepward.drill.drill import Stage, Tried, attack, committed, note, refusal
from keepward.errors import KeepwardError
from keepward.model.codec import commitment, encode_record
from keepward.model.commit import events_hash, recompute
from keepward.model.patterns import table
from keepward.model.policy import Policy
from keepward.place import place_of

#: A word that no memory holds, and what it is bent into.
WORD, BENT = "quillharbour", "quillbreaker"
#: What is bent in the file.
EDITS: Mapping[str, Mapping[str, str]] = table(__package__, "by_statement.toml")
#: What a commit and what is computed from it stand in, with the head.
TABLES = ("commits", "events", "records", "marks", "tenants")


class Seen(NamedTuple):
    """What another process sees of the store."""

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


def _victim(stage: Stage) -> str:
    """Return the id of a memory in the newest commit."""
    return str(note(stage.owner, f"Ships land at {WORD} pier {stage.owner.status()['commits'] + 1}.").records[0].id)


def _values(stage: Stage, memory_id: str) -> dict[str, Any]:
    """Return what statements name: a memory of the newest commit, and that commit bent, with every hash new."""
    commit, events = list(stage.owner.journal(after=stage.owner.log(limit=1)[0].commit.seq - 1))[-1]
    salt, payload, forged = events[0].salt, events[0].payload or b"", memory_id[:-4] + "d1ff"
    bent, twin = payload.replace(WORD.encode(), BENT.encode()), payload.replace(memory_id.encode(), forged.encode())
    promise = commitment(salt, bent)
    edited = [replace(events[0], payload=bent, payload_commit=promise), *events[1:]]
    hashes = {"joined": events_hash(edited), "hash": recompute(commit, edited), "promise": promise}
    names = {"id": memory_id, "forged": forged, "commit": commit.id, "tenant": stage.tenant}
    return {**names, **hashes, "payload": bent, "twin": twin, "twin_promise": commitment(salt, twin), "nothing": b"\0"}


def _look(stage: Stage, *ids: str) -> Seen:
    """Open the store as another process would, and read all that it gives of these memories."""
    given: list[str] = []
    faults: set[str] = set()
    code = ""
    try:
        with stage.opened() as again:
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
def _closed(stage: Stage) -> Iterator[None]:
    """Close the store while it is attacked; put its rows and its noted heads back after that, and open it again."""
    stage.owner.close()
    stage.target.lay_aside("before")
    try:
        yield
    finally:
        stage.target.put_back("before", home=True)
        stage.begin()


def _edit(statements: str) -> Callable[[Stage], Tried]:
    """Return an attack that edits rows, and looks for the memory, and for one that was forged."""

    def run(stage: Stage) -> Tried:
        values = _values(stage, _victim(stage))
        with _closed(stage):
            before = _look(stage, values["id"])
            stage.target.execute(statements, values)
            after = _look(stage, values["id"], values["forged"])
        held = bool(after.faults) and after.given in {"", before.given}
        refused = "" if after.given else "; reads refuse it"
        return Tried(held, before.whole, f"verify: {', '.join(sorted(after.faults))}{refused}")

    return run


for _name, _told in EDITS.items():
    attack(_told["title"], _name)(_edit(_told["statements"]))


def _bend(stage: Stage, kind: str, name: str, word: str, bent: str) -> None:
    """Replace a word in the body of a document."""
    key = {"kind": kind, "id": name}
    ((body,),) = stage.target.rows("SELECT body FROM documents WHERE kind = :kind AND id = :id", key)
    packed = kind == "receipts"
    told = (zlib.decompress(body) if packed else bytes(body)).replace(word.encode(), bent.encode())
    values = {**key, "body": zlib.compress(told) if packed else told}
    stage.target.execute("UPDATE documents SET body = :body WHERE kind = :kind AND id = :id", values)


@attack("a receipt is edited")
def bend_receipt(stage: Stage) -> Tried:
    memory_id = _victim(stage)
    made = stage.owner.context(f"ships {WORD}").receipt
    receipt = made.id if made else ""
    control = stage.owner.replay(receipt).same
    with _closed(stage):
        control = control and _look(stage, memory_id).whole
        _bend(stage, "receipts", receipt, '"version":1', '"version":2')
        with stage.opened() as again:
            code, faults = refusal(again.replay, receipt), again.verify().faults
    return Tried(bool(code and faults), control, f"replay: {code}")


@attack("a proposal is edited while it waits")
def bend_proposal(stage: Stage) -> Tried:
    said = note(stage.agent, f"Keep {WORD} open.", **stage.core)
    if said.outcome != "quarantined":
        return Tried(not committed(said), False, said.outcome)
    item = said.item
    with _closed(stage):
        _bend(stage, "proposals", item.id, WORD, BENT)
        with stage.opened() as again:
            code = refusal(again.approve, item.id, digest=item.digest)
            held = bool(code) and BENT not in again.snapshot().text
    control = committed(stage.owner.approve(item.id, digest=item.digest)) or not held
    return Tried(held, control, f"approval: {code}")


def _replaced(stage: Stage, change: Callable[[], None]) -> Tried:
    """Attack everything, with a copy at hand of how it was before the newest commit; see what the anchor says."""
    memory_id = _victim(stage)
    stage.owner.close()
    stage.target.lay_aside("older")
    stage.begin()
    _victim(stage)
    with _closed(stage):
        before = _look(stage, memory_id)
        change()
        after = _look(stage, memory_id)
    return Tried(after.code == "tampered" and "anchor" in after.faults, before.whole, f"anchor: {after.code}")


@attack("the newest commit is cut off")
def cut_tail(stage: Stage) -> Tried:
    return _replaced(stage, lambda: stage.target.put_back("older", tables=TABLES))


@attack("an older copy is put back")
def restore_older(stage: Stage) -> Tried:
    return _replaced(stage, lambda: stage.target.put_back("older"))


@attack("every table is emptied")
def empty_tables(stage: Stage) -> Tried:
    def empty() -> None:
        gone = [name for name in stage.target.tables() if name not in {"meta", "migrations"}]
        stage.target.execute("; ".join(f"DELETE FROM {name}" for name in gone))

    return _replaced(stage, empty)


@attack("a store from elsewhere is put in place")
def foreign_store(stage: Stage) -> Tried:
    memory_id, text = _victim(stage), f"ships {WORD}"
    secret = stage.owner.create_token(name="drill-thief", rights="owner").secret

    def tried(memory: Any) -> list[str]:
        reads = (refusal(memory.get, memory_id), refusal(memory.recall, text), refusal(memory.context, text))
        return [*reads, refusal(memory.snapshot), refusal(memory.holding, secret)]

    control = not any(tried(stage.owner))
    with stage.opened("stranger") as stranger:
        codes = set(tried(stranger))
    return Tried(codes == {"not_adopted"}, control, f"opening: {', '.join(sorted(codes))}")


@attack("settings from elsewhere loosen policy")
def foreign_settings(stage: Stage) -> Tried:
    from keepward import accepted
    from keepward.config import FILE_NAME, load

    home = stage.target.home
    # Beside a database there is no file; its settings lie with the keys.
    beside = isinstance(store := place_of(stage.target.address), Path)
    file = (stage.target.store if beside else home) / FILE_NAME
    file.write_text('embedder = "http:https://thief.example/v1#m"\n[policy.access]\ncore = "read_write"\n')
    try:
        found = load(store=store, environ={"KEEPWARD_HOME": str(home)})
        accepted.accept(home, file, file.read_bytes())
        meant = load(store=store, environ={"KEEPWARD_HOME": str(home)})
    finally:
        file.unlink()
    usual = Policy()
    held = (found.policy.access, found.embedder) == (usual.access, "auto")
    control = meant.policy.access != usual.access and meant.embedder != "auto"
    return Tried(held, control, f"not accepted: {', '.join(found.withheld)}")


@attack("the file is cut to nothing")
def cut_file(stage: Stage) -> Tried:
    memory_id = _victim(stage)
    with _closed(stage):
        before = _look(stage, memory_id)
        stage.target.destroy()
        code = _look(stage, memory_id).code
        held = bool(code) and stage.target.is_destroyed
    return Tried(held, before.whole, f"opening: {code}")
