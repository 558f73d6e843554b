"""Reads: recall, lists, and the state at any commit of the past.

Invariants
(1) Reads do not write the journal; uses are counted beside it and written with a later write.
(2) Filters apply before limits; every order is total.
(3) What cannot take part (no embedder, a damaged row) is said in the result, never passed over.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from keepward.core.commit import EMPTY_HASH, Head
from keepward.core.journal import Version
from keepward.core.memory import Record, Sensitivity, as_read, is_textless
from keepward.core.principals import user_of
from keepward.core.query import (
    MAX_HITS,
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
from keepward.core.value import to_micros, unknown_name_message
from keepward.errors import InvalidInput, ModelUnavailable, NotFound
from keepward.services.access import commit_of, corrupt_memories, ids_of, unreadable_memories, unreadable_notes
from keepward.services.index_cache import lacks_embedding, uses_database_index
from keepward.services.reader import GRANT_HINT, HIDDEN_TEXT, VisibleRecords
from keepward.services.request_context import Engine, RequestContext
from keepward.services.reranker import active_reranker
from keepward.services.search_features import mean_advice_vector, vectors_of

if TYPE_CHECKING:
    from keepward.ports.models import Reranker
    from keepward.retrieval.index import Index, IndexHit, Query, RowFilter

#: Longest query, in characters.
MAX_QUERY_LENGTH = 32_768
_WHY = {"text": "words", "vector": "meaning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPoint:
    """The state that a read sees: the present one, or that after a commit of the past."""

    #: Number of the commit; None in the present.
    seq: int | None
    now: datetime
    #: The state that is read.
    head: Head


_AS_OF_FORMS = (
    "a moment of the past is a commit's number or id, the name of a head, an aware datetime, or ISO 8601 text such as "
    "2026-03-01T09:30:00Z"
)


def seq_of(session: RequestContext, as_of: AsOf) -> int | None:
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
        from keepward.core.value import parse_instant

        try:
            instant = parse_instant(as_of)
        except InvalidInput as fault:
            raise InvalidInput(_AS_OF_FORMS) from fault
        return seq_of(session, instant)
    if isinstance(as_of, datetime):
        if as_of.tzinfo is None:
            raise InvalidInput(_AS_OF_FORMS)
        commits = range(1, session.store.head(session.tenant).seq + 1)
        return bisect_right(commits, as_of, key=lambda seq: commit_of(session, str(seq)).commit.at)
    if isinstance(as_of, bool) or not isinstance(as_of, int):
        raise InvalidInput(_AS_OF_FORMS)
    if as_of < 0 or as_of > session.store.head(session.tenant).seq:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    return as_of


def read_point(session: RequestContext, as_of: AsOf) -> ReadPoint:
    """Return the state that a read sees, and its clock: now, the instant named, or that of the commit named.

    Raises:
        NotFound, InvalidInput: as for ``seq_of``.
    """
    seq, now = seq_of(session, as_of), session.clock.now()
    head = session.store.head(session.tenant) if seq is None else Head(seq=0, hash=EMPTY_HASH)
    if seq and (view := session.store.commit(session.tenant, str(seq))) is not None:
        now, head = view.commit.at, Head(seq=seq, hash=view.commit.hash)
    return ReadPoint(seq=seq, now=as_of if isinstance(as_of, datetime) else now, head=head)


def recall(
    session: RequestContext,
    query: str,
    filters: Filter,
    *,
    limit: int,
    purpose: str,
    as_of: AsOf = None,
    order: str = "learned",
    floor: float | None = None,
    within: str | None = None,
) -> Recall:
    """Return the memories most relevant to a query, best first; weak ones are marked.

    ``floor`` is the least score of a hit, 0..1; None for all. ``within`` names the scope at and below which the
    scopes of the filter lie.

    Raises:
        InvalidInput: an empty query, a limit outside of 1 to 1,000, a floor outside of 0 to 1, an unknown purpose,
            order, tier, kind or content type.
    """
    check_limit(limit, MAX_HITS)
    if floor is not None and not 0.0 <= floor <= 1.0:
        raise InvalidInput("a floor is a score from 0 to 1; leave it out for all hits")
    check_names(tiers=filters.tiers, kinds=filters.kinds, content_types=filters.content_types)
    found = search(session, query, filters, limit=limit, purpose=purpose, as_of=as_of, order=order, within=within)
    if floor is not None:
        found = replace(found, hits=tuple(hit for hit in found.hits if hit.score >= floor))
    if not session.inspects:
        session.engine.count_uses(session.tenant, (hit.memory.id for hit in found.hits if not hit.weak))
    if as_of is not None:
        return replace(found, notes=(*found.notes, *unreadable_notes(corrupt_memories(found.withheld))))
    gone = unreadable_memories(session, filters, live_at=found.now, damaged=found.withheld)
    return replace(found, withheld=ids_of(gone), notes=(*found.notes, *unreadable_notes(gone)))


def search(
    session: RequestContext,
    query: str,
    filters: Filter,
    *,
    limit: int,
    purpose: str,
    as_of: AsOf = None,
    gated: bool = True,
    order: str = "learned",
    within: str | None = None,
) -> Recall:
    """Recall without counting uses; ``gated`` off also returns what the purpose or sensitivity excludes.

    What was ranked and does not hold is named in ``withheld``, and in no note yet.
    """
    at = read_point(session, as_of)
    found, scored = rank(session, query, filters, limit=limit, purpose=purpose, at=at, gated=gated, order=order)
    read = (
        session.reader.within(within).records([each.id for each in scored], as_of=at.seq)
        if scored
        else VisibleRecords()
    )
    notes = (*found.notes, f"left out: {HIDDEN_TEXT}") if read.left_out else found.notes
    # The row was read after the ranking. One that ended in between is no answer any more.
    shown = {record.id: record for record in read.records if record.is_live(at.now) and not is_textless(record)}
    why = {used: tuple(_WHY[signal] for signal in used) for used in {each.used for each in scored}}
    hits = [
        Hit(
            rank=place,
            memory=shown[each.id],
            score=each.score,
            parts=each.parts,
            why=why[each.used],
            weak=each.weak,
        )
        for place, each in enumerate((each for each in scored if each.id in shown), 1)
    ]
    return replace(found, hits=tuple(hits), notes=notes, withheld=tuple(read.damaged))


def rank(
    session: RequestContext,
    query: str,
    filters: Filter,
    *,
    limit: int,
    purpose: str,
    at: ReadPoint,
    gated: bool = True,
    order: str = "learned",
) -> tuple[Recall, list[IndexHit]]:
    """Rank memories and read none of them: return the answer without its hits, and what was ranked, best first."""
    if purpose not in PURPOSES:
        raise InvalidInput(unknown_name_message("purpose", purpose, PURPOSES))
    if order not in ORDERS:
        raise InvalidInput(unknown_name_message("order", order, ORDERS))
    if not query.strip():
        raise InvalidInput("there is nothing to look for: give a query")
    if len(query) > MAX_QUERY_LENGTH:
        raise InvalidInput(f"a query is at most {MAX_QUERY_LENGTH} characters: ask about the gist of it")
    if not (session.policy.enabled and session.policy.recall):
        what = "recall" if session.policy.enabled else "memory"
        return Recall(hits=(), used=(), notes=(f"{what} is switched off by policy",), head=at.head.name, now=at.now), []
    person = filters.subject or user_of(session.scope)
    names = () if person is None else (person, *(session.names if person == user_of(session.scope) else ()))
    asked, notes = _parse_query(session.engine, query, at.now, names)
    allowed = _row_filter(session.engine, filters, purpose, at.now, gated=gated)
    reranker = None
    if order == "learned":
        active = active_reranker(session, at.head.seq)
        if active.fault is not None:
            notes.append(f"the learned reranker was left out: {active.fault}; run `keepward doctor`")
        elif (unfit := active.unusable_reason(asked.vector_model)) is not None:
            notes.append(f"the learned reranker was left out: {unfit}")
        elif active.weights is not None:
            reranker = active
    database = at.seq is None and uses_database_index(session.engine, session.tenant)

    def texts(ids: Sequence[str]) -> dict[str, str]:
        return {each.id: each.text for each in session.store.records(session.tenant, ids, as_of=at.seq).records}

    with nullcontext() if database else session.indexes.lock:
        index, lacking = _index(session, asked, allowed, filters, limit, at.seq, database=database)
        weights = reranker.weights if reranker else None
        scored = index.search(asked, allowed, limit, weights=weights, by_cosine=order == "cosine", texts=texts)
    if lacking:
        many = "1 memory in reach has" if lacking == 1 else f"{lacking} memories in reach have"
        note = f"{many} no vector of this embedder ({asked.vector_model}); found by words alone"
        notes.append(f"{note} until `keepward reindex` has run" if at.seq is None else note)
    version = reranker.version if reranker else None
    if session.engine.reranker is not None and order == "learned" and scored:
        scored, version = _rerank(session.engine.reranker, query, scored, texts, notes, version)
    elif reranker is not None:
        notes.append(f"the learned reranker {reranker.version} put them in order")
    signals = {signal for each in scored for signal in each.used}
    found = Recall(
        hits=(),
        used=tuple(signal for signal in _WHY if signal in signals) or ("text",),
        notes=tuple(notes),
        head=at.head.name,
        now=at.now,
        reranker=version,
        candidates="database" if database else "process",
    )
    return found, scored


def _rerank(
    reranker: Reranker,
    query: str,
    scored: list[IndexHit],
    texts: Callable[[Sequence[str]], dict[str, str]],
    notes: list[str],
    version: str | None,
) -> tuple[list[IndexHit], str | None]:
    """Return what was found in the order of a plug-in, and the name of what ordered it."""
    found = texts([each.id for each in scored])
    kept = [each for each in scored if each.id in found]
    try:
        scores = [float(each) for each in reranker.rerank(query, [found[each.id] for each in kept])]
    except ModelUnavailable as fault:
        notes.append(f"the reranker {reranker.id} is unavailable: the order is the built-in one ({fault})")
        return scored, version
    if len(scores) != len(kept) or not all(0 <= each <= 1 for each in scores):
        raise InvalidInput(f"the reranker {reranker.id} has to return a score from 0 to 1 for each text")
    notes.append(f"the reranker {reranker.id} put them in order")
    again = [each._replace(score=score) for each, score in zip(kept, scores, strict=True)]
    return sorted(again, key=lambda each: -each.score), reranker.id


def models_used(session: RequestContext, found: Recall) -> dict[str, str]:
    """Return what a receipt says of the models that made an answer, and of where candidates came from."""
    embedder = session.embedder.id if session.embedder else "none"
    return {
        "embedder": embedder,
        "reranker": found.reranker or "none",
        **found.origin,
    }


def _index(
    session: RequestContext,
    asked: Query,
    allowed: RowFilter,
    filters: Filter,
    limit: int,
    seq: int | None,
    *,
    database: bool,
) -> tuple[Index, int]:
    """Return the index that ranks a query, and how many memories lack vectors; in process, the caller holds the lock.

    From the database comes a part of it.
    """
    if seq is not None:
        index = session.indexes.at(session.store, session.tenant, seq)
        return index, index.count_without_vector(asked, allowed)
    if database:
        from keepward.services.database_candidates import gather_candidates

        index = gather_candidates(session.store, session.tenant, asked, allowed, filters, limit)
    else:
        index = session.indexes.level(session.store, session.tenant)
    lacking = index.count_without_vector(asked, allowed)
    if asked.vector_model is None or not (lacking or index.stale):
        return index, lacking
    # Vectors that were computed meanwhile are taken in.
    whole = not lacks_embedding(session)
    if not database and session.indexes.reload_needed(session.tenant, whole=whole):
        index = session.indexes.level(session.store, session.tenant)
    if not whole:
        session.engine.wake(wrote=False)
    return index, 0 if whole else lacking


def _parse_query(engine: Engine, text: str, now: datetime, names: Sequence[str]) -> tuple[Query, list[str]]:
    """Return what is looked for; in it "I" and "the user" are the person with these names, the id first."""
    from keepward.retrieval import persons
    from keepward.retrieval.advice import is_advice_or_task
    from keepward.retrieval.index import Query
    from keepward.retrieval.ranking import project_out
    from keepward.retrieval.time_expressions import named_days
    from keepward.retrieval.tokenizer import terms

    # "yesterday" in a question names a day, as it does in what was said.
    days = named_days(text, to_micros(now))
    words = tuple(terms("\n".join((text, *(each.phrase for each in days)))))
    advice = is_advice_or_task(text)
    # Advice is wanted for days to come.
    asked = Query(text=text, terms=words, days=() if advice else days)
    called = [word for each in (*names[1:], *names[:1]) for word in each.split()]
    renamed = persons.with_name(text, called[0]) if called else None
    if renamed is not None:
        asked = dataclasses.replace(asked, names=tuple(terms(" ".join(names))))
    if engine.embedder is None:
        return asked, ["no embedder: found by words alone"]
    try:
        vector = vectors_of(engine.embedder, [text])[0]
        if renamed is not None:
            # Asked for as said and by name, a fact is found however it was told.
            vector = vector + vectors_of(engine.embedder, [renamed])[0]
            vector /= max(float((vector @ vector) ** 0.5), 1e-9)
        if advice:
            vector = project_out(vector, mean_advice_vector(cast("Hashable", engine.embedder)))
    except ModelUnavailable as fault:
        return asked, [f"the embedder is unavailable: found by words alone ({fault})"]
    return dataclasses.replace(asked, vector=vector, vector_model=engine.embedder.id), []


def _row_filter(engine: Engine, filters: Filter, purpose: str, now: datetime, *, gated: bool) -> RowFilter:
    from keepward.retrieval.index import RowFilter

    least = int(engine.policy.least_trust[purpose])
    return RowFilter(
        scopes=frozenset(filters.scopes),
        now=to_micros(now),
        tiers=frozenset(filters.tiers) or None,
        kinds=frozenset(filters.kinds) or None,
        tags=frozenset(filters.tags) or None,
        content_types=frozenset(filters.content_types) or None,
        subject=filters.subject,
        category=filters.category,
        session=filters.session,
        min_importance=filters.min_importance or None,
        min_trust=least if gated and least else None,
        include_sensitive=filters.include_sensitive or not gated,
        ids=filters.ids,
    )


def find(
    session: RequestContext, filters: Filter, *, limit: int | None, include_ended: bool, as_of: AsOf = None
) -> Memories:
    """Return the memories that pass, newest first.

    Raises:
        InvalidInput: a limit below 1, an unknown tier, kind or content type.
    """
    check_limit(limit)
    check_names(tiers=filters.tiers, kinds=filters.kinds, content_types=filters.content_types)
    at = read_point(session, as_of)
    seq, now = at.seq, at.now
    live_at = None if include_ended else now
    filters = replace(filters, at=now)
    reader = session.reader
    found = reader.find(filters, live_at=live_at, limit=limit, as_of=seq)
    kept_back: tuple[str, ...] = ()
    if filters.include_sensitive and not reader.may_ask_for_sensitive:
        hidden = any(record.sensitivity is Sensitivity.SENSITIVE for record in found.records)
        if hidden:
            kept_back = (
                f"sensitive memories were left out: asking for them {GRANT_HINT} --can read,propose,sensitive`",
            )
        filters = replace(filters, include_sensitive=False)
        if hidden or found.damaged:
            found = reader.find(filters, live_at=live_at, limit=limit, as_of=seq)
    kept_back = kept_back or ((f"left out: {HIDDEN_TEXT}",) if found.left_out else ())
    gone = (
        unreadable_memories(session, filters, live_at=live_at, damaged=found.damaged)
        if seq is None
        else corrupt_memories(found.damaged)
    )
    records = [as_read(record, now) for record in found.records]
    return Memories(records, withheld=ids_of(gone), notes=(*unreadable_notes(gone), *kept_back))


def get(session: RequestContext, memory_id: str, *, as_of: AsOf = None) -> Record:
    """Return a memory, whatever its status, or as it stood at a commit.

    It has faded to then; how often it was used, and what was made from it, stand beside.
    """
    with session.store.read_snapshot(session.tenant):
        at = read_point(session, as_of)
        record = session.reader.fetch(memory_id, as_of=at.seq)
        count, last = session.store.usage(session.tenant, [record.id]).get(record.id, (0, None))
        children = session.reader.children(record.id, as_of=at.seq)
    return as_read(
        record,
        at.now,
        uses=count + session.engine.uses[session.tenant, record.id],
        last_used=session.engine.used_at.get((session.tenant, record.id), last),
        children=children,
    )


def history(session: RequestContext, memory_id: str) -> list[Version]:
    """Return every version of a memory, oldest first; those of a time when it was not visible are left out."""
    return session.reader.history(memory_id)


def visible_filter(session: RequestContext, filters: Filter) -> Filter:
    """Return the filter narrowed to what the handle's scope sees."""
    return replace(filters, scopes=session.reader.scopes)
