"""What a handle may see: what lies in its reach, what is withheld from it, and what nobody can be shown.

Invariants
(1) A handle sees its own scope and those above; who decides about what others said also sees those below.
(2) Every read that would have shown a memory which does not hold names it, whether its row was edited or is gone.
(3) Core memory steers a model: a context that should hold a block of it is not compiled without it, unless the caller
    names the block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from keepward.core.change import BOOKKEEPING
from keepward.core.commit import Step
from keepward.core.journal import CommitView, Delivery
from keepward.core.memory import WORD_LISTS, WORDS, Record, Sensitivity, Status
from keepward.core.query import Filter
from keepward.core.trust import SHARED, ActorKind, visible_from
from keepward.core.value import plain_key, plain_name
from keepward.errors import InvalidInput, NotFound, Tampered, Unauthorised
from keepward.ports.store import PREFIX, Withheld
from keepward.services.session import Session

#: Memories looked at that begin with the same letters of an id.
MOST_ALIKE = 64
#: Kinds of actor that work on a whole store: upkeep, and what brings memories in. No token makes one of these.
_WHOLE = frozenset({ActorKind.JOB, ActorKind.SYSTEM, ActorKind.IMPORTER})


def ask_for_sensitive(session: Session) -> None:
    """See that a handle may ask for sensitive memories.

    Raises:
        Unauthorised: it may not.
    """
    if not session.actor.able("sensitive"):
        raise Unauthorised(f"asking for sensitive memories {GRANT} --can read,propose,sensitive`")


#: How a right is got that is no credential's by default.
GRANT = "takes a right of its own: the owner gives it with `keepward token create --name NAME"
#: Stands where the words of a sensitive memory would, for who may not read them.
WITHHELD = "sensitive: ask the owner for a token with the right `sensitive`"


def reaches(session: Session, scope: str) -> bool:
    """Whether a handle sees what lies in a scope: its own and those above, as recall does.

    Who decides about what others said also sees what lies below, and so do the programs that serve a whole store.
    """
    if scope in visible_from(session.scope):
        return True
    oversees = session.actor.may_decide or session.actor.kind in _WHOLE
    return oversees and session.scope in visible_from(scope)


def see_below(session: Session, scope: str) -> None:
    """See that a handle may list what lies in a scope and below it.

    Who decides about what others said may, where it stands at that scope or above. Others may in what is theirs alone:
    at the scope of their token, or of their handle where there is none, and below it. The shared scope is nobody's.

    Raises:
        Unauthorised: it may not.
    """
    if session.scope in visible_from(scope):
        own = _token_scope(session) or session.scope
        if own != SHARED or session.actor.may_decide or session.actor.kind in _WHOLE:
            return
    raise Unauthorised(
        "what lies below a scope is listed for its own agent and for who decides: open the store at that scope"
    )


def write_scope(session: Session) -> str:
    """Return the scope at and below which a handle may write: that of its token, unless it has the right ``share``."""
    return SHARED if session.actor.able("share") else _token_scope(session) or SHARED


def _token_scope(session: Session) -> str | None:
    """Return the scope of a handle's token; None where it has no token."""
    if session.actor.credential is None:
        return None
    from keepward.services.tokens import known

    return known(session, session.actor.credential).scope


def withholds(session: Session, record: Record) -> bool:
    """Whether a handle may not read what a record says, since it is sensitive."""
    if record.sensitivity is not Sensitivity.SENSITIVE or record.status is Status.ERASED:
        return False
    return not (session.actor.able("sensitive") or session.actor.kind in _WHOLE)


def withheld_from(session: Session, records: Sequence[Record]) -> frozenset[str]:
    """Return the ids of memories a handle may not read: sensitive as these records have them, or by now."""
    if session.actor.able("sensitive") or not records:
        return frozenset()
    newest = session.store.records(session.tenant, sorted({record.id for record in records})).records
    return frozenset(record.id for record in (*records, *newest) if withholds(session, record))


def still_shown(session: Session, records: Sequence[Record]) -> list[Record]:
    """Return records of the past without those that became sensitive since, where the handle may not read that."""
    hidden = withheld_from(session, records)
    return [record for record in records if record.id not in hidden or withholds(session, record)]


def veiled(record: Record) -> Record:
    """Return a record without what it says: whose, where and when it is stay, and how to get at the rest."""
    bare: dict[str, Any] = {**dict.fromkeys(WORDS), **dict.fromkeys(WORD_LISTS, ())}
    return replace(record, text=WITHHELD, metadata_json=None, occurred_at=None, **bare)


def seen(session: Session, record: Record) -> Record | None:
    """Return a record as a handle may read it: without its words where these are withheld, None where it lies apart."""
    if not reaches(session, record.scope):
        return None
    return veiled(record) if withholds(session, record) else record


def oversees(session: Session, scope: str) -> bool:
    """Whether a handle reads what the journal and receipts say of a scope: all of it, for who decides."""
    return session.actor.may_decide or reaches(session, scope)


def visible(session: Session, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps a handle may read, without the words of those that are withheld from it."""
    within = [
        step for step in steps if all(oversees(session, side.scope) for side in (step.before, step.after) if side)
    ]
    hidden = withheld_from(session, [side for step in within for side in (step.before, step.after) if side])
    return tuple(
        replace(step, before=step.before and veiled(step.before), after=veiled(step.after))
        if step.after.id in hidden
        else step
        for step in within
    )


def readable(session: Session, view: CommitView) -> CommitView:
    """Return a commit with what the handle may read of it; without its reason, where words are withheld."""
    steps = visible(session, view.steps)
    hidden = any(step.after.text == WITHHELD for step in steps)
    return replace(without_reason(view) if hidden else view, steps=steps)


def without_reason(view: CommitView) -> CommitView:
    """Return a commit without the words that its writer gave as the reason; its hash still holds."""
    commit = replace(view.commit, salt=b"", payload=None, payload_commit=view.commit.commitment())
    return replace(view, commit=commit, details=replace(view.details, reason=WITHHELD))


def fetch(session: Session, memory_id: str, *, as_of: int | None = None, own: bool = False) -> Record:
    """Return the newest record of a memory that the handle reaches and may read.

    ``memory_id`` is its id, its key as seen from the handle's scope, the first 8 or more characters of its id, or an
    alias, tried in this order. ``own`` also gives a sensitive memory to the one who wrote it, to change it unread.

    Raises:
        NotFound: no such memory within reach.
        Unauthorised: it is sensitive, and the handle has no right to read that.
        InvalidInput: more than one memory within reach begins so.
        Tampered: its row does not match its seal.
    """
    record = _resolve(session, memory_id, as_of)
    see_readable(session, record, own=own, newest=as_of is None)
    return record


def see_readable(session: Session, record: Record, *, own: bool, newest: bool = False) -> None:
    """See that a handle may read a memory, or with ``own`` change one of its own; ``newest`` is what was just read.

    Raises:
        Unauthorised: it may not.
    """
    if own and record.author == session.actor.label:
        return
    if withholds(session, record) if newest else withheld_from(session, [record]):
        raise Unauthorised(f"memory {record.id} is {WITHHELD}")


def _resolve(session: Session, memory_id: str, as_of: int | None) -> Record:
    names = list(dict.fromkeys((memory_id, plain_name(memory_id))))
    found = session.store.records(session.tenant, names, as_of=as_of)
    within = [record for record in found.records if reaches(session, record.scope)]
    if by_id := next((record for record in within if record.id in names), None):
        return by_id
    damaged = f"memory {memory_id} does not match its seal and was not used; run `keepward verify`"
    if not {*names}.isdisjoint(found.damaged):
        raise Tampered(damaged)
    ended: list[Record] = []
    # The nearest scope wins, as in a context.
    for scope in sorted(visible_from(session.scope), key=lambda each: (-len(each), each)):
        under = _under(session, scope, memory_id)
        if holder := _active(under):
            return holder if as_of is None else _resolve(session, holder.id, as_of)
        ended += under
    if len(memory_id) >= PREFIX:
        begun = session.store.records(
            session.tenant, session.store.beginning(session.tenant, memory_id, limit=MOST_ALIKE), as_of=as_of
        )
        alike = [record for record in begun.records if reaches(session, record.scope)]
        if len(alike) > 1:
            raise InvalidInput("more than one memory begins so; give more of its id")
        if alike:
            return alike[0]
    if ended:
        last = max(ended, key=lambda record: (record.updated_at or record.created_at, record.id))
        raise NotFound(f"what stood under that key is {last.status.value}: name it by its id, {last.id}")
    # Anybody who writes chooses aliases, so every other name comes first.
    if within:
        return within[0]
    if found.damaged:
        raise Tampered(damaged)
    raise NotFound("there is no memory by that id or key here; check the id, the tenant and the scope")


def says_the_same(session: Session, record: Record, version: int) -> bool:
    """Whether nothing but bookkeeping has come between an earlier version of a memory and this newest one."""
    if not 0 < version < record.version:
        return version == record.version
    later = [step for step in session.store.steps(session.tenant, record.id) if step.after.version > version]
    return bool(later) and all(step.op in BOOKKEEPING for step in later)


def occupant(session: Session, scope: str, key: str) -> Record | None:
    """Return the active memory under a key of exactly one scope; an expired one still holds its key."""
    return _active(_under(session, scope, key))


def _under(session: Session, scope: str, key: str) -> Sequence[Record]:
    """Return what stands or stood under a key of exactly one scope."""
    filters = Filter(scopes=(scope,), key=plain_key(key), include_sensitive=True)
    return session.store.find(session.tenant, filters, live_at=None, limit=None).records


def _active(records: Sequence[Record]) -> Record | None:
    return next((record for record in records if record.status is Status.ACTIVE), None)


#: Ids that a sentence names; the field holds all of them.
_NAMED = 5
_UNSOUND = "its content does not match its seal"


def withheld(
    session: Session, filters: Filter, *, live_at: datetime | None, damaged: Iterable[str] = ()
) -> list[Withheld]:
    """Return what a read of the present could not show, by id; ``damaged`` is what it met with itself."""
    found = {each.id: each for each in session.store.withheld(session.tenant, filters, live_at=live_at)}
    for each in unsound(damaged):
        found.setdefault(each.id, each)
    return sorted(found.values(), key=lambda each: each.id or "~")


def unsound(damaged: Iterable[str], *, core: bool = False) -> list[Withheld]:
    """Return what a read met with that does not hold, in the order given."""
    return [Withheld(id=name, key=None, core=core, why=_UNSOUND) for name in dict.fromkeys(damaged)]


def ids_of(found: Iterable[Withheld]) -> tuple[str, ...]:
    """Return the ids, in order, of those that have one."""
    return tuple(each.id for each in found if each.id is not None)


def notes_of(found: Sequence[Withheld]) -> list[str]:
    """Return one sentence on what was withheld and what to do; none where nothing was."""
    if not found:
        return []
    named = [each for each in found if each.id is not None]
    listed = [f"{_name(each)}: {each.why}" for each in named[:_NAMED]]
    if len(named) > _NAMED:
        listed.append(f"and {len(named) - _NAMED} more")
    listed += [each.why for each in found if each.id is None]
    many = "1 memory is" if len(found) == 1 else f"{len(found)} memories are"
    mend = "`keepward verify` looks closer, `keepward rebuild` writes anew what the journal still holds"
    return [f"{many} withheld ({'; '.join(listed)}); {mend}"]


def refuse_without_core(found: Sequence[Withheld], without: Collection[str]) -> None:
    """Let a context be compiled only where no core memory is withheld but what the caller can do without; see (2).

    ``without`` holds keys and ids; ``unknown`` stands for what has neither any more.

    Raises:
        Tampered: another one is.
    """
    missing = [each for each in found if each.core and not {each.key, each.id or "unknown"} & {*without}]
    if missing:
        wrong = "; ".join(f"{_name(each)}: {each.why}" for each in missing)
        name = missing[0].key or missing[0].id or "unknown"
        raise Tampered(
            f"core memory is not whole, so no context was compiled ({wrong}); run `keepward verify`, and "
            f"`keepward rebuild` where the journal holds, or name what may be left out: --without {name}"
        )


def _name(each: Withheld) -> str:
    if each.id is None:
        return "one of which nothing is left"
    return f"{each.id} (`{each.key}`)" if each.key else each.id


def closure(session: Session, touched: Iterable[str]) -> list[str]:
    """Return the ids of what was made from memories over any number of steps, sorted, without these themselves."""
    start = set(touched)
    found: set[str] = set()
    fresh = sorted(start)
    while fresh:
        fresh = [
            name for name in session.store.children(session.tenant, fresh) if name not in found and name not in start
        ]
        found.update(fresh)
    return sorted(found)


def commit_of(session: Session, name: str) -> CommitView:
    """Return a commit as stored, by its id, the first letters of it, or its number.

    Raises:
        NotFound: there is none.
    """
    view = session.store.commit(session.tenant, str(name))
    if view is None:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    return view


def receipt_of_read(session: Session, receipt_id: str, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the receipt of a read within reach, of one of these kinds; their names stand in the refusal.

    Raises:
        NotFound: there is none.
    """
    receipt = session.store.receipt(session.tenant, receipt_id)
    known = receipt is not None and receipt.get("kind") in kinds
    if receipt is None or not known or not oversees(session, receipt["inputs"]["scope"]):
        raise NotFound(f"there is no {' or '.join(kinds.values())} by that id in this tenant")
    return receipt


def items_of(receipt: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, by id, what the receipt of a recall or context says of the memories that it shows."""
    parts = (receipt.get("items", ()), *(section["items"] for section in receipt.get("sections", ())))
    return {item["id"]: item for items in parts for item in items}


def handed_in(session: Session, since: Mapping[str, int]) -> dict[str, set[tuple[str, int]]]:
    """Return, by receipt, the memories and versions that contexts held, from these versions on."""
    held: dict[str, set[tuple[str, int]]] = {}
    for memory_id, version, receipt_id in session.store.deliveries(session.tenant, sorted(since)):
        if version >= since[memory_id]:
            held.setdefault(receipt_id, set()).add((memory_id, version))
    return held


def proven(session: Session, receipt_id: str, pairs: set[tuple[str, int]]) -> Delivery | None:
    """Return a context as far as it held these; None where its receipt does not say so, or is out of reach."""
    with suppress(Tampered):
        receipt = session.store.receipt(session.tenant, receipt_id)
        shown = {} if receipt is None else items_of(receipt)
        if receipt is not None and pairs <= {(name, item["version"]) for name, item in shown.items()}:
            inputs = receipt["inputs"]
            if oversees(session, inputs["scope"]):
                told = {"at": receipt["at"], "actor": receipt["actor"], "purpose": inputs["purpose"]}
                return Delivery(receipt=receipt["id"], items=tuple(sorted(pairs)), **told)
    return None


#: What a replay and a comparison can be made of.
COMPILED = {"compile": "compile receipt"}
