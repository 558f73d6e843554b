"""Operations whose arguments a service takes in another form: a selector, a selection of memories, an instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from keepward.core.compiled import CompiledContext
from keepward.core.job import JobState
from keepward.core.journal import Bisection, Containment, Erased, ErasePlan, Impact, Selection
from keepward.core.messages import Added
from keepward.core.principals import Issued, user_of
from keepward.core.query import Feedback
from keepward.core.value import Duration
from keepward.errors import InvalidInput, Unauthorised
from keepward.services.arguments import expiry_time, valid_scope, valid_tenant
from keepward.services.request_context import RequestContext


def snapshot(session: RequestContext, **asked: Any) -> CompiledContext:
    """Compile what belongs in every prompt of this scope."""
    from keepward.services.contexts import context

    return context(session, "", which="snapshot", **asked)


def memory_block(session: RequestContext, query: str, **asked: Any) -> CompiledContext:
    """Compile only what is relevant to a query."""
    from keepward.services.contexts import context

    return context(session, query, which="memory_block", **asked)


def status(session: RequestContext) -> dict[str, Any]:
    """Return counts, sizes, the queue, the use of budgets, and how each job stands."""
    from keepward.jobs.runner import job_states
    from keepward.services import status as figures

    with figures.allow_untrusted_counts(session):
        stands = {
            each.name: {
                "last_at": each.last_at and each.last_at.isoformat(),
                "last_outcome": each.last_outcome,
                "due_at": each.due_at and each.due_at.isoformat(),
                "due": each.due,
            }
            for each in job_states(session)
        }
        return {"path": session.engine.path, **figures.status(session), "jobs": stands}


def add(
    session: RequestContext,
    /,
    messages: Sequence[Mapping[str, Any]],
    *,
    reason: str = "",
    extract: bool = True,
    subject: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **more: Any,
) -> Added:
    """Add messages of a talk, and propose the facts that they tell."""
    from keepward.services.ingest import add as ingested

    return ingested(
        session,
        messages,
        conversation=more.get("session"),
        subject=subject,
        extract=extract,
        reason=reason or "said in a talk",
        on_progress=on_progress,
    )


def impact(session: RequestContext, /, **ways: str | None) -> Impact:
    """Return what exactly one source, actor, session, commit or memory touched."""
    from keepward.services import provenance

    return provenance.impact(session, provenance.selector_of(**ways))


def plan_contain(session: RequestContext, /, **ways: str | None) -> Containment:
    """Return what would be taken out of use."""
    from keepward.services import provenance, rollback

    return rollback.contain(session, provenance.selector_of(**ways))


def contain(session: RequestContext, /, digest: str, *, reason: str = "", **ways: str | None) -> Containment:
    """Carry out the plan with this digest."""
    from keepward.services import provenance, rollback

    return rollback.contain(session, provenance.selector_of(**ways), digest=digest, reason=reason)


def bisect(
    session: RequestContext,
    query: str,
    *,
    contains: str | None = None,
    predicate: Callable[[str], bool] | None = None,
    since: int = 0,
    purpose: str = "answer",
) -> Bisection:
    """Return the first commit after which the context for a query contains a text or passes a predicate."""
    from keepward.services import contexts

    if bool(contains) == (predicate is not None):
        raise InvalidInput("give either the text to look for or a predicate")
    wanted = contains or ""
    passes = predicate if predicate is not None else lambda text: wanted in text
    return contexts.bisect(session, query, passes, since=since, purpose=purpose)


def plan_erase(session: RequestContext, *, reason: str = "request", **chosen: Any) -> ErasePlan:
    """Return what erasing these memories would destroy."""
    from keepward.services import erasure as erasing

    return erasing.plan(session, _selection(session, **chosen), reason=reason)


def erase(session: RequestContext, digest: str, *, reason: str = "request", **chosen: Any) -> Erased:
    """Carry out the plan with this digest, here and in the backups of the store."""
    from keepward.copies.erasures import erase_everywhere

    return erase_everywhere(session, digest, _selection(session, **chosen), reason=reason)


def feedback(
    session: RequestContext, receipt_id: str, *, used: Sequence[str] = (), ignored: Sequence[str] = ()
) -> Feedback:
    """Keep which memories of a receipt were used, and which were not."""
    from keepward.services import feedback as use

    if not receipt_id:
        raise InvalidInput("feedback is on a receipt: give its id, a text")
    return use.record_feedback(session, receipt_id, used=used, ignored=ignored)


def jobs(session: RequestContext) -> list[JobState]:
    """Return every job with its schedule and its last run."""
    from keepward.jobs.runner import job_states

    if not session.actor.has_right("read"):
        raise Unauthorised("this credential does not read; ask the owner for one that may")
    return job_states(session)


def create_token(
    session: RequestContext,
    name: str,
    *,
    rights: str = "agent",
    can: Sequence[str] | None = None,
    tenant: str | None = None,
    scope: str | None = None,
    expires: datetime | Duration | None = None,
) -> Issued:
    """Make a token for a bearer of that name."""
    from keepward.services import tokens

    end = expiry_time(expires)
    return tokens.create(
        session,
        name=name,
        rights=rights,
        can=None if can is None else frozenset(can),
        tenant=session.tenant if tenant is None else valid_tenant(tenant),
        scope=session.scope if scope is None else valid_scope(scope),
        expires_at=session.clock.now() + end if isinstance(end, timedelta) else end,
    )


def _selection(
    session: RequestContext,
    *,
    ids: Sequence[str] = (),
    subject: str | None = None,
    source: str | None = None,
    include_citing: bool = False,
) -> Selection:
    # Where none is named at a user, all of that user's are meant.
    user = None if ids or subject or source else user_of(session.scope)
    return Selection(
        ids=tuple(ids),
        subject=subject,
        source=source,
        user=user,
        include_citing=include_citing or user is not None,
    )
