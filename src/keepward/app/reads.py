"""The verbs that read; none of them writes the journal."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from keepward.app.handle import Handle
from keepward.model.memory import Record, as_read
from keepward.model.query import Filter, Memories, Recall
from keepward.model.value import plain_key
from keepward.verbs.arguments import share, texts

if TYPE_CHECKING:
    from keepward.engine.kit import Kit
    from keepward.model.compiled import CompiledContext, Replayed
    from keepward.model.journal import Check, Version
    from keepward.model.query import AsOf


class Reads(Handle):
    """Recall, lists, history, contexts and receipts."""

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        purpose: str = "answer",
        tiers: Sequence[str] = (),
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        content_types: Sequence[str] = (),
        subject: str | None = None,
        category: str | None = None,
        session: str | None = None,
        min_importance: float = 0.0,
        include_sensitive: bool = False,
        as_of: AsOf = None,
        order: str = "learned",
        floor: float | None = None,
        receipt: bool = False,
    ) -> Recall:
        """Return the memories most relevant to a query, best first; filters apply before the limit.

        Where even the best score is below ``floor`` (0..1, None for the policy's own, 0 for no floor) nothing that is
        remembered bears on the query: there are no hits, and ``notes``, ``best`` and ``below`` say what was left out.
        ``order`` is ``learned`` (by the reranker where one serves), ``fused`` or ``cosine``. With ``receipt`` a
        receipt is kept, for ``feedback`` to name.
        """
        from keepward.engine.read import own_and_shared, recall
        from keepward.engine.use import note_handed
        from keepward.engine.view import ask_for_sensitive

        filters = Filter(
            tiers=texts("tiers", tiers),
            kinds=texts("kinds", kinds),
            tags=texts("tags", tags),
            content_types=texts("content_types", content_types),
            subject=subject,
            category=category,
            session=session,
            min_importance=share("min_importance", min_importance),
            include_sensitive=include_sensitive,
        )
        if include_sensitive:
            ask_for_sensitive(self._who)
        narrowed = own_and_shared(self._who, filters)
        found = recall(
            self._kit,
            self._who,
            query,
            narrowed,
            limit=limit,
            purpose=purpose,
            as_of=as_of,
            order=order,
            floor=floor,
        )
        news = note_handed(self._kit, self._who, [hit.memory for hit in found])
        if receipt or news is not None:
            from keepward.engine.use import keep_recall

            kept = keep_recall(self._kit, self._who, query, purpose, found)
            found = kept if receipt else found
        hits = tuple(replace(hit, memory=as_read(hit.memory, found.now)) for hit in found.hits)
        return replace(found, hits=hits)

    def find(
        self,
        *,
        tiers: Sequence[str] = (),
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        content_types: Sequence[str] = (),
        key: str | None = None,
        subject: str | None = None,
        category: str | None = None,
        session: str | None = None,
        job: str | None = None,
        min_importance: float = 0.0,
        limit: int | None = 50,
        include_ended: bool = False,
        include_sensitive: bool = True,
        as_of: AsOf = None,
    ) -> Memories:
        """Return the memories that pass all filters, newest first; ``tags`` match any.

        What is sensitive is among them for who may ask for it; the others are told by ``notes`` that there is some.
        ``withheld`` of the list names those that would have passed and do not hold.
        """
        from keepward.engine.read import find, own_and_shared
        from keepward.engine.use import note_handed

        filters = Filter(
            tiers=texts("tiers", tiers),
            kinds=texts("kinds", kinds),
            tags=texts("tags", tags),
            content_types=texts("content_types", content_types),
            key=None if key is None else plain_key(key),
            subject=subject,
            category=category,
            session=session,
            job=job,
            min_importance=share("min_importance", min_importance),
            include_sensitive=include_sensitive,
        )
        narrowed = own_and_shared(self._who, filters)
        found = find(self._kit, self._who, narrowed, limit=limit, include_ended=include_ended, as_of=as_of)
        note_handed(self._kit, self._who, found)
        return found

    def get(self, memory_id: str, *, as_of: AsOf = None) -> Record:
        """Return a memory by id or alias, whatever its status."""
        from keepward.engine.read import get
        from keepward.engine.use import note_handed

        record = get(self._kit, self._who, memory_id, as_of=as_of)
        note_handed(self._kit, self._who, [record])
        return record

    def history(self, memory_id: str) -> list[Version]:
        """Return every version of a memory with the commit that made it, oldest first."""
        from keepward.engine.read import history

        return history(self._kit, self._who, memory_id)

    def context(
        self,
        objective: str,
        *,
        budget_tokens: int | None = None,
        purpose: str = "answer",
        as_of: AsOf = None,
        format: str = "markdown",  # noqa: A002  the word users know
        include_sensitive: bool = False,
        without: Sequence[str] = (),
        floor: float | None = None,
    ) -> CompiledContext:
        """Compile what a model should know for an objective, within a budget, with a receipt.

        A core block that was edited outside of Keepward or is missing is an error, unless ``without`` names it, by
        key or id; a block that holds is never left out. Nothing is recalled where even the best score is below
        ``floor``: 0..1, None for the policy's own.
        """
        from keepward.engine.contexts import context
        from keepward.engine.view import ask_for_sensitive

        if include_sensitive:
            ask_for_sensitive(self._who)
        return context(
            self._kit,
            self._who,
            objective,
            budget_tokens=budget_tokens,
            purpose=purpose,
            as_of=as_of,
            form=format,
            include_sensitive=include_sensitive,
            without=without,
            floor=floor,
        )

    def snapshot(
        self,
        *,
        budget_tokens: int | None = None,
        format: str = "markdown",  # noqa: A002
        without: Sequence[str] = (),
    ) -> CompiledContext:
        """Compile what belongs in every prompt of this scope: core, lasting memories and keyed state, no recall.

        ``without`` is as for ``context``.
        """
        from keepward.engine.contexts import part

        return part(self._kit, self._who, "", "snapshot", budget_tokens=budget_tokens, form=format, without=without)

    def memory_block(
        self,
        query: str,
        *,
        budget_tokens: int | None = None,
        purpose: str = "answer",
        floor: float | None = None,
        format: str = "markdown",  # noqa: A002
    ) -> CompiledContext:
        """Compile only what is relevant to a query; the empty text when nothing is.

        ``floor`` is the least score of each, 0..1; None for the policy's own, 0 for no floor.
        """
        from keepward.engine.contexts import part

        return part(
            self._kit,
            self._who,
            query,
            "memory_block",
            budget_tokens=budget_tokens,
            purpose=purpose,
            floor=floor,
            form=format,
        )

    def replay(self, receipt_id: str) -> Replayed:
        """Render a compiled context again from its receipt, byte for byte."""
        from keepward.engine.contexts import replay

        return replay(self._kit, self._who, receipt_id)

    def receipt(self, receipt_id: str) -> dict[str, Any]:
        """Return a receipt as plain values; a commit's comes with the before and after of each target."""
        from keepward.engine.audit import receipt

        return receipt(self._kit, self._who, receipt_id)

    def doctor(self) -> list[Check]:
        """Return what was looked at, whether it is well, and what to do when it is not."""
        from keepward.engine.audit import doctor

        with _inspecting(self._kit):
            return doctor(self._kit, self._who)

    def status(self) -> dict[str, Any]:
        """Return counts, sizes, the queue, the use of budgets, and how each job stands, as plain values."""
        from keepward.engine.audit import status
        from keepward.jobs.runner import states

        with _inspecting(self._kit):
            jobs = {
                each.name: {
                    "last_at": each.last_at and each.last_at.isoformat(),
                    "last_outcome": each.last_outcome,
                    "due_at": each.due_at and each.due_at.isoformat(),
                    "due": each.due,
                }
                for each in states(self._kit, self._who)
            }
            return {"path": self.path, **status(self._kit, self._who), "jobs": jobs}


def _inspecting(kit: Kit) -> AbstractContextManager[None]:
    """Let a foreign store be counted, which nobody else may read."""
    return contextlib.nullcontext() if kit.store.foreign is None else kit.store.inspecting()
