"""The protocol: a profile's tools, resources and prompts answered for whoever asks, on stdio and as routes at `/mcp`.

One server speaks both eras: sessions that begin with `initialize`, and calls that stand alone. A host application adds
the routes to its own, for a mounted one would answer `/mcp` with a redirect, and enters the lifespan. Host and origin
are the host's to check, and so is how much a body may hold beyond the limit named here.

Invariants
(1) Whoever asks is an agent: an owner's handle is lowered to one before a tool sees it, so that no model's text
    counts as its owner's word.
(2) What became of a write is data. An argument that does not fit, and what memory cannot do, is one sentence with
    `isError`; a name that is not there is an error of the protocol. No message repeats a text that was sent.
(3) Memory is asked in threads; the event loop never waits for a disk.
(4) On stdio, stdout carries the protocol and nothing else; while it runs, whatever else is printed goes to stderr.
(5) An interrupt ends a process on stdio at once: what was committed is stored, what was not is not.
(6) Over HTTP every request is authenticated anew, before anything of it is read; who asks in a session is who began it.
(7) On stdio no call stays unanswered: one that cannot be read is told so under its id.
"""

from __future__ import annotations

import hashlib
import json
import logging
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from anyio.abc import ObjectSendStream
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from keepward import deadline
from keepward.core.principals import Actor
from keepward.errors import KeepwardError, Unauthorised
from keepward.mcp import jsonrpc_error, profiles
from keepward.mcp.profiles import ToolSet
from keepward.mcp.tool import Tool, ToolAnswer

if TYPE_CHECKING:
    from keepward.memory import Memory


logger = logging.getLogger(__name__)
#: Seconds in which calls are still answered after the end of input.
DRAIN_TIMEOUT_S = 60

Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None
run_sync = anyio.to_thread.run_sync
#: Returns the handle on whose behalf a request is answered.
HandleOf = Callable[[Context], "Memory"]
#: Counts a change of a handle's; returns 0, or the seconds to wait when it is one too many.
Admit = Callable[["Memory"], float]
#: Limits the call of a handle's that the block makes: of True it only reads.
CallLimit = Callable[["Memory", bool], AbstractContextManager[None]]


def _unbounded(handle: Memory, reads: bool) -> AbstractContextManager[None]:
    return nullcontext()


#: What earlier revisions of the protocol answer where a resource is not there.
_RESOURCE_NOT_FOUND = -32_002
#: What a profile shows stays the same for as long as the server runs; clients may keep it for an hour.
_STATIC_CACHE_HINT = CacheHint(ttl_ms=3_600_000, scope="public")
#: Most characters of an address that an error names, as the protocol asks.
_MAX_URI_LENGTH = 256


def as_agent(handle: Memory, name: str) -> Memory:
    """Return the handle, an owner's lowered to an agent's of that name; see (1)."""
    return handle.as_actor(Actor.agent(name)) if handle.actor.is_owner else handle


def build(
    profile: ToolSet,
    handle_of: HandleOf,
    *,
    admit: Admit | None = None,
    bounded: CallLimit = _unbounded,
) -> Server[Any]:
    """Return a server of a profile."""
    answers = _McpHandlers(profile, handle_of, admit, bounded)
    return Server(
        "keepward",
        title="Keepward",
        version=version("keepward"),
        description="Memory for AI agents that one can audit, approve and undo.",
        instructions=profile.instructions,
        cache_hints={
            "tools/list": _STATIC_CACHE_HINT,
            "prompts/list": _STATIC_CACHE_HINT,
            "resources/templates/list": _STATIC_CACHE_HINT,
        },
        get_tool_input_schema=answers.input_schema,
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_templates,
        on_read_resource=answers.read_resource,
        on_list_prompts=answers.list_prompts,
        on_get_prompt=answers.get_prompt,
    )


class _McpHandlers:
    """The answers of one server."""

    def __init__(self, profile: ToolSet, handle_of: HandleOf, admit: Admit | None, bounded: CallLimit) -> None:
        self._handle_of, self._admit, self._bounded = handle_of, admit, bounded
        self._tools = {tool.name: tool for tool in profile.tools}
        self._listed = [types.Tool.model_validate(tool.as_dict()) for tool in profile.tools]

    def input_schema(self, name: str) -> dict[str, Any] | None:
        return self._tools[name].input_schema if name in self._tools else None

    async def list_tools(self, ctx: Context, params: Page) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._listed)

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such tool here; tools/list names those there are")
        memory = self._handle_of(ctx)
        try:
            return _result(await run_sync(self._run, memory, tool, params.arguments))
        except (KeepwardError, deadline.DeadlineExceeded) as fault:
            return _failed(str(fault))
        except (MCPError, ValidationError):
            raise
        except Exception as fault:  # noqa: BLE001  a trace may quote a memory, and a client could do nothing with it
            logger.error("the tool %s failed: %s", tool.name, type(fault).__name__, extra={"action": "mcp_tool"})
            return _failed(f"unexpected {type(fault).__name__} in Keepward; ask for `status`, and report it")

    def _run(self, memory: Memory, tool: Tool, args: dict[str, Any] | None) -> ToolAnswer:
        arguments = tool.checked(args)
        wait = 0.0 if tool.reads or self._admit is None else self._admit(memory)
        if wait > 0:
            raise KeepwardError(f"too many changes at once; wait {max(1, round(wait))} seconds, then go on")
        with self._bounded(memory, tool.reads):
            return tool.run(memory, arguments)

    async def list_resources(self, ctx: Context, params: Page) -> types.ListResourcesResult:
        found = profiles.list_resources(self._handle_of(ctx))
        return types.ListResourcesResult(resources=[types.Resource(**each._asdict()) for each in found])

    async def list_templates(self, ctx: Context, params: Page) -> types.ListResourceTemplatesResult:
        rows = [each._asdict() for each in profiles.TEMPLATES]
        templates = [types.ResourceTemplate(uri_template=each.pop("uri"), **each) for each in rows]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        missing = types.INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else _RESOURCE_NOT_FOUND
        data = {"uri": params.uri[:_MAX_URI_LENGTH]}
        handle = self._handle_of(ctx)
        text, kind = await self._read(handle, lambda: profiles.read(handle, params.uri), missing, data)
        contents = types.TextResourceContents(uri=params.uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, ctx: Context, params: Page) -> types.ListPromptsResult:
        prompts = []
        for each in profiles.PROMPTS:
            schema = each.input_schema
            needed = schema.get("required", ())
            arguments = [
                types.PromptArgument(name=name, description=one.get("description"), required=name in needed)
                for name, one in schema["properties"].items()
            ]
            prompts.append(types.Prompt(name=each.name, description=each.about, arguments=arguments))
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        handle = self._handle_of(ctx)
        prompt = next((each for each in profiles.PROMPTS if each.name == params.name), None)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such prompt here; prompts/list names those there are")
        answer = await self._read(handle, lambda: prompt.call(handle, params.arguments), types.INVALID_PARAMS)
        message = types.PromptMessage(role="user", content=types.TextContent(text=answer.text))
        return types.GetPromptResult(description=prompt.about, messages=[message])

    async def _read(
        self, handle: Memory, ask: Callable[[], Any], missing: int, data: dict[str, str] | None = None
    ) -> Any:
        """Ask memory in a thread; what it cannot do is an error of the protocol with its sentence."""

        def bounded() -> Any:
            with self._bounded(handle, True):
                return ask()

        try:
            return await run_sync(bounded)
        except KeepwardError as fault:
            wrong = fault.code in {"not_found", "invalid_input", "context_too_small", "unauthorised"}
            raise MCPError(missing if wrong else types.INTERNAL_ERROR, str(fault), data) from fault
        except deadline.DeadlineExceeded as fault:
            raise MCPError(types.INTERNAL_ERROR, str(fault), data) from fault


def _result(answer: ToolAnswer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=text) for text in (answer.text, *answer.notes)], structured_content=answer.data
    )


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)


def serve_stdio(memory: Memory, profile: ToolSet, *, name: str) -> None:
    """Answer one client on stdin and stdout, a line of JSON a message, until stdin ends; see (4).

    An owner's handle is lowered to that of an agent of this name.
    """
    handle = as_agent(memory, name)
    server = build(profile, lambda _: handle)

    async def run() -> None:
        writable, messages = anyio.create_memory_object_stream[Any](0)
        answers, answered = anyio.create_memory_object_stream[Any](0)
        async with stdio_server() as (incoming, outgoing), outgoing, anyio.create_task_group() as group:
            calls = _CallTracker(writable, outgoing.send)
            group.start_soon(calls.read, incoming)
            group.start_soon(calls.write, answered)
            await server.run(messages, answers, server.create_initialization_options())
            group.cancel_scope.cancel()

    if threading.current_thread() is threading.main_thread():
        # The thread that reads stdin cannot be woken: Python's own handler would wait for the next line (5).
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(run)


class _CallTracker:
    """Passes messages on in both directions; after the end of input it waits until every call has its answer (7)."""

    def __init__(self, messages: ObjectSendStream[Any], send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._messages, self._send = messages, send
        #: Ids of calls without an answer.
        self._open: Counter[Any] = Counter()
        self._answered = anyio.Event()

    async def read(self, incoming: AsyncIterable[Any]) -> None:
        """Pass on what comes in. A call that cannot be read is answered, for whoever sent it waits (7)."""
        async with self._messages:
            async for item in incoming:
                if isinstance(item, ValidationError):
                    await self._refuse(item)
                    continue
                message = getattr(item, "message", None)
                match message:
                    case types.JSONRPCRequest():
                        self._open[message.id] += 1
                    case types.JSONRPCNotification(method="notifications/cancelled"):
                        # A call that the client gave up may stay without an answer.
                        self._open.pop((message.params or {}).get("requestId"), None)
                await self._messages.send(item)
            with anyio.move_on_after(DRAIN_TIMEOUT_S):
                while self._open.total():
                    self._answered = anyio.Event()
                    await self._answered.wait()

    async def write(self, outgoing: AsyncIterable[Any]) -> None:
        """Pass on answers. The server asks its client nothing."""
        async for item in outgoing:
            await self._send(item)
            match item.message:
                case types.JSONRPCResponse(id=number) | types.JSONRPCError(id=number):
                    self._open -= Counter([number])
                    self._answered.set()

    async def _refuse(self, item: ValidationError) -> None:
        try:
            # Half a character, as of an emoji that was cut in two, is read here and not by the protocol.
            number = json.loads(item.errors()[0]["input"])["id"]
        except (LookupError, TypeError, ValueError):
            return
        fault = types.ErrorData(code=types.PARSE_ERROR, message="this cannot be read: send well-formed Unicode")
        await self._send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=number, error=fault)))


PATH = "/mcp"
#: Where a request carries its handle from the door to the tool.
_HANDLE = "keepward.handle"
#: Name of the agent that an owner's handle is lowered to.
DEFAULT_AGENT = "mcp"

#: Returns the handle of a request, or raises: a `KeepwardError`, or what the host application answers itself.
Authenticate = Callable[[Request], "Memory"]


#: Most open sessions of one token, and of all.
MAX_SESSIONS_PER_TOKEN, MAX_SESSIONS = 32, 1_000
_SESSION_ID = "mcp-session-id"
#: Takes a slot for a request that was let in, or raises what the host application answers itself.
Enter = Callable[[Scope, "Memory"], Awaitable[None]]


class McpEndpoint:
    """The application behind `/mcp`."""

    def __init__(
        self,
        profile: ToolSet,
        authenticate: Authenticate,
        admit: Admit | None,
        bounded: CallLimit,
        body_limit: int,
        enter: Enter | None,
        stateless: bool,
    ) -> None:
        self._authenticate, self._body_limit, self._enter = authenticate, body_limit, enter
        self._stateless = stateless
        #: By who opened them, open sessions with the instant of their last request, in seconds.
        self._sessions: dict[str, dict[str, float]] = {}
        self._server = build(profile, _handle_of, admit=admit, bounded=bounded)
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for as long as the block lasts; sessions end with it."""
        self._manager = StreamableHTTPSessionManager(
            self._server,
            max_request_body_size=self._body_limit,
            max_sessions=MAX_SESSIONS,
            stateless=self._stateless,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        try:
            async with self._manager.run():
                yield
        finally:
            self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._manager is None:
            raise RuntimeError("enter `lifespan(routes)` of keepward.mcp.server around the application")
        try:
            handle = await anyio.to_thread.run_sync(self._known, Request(scope))
        except Unauthorised as fault:
            body = jsonrpc_error(Unauthorised.code, str(fault))
            await JSONResponse(body, 401, headers={"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        except KeepwardError as fault:
            await JSONResponse(jsonrpc_error(fault.code, str(fault)), 503)(scope, receive, send)
            return
        if self._enter is not None:
            await self._enter(scope, handle)
        user = _user(handle)
        used = self._open_sessions(user.identity)
        named, now = Request(scope).headers.get(_SESSION_ID), anyio.current_time()
        if named is None and len(used) >= MAX_SESSIONS_PER_TOKEN:
            sentence = (
                f"this token has {MAX_SESSIONS_PER_TOKEN} open sessions: end one by DELETE, or wait for one to expire"
            )
            await JSONResponse(jsonrpc_error("rate_limited", sentence), 429)(scope, receive, send)
            return
        if named in used:
            used[named] = now
            if scope["method"] == "DELETE":
                del used[named]

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and named is None:
                opened = Headers(raw=message["headers"]).get(_SESSION_ID)
                used.update({opened: now} if opened else {})
            await send(message)

        await self._manager.handle_request({**scope, _HANDLE: handle, "user": user}, receive, answer)

    def _open_sessions(self, user: str) -> dict[str, float]:
        """Return the open sessions of a user, and forget all that the manager has ended since."""
        limit = (self._manager and self._manager.session_idle_timeout) or 0
        since = anyio.current_time() - limit
        for name, used in tuple(self._sessions.items()):
            for each in [each for each, at in used.items() if at < since]:
                del used[each]
            if not used and name != user:
                del self._sessions[name]
        return self._sessions.setdefault(user, {})

    def _known(self, request: Request) -> Memory:
        handle = as_agent(self._authenticate(request), DEFAULT_AGENT)
        if not handle.actor.has_right("read"):
            raise Unauthorised
        return handle


def routes(
    memory: Memory,
    *,
    profile: str | ToolSet = "default",
    authenticate: Authenticate | None = None,
    admit: Admit | None = None,
    bounded: CallLimit = _unbounded,
    body_limit: int = 1 << 20,
    enter: Enter | None = None,
    stateless: bool = False,
) -> list[Route]:
    """Return the routes of the protocol, for a host application to add to its own.

    ``authenticate`` is called in a thread for each request; without it a bearer token is asked for and looked up.
    What it raises beside a `KeepwardError` is left to the host. ``admit`` counts the changes of a handle, and
    ``bounded`` limits each call. ``enter`` may turn a call away. ``stateless`` begins no sessions, so that every call
    may come to another server. A token opens at most ``MAX_SESSIONS_PER_TOKEN``.
    """
    chosen = profiles.tool_set(profile) if isinstance(profile, str) else profile
    endpoint = McpEndpoint(
        chosen, authenticate or _token_authenticator(memory), admit, bounded, body_limit, enter, stateless
    )
    return [Route(PATH, endpoint=endpoint)]


@asynccontextmanager
async def lifespan(routes_of_app: Iterable[BaseRoute]) -> AsyncIterator[None]:
    """Run what stands behind these routes for as long as the host application runs; others are passed over."""
    async with AsyncExitStack() as stack:
        for each in routes_of_app:
            endpoint = getattr(each, "endpoint", None)
            if isinstance(endpoint, McpEndpoint):
                await stack.enter_async_context(endpoint.running())
        yield


def _token_authenticator(memory: Memory) -> Authenticate:
    def authenticate(request: Request) -> Memory:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise Unauthorised("this server asks for a token: send it as `Authorization: Bearer`")
        return memory.with_token(token.strip())

    return authenticate


def _handle_of(ctx: Context) -> Memory:
    request: Any = ctx.request
    handle: Memory = request.scope[_HANDLE]
    return handle


def _user(handle: Memory) -> AuthenticatedUser:
    """Return who a session belongs to: principal, credential, tenant and scope, and nothing that opens a door."""
    actor = handle.actor
    parts = (actor.label, actor.credential or "", handle.tenant, handle.scope)
    name = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
