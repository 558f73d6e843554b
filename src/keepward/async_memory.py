"""``AsyncMemory``: every operation of ``Memory`` as a coroutine.

async with await AsyncMemory.open("memory.db") as memory:
    await memory.remember("Ana prefers tabs", source="user_message")

* Each operation runs in a thread, with the arguments, results and errors of ``Memory``.
* A cancelled ``await`` waits until the running operation ends, then raises CancelledError. The write may have
  happened: read before you write again. An operation that has not begun never runs.
* ``close`` waits for running operations; later calls raise InvalidInput. Callbacks such as ``on_progress`` run in
  the thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from keepward.api import AsyncMemoryAPI
from keepward.conversation import Conversation
from keepward.core.policy import Policy
from keepward.core.principals import Actor
from keepward.core.proposal import Outcome
from keepward.draft import Draft
from keepward.errors import InvalidInput
from keepward.handles import ForeignMethodHints
from keepward.memory import Memory
from keepward.operations import UnknownParameter, async_method

if TYPE_CHECKING:
    from typing import Self

    from keepward.core.commit import Commit, Event
    from keepward.shadow import Shadow

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: Threads of one open store; only one writes at a time.
MAX_THREADS = 8
#: Commits of the journal read in one thread call.
_COMMITS_PER_READ = 64


class ThreadPool:
    """The threads of one open store."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="keepward")

    async def run(self, call: Callable[..., R], /, *args: Any, **named: Any) -> R:
        """Run a call in a thread and return its result."""
        context = contextvars.copy_context()
        try:
            job = self._pool.submit(context.run, functools.partial(call, *args, **named))
        except RuntimeError as exc:
            raise InvalidInput("the store is closed; open it again") from exc
        return await wait_shielded(job)

    async def end(self, last: Callable[[], None]) -> None:
        """Wait for running calls, then make the last call. Further calls of ``end`` do nothing."""

        def ending() -> None:
            self._pool.shutdown(wait=True)
            last()

        # A pool cannot wait for its own threads.
        with ThreadPoolExecutor(1, thread_name_prefix="keepward-end") as other:
            await wait_shielded(other.submit(ending))


async def wait_shielded(job: Future[R]) -> R:
    """Wait for a call. A cancellation is raised after the call has ended, or at once if it has not begun."""
    waiter = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(waiter)
    except asyncio.CancelledError:
        if not job.cancel():
            while not waiter.done():
                try:
                    await asyncio.wait([waiter])
                except asyncio.CancelledError:
                    # A second cancellation: the first one is raised below.
                    continue
            if not waiter.cancelled():
                # Retrieve the exception, so that asyncio does not log it as never retrieved.
                waiter.exception()
        raise


class AsyncContext:
    """An opening handle: ``await`` returns it; ``async with`` also closes it at the end."""

    def __init__(self, opening: Callable[[], Memory]) -> None:
        self._opening = opening
        self._opened: AsyncMemory | None = None

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _open(self) -> AsyncMemory:
        threads = ThreadPool()
        made: list[Memory] = []
        try:
            await threads.run(lambda: made.append(self._opening()))
        except BaseException:
            # The store may have opened after the cancellation; no other code could close it.
            await threads.end(made[0].close if made else lambda: None)
            raise
        return AsyncMemory(made[0], threads)


def _open_async(method: Callable[P, Memory]) -> Callable[P, AsyncContext]:
    @functools.wraps(method)
    def opening(*args: P.args, **named: P.kwargs) -> AsyncContext:
        return AsyncContext(functools.partial(method, *args, **named))

    return opening


def _run_in_new_thread(method: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    @functools.wraps(method)
    async def awaited(*args: P.args, **named: P.kwargs) -> R:
        with ThreadPoolExecutor(1, thread_name_prefix="keepward-apart") as thread:
            return await wait_shielded(thread.submit(functools.partial(method, *args, **named)))

    return awaited


class _AsyncBlock:
    """An object whose methods run in threads, for an ``async with`` block."""

    def __init__(self, target: Any, threads: ThreadPool) -> None:
        self._target, self._threads = target, threads

    async def __aenter__(self) -> Self:
        self._target.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._threads.run(self._target.__exit__, kind, exc, trace)


class AsyncDraft(_AsyncBlock):
    """Collected changes; nothing is checked or visible before the block ends."""

    insert = async_method(Draft.insert)
    replace = async_method(Draft.replace)
    append = async_method(Draft.append)
    move = async_method(Draft.move)
    retire = async_method(Draft.retire)
    supersede = async_method(Draft.supersede)
    promote = async_method(Draft.promote)
    restore = async_method(Draft.restore)
    reinforce = async_method(Draft.reinforce)
    stage = async_method(Draft.stage)
    discard = async_method(Draft.discard)

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the proposal; None until the block has ended without an error."""
        outcome: Outcome | None = self._target.outcome
        return outcome

    def __len__(self) -> int:
        return len(self._target)


class AsyncConversation(_AsyncBlock):
    """``Conversation`` with coroutine methods."""

    user = async_method(Conversation.user)
    assistant = async_method(Conversation.assistant)
    tool = async_method(Conversation.tool)
    say = async_method(Conversation.say)
    context = async_method(Conversation.context)


class AsyncMemory(ForeignMethodHints, AsyncMemoryAPI):
    """A handle on a store of memories, with coroutine methods."""

    def __new__(cls, *given: Any, **_: Any) -> Self:
        """Refuse a call without a handle, as ``AsyncMemory()`` opens a store in other systems."""
        if not given or not isinstance(given[0], Memory):
            raise UnknownParameter(f'a store is opened by name: await {cls.__name__}.open("memory.db")')
        return super().__new__(cls)

    def __init__(self, memory: Memory, threads: ThreadPool | None = None) -> None:
        """Wrap a handle. Closing this one closes it. Handles on one store share their threads."""
        self._target, self._threads = memory, threads or ThreadPool()

    open = staticmethod(_open_async(Memory.open))
    restore_backup = staticmethod(_run_in_new_thread(Memory.restore_backup))
    recover = staticmethod(_run_in_new_thread(Memory.recover))

    def __repr__(self) -> str:
        return f"<Async{repr(self._target)[1:]}"

    async def close(self) -> None:
        """Wait for running calls, write pending use counts, and close the store for all handles on it."""
        await self._threads.end(self._target.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- actor, tenant and scope

    @property
    def tenant(self) -> str:
        """The tenant this handle reads and writes."""
        return self._target.tenant

    @property
    def branch_name(self) -> str | None:
        """The branch of this handle; None on main."""
        return self._target.branch_name

    @property
    def scope(self) -> str:
        """The scope of this handle."""
        return self._target.scope

    @property
    def actor(self) -> Actor:
        """The actor of this handle."""
        return self._target.actor

    @property
    def path(self) -> str:
        """The file of the store, or the address of its database without the password."""
        return self._target.path

    async def policy(self) -> Policy:
        """Return the policy in force."""
        return await self._threads.run(lambda: self._target.policy)

    async def now(self) -> datetime:
        """Return the current time by the clock of the store."""
        return await self._threads.run(lambda: self._target.now)

    async def head(self) -> str:
        """Return the name of the tenant's newest commit."""
        return await self._threads.run(lambda: self._target.head)

    def as_actor(self, actor: Actor) -> AsyncMemory:
        """Return a handle of an actor with fewer rights on the same store."""
        return AsyncMemory(self._target.as_actor(actor), self._threads)

    def at(self, *, tenant: str | None = None, scope: str | None = None) -> AsyncMemory:
        """Return a handle at another tenant or scope of the same store."""
        return AsyncMemory(self._target.at(tenant=tenant, scope=scope), self._threads)

    def branch(self, name: str | None) -> AsyncMemory:
        """Return a handle on a branch, or with None on main."""
        return AsyncMemory(self._target.branch(name), self._threads)

    def user(self, name: str, *, names: Sequence[str] = ()) -> AsyncMemory:
        """Return a handle of a user: a person whom the agent talks with."""
        return AsyncMemory(self._target.user(name, names=names), self._threads)

    def agent(self, name: str) -> AsyncMemory:
        """Return a handle of an agent."""
        return AsyncMemory(self._target.agent(name), self._threads)

    def project(self, name: str) -> AsyncMemory:
        """Return a handle of a project, which its agents share."""
        return AsyncMemory(self._target.project(name), self._threads)

    async def with_token(self, token: str, *, consent: bool = False) -> AsyncMemory:
        """Return a handle on the same store that uses a token: its actor, its tenant and its scope."""
        return AsyncMemory(await self._threads.run(self._target.with_token, token, consent=consent), self._threads)

    def session(self, name: str, *, subject: str | None = None) -> AsyncConversation:
        """Return a conversation with this name; its messages are added as they come. See ``Conversation``."""
        return AsyncConversation(self._target.session(name, subject=subject), self._threads)

    def shadow(self, host: Callable[P, T], *, budget_tokens: int | None = None) -> Shadow[P, T]:
        """Try Keepward next to a host's own memory, as ``Memory.shadow`` does, in the caller's thread."""
        return self._target.shadow(host, budget_tokens=budget_tokens)

    def draft(self, *, reason: str = "", session: str | None = None) -> AsyncDraft:
        """Collect changes in an ``async with`` block and propose them together at its end. An error discards them."""
        return AsyncDraft(self._target.draft(reason=reason, session=session), self._threads)

    erase = async_method(Memory.erase)
    proposed_steps = async_method(Memory.proposed_steps)
    restore_journal = async_method(Memory.restore_journal)

    async def journal(self, *, after: int = 0) -> AsyncIterator[tuple[Commit, list[Event]]]:
        """Yield the tenant's commits with their events as stored, oldest first."""

        def read_batch(behind: int) -> list[tuple[Commit, list[Event]]]:
            # A read connection belongs to its thread, so each call reads its batch completely.
            return list(islice(self._target.journal(after=behind), _COMMITS_PER_READ))

        while batch := await self._threads.run(read_batch, after):
            for commit_with_events in batch:
                yield commit_with_events
            after = batch[-1][0].seq
            if len(batch) < _COMMITS_PER_READ:
                return

    owner_token = async_method(Memory.owner_token)
    backup = async_method(Memory.backup)
    move_store = async_method(Memory.move_store)
    tools = async_method(Memory.tools)
    call_tool = async_method(Memory.call_tool)
