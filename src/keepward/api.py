"""The operations of a memory. Each is one typed method; its signature and docstring define it on every surface.

``Memory`` runs an operation in an open store, ``Client`` sends it to a server, and ``AsyncMemory`` awaits it.
Arguments, results and errors are the same. To add an operation, write its method here and the function named by ``by``.
Then add an example call to ``tests/calls.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Unpack

from keepward.conversation import Conversation
from keepward.core import change
from keepward.core.blob import Blob
from keepward.core.branch import Branch, BranchDiff, BranchMerge, BranchPage, Side
from keepward.core.browse import Activity, Facets, Lineage, Member, News, Sources
from keepward.core.change import (
    UNSET,
    Change,
    ChangedFields,
    NewFields,
    SourceName,
    TierName,
)
from keepward.core.commit import ErasureReason, Receipt, ReceiptKind, ReceiptPage
from keepward.core.compiled import CompiledContext, Replayed
from keepward.core.copies import AdoptionPlan, SubjectExport
from keepward.core.evidence import SourceCheck
from keepward.core.identity import Identity
from keepward.core.job import DUE, Alike, JobState, Run
from keepward.core.journal import (
    Bisection,
    Blame,
    Check,
    CommitPage,
    CommitView,
    Containment,
    ContextDifference,
    Contradictions,
    Differences,
    Erased,
    ErasePlan,
    Impact,
    Rollback,
    Verification,
    Versions,
)
from keepward.core.memory import Record
from keepward.core.memory_test import MemoryTest, MemoryTestRun
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
    SearchFilters,
    Training,
)
from keepward.core.value import Duration
from keepward.operations import OPERATIONS as OPERATIONS  # noqa: PLC0414  re-exported
from keepward.operations import Operation, async_method, operation
from keepward.types import Format, SeriesName, Sort

if TYPE_CHECKING:
    from typing import Self

    from keepward.draft import Draft


class MemoryAPI(ABC):
    """The operations of a memory. Used as a context manager, a handle closes itself at the end of the block."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """The scope of this handle, such as ``/agents/planner``."""

    @abstractmethod
    def close(self) -> None:
        """Close the store or connection, also for all other handles on it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(
            "a handle cannot be pickled or copied: open the store, or create a client, in each process; `at()` returns "
            "another handle in this process"
        )

    @abstractmethod
    def _send(self, about: Operation, given: dict[str, Any]) -> Any:
        """Run an operation with arguments by name."""

    @abstractmethod
    def draft(self, *, reason: str = "", session: str | None = None) -> Draft:
        """Collect changes in a ``with`` block and propose them together at its end. An error discards them."""

    def session(self, name: str, *, subject: str | None = None) -> Conversation:
        """Return a conversation with this name; its messages are added as they come. See ``Conversation``.

        Used as a context manager, it writes a summary of what people stated at its end, which lives as long as the
        messages. After an error it writes no summary.
        """
        return Conversation(self, name, subject)

    # --- reading

    @operation("GET /memory/search", by="services.reading.queries:recall", right="read", tool="recall")
    def recall(
        self,
        query: str = "",
        *,
        vector: Sequence[float] | None = None,
        limit: int = 10,
        purpose: Purpose = "answer",
        as_of: AsOf = None,
        order: Order = "learned",
        floor: float | None = None,
        receipt: bool = False,
        **filters: Unpack[SearchFilters],
    ) -> Recall:
        """Return the memories most relevant to a query, best first. Filters apply before the limit.

        ``vector`` is the query's embedding by the model of the store, with or without its text; not over HTTP.

        A score is from 0 to 1; ``parts`` of a hit shows its components. Hits with a score below ``floor`` are left out.
        A hit is ``weak`` if it does not bear on the query: its score is far below the best one, or it has neither a
        word of the query nor a meaning close to it.

        Over HTTP, all pages of a query return at most 1,000 hits.
        """

    @operation("GET /memory/items", by="services.reading.queries:find", right="read", answer="items")
    def list_memories(
        self,
        *,
        limit: int | None = 50,
        offset: int | None = None,
        sort: Sort = "created",
        ascending: bool = False,
        as_of: AsOf = None,
        **filters: Unpack[Filters],
    ) -> Memories:
        """Return the memories that pass all filters, newest first unless ``sort`` says otherwise.

        A ``limit`` of None returns all. A memory passes ``tags`` if it has any of them. Events of March 2025:
        ``list_memories(occurred_since="2025-03-01", occurred_until="2025-04-01")``.

        Sensitive memories are included if the handle may read them; otherwise ``notes`` says that some were left out.
        ``withheld`` lists the ids of corrupt memories that would have passed. With ``offset``, ``sort``,
        ``ascending``, or a filter by scope, source, trust, status, author, text, metadata or time, the result is a
        page, and ``total`` is the number of memories that pass.
        """

    @operation("GET /memory/items/{id}", by="services.reading.queries:get", right="read")
    def get(self, memory_id: str, *, as_of: AsOf = None) -> Record:
        """Return a memory by id or alias, whatever its status.

        Over HTTP, send its ETag as ``If-Match`` with a change.
        """

    @operation(
        "GET /memory/items/{id}/history",
        by="services.reading.recall:history",
        right="read",
        tool="history",
    )
    def history(self, memory_id: str) -> Versions:
        """Return every version of a memory with the commit that made it, oldest first; damaged ones are named."""

    @operation("GET /memory/facets", by="services.reading.queries:facets", right="read")
    def facets(
        self,
        *,
        of: Sequence[str] = (),
        name: str | None = None,
        most: int = 50,
        filters: Filters | None = None,
    ) -> Facets:
        """Return how many memories pass the filters of ``list_memories``, in total and by value of each facet.

        With ``name``, only values that contain it are listed: equal ones first, then those that begin with it. For
        example, ``facets(of=["subject"], name="ana")`` finds every subject of that name among any number.
        """

    @operation("GET /memory/activity", by="services.reading.queries:activity", right="read")
    def activity(
        self,
        *,
        by: SeriesName = "author",
        days: int = 30,
        zone: int = 0,
        filters: Filters | None = None,
    ) -> Activity:
        """Return how many versions were written on each day, by author or another field.

        Filters are as in ``list_memories``, but memories that have ended always count unless ``statuses`` leaves them
        out.
        """

    @operation("GET /memory/sources", by="services.reading.queries:sources", right="read")
    def sources(self, *, name: str | None = None, filters: Filters | None = None) -> Sources:
        """Return how much each actor, source, reference and session wrote; filters are as in ``activity``.

        With ``name``, only those are listed whose name contains it, as in ``facets``.
        """

    @operation("GET /memory/news", by="services.reading.news:news", right="approve")
    def news(self, since: datetime | str, *, most: int = 3) -> News:
        """Return what happened since an instant: what was learned, changed, ended, erased, decided and refused.

        Each has its number and the ``most`` newest, of this scope and those below. Requires a reviewer or the owner.
        """

    @operation("GET /memory/users", by="services.reading.lists:users", right="read", answer="items")
    def users(self, *, name: str | None = None) -> list[Member]:
        """Return the users with memories at this scope and below, with the number of memories, by name.

        With ``name``, only those whose name contains it, as in ``facets``.
        """

    @operation("GET /memory/projects", by="services.reading.lists:projects", right="read", answer="items")
    def projects(self, *, name: str | None = None) -> list[Member]:
        """Return the projects with memories at this scope and below, as ``users`` does."""

    @operation("GET /memory/items/{id}/lineage", by="services.undoing.provenance:lineage", right="read")
    def lineage(self, memory_id: str) -> Lineage:
        """Return the memories that a memory was derived from and those derived from it, over all steps."""

    @operation("POST /memory/compile", by="services.reading.contexts:build_context", right="read", tool="get_context")
    def context(
        self,
        objective: str,
        *,
        budget_tokens: int | None = None,
        purpose: Purpose = "answer",
        as_of: AsOf = None,
        valid_at: datetime | str | None = None,
        format: Format = "markdown",  # noqa: A002  the word users know
        include_sensitive: bool = False,
        summaries: int = 0,
        without: Sequence[str] = (),
        preview: bool = False,
    ) -> CompiledContext:
        """Compile the memories that a model needs for an objective, with a receipt.

        Without ``budget_tokens``, the three best memories are recalled, those that bear on the objective, and what
        else was said about the same: usually 3 to 6 lines. A store of at most twenty short memories is recalled whole.
        With ``budget_tokens``, the best memories fill the budget, which limits the complete context. Nothing is
        recalled for greetings, thanks and bare arithmetic. A request for advice recalls the ten best.

        ``summaries=5`` adds the five newest summaries, whatever the objective. None of them is sensitive.

        A core block that is missing or was edited outside Keepward is an error, unless ``without`` lists its key or id.
        A valid block is never left out.

        ``preview=True`` stores no receipt; ``explanation`` gives for every candidate why it is in or out. It requires a
        reviewer or the owner.
        """

    @operation("GET /memory/snapshot", by="services.reading.contexts:snapshot", right="read")
    def snapshot(
        self,
        *,
        budget_tokens: int | None = None,
        format: Format = "markdown",  # noqa: A002  the word users know
        without: Sequence[str] = (),
    ) -> CompiledContext:
        """Compile what every prompt of this scope needs: core memories, permanent memories and keyed states; no recall.

        ``without`` is as for ``context``.
        """

    @operation("POST /memory/block", by="services.reading.contexts:memory_block", right="read")
    def memory_block(
        self,
        query: str,
        *,
        budget_tokens: int | None = None,
        purpose: Purpose = "answer",
        format: Format = "markdown",  # noqa: A002  the word users know
        seen: Sequence[str] = (),
    ) -> CompiledContext:
        """Compile only the memories that bear on a query; the text is empty if none does.

        An empty query gets the newest 20 memories, newest first, without sensitive ones and core blocks.
        """

    @operation("POST /memory/receipts/{id}/replay", by="services.reading.contexts:replay", right="read")
    def replay(self, receipt_id: str) -> Replayed:
        """Render a compiled context again from its receipt, byte for byte."""

    @operation("GET /memory/receipts", by="services.reading.explain:receipts", right="approve")
    def receipts(
        self,
        *,
        kinds: Sequence[ReceiptKind] = (),
        actor: str | None = None,
        objective: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> ReceiptPage:
        """Return a summary of each receipt, newest first. Requires a reviewer or the owner.

        For the next page, pass the ``before`` of this one.
        """

    @operation("GET /memory/receipts/{id}", by="services.reading.explain:receipt", right="read")
    def receipt(self, receipt_id: str) -> dict[str, Any]:
        """Return a receipt as JSON values. The receipt of a commit has each memory before and after.

        The receipt of a context has an ``explanation``: the text of each memory, and for every candidate why it is in
        or out.
        """

    @operation("POST /memory/check", by="services.writing.freshness:check", right="approve")
    def check(self, *, contents: Mapping[str, str] | None = None) -> SourceCheck:
        """Compare what memories of this scope and below cite with what it says now, and mark what is stale.

        Files and git objects are read below the folders of ``evidence_roots``; nothing is fetched. ``contents`` hands
        in the text of pages: ``check(contents={"https://example.org/terms": text})``.

        A memory is stale if one of its sources changed or is missing: ``act`` leaves it out, and a context says since
        when. The mark goes if the source is again as cited, or if the memory is revised or a person confirms it.
        Requires a reviewer or the owner.
        """

    @operation("GET /memory/doctor", by="status:doctor", right="read", answer="items")
    def doctor(self) -> list[Check]:
        """Return the checks of this installation: what was checked, whether it passed, and how to repair it."""

    @operation("GET /memory/status", by="status:status", right="read", tool="status")
    def status(self) -> dict[str, Any]:
        """Return counts, sizes, the review queue, budget use and the state of each job, as JSON values."""

    @operation("GET /memory/identity", by="services.review.identity:identity", right="read")
    def identity(self) -> Identity:
        """Return the persona that opens every context, its core block, and the diff to apply to its file.

        With a file, the file alone is the persona. Without one, it is the block ``persona``.
        """

    # --- proposing

    @operation("PUT /memory/identity", by="services.review.identity:update_identity", right="propose")
    def update_identity(self, text: str, *, reason: str = "") -> Outcome:
        """Propose the complete new text of the identity; only the owner approves it.

        With a file, nothing here writes it: ``identity().diff`` says what its owner changes by hand.
        """

    @operation(
        "POST /memory/items", by="services.review.edits:remember", right="propose", tool="remember", makes=change.Insert
    )
    def remember(
        self,
        text: str,
        *,
        reason: str = "",
        **fields: Unpack[NewFields],
    ) -> Outcome:
        """Propose a new memory. If another memory has the ``key``, that memory is updated instead.

        Only the text is required. With ``consent``, identifiers in the text are not redacted.

        Example: ``mem.remember("Ana prefers tabs", source="user_message", evidence=["chat:42"])``.

        Raises:
            InvalidInput: a field, tier, kind or other name does not exist, or a value has the wrong type.
        """

    @operation(
        "PATCH /memory/items/{id}",
        by="services.review.edits:revise",
        right="propose",
        tool="revise",
        makes=change.Replace,
    )
    def revise(
        self,
        memory_id: str,
        text: str = UNSET,
        *,
        reason: str = "",
        if_version: int | None = None,
        **fields: Unpack[ChangedFields],
    ) -> Outcome:
        """Propose new text or new fields for a memory. ``if_version`` makes an edit of an outdated version fail.

        Omitted fields stay as they are; None empties a field. If nothing changes, no version is made, and the outcome
        is ``duplicate`` with the reason ``unchanged``. An owner who gives a ``source`` without a text vouches for the
        current text. For example, ``revise(id, source="operator", reason="checked")`` raises the trust of an imported
        memory. Over HTTP, ``If-Match`` takes the ETag of ``GET``.
        """

    @operation(
        "POST /memory/items/{id}/append", by="services.review.edits:append", right="propose", makes=change.Append
    )
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
        """Propose an addition to the text of a memory, on a new line."""

    @operation(
        "DELETE /memory/items/{id}",
        by="services.review.edits:forget",
        right="propose",
        tool="forget",
        makes=change.Retire,
    )
    def forget(self, memory_id: str, *, reason: str = "", if_version: int | None = None) -> Outcome:
        """Propose to retire a memory, and what quotes or sums it up. ``rollback`` undoes it.

        Over HTTP, ``If-Match`` is optional.
        """

    @operation(
        "POST /memory/items/{id}/archive", by="services.review.edits:archive", right="propose", makes=change.Archive
    )
    def archive(self, memory_id: str, *, reason: str = "", if_version: int | None = None) -> Outcome:
        """Propose to archive a memory. Recall and contexts leave it out until ``restore`` brings it back."""

    @operation(
        "POST /memory/items/{id}/restore", by="services.review.edits:restore", right="propose", makes=change.Restore
    )
    def restore(
        self, memory_id: str, *, reason: str = "", ttl: Duration | None = None, if_version: int | None = None
    ) -> Outcome:
        """Propose to make a retired, archived, superseded or expired memory active again."""

    @operation(
        "POST /memory/items/{id}/reinforce",
        by="services.review.edits:reinforce",
        right="propose",
        makes=change.Reinforce,
    )
    def reinforce(self, memory_id: str, *, reason: str = "", gain: float = 0.0) -> Outcome:
        """Propose to confirm a memory: the decay of its confidence starts again now."""

    @operation("POST /memory/items/{id}/move", by="services.review.edits:move", right="propose", makes=change.Move)
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

    @operation(
        "POST /memory/items/{id}/promote", by="services.review.edits:promote", right="propose", makes=change.Promote
    )
    def promote(self, memory_id: str, text: str, *, reason: str = "") -> Outcome:
        """Propose to make a memory permanent, with its final text.

        If its key is that of a core block, it becomes core.
        """

    @operation(
        "POST /memory/items/{id}/supersede",
        by="services.review.edits:supersede",
        right="propose",
        makes=change.Supersede,
    )
    def supersede(self, memory_id: str, by: str, *, reason: str = "") -> Outcome:
        """Propose to replace one memory by another. The old one becomes inactive; its history names the new one."""

    @operation("POST /memory/items/merge", by="services.review.edits:merge", right="propose", makes=change.Insert)
    def merge(
        self,
        memory_ids: Sequence[str],
        text: str | None = None,
        *,
        reason: str = "",
        **fields: Unpack[NewFields],
    ) -> Outcome | None:
        """Propose one summary that supersedes several memories. Fewer than two memories give None.

        The fields are those of ``remember``; the kind is ``summary`` unless named. Without a text, the summary is the
        texts of the memories, one on each line.

        Raises:
            InvalidInput: the memories differ in subject, scope or sensitivity, or the summary has another subject.
        """

    @operation(
        "POST /memory/items/forget", by="services.review.edits:forget_many", right="propose", answer="outcome missing"
    )
    def forget_many(self, memory_ids: Sequence[str], *, reason: str = "") -> tuple[Outcome | None, list[str]]:
        """Retire several memories in one commit. Return the outcome and the ids that do not exist."""

    @operation("POST /memory/forget/plan", by="services.undoing.forget:plan_forget_matching", right="propose")
    def plan_forget_matching(self, text: str) -> Forgetting:
        """Return a plan: the memories at the scope of this handle that match a text, best first. Nothing changes.

        Weak hits of ``recall`` do not match, nor messages that share no word with the text. What quotes or sums up a
        match is forgotten with it; ``shortened`` lists summaries that only lose its lines.
        Example: ``mem.plan_forget_matching("my old address").matches``.
        """

    @operation("POST /memory/forget", by="services.undoing.forget:forget_matching", right="propose")
    def forget_matching(self, text: str, digest: str, *, reason: str = "") -> Forgetting:
        """Retire exactly the memories of the plan with this digest, in one commit. ``rollback`` undoes it.

        Raises:
            Conflict: the memories that match have changed since the plan was made.
        """

    @operation("POST /memory/edit", by="services.review.edits:propose", right="propose")
    def propose(
        self, changes: Sequence[Change], *, reason: str = "", session: str | None = None, kind: str = "write"
    ) -> Outcome:
        """Propose changes that are committed, quarantined or refused together.

        Over HTTP, a change is an object with an ``op``, such as ``insert`` or ``replace``, and its fields. An edit of
        one core block may be sent as ``target`` (``core:mission``), ``content``, ``reason``, ``confidence`` and
        ``provenance``. Without ``content``, the block is retired.
        """

    @operation("POST /memory/items/batch", by="services.review.edits:remember_many", right="propose", answer="outcomes")
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
        """Propose many memories. Each item is a text, or a mapping of the arguments of ``remember``.

        Mode ``each``: the gates check every item separately, and up to ``batch`` items share a commit. Mode ``atomic``:
        all items are committed, or none. Both return one outcome for each item, in order. Over HTTP, a request has at
        most one megabyte of items, and ``atomic`` needs all items in one request.
        """

    @operation("POST /memory/messages", by="services.writing.ingest:add", right="propose", status=201)
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
        """Add the messages of a conversation as events of a session, and propose facts found in them.

        A message is ``{"role": ..., "content": ...}``, optionally with ``name``, ``id`` and ``timestamp``. A message
        with a known ``id`` is not added again. ``subject`` is the user whom the conversation is about. A user's request
        such as "remember that ..." becomes a fact in the same words. An ``extractor`` of the store may propose more
        facts. Each fact is derived from its message, and the gates check it like any other memory.

        Raises:
            InvalidInput: an item is not a message; nothing was stored.
        """

    # --- feedback and blobs

    @operation("POST /memory/feedback", by="services.review.feedback:record_feedback", right="read", changes=True)
    def feedback(self, receipt_id: str, *, used: Sequence[str] = (), ignored: Sequence[str] = ()) -> Feedback:
        """Record which memories of a context, or of a recall with ``receipt=True``, were used and which were not.

        Feedback is stored outside the journal, by actor. It changes no result before ``train_reranker``. New feedback
        replaces earlier feedback of the same actor on the same receipt.

        Raises:
            NotFound: this handle can see no such receipt.
            InvalidInput: the receipt does not list an id, an id is in both lists, or both lists are empty.
        """

    @operation("POST /memory/blobs", by="services.writing.blobs:put", right="propose", status=201)
    def put_blob(self, data: bytes, *, media_type: str | None = None) -> Blob:
        """Store 1 byte to 32 MB. A memory refers to it: ``remember("what it shows", blob=blob.ref)``.

        Without ``media_type``, or with ``application/octet-stream``, the type is detected from the bytes. Equal bytes
        are stored once. A blob that no memory refers to is deleted after a day.

        Raises:
            Unauthorised: this actor may not propose.
            InvalidInput: the bytes are empty, too many, of another type, or contain a secret; nothing was stored.
            Conflict: these bytes were erased here, or memory is switched off.
        """

    @operation("GET /memory/blobs/{ref}", by="services.writing.blobs:read", right="read")
    def read_blob(self, ref: str) -> bytes:
        """Return the bytes of a blob after checking their hash.

        It requires the right to read an active memory that refers to the blob, or to be the actor who stored it. Over
        HTTP, ``HEAD`` returns its size and media type only.

        Raises:
            NotFound: there is no such blob that this handle may read.
            Tampered: the bytes on disk are missing or have changed.
        """

    # --- deciding

    @operation("GET /memory/quarantine", by="services.review.queue:pending", right="read", tool="pending")
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
        """Return the proposals that this handle may read, oldest first.

        ``sort="danger"`` puts prompt injection and secrets first, then personal data, then core blocks. A ``limit`` of
        None returns all. ``counts`` covers all proposals of the state, regardless of the other filters.
        """

    @operation("GET /memory/quarantine/{id}", by="services.review.queue:proposal", right="read")
    def proposal(self, proposal_id: str) -> Proposal:
        """Return a proposal in any state, by its id or the first letters of its id.

        Reviewers and the owner also get ``review_context``: what each gate checks, the opened evidence, similar
        memories, and the contexts that it reached. Over HTTP, its ETag is the digest that an approval needs.
        """

    @operation("GET /memory/notices", by="services.review.decisions:notices", right="read", answer="items")
    def notices(self) -> list[Proposal]:
        """Return the rejected, expired and stale proposals of this actor. Each is returned once."""

    @operation(
        "POST /memory/quarantine/{id}/approve", by="services.review.decisions:approve", right="approve", status=201
    )
    def approve(self, proposal_id: str, *, digest: str | None = None) -> Outcome:
        """Store exactly what was proposed. Requires a reviewer or the owner who is not the proposer.

        ``digest`` is the digest of the proposal that you saw. Over HTTP, send it as ``If-Match``, which is required.
        """

    @operation(
        "POST /memory/quarantine/{id}/amend", by="services.review.edits:amend", right="approve", makes=change.Replace
    )
    def amend(
        self,
        proposal_id: str,
        text: str = UNSET,
        *,
        digest: str | None = None,
        memory: str | None = None,
        if_version: int | None = None,
        leave_out: Sequence[str] = (),
        **fields: Unpack[ChangedFields],
    ) -> Outcome:
        """Approve a proposal with your own changes. The gates check the result again.

        The fields are those of ``revise``. If the proposal stores several texts, ``memory`` selects one. New words are
        stored as the reviewer's. The proposal is then approved with changes. If the gates refuse the result, or
        quarantine it for another reason than before, the outcome is ``Refused`` and the proposal remains pending.

        A stale proposal needs ``if_version``, the version of the memory in ``current``. The change then applies to that
        version.

        ``leave_out`` names memories whose changes are not made; the others are approved.
        """

    # --- branches

    @operation("POST /memory/branches", by="services.review.branches:create_branch", right="propose", status=201)
    def create_branch(self, name: str, *, reason: str = "", expires: Duration | None = None) -> Branch:
        """Make a branch at this scope; ``branch(name)`` is a handle on it.

        It reads main under its own changes. It expires after the time that proposals have, by default 30 days.

        Raises:
            Conflict: there is an open branch of this name, or there are 32 branches.
        """

    @operation("GET /memory/branches", by="services.review.branches:branches", right="read")
    def branches(self, *, closed: bool = False, offset: int = 0, limit: int | None = 50) -> BranchPage:
        """Return the open branches that this handle sees, oldest first.

        With ``closed``, those that were discarded or expired follow, newest first. A ``limit`` of None returns all.
        """

    @operation("GET /memory/branches/{name}", by="services.review.branches:branch_changes", right="read")
    def branch_changes(self, name: str, *, offset: int = 0, limit: int | None = 50) -> BranchDiff:
        """Return the changes of a branch: the memory there, on main now, and on main when the branch changed it.

        A ``conflict`` is what main has changed as well; conflicts come first. A ``limit`` of None returns all.
        """

    @operation("POST /memory/branches/{name}/merge", by="services.review.branches:merge_branch", right="propose")
    def merge_branch(self, name: str, *, take: Mapping[str, Side] | None = None) -> BranchMerge:
        """Write to main what a branch changed. Every gate judges each change as a write of its author.

        What lands leaves the branch. Conflicts, and what waits or is refused, stay on it. ``take`` decides on
        conflicts: by the id of the memory, ``branch`` or ``main``.
        """

    @operation("POST /memory/branches/{name}/discard", by="services.review.branches:discard_branch", right="propose")
    def discard_branch(self, name: str) -> Receipt:
        """Retire everything of a branch, in one commit, and close it. Its author and the owner may.

        Returns the receipt of the commit.
        """

    @operation("POST /memory/quarantine/{id}/reject", by="services.review.decisions:reject", right="approve")
    def reject(self, proposal_id: str, *, reason: str) -> Receipt:
        """Reject a proposal. The memories stay as they are."""

    @operation("POST /memory/quarantine/{id}/reopen", by="services.review.decisions:reopen", right="approve")
    def reopen(self, proposal_id: str, *, reason: str) -> Receipt:
        """Return a rejected or expired proposal to the review queue."""

    @operation(
        "POST /memory/quarantine/approve",
        by="services.review.decisions:approve_many",
        right="approve",
        answer="results",
    )
    def approve_many(self, items: Sequence[str | Mapping[str, Any]]) -> list[DecisionResult]:
        """Approve several proposals, each by id or by id and digest. Return one result for each, in order."""

    @operation(
        "POST /memory/quarantine/reject", by="services.review.decisions:reject_many", right="approve", answer="results"
    )
    def reject_many(self, ids: Sequence[str], *, reason: str) -> list[DecisionResult]:
        """Reject several proposals for one reason. Return one result for each, in order."""

    # --- the journal

    @operation("GET /memory/commits", by="services.undoing.provenance:log", right="read")
    def log(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        actor: str | None = None,
        kind: str | None = None,
        until: AsOf = None,
    ) -> CommitPage:
        """Return the visible commits, newest first; those that are damaged are named in ``damaged`` and ``notes``.

        Example:
            >>> for view in memory.log(limit=5):  # doctest: +SKIP
            ...     print(view.commit.seq, view.details.reason)
        """

    @operation("GET /memory/commits/{commit_id}", by="services.undoing.provenance:show", right="read")
    def show(self, commit: str) -> CommitView:
        """Return one commit by its number, its id, or a unique prefix of its id.

        Over HTTP, its ETag is the digest that a rollback needs.
        """

    @operation("GET /memory/diff", by="services.undoing.provenance:diff", right="read")
    def diff(self, earlier: AsOf, later: AsOf = None, *, offset: int = 0, limit: int | None = 50) -> Differences:
        """Return the memories that differ between the states after two commits. ``0`` is the empty store.

        A ``limit`` of None returns all. ``total`` and ``counts`` are of all that differ.
        Damaged memories are not compared; ``withheld`` and ``notes`` name them.

        Example:
            >>> [each.after.text for each in memory.diff(0, limit=None) if each.after]  # doctest: +SKIP
        """

    @operation("POST /memory/rollback/{commit_id}", by="services.undoing.rollback:roll_back", right="propose")
    def rollback(
        self,
        commit: str,
        *,
        with_later: bool = False,
        dry_run: bool = False,
        reason: str = "",
        digest: str | None = None,
    ) -> Rollback:
        """Undo one commit exactly. A second call changes nothing and returns the first receipt.

        If later commits changed the same memories, nothing changes, and ``conflicts`` lists these commits.
        ``with_later`` undoes them as well. ``dry_run`` returns what would happen.

        ``digest`` is that of the dry run that you saw: if these memories have changed since, nothing changes
        (`StaleVersion`). Over HTTP, send it as ``If-Match``, which is required: the ETag of
        ``/memory/commits/{commit_id}``, or the ``etag`` of a dry run. A dry run needs none. Conflicts give a 409 with
        all keys of the result.
        """

    @operation("POST /memory/verify", by="status:verify", right="read")
    def verify(self, *, on_progress: Callable[[int, int], None] | None = None) -> Verification:
        """Check the hash chain, all seals, all projections and the anchor.

        ``on_progress`` is called with (rows checked, rows in all). Over HTTP it is called once, at the end.
        """

    @operation(
        "POST /memory/rebuild",
        by="services.reading.reindex:rebuild",
        right="owner",
        answer="records",
        owner="rebuilding",
    )
    def rebuild(self) -> int:
        """Rebuild the memories of this tenant from the journal. Return how many there are."""

    @operation(
        "POST /memory/reindex",
        by="services.reading.reindex:reindex",
        right="owner",
        answer="indexed",
        owner="reindexing",
    )
    def reindex(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Compute terms and vectors that are missing or of another embedder. Return the number of indexed memories.

        Over HTTP, ``on_progress`` is called once, at the end.
        """

    # --- inquiring

    @operation("GET /memory/impact", by="services.undoing.provenance:impact", right="approve")
    def impact(
        self,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
    ) -> Impact:
        """Return what a source, actor, session, commit or memory touched. Requires a reviewer or the owner.

        The result lists the memories, everything derived from them, and every context that contained one of them. A
        source is a name such as ``web``, or a reference in ``evidence``. An actor is ``kind:name``.
        """

    @operation(
        "GET /memory/subjects/{name}",
        by="services.undoing.subject_export:export_subject",
        right="owner",
        owner="exporting",
    )
    def export_subject(self, name: str) -> SubjectExport:
        """Return everything about one person, agent or project. ``left_out`` says what is not in it.

        It has the memories about it, in its own scope, by it, or with its name in a text, with all their versions. It
        has their proposals, and the contexts that contained one of them. Capitals do not matter. A name may have its
        kind, as in ``agent:planner``.
        """

    @operation("POST /memory/contain/plan", by="services.undoing.rollback:contain", right="approve")
    def plan_contain(
        self,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
    ) -> Containment:
        """Return a plan, with a digest, to contain the memories that ``impact`` lists for this selection.

        Nothing changes. What the contained texts replaced comes back; see ``restored``. Summaries of quotes are not
        contained; ``shortened`` has the lines that they lose.
        """

    @operation("POST /memory/contain", by="services.undoing.rollback:contain", right="owner")
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
        """Apply exactly the plan with this digest in one commit, which ``rollback`` undoes. Requires the owner."""

    @operation("GET /memory/blame/{name}", by="services.undoing.provenance:blame", right="read")
    def blame(self, name: str) -> Blame:
        """Return, for each field of a memory, the commit, actor, source and approval of its value.

        ``name`` is an id or key.
        """

    @operation("GET /memory/contradictions", by="jobs.contradictions:contradictions", right="read")
    def contradictions(self, *, limit: int = 50, **filters: Unpack[SearchFilters]) -> Contradictions:
        """Return pairs of memories that say nearly the same but differ, closest pairs first, with the difference.

        Nothing is changed. The filters are those of ``recall`` and apply to both memories. The pairs are the unequal
        pairs of ``merge_candidates``: same scope, tier, subject and kind, without keyed memories, events and core
        memories. At most 100 pairs are returned; ``total`` counts all, and a note names a way to the others.

        Example:
            >>> for pair in memory.contradictions(subject="Ana", limit=10).items:  # doctest: +SKIP
            ...     print(pair.older.text, pair.newer.text, pair.differs)
        """

    @operation("POST /memory/bisect", by="services.reading.memory_tests:bisect", right="read")
    def bisect(
        self,
        query: str | None = None,
        *,
        contains: str | None = None,
        predicate: Callable[[str], bool] | None = None,
        test: Mapping[str, Any] | MemoryTest | None = None,
        since: int | None = None,
        purpose: Purpose = "answer",
    ) -> Bisection:
        """Return the first commit after which the context for a query contains a text or passes a predicate.

        With a ``test`` instead, as for ``run_tests``: the first commit after which it fails. Without ``since``, it is
        searched back to a state that passes. A predicate is a Python function and cannot be sent to a server.
        """

    @operation("POST /memory/tests", by="services.reading.memory_tests:run_tests", right="approve", changes=False)
    def run_tests(
        self, tests: Sequence[Mapping[str, Any] | MemoryTest], *, as_of: AsOf = None, label: str | None = None
    ) -> MemoryTestRun:
        """Test what contexts contain, now or in a past state. ``status`` reports the newest run on the present state.

        A test has an ``objective``, compiled as by ``context``, or a ``query``, as by ``memory_block``. It passes if
        the text has everything in ``contains`` and nothing in ``lacks``, in at most ``max_tokens`` and ``max_lines``.
        For example ``{"objective": "Where do we deploy?", "contains": "db-7", "max_tokens": 200}``. More fields:
        ``name``, ``purpose``, ``budget_tokens``, and whose context it is: a ``user``, ``agent``, ``project`` or
        ``scope``.

        No receipt is stored and no use is counted. It takes a reviewer or the owner.
        """

    @operation("GET /memory/receipts/{id}/diff/{other}", by="services.reading.explain:context_diff", right="read")
    def context_diff(self, first: str, second: str) -> ContextDifference:
        """Return the differences between two compiled contexts, by receipt id, and the commit that caused each."""

    # --- erasing, and accepting a store

    @operation("POST /memory/erase/plan", by="services.undoing.erasure:plan", right="erase", owner="erasing")
    def plan_erase(
        self,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: ErasureReason = "request",
        include_citing: bool = False,
    ) -> ErasePlan:
        """Return a plan, with a digest, of what erasing these memories destroys. Nothing changes.

        ``subject`` and ``source`` select memories of the complete tenant. For the handle of a user, no selection means
        everything of that user and everything that cites it.

        Memories that quote or sum up the selected ones are erased too. Summaries of quotes only lose their lines, which
        ``shortened`` lists. Others that derive from the selected ones or cite them are not erased; ``candidates`` lists
        them with their texts. ``include_citing`` erases them too, for example a note whose evidence is a target.
        """

    @operation("POST /memory/erase", by="machine.erasures:erase_everywhere", right="erase", owner="erasing")
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
        """Erase exactly what the plan with this digest lists, for the same selection. This cannot be undone.

        Raises:
            Conflict: the selection gives another plan now; nothing was erased.
        """

    @operation(
        "GET /memory/certificates/{name}",
        by="services.undoing.erasure_references:certificate_of",
        right="erase",
        owner="erasing",
    )
    def certificate(self, name: str) -> dict[str, Any]:
        """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit.

        ``log(kind="erase")`` lists the erasures.
        """

    @operation("POST /memory/adopt/plan", by="machine.backup:plan_adopt", right="owner", owner="accepting a store")
    def plan_adopt(self) -> AdoptionPlan:
        """Return what adopting this copy of a store would accept, with a digest. Nothing changes."""

    @operation("POST /memory/adopt", by="machine.backup:adopt", right="owner", owner="accepting a store")
    def adopt(self, digest: str) -> AdoptionPlan:
        """Accept this copy of a store as trusted. ``digest`` is that of the plan you saw.

        Erasures that this machine recorded are applied again. If the store comes from another machine, its tokens are
        revoked, and the journal records the adoption.

        Raises:
            Conflict: the store has changed since the plan was made.
            Tampered: its journal is damaged; nothing was accepted.
            StoreUnavailable: the store is read-only, or this machine cannot record the adoption.
        """

    # --- maintenance

    @operation(
        "POST /memory/train",
        by="services.reading.learned_order:train_reranker",
        right="owner",
        owner="training the reranker",
    )
    def train_reranker(self) -> Training:
        """Train the reranker from all feedback, in one commit.

        It is used only if it ranks held-out feedback better. Requires the owner.
        """

    @operation("GET /memory/jobs", by="jobs.runner:list_jobs", right="read", answer="items")
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
        """Run all due jobs, or the job with this name. Requires the owner.

        Each result has a receipt and an outcome: ``run``, ``failed`` or ``skipped``.

        Raises:
            NotFound: there is no such job.
            Unauthorised: this handle is not the owner's.
        """

    def run_job(self, name: str, *, force: bool = False) -> Run:
        """Run one job if it is due; see ``run_jobs``."""
        return self.run_jobs(name, force=force)[0]

    @operation("GET /memory/candidates", by="jobs.runner:candidates", right="read", answer="items")
    def merge_candidates(self, *, floor: float = 0.8, limit: int = 50) -> list[Alike]:
        """Return pairs of visible memories that resemble each other, most similar first. Nothing changes.

        Sensitive memories require the right to read them.
        """

    @operation("POST /memory/tokens", by="services.tokens:create", right="owner", status=201)
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
        """Create a token for an actor with this name. ``secret`` is shown this once.

        ``can=["read"]`` is an example of fewer rights than those of the role. Everything that the token reads and
        decides on is in scopes that it sees; an owner's token has no scope.
        """

    @operation("GET /memory/tokens", by="services.tokens:list_tokens", right="owner", answer="items")
    def tokens(self) -> list[Token]:
        """Return every token of the store, oldest first, without secrets. Requires the owner."""

    @operation("DELETE /memory/tokens/{id}", by="services.tokens:revoke", right="owner")
    def revoke_token(self, token_id: str) -> Receipt:
        """Revoke a token. Handles opened with it are refused from then on."""


class AsyncMemoryAPI:
    """The operations of ``MemoryAPI`` as coroutines."""

    recall = async_method(MemoryAPI.recall)
    list_memories = async_method(MemoryAPI.list_memories)
    get = async_method(MemoryAPI.get)
    history = async_method(MemoryAPI.history)
    facets = async_method(MemoryAPI.facets)
    activity = async_method(MemoryAPI.activity)
    sources = async_method(MemoryAPI.sources)
    news = async_method(MemoryAPI.news)
    users = async_method(MemoryAPI.users)
    projects = async_method(MemoryAPI.projects)
    lineage = async_method(MemoryAPI.lineage)
    context = async_method(MemoryAPI.context)
    snapshot = async_method(MemoryAPI.snapshot)
    memory_block = async_method(MemoryAPI.memory_block)
    replay = async_method(MemoryAPI.replay)
    receipts = async_method(MemoryAPI.receipts)
    receipt = async_method(MemoryAPI.receipt)
    check = async_method(MemoryAPI.check)
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
    create_branch = async_method(MemoryAPI.create_branch)
    branches = async_method(MemoryAPI.branches)
    branch_changes = async_method(MemoryAPI.branch_changes)
    merge_branch = async_method(MemoryAPI.merge_branch)
    discard_branch = async_method(MemoryAPI.discard_branch)
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
    export_subject = async_method(MemoryAPI.export_subject)
    plan_contain = async_method(MemoryAPI.plan_contain)
    contain = async_method(MemoryAPI.contain)
    blame = async_method(MemoryAPI.blame)
    contradictions = async_method(MemoryAPI.contradictions)
    bisect = async_method(MemoryAPI.bisect)
    run_tests = async_method(MemoryAPI.run_tests)
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
