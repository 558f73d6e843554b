"""The verbs of an inquiry: what something touched, where a value comes from, and how to take it out of use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from keepward.core.journal import Bisection as Found
from keepward.core.journal import Blame as Blamed
from keepward.core.journal import Containment, ContextDifference, Contradictions
from keepward.core.journal import Impact as Touched
from keepward.core.query import Purpose
from keepward.errors import InvalidInput
from keepward.verbs import Limit, Request, Wire, fields, verb
from keepward.verbs.read import Filtered

if TYPE_CHECKING:
    from keepward.services.session import Session

R = TypeVar("R")


class Selected(Request[R]):
    """Exactly one way to name what is meant."""

    source: Annotated[str, Limit(minLength=1, maxLength=512)] | None = None
    actor: Annotated[str, Limit(minLength=1, maxLength=128)] | None = None
    session: Annotated[str, Limit(minLength=1, maxLength=256)] | None = None
    commit: Annotated[str, Limit(minLength=1, maxLength=64)] | None = None
    memory: fields.Id | None = None

    def parameters(self, session: Session) -> dict[str, Any]:
        """Return the way and its value as one."""
        from keepward.services.provenance import selector_of

        given = super().parameters(session)
        return {"selector": selector_of(**{name: given.pop(name) for name in Selected.names}), **given}


@verb("impact", "GET /memory/impact", right="approve")
class Impact(Selected[Touched]):
    """Return what exactly one of these touched: memories, all derived from them, every context that held any.

    It spans every scope, and takes a reviewer or the owner.
    """

    function = "services.provenance:impact"


@verb("plan_contain", "POST /memory/contain/plan", right="approve")
class PlanContain(Selected[Containment]):
    """Return what would be taken out of use, under a digest; change nothing."""

    function = "services.rollback:contain"


@verb("contain", "POST /memory/contain", right="owner")
class Contain(Selected[Containment]):
    """Carry out exactly the plan with this digest, in one commit that one rollback undoes; for the owner alone."""

    function = "services.rollback:contain"
    digest: fields.Digest
    reason: Annotated[str, Limit(maxLength=900)] = ""


@verb("blame", "GET /memory/blame/{name}", right="read")
class Blame(Request[Blamed]):
    """Return which commit, actor, source and approval made each value of a memory, by id or key."""

    function = "services.provenance:blame"
    name: fields.Name


@verb("contradictions", "GET /memory/contradictions", right="read")
class FindContradictions(Filtered[Contradictions]):
    """Return pairs of memories that say nearly the same and differ in something; change nothing.

    Each pair names what differs, such as a number, date, name or negation. The closest come first. They are the merge
    candidates that are not the same.
    """

    limit: fields.Most = 50

    def run(self, session: Session) -> Contradictions:
        from keepward.jobs.runner import contradictions
        from keepward.services.session import note_handed

        if self.include_sensitive:
            session.reader.check_sensitive()
        found = contradictions(session, self.narrowed(session), limit=self.limit)
        note_handed(session, [each for pair in found.items for each in (pair.older, pair.newer)])
        return found


@verb("bisect", "POST /memory/bisect", right="read")
class Bisect(Request[Found]):
    """Return the commit with which the context for a query began to hold a text."""

    query: fields.Asked
    contains: fields.Asked
    since: fields.Version = 0
    purpose: Purpose = "answer"

    def run(self, session: Session, *, predicate: Callable[[str], bool] | None = None) -> Found:
        """Look for it, or for the first context that passes a predicate."""
        from keepward.services.contexts import bisect

        if bool(self.contains) == (predicate is not None):
            raise InvalidInput("give either the text to look for or a predicate")
        passes = predicate if predicate is not None else lambda text: self.contains in text
        asked: dict[str, Any] = {"since": self.since, "purpose": self.purpose}
        return bisect(session, self.query, passes, **asked)


@verb("context_diff", "GET /memory/receipts/{id}/diff/{other}", right="read", group="journal")
class ContextDiff(Request[ContextDifference]):
    """Return what differs between two compiled contexts, and the commit responsible for each."""

    function = "services.explain:context_diff"
    first: fields.NamedId
    second: Annotated[fields.Name, Wire("other")]
