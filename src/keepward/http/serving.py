"""Serving: what the person who starts a server chooses, and what all requests to it share.

Invariants
(1) The defaults are the protected ones: loopback, closed reads, no other host name, no foreign origin. What cannot be
    served safely is refused by ``checked`` before anything is bound.
(2) There is one store and one owner's handle on it; a request never uses that handle, but the one of its own
    credential.
(3) A handle is remembered by the SHA-256 of its token and asks the store anew, at each use, whether the token holds.
(4) Time and randomness come in here, once.
(5) Servers of one database answer alike: what is remembered between requests is in the database. What is this server's
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

from keepward.config import ServerSettings
from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable
from keepward.http.credentials import Sessions
from keepward.http.state import Answers, LocalState, Rates, Shares, State
from keepward.http.telemetry import Meters, Spans, meters, spans
from keepward.memory import Memory, bearer_of, shared_state
from keepward.model.state import Kind
from keepward.model.trust import hash_of
from keepward.model.value import is_loopback

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  to be refused without TLS, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions(ServerSettings):
    """What the settings say of a server, and what is chosen for one run of it."""

    #: Whether the four plain reads need no token; on loopback alone.
    open_reads: bool = False
    #: Whether the log holds warnings and errors alone.
    quiet: bool = False

    @property
    def secure(self) -> bool:
        """Whether browsers see this server behind TLS."""
        return self.behind_proxy or self.tls_cert is not None

    @property
    def scheme(self) -> str:
        """``https`` or ``http``, as browsers see it."""
        return "https" if self.secure else "http"

    @property
    def shown_host(self) -> str:
        """A name under which this machine reaches the server."""
        host = "127.0.0.1" if self.host in _EVERYWHERE else self.host
        return f"[{host}]" if ":" in host else host

    @property
    def url(self) -> str:
        """The address of the page, without a slash at its end: the first allowed name behind TLS, else this machine."""
        name = self.allow_hosts[0] if self.secure and self.allow_hosts else self.shown_host
        if self.behind_proxy or has_port(name):
            return f"{self.scheme}://{name}" if self.allow_hosts else f"http://{name}:{self.port}"
        return f"{self.scheme}://{name}:{self.port}"

    def checked(self) -> ServerOptions:
        """Return these options, if they can be served safely; see (1).

        Raises:
            InvalidInput: they cannot; the message says what to add.
        """
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInput("--tls-cert and --tls-key go together")
        local = is_loopback(self.host)
        if not local and not self.secure:
            raise InvalidInput(
                "only loopback is served without TLS: give --tls-cert and --tls-key, or --behind-proxy where a "
                "proxy that speaks TLS stands in front"
            )
        if self.open_reads and (not local or self.behind_proxy):
            raise InvalidInput("--open-reads is for loopback alone: leave out --host and --behind-proxy")
        if not 0 <= self.port <= 65_535:
            raise InvalidInput("a port is 0 to 65535; 0 takes a free one")
        if min(self.writes_per_minute, self.body_limit, self.blob_limit, self.import_limit) < 0:
            raise InvalidInput("limits of a server are not negative")
        return self


def has_port(name: str) -> bool:
    """Whether the name of a host has a port at its end."""
    return ":" in name.rpartition("]")[2]


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
