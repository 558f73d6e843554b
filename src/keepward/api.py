"""The operations of a memory, each once: a typed method whose signature and docstring define it on every surface.

``Memory`` carries an operation out in the store that it has opened, ``Client`` sends it to a server, and
``AsyncMemory`` awaits it; arguments, values and errors are the same. To add one, write its method here and the
function named by ``by``, and add an example call to ``tests/calls.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from keepward.conversation import Conversation
from keepward.core import change
from keepward.core.blob import Blob
from keepward.core.browse import Activity, Facets, Lineage, Member, Sources
from keepward.core.change import (
    UNSET,
    AccessName,
    Change,
    ContentTypeName,
    KindName,
    SensitivityName,
    SourceName,
    StabilityName,
    TierName,
)
from keepward.core.commit import Receipt, ReceiptKind, ReceiptPage
from keepward.core.compiled import CompiledContext, Replayed
from keepward.core.copies import AdoptionPlan
from keepward.core.identity import Identity
from keepward.core.job import DUE, Alike, JobState, Run
from keepward.core.journal import (
    Bisection,
    Blame,
    Check,
    CommitView,
    Containment,
    ContextDifference,
    Contradictions,
    Difference,
    Erased,
    ErasePlan,
    Impact,
    Rollback,
    Verification,
    Version,
)
from keepward.core.memory import Record
from keepward.core.messages import Added
from keepward.core.principals import Issued, Token
from keepward.core.proposal import DecisionResult, Forgetting, Outcome, Proposal, ProposalPage
from keepward.core.query import (
    AsOf,
    Feedback,
    Filters,
    Memories,
    Order,
    Purpose,
    Recall,
    Training,
)
from keepward.core.value import Duration
from keepward.operations import OPERATIONS as OPERATIONS  # noqa: PLC0414  for all who use it
from keepward.operations import Operation, async_method, operation
from keepward.types import ErasureReason, Format, Sort

if TYPE_CHECKING:
    from typing import Self

    from keepward.draft import Draft


class MemoryAPI(ABC):
    """The operations; as a context manager it closes itself at the end."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """The scope this handle stands at."""

    @abstractmethod
    def close(self) -> None:
        """Release what the handle and all others beside it have open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(
            "a handle is neither pickled nor copied: open the store, or make a client, in each process; `at()` gives "
            "another handle here"
        )

    @abstractmethod
    def _send(self, about: Operation, given: dict[str, Any]) -> Any:
        """Have an operation carried out with arguments by name."""

    @abstractmethod
    def draft(self, *, reason: str = "", session: str | None = None) -> Draft:
        """Collect changes in a ``with`` block and propose them together at its end; an error discards them."""

    def session(self, name: str, *, subject: str | None = None) -> Conversation:
        """Return a conversation under a name of its own, to say turns into as they come; see ``Conversation``.

        As a context manager it writes a summary at its end, which expires after a week; an error writes none.
        """
        return Conversation(self, name, subject)

    # --- reading

    @operation("GET /memory/search", by="services.search:recall", right="read", tool="recall")
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

        A score is from 0 to 1; the ``parts`` of a hit say what it is made of. Hits below ``floor`` are left out. A hit
        is ``weak`` where it shares no rare word with the query and is far from it in meaning.
        ``order`` is ``learned`` (by the reranker where one serves), ``fused`` or ``cosine``. With ``receipt`` a
        receipt is kept, for ``feedback`` to name.
        ``since`` and ``until`` say when a memory was written, ``occurred_since`` and ``occurred_until`` when what it
        tells happened; see ``list_memories``. Over HTTP all pages of a query show at most 1,000 hits.
        """

    @operation("GET /memory/items", by="services.search:find", right="read", answer="items")
    def list_memories(
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

    @operation("GET /memory/items/{id}", by="services.search:get", right="read")
    def get(self, memory_id: str, *, as_of: AsOf = None) -> Record:
        """Return a memory by id or alias, whatever its status.

        Over HTTP its ETag goes into the ``If-Match`` of a change.
        """

    @operation(
        "GET /memory/items/{id}/history", by="services.read:history", right="read", answer="items", tool="history"
    )
    def history(self, memory_id: str) -> list[Version]:
        """Return every version of a memory with the commit that made it, oldest first."""

    @operation("GET /memory/facets", by="services.search:facets", right="read")
    def facets(self, *, of: Sequence[str] = (), most: int = 50, filters: Filters | None = None) -> Facets:
        """Return how many memories pass, and how many of each sort; filters are those of ``list_memories``."""

    @operation("GET /memory/activity", by="services.search:activity", right="read")
    def activity(
        self,
        *,
        by: Literal["author", "source", "session", "tier", "kind", "scope"] = "author",
        days: int = 30,
        zone: int = 0,
        filters: Filters | None = None,
    ) -> Activity:
        """Return how many versions were written on each day, and by whom; filters are those of ``list_memories``.

        The days, 1 to 400 of them, end with ``until`` or today, in a zone so many minutes east of UTC. ``by`` is
        ``author``, ``source``, ``session``, ``tier``, ``kind`` or ``scope``.
        """

    @operation("GET /memory/sources", by="services.search:sources", right="read")
    def sources(self, *, filters: Filters | None = None) -> Sources:
        """Return what each actor, source, reference and session wrote; filters are those of ``list_memories``."""

    @operation("GET /memory/users", by="services.browse:users", right="read", answer="items")
    def users(self) -> list[Member]:
        """Return the users with memories at this scope and below, each with how many, by name."""

    @operation("GET /memory/projects", by="services.browse:projects", right="read", answer="items")
    def projects(self) -> list[Member]:
        """Return the projects with memories at this scope and below, each with how many, by name."""

    @operation("GET /memory/items/{id}/lineage", by="services.provenance:lineage", right="read")
    def lineage(self, memory_id: str) -> Lineage:
        """Return what a memory was made from and what was made of it, over any number of steps."""

    @operation("POST /memory/compile", by="services.contexts:context", right="read", tool="get_context")
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
        preview: bool = False,
    ) -> CompiledContext:
        """Compile what a model should know for an objective, with a receipt.

        Without a budget, policy caps working and recalled memories together and the number of recalled lines; a named
        budget caps everything. Weak hits stay out unless ``include_weak``; a request for advice lets in the ten best
        remembered preferences all the same.

        A core block that was edited outside of Keepward or is missing is an error, unless ``without`` names it, by
        key or id; a block that holds is never left out.

        With ``preview`` no receipt is kept, and ``explanation`` says of every candidate why it is in or out. It takes
        a reviewer or the owner.
        """

    @operation("GET /memory/snapshot", by="services.operations:snapshot", right="read")
    def snapshot(
        self,
        *,
        budget_tokens: int | None = None,
        format: Format = "markdown",  # noqa: A002  the word users know
        without: Sequence[str] = (),
    ) -> CompiledContext:
        """Compile what belongs in every prompt of this scope: core, lasting memories and keyed state, no recall.

        ``without`` is as for ``context``.
        """

    @operation("POST /memory/block", by="services.operations:memory_block", right="read")
    def memory_block(
        self,
        query: str,
        *,
        budget_tokens: int | None = None,
        purpose: Purpose = "answer",
        include_weak: bool = False,
        format: Format = "markdown",  # noqa: A002  the word users know
        seen: Sequence[str] = (),
    ) -> CompiledContext:
        """Compile only what is relevant to a query; the empty text when nothing is.

        ``include_weak`` is as for ``context``. Ids in ``seen`` are of memories that the reader has already: they stay
        out, and the receipt says so.
        """

    @operation("POST /memory/receipts/{id}/replay", by="services.contexts:replay", right="read")
    def replay(self, receipt_id: str) -> Replayed:
        """Render a compiled context again from its receipt, byte for byte."""

    @operation("GET /memory/receipts", by="services.explain:receipts", right="approve")
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

    @operation("GET /memory/receipts/{id}", by="services.explain:receipt", right="read")
    def receipt(self, receipt_id: str) -> dict[str, Any]:
        """Return a receipt as plain values; a commit's has the before and after of each target.

        A context's has its ``explanation``: the text cut by memory, and of every candidate why it was in or out.
        """

    @operation("GET /memory/doctor", by="services.status:doctor", right="read", answer="items")
    def doctor(self) -> list[Check]:
        """Return what was looked at, whether it is well, and what to do when it is not."""

    @operation("GET /memory/status", by="services.operations:status", right="read", tool="status")
    def status(self) -> dict[str, Any]:
        """Return counts, sizes, the queue, the use of budgets, and how each job stands, as plain values."""

    @operation("GET /memory/identity", by="services.identity:identity", right="read")
    def identity(self, *, edition: str | None = None) -> Identity:
        """Return the identity document as it stands, or one of its editions by its version, and how each came to hold.

        Raises:
            NotFound: no such edition is kept.
        """

    # --- proposing

    @operation("PUT /memory/identity", by="services.identity:update_identity", right="propose")
    def update_identity(self, text: str, *, reason: str = "") -> Outcome:
        """Propose a new edition of the identity document: it waits for the owner, whose own word decides at once.

        Raises:
            Conflict: no document is set here that could be replaced; the message says what to do.
            InvalidInput: it is what the document says already.
        """

    @operation(
        "POST /memory/items", by="services.edits:remember", right="propose", tool="remember", makes=change.Insert
    )
    def remember(
        self,
        text: str,
        *,
        reason: str = "",
        tier: TierName | None = None,
        kind: KindName | None = None,
        key: str | None = None,
        scope: str | None = None,
        subject: str | None = None,
        category: str | None = None,
        tags: Sequence[str] = (),
        content_type: ContentTypeName = "text",
        blob: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: SourceName | None = None,
        evidence: Sequence[str] = (),
        derived_from: Sequence[str] = (),
        confidence: float | None = None,
        importance: float | None = None,
        ttl: Duration | None = None,
        stability: StabilityName | None = None,
        sensitivity: SensitivityName | None = None,
        access: AccessName | None = None,
        session: str | None = None,
        speaker: str | None = None,
        job: str | None = None,
        aliases: Sequence[str] = (),
        occurred_at: datetime | str | None = None,
        consent: bool = False,
        vector: Sequence[float] | None = None,
        if_version: int | None = None,
    ) -> Outcome:
        """Propose a new memory; with a ``key`` that is taken, an update of its holder.

        Everything but the text may be left out:

        * ``tier``: ``core``, ``working``, ``episodic`` or ``archival``; archival where nothing else follows.
        * ``kind``: ``rule``, ``fact``, ``state``, ``event``, ``summary`` or ``document``; by tier.
        * ``key``: a stable name, such as ``deploy.port``. ``if_version`` is the version of its holder that was seen.
        * ``scope``: a path, such as ``/agents/planner``; that of the handle.
        * ``subject``, ``category``, ``tags``, ``metadata``: whom and what it is about; metadata is a JSON object.
        * ``source``, ``evidence``, ``derived_from``: where it comes from, such as ``user_message`` and ``["chat:42"]``,
          and the ids of memories that it was made from.
        * ``confidence``, ``importance``: from 0 to 1; by source.
        * ``ttl``: how long it holds, in seconds or as text such as ``24h`` or ``30d``.
        * ``stability``: ``volatile``, ``stable`` or ``permanent``; by kind and tier.
        * ``sensitivity``, ``access``: ``normal`` or ``sensitive``; who may change it.
        * ``consent``: personal identifiers in the text were given with consent: they stay and make it sensitive.
        * ``session``, ``speaker``, ``job``, ``occurred_at``: when it was said or happened, by whom, and during what.
        * ``aliases``: ids under which other systems know it.
        * ``blob``, ``content_type``: the bytes that it describes, as ``put_blob`` named them.
        * ``vector``: an embedding of one's own, by the model of this store.

        Example: ``mem.remember("Ana prefers tabs", source="user_message", evidence=["chat:42"])``.

        Raises:
            InvalidInput: a field, or a name of a tier, kind, ..., that there is not; a value of another type.
        """

    @operation(
        "PATCH /memory/items/{id}", by="services.edits:revise", right="propose", tool="revise", makes=change.Replace
    )
    def revise(
        self,
        memory_id: str,
        text: str = UNSET,
        *,
        reason: str = "",
        if_version: int | None = None,
        category: str | None = UNSET,
        subject: str | None = UNSET,
        tags: Sequence[str] = UNSET,
        metadata: Mapping[str, Any] | None = UNSET,
        source: SourceName | None = None,
        evidence: Sequence[str] = UNSET,
        confidence: float | None = None,
        importance: float | None = None,
        sensitivity: SensitivityName | None = None,
        ttl: Duration | None = UNSET,
        consent: bool = False,
    ) -> Outcome:
        """Propose new text or fields for a memory; ``if_version`` makes a stale edit fail.

        Fields, all optional: ``category subject tags metadata source evidence confidence importance sensitivity ttl
        consent``; what is left out stays, None empties. An owner who names a ``source`` without a text vouches for
        the text as it stands: ``revise(id, source="operator", reason="checked")`` lifts an import's trust. What
        changes nothing makes no version: the outcome is ``duplicate`` with the reason ``unchanged``. Over HTTP it takes
        the ``If-Match`` that its GET gave.
        """

    @operation("POST /memory/items/{id}/append", by="services.edits:append", right="propose", makes=change.Append)
    def append(
        self,
        memory_id: str,
        text: str,
        *,
        reason: str = "",
        source: SourceName | None = None,
        evidence: Sequence[str] = (),
        confidence: float | None = None,
        consent: bool = False,
        if_version: int | None = None,
    ) -> Outcome:
        """Propose an addition to a memory, after a line break.

        Fields, all optional: ``source evidence confidence consent``.
        """

    @operation(
        "DELETE /memory/items/{id}", by="services.edits:forget", right="propose", tool="forget", makes=change.Retire
    )
    def forget(self, memory_id: str, *, reason: str = "", if_version: int | None = None) -> Outcome:
        """Propose that a memory no longer holds; it can be restored.

        Over HTTP an ``If-Match`` is heeded where it is sent.
        """

    @operation("POST /memory/items/{id}/archive", by="services.edits:archive", right="propose", makes=change.Archive)
    def archive(self, memory_id: str, *, reason: str = "", if_version: int | None = None) -> Outcome:
        """Propose to put a memory away: it holds and is not at hand until ``restore`` brings it back."""

    @operation("POST /memory/items/{id}/restore", by="services.edits:restore", right="propose", makes=change.Restore)
    def restore(
        self, memory_id: str, *, reason: str = "", ttl: Duration | None = None, if_version: int | None = None
    ) -> Outcome:
        """Propose to bring back a retired, archived, superseded or expired memory."""

    @operation(
        "POST /memory/items/{id}/reinforce", by="services.edits:reinforce", right="propose", makes=change.Reinforce
    )
    def reinforce(self, memory_id: str, *, reason: str = "", gain: float = 0.0) -> Outcome:
        """Propose that a memory is confirmed: its confidence starts anew."""

    @operation("POST /memory/items/{id}/move", by="services.edits:move", right="propose", makes=change.Move)
    def move(
        self,
        memory_id: str,
        *,
        reason: str = "",
        tier: TierName = UNSET,
        scope: str = UNSET,
        key: str | None = UNSET,
        if_version: int | None = None,
    ) -> Outcome:
        """Propose another tier, scope or key."""

    @operation("POST /memory/items/{id}/promote", by="services.edits:promote", right="propose", makes=change.Promote)
    def promote(self, memory_id: str, text: str, *, reason: str = "") -> Outcome:
        """Propose lasting knowledge: permanent, with its canonical text, core when its key is a block's."""

    @operation(
        "POST /memory/items/{id}/supersede", by="services.edits:supersede", right="propose", makes=change.Supersede
    )
    def supersede(self, memory_id: str, by: str, *, reason: str = "") -> Outcome:
        """Propose that one memory is replaced by another."""

    @operation("POST /memory/items/merge", by="services.edits:merge", right="propose", makes=change.Insert)
    def merge(
        self,
        memory_ids: Sequence[str],
        text: str | None = None,
        *,
        reason: str = "",
        tier: TierName | None = None,
        kind: KindName | None = "summary",
        key: str | None = None,
        scope: str | None = None,
        subject: str | None = None,
        category: str | None = None,
        tags: Sequence[str] = (),
        content_type: ContentTypeName = "text",
        blob: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: SourceName | None = None,
        evidence: Sequence[str] = (),
        derived_from: Sequence[str] = (),
        confidence: float | None = None,
        importance: float | None = None,
        ttl: Duration | None = None,
        stability: StabilityName | None = None,
        sensitivity: SensitivityName | None = None,
        access: AccessName | None = None,
        session: str | None = None,
        speaker: str | None = None,
        job: str | None = None,
        aliases: Sequence[str] = (),
        occurred_at: datetime | str | None = None,
        consent: bool = False,
        vector: Sequence[float] | None = None,
        if_version: int | None = None,
    ) -> Outcome | None:
        """Propose one summary in place of several memories, which it supersedes; None for fewer than two.

        Without a text the summary is theirs, one a line.

        Raises:
            InvalidInput: they differ in subject, scope or sensitivity, or the summary is to be about somebody else.
        """

    @operation("PUT /memory/keys/{key}", by="services.edits:update_by_key", right="propose", makes=change.Insert)
    def update_by_key(
        self,
        key: str,
        text: str,
        *,
        reason: str = "",
        tier: TierName | None = None,
        kind: KindName | None = "state",
        scope: str | None = None,
        subject: str | None = None,
        category: str | None = None,
        tags: Sequence[str] = (),
        content_type: ContentTypeName = "text",
        blob: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: SourceName | None = None,
        evidence: Sequence[str] = (),
        derived_from: Sequence[str] = (),
        confidence: float | None = None,
        importance: float | None = None,
        ttl: Duration | None = None,
        stability: StabilityName | None = None,
        sensitivity: SensitivityName | None = None,
        access: AccessName | None = None,
        session: str | None = None,
        speaker: str | None = None,
        job: str | None = None,
        aliases: Sequence[str] = (),
        occurred_at: datetime | str | None = None,
        consent: bool = False,
        vector: Sequence[float] | None = None,
        if_version: int | None = None,
    ) -> Outcome:
        """Propose the text of a keyed state: created when missing, updated in place when there."""

    @operation("POST /memory/items/forget", by="services.edits:forget_many", right="propose", answer="outcome missing")
    def forget_many(self, memory_ids: Sequence[str], *, reason: str = "") -> tuple[Outcome | None, list[str]]:
        """Retire all that are there in one commit; return the outcome and the ids that were not found."""

    @operation("POST /memory/forget/plan", by="services.forget:plan_forget_matching", right="propose")
    def plan_forget_matching(self, text: str) -> Forgetting:
        """Return which memories of this handle's own scope a text matches, best first, under a digest; change nothing.

        Weak hits of ``recall`` are no matches. Example: ``mem.plan_forget_matching("my old address").matches``.
        """

    @operation("POST /memory/forget", by="services.forget:forget_matching", right="propose")
    def forget_matching(self, text: str, digest: str, *, reason: str = "") -> Forgetting:
        """Retire exactly what the plan with this digest lists, in one commit that one rollback undoes.

        Raises:
            Conflict: what would be forgotten has changed since the plan was made.
        """

    @operation("POST /memory/edit", by="services.edits:propose", right="propose")
    def propose(
        self, changes: Sequence[Change], *, reason: str = "", session: str | None = None, kind: str = "write"
    ) -> Outcome:
        """Propose changes that are carried out, held or refused together.

        Over HTTP a change is an ``op``, such as ``insert`` or ``replace``, with its fields. An edit of one block may be
        sent as ``target`` (``core:mission``), ``content``, ``reason``, ``confidence`` and ``provenance``; without
        content the block is retired.
        """

    @operation("POST /memory/items/batch", by="services.edits:remember_many", right="propose", answer="outcomes")
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

    @operation("POST /memory/messages", by="services.operations:add", right="propose", status=201)
    def add(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        session: str | None = None,
        subject: str | None = None,
        extract: bool = True,
        reason: str = "",
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Added:
        """Add messages of a talk as events of a session, and propose the facts that they tell.

        Messages are ``{"role": ..., "content": ...}`` with ``name``, ``id`` and ``timestamp`` where they have one; one
        with an id is added once. ``subject`` is whom the talk is about: the user. What a user asks
        to remember ("remember that ...") becomes a fact, as it was said; the ``extractor`` that the store was opened
        with may propose more. Each fact is derived from the message that told it and judged as any other memory.

        Raises:
            InvalidInput: one of them is no message; nothing was stored.
        """

    # --- feedback and blobs

    @operation("POST /memory/feedback", by="services.operations:feedback", right="read", changes=True)
    def feedback(self, receipt_id: str, *, used: Sequence[str] = (), ignored: Sequence[str] = ()) -> Feedback:
        """Say which memories of a context, or of a recall with ``receipt=True``, were used and which were not.

        It is kept beside the journal under this handle's actor and changes no answer until ``train_reranker``.
        Said again, it takes the place of what was said before.

        Raises:
            NotFound: no such receipt within reach.
            InvalidInput: an id that the receipt does not show, one on both sides, or none at all.
        """

    @operation("POST /memory/blobs", by="services.blobs:put", right="propose", status=201)
    def put_blob(self, data: bytes, *, media_type: str | None = None) -> Blob:
        """Keep 1 byte to 32 MB, for memories to refer to: ``remember("what it shows", blob=blob.ref)``.

        Without a media type, or with ``application/octet-stream``, the bytes say what they are. The same bytes are
        kept once. What no memory refers to goes a day after it was put.

        Raises:
            Unauthorised: this principal may not propose.
            InvalidInput: empty, too large, not what the media type says, or holding a secret; nothing was stored.
            Conflict: they were erased here, or memory is switched off.
        """

    @operation("GET /memory/blobs/{ref}", by="services.blobs:read", right="read")
    def read_blob(self, ref: str) -> bytes:
        """Return the bytes of a blob, compared with its hash.

        It takes who may read a live memory that refers to it, or who has put it.
        Over HTTP ``HEAD`` answers with its size and media type alone.

        Raises:
            NotFound: there is none by that name, or none that this handle may read.
            Tampered: the bytes on disk are not those that were put, or are gone.
        """

    # --- deciding

    @operation("GET /memory/quarantine", by="services.review_queue:pending", right="read", tool="pending")
    def pending(
        self,
        *,
        state: str = "pending",
        proposer: str | None = None,
        gate: str | None = None,
        tier: TierName | None = None,
        sort: str = "age",
        offset: int = 0,
        limit: int | None = 50,
    ) -> ProposalPage:
        """Return proposals that this handle may read, oldest first, with how many there are.

        ``proposer`` is ``kind:name``, ``gate`` one that held it. ``state`` may be ``all``. ``offset`` counts from 0;
        a limit of None is for all. ``counts`` is of all proposals of the state, whatever else is asked for.
        ``sort="danger"`` puts prompt injection and secrets first, then personal data, then core blocks.
        """

    @operation("GET /memory/quarantine/{id}", by="services.review_queue:proposal", right="read")
    def proposal(self, proposal_id: str) -> Proposal:
        """Return a proposal, whatever became of it, by its id or the first letters of it.

        To a reviewer or the owner ``review_context`` says what bears on a decision: what each gate looks for, evidence
        opened, what is similar, and whom it reached.

        Over HTTP its ETag is the digest that an approval is bound to.
        """

    @operation("GET /memory/notices", by="services.review:notices", right="read", answer="items")
    def notices(self) -> list[Proposal]:
        """Return, once, the decisions on this actor's own proposals that went against them."""

    @operation("POST /memory/quarantine/{id}/approve", by="services.review:approve", right="approve", status=201)
    def approve(self, proposal_id: str, *, digest: str | None = None) -> Outcome:
        """Store exactly what was proposed; takes a reviewer or the owner, never the proposer.

        ``digest`` is that of the proposal that was seen; over HTTP ``If-Match`` carries it, and has to.
        """

    @operation("POST /memory/quarantine/{id}/amend", by="services.edits:amend", right="approve", makes=change.Replace)
    def amend(
        self,
        proposal_id: str,
        text: str = UNSET,
        *,
        digest: str | None = None,
        memory: str | None = None,
        if_version: int | None = None,
        leave_out: Sequence[str] = (),
        category: str | None = UNSET,
        subject: str | None = UNSET,
        tags: Sequence[str] = UNSET,
        metadata: Mapping[str, Any] | None = UNSET,
        source: SourceName | None = None,
        evidence: Sequence[str] = UNSET,
        confidence: float | None = None,
        importance: float | None = None,
        sensitivity: SensitivityName | None = None,
        ttl: Duration | None = UNSET,
        consent: bool = False,
    ) -> Outcome:
        """Approve a proposal with changes of one's own to what it would store, which the gates judge again.

        Fields are those of ``revise``; ``memory`` says which is meant, where it would store several texts. New words
        are stored as the reviewer's, and the proposal is closed as approved with changes. What the gates refuse, or
        would hold for another reason than the proposal, is ``Refused``, and the proposal goes on waiting.

        A proposal that is ``stale`` takes ``if_version``, the version of the memory in ``current``: the change is then
        made to what that says.

        ``leave_out`` names memories whose changes are not made; the others are approved.
        """

    @operation(
        "POST /memory/quarantine/{id}/reject", by="services.review:reject", right="approve", answer="receipt_record"
    )
    def reject(self, proposal_id: str, *, reason: str) -> Receipt:
        """Discard a proposal; what held before still holds."""

    @operation(
        "POST /memory/quarantine/{id}/reopen", by="services.review:reopen", right="approve", answer="receipt_record"
    )
    def reopen(self, proposal_id: str, *, reason: str) -> Receipt:
        """Put a rejected or expired proposal back into the queue, where it waits as it did."""

    @operation("POST /memory/quarantine/approve", by="services.review:approve_many", right="approve", answer="results")
    def approve_many(self, items: Sequence[str | Mapping[str, Any]]) -> list[DecisionResult]:
        """Approve each by id, or by id with the digest that was seen; each gets its own answer, in the order given."""

    @operation("POST /memory/quarantine/reject", by="services.review:reject_many", right="approve", answer="results")
    def reject_many(self, ids: Sequence[str], *, reason: str) -> list[DecisionResult]:
        """Reject each for one reason; each gets its own answer, in the order given."""

    # --- the journal

    @operation("GET /memory/commits", by="services.provenance:log", right="read", answer="items")
    def log(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        actor: str | None = None,
        kind: str | None = None,
        until: AsOf = None,
    ) -> list[CommitView]:
        """Return commits within reach, newest first, with seq below ``before``.

        ``actor`` made or approved them: ``kind:name``, or a name alone; ``kind`` is a commit's, such as ``approve``;
        ``until`` is the moment of the newest.
        """

    @operation("GET /memory/commits/{commit_id}", by="services.provenance:show", right="read")
    def show(self, commit: str) -> CommitView:
        """Return one commit by id, a unique prefix of it, or its number."""

    @operation("GET /memory/diff", by="services.provenance:diff", right="read", answer="items")
    def diff(self, earlier: AsOf, later: AsOf = None) -> list[Difference]:
        """Return the memories that differ between the states after two commits; ``0`` is the empty store."""

    @operation("POST /memory/rollback/{commit_id}", by="services.rollback:roll_back", right="propose")
    def rollback(self, commit: str, *, with_later: bool = False, dry_run: bool = False, reason: str = "") -> Rollback:
        """Undo one commit exactly; a second call changes nothing and gives the first receipt.

        Where later commits touched the same memories nothing is changed, and ``conflicts`` names them; ``with_later``
        undoes these commits as well. ``dry_run`` says what would happen.

        Over HTTP ``If-Match`` carries the head's ETag, as ``/memory/status`` and ``/memory/commits`` give it; a dry
        run needs none. Conflicts are a 409 with all the keys of the result.
        """

    @operation("POST /memory/verify", by="services.status:verify", right="read")
    def verify(self, *, on_progress: Callable[[int, int], None] | None = None) -> Verification:
        """Check the chain, every seal, every projection and the anchor.

        ``on_progress`` is called with (rows looked at, rows there are); over HTTP once, at the end.
        """

    @operation(
        "POST /memory/rebuild", by="services.index_cache:rebuild", right="owner", answer="records", owner="rebuilding"
    )
    def rebuild(self) -> int:
        """Compute the tenant's records anew from the journal; return how many there are."""

    @operation(
        "POST /memory/reindex", by="services.index_cache:reindex", right="owner", answer="indexed", owner="reindexing"
    )
    def reindex(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Compute terms and vectors anew where they are missing or of another embedder; return how many.

        Over HTTP ``on_progress`` is called once, at the end.
        """

    # --- inquiring

    @operation("GET /memory/impact", by="services.operations:impact", right="approve")
    def impact(
        self,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
    ) -> Impact:
        """Return what one of these touched: memories, everything derived from them, every context that held any.

        A source is a class such as ``web`` or a reference in evidence; an actor is ``kind:name``. Takes a
        reviewer or the owner.
        """

    @operation("POST /memory/contain/plan", by="services.operations:plan_contain", right="approve")
    def plan_contain(
        self,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
    ) -> Containment:
        """Return what taking all that one of these touched out of use would change, under a digest; change nothing."""

    @operation("POST /memory/contain", by="services.operations:contain", right="owner")
    def contain(
        self,
        digest: str,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
        reason: str = "",
    ) -> Containment:
        """Carry out exactly the plan with this digest, in one commit that one rollback undoes; for the owner alone."""

    @operation("GET /memory/blame/{name}", by="services.provenance:blame", right="read")
    def blame(self, name: str) -> Blame:
        """Return which commit, actor, source and approval made each value of a memory, by id or key."""

    @operation("GET /memory/contradictions", by="services.search:contradictions", right="read")
    def contradictions(
        self,
        *,
        limit: int = 50,
        tiers: Sequence[TierName] = (),
        kinds: Sequence[KindName] = (),
        tags: Sequence[str] = (),
        content_types: Sequence[ContentTypeName] = (),
        subject: str | None = None,
        category: str | None = None,
        session: str | None = None,
        min_importance: float = 0.0,
        include_sensitive: bool = False,
    ) -> Contradictions:
        """Return pairs of memories that say nearly the same and differ in something, with what differs.

        The closest come first; nothing is changed, merged or superseded. Filters apply as in ``recall``, to both. The
        pairs are those of ``merge_candidates`` that are not the same: of one scope, tier, subject and kind, and no
        keyed memories, events or core memories.
        """

    @operation("POST /memory/bisect", by="services.operations:bisect", right="read")
    def bisect(
        self,
        query: str,
        *,
        contains: str | None = None,
        predicate: Callable[[str], bool] | None = None,
        since: int = 0,
        purpose: Purpose = "answer",
    ) -> Bisection:
        """Return the first commit after which the context for a query contains a text or passes a predicate.

        A predicate cannot be sent to a server.
        """

    @operation("GET /memory/receipts/{id}/diff/{other}", by="services.explain:context_diff", right="read")
    def context_diff(self, first: str, second: str) -> ContextDifference:
        """Return what differs between two compiled contexts, by receipt id, and the commit responsible for each."""

    # --- erasing, and accepting a store

    @operation("POST /memory/erase/plan", by="services.operations:plan_erase", right="erase", owner="erasing")
    def plan_erase(
        self,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: ErasureReason = "request",
        include_citing: bool = False,
    ) -> ErasePlan:
        """Return what erasing these memories would destroy, under a digest; change nothing.

        ``subject`` and ``source`` take memories of the whole tenant; ``source`` is a reference in evidence, a
        foreign name, or the name of a source. A user's handle that names nothing takes all that is the user's and all
        that cites it. ``reason`` is one of the codes of ``core.commit.REASONS``.
        What derives from one of these or cites it stays, and is listed as ``candidates`` with its text;
        ``include_citing`` takes it along, for example a fact whose evidence is an erased message.
        """

    @operation("POST /memory/erase", by="services.operations:erase", right="erase", owner="erasing")
    def erase(
        self,
        digest: str,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: ErasureReason = "request",
        include_citing: bool = False,
    ) -> Erased:
        """Carry out exactly the plan with this digest, given what it was planned for; nothing brings it back.

        Raises:
            Conflict: what would be erased has changed; nothing was erased.
        """

    @operation(
        "GET /memory/certificates/{name}",
        by="services.erasure_references:certificate_of",
        right="erase",
        owner="erasing",
    )
    def certificate(self, name: str) -> dict[str, Any]:
        """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit.

        ``log(kind="erase")`` lists the erasures.
        """

    @operation("POST /memory/adopt/plan", by="copies.backup:plan_adopt", right="owner", owner="accepting a store")
    def plan_adopt(self) -> AdoptionPlan:
        """Return what adopting this copy of a store would accept, under a digest; change nothing."""

    @operation("POST /memory/adopt", by="copies.backup:adopt", right="owner", owner="accepting a store")
    def adopt(self, digest: str) -> AdoptionPlan:
        """Accept the store as it stands, given the digest of what was shown.

        What this machine has erased is carried out in it again. The tokens of a foreign store end, and it says for
        good that it was one.

        Raises:
            Conflict: the store is not in the state that was shown.
            Tampered: its journal does not hold in itself; nothing was accepted.
            StoreUnavailable: it can only be read, or this machine has no place to note it.
        """

    # --- upkeep

    @operation(
        "POST /memory/train", by="services.reranker:train_reranker", right="owner", owner="training the reranker"
    )
    def train_reranker(self) -> Training:
        """Train the reranker from all feedback, as an owner; it is used only if it orders held-out feedback better."""

    @operation("GET /memory/jobs", by="services.operations:jobs", right="read", answer="items")
    def jobs(self) -> list[JobState]:
        """Return every job with its schedule and its last run, in the order in which they run."""

    @operation(
        "POST /memory/jobs/{name}/run",
        by="jobs.runner:run_jobs",
        right="owner",
        answer="items",
        owner="running a job",
    )
    def run_jobs(self, name: str = DUE, *, force: bool = False) -> list[Run]:
        """Run every job that is due, or the one with this name, for the owner alone; ``force`` runs it undue.

        Whatever becomes of one is a value with a receipt: ``run``, ``failed`` or ``skipped``. Over HTTP the name
        ``due`` runs every job that is due.

        Raises:
            NotFound: there is no such job.
            Unauthorised: this handle is not an owner's.
        """

    def run_job(self, name: str, *, force: bool = False) -> Run:
        """Run one job if it is due; see ``run_jobs``."""
        return self.run_jobs(name, force=force)[0]

    @operation("GET /memory/candidates", by="jobs.runner:candidates", right="read", answer="items")
    def merge_candidates(self, *, floor: float = 0.8, limit: int = 50) -> list[Alike]:
        """Return pairs of memories in this handle's sight that resemble each other, best first; change nothing.

        ``floor`` is the least score, 0..1. Sensitive memories are shown only to who may read them.
        """

    @operation("POST /memory/tokens", by="services.operations:create_token", right="owner", status=201)
    def create_token(
        self,
        name: str,
        *,
        rights: str = "agent",
        can: Sequence[str] | None = None,
        tenant: str | None = None,
        scope: str | None = None,
        expires: datetime | Duration | None = None,
    ) -> Issued:
        """Make a token for a bearer of that name; its ``secret`` is shown now and never again.

        ``rights`` is ``agent``, ``reviewer`` or ``owner``; ``can`` narrows it, as in ``["read"]``. Tenant and
        scope are this handle's unless named. ``expires`` is an instant, a term (seconds, a timedelta,
        text such as ``30d``), or None.
        """

    @operation("GET /memory/tokens", by="services.tokens:list_tokens", right="owner", answer="items")
    def tokens(self) -> list[Token]:
        """Return every token of the store, oldest first, without its secret; for the owner alone."""

    @operation("DELETE /memory/tokens/{id}", by="services.tokens:revoke", right="owner", answer="receipt_record")
    def revoke_token(self, token_id: str) -> Receipt:
        """End a token; handles that it opened are refused from then on."""


class AsyncMemoryAPI:
    """The operations, awaited."""

    recall = async_method(MemoryAPI.recall)
    list_memories = async_method(MemoryAPI.list_memories)
    get = async_method(MemoryAPI.get)
    history = async_method(MemoryAPI.history)
    facets = async_method(MemoryAPI.facets)
    activity = async_method(MemoryAPI.activity)
    sources = async_method(MemoryAPI.sources)
    users = async_method(MemoryAPI.users)
    projects = async_method(MemoryAPI.projects)
    lineage = async_method(MemoryAPI.lineage)
    context = async_method(MemoryAPI.context)
    snapshot = async_method(MemoryAPI.snapshot)
    memory_block = async_method(MemoryAPI.memory_block)
    replay = async_method(MemoryAPI.replay)
    receipts = async_method(MemoryAPI.receipts)
    receipt = async_method(MemoryAPI.receipt)
    doctor = async_method(MemoryAPI.doctor)
    status = async_method(MemoryAPI.status)
    identity = async_method(MemoryAPI.identity)
    update_identity = async_method(MemoryAPI.update_identity)
    remember = async_method(MemoryAPI.remember)
    revise = async_method(MemoryAPI.revise)
    append = async_method(MemoryAPI.append)
    forget = async_method(MemoryAPI.forget)
    archive = async_method(MemoryAPI.archive)
    restore = async_method(MemoryAPI.restore)
    reinforce = async_method(MemoryAPI.reinforce)
    move = async_method(MemoryAPI.move)
    promote = async_method(MemoryAPI.promote)
    supersede = async_method(MemoryAPI.supersede)
    merge = async_method(MemoryAPI.merge)
    update_by_key = async_method(MemoryAPI.update_by_key)
    forget_many = async_method(MemoryAPI.forget_many)
    plan_forget_matching = async_method(MemoryAPI.plan_forget_matching)
    forget_matching = async_method(MemoryAPI.forget_matching)
    propose = async_method(MemoryAPI.propose)
    remember_many = async_method(MemoryAPI.remember_many)
    add = async_method(MemoryAPI.add)
    feedback = async_method(MemoryAPI.feedback)
    put_blob = async_method(MemoryAPI.put_blob)
    read_blob = async_method(MemoryAPI.read_blob)
    pending = async_method(MemoryAPI.pending)
    proposal = async_method(MemoryAPI.proposal)
    notices = async_method(MemoryAPI.notices)
    approve = async_method(MemoryAPI.approve)
    amend = async_method(MemoryAPI.amend)
    reject = async_method(MemoryAPI.reject)
    reopen = async_method(MemoryAPI.reopen)
    approve_many = async_method(MemoryAPI.approve_many)
    reject_many = async_method(MemoryAPI.reject_many)
    log = async_method(MemoryAPI.log)
    show = async_method(MemoryAPI.show)
    diff = async_method(MemoryAPI.diff)
    rollback = async_method(MemoryAPI.rollback)
    verify = async_method(MemoryAPI.verify)
    rebuild = async_method(MemoryAPI.rebuild)
    reindex = async_method(MemoryAPI.reindex)
    impact = async_method(MemoryAPI.impact)
    plan_contain = async_method(MemoryAPI.plan_contain)
    contain = async_method(MemoryAPI.contain)
    blame = async_method(MemoryAPI.blame)
    contradictions = async_method(MemoryAPI.contradictions)
    bisect = async_method(MemoryAPI.bisect)
    context_diff = async_method(MemoryAPI.context_diff)
    plan_erase = async_method(MemoryAPI.plan_erase)
    erase = async_method(MemoryAPI.erase)
    certificate = async_method(MemoryAPI.certificate)
    plan_adopt = async_method(MemoryAPI.plan_adopt)
    adopt = async_method(MemoryAPI.adopt)
    train_reranker = async_method(MemoryAPI.train_reranker)
    jobs = async_method(MemoryAPI.jobs)
    run_jobs = async_method(MemoryAPI.run_jobs)
    run_job = async_method(MemoryAPI.run_job)
    merge_candidates = async_method(MemoryAPI.merge_candidates)
    create_token = async_method(MemoryAPI.create_token)
    tokens = async_method(MemoryAPI.tokens)
    revoke_token = async_method(MemoryAPI.revoke_token)
