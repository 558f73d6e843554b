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
(6) A principal has one allowance for all its calls; it fills up evenly, to the whole of a minute at most. A call that
    was refused because of erased text counts as all its texts, up to what an hour allows.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from keepward import deadline, guesses
from keepward.core.principals import hash_token
from keepward.core.value import is_loopback
from keepward.errors import InvalidInput, StoreUnavailable
from keepward.http.auth import LoginSessions
from keepward.http.requests import Problem
from keepward.http.slots import Slots, Work
from keepward.http.telemetry import Metrics, Tracer, create_metrics, create_tracer
from keepward.memory import Memory, from_token_id, server_state_of
from keepward.services.request_context import actor_key
from keepward.settings import ServerSettings, Settings
from keepward.storage.server_state import EntryKind, ServerState, SharedState

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ALL_INTERFACES = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  to be refused without TLS, not bound


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
    def host_in_addresses(self) -> str:
        """A name under which this machine reaches the server."""
        host = "127.0.0.1" if self.host in _ALL_INTERFACES else self.host
        return f"[{host}]" if ":" in host else host

    @property
    def url(self) -> str:
        """The address of the page, without a slash at its end: the first allowed name behind TLS, else this machine."""
        name = self.allow_hosts[0] if self.secure and self.allow_hosts else self.host_in_addresses
        if self.behind_proxy or has_port(name):
            return f"{self.scheme}://{name}" if self.allow_hosts else f"http://{name}:{self.port}"
        return f"{self.scheme}://{name}:{self.port}"

    def checked(self) -> ServerOptions:
        """Return these options, if they can be served safely; see (1)."""
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

#: Seconds that a call which only reads may take, of any token but an owner's.
READ_TIMEOUT_S = 30.0
#: Where a request has what is released when it ends.
RELEASE_STACK_KEY = "keepward.released"
#: Handles of tokens that are at hand; all are let go of beyond that.
MAX_CACHED_HANDLES = 1024


class RateLimiter:
    """The allowances of all principals; ``per_minute`` 0 is no limit."""

    #: What is left, less than nothing after guesses, and when that was so; after an hour of rest it is all there again.
    KIND = EntryKind(name="rate", of=tuple[float, ...], ttl_s=3600, renewed=True, max_entries=1)

    def __init__(self, per_minute: int, state: ServerState) -> None:
        self._per_minute, self._state = per_minute, state

    def take(self, principal: str) -> float:
        """Count one change; return 0, or the seconds to wait when it is one too many and was not counted."""
        if not self._per_minute:
            return 0.0
        refill, wait = self._per_minute / 60, 0.0

        def taken(left: float) -> float:
            nonlocal wait
            # Rounding must not cost the last one of a minute.
            wait = 0.0 if left >= 1 - 1e-9 else (1 - left) / refill
            return left if wait else left - 1

        self._change(principal, taken)
        return wait

    def charge(self, principal: str, changes: int) -> None:
        """Count changes that were made already; the wait for them is an hour at most."""
        if self._per_minute and changes > 0:
            self._change(principal, lambda left: max(left - changes, -59.0 * self._per_minute))

    def _change(self, principal: str, new: Callable[[float], float]) -> None:
        whole, now = float(self._per_minute), self._state.now()

        def changed(before: tuple[float, float] | None) -> tuple[float, float]:
            left, at = before or (whole, now)
            return (new(min(whole, left + (now - at) * whole / 60)), now)

        self._state.change(self.KIND, "", changed, owner=principal)


@dataclass(slots=True, kw_only=True, eq=False)
class AppState:
    """The store, the options, and what is remembered of callers."""

    memory: Memory
    options: ServerOptions
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[int], bytes] = secrets.token_bytes
    #: Set when the server begins to stop: streams end.
    stopping: threading.Event = field(default_factory=threading.Event)
    #: How much each token does at this moment.
    slots: Slots = field(default_factory=Slots)
    #: Where the server's state is instead of where the store's is: its database, or this process's memory.
    shared: InitVar[ServerState | None] = None
    #: What the server was started with; None for one that a program has made of a memory alone.
    settings: Settings | None = None
    #: What the servers of the store's database share; None for the one server of a file.
    shares: SharedState | None = field(init=False)
    state: ServerState = field(init=False)
    sessions: LoginSessions = field(init=False)
    rates: RateLimiter = field(init=False)
    #: By id of a token, when this server last let it in, in seconds of ``monotonic``.
    used: dict[str, float] = field(init=False, default_factory=dict)
    #: None where prometheus_client, or opentelemetry-api, is not installed.
    meters: Metrics | None = field(init=False, default_factory=create_metrics)
    spans: Tracer | None = field(init=False, default_factory=create_tracer)
    #: By the SHA-256 of its token.
    _handles: dict[bytes, Memory] = field(init=False, default_factory=dict)
    _owner: Memory | None = field(init=False, default=None)

    def __post_init__(self, shared: ServerState | None) -> None:
        self.shares = server_state_of(self.memory, self.monotonic)
        self.state = shared or self.shares or ServerState(self.monotonic)
        self.sessions = LoginSessions(self.state, self.random)
        self.rates = RateLimiter(self.options.writes_per_minute, self.state)

    @property
    def cookie(self) -> str:
        """Name of the session's cookie; servers of other stores, or of files on other ports, have another."""
        prefix = "__Host-" if self.options.secure else ""
        return f"{prefix}keepward-{self.shares.name if self.shares else self.options.port}"

    async def admit(self, scope: Scope, handle: Memory, work: Work) -> None:
        """Take a slot for a request; it is released when the request ends.

        Raises:
            Problem: 429, the token has no slot left.
        """
        released = await self.slots.take(work, actor_key(handle.actor), owner=handle.actor.is_owner)
        scope[RELEASE_STACK_KEY].callback(released)

    @contextmanager
    def call_limits(self, handle: Memory, *, reads: bool) -> Iterator[None]:
        """Limit the time of a call that only reads, and charge any other for its guesses, unless an owner makes it.

        Raises:
            deadline.Passed: it took too long.
        """
        if handle.actor.is_owner:
            yield
        elif reads:
            with deadline.time_limit(READ_TIMEOUT_S, self.monotonic):
                yield
        else:
            with guesses.count_guesses() as texts:
                try:
                    yield
                finally:
                    # The call itself was counted when it came.
                    self.rates.charge(actor_key(handle.actor), texts() - 1)

    @contextmanager
    def http_limits(self, handle: Memory, *, reads: bool) -> Iterator[None]:
        """Do as ``bounded`` for a call over HTTP.

        Raises:
            Problem: 503, it took too long.
        """
        try:
            with self.call_limits(handle, reads=reads):
                yield
        except deadline.DeadlineExceeded as exc:
            raise Problem(503, "took_too_long", str(exc), headers={"Retry-After": "60"}) from None

    async def call_state(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what asks the state; in a thread where that waits for a database."""
        if self.shares is None:
            return function(*args, **kwargs)
        return await run_in_threadpool(function, *args, **kwargs)

    def cached_handle(self, token: str) -> Memory | None:
        """Return the handle of a token that was seen before; reads nothing."""
        return self._handles.get(hash_token(token))

    def handle_of_token(self, token: str) -> Memory:
        """Return the handle of a token; ``Unauthorised`` where it does not open this store."""
        handle = self.cached_handle(token)
        if handle is None:
            handle = self.memory.with_token(token)
            if len(self._handles) >= MAX_CACHED_HANDLES:
                self._handles.clear()
            self._handles[hash_token(token)] = handle
        return handle

    def owner(self, credential: str | None = None) -> Memory:
        """Return a handle with the owner's token, for a session; without one where there is no place to keep it.

        The token is read anew unless the handle in use has this ``credential``; the session may have been opened at
        another server, with the token that lies there.
        """
        if self._owner is None or credential is None or self._owner.actor.credential != credential:
            try:
                token = self.memory.owner_token().read_text("ascii").strip()
            except (StoreUnavailable, OSError):
                return self.memory
            self._owner = self.memory.with_token(token)
            if self.shares is not None and credential not in {None, self._owner.actor.credential}:
                return from_token_id(self.memory, str(credential))
        return self._owner

    def bearer(self, credential: str | None) -> Memory:
        """Return the handle of a session: the owner's, or that of a reviewer's token by its id."""
        if credential is None:
            return self.memory
        owner = self.owner(credential)
        return owner if owner.actor.credential == credential else from_token_id(self.memory, credential)

    def console_link(self, credential: str = "") -> str:
        """Return a link that opens the console once, within ten minutes, as the owner or by a reviewer's token."""
        return f"{self.options.url}/#code={self.sessions.issue(credential)}"

    def newest(self, tenant: str) -> int:
        """Return the number of a tenant's newest commit."""
        log = self.memory.at(tenant=tenant).log(limit=1)
        return log[0].commit.seq if log else 0
