"""The verbs that read; none of them writes the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec.structs import replace

from keepward.core.commit import ReceiptKind, ReceiptPage
from keepward.core.compiled import CompiledContext, Replayed
from keepward.core.filters import parse_where
from keepward.core.identity import Identity
from keepward.core.journal import Check, Version
from keepward.core.memory import Record, as_read
from keepward.core.query import Filter, Memories, Order, Purpose
from keepward.core.query import Recall as Found
from keepward.core.value import plain_key, plain_name
from keepward.verbs import NONE, Limit, Request, Wire, fields, verb
from keepward.verbs.arguments import instant, scope_named

if TYPE_CHECKING:
    from keepward.services.browse import Selection
    from keepward.services.session import Session

R = TypeVar("R")
Without = Annotated[
    list[Annotated[str, Limit(minLength=1, maxLength=200)]],
    Limit("Core blocks, by key or id, that may be missing where they do not hold.", maxItems=100),
]
Objective = Annotated[str, Limit("What the model is about to do.", maxLength=fields.LONG)]
LeastScore = Annotated[
    fields.Floor, Limit("Least score of a hit; without it all are returned, weak ones marked.", minimum=0, maximum=1)
]

WRITTEN_SINCE, WRITTEN_UNTIL = Limit("Written from then on, whenever it happened."), Limit("Written before.")
HAPPENED_SINCE = Limit(
    "What it tells happened from then on, by `occurred_at`. An event without it happened when it was written; "
    "another memory without it does not pass."
)
HAPPENED_UNTIL = Limit("What it tells happened before; as `occurred_since`.")


class Filtered(Request[R]):
    """A request that narrows what it looks at; filters apply before limits."""

    tiers: fields.Tiers = NONE
    kinds: fields.Kinds = NONE
    tags: fields.Words = NONE
    content_types: fields.ContentTypes = NONE
    subject: fields.Word | None = None
    category: fields.Word | None = None
    session: fields.Word | None = None
    min_importance: fields.Floor = 0.0
    include_sensitive: bool = False

    def narrowed(self, session: Session, **more: Any) -> Filter:
        """Return the filter, kept to what the session may see."""
        from keepward.services.read import own_and_shared

        said = {name: _plain(name, getattr(self, name)) for name in Filtered.names}
        return own_and_shared(session, Filter(**said, **more))


class Searched(Filtered[R]):
    """A question, and how it is to be answered."""

    query: fields.Question
    limit: fields.Most = 10
    purpose: Purpose = "answer"
    order: Order = "learned"
    as_of: fields.AsOf | None = None
    floor: LeastScore | None = None
    receipt: Annotated[bool, Limit("Keep a receipt that feedback can name.")] = False
    since: Annotated[fields.When | None, WRITTEN_SINCE] = None
    until: Annotated[fields.When | None, WRITTEN_UNTIL] = None
    occurred_since: Annotated[fields.When | None, HAPPENED_SINCE] = None
    occurred_until: Annotated[fields.When | None, HAPPENED_UNTIL] = None
    within: fields.Within | None = None
    where: fields.Where | None = None

    def recalled(self, session: Session) -> Found:
        """Return the answer, with a receipt where one was asked for or is due."""
        from keepward.services.session import note_handed

        found = self.ranked(session)
        news = note_handed(session, [hit.memory for hit in found])
        if self.receipt or news is not None:
            from keepward.services.use import keep_recall

            kept = keep_recall(session, self.query, self.purpose, found)
            found = kept if self.receipt else found
        hits = tuple(replace(hit, memory=as_read(hit.memory, found.now)) for hit in found.hits)
        return replace(found, hits=hits)

    def selection(self) -> Selection:
        """Return the filters that a list answers and the index of recall does not."""
        from keepward.services.browse import Selection

        return Selection(include_sensitive=self.include_sensitive, as_of=self.as_of, **_narrowing(self))

    def ranked(self, session: Session) -> Found:
        """Return the answer alone."""
        from keepward.services.read import recall

        filters = self.narrowed(session)
        if self.include_sensitive:
            session.reader.check_sensitive()
        selection = self.selection()
        if _narrows(self):
            from keepward.services.browse import among

            ids, scopes = among(session, selection)
            filters = replace(filters, ids=ids, scopes=scopes or filters.scopes)
        asked: dict[str, Any] = {name: getattr(self, name) for name in ("limit", "purpose", "as_of", "order", "floor")}
        return recall(session, self.query, filters, within=selection.within, **asked)


@verb("recall", "GET /memory/search", right="read", operation="search", tool="recall")
class Recall(Searched[Found]):
    """Return the memories most relevant to a query, best first; filters apply before limits.

    `tier`, `kind`, `tags` and `content_type` may stand more than once. All pages of a query show at most 1,000.
    """

    def run(self, session: Session) -> Found:
        found = self.recalled(session)
        if found.hits or self.as_of is not None:
            return found
        from keepward.services.browse import elsewhere

        return replace(found, notes=(*found.notes, *elsewhere(session)))


class Browsed(Filtered[R]):
    """A request that narrows what it looks at by all that a memory has, and may look at the scopes below."""

    scopes: fields.Scopes = NONE
    sources: fields.Sources = NONE
    trusts: fields.Trusts = NONE
    statuses: fields.Statuses = NONE
    authors: fields.Authors = NONE
    text: fields.Part | None = None
    since: Annotated[fields.When | None, WRITTEN_SINCE] = None
    until: Annotated[fields.When | None, WRITTEN_UNTIL] = None
    occurred_since: Annotated[fields.When | None, HAPPENED_SINCE] = None
    occurred_until: Annotated[fields.When | None, HAPPENED_UNTIL] = None
    below: Annotated[bool, Limit("Also scopes below, for who may decide.")] = False
    within: fields.Within | None = None
    where: fields.Where | None = None
    include_ended: bool = False
    include_sensitive: bool = True

    def selection(self) -> Selection:
        from keepward.services.browse import Selection

        single = ("subject", "category", "session", "key", "job")
        words = {each: _plain(each, getattr(self, each, None)) for each in single}
        several = {name: _plain(name, getattr(self, name)) for name in _SEVERAL}
        return Selection(
            any_of={_SEVERAL[name]: each for name, each in several.items() if each}
            | {name: (each,) for name, each in words.items() if each is not None},
            text=self.text,
            **_narrowing(self),
            min_importance=self.min_importance,
            include_ended=self.include_ended,
            include_sensitive=self.include_sensitive,
            below=self.below,
            as_of=getattr(self, "as_of", None),
        )


def _plain(name: str, value: Any) -> Any:
    """Return names that are looked for as they are kept."""
    if name in {"subject", "category", "session"} and value is not None:
        return plain_name(value)
    if name == "key" and value is not None:
        return plain_key(value)
    return tuple(map(plain_name, value)) if name == "tags" else value


def _narrows(request: Any) -> bool:
    """Return whether a request narrows by time, place or the memory's own fields; an empty text counts as given."""
    return any(getattr(request, name) is not None for name in _NARROWING)


def _narrowing(request: Any) -> dict[str, Any]:
    """Return what narrows a list and a search alike: time, place and the memory's own fields."""
    within = None if request.within is None else scope_named(request.within)
    instants = {name: instant(name, getattr(request, name)) for name in _INSTANTS}
    return {**instants, "within": within, "where": parse_where(request.where)}


#: Facets by the argument that names several of their values.
_SEVERAL = {
    "tiers": "tier",
    "kinds": "kind",
    "tags": "tag",
    "content_types": "content_type",
    "scopes": "scope",
    "sources": "source",
    "trusts": "trust",
    "statuses": "status",
    "authors": "author",
}
#: Arguments of ``find`` that make its answer one page with a total.
_WINDOWED = (*("scopes", "sources", "trusts", "statuses", "authors", "text", "below", "ascending"),)
#: Arguments that narrow a list and a search alike.
_INSTANTS = ("since", "until", "occurred_since", "occurred_until")
_NARROWING = (*_INSTANTS, "within", "where")


@verb("find", "GET /memory/items", right="read", answer="items")
class Find(Browsed[Memories]):
    """Return the memories that pass all filters, newest first or in another order.

    With an `offset`, an order or a filter by source, trust, status, author, scope, text, date or metadata the answer is
    a window, and `total` says how many there are.
    """

    as_of: fields.AsOf | None = None
    key: fields.Word | None = None
    job: fields.Word | None = None
    limit: fields.Most | None = 50
    offset: Annotated[int, Limit("How many to pass over.", minimum=0, maximum=2**53)] | None = None
    sort: fields.Sort = "created"
    ascending: Annotated[bool, Limit("The least or oldest first; names from z to a.")] = False

    @property
    def windowed(self) -> bool:
        """Whether it asks for a window, with a total."""
        ordered = self.offset is not None or self.sort != "created"
        return ordered or _narrows(self) or any(getattr(self, name) for name in _WINDOWED)

    def run(self, session: Session) -> Memories:
        from keepward.services.browse import elsewhere, window
        from keepward.services.read import find
        from keepward.services.session import note_handed

        key = None if self.key is None else plain_key(self.key)
        if self.windowed:
            asked: dict[str, Any] = {"sort": self.sort, "ascending": self.ascending, "limit": self.limit}
            found = window(session, self.selection(), offset=self.offset or 0, **asked)
        else:
            filters = self.narrowed(session, key=key, job=self.job)
            found = find(session, filters, limit=self.limit, include_ended=self.include_ended, as_of=self.as_of)
        note_handed(session, found)
        if not found and self.as_of is None:
            found.notes += elsewhere(session)
        return found


@verb("get", "GET /memory/items/{id}", right="read")
class Get(Request[Record]):
    """Return a memory by id or alias, whatever its status; its ETag goes into the `If-Match` of a change."""

    memory_id: fields.NamedId
    as_of: fields.AsOf | None = None

    def run(self, session: Session) -> Record:
        from keepward.services.read import get
        from keepward.services.session import note_handed

        record = get(session, self.memory_id, as_of=self.as_of)
        note_handed(session, [record])
        return record


@verb("history", "GET /memory/items/{id}/history", right="read", answer="items", tool="history")
class History(Request[list[Version]]):
    """Return every version of a memory, oldest first, each with the commit that made it."""

    function = "services.read:history"
    memory_id: fields.NamedId


@verb("context", "POST /memory/compile", right="read", operation="compile", tool="get_context")
class Context(Request[CompiledContext]):
    """Compile what a model should know for an objective, within a budget, with a receipt.

    With `preview` no receipt is kept, and `explanation` says of every candidate why it is in or out. That takes a
    reviewer or the owner: no receipt will say what was shown.
    """

    function = "services.contexts:context"
    objective: Objective
    budget_tokens: fields.Tokens | None = None
    purpose: Purpose = "answer"
    as_of: fields.AsOf | None = None
    format: fields.Format = "markdown"
    include_sensitive: bool = False
    without: Without = NONE
    include_weak: bool = False
    preview: Annotated[bool, Limit("Keep no receipt, and explain every candidate.")] = False


@verb("snapshot", "GET /memory/snapshot", right="read")
class Snapshot(Request[CompiledContext]):
    """Compile what belongs in every prompt of this scope: core, lasting memories and keyed state, no recall."""

    function = "services.contexts:context"
    budget_tokens: fields.Tokens | None = None
    format: fields.Format = "markdown"
    without: fields.Words = NONE

    def parameters(self, session: Session) -> dict[str, Any]:
        """Return it as a context without an objective."""
        return super().parameters(session) | {"objective": "", "which": "snapshot"}


@verb("memory_block", "POST /memory/block", right="read")
class MemoryBlock(Request[CompiledContext]):
    """Compile only what is relevant to a query; the empty text when nothing is."""

    function = "services.contexts:context"
    query: fields.Asked
    budget_tokens: fields.Tokens | None = None
    purpose: Purpose = "answer"
    include_weak: bool = False
    format: fields.Format = "markdown"
    seen: Annotated[list[fields.Id], Limit("Memories that the reader has already.", maxItems=2_000)] = NONE

    def parameters(self, session: Session) -> dict[str, Any]:
        """Return it as a context for the query."""
        given = super().parameters(session)
        return {"objective": given.pop("query"), "which": "memory_block", **given}


@verb("identity", "GET /memory/identity", right="read")
class GetIdentity(Request[Identity]):
    """Return the identity document as it stands, or one of its editions, and how each came to hold."""

    function = "services.identity:identity"
    edition: Annotated[fields.Word, Limit("Version of one of its editions, or the first letters of it.")] | None = None


@verb("replay", "POST /memory/receipts/{id}/replay", right="read", group="journal")
class Replay(Request[Replayed]):
    """Render a compiled context again from its receipt, byte for byte."""

    function = "services.contexts:replay"
    receipt_id: fields.NamedId


@verb("receipts", "GET /memory/receipts", right="approve", group="journal")
class Receipts(Request[ReceiptPage]):
    """Return receipts in one line each, newest first; for a reviewer or the owner, since they span every scope.

    A page that is short goes on all the same while `before` is not null.
    """

    function = "services.explain:receipts"
    kinds: Annotated[list[ReceiptKind], fields.ANY, Wire("kind")] = NONE
    actor: Annotated[fields.Word, Limit("`kind:name`, or the name alone.")] | None = None
    objective: Annotated[fields.Word, Limit("A text that the objective or query holds, in any case.")] | None = None
    before: Annotated[fields.Word, Limit("Id of a receipt: older ones alone.")] | None = None
    limit: fields.Most = 50


@verb("receipt", "GET /memory/receipts/{id}", right="read", group="journal")
class GetReceipt(Request[dict[str, Any]]):
    """Return a receipt; a commit's has the before and after of each target, a context's its `explanation`.

    The explanation has the text of the context cut by memory, and of every candidate why it was in or out.
    """

    function = "services.explain:receipt"
    receipt_id: fields.NamedId


@verb("doctor", "GET /memory/doctor", right="read", answer="items", group="upkeep")
class Doctor(Request[list[Check]]):
    """Return what was looked at, whether it is well, and what to do when it is not."""

    function = "services.status:doctor"


@verb("status", "GET /memory/status", right="read", tool="status")
class Status(Request[dict[str, Any]]):
    """Return tier sizes, block counts, the depth of the queue and the use of budgets."""

    def run(self, session: Session) -> dict[str, Any]:
        from keepward.jobs.runner import states
        from keepward.services.status import inspecting, status

        with inspecting(session):
            jobs = {
                each.name: {
                    "last_at": each.last_at and each.last_at.isoformat(),
                    "last_outcome": each.last_outcome,
                    "due_at": each.due_at and each.due_at.isoformat(),
                    "due": each.due,
                }
                for each in states(session)
            }
            return {"path": session.engine.path, **status(session), "jobs": jobs}
