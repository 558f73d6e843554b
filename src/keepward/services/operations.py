"""Operations whose parameters a service takes in another form: a selector, a selection of memories, an instant."""

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


def snapshot(session: RequestContext, **options: Any) -> CompiledContext:
    """Compile the part of a context that belongs in every prompt of this scope."""
    from keepward.services.contexts import context

    return context(session, "", which="snapshot", **options)


def memory_block(session: RequestContext, query: str, **options: Any) -> CompiledContext:
    """Compile only the memories relevant to a query."""
    from keepward.services.contexts import context

    return context(session, query, which="memory_block", **options)


def status(session: RequestContext) -> dict[str, Any]:
    """Return counts, sizes, the review queue, the use of budgets, and the state of each job."""
    from keepward.jobs.runner import job_states
    from keepward.services import status as figures

    with figures.allow_untrusted_counts(session):
        jobs = {
            job.name: {
                "last_at": job.last_at and job.last_at.isoformat(),
                "last_outcome": job.last_outcome,
                "due_at": job.due_at and job.due_at.isoformat(),
                "due": job.due,
            }
            for job in job_states(session)
        }
        return {"path": session.engine.path, **figures.status(session), "jobs": jobs}


def add(
    session: RequestContext,
    /,
    messages: Sequence[Mapping[str, Any]],
    *,
    reason: str = "",
    extract: bool = True,
    subject: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **extra: Any,
) -> Added:
    """Add messages of a conversation, and propose the facts in them."""
    from keepward.services.ingest import add as add_messages

    return add_messages(
        session,
        messages,
        conversation=extra.get("session"),
        subject=subject,
        extract=extract,
        reason=reason or "said in a conversation",
        on_progress=on_progress,
    )


def impact(session: RequestContext, /, **ways: str | None) -> Impact:
    """Return what a single source, actor, session, commit or memory touched."""
    from keepward.services import provenance

    return provenance.impact(session, provenance.selector_of(**ways))


def plan_contain(session: RequestContext, /, **ways: str | None) -> Containment:
    """Return the plan of a containment."""
    from keepward.services import provenance, rollback

    return rollback.contain(session, provenance.selector_of(**ways))


def contain(session: RequestContext, /, digest: str, *, reason: str = "", **ways: str | None) -> Containment:
    """Apply the plan with this digest."""
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
    part = contains or ""
    passes = predicate if predicate is not None else lambda text: part in text
    return contexts.bisect(session, query, passes, since=since, purpose=purpose)


def plan_erase(session: RequestContext, *, reason: str = "request", **targets: Any) -> ErasePlan:
    """Return what erasing these memories would destroy."""
    from keepward.services import erasure

    return erasure.plan(session, _selection(session, **targets), reason=reason)


def erase(session: RequestContext, digest: str, *, reason: str = "request", **targets: Any) -> Erased:
    """Apply the plan with this digest, here and in the backups of the store."""
    from keepward.copies.erasures import erase_everywhere

    return erase_everywhere(session, digest, _selection(session, **targets), reason=reason)


def feedback(
    session: RequestContext, receipt_id: str, *, used: Sequence[str] = (), ignored: Sequence[str] = ()
) -> Feedback:
    """Store which memories of a receipt were used, and which were not."""
    from keepward.services.feedback import record_feedback

    if not receipt_id:
        raise InvalidInput("feedback is on a receipt: give its id")
    return record_feedback(session, receipt_id, used=used, ignored=ignored)


def jobs(session: RequestContext) -> list[JobState]:
    """Return every job with its schedule and its last run."""
    from keepward.jobs.runner import job_states

    if not session.actor.has_right("read"):
        raise Unauthorised("this token may not read; ask the owner for one that may")
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
    """Create a token for a holder with this name."""
    from keepward.services import tokens

    expiry = expiry_time(expires)
    return tokens.create(
        session,
        name=name,
        rights=rights,
        can=None if can is None else frozenset(can),
        tenant=session.tenant if tenant is None else valid_tenant(tenant),
        scope=session.scope if scope is None else valid_scope(scope),
        expires_at=session.clock.now() + expiry if isinstance(expiry, timedelta) else expiry,
    )


def _selection(
    session: RequestContext,
    *,
    ids: Sequence[str] = (),
    subject: str | None = None,
    source: str | None = None,
    include_citing: bool = False,
) -> Selection:
    # Without a selector at a user's scope, all memories of that user are meant.
    user = None if ids or subject or source else user_of(session.scope)
    return Selection(
        ids=tuple(ids),
        subject=subject,
        source=source,
        user=user,
        include_citing=include_citing or user is not None,
    )
