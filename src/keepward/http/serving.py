"""Serving: what all requests to one server share.

Invariants
(1) There is one store and one owner's handle on it; a request never uses that handle, but the one of its own
    credential.
(2) A handle is remembered by the SHA-256 of its token and asks the store anew, at each use, whether the token holds.
(3) Time and randomness come in here, once.
(4) Servers of one database answer alike: what is remembered between requests is in the database. What is this server's
    own is how much it does at a time: streams, imports, and the handles that it has at hand.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from itertools import islice
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool

from keepward.errors import KeepwardError, StoreUnavailable
from keepward.http.credentials import Sessions
from keepward.http.options import ServerOptions
from keepward.http.state import Answers, LocalState, Rates, Shares, State
from keepward.http.telemetry import Meters, Spans, meters, spans
from keepward.memory import Memory, bearer_of, shared_state
from keepward.model.state import Kind
from keepward.model.trust import hash_of

P = ParamSpec("P")
R = TypeVar("R")

#: Imports that are held in memory at a time, each of them up to the limit of its body.
IMPORTS = 4
#: Commits that are looked through for an erasure before an answer is given again.
LOOK_BACK = 5_000
#: Drafts: changes that are collected and not yet judged.
_HANDLES = Kind(name="handle", of=Memory, seconds=24 * 3600, renewed=True, most=1024)


@dataclass(slots=True, kw_only=True, eq=False)
class Serving:
    """The store, the options, and what is remembered of callers."""

    memory: Memory
    options: ServerOptions
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[int], bytes] = secrets.token_bytes
    #: Set when the server begins to stop: streams end.
    stopping: threading.Event = field(default_factory=threading.Event)
    #: A place for each import that may be held.
    imports: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(IMPORTS))
    #: Streams of events that are open.
    streams: int = 0
    #: Where the server's state is instead of where the store's is: its database, or this process's memory.
    shared: InitVar[State | None] = None
    #: What the servers of the store's database share; None for the one server of a file.
    shares: Shares | None = field(init=False)
    state: State = field(init=False)
    sessions: Sessions = field(init=False)
    rates: Rates = field(init=False)
    answers: Answers = field(init=False)
    #: None where prometheus_client, or opentelemetry-api, is not installed.
    meters: Meters | None = field(init=False, default_factory=meters)
    spans: Spans | None = field(init=False, default_factory=spans)
    _handles: LocalState = field(init=False)
    _owner: Memory | None = field(init=False, default=None)

    def __post_init__(self, shared: State | None) -> None:
        self.shares = shared_state(self.memory, self.monotonic)
        self.state = shared or self.shares or LocalState(self.monotonic)
        # Handles are this process's own, whatever the rest is shared through.
        self._handles = LocalState(self.monotonic)
        self.sessions = Sessions(self.state, self.random)
        self.rates = Rates(self.options.writes_per_minute, self.state)
        self.answers = Answers(self.state)

    @property
    def cookie(self) -> str:
        """Name of the session's cookie; servers of other stores, or of files on other ports, have another."""
        prefix = "__Host-" if self.options.secure else ""
        return f"{prefix}keepward-{self.shares.name if self.shares else self.options.port}"

    async def reach(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what asks the state; in a thread where that waits for a database."""
        if self.shares is None:
            return function(*args, **kwargs)
        return await run_in_threadpool(function, *args, **kwargs)

    def known(self, token: str) -> Memory | None:
        """Return the handle of a token that was seen before; reads nothing."""
        handle: Memory | None = self._handles.change(_HANDLES, hash_of(token).hex(), lambda handle: handle)
        return handle

    def holding(self, token: str) -> Memory:
        """Return the handle of a token.

        Raises:
            Unauthorised: it does not open this store.
        """
        handle = self.known(token)
        if handle is None:
            handle = self.memory.holding(token)
            self._handles.change(_HANDLES, hash_of(token).hex(), lambda _: handle)
        return handle

    def owner(self, credential: str | None = None) -> Memory:
        """Return a handle with the owner's token, for a session; without one where there is no place to keep it.

        The token is read anew unless the handle in use has this ``credential``; the session may have been opened at
        another server, with the token that lies there.

        Raises:
            Unauthorised: the server's own handle is not an owner's.
        """
        if self._owner is None or credential is None or self._owner.actor.credential != credential:
            try:
                token = self.memory.owner_token().read_text("ascii").strip()
            except (StoreUnavailable, OSError):
                return self.memory
            self._owner = self.memory.holding(token)
            if self.shares is not None and credential not in {None, self._owner.actor.credential}:
                return bearer_of(self.memory, str(credential))
        return self._owner

    def forget(self) -> None:
        """Forget what may hold text that was erased: answers and drafts."""
        from keepward.http.drafts import DRAFT

        self.answers.clear()
        self.state.clear(DRAFT)

    def console_link(self) -> str:
        """Return a link that opens the page once, within ten minutes."""
        return f"{self.options.url}/#code={self.sessions.issue()}"

    def newest(self, tenant: str) -> int:
        """Return the number of a tenant's newest commit."""
        log = self.memory.at(tenant=tenant).log(limit=1)
        return log[0].commit.seq if log else 0

    def erased_since(self, tenant: str, seq: int) -> bool:
        """Whether anything was erased after a commit, by whomever; also when that cannot be said."""
        try:
            later = self.memory.at(tenant=tenant).journal(after=seq)
            kinds = [commit.kind for commit, _ in islice(later, LOOK_BACK)]
        except KeepwardError:
            return True
        return "erase" in kinds or len(kinds) == LOOK_BACK
