"""Reads: recall, lists, and the state at any commit of the past.

Invariants
(1) Reads do not write the journal; uses are counted beside it and written with a later write.
(2) Filters apply before limits; every order is total.
(3) What cannot take part (no embedder, a damaged row) is said in the result, never passed over.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from keepward.engine.features import usual_request, vectors_of
from keepward.engine.index import from_database, unembedded
from keepward.engine.reranker import ActiveReranker, active_reranker
from keepward.engine.session import Engine, Session
from keepward.engine.view import (
    GRANT,
    WITHHELD,
    commit_of,
    fetch,
    ids_of,
    notes_of,
    reaches,
    still_shown,
    unsound,
    veiled,
    withheld,
    withholds,
    without_reason,
)
from keepward.errors import InvalidInput, ModelUnavailable, NotFound
from keepward.model.commit import EMPTY_HASH, Head
from keepward.model.journal import Version
from keepward.model.memory import Record, Sensitivity, as_read, is_textless
from keepward.model.query import (
    MOST_HITS,
    ORDERS,
    PURPOSES,
    AsOf,
    Filter,
    Hit,
    Memories,
    Recall,
    check_limit,
    check_names,
)
from keepward.model.trust import visible_from
from keepward.model.value import to_micros, unknown
from keepward.ports.store import Found

if TYPE_CHECKING:
    from keepward.retrieval.index import Allowed, Index, Query, Scored

#: Longest query, in characters.
QUERY = 32_768
_WHY = {"text": "words", "vector": "meaning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where a read stands: in the present, or after a commit of the past."""

    #: Number of the commit; None in the present.
    seq: int | None
    now: datetime
    #: The state that is read, by number and by name.
    level: int
    head: str


@dataclass(slots=True, kw_only=True)
class Need:
    """How much of what is ranked has to be read."""

    #: Returns, given what was read last, how many more to read; 0 for enough.
    more: Callable[[Sequence[Record]], int]
    #: What was ranked and not read, best first.
    left: list[Scored] = field(default_factory=list)


_AS_OF = (
    "a moment of the past is a commit's number or id, the name of a head, an aware datetime, or ISO 8601 text such as "
    "2026-03-01T09:30:00Z"
)


def seq_of(session: Session, as_of: AsOf) -> int | None:
    """Return the commit number a moment of the past means; None for the present.

    A number is a commit, ``0`` the empty store; text is a commit id, a head's name or an ISO instant.

    Raises:
        NotFound: no such commit.
        InvalidInput: text that is none of these.
    """
    if as_of is None:
        return None
    if isinstance(as_of, str):
        number = as_of.split(":")[0] if as_of.count(":") == 1 else as_of
        if number.isdecimal():
            return seq_of(session, int(number))
        view = session.store.commit(session.tenant, as_of)
        if view is not None:
            return view.commit.seq
        if len(as_of) == 36 and as_of.count("-") == 4:
            # It is an id, only of no commit here.
            raise NotFound("there is no commit by that id in this tenant; `keepward log` lists them")
        from keepward.model.value import parse_instant

        try:
            instant = parse_instant(as_of)
        except InvalidInput as fault:
            raise InvalidInput(_AS_OF) from fault
        return seq_of(session, instant)
    if isinstance(as_of, datetime):
        if as_of.tzinfo is None:
            raise InvalidInput(_AS_OF)
        commits = range(1, session.store.head(session.tenant).seq + 1)
        return bisect_right(commits, as_of, key=lambda seq: commit_of(session, str(seq)).commit.at)
    if isinstance(as_of, bool) or not isinstance(as_of, int):
        raise InvalidInput(_AS_OF)
    if as_of < 0 or as_of > session.store.head(session.tenant).seq:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    return as_of


def moment(session: Session, as_of: AsOf, seq: int | None) -> datetime:
    """Return the clock of a read: now, the instant named, or that of the commit named."""
    view = session.store.commit(session.tenant, str(seq)) if seq and not isinstance(as_of, datetime) else None
    at = view.commit.at if view else session.clock.now()
    return as_of if isinstance(as_of, datetime) else at


def stand(session: Session, as_of: AsOf) -> Stand:
    """Return where a read stands.

    Raises:
        NotFound, InvalidInput: as for ``seq_of``.
    """
    seq, now, head = seq_of(session, as_of), session.clock.now(), Head(seq=0, hash=EMPTY_HASH)
    # A commit is read whole, and some are large: instant and name come of one reading.
    view = session.store.commit(session.tenant, str(seq)) if seq else None
    if seq is None:
        head = session.store.head(session.tenant)
    elif view is not None:
        now, head = view.commit.at, Head(seq=seq, hash=view.commit.hash)
    instant = as_of if isinstance(as_of, datetime) else now
    return Stand(seq=seq, now=instant, level=head.seq, head=head.name)


def recall(
    session: Session,
    query: str,
    filters: Filter,
    *,
    limit: int,
    purpose: str,
    as_of: AsOf = None,
    order: str = "learned",
    floor: float | None = None,
    counts: bool = True,
) -> Recall:
    """Return the memories most relevant to a query, best first; weak ones are marked.

    ``floor`` is the least score of a hit, 0..1; None for all.

    Raises:
        InvalidInput: an empty query, a limit outside of 1 to 1,000, a floor outside of 0 to 1, an unknown purpose,
            order, tier, kind or content type.
    """
    check_limit(limit, MOST_HITS)
    if floor is not None and not 0.0 <= floor <= 1.0:
        raise InvalidInput("a floor is a score from 0 to 1; leave it out for all hits")
    check_names(tiers=filters.tiers, kinds=filters.kinds, content_types=filters.content_types)
    found = search(session, query, filters, limit=limit, purpose=purpose, as_of=as_of, order=order)
    if floor is not None:
        found = replace(found, hits=tuple(hit for hit in found.hits if hit.score >= floor))
    if counts and not session.inspects:
        session.engine.count_uses(session.tenant, (hit.memory.id for hit in found.hits if not hit.weak))
    if as_of is not None:
        return replace(found, notes=(*found.notes, *notes_of(unsound(found.withheld))))
    gone = withheld(session, filters, live_at=found.now, damaged=found.withheld)
    return replace(found, withheld=ids_of(gone), notes=(*found.notes, *notes_of(gone)))


def search(
    session: Session,
    query: str,
    filters: Filter,
    *,
    limit: int,
    purpose: str,
    as_of: AsOf = None,
    gated: bool = True,
    order: str = "learned",
    unread: Collection[str] = (),
    need: Need | None = None,
    at: Stand | None = None,
) -> Recall:
    """Recall without counting uses; ``gated`` off also returns what the purpose or sensitivity excludes.

    What ``unread`` names takes its place in the ranking and is not among the hits; with a ``need``, memories are read
    by rank until that is met. ``at`` is where ``as_of`` stands, if that is known already. What was ranked and does not
    hold is named in ``withheld``, and in no note yet.
    """
    if purpose not in PURPOSES:
        raise InvalidInput(unknown("purpose", purpose, PURPOSES))
    if order not in ORDERS:
        raise InvalidInput(unknown("order", order, ORDERS))
    if not query.strip():
        raise InvalidInput("there is nothing to look for: give a query")
    if len(query) > QUERY:
        raise InvalidInput(f"a query is at most {QUERY} characters: ask about the gist of it")
    at = at or stand(session, as_of)
    seq, now, name = at.seq, at.now, at.head
    if not (session.policy.enabled and session.policy.recall):
        what = "recall" if session.policy.enabled else "memory"
        return Recall(hits=(), used=(), notes=(f"{what} is switched off by policy",), head=name, now=now)
    asked, notes = _query(session.engine, query, now)
    allowed = _allowed(session.engine, filters, purpose, now, gated=gated)
    reranker, told = _reranker(session, asked, at.level) if order == "learned" else (None, [])
    notes += told
    database = seq is None and from_database(session.engine, session.tenant)
    with _ranking(session, asked, allowed, filters, limit, seq=seq, database=database) as ranked:
        index, lacking = ranked, ranked.unmatched(asked, allowed)
        if seq is None and (lacking or ranked.stale):
            index, lacking = _complete(session, asked, index, lacking, database=database)
        weights = reranker.weights if reranker else None
        texts = partial(_texts, session, seq)
        scored = index.search(asked, allowed, limit, weights=weights, by_cosine=order == "cosine", texts=texts)
    found = _read(session, [each for each in scored if each.id not in unread], need, seq)
    if seq is not None:
        past = still_shown(session, found.records)
        notes += [f"left out: {WITHHELD}"] if len(past) < len(found.records) else []
        found = dataclasses.replace(found, records=past)
    hits = _hits(scored, found, now)
    signals = {signal for each in scored for signal in each.used}
    used = tuple(signal for signal in ("text", "vector") if signal in signals)
    if lacking:
        notes.append(_apart(lacking, asked.vector_model, past=seq is not None))
    if reranker is not None:
        notes.append(f"the learned reranker {reranker.version} put them in order")
    return Recall(
        hits=hits,
        used=used or ("text",),
        notes=tuple(notes),
        head=name,
        now=now,
        reranker=reranker.version if reranker else None,
        withheld=tuple(found.damaged),
        candidates="database" if database else "process",
    )


def made_with(session: Session, found: Recall) -> dict[str, str]:
    """Return what a receipt says of the models that made an answer, and of where candidates came from."""
    embedder = session.embedder.id if session.embedder else "none"
    return {
        "embedder": embedder,
        "reranker": found.reranker or "none",
        **found.origin,
    }


@contextmanager
def _ranking(
    session: Session, asked: Query, allowed: Allowed, filters: Filter, limit: int, *, seq: int | None, database: bool
) -> Iterator[Index]:
    """Have the index at hand that ranks a query: a part of the present one from the database, or one in process."""
    if database:
        from keepward.engine.candidates import gather

        yield gather(session.store, session.tenant, asked, allowed, filters, limit)
        return
    with session.indexes.lock:
        if seq is None:
            yield session.indexes.level(session.store, session.tenant)
        else:
            yield session.indexes.at(session.store, session.tenant, seq)


def _texts(session: Session, seq: int | None, ids: Sequence[str]) -> dict[str, str]:
    return {each.id: each.text for each in session.store.records(session.tenant, ids, as_of=seq).records}


def _read(session: Session, wanted: Sequence[Scored], need: Need | None, seq: int | None) -> Found:
    """Return the records of what was ranked, as far as there is need of them, of one snapshot."""
    found = Found()
    last: list[Record] = []
    with session.store.together(session.tenant):
        while wanted and (step := need.more(last) if need else MOST_HITS):
            part = session.store.records(session.tenant, [each.id for each in wanted[:step]], as_of=seq)
            last = part.records
            found.records.extend(last)
            found.damaged.extend(part.damaged)
            wanted = wanted[step:]
    if need:
        need.left.extend(wanted)
    return found


def _complete(session: Session, asked: Query, index: Index, lacking: int, *, database: bool) -> tuple[Index, int]:
    """Return the index and how many entries lack vectors, once those were taken in that were computed meanwhile."""
    if asked.vector_model is None:
        return index, 0
    whole = not unembedded(session.engine, session.tenant)
    if not database and session.indexes.refreshed(session.tenant, whole=whole):
        return session.indexes.level(session.store, session.tenant), 0
    if not whole:
        session.engine.wake(wrote=False)
    return index, 0 if whole else lacking


def _apart(lacking: int, model: str | None, *, past: bool) -> str:
    """Return the sentence on memories without vectors of the embedder in use."""
    many = "1 memory in reach has" if lacking == 1 else f"{lacking} memories in reach have"
    told = f"{many} no vector of this embedder ({model}); found by words alone"
    return told if past else f"{told} until `keepward reindex` has run"


def _reranker(session: Session, asked: Query, seq: int) -> tuple[ActiveReranker | None, list[str]]:
    """Return the reranker that orders a query at a commit, or None and what it could not do."""
    active = active_reranker(session, seq)
    if active.fault is not None:
        return None, [f"the learned reranker was left out: {active.fault}; run `keepward doctor`"]
    if active.weights is None:
        return None, []
    unfit = active.unfit(asked.vector_model)
    return (active, []) if unfit is None else (None, [f"the learned reranker was left out: {unfit}"])


def _query(engine: Engine, text: str, now: datetime) -> tuple[Query, list[str]]:
    from keepward.retrieval.advice import is_advice_or_task
    from keepward.retrieval.analyze import terms
    from keepward.retrieval.dates import named_days
    from keepward.retrieval.fusion import particular
    from keepward.retrieval.index import Query

    # "yesterday" in a question names a day, as it does in what was said.
    days = named_days(text, to_micros(now))
    words = tuple(terms("\n".join((text, *(each.phrase for each in days)))))
    advice = is_advice_or_task(text)
    # Advice is wanted for days to come.
    asked = Query(text=text, terms=words, days=() if advice else days)
    if engine.embedder is None:
        return asked, ["no embedder: found by words alone"]
    try:
        vector = vectors_of(engine.embedder, [text])[0]
        if advice:
            vector = particular(vector, usual_request(cast("Hashable", engine.embedder)))
    except ModelUnavailable as fault:
        return asked, [f"the embedder is unavailable: found by words alone ({fault})"]
    return dataclasses.replace(asked, vector=vector, vector_model=engine.embedder.id), []


def _allowed(engine: Engine, filters: Filter, purpose: str, now: datetime, *, gated: bool) -> Allowed:
    from keepward.retrieval.index import Allowed

    def some(names: Sequence[str]) -> frozenset[str] | None:
        return frozenset(names) if names else None

    least = int(engine.policy.least_trust[purpose])
    return Allowed(
        scopes=frozenset(filters.scopes),
        now=to_micros(now),
        tiers=some(filters.tiers),
        kinds=some(filters.kinds),
        tags=some(filters.tags),
        content_types=some(filters.content_types),
        subject=filters.subject,
        category=filters.category,
        session=filters.session,
        min_importance=filters.min_importance or None,
        min_trust=least if gated and least else None,
        include_sensitive=filters.include_sensitive or not gated,
        ids=filters.ids,
    )


def _hits(scored: Sequence[Scored], found: Found, now: datetime) -> tuple[Hit, ...]:
    # The row was read after the ranking. One that ended in between is no answer any more.
    records = {record.id: record for record in found.records if record.is_live(now) and not is_textless(record)}
    why = {used: tuple(_WHY[signal] for signal in used) for used in {each.used for each in scored}}
    kept = [each for each in scored if each.id in records]
    return tuple(
        Hit(
            rank=rank,
            memory=records[each.id],
            score=each.score,
            parts=each.parts,
            why=why[each.used],
            weak=each.weak,
        )
        for rank, each in enumerate(kept, 1)
    )


def find(session: Session, filters: Filter, *, limit: int | None, include_ended: bool, as_of: AsOf = None) -> Memories:
    """Return the memories that pass, newest first.

    Raises:
        InvalidInput: a limit below 1, an unknown tier, kind or content type.
    """
    check_limit(limit)
    check_names(tiers=filters.tiers, kinds=filters.kinds, content_types=filters.content_types)
    seq = seq_of(session, as_of)
    now = moment(session, as_of, seq)
    live_at = None if include_ended else now
    filters = replace(filters, at=now)
    found = session.store.find(session.tenant, filters, live_at=live_at, limit=limit, as_of=seq)
    kept_back: tuple[str, ...] = ()
    if filters.include_sensitive and not session.actor.able("sensitive"):
        hidden = any(record.sensitivity is Sensitivity.SENSITIVE for record in found.records)
        if hidden:
            kept_back = (f"sensitive memories were left out: asking for them {GRANT} --can read,propose,sensitive`",)
        filters = replace(filters, include_sensitive=False)
        if hidden or found.damaged:
            found = session.store.find(session.tenant, filters, live_at=live_at, limit=limit, as_of=seq)
    if seq is not None:
        past = still_shown(session, found.records)
        kept_back = kept_back or ((f"left out: {WITHHELD}",) if len(past) < len(found.records) else ())
        found = dataclasses.replace(found, records=past)
    gone = withheld(session, filters, live_at=live_at, damaged=found.damaged) if seq is None else unsound(found.damaged)
    records = [as_read(record, now) for record in found.records]
    return Memories(records, withheld=ids_of(gone), notes=(*notes_of(gone), *kept_back))


def get(session: Session, memory_id: str, *, as_of: AsOf = None) -> Record:
    """Return a memory, whatever its status, or as it stood at a commit.

    It has faded to then; how often it was used, and what was made from it, stand beside.
    """
    with session.store.together(session.tenant):
        seq = seq_of(session, as_of)
        record = fetch(session, memory_id, as_of=seq)
        count, last = session.store.usage(session.tenant, [record.id]).get(record.id, (0, None))
        at = moment(session, as_of, seq)
        children = session.store.children(session.tenant, [record.id])
        made = session.store.records(session.tenant, children, as_of=seq).records if children else []
    return as_read(
        record,
        at,
        uses=count + session.engine.uses[session.tenant, record.id],
        last_used=session.engine.used_at.get((session.tenant, record.id), last),
        children=tuple(sorted(each.id for each in made if reaches(session, each.scope))),
    )


def history(session: Session, memory_id: str) -> list[Version]:
    """Return every version of a memory, oldest first; those of a time when it lay out of reach are left out."""
    record = fetch(session, memory_id)
    versions: list[Version] = []
    for made, step in session.store.history(session.tenant, record.id):
        after, before = step.after, step.before
        if not reaches(session, after.scope):
            continue
        before = before if before and reaches(session, before.scope) else None
        view = made
        if withholds(session, after):
            after, view = veiled(after), without_reason(made)
        if before and withholds(session, before):
            before, view = veiled(before), without_reason(made)
        versions.append(Version(record=after, before=before, op=step.op, commit=view.commit, details=view.details))
    return versions


def own_and_shared(session: Session, filters: Filter) -> Filter:
    """Return the filter narrowed to what the handle's scope sees."""
    return replace(filters, scopes=visible_from(session.scope))
