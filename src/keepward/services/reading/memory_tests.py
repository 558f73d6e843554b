"""Memory tests on the present or a past state, and the search for the commit that changed a context.

Contexts that are compiled here reach no model, so they have no receipt and count no use. The newest run of tests is a
document outside the journal, which ``status`` reports.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from keepward import deadline
from keepward.core.journal import Bisection
from keepward.core.memory_test import MemoryTest, MemoryTestResult, MemoryTestRun, NewestTestRun, lines_of, parse_test
from keepward.core.principals import branch_scope, parse_branch
from keepward.core.query import AsOf
from keepward.errors import ContextTooSmall, InvalidInput, KeepwardError, NotFound, Tampered, Unauthorised
from keepward.services.access import context_at
from keepward.services.arguments import check_name, scope_for
from keepward.services.reading.contexts import ContextRequest, compile_unrecorded
from keepward.services.reading.recall import read_point
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext
from keepward.storage.documents import ReceiptArtefact

#: Kind and name of the document.
NEWEST_RUN = ("memory_tests", "newest")
#: Most names of failed tests in it.
MAX_FAILING = 50


def run_tests(
    context: RequestContext,
    tests: Iterable[Mapping[str, Any] | MemoryTest],
    *,
    as_of: AsOf = None,
    label: str | None = None,
) -> MemoryTestRun:
    """Run memory tests, and store the result if they ran on the present state.

    Raises:
        InvalidInput: a test is not valid; none ran.
        NotFound: ``as_of`` names no commit.
        Unauthorised: the caller is neither a reviewer nor the owner, or the token does not reach a test's scope.
    """
    if not context.actor.may_decide:
        raise Unauthorised("a test shows a context without a receipt; it takes a reviewer or the owner")
    # One state for all tests: the caller reads in a snapshot.
    parsed = [parse_test(test, number) for number, test in enumerate(tests, 1)]
    if not parsed:
        raise InvalidInput("there is no test: give at least one")
    tests_there = [(test, _context_of(context, test)) for test in parsed]
    head = read_point(context, as_of).head.name
    results = []
    for test, there in tests_there:
        deadline.check()
        results.append(_run(there, test, as_of))
    failing = [result.name for result in results if not result.passed]
    run = MemoryTestRun(items=tuple(results), passed=len(results) - len(failing), failed=len(failing), head=head)
    if as_of is None:
        unstored = _store(context, run, label, failing)
        run = replace(run, notes=(unstored,) if unstored else ())
    return run


def _run(context: RequestContext, test: MemoryTest, as_of: AsOf) -> MemoryTestResult:
    try:
        text, tokens, lines = _compiled(context, test, as_of)
    except (ContextTooSmall, Tampered) as exc:
        return MemoryTestResult(name=test.title, passed=False, failures=(str(exc),), tokens=0, lines=0, text="")
    failures = test.failures(text, tokens, lines)
    return MemoryTestResult(
        name=test.title, passed=not failures, failures=failures, tokens=tokens, lines=lines, text=text
    )


def _compiled(context: RequestContext, test: MemoryTest, as_of: AsOf) -> tuple[str, int, int]:
    """Return the text of a test's context, its tokens and its lines."""
    request = ContextRequest(
        purpose=test.purpose, budget_tokens=test.budget_tokens, as_of=as_of, valid_at=test.valid_at
    )
    if test.query is not None:
        compiled = compile_unrecorded(context, test.query, request, "memory_block")
    else:
        compiled = compile_unrecorded(context, test.objective or "", request)
    return compiled.text, compiled.tokens, lines_of(compiled.sections)


def _context_of(context: RequestContext, test: MemoryTest) -> RequestContext:
    """Return the context of whom a test names: its user, agent and project, or its scope; and on its branch."""
    if test.branch:
        context = dataclasses.replace(context, scope=branch_scope(parse_branch(test.branch), context.scope))
    if test.scope:
        return context_at(context, scope=test.scope)
    named = {kind: getattr(test, kind) for kind in ("user", "agent", "project") if getattr(test, kind)}
    if not named:
        return context
    for kind, name in named.items():
        check_name(kind, name)
    return context_at(context, scope=scope_for(context.scope, **named))


def bisect(
    context: RequestContext,
    query: str | None = None,
    *,
    contains: str | None = None,
    predicate: Callable[[str], bool] | None = None,
    test: Mapping[str, Any] | MemoryTest | None = None,
    since: int | None = None,
    purpose: str = "answer",
) -> Bisection:
    """Return the commit that made the context for a query contain a text or pass a predicate, or made a test fail.

    It compiles about log2(n) contexts. ``since`` is a commit before the change: by default the empty store, and for a
    test the newest state that passes of those 1, 2, 4 … commits ago. If the result changed more than once, the commit
    is one of those that changed it.

    Raises:
        InvalidInput: the newest context is not changed, or that of ``since`` is; or there is no single condition.
    """
    if sum(each is not None for each in (contains or None, predicate, test)) != 1:
        raise InvalidInput("give one of these: the text to look for, a predicate, or a test that fails now")
    if (query is None) == (test is None):
        raise InvalidInput("give the query of the contexts; a test has its own")
    wanted = parse_test(test) if test is not None else MemoryTest(objective=query, purpose=purpose)  # type: ignore[arg-type]
    there, part = _context_of(context, wanted), contains or ""
    high = context.store.head(context.tenant).seq
    if not 0 <= (since or 0) <= high:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    texts: dict[int, str] = {}

    def is_changed(seq: int) -> bool:
        deadline.check()
        # The empty store has no memories, and documents do not depend on commits.
        text, tokens, lines = _compiled(there, wanted, seq) if seq else ("", 0, 0)
        texts[seq] = text
        if test is not None:
            return bool(wanted.failures(text, tokens, lines))
        return predicate(text) if predicate is not None else part in text

    if not is_changed(high):
        raise InvalidInput(_NOT_CHANGED[test is not None])
    low, step = since or 0, 1
    if test is not None and since is None:
        low = high - 1
        while low > 0 and is_changed(low):
            high, step = low, 2 * step
            low = max(high - step, 0)
    if is_changed(low):
        raise InvalidInput(_CHANGED_AT_START[test is not None])
    while high - low > 1:
        middle = (low + high) // 2
        if is_changed(middle):
            high = middle
        else:
            low = middle
    view = VisibleReader(context).commit(str(high))
    return Bisection(commit=view, compiled=len(texts), before=texts[low], after=texts[high])


#: Why nothing can be found: for a text or predicate, and for a test.
_NOT_CHANGED = (
    "the context after the newest commit does not pass: there is nothing to look for",
    "the test passes now: there is nothing to look for",
)
_CHANGED_AT_START = (
    "the context at the start passes already: begin at an earlier commit",
    "the test fails at the start too: name with `since` a commit at which it passed",
)


def newest_run(context: RequestContext) -> NewestTestRun | None:
    """Return the stored newest run; None without one, and for a handle that does not see every scope."""
    if not VisibleReader(context).sees_store:
        return None
    try:
        stored = context.store.artefact(context.tenant, *NEWEST_RUN)
    except Tampered:
        return None
    return msgspec.json.decode(stored, type=NewestTestRun) if stored else None


def _store(context: RequestContext, run: MemoryTestRun, label: str | None, failing: list[str]) -> str:
    """Store a run as the newest one; return why it is not stored, or an empty text."""
    if context.store.read_only or context.store.foreign is not None:
        return "the run is not stored: this store can only be read"
    if not context.policy.enabled:
        return "the run is not stored: policy switches memory off"
    newest = NewestTestRun(
        label=label,
        at=context.clock.now(),
        by=context.actor.label,
        head=run.head,
        passed=run.passed,
        failed=run.failed,
        failing=tuple(failing[:MAX_FAILING]),
    )
    try:
        with context.store.write() as writer:
            writer.replace_artefact(ReceiptArtefact(context.tenant, *NEWEST_RUN, msgspec.json.encode(newest).decode()))
    except KeepwardError as exc:
        return f"the run could not be stored: {exc}"
    return ""
