"""Attacks by statements: what somebody who can write the store's file, or its tables, does behind its back.

The attacker knows the format, recomputes every hash where that helps, and lacks the key alone.

Invariants
(1) Each attack is undone, row for row, before the next one; so each is seen by itself.
(2) An attack is held when no read returns what was bent and ``verify`` names a fault; its control is that the same
    read gave the memory, and ``verify`` found nothing, just before.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from evals.attack_store import AttackStore, attack
from keepward.core.commit import events_hash, recompute_commit_hash
from keepward.core.policy import Policy
from keepward.core.serialization import commitment, encode_record
from keepward.drill.attacks import AttackResult, is_committed, refusal_code, remember_text
from keepward.errors import KeepwardError
from keepward.locations import parse_location
from keepward.storage.rows import RecordRow

#: The columns of a record that are written; a database computes another one.
_RECORD = ", ".join(("tenant", *RecordRow._fields))
#: A word that no memory holds, and what it is bent into.
WORD, BENT = "quillharbour", "quillbreaker"
#: What is bent in the rows: a name, a title, and SQL whose values are those of ``_values``.
EDITS = (
    ("edit_payload", "a text is edited in the file", "UPDATE events SET payload = :payload WHERE memory_id = :id"),
    ("edit_body", "a current text is edited in the file", "UPDATE records SET body = :payload WHERE id = :id"),
    ("edit_trust", "a memory's trust is edited in the file", "UPDATE records SET trust = trust - 1 WHERE id = :id"),
    ("edit_term", "a memory's term is moved in the file", "UPDATE records SET expires_at = 1 WHERE id = :id"),
    ("edit_status", "a status is edited in the file", "UPDATE records SET status = 'retired' WHERE id = :id"),
    ("edit_ranking", "ranking inputs are edited", "UPDATE features SET terms = :nothing WHERE id = :id"),
    (
        "insert_row",
        "a memory is inserted into the file",
        f"""
        CREATE TEMP TABLE e AS SELECT * FROM events WHERE memory_id = :id;
        UPDATE e SET n = n + 1, memory_id = :forged, payload = :twin, payload_commit = :twin_promise;
        CREATE TEMP TABLE r AS SELECT * FROM records WHERE id = :id;
        UPDATE r SET id = :forged, position = position + 1, arrival = arrival + 1;
        INSERT INTO events SELECT * FROM e;
        INSERT INTO records ({_RECORD}) SELECT {_RECORD} FROM r""",
    ),
    ("delete_event", "a version is deleted from the file", "DELETE FROM events WHERE memory_id = :id"),
    ("delete_record", "a memory is deleted from the file", "DELETE FROM records WHERE id = :id"),
    (
        "rewrite_chain",
        "a commit is rewritten, hashes and all",
        """
        UPDATE events SET payload = :payload, payload_commit = :promise WHERE memory_id = :id;
        UPDATE commits SET events_hash = :joined, hash = :hash WHERE id = :commit;
        UPDATE tenants SET hash = :hash WHERE tenant = :tenant""",
    ),
)
#: What a commit and what is computed from it stand in, with the head.
TABLES = ("commits", "events", "records", "features", "marks", "tenants")


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


def _victim(store: AttackStore) -> str:
    """Return the id of a memory in the newest commit."""
    return str(
        remember_text(store.owner, f"Ships land at {WORD} pier {store.owner.status()['commits'] + 1}.").records[0].id
    )


def _values(store: AttackStore, memory_id: str) -> dict[str, Any]:
    """Return what statements name: a memory of the newest commit, and that commit bent, with every hash new."""
    commit, events = list(store.owner.journal(after=store.owner.log(limit=1)[0].commit.seq - 1))[-1]
    salt, payload, forged = events[0].salt, events[0].payload or b"", memory_id[:-4] + "d1ff"
    bent, twin = payload.replace(WORD.encode(), BENT.encode()), payload.replace(memory_id.encode(), forged.encode())
    promise = commitment(salt, bent)
    edited = [replace(events[0], payload=bent, payload_commit=promise), *events[1:]]
    hashes = {"joined": events_hash(edited), "hash": recompute_commit_hash(commit, edited), "promise": promise}
    names = {"id": memory_id, "forged": forged, "commit": commit.id, "tenant": store.tenant}
    return {**names, **hashes, "payload": bent, "twin": twin, "twin_promise": commitment(salt, twin), "nothing": b"\0"}


def _look(store: AttackStore, *ids: str) -> Seen:
    """Open the store as another process would, and read all that it gives of these memories."""
    given: list[str] = []
    faults: set[str] = set()
    code = ""
    try:
        with store.open_another() as again:
            code = refusal_code(lambda: faults.update(fault.check for fault in again.verify().faults))
            found: list[Any] = []
            code = refusal_code(lambda: found.append(again.get(ids[0]))) or code
            refusal_code(lambda: found.extend(map(again.get, ids[1:])))
            refusal_code(lambda: found.extend(hit.memory for hit in again.recall(f"ships {WORD} {BENT}")))
            given += [encode_record(each).decode() for each in found if each.id in ids]
    except KeepwardError as fault:
        code = fault.code
    return Seen("".join(given), code, faults)


@contextmanager
def _closed(store: AttackStore) -> Iterator[None]:
    """Close the store while it is attacked; put its rows and its noted heads back after that, and open it again."""
    store.owner.close()
    store.target.save_state("before")
    try:
        yield
    finally:
        store.target.restore_state("before", home=True)
        store.begin()


def _edit(statements: str) -> Callable[[AttackStore], AttackResult]:
    """Return an attack that edits rows, and looks for the memory, and for one that was forged."""

    def run(store: AttackStore) -> AttackResult:
        values = _values(store, _victim(store))
        with _closed(store):
            before = _look(store, values["id"])
            store.target.execute(statements, values)
            after = _look(store, values["id"], values["forged"])
        held = bool(after.faults) and after.given in {"", before.given}
        refused = "" if after.given else "; reads refuse it"
        return AttackResult(held, before.whole, f"verify: {', '.join(sorted(after.faults))}{refused}")

    return run


for _name, _title, _statements in EDITS:
    attack(_title, _name)(_edit(_statements))


def _bend(store: AttackStore, kind: str, name: str, word: str, bent: str) -> None:
    """Replace a word in the body of a document."""
    key = {"kind": kind, "id": name}
    ((body,),) = store.target.rows("SELECT body FROM documents WHERE kind = :kind AND id = :id", key)
    packed = kind == "receipts"
    told = (zlib.decompress(body) if packed else bytes(body)).replace(word.encode(), bent.encode())
    values = {**key, "body": zlib.compress(told) if packed else told}
    store.target.execute("UPDATE documents SET body = :body WHERE kind = :kind AND id = :id", values)


@attack("a receipt is edited")
def bend_receipt(store: AttackStore) -> AttackResult:
    memory_id = _victim(store)
    made = store.owner.context(f"ships {WORD}").receipt
    receipt = made.id if made else ""
    control = store.owner.replay(receipt).same
    with _closed(store):
        control = control and _look(store, memory_id).whole
        _bend(store, "receipts", receipt, '"version":1', '"version":2')
        with store.open_another() as again:
            code, faults = refusal_code(again.replay, receipt), again.verify().faults
    return AttackResult(bool(code and faults), control, f"replay: {code}")


@attack("a proposal is edited while it waits")
def bend_proposal(store: AttackStore) -> AttackResult:
    said = remember_text(store.agent, f"Keep {WORD} open.", **store.core)
    if said.outcome != "quarantined":
        return AttackResult(not is_committed(said), False, said.outcome)
    item = said.item
    with _closed(store):
        _bend(store, "proposals", item.id, WORD, BENT)
        with store.open_another() as again:
            code = refusal_code(again.approve, item.id, digest=item.digest)
            held = bool(code) and BENT not in again.snapshot().text
    control = is_committed(store.owner.approve(item.id, digest=item.digest)) or not held
    return AttackResult(held, control, f"approval: {code}")


def _replaced(store: AttackStore, change: Callable[[], None]) -> AttackResult:
    """Attack everything, with a copy at hand of how it was before the newest commit; see what the anchor says."""
    memory_id = _victim(store)
    store.owner.close()
    store.target.save_state("older")
    store.begin()
    _victim(store)
    with _closed(store):
        before = _look(store, memory_id)
        change()
        after = _look(store, memory_id)
    return AttackResult(after.code == "tampered" and "anchor" in after.faults, before.whole, f"anchor: {after.code}")


@attack("the newest commit is cut off")
def cut_tail(store: AttackStore) -> AttackResult:
    return _replaced(store, lambda: store.target.restore_state("older", tables=TABLES))


@attack("every table is emptied")
def empty_tables(store: AttackStore) -> AttackResult:
    def empty() -> None:
        gone = [name for name in store.target.tables() if name not in {"meta", "migrations"}]
        store.target.execute("; ".join(f"DELETE FROM {name}" for name in gone))

    return _replaced(store, empty)


@attack("a store from elsewhere is put in place")
def foreign_store(store: AttackStore) -> AttackResult:
    memory_id, text = _victim(store), f"ships {WORD}"
    secret = store.owner.create_token(name="drill-thief", rights="owner").secret

    def tried(memory: Any) -> list[str]:
        reads = (
            refusal_code(memory.get, memory_id),
            refusal_code(memory.recall, text),
            refusal_code(memory.context, text),
        )
        return [*reads, refusal_code(memory.snapshot), refusal_code(memory.with_token, secret)]

    control = not any(tried(store.owner))
    with store.open_another(config_dir=store.target.home.with_name("stranger")) as stranger:
        codes = set(tried(stranger))
    return AttackResult(codes == {"not_adopted"}, control, f"opening: {', '.join(sorted(codes))}")


@attack("settings from elsewhere loosen policy")
def foreign_settings(store: AttackStore) -> AttackResult:
    from keepward import settings_trust
    from keepward.settings import FILE_NAME, load

    home = store.target.home
    # Beside a database there is no file; its settings lie with the keys.
    beside = isinstance(place := parse_location(store.target.address), Path)
    file = (store.target.store if beside else home) / FILE_NAME
    file.write_text('embedder = "http:https://thief.example/v1#m"\n[policy.access]\ncore = "read_write"\n')
    try:
        found = load(store=place, environ={"KEEPWARD_HOME": str(home)})
        settings_trust.accept(home, file, file.read_bytes())
        meant = load(store=place, environ={"KEEPWARD_HOME": str(home)})
    finally:
        file.unlink()
    usual = Policy()
    held = (found.policy.access, found.embedder) == (usual.access, "auto")
    control = meant.policy.access != usual.access and meant.embedder != "auto"
    return AttackResult(held, control, f"not accepted: {', '.join(found.withheld)}")


@attack("the file is cut to nothing")
def cut_file(store: AttackStore) -> AttackResult:
    memory_id = _victim(store)
    with _closed(store):
        before = _look(store, memory_id)
        store.target.destroy()
        code = _look(store, memory_id).code
        held = bool(code) and store.target.is_destroyed
    return AttackResult(held, before.whole, f"opening: {code}")
