"""Transport: one request to a server, with retries and errors.

* A token is sent only over TLS or loopback, unless the caller sets ``allow_insecure``.
* After a lost response, a request is repeated only if it changes nothing or has an idempotency key. No change is
  applied twice.
* An unreachable server, and one that asks for a wait beyond the timeout, raise ``StoreUnavailable``. Any other problem
  raises the error that the library would raise, with the message of the server.
* The environment is not read: no proxy, token or certificate comes from it.

Late imports: an extra may be missing.
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
from typing import TYPE_CHECKING, Any, TypeVar, overload
from urllib.parse import quote, urlsplit

from keepward.core.json_form import from_json
from keepward.core.principals import parse_branch, parse_scope, parse_tenant
from keepward.core.value import is_loopback
from keepward.errors import InvalidInput, StoreError, StoreUnavailable, error_of
from keepward.handles import NAMED_HANDLE_HEADERS, NAMES_HEADER

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

#: The error of an answer from another server than Keepward, or from another version.
UNREADABLE_ANSWER = "the server's answer cannot be read: it speaks another version, or it is no Keepward server"
#: Statuses after which the request may succeed a little later.
_RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})
#: Seconds before the first repetition; the delay doubles each time.
RETRY_DELAY_S = 0.1
_PROBLEM = "application/problem+json"
_INSECURE = (
    "the token would be sent unencrypted: use https, connect to the server over loopback, or set allow_insecure=True "
    "if the network is safe"
)

_BRANCH = NAMED_HANDLE_HEADERS["branch"]


def http_library() -> Any:
    try:
        import httpx2
    except ImportError as exc:
        raise InvalidInput("the client needs the `client` extra: pip install 'keepward[client]'") from exc
    return httpx2


class Transport:
    """The connection settings of a server. Threads may share it."""

    #: Tenant and scope of requests; None means those of the token.
    tenant: str | None = None
    scope: str | None = None
    #: Headers that name a user, an agent and a project.
    handle_headers: Mapping[str, str] = MappingProxyType({})

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
        """Prepare requests to a server; nothing is sent yet. The arguments are those of ``Client``."""
        self.url, self.token = _validated_url(url, token, allow_insecure=allow_insecure), token
        if not timeout > 0:
            raise InvalidInput("`timeout` is a number of seconds above 0")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InvalidInput("`retries` is an integer, 0 or more")
        self.timeout, self.retries = timeout, retries
        self.sleep: Callable[[float], None] = time.sleep
        self.clock: Callable[[], float] = time.monotonic
        library = http_library()
        #: Whether ``close`` closes the connections.
        self.owned = not isinstance(transport, library.Client)
        self.http: httpx2.Client = (
            library.Client(transport=transport, trust_env=False, timeout=timeout) if self.owned else transport
        )

    def at(self, tenant: str | None, scope: str | None) -> Transport:
        """Return a transport to another tenant or scope; None leaves one unchanged."""
        other = copy(self)
        other.tenant = self.tenant if tenant is None else parse_tenant(tenant)
        other.scope = self.scope if scope is None else parse_scope(scope)
        # It stays on its branch.
        branch = {name: value for name, value in self.handle_headers.items() if name == _BRANCH}
        other.handle_headers = self.handle_headers if scope is None else branch
        return other

    def of(self, *, user: str | None, agent: str | None, project: str | None, names: Sequence[str]) -> Transport:
        """Return a transport to the scope of a user, an agent or a project."""
        other = copy(self)
        given = {"user": user, "agent": agent, "project": project}
        named = {NAMED_HANDLE_HEADERS[kind]: name for kind, name in given.items() if name is not None}
        if user is not None:
            named[NAMES_HEADER] = ",".join(map(quote, names))
        other.handle_headers = {**self.handle_headers, **named}
        return other

    def on(self, branch: str | None) -> Transport:
        """Return a transport to a branch; None: to main."""
        other = copy(self)
        rest = {name: value for name, value in self.handle_headers.items() if name != _BRANCH}
        other.handle_headers = rest if branch is None else {**rest, _BRANCH: parse_branch(branch)}
        return other

    def close(self) -> None:
        """Close the connections, unless the caller provided the client."""
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
        keyed: bool = False,
        repeats: bool | None = None,
    ) -> httpx2.Response:
        """Send one request and return the response. A refusal by a gate is a response, not an error.

        None in ``query`` is left out. ``content`` is a raw body instead of JSON. A request is repeated if it
        ``repeats`` without harm, by default a GET, or is ``keyed``: it has an idempotency key. Any other is repeated
        only if the server answered 429.
        """
        sent = self._headers(headers)
        if body is not None:
            content = _encoded(body)
            sent["Content-Type"] = "application/json"
        if keyed:
            sent["Idempotency-Key"] = os.urandom(16).hex()
        once = not (keyed or (method == "GET" if repeats is None else repeats))
        address = self.url + path + _query(query)
        for attempt in range(self.retries + 1):
            pause, last = RETRY_DELAY_S * 2**attempt, attempt == self.retries
            try:
                # Do not follow redirects: they could send the token to another server.
                answer = self.http.request(method, address, content=content, headers=sent, follow_redirects=False)
            except Exception as exc:  # noqa: BLE001  classified below
                self._raise_unless_retryable(exc, last=once or last)
            else:
                wait = _retry_delay_s(answer, pause)
                # A 429 means that nothing was done.
                if wait is None or last or wait > self.timeout or (once and answer.status_code != 429):
                    return raise_for_problem(answer)
                pause = wait
            self.sleep(pause)
        raise AssertionError("unreachable")

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
        """Send one request and yield its unread response; it is never repeated.

        ``silence`` is the maximum number of seconds without a byte; it replaces the timeout.
        """
        sent = self._headers(headers)
        sending: dict[str, Any] = {"content": content, "headers": sent, "follow_redirects": False}
        if silence is not None:
            sending["timeout"] = http_library().Timeout(self.timeout, read=silence)
        address = self.url + path + _query(query)
        try:
            with self.http.stream(method, address, **sending) as answer:
                if answer.status_code >= 300:
                    answer.read()
                    raise_for_problem(answer)
                yield answer
        except Exception as exc:  # noqa: BLE001  classified below
            self._raise_unless_retryable(exc, last=True)

    def _headers(self, extra: Mapping[str, str] | None) -> dict[str, str]:
        where = {"Keepward-Tenant": self.tenant, "Keepward-Scope": self.scope, **self.handle_headers}
        sent = {
            "Accept": "application/json",
            **{name: value for name, value in where.items() if value},
            **(extra or {}),
        }
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        return sent

    def _raise_unless_retryable(self, exc: Exception, *, last: bool) -> None:
        """Return if the request may be repeated; otherwise raise an error of Keepward."""
        library = http_library()
        if not isinstance(exc, library.HTTPError):
            if isinstance(exc, RuntimeError) and self.http.is_closed:
                raise InvalidInput("the client is closed; create another") from exc
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
    """A JSON object from a server; a missing key raises StoreError."""

    def __missing__(self, name: str) -> Any:
        raise StoreError(UNREADABLE_ANSWER)


@overload
def read_result(kind: type[T], value: Any) -> T: ...
@overload
def read_result(kind: Any, value: Any) -> Any: ...
def read_result(kind: Any, value: Any) -> Any:
    """Return the result of a type from the JSON values of an answer.

    Raises:
        StoreError: the value does not have this type.
    """
    try:
        return from_json(kind, value)
    except (ValueError, TypeError, KeyError, OverflowError) as exc:
        raise StoreError(UNREADABLE_ANSWER) from exc


def response_body(response: httpx2.Response) -> ResponseBody:
    """Return the JSON object of a response; empty without content, and if it is null."""
    if not response.content:
        return ResponseBody()
    try:
        body = response.json()
    except (ValueError, RecursionError) as exc:
        raise StoreError(UNREADABLE_ANSWER) from exc
    if not isinstance(body, dict | None):
        raise StoreError(UNREADABLE_ANSWER)
    return ResponseBody(body or {})


def raise_for_problem(answer: httpx2.Response) -> httpx2.Response:
    """Return a response with a result.

    Raises:
        KeepwardError: it is a problem, or not a response of a Keepward server.
    """
    if answer.status_code < 300:
        return answer
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        problem: Any = answer.json() if kind == _PROBLEM else None
    except (ValueError, RecursionError):
        problem = None
    if not isinstance(problem, dict):
        raise error_of(None, f"the server answered {answer.status_code} and not as Keepward does", answer.status_code)
    if problem.get("outcome") == "refused" or "applied" in problem:
        # The result says why nothing happened: the decision of a gate, or the conflicts of a rollback.
        return answer
    raise error_of(problem.get("code"), problem.get("detail"), answer.status_code)


def _validated_url(url: str, token: str | None, *, allow_insecure: bool) -> str:
    """Return a valid address without a trailing slash."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except (ValueError, AttributeError, TypeError) as exc:
        raise InvalidInput("a server's address looks like http://127.0.0.1:8321") from exc
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise InvalidInput("a server's address looks like http://127.0.0.1:8321")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("the address must not contain a credential: pass the token as `token`")
    if token is not None:
        if not (isinstance(token, str) and token.isascii() and token.isprintable() and token and " " not in token):
            raise InvalidInput("the token is not valid; `keepward token create` creates one")
        if parts.scheme == "http" and not allow_insecure and not is_loopback(host):
            raise InvalidInput(_INSECURE)
    return url.rstrip("/")


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput("text contains a lone surrogate; send well-formed Unicode") from exc
    except (TypeError, ValueError) as exc:
        raise InvalidInput("an argument is not a JSON value: texts, numbers, booleans, lists and objects") from exc


def _query(pairs: Iterable[tuple[str, Any]]) -> str:
    sent = {name: value for name, value in pairs if value is not None}
    try:
        return f"?{http_library().QueryParams(sent)}" if sent else ""
    except UnicodeEncodeError as exc:
        raise InvalidInput("text contains a lone surrogate; send well-formed Unicode") from exc


def _retry_delay_s(answer: httpx2.Response, pause: float) -> float | None:
    """Return the seconds to wait before a repetition; None if that would not help."""
    retry_after = answer.headers.get("retry-after", "").strip()
    if answer.status_code not in _RETRYABLE_STATUSES:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return max(float(retry_after), pause)
    try:
        # Use the clock of the server, because the local clock may differ.
        until, now = (parsedate_to_datetime(text) for text in (retry_after, answer.headers["date"]))
        return max((until - now).total_seconds(), pause)
    except (KeyError, ValueError, TypeError):
        return pause
