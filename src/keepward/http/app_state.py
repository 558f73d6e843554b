"""The options of a server, and the state that its requests share.

* The defaults are safe: loopback, reads with a token, no other host name, no foreign origin. ``checked`` refuses
  unsafe options before anything is bound.
* There is one store and one owner's handle on it. A request uses only the handle of its own credential.
* Handles are cached by the SHA-256 of their token. Each use checks in the store that the token is valid.
* The clock and the random source come from here.
* Servers of one database share rate limits, login sessions and codes through it. Slots and cached handles belong to
  one server.
* An actor has one rate limit for all its requests. It refills evenly, up to one minute's changes. A write that was
  refused because of erased text counts as all its texts, up to one hour's changes.
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
from keepward.http.login_sessions import LoginSessions
from keepward.http.requests import Problem
from keepward.http.slots import Slots, Work
from keepward.http.telemetry import Metrics, Tracer, create_metrics, create_tracer
from keepward.memory import Memory, from_token_id, server_state_of
from keepward.services.read_taint import actor_key
from keepward.settings import ServerSettings, Settings
from keepward.storage.server_state import EntryKind, ServerState, SharedState

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: Most processes of one server.
MAX_WORKERS = 64
_ALL_INTERFACES = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  refused without TLS


class ServerOptions(ServerSettings):
    """The settings of a server, and the options of one run."""

    #: Whether the four simple reads need no token; on loopback only.
    open_reads: bool = False
    #: Whether the log contains only warnings and errors.
    quiet: bool = False

    @property
    def secure(self) -> bool:
        """Whether browsers reach this server over TLS."""
        return self.behind_proxy or self.tls_cert is not None

    @property
    def scheme(self) -> str:
        """``https`` or ``http``, as seen by browsers."""
        return "https" if self.secure else "http"

    @property
    def host_in_addresses(self) -> str:
        """The host name for addresses of this server on this machine."""
        host = "127.0.0.1" if self.host in _ALL_INTERFACES else self.host
        return f"[{host}]" if ":" in host else host

    @property
    def url(self) -> str:
        """The address of the console without a trailing slash: the first allowed host behind TLS, else this machine."""
        name = self.allow_hosts[0] if self.secure and self.allow_hosts else self.host_in_addresses
        if self.behind_proxy or has_port(name):
            return f"{self.scheme}://{name}" if self.allow_hosts else f"http://{name}:{self.port}"
        return f"{self.scheme}://{name}:{self.port}"

    def checked(self) -> ServerOptions:
        """Return these options if they are safe; else raise InvalidInput."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidInput("--tls-cert and --tls-key go together")
        local = is_loopback(self.host)
        if not local and not self.secure:
            raise InvalidInput(
                "serving other machines needs TLS: give --tls-cert and --tls-key, or --behind-proxy if a "
                "proxy with TLS is in front"
            )
        if self.open_reads and (not local or self.behind_proxy):
            raise InvalidInput("--open-reads works only on loopback: leave out --host and --behind-proxy")
        if not 0 <= self.port <= 65_535:
            raise InvalidInput("a port is 0 to 65535; 0 selects a free one")
        if not 1 <= self.workers <= MAX_WORKERS:
            raise InvalidInput(f"workers are 1 to {MAX_WORKERS}; one for each processor is enough")
        if min(self.writes_per_minute, self.body_limit, self.blob_limit, self.import_limit) < 0:
            raise InvalidInput("limits of a server must not be negative")
        return self


def has_port(name: str) -> bool:
    """Whether a host name ends with a port."""
    return ":" in name.rpartition("]")[2]


P = ParamSpec("P")
R = TypeVar("R")

#: Maximum seconds of a read by any token except an owner's.
READ_TIMEOUT_S = 30.0
#: Key in the scope of a request: callbacks that release its resources.
RELEASE_STACK_KEY = "keepward.released"
#: Maximum number of cached handles; beyond it the cache is cleared.
MAX_CACHED_HANDLES = 1024


class RateLimiter:
    """The rate limits of all actors; ``per_minute`` 0 means no limit."""

    #: The remaining changes, negative after charges, and the time of that count; complete again after an hour.
    KIND = EntryKind(name="rate", of=tuple[float, ...], ttl_s=3600, renewed=True, max_entries=1)

    def __init__(self, per_minute: int, state: ServerState) -> None:
        self._per_minute, self._state = per_minute, state

    def take(self, principal: str) -> float:
        """Count one change. Return 0, or the seconds to wait if the limit is reached and the change was not counted."""
        if not self._per_minute:
            return 0.0
        refill, wait = self._per_minute / 60, 0.0

        def taken(left: float) -> float:
            nonlocal wait
            # Tolerate rounding, so that the last change of a minute is allowed.
            wait = 0.0 if left >= 1 - 1e-9 else (1 - left) / refill
            return left if wait else left - 1

        self._change(principal, taken)
        return wait

    def charge(self, principal: str, changes: int) -> None:
        """Count changes that were made already; the resulting wait is at most an hour."""
        if self._per_minute and changes > 0:
            self._change(principal, lambda left: max(left - changes, -59.0 * self._per_minute))

    def _change(self, principal: str, new: Callable[[float], float]) -> None:
        maximum, now = float(self._per_minute), self._state.now()

        def changed(before: tuple[float, float] | None) -> tuple[float, float]:
            left, at = before or (maximum, now)
            return (new(min(maximum, left + (now - at) * maximum / 60)), now)

        self._state.change(self.KIND, "", changed, owner=principal)


@dataclass(slots=True, kw_only=True, eq=False)
class AppState:
    """The store, the options, and the state of callers."""

    memory: Memory
    options: ServerOptions
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[int], bytes] = secrets.token_bytes
    #: Set when the server begins to stop; streams end then.
    stopping: threading.Event = field(default_factory=threading.Event)
    #: The slots in use by token.
    slots: Slots = field(default_factory=Slots)
    #: Replaces the default server state (the store's database, or the memory of this process).
    shared: InitVar[ServerState | None] = None
    #: The settings of the server; None if a program created it from a memory.
    settings: Settings | None = None
    #: The state shared by the servers of a database; None for a file.
    shares: SharedState | None = field(init=False)
    state: ServerState = field(init=False)
    sessions: LoginSessions = field(init=False)
    rates: RateLimiter = field(init=False)
    #: Last use of each token at this server by id, in seconds of ``monotonic``.
    used: dict[str, float] = field(init=False, default_factory=dict)
    #: None if prometheus_client, or opentelemetry-api, is not installed.
    meters: Metrics | None = field(init=False, default_factory=create_metrics)
    spans: Tracer | None = field(init=False, default_factory=create_tracer)
    #: By the SHA-256 of the token.
    _handles: dict[bytes, Memory] = field(init=False, default_factory=dict)
    _owner: Memory | None = field(init=False, default=None)

    def __post_init__(self, shared: ServerState | None) -> None:
        self.shares = server_state_of(self.memory, self.monotonic)
        self.state = shared or self.shares or ServerState(self.monotonic)
        self.sessions = LoginSessions(self.state, self.random)
        self.rates = RateLimiter(self.options.writes_per_minute, self.state)

    @property
    def is_one_of_many(self) -> bool:
        """Whether other processes answer requests of the same store."""
        return self.shares is not None or self.options.workers > 1

    @property
    def cookie(self) -> str:
        """Name of the session cookie; it differs between stores, and for files between ports."""
        prefix = "__Host-" if self.options.secure else ""
        return f"{prefix}keepward-{self.shares.name if self.shares else self.options.port}"

    async def admit(self, scope: Scope, handle: Memory, work: Work) -> None:
        """Acquire a slot for a request; it is released when the request ends.

        Raises:
            Problem: 429, the token has no free slot.
        """
        released = await self.slots.acquire(work, actor_key(handle.actor), owner=handle.actor.is_owner)
        scope[RELEASE_STACK_KEY].callback(released)

    @contextmanager
    def call_limits(self, handle: Memory, *, reads: bool) -> Iterator[None]:
        """Limit the time of a read, and charge a write for its refused texts. Owners have no limits.

        Raises:
            deadline.DeadlineExceeded: it took too long.
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
                    # The request itself has been counted already.
                    self.rates.charge(actor_key(handle.actor), texts() - 1)

    @contextmanager
    def http_limits(self, handle: Memory, *, reads: bool) -> Iterator[None]:
        """Apply ``call_limits`` to an HTTP request.

        Raises:
            Problem: 503, it took too long.
        """
        try:
            with self.call_limits(handle, reads=reads):
                yield
        except deadline.DeadlineExceeded as exc:
            raise Problem(503, "took_too_long", str(exc), headers={"Retry-After": "60"}) from None

    async def call_state(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function that reads the state; in a thread if it waits for a database."""
        if not self.is_one_of_many:
            return function(*args, **kwargs)
        return await run_in_threadpool(function, *args, **kwargs)

    def cached_handle(self, token: str) -> Memory | None:
        """Return the cached handle of a token without reading the store."""
        return self._handles.get(hash_token(token))

    def handle_of_token(self, token: str) -> Memory:
        """Return the handle of a token; raise ``Unauthorised`` if it does not open this store."""
        handle = self.cached_handle(token)
        if handle is None:
            handle = self.memory.with_token(token)
            if len(self._handles) >= MAX_CACHED_HANDLES:
                self._handles.clear()
            self._handles[hash_token(token)] = handle
        return handle

    def owner_handle(self, credential: str | None = None) -> Memory:
        """Return a handle with the owner's token for a login session; without a token if none can be stored.

        If the cached handle has another ``credential``, the token is read again: another server may have created it.
        """
        if self._owner is None or credential is None or self._owner.actor.credential != credential:
            try:
                token = self.memory.owner_token().read_text("ascii").strip()
            except (StoreUnavailable, OSError):
                return self.memory
            self._owner = self.memory.with_token(token)
            if self.is_one_of_many and credential not in {None, self._owner.actor.credential}:
                return from_token_id(self.memory, str(credential))
        return self._owner

    def session_handle(self, credential: str | None) -> Memory:
        """Return the handle of a login session: the owner's, or that of a reviewer's token by its id."""
        if credential is None:
            return self.memory
        owner = self.owner_handle(credential)
        return owner if owner.actor.credential == credential else from_token_id(self.memory, credential)

    def console_link(self, credential: str = "") -> str:
        """Return a link that opens the console once, within ten minutes, as the owner or a reviewer."""
        return f"{self.options.url}/#code={self.sessions.issue(credential)}"

    def newest_seq(self, tenant: str) -> int:
        """Return the number of the newest commit of a tenant."""
        newest = self.memory.at(tenant=tenant).log(limit=1)
        return max((*(view.commit.seq for view in newest), *(each.seq for each in newest.damaged)), default=0)
