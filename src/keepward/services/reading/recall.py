"""Reads: recall, lists, and the state after any past commit.

Reads do not write the journal: uses are counted in memory and written with a later write.
Filters apply before limits, and every order is total. A missing embedder or a corrupt row is noted in the result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from keepward.core.commit import EMPTY_HASH, Head
from keepward.core.journal import Versions
from keepward.core.memory import Record, as_read, is_textless
from keepward.core.principals import Trust, branch_of, user_of
from keepward.core.query import (
    AsOf,
    Filter,
    Hit,
    Recall,
)
from keepward.core.value import parse_instant, to_micros
from keepward.errors import InvalidInput, ModelUnavailable, NotFound, Tampered
from keepward.retrieval import persons
from keepward.retrieval.advice import is_advice_or_task
from keepward.retrieval.index import Query
from keepward.retrieval.time_expressions import named_days
from keepward.retrieval.tokenizer import terms
from keepward.services.access import corrupt_memories, ids_of, unreadable_memories, unreadable_notes
from keepward.services.arguments import PAST_STATE
from keepward.services.reading.learned_order import ActiveReranker, active_reranker, ask_reranker
from keepward.services.reading.output_filter import filter_output
from keepward.services.reading.reindex import lacks_embedding, uses_database_index
from keepward.services.reading.visible import HIDDEN_TEXT, VisibleReader, VisibleRecords
from keepward.services.request_context import Engine, RequestContext
from keepward.services.search.database_candidates import gather_candidates
from keepward.services.search.features import (
    checked_query_vector,
    embedder_id,
    known_embedder_id,
    mean_advice_vector,
    model_scale,
    query_vectors_of,
)

if TYPE_CHECKING:
    from keepward.ports.models import Reranker
    from keepward.retrieval.index import Index, IndexHit

_WHY = {"text": "words", "vector": "meaning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPoint:
    """The state that a read sees: the present one, or that after a past commit."""

    #: Number of the commit; None for the present.
    seq: int | None
    now: datetime
    #: Head of the state that is read.
    head: Head


#: Characters of an id.
_ID_LENGTH = 36
_AS_OF_FORMS = f"a past state is {PAST_STATE}"


def parse_as_of(as_of: AsOf) -> AsOf:
    """Return a past state; the text of a number or an instant is parsed."""
    if not isinstance(as_of, str):
        return as_of
    if as_of.isdecimal():
        return int(as_of)
    try:
        return parse_instant(as_of)
    except InvalidInput:
        return as_of


def seq_of(context: RequestContext, as_of: AsOf) -> int | None:
    """Return the number of the commit that ``as_of`` names; None for the present.

    A number is a commit, 0 the empty store. Text is a commit id, the name of a head or an ISO instant. An instant
    means the newest commit of the chain whose own time is not later.

    Raises:
        NotFound: there is no such commit.
        InvalidInput: ``as_of`` has none of these forms.
    """
    as_of = parse_as_of(as_of)
    if as_of is None:
        return None
    if isinstance(as_of, str):
        number = as_of.split(":")[0] if as_of.count(":") == 1 else as_of
        if number.isdecimal():
            return seq_of(context, int(number))
        with suppress(NotFound):
            view = VisibleReader(context).commit(as_of, partly=True)
            if view.steps or view.damage:
                return view.commit.seq
        if len(as_of) == _ID_LENGTH and as_of.count("-") == 4:
            # It has the form of an id.
            raise NotFound("there is no commit by that id in this tenant; `keepward log` lists them")
        raise InvalidInput(_AS_OF_FORMS)
    if isinstance(as_of, datetime):
        if as_of.tzinfo is None:
            raise InvalidInput(_AS_OF_FORMS)
        return context.store.newest_commit_at(context.tenant, as_of)
    if isinstance(as_of, bool) or not isinstance(as_of, int):
        raise InvalidInput(_AS_OF_FORMS)
    if as_of < 0 or as_of > context.store.head(context.tenant).seq:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    return as_of


def read_point(context: RequestContext, as_of: AsOf) -> ReadPoint:
    """Return the state that a read sees, with its time: now, the given instant, or that of the given commit.

    Raises:
        NotFound, InvalidInput: as in ``seq_of``.
        Tampered: the commit is damaged, so that its time is not known.
    """
    as_of = parse_as_of(as_of)
    seq, now = seq_of(context, as_of), context.clock.now()
    head = context.store.head(context.tenant) if seq is None else Head(seq=0, hash=EMPTY_HASH)
    if seq and (view := context.store.readable_commit(context.tenant, str(seq), has_steps=False)) is not None:
        if view.damage:
            raise Tampered(
                f"commit {seq} is damaged, so the time of the state after it is not known: "
                f"name another one, such as the commit {seq - 1}; `keepward verify` names each fault"
            )
        now, head = view.commit.at, Head(seq=seq, hash=view.commit.hash)
    return ReadPoint(seq=seq, now=as_of if isinstance(as_of, datetime) else now, head=head)


def search(
    context: RequestContext,
    query: str,
    filters: Filter,
    *,
    limit: int,
    purpose: str,
    as_of: AsOf = None,
    gated: bool = True,
    order: str = "learned",
    within: str | None = None,
    vector: Sequence[float] | None = None,
) -> Recall:
    """Return the memories most relevant to a query, best first; weak ones are marked. No use is counted.

    ``gated=False`` also returns what the purpose, sensitivity or valid time excludes. ``within`` restricts the read to
    a scope and those below it. ``withheld`` names corrupt memories that were ranked; no note mentions them yet.
    """
    at = read_point(context, as_of)
    reader = VisibleReader(context)
    if at.seq is not None and filters.hidden:
        filters = replace(filters, hidden=reader.hidden(at.seq))
    options: dict[str, Any] = {"limit": limit, "purpose": purpose, "gated": gated, "order": order, "vector": vector}
    ranking = rank(context, query, filters, at=at, any_time=not gated, **options)
    result, ranked = ranking.result, ranking.hits
    read = reader.within(within).records([row.id for row in ranked], as_of=at.seq) if ranked else VisibleRecords()
    notes = (*result.notes, f"left out: {HIDDEN_TEXT}") if read.left_out else result.notes
    # A memory that expired between ranking and reading is left out.
    shown = {record.id: record for record in read.records if record.is_live(at.now) and not is_textless(record)}
    shown = without_instructions(context, shown)
    why = {used: tuple(_WHY[signal] for signal in used) for used in {row.used for row in ranked}}
    hits = [
        Hit(
            rank=position,
            memory=shown[row.id],
            score=row.score,
            parts=row.parts,
            why=why[row.used],
            weak=row.weak,
        )
        for position, row in enumerate((row for row in ranked if row.id in shown), 1)
    ]
    return replace(result, hits=tuple(hits), notes=notes, withheld=tuple(read.damaged))


def without_instructions(context: RequestContext, records: dict[str, Record]) -> dict[str, Record]:
    """Return records by id, on a branch without its texts that read like an instruction to the model.

    On main these wait for a person; a branch has them until its merge.
    """
    if branch_of(context.scope) is None:
        return records
    results = filter_output([*records.values()])
    return {
        name: record
        for (name, record), result in zip(records.items(), results, strict=True)
        if result.drop is None or branch_of(record.scope) is None
    }


def deliver(
    context: RequestContext, filters: Filter, result: Recall, *, floor: float | None = None, is_past: bool = False
) -> Recall:
    """Return the result of a search as a caller gets it; its hits count as used, unless they are weak.

    Hits with a score below ``floor``, 0..1, are left out. Notes name corrupt memories that pass the filters, also
    those that were not ranked; of a past state, those that were.
    """
    if floor is not None:
        result = replace(result, hits=tuple(hit for hit in result.hits if hit.score >= floor))
    if not context.inspects:
        used = (hit.memory.id for hit in result.hits if not hit.weak)
        context.engine.uses.count(context.tenant, used, context.clock.now())
    if is_past:
        return replace(result, notes=(*result.notes, *unreadable_notes(corrupt_memories(result.withheld))))
    unreadable = unreadable_memories(context, filters, live_at=result.now, damaged=result.withheld)
    return replace(result, withheld=ids_of(unreadable), notes=(*result.notes, *unreadable_notes(unreadable)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Ranked memories that were not read."""

    #: The result without its hits.
    result: Recall
    #: Best first.
    hits: list[IndexHit] = field(default_factory=list)
    #: Number of memories that the query could have found.
    visible: int = 0
    #: Ids of the best ones that were left out because they do not hold; only if they were asked for.
    not_holding: tuple[str, ...] = ()


def rank(
    context: RequestContext,
    query: str,
    filters: Filter,
    *,
    limit: int,
    purpose: str,
    at: ReadPoint,
    gated: bool = True,
    order: str = "learned",
    min_trust: Trust = Trust.UNKNOWN,
    related: bool = False,
    vector: Sequence[float] | None = None,
    any_time: bool = False,
    most_not_holding: int = 0,
) -> Ranking:
    """Rank memories without reading them.

    ``min_trust`` leaves out what is trusted less, also from statistics. ``related`` adds to the best hits what
    else was said about the same. What does not hold at ``valid_at``, by default now, is left out unless ``any_time``;
    the best ``most_not_holding`` of it are named.
    """
    if not (context.policy.enabled and context.policy.recall):
        what = "recall" if context.policy.enabled else "memory"
        off = Recall(hits=(), used=(), notes=(f"{what} is switched off by policy",), head=at.head.name, now=at.now)
        return Ranking(result=off)
    user = filters.subject or user_of(context.scope)
    names = () if user is None else (user, *(context.names if user == user_of(context.scope) else ()))
    parsed, notes = _parse_query(context.engine, query, at.now, names, vector)
    now = to_micros(at.now)
    allowed = replace(
        filters,
        now=now,
        fresh=gated and purpose != "answer",
        valid_at=None if any_time else now if filters.valid_at is None else filters.valid_at,
        include_sensitive=filters.include_sensitive or not gated,
        min_trust=max(int(context.policy.least_trust[purpose]) if gated else 0, int(min_trust)),
    )
    if at.seq is None:
        context.indexes.ask_changes(context.store, context.tenant, at.head.seq)
    if order == "learned":
        ask_reranker(context)
    reranker = _learned_order(context, parsed, notes) if order == "learned" else None
    database = at.seq is None and uses_database_index(context.engine, context.tenant)
    if database:
        # A tenant of this size is about many people.
        parsed = parsed.with_name(1.0)

    def texts(ids: Sequence[str]) -> dict[str, str]:
        records = context.store.records(context.tenant, ids, as_of=at.seq).records
        return {record.id: record.text for record in records}

    def searched() -> tuple[list[IndexHit], int, int, tuple[str, ...]]:
        # Each thread that waits for the lock has a connection: the one that holds it must not wait for another.
        with context.store.read_snapshot(context.tenant), nullcontext() if database else context.indexes.lock:
            index, lacking = _index(context, parsed, allowed, limit, at.seq, database=database)
            weights = reranker.weights if reranker else None
            ranked = index.search(
                parsed, allowed, limit, weights=weights, by_cosine=order == "cosine", texts=texts, related=related
            )
            left_out: list[IndexHit] = []
            if most_not_holding and (outside := index.ids_not_holding(allowed)):
                left_out = index.search(parsed, replace(allowed, valid_at=None, ids=outside), most_not_holding)
            return ranked, index.count_visible(allowed), lacking, tuple(hit.id for hit in left_out)

    ranked, visible, lacking, not_holding = context.indexes.retrying(context.store, context.tenant, searched)
    if lacking:
        count = "1 visible memory has" if lacking == 1 else f"{lacking} visible memories have"
        note = f"{count} no vector of this embedder ({parsed.vector_model}); found by words alone"
        notes.append(f"{note} until `keepward reindex` has run" if at.seq is None else note)
    version = reranker.version if reranker else None
    if context.engine.reranker is not None and order == "learned" and ranked:
        ranked, version = _rerank(context.engine.reranker, query, ranked, texts, notes, version)
    elif reranker is not None:
        notes.append(f"the learned reranker {reranker.version} ordered the hits")
    signals = {signal for row in ranked for signal in row.used}
    result = Recall(
        hits=(),
        used=tuple(signal for signal in _WHY if signal in signals) or ("text",),
        notes=tuple(notes),
        head=at.head.name,
        now=at.now,
        reranker=version,
        candidates="database" if database else "process",
    )
    return Ranking(result=result, hits=ranked, visible=visible, not_holding=not_holding)


def _learned_order(context: RequestContext, parsed: Query, notes: list[str]) -> ActiveReranker | None:
    """Return the learned reranker in use; add a note if it cannot be used."""
    active = active_reranker(context)
    if active.fault is not None:
        notes.append(f"the learned reranker was left out: {active.fault}; run `keepward doctor`")
    elif (reason := active.unusable_reason(parsed.vector_model)) is not None:
        notes.append(f"the learned reranker was left out: {reason}")
    elif active.weights is not None:
        return active
    return None


def _rerank(
    reranker: Reranker,
    query: str,
    ranked: list[IndexHit],
    texts: Callable[[Sequence[str]], dict[str, str]],
    notes: list[str],
    version: str | None,
) -> tuple[list[IndexHit], str | None]:
    """Return the hits in the order of a reranker plug-in, and the id of the reranker in use."""
    text_by_id = texts([row.id for row in ranked])
    readable = [row for row in ranked if row.id in text_by_id]
    scores: list[float] = []
    try:
        given = reranker.rerank(query, [text_by_id[row.id] for row in readable])
    except ModelUnavailable as exc:
        notes.append(f"the reranker is unavailable: the order is the built-in one ({exc})")
        return ranked, version
    with suppress(TypeError, ValueError):
        scores = [float(score) for score in given]
    if len(scores) != len(readable) or not all(0 <= score <= 1 for score in scores):
        raise InvalidInput(f"the reranker {reranker.id} has to return a score from 0 to 1 for each text")
    notes.append(f"the reranker {reranker.id} ordered the hits")
    reranked = [row._replace(score=score) for row, score in zip(readable, scores, strict=True)]
    return sorted(reranked, key=lambda row: -row.score), reranker.id


def models_used(context: RequestContext, result: Recall) -> dict[str, str]:
    """Return what a receipt records of the models behind a result, and where its candidates came from."""
    return {
        "embedder": known_embedder_id(context.embedder) or ("unavailable" if context.embedder else "none"),
        "reranker": result.reranker or "none",
        **result.origin,
    }


def _index(
    context: RequestContext,
    parsed: Query,
    allowed: Filter,
    limit: int,
    seq: int | None,
    *,
    database: bool,
) -> tuple[Index, int]:
    """Return the index that ranks a query, and the number of memories without a vector.

    For an index of this process the caller must hold its lock. The database returns an index of candidates only.
    """
    if seq is not None:
        index = context.indexes.at(context.store, context.tenant, seq)
        return index, index.count_without_vector(parsed, allowed)
    if database:
        index = gather_candidates(context.store, context.tenant, parsed, allowed, limit)
    else:
        index = context.indexes.current(context.store, context.tenant)
    lacking = index.count_without_vector(parsed, allowed)
    if parsed.vector_model is None or not (lacking or index.stale):
        return index, lacking
    # Load the vectors that were computed meanwhile.
    complete = not lacks_embedding(context)
    if not database:
        context.indexes.reload_vectors(context.store, context.tenant, parsed, complete=complete)
    if not complete:
        context.engine.wake(wrote=False)
    return index, 0 if complete else lacking


def _parse_query(
    engine: Engine, text: str, now: datetime, names: Sequence[str], vector: Sequence[float] | None
) -> tuple[Query, list[str]]:
    """Parse a query. "I" and "the user" in it mean the person with these names, whose id comes first.

    A given ``vector`` is that of the text; the embedder is not asked for one.
    """
    # "yesterday" names a day in a question as it does in a memory.
    days = named_days(text, to_micros(now))
    words = tuple(terms("\n".join((text, *(day.phrase for day in days)))))
    advice = is_advice_or_task(text)
    # A day in a request for advice lies ahead; it does not date a memory.
    parsed = Query(text=text, terms=words, days=() if advice else days)
    name_words = [word for name in (*names[1:], *names[:1]) for word in name.split()]
    renamed = persons.with_name(text, name_words[0]) if name_words else None
    if renamed is not None:
        parsed = dataclasses.replace(parsed, names=tuple(terms(" ".join(names))))
    if engine.embedder is None:
        if vector is not None:
            raise InvalidInput("a store without an embedder has no vectors to compare: leave the vector out")
        return parsed, ["no embedder: found by words alone"]
    renamed = renamed if vector is None else None
    try:
        if vector is not None:
            vectors = checked_query_vector(engine.embedder, vector)
        else:
            vectors = query_vectors_of(engine.embedder, [text] if renamed is None else [text, renamed])
        common = mean_advice_vector(engine.embedder, engine.advice_vectors) if advice else None
        scale = model_scale(engine.embedder, engine.model_scales)
        model = embedder_id(engine.embedder)
    except ModelUnavailable as exc:
        return parsed, [f"the embedder is unavailable: found by words alone ({exc}); `keepward doctor` checks it"]
    named, person = (None, None) if renamed is None else (vectors[1], names[0])
    return (
        dataclasses.replace(
            parsed, vector=vectors[0], vector_model=model, named=named, person=person, common=common, scale=scale
        ),
        [],
    )


def get(context: RequestContext, memory_id: str, *, as_of: AsOf = None) -> Record:
    """Return a memory of any status, now or as it was after a commit.

    Its confidence has decayed up to that time. Its uses and the memories derived from it are included.
    """
    with context.store.read_snapshot(context.tenant):
        if as_of is None and len(memory_id) == _ID_LENGTH:
            context.store.ask_about(context.tenant, memory_id)
        at = read_point(context, as_of)
        record = VisibleReader(context).fetch(memory_id, as_of=at.seq)
        count, last = context.store.usage(context.tenant, [record.id]).get(record.id, (0, None))
        children = VisibleReader(context).children(record.id, as_of=at.seq)
    pending = context.engine.uses.of(context.tenant, record.id)
    if pending is not None:
        count, last = count + pending[0], pending[1] if last is None else max(last, pending[1])
    return as_read(
        record,
        at.now,
        uses=count,
        last_used=last,
        children=children,
    )


def history(context: RequestContext, memory_id: str) -> Versions:
    """Return every version of a memory, oldest first, except those of a time when it was not visible."""
    return VisibleReader(context).history(memory_id)
