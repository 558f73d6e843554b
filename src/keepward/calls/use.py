"""The calls of who works with memories: reading, proposing, feedback and blobs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from keepward import verbs
from keepward.calls import sends, sharing, taking
from keepward.calls.conversation import Talks
from keepward.core.change import (
    KEEP,
    AppendFields,
    Change,
    ContentTypeName,
    InsertFields,
    KeyedFields,
    KindName,
    ReplaceFields,
    TierName,
)
from keepward.core.value import Duration

if TYPE_CHECKING:
    from datetime import datetime

    from keepward.calls.draft import Draft
    from keepward.core.blob import Blob
    from keepward.core.browse import Activity, Facets, Lineage, Sources
    from keepward.core.commit import ReceiptKind, ReceiptPage
    from keepward.core.compiled import CompiledContext, Explanation, Replayed, TokenCount
    from keepward.core.identity import Identity
    from keepward.core.journal import Check, Version
    from keepward.core.memory import Record
    from keepward.core.proposal import Forgetting, Outcome
    from keepward.core.query import AsOf, Feedback, Memories, Order, Purpose, Ranking, Recall
    from keepward.verbs.fields import Format, Sort


class Filters(TypedDict, total=False):
    """What narrows a survey of memories: filters of ``find``, with the defaults that they have there."""

    tiers: Sequence[TierName]
    kinds: Sequence[KindName]
    tags: Sequence[str]
    content_types: Sequence[ContentTypeName]
    scopes: Sequence[str]
    sources: Sequence[str]
    trusts: Sequence[str]
    statuses: Sequence[str]
    authors: Sequence[str]
    text: str | None
    since: datetime | str | None
    until: datetime | str | None
    occurred_since: datetime | str | None
    occurred_until: datetime | str | None
    below: bool
    within: str | None
    where: Mapping[str, Any] | str | None
    subject: str | None
    category: str | None
    session: str | None
    min_importance: float
    include_ended: bool
    include_sensitive: bool


class Use(Talks):
    """Reading and proposing."""

    # --- reading

    @sends("read")
    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        purpose: Purpose = "answer",
        tiers: Sequence[TierName] = (),
        kinds: Sequence[KindName] = (),
        tags: Sequence[str] = (),
        content_types: Sequence[ContentTypeName] = (),
        subject: str | None = None,
        category: str | None = None,
        session: str | None = None,
        min_importance: float = 0.0,
        include_sensitive: bool = False,
        as_of: AsOf = None,
        order: Order = "learned",
        floor: float | None = None,
        receipt: bool = False,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        occurred_since: datetime | str | None = None,
        occurred_until: datetime | str | None = None,
        within: str | None = None,
        where: Mapping[str, Any] | str | None = None,
    ) -> Recall:
        """Return the memories most relevant to a query, best first; filters apply before the limit.

        A score is from 0 to 1. Hits below ``floor`` are left out. A hit is ``weak`` where it shares no rare word with
        the query and is far from it in meaning.
        ``order`` is ``learned`` (by the reranker where one serves), ``fused`` or ``cosine``. With ``receipt`` a
        receipt is kept, for ``feedback`` to name.
        ``since`` and ``until`` say when a memory was written, ``occurred_since`` and ``occurred_until`` when what it
        tells happened; see ``find``.
        """

    @taking(recall)
    @sends("read")
    def explain_recall(self, query: str, **asked: Any) -> Ranking:
        """Recall, with what each part of the score adds to each hit, its rank in each order, and what is learned.

        The arguments are those of ``recall``.
        """

    @sends("read")
    def find(
        self,
        *,
        tiers: Sequence[TierName] = (),
        kinds: Sequence[KindName] = (),
        tags: Sequence[str] = (),
        content_types: Sequence[ContentTypeName] = (),
        scopes: Sequence[str] = (),
        sources: Sequence[str] = (),
        trusts: Sequence[str] = (),
        statuses: Sequence[str] = (),
        authors: Sequence[str] = (),
        text: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        occurred_since: datetime | str | None = None,
        occurred_until: datetime | str | None = None,
        below: bool = False,
        within: str | None = None,
        where: Mapping[str, Any] | str | None = None,
        key: str | None = None,
        subject: str | None = None,
        category: str | None = None,
        session: str | None = None,
        job: str | None = None,
        min_importance: float = 0.0,
        limit: int | None = 50,
        offset: int | None = None,
        sort: Sort = "created",
        ascending: bool = False,
        include_ended: bool = False,
        include_sensitive: bool = True,
        as_of: AsOf = None,
    ) -> Memories:
        """Return the memories that pass all filters, newest first or in another order; ``tags`` match any.

        They are the first ``limit`` of those that pass; None is for all.

        ``since`` and ``until`` say when a memory was written: from the one on and before the other. ``occurred_since``
        and ``occurred_until`` say when what it tells happened, by its ``occurred_at``. An event without that happened
        when it was written; another memory without it does not pass. For what happened in March 2025:
        ``find(occurred_since="2025-03-01", occurred_until="2025-04-01")``.

        What is sensitive is among them for who may ask for it; the others are told by ``notes`` that there is some.
        ``withheld`` of the list names those that would have passed and do not hold. With an ``offset``, an order or
        one of the filters from ``scopes`` to ``below`` it is a window, and its ``total`` says how many passed.
        ``below`` adds the scopes below, for who may decide.
        """

    @sends("read")
    def get(self, memory_id: str, *, as_of: AsOf = None) -> Record:
        """Return a memory by id or alias, whatever its status."""

    @sends("read")
    def history(self, memory_id: str) -> list[Version]:
        """Return every version of a memory with the commit that made it, oldest first."""

    @sharing(find, Filters.__annotations__)
    @sends("browse")
    def facets(self, *, of: Sequence[str] = (), most: int = 50, **filters: Unpack[Filters]) -> Facets:
        """Return how many memories pass, and how many of each sort; filters are those of ``find``."""

    @sharing(find, Filters.__annotations__)
    @sends("browse")
    def activity(self, *, by: str = "author", days: int = 30, zone: int = 0, **filters: Unpack[Filters]) -> Activity:
        """Return how many versions were written on each day, and by whom; filters are those of ``find``.

        The days, 1 to 400 of them, end with ``until`` or today, in a zone so many minutes east of UTC. ``by`` is
        ``author``, ``source``, ``session``, ``tier``, ``kind`` or ``scope``.
        """

    @sharing(find, Filters.__annotations__)
    @sends("browse")
    def sources(self, **filters: Unpack[Filters]) -> Sources:
        """Return what each actor, source, reference and session wrote; filters are those of ``find``."""

    @sends("browse")
    def lineage(self, memory_id: str) -> Lineage:
        """Return what a memory was made from and what was made of it, over any number of steps."""

    @sends("read")
    def context(
        self,
        objective: str,
        *,
        budget_tokens: int | None = None,
        purpose: Purpose = "answer",
        as_of: AsOf = None,
        format: Format = "markdown",  # noqa: A002  the word users know
        include_sensitive: bool = False,
        without: Sequence[str] = (),
        include_weak: bool = False,
    ) -> CompiledContext:
        """Compile what a model should know for an objective, with a receipt.

        Without a budget, policy caps working and recalled memories together and the number of recalled lines; a named
        budget caps everything. Weak hits stay out unless ``include_weak``; a request for advice lets in the ten best
        remembered preferences all the same.

        A core block that was edited outside of Keepward or is missing is an error, unless ``without`` names it, by
        key or id; a block that holds is never left out.
        """

    @taking(context)
    @sends("read")
    def preview(self, objective: str, **asked: Any) -> Explanation:
        """Compile a context, keep nothing of it, and say of every candidate why it is in or out.

        It takes a reviewer or the owner; the arguments are those of ``context``.
        """

    @sends("read")
    def count_tokens(self, text: str, *, key: str | None = None) -> TokenCount:
        """Return how many tokens a text takes, and the budget of the core block with this key; keep nothing."""

    @sends("read")
    def snapshot(
        self,
        *,
        budget_tokens: int | None = None,
        format: Format = "markdown",  # noqa: A002
        without: Sequence[str] = (),
    ) -> CompiledContext:
        """Compile what belongs in every prompt of this scope: core, lasting memories and keyed state, no recall.

        ``without`` is as for ``context``.
        """

    @sends("read")
    def memory_block(
        self,
        query: str,
        *,
        budget_tokens: int | None = None,
        purpose: Purpose = "answer",
        include_weak: bool = False,
        format: Format = "markdown",  # noqa: A002
        seen: Sequence[str] = (),
    ) -> CompiledContext:
        """Compile only what is relevant to a query; the empty text when nothing is.

        ``include_weak`` is as for ``context``. Ids in ``seen`` are of memories that the reader has already: they stay
        out, and the receipt says so.
        """

    @sends("read")
    def replay(self, receipt_id: str) -> Replayed:
        """Render a compiled context again from its receipt, byte for byte."""

    @sends("read")
    def explain(self, receipt_id: str) -> Explanation:
        """Return the context of a receipt cut by memory, and of every candidate why it was in or out."""

    @sends("read")
    def receipts(
        self,
        *,
        kinds: Sequence[ReceiptKind] = (),
        actor: str | None = None,
        objective: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> ReceiptPage:
        """Return receipts in one line each, newest first; takes a reviewer or the owner.

        ``actor`` is ``kind:name`` or a name, ``objective`` a text that the objective or query holds. ``before`` of a
        page leads to the next one.
        """

    @sends("read")
    def receipt(self, receipt_id: str) -> dict[str, Any]:
        """Return a receipt as plain values; a commit's comes with the before and after of each target."""

    @sends("read")
    def doctor(self) -> list[Check]:
        """Return what was looked at, whether it is well, and what to do when it is not."""

    @sends("read")
    def status(self) -> dict[str, Any]:
        """Return counts, sizes, the queue, the use of budgets, and how each job stands, as plain values."""

    @sends("read")
    def identity(self, *, edition: str | None = None) -> Identity:
        """Return the identity document as it stands, or one of its editions by its version, and how each came to hold.

        Raises:
            NotFound: no such edition is kept.
        """

    # --- proposing

    @sends("write")
    def update_identity(self, text: str, *, reason: str = "") -> Outcome:
        """Propose a new edition of the identity document: it waits for the owner, whose own word decides at once.

        Raises:
            Conflict: no document is set here that could be replaced; the message says what to do.
            InvalidInput: it is what the document says already.
        """

    @sends("write")
    def remember(self, text: str, *, reason: str = "", **fields: Unpack[InsertFields]) -> Outcome:
        """Propose a new memory; with a ``key`` that is taken, an update of its holder.

        Fields, all optional: ``tier kind key scope subject category tags content_type blob metadata source evidence
        derived_from confidence importance ttl stability sensitivity access session speaker job aliases
        occurred_at consent vector``; see ``core.change.InsertFields``.

        Raises:
            InvalidInput: a field, or a name of a tier, kind, ..., that there is not; a value of another type.
        """

    @sends("write")
    def revise(
        self,
        memory_id: str,
        text: str = KEEP,
        *,
        reason: str = "",
        if_version: int | None = None,
        **fields: Unpack[ReplaceFields],
    ) -> Outcome:
        """Propose new text or fields for a memory; ``if_version`` makes a stale edit fail.

        Fields, all optional: ``category subject tags metadata source evidence confidence importance sensitivity ttl
        consent``; what is left out stays, None empties. An owner who names a ``source`` without a text vouches for
        the text as it stands: ``revise(id, source="operator", reason="checked")`` lifts an import's trust. What
        changes nothing makes no version: the outcome is ``duplicate`` with the reason ``unchanged``.
        """

    @sends("write")
    def append(
        self,
        memory_id: str,
        text: str,
        *,
        reason: str = "",
        if_version: int | None = None,
        **fields: Unpack[AppendFields],
    ) -> Outcome:
        """Propose an addition to a memory, after a line break.

        Fields, all optional: ``source evidence confidence consent``.
        """

    @sends("write")
    def forget(self, memory_id: str, *, reason: str = "", if_version: int | None = None) -> Outcome:
        """Propose that a memory no longer holds; it can be restored."""

    @sends("write")
    def archive(self, memory_id: str, *, reason: str = "", if_version: int | None = None) -> Outcome:
        """Propose to put a memory away: it holds and is not at hand until ``restore`` brings it back."""

    @sends("write")
    def restore(
        self, memory_id: str, *, reason: str = "", ttl: Duration | None = None, if_version: int | None = None
    ) -> Outcome:
        """Propose to bring back a retired, archived, superseded or expired memory."""

    @sends("write")
    def reinforce(self, memory_id: str, *, reason: str = "", gain: float = 0.0) -> Outcome:
        """Propose that a memory is confirmed: its confidence starts anew."""

    def move(
        self,
        memory_id: str,
        *,
        reason: str = "",
        tier: TierName = KEEP,
        scope: str = KEEP,
        key: str | None = KEEP,
        if_version: int | None = None,
    ) -> Outcome:
        """Propose another tier, scope or key."""
        where: Any = {"tier": tier, "scope": scope, "key": key}
        return self._send(verbs.write.Move(memory_id=memory_id, values=where, if_version=if_version, reason=reason))

    @sends("write")
    def promote(self, memory_id: str, text: str, *, reason: str = "") -> Outcome:
        """Propose lasting knowledge: permanent, with its canonical text, core when its key is a block's."""

    @sends("write")
    def supersede(self, memory_id: str, by: str, *, reason: str = "") -> Outcome:
        """Propose that one memory is replaced by another."""

    @sends("write")
    def merge(
        self, memory_ids: Sequence[str], text: str | None = None, *, reason: str = "", **fields: Unpack[InsertFields]
    ) -> Outcome | None:
        """Propose one summary in place of several memories, which it supersedes; None for fewer than two.

        Without a text the summary is theirs, one a line.

        Raises:
            InvalidInput: they differ in subject, scope or sensitivity, or the summary is to be about somebody else.
        """

    @sends("write")
    def update_by_key(self, key: str, text: str, *, reason: str = "", **fields: Unpack[KeyedFields]) -> Outcome:
        """Propose the text of a keyed state: created when missing, updated in place when there."""

    @sends("write")
    def forget_many(self, memory_ids: Sequence[str], *, reason: str = "") -> tuple[Outcome | None, list[str]]:
        """Retire all that are there in one commit; return the outcome and the ids that were not found."""

    def forget_matching(self, text: str, *, digest: str | None = None, reason: str = "") -> Forgetting:
        """Retire what a text matches in this handle's scope, in one commit that one rollback undoes.

        Without ``digest`` nothing is written: the result is the plan, best match first, and its digest. With that
        digest exactly the plan is applied. Weak hits are no matches.

        Raises:
            Conflict: what would be forgotten has changed since the plan was made.
        """
        if digest is None:
            return self._send(verbs.write.PlanForgetMatching(text=text))
        return self._send(verbs.write.ForgetMatching(text=text, digest=digest, reason=reason))

    @sends("write")
    def propose(
        self, changes: Sequence[Change], *, reason: str = "", session: str | None = None, kind: str = "write"
    ) -> Outcome:
        """Propose changes that are carried out, held or refused together."""

    @abstractmethod
    def draft(self, *, reason: str = "", session: str | None = None) -> Draft:
        """Collect changes in a ``with`` block and propose them together at its end; an error discards them."""

    @sends("write")
    def remember_many(
        self,
        items: Sequence[Mapping[str, Any] | str],
        *,
        mode: Literal["each", "atomic"] = "each",
        reason: str = "",
        kind: str = "write",
        batch: int = 500,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> list[Outcome]:
        """Propose many memories: texts, or mappings of ``remember``'s arguments.

        ``each``: every item is judged alone, the good ones are committed ``batch`` at a time, and outcomes
        come in the order given. ``atomic``: all or nothing, one outcome for each item. Over HTTP at most a megabyte of
        items goes in one call, and ``atomic`` has to fit into one.
        """

    # --- feedback and blobs

    @sends("upkeep")
    def feedback(self, receipt_id: str, *, used: Sequence[str] = (), ignored: Sequence[str] = ()) -> Feedback:
        """Say which memories of a context, or of a recall with ``receipt=True``, were used and which were not.

        It is kept beside the journal under this handle's actor and changes no answer until ``train_reranker``.
        Said again, it takes the place of what was said before.

        Raises:
            NotFound: no such receipt within reach.
            InvalidInput: an id that the receipt does not show, one on both sides, or none at all.
        """

    @sends("upkeep")
    def put_blob(self, data: bytes, *, media_type: str | None = None) -> Blob:
        """Keep 1 byte to 32 MB, for memories to refer to: ``remember("what it shows", blob=blob.ref)``.

        Without a media type, or with ``application/octet-stream``, the bytes say what they are. The same bytes are
        kept once. What no memory refers to goes a day after it was put.

        Raises:
            Unauthorised: this principal may not propose.
            InvalidInput: empty, too large, not what the media type says, or holding a secret; nothing was stored.
            Conflict: they were erased here, or memory is switched off.
        """

    @sends("upkeep")
    def blob(self, ref: str) -> Blob:
        """Return size and media type of a blob that a live memory within reach refers to, or that one has put.

        Raises:
            NotFound: there is none by that name, or none that this handle may read.
        """

    @sends("upkeep")
    def read_blob(self, ref: str) -> bytes:
        """Return the bytes of a blob, compared with its hash; who may read it is as for ``blob``.

        Raises:
            NotFound: there is none by that name, or none that this handle may read.
            Tampered: the bytes on disk are not those that were put, or are gone.
        """
