"""Transport: one call to a server, with what has to happen before and after it.

Invariants
(1) A token leaves this machine over TLS alone, unless the caller says that another way is safe.
(2) After a lost answer a call is sent again only if it changes nothing, or has a key under which the server commits it
    once: nothing is carried out twice.
(3) A server that cannot be reached, and one that asks for patience beyond the timeout, is ``StoreUnavailable``; any
    other problem is the error that the library raises, with the server's sentence.
(4) The environment is not read: no proxy, no token and no certificate comes from there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from keepward.core.principals import parse_scope, parse_tenant
from keepward.core.results import UNREADABLE_ANSWER, error_of
from keepward.core.value import is_loopback
from keepward.errors import InvalidInput, StoreError, StoreUnavailable
from keepward.handles import NAMED_HANDLE_HEADERS, NAMES_HEADER

if TYPE_CHECKING:
    import httpx2

#: Answers after which the same call may do better a little later.
_RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})
#: Seconds before the first repetition; each further one waits twice as long.
RETRY_DELAY_S = 0.1
_PROBLEM = "application/problem+json"
_INSECURE = (
    "a token would travel in the clear: use https, reach the server through loopback, or say allow_insecure=True "
    "where the way there is safe"
)


def reading() -> Any:
    try:
        import httpx2
    except ImportError as fault:
        raise InvalidInput("the client needs the `client` extra: pip install 'keepward[client]'") from fault
    return httpx2


class Transport:
    """A server, and how to speak to it; one may be used by many threads."""

    #: Where calls are about; the token's own where they are None.
    tenant: str | None = None
    scope: str | None = None
    #: Headers that name a user, an agent and a project.
    people: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        timeout: float,
        retries: int,
        transport: Any = None,
        allow_insecure: bool = False,
    ) -> None:
        """Prepare the way to a server; nothing is sent yet. What is given is as for ``Client``."""
        self.url, self.token = _validated_url(url, token, allow_insecure=allow_insecure), token
        if not timeout > 0:
            raise InvalidInput("a timeout is more than 0 seconds")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InvalidInput("retries are a whole number, 0 or more")
        self.timeout, self.retries = timeout, retries
        self.sleep: Callable[[float], None] = time.sleep
        self.clock: Callable[[], float] = time.monotonic
        library = reading()
        #: Whether ``close`` closes the connections as well.
        self.owned = not isinstance(transport, library.Client)
        self.http: httpx2.Client = (
            library.Client(transport=transport, trust_env=False, timeout=timeout) if self.owned else transport
        )

    def at(self, tenant: str | None, scope: str | None) -> Transport:
        """Return the same way to another tenant or scope; None leaves one as it is."""
        moved = copy(self)
        moved.tenant = self.tenant if tenant is None else parse_tenant(tenant)
        moved.scope = self.scope if scope is None else parse_scope(scope)
        moved.people = self.people if scope is None else {}
        return moved

    def of(self, *, user: str | None, agent: str | None, project: str | None, names: Sequence[str]) -> Transport:
        """Return the same way to a user, an agent or a project."""
        moved = copy(self)
        given = {"user": user, "agent": agent, "project": project}
        named = {NAMED_HANDLE_HEADERS[kind]: name for kind, name in given.items() if name is not None}
        if user is not None:
            named[NAMES_HEADER] = ",".join(map(quote, names))
        moved.people = {**self.people, **named}
        return moved

    def close(self) -> None:
        """Close the connections, where they are this transport's own."""
        if self.owned:
            self.http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Iterable[tuple[str, Any]] = (),
        body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        once: bool = False,
    ) -> httpx2.Response:
        """Send one call and return the answer, which holds a value: a refusal by a gate is one.

        ``query`` leaves out what is None or empty. ``content`` is a raw body in place of JSON. ``once`` is for what
        would be carried out twice if it were sent twice.
        """
        sent = self._headers(headers)
        if body is not None:
            content = _encoded(body)
            sent["Content-Type"] = "application/json"
        if method == "POST" and not once:
            sent.setdefault("Idempotency-Key", os.urandom(16).hex())
        once = once or not (method == "GET" or "Idempotency-Key" in sent)
        address = self.url + path + _query(query)
        for attempt in range(self.retries + 1):
            pause, last = RETRY_DELAY_S * 2**attempt, attempt == self.retries
            try:
                # Redirects are not followed: they could carry the token elsewhere.
                answer = self.http.request(method, address, content=content, headers=sent, follow_redirects=False)
            except Exception as fault:  # noqa: BLE001  told apart below
                self._raise_unless_retryable(fault, last=once or last)
            else:
                wait = _retry_delay_s(answer, pause)
                # Where the rate was too high nothing was carried out.
                if wait is None or last or wait > self.timeout or (once and answer.status_code != 429):
                    return raise_for_problem(answer)
                pause = wait
            self.sleep(pause)
        raise AssertionError("unreachable")

    def get(self, path: str, query: Iterable[tuple[str, Any]] = (), *, once: bool = False) -> ResponseBody:
        return response_body(self.call("GET", path, query=query, once=once))

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> ResponseBody:
        """Send an object and return the one that is answered."""
        return response_body(self.call("POST", path, body=body, headers=headers))

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Iterable[tuple[str, Any]] = (),
        content: Any = None,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> Iterator[httpx2.Response]:
        """Send one call and lend its answer unread; it is never sent again.

        ``silence`` is how many seconds may pass without a byte, in place of the timeout.
        """
        sent = self._headers(headers)
        sending: dict[str, Any] = {"content": content, "headers": sent, "follow_redirects": False}
        if silence is not None:
            sending["timeout"] = reading().Timeout(self.timeout, read=silence)
        address = self.url + path + _query(query)
        try:
            with self.http.stream(method, address, **sending) as answer:
                if answer.status_code >= 300:
                    answer.read()
                    raise_for_problem(answer)
                yield answer
        except Exception as fault:  # noqa: BLE001  told apart below
            self._raise_unless_retryable(fault, last=True)

    def _headers(self, args: Mapping[str, str] | None) -> dict[str, str]:
        where = {"Keepward-Tenant": self.tenant, "Keepward-Scope": self.scope, **self.people}
        sent = {
            "Accept": "application/json",
            **{name: value for name, value in where.items() if value},
            **(args or {}),
        }
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        return sent

    def _raise_unless_retryable(self, exc: Exception, *, last: bool) -> None:
        """Pass over what may be tried again, and raise anything else in our words."""
        library = reading()
        if not isinstance(exc, library.HTTPError):
            if isinstance(exc, RuntimeError) and self.http.is_closed:
                raise InvalidInput("the client is closed; make another") from exc
            raise exc
        if not isinstance(exc, library.TransportError):
            raise StoreError("the server's answer cannot be read: it is damaged") from exc
        if not last:
            return
        if isinstance(exc, library.TimeoutException):
            raise StoreUnavailable(f"the server at {self.url} did not answer in time; try again") from exc
        if isinstance(exc, library.ConnectError):
            raise StoreUnavailable(f"no server answers at {self.url}; start one with `keepward serve`") from exc
        raise StoreUnavailable(f"the connection to {self.url} broke off; try again") from exc


class ResponseBody(dict[str, Any]):
    """An object that a server sent; asking it for what is not there says that it is no answer of ours."""

    def __missing__(self, name: str) -> Any:
        raise StoreError(UNREADABLE_ANSWER)


def response_body(response: httpx2.Response) -> ResponseBody:
    """Return the object that a server sent, an empty one where it sent nothing."""
    if not response.content:
        return ResponseBody()
    try:
        found = response.json()
    except ValueError as fault:
        raise StoreError(UNREADABLE_ANSWER) from fault
    if not isinstance(found, dict):
        raise StoreError(UNREADABLE_ANSWER)
    return ResponseBody(found)


def raise_for_problem(answer: httpx2.Response) -> httpx2.Response:
    """Return an answer that holds something.

    Raises:
        KeepwardError: it is a problem, or no answer of a Keepward server at all.
    """
    if answer.status_code < 300:
        return answer
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        problem: Any = answer.json() if kind == _PROBLEM else None
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        raise error_of(None, f"the server answered {answer.status_code} and not as Keepward does", answer.status_code)
    if problem.get("outcome") == "refused" or "applied" in problem:
        # What was asked for did not happen, and why is a value: a gate's verdict, or what stands in a rollback's way.
        return answer
    raise error_of(problem.get("code"), problem.get("detail"), answer.status_code)


def _validated_url(url: str, token: str | None, *, allow_insecure: bool) -> str:
    """Return the address without a slash at its end; see (1)."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except (ValueError, AttributeError, TypeError) as fault:
        raise InvalidInput("a server's address looks like http://127.0.0.1:8321") from fault
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise InvalidInput("a server's address looks like http://127.0.0.1:8321")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("an address holds no credential: give the token as `token`")
    if token is not None:
        if not (isinstance(token, str) and token.isascii() and token.isprintable() and token and " " not in token):
            raise InvalidInput("that is no token; `keepward token create` makes one")
        if parts.scheme == "http" and not allow_insecure and not is_loopback(host):
            raise InvalidInput(_INSECURE)
    return url.rstrip("/")


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as fault:
        raise InvalidInput("text holds a lone surrogate; send well-formed Unicode") from fault
    except (TypeError, ValueError) as fault:
        raise InvalidInput("an argument is not plain JSON: texts, numbers, booleans, lists and objects") from fault


def _query(pairs: Iterable[tuple[str, Any]]) -> str:
    found = []
    for name, value in pairs:
        for each in value if isinstance(value, list | tuple) else (value,):
            if each is None:
                continue
            text = str(each).lower() if isinstance(each, bool) else str(each)
            try:
                found.append(f"{name}={quote(text, safe='')}")
            except UnicodeEncodeError as fault:
                raise InvalidInput("text holds a lone surrogate; send well-formed Unicode") from fault
    return "?" + "&".join(found) if found else ""


def _retry_delay_s(answer: httpx2.Response, pause: float) -> float | None:
    """Return how many seconds to wait before the call is sent again; None where that changes nothing."""
    told = answer.headers.get("retry-after", "").strip()
    if answer.status_code not in _RETRYABLE_STATUSES:
        return None
    if told.isascii() and told.isdigit():
        return max(float(told), pause)
    try:
        # By the server's own clock, since ours may differ.
        until, now = (parsedate_to_datetime(text) for text in (told, answer.headers["date"]))
        return max((until - now).total_seconds(), pause)
    except (KeyError, ValueError, TypeError):
        return pause
