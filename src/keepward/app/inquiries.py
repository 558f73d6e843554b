"""The verbs of an inquiry: what something touched, where a value comes from, and how to take it out of use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from keepward.app.handle import Handle
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.model.inquiry import Bisection, Blame, Containment, ContextDifference, Impact


class Inquiries(Handle):
    """Impact, containment, blame, bisection, and contexts side by side."""

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
        from keepward.engine.inquire import impact, selector_of

        chosen = selector_of(source=source, actor=actor, session=session, commit=commit, memory=memory)
        return impact(self._kit, self._who, chosen)

    def contain(
        self,
        plan: str | None = None,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
        reason: str = "",
    ) -> Containment:
        """Take all that one of these touched out of use, in one commit that one rollback undoes.

        Without ``plan`` nothing is written: what comes back is the plan and its digest. With that digest as
        ``plan`` exactly this is carried out, by the owner alone.
        """
        from keepward.engine.inquire import selector_of
        from keepward.engine.undo import contain

        chosen = selector_of(source=source, actor=actor, session=session, commit=commit, memory=memory)
        return contain(self._kit, self._who, chosen, plan=plan, reason=reason)

    def blame(self, name: str) -> Blame:
        """Return which commit, actor, source and approval made each value of a memory, by id or key."""
        from keepward.engine.inquire import blame

        return blame(self._kit, self._who, name)

    def bisect(
        self,
        query: str,
        *,
        contains: str | None = None,
        predicate: Callable[[str], bool] | None = None,
        since: int = 0,
        purpose: str = "answer",
    ) -> Bisection:
        """Return the commit with which the context for a query began to hold a text, or to pass a predicate."""
        from keepward.engine.inquire import bisect

        if (contains is None) == (predicate is None) or contains == "":
            raise InvalidInput("give either the text to look for or a predicate")
        passes = predicate if predicate is not None else lambda text: str(contains) in text
        return bisect(self._kit, self._who, query, passes, since=since, purpose=purpose)

    def context_diff(self, first: str, second: str) -> ContextDifference:
        """Return what differs between two compiled contexts, by receipt id, and the commit responsible for each."""
        from keepward.engine.inquire import context_diff

        return context_diff(self._kit, self._who, first, second)
