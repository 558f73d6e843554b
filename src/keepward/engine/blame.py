"""Blame: which commit made each field of a memory what it is, and since when a context holds something.

Invariants
(1) Every field that holds something has one origin: the newest commit that changed it.
(2) A bisection keeps nothing and counts no use: the contexts it compiles are given to nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from keepward.engine.contexts import text_at
from keepward.engine.kit import Kit, Who
from keepward.engine.read import history
from keepward.engine.view import fetch, readable
from keepward.errors import InvalidInput, NotFound
from keepward.model.inquiry import Bisection, Blame, Origin
from keepward.model.journal import Version
from keepward.model.memory import FIELDS, READ_FIELDS

#: Fields that tell of a version and not of the memory.
_BOOKKEEPING = frozenset({"id", "version", "created_at", "updated_at", "reinforced_at", "author"})


def blame(kit: Kit, who: Who, name: str) -> Blame:
    """Return the origins of a memory's values; ``name`` is its id, an alias, or a key seen from the handle's scope.

    Raises:
        NotFound: neither a memory nor a key of this name is within reach.
    """
    record = fetch(kit, who, name)
    versions = history(kit, who, record.id)
    proposers = _proposers(kit, who, versions)
    origins: list[Origin] = []
    for field in FIELDS:
        value = getattr(record, field)
        made = _maker(versions, field)
        if field in {*_BOOKKEEPING, *READ_FIELDS} or (made.record.version == 1 and value in (None, (), "", {})):
            continue
        origins.append(
            Origin(
                field=field,
                value=value,
                version=made.record.version,
                made=made,
                actor=proposers.get(made.details.proposal or "", made.details.actor),
                source=made.record.source,
                approved_by=made.details.approved_by,
            )
        )
    return Blame(record=record, origins=tuple(origins))


def _maker(versions: list[Version], field: str) -> Version:
    """Return the newest version that changed a field, or the first."""
    for earlier, later in zip(versions[-2::-1], versions[:0:-1], strict=True):
        if getattr(earlier.record, field) != getattr(later.record, field):
            return later
    return versions[0]


def _proposers(kit: Kit, who: Who, versions: list[Version]) -> dict[str, str]:
    found: dict[str, str] = {}
    for proposal in {each.details.proposal for each in versions if each.details.proposal}:
        item = kit.store.waiting(who.tenant, proposal)
        if item is not None:
            found[proposal] = item.proposer.label
    return found


def bisect(
    kit: Kit, who: Who, query: str, predicate: Callable[[str], bool], *, since: int = 0, purpose: str = "answer"
) -> Bisection:
    """Return the commit with which the context for a query began to pass a predicate, in about log2(n) compiles.

    ``since`` is a commit whose context does not pass, 0 for the empty store. Where the answer changed more
    than once in between, it is one of the changes to passing.

    Raises:
        InvalidInput: the newest context does not pass, or that of ``since`` does.
    """
    high = kit.store.head(who.tenant).seq
    if not 0 <= since <= high:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    texts = {since: _text(kit, who, query, since, purpose), high: _text(kit, who, query, high, purpose)}
    if not predicate(texts[high]):
        raise InvalidInput("the context after the newest commit does not pass: there is nothing to look for")
    if predicate(texts[since]):
        raise InvalidInput("the context at the start passes already: begin at an earlier commit")
    low = since
    while high - low > 1:
        middle = (low + high) // 2
        texts[middle] = _text(kit, who, query, middle, purpose)
        if predicate(texts[middle]):
            high = middle
        else:
            low = middle
    view = kit.store.commit(who.tenant, str(high))
    if view is None:
        raise NotFound("the commit is gone; run `keepward verify`")
    return Bisection(commit=readable(kit, who, view), compiled=len(texts), before=texts[low], after=texts[high])


def _text(kit: Kit, who: Who, query: str, seq: int, purpose: str) -> str:
    # Before the first commit nothing is remembered; what comes from documents does not hang on commits.
    return text_at(kit, who, query, seq, purpose=purpose) if seq else ""
