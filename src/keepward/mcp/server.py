"""The server of the protocol: tools, resources and prompts of a profile, on stdio and as routes at `/mcp`.

The server supports both versions of the protocol: sessions that begin with `initialize`, and independent calls. A host
application adds the routes to its own and enters the lifespan. (A mounted application would redirect `/mcp`.) The host
application checks the headers Host and Origin.

Invariants
(1) The actor is an agent. An owner's handle becomes an agent's, so that a model's text never counts as the owner's.
(2) The outcome of a write is data. A wrong argument or a failed operation is one sentence with `isError`; an unknown
    name is an error of the protocol. No message repeats a text that was sent.
(3) Memory is called in threads, so the event loop never waits for a disk.
(4) On stdio, stdout contains only the protocol; everything else that is printed goes to stderr.
(5) An interrupt ends a process on stdio at once; commits stay, uncommitted changes are lost.
(6) Every HTTP request is authenticated before it is parsed. A session belongs to the actor that began it.
(7) On stdio every call gets an answer; a call that cannot be parsed gets an error under its id.
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

from keepward import __version__, deadline
from keepward.core.principals import Actor
from keepward.errors import KeepwardError, Unauthorised
from keepward.mcp import jsonrpc_error, profiles
from keepward.mcp.profiles import ToolSet
from keepward.mcp.tool import Tool, ToolAnswer

if TYPE_CHECKING:
    from keepward.memory import Memory


logger = logging.getLogger(__name__)
PATH = "/mcp"
#: Seconds to answer the remaining calls after the end of input.
DRAIN_TIMEOUT_S = 60
#: Maximum number of open sessions of one token, and of all.
MAX_SESSIONS_PER_TOKEN, MAX_SESSIONS = 32, 1_000
#: Name of the agent that replaces an owner.
DEFAULT_AGENT = "mcp"
#: Key of the handle in the ASGI scope of a request.
_HANDLE = "keepward.handle"
#: Header with the id of a session.
_SESSION_ID = "mcp-session-id"
#: Error code of earlier versions of the protocol for a missing resource.
_RESOURCE_NOT_FOUND = -32_002
#: The lists of a profile do not change while the server runs; clients may cache them for an hour.
_STATIC_CACHE_HINT = CacheHint(ttl_ms=3_600_000, scope="public")
#: Maximum characters of a URI in an error.
_MAX_URI_LENGTH = 256

Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None
run_sync = anyio.to_thread.run_sync
#: Returns the handle of a request.
HandleOf = Callable[[Context], "Memory"]
#: Counts a write under a handle against its rate limit; returns the seconds to wait, 0 if there is no need.
Admit = Callable[["Memory"], float]
#: Returns a context manager that limits a call of a handle; True means that the call only reads.
CallLimit = Callable[["Memory", bool], AbstractContextManager[None]]
#: Returns the handle of a request. It may raise a `KeepwardError`, or what the host application handles.
Authenticate = Callable[[Request], "Memory"]
#: Takes a slot for an authenticated request, or raises an exception that the host application handles.
Enter = Callable[[Scope, "Memory"], Awaitable[None]]


def _unbounded(handle: Memory, reads: bool) -> AbstractContextManager[None]:
    return nullcontext()


def as_agent(handle: Memory, name: str) -> Memory:
    """Return the handle. If it is an owner's, return one of an agent with this name instead; see (1)."""
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
        version=__version__,
        description="Memory for AI agents that you can audit, approve and undo.",
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
    """The request handlers of one server."""

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
            raise MCPError(types.INVALID_PARAMS, "there is no such tool; tools/list lists the tools")
        memory = self._handle_of(ctx)
        try:
            return _result(await run_sync(self._run, memory, tool, params.arguments))
        except (KeepwardError, deadline.DeadlineExceeded) as fault:
            return _failed(str(fault))
        except (MCPError, ValidationError):
            raise
        except Exception as fault:  # noqa: BLE001 - a trace may quote a memory, and a client cannot use it
            logger.error("the tool %s failed: %s", tool.name, type(fault).__name__, extra={"action": "mcp_tool"})
            return _failed(f"unexpected {type(fault).__name__} in Keepward; call `status`, and report the error")

    def _run(self, memory: Memory, tool: Tool, args: dict[str, Any] | None) -> ToolAnswer:
        arguments = tool.checked_arguments(args)
        wait = 0.0 if tool.reads or self._admit is None else self._admit(memory)
        if wait > 0:
            raise KeepwardError(f"too many changes; wait {max(1, round(wait))} seconds and call again")
        with self._bounded(memory, tool.reads):
            return tool.run(memory, **arguments)

    async def list_resources(self, ctx: Context, params: Page) -> types.ListResourcesResult:
        listed = profiles.list_resources(self._handle_of(ctx))
        return types.ListResourcesResult(resources=[types.Resource(**resource._asdict()) for resource in listed])

    async def list_templates(self, ctx: Context, params: Page) -> types.ListResourceTemplatesResult:
        rows = [template._asdict() for template in profiles.TEMPLATES]
        templates = [types.ResourceTemplate(uri_template=row.pop("uri"), **row) for row in rows]
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
        for prompt in profiles.PROMPTS:
            schema = prompt.input_schema
            required = schema.get("required", ())
            arguments = [
                types.PromptArgument(name=name, description=field.get("description"), required=name in required)
                for name, field in schema["properties"].items()
            ]
            prompts.append(types.Prompt(name=prompt.name, description=prompt.about, arguments=arguments))
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        handle = self._handle_of(ctx)
        prompt = next((prompt for prompt in profiles.PROMPTS if prompt.name == params.name), None)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such prompt; prompts/list lists the prompts")
        answer = await self._read(handle, lambda: prompt.call(handle, params.arguments), types.INVALID_PARAMS)
        message = types.PromptMessage(role="user", content=types.TextContent(text=answer.text))
        return types.GetPromptResult(description=prompt.about, messages=[message])

    async def _read(
        self, handle: Memory, ask: Callable[[], Any], missing: int, data: dict[str, str] | None = None
    ) -> Any:
        """Call memory in a thread; a failure becomes an error of the protocol with the same sentence."""

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
    """Serve one client on stdin and stdout, one line of JSON per message, until stdin ends; see (4).

    An owner's handle becomes that of an agent of this name.
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

    if threading.current_thread() is not threading.main_thread():
        anyio.run(run)
        return
    # Python's handler would run only after the next line of stdin; the default ends the process at once (5).
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(run)
    finally:
        signal.signal(signal.SIGINT, before)


class _CallTracker:
    """Forwards messages in both directions. After the end of input it waits until every call has its answer (7)."""

    def __init__(self, messages: ObjectSendStream[Any], send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._messages, self._send = messages, send
        #: Ids of calls without an answer.
        self._open: Counter[Any] = Counter()
        self._answered = anyio.Event()

    async def read(self, incoming: AsyncIterable[Any]) -> None:
        """Forward incoming messages. A call that cannot be parsed gets an error, because its sender waits (7)."""
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
                        # A cancelled call may stay without an answer.
                        self._open.pop((message.params or {}).get("requestId"), None)
                await self._messages.send(item)
            with anyio.move_on_after(DRAIN_TIMEOUT_S):
                while self._open.total():
                    self._answered = anyio.Event()
                    await self._answered.wait()

    async def write(self, outgoing: AsyncIterable[Any]) -> None:
        """Forward answers. The server sends no requests to its client."""
        async for item in outgoing:
            await self._send(item)
            match item.message:
                case types.JSONRPCResponse(id=number) | types.JSONRPCError(id=number):
                    self._open -= Counter([number])
                    self._answered.set()

    async def _refuse(self, item: ValidationError) -> None:
        try:
            # This parser accepts half of a surrogate pair, as in a truncated emoji; the SDK's parser does not.
            number = json.loads(item.errors()[0]["input"])["id"]
        except (LookupError, TypeError, ValueError, RecursionError):
            return
        fault = types.ErrorData(
            code=types.PARSE_ERROR, message="the message cannot be parsed: send well-formed Unicode"
        )
        await self._send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=number, error=fault)))


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
        #: For each user, the ids of open sessions with the time of their last request, in seconds.
        self._sessions: dict[str, dict[str, float]] = {}
        self._server = build(profile, _handle_of, admit=admit, bounded=bounded)
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve until the block ends; then all sessions end."""
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
            handle = await anyio.to_thread.run_sync(self._authenticated_handle, Request(scope))
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
        sessions = self._open_sessions(user.identity)
        session, now = Request(scope).headers.get(_SESSION_ID), anyio.current_time()
        if session is None and len(sessions) >= MAX_SESSIONS_PER_TOKEN:
            sentence = (
                f"this token has {MAX_SESSIONS_PER_TOKEN} open sessions: end one by DELETE, or wait for one to expire"
            )
            await JSONResponse(jsonrpc_error("rate_limited", sentence), 429)(scope, receive, send)
            return
        if session in sessions:
            sessions[session] = now
            if scope["method"] == "DELETE":
                del sessions[session]

        async def send_and_note_session(message: Message) -> None:
            if message["type"] == "http.response.start" and session is None:
                # The answer to `initialize` names the session that it begins.
                begun = Headers(raw=message["headers"]).get(_SESSION_ID)
                if begun:
                    sessions[begun] = now
            await send(message)

        await self._manager.handle_request({**scope, _HANDLE: handle, "user": user}, receive, send_and_note_session)

    def _open_sessions(self, user: str) -> dict[str, float]:
        """Return the open sessions of a user; forget those that the manager has ended, of all users."""
        idle_timeout = (self._manager and self._manager.session_idle_timeout) or 0
        since = anyio.current_time() - idle_timeout
        for name, sessions in tuple(self._sessions.items()):
            for session in [session for session, used_at in sessions.items() if used_at < since]:
                del sessions[session]
            if not sessions and name != user:
                del self._sessions[name]
        return self._sessions.setdefault(user, {})

    def _authenticated_handle(self, request: Request) -> Memory:
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

    ``authenticate`` is called in a thread for each request; the default requires a bearer token. The host handles all
    its exceptions except `KeepwardError`. ``admit`` counts the changes of a handle, and ``bounded`` limits each call.
    ``enter`` may refuse a call. ``stateless`` begins no sessions, so that each call may use another server. A token
    opens at most ``MAX_SESSIONS_PER_TOKEN`` sessions.
    """
    chosen = profiles.tool_set(profile) if isinstance(profile, str) else profile
    endpoint = McpEndpoint(
        chosen, authenticate or _token_authenticator(memory), admit, bounded, body_limit, enter, stateless
    )
    return [Route(PATH, endpoint=endpoint)]


@asynccontextmanager
async def lifespan(routes_of_app: Iterable[BaseRoute]) -> AsyncIterator[None]:
    """Run the endpoints of these routes while the host application runs; other routes are ignored."""
    async with AsyncExitStack() as stack:
        for route in routes_of_app:
            endpoint = getattr(route, "endpoint", None)
            if isinstance(endpoint, McpEndpoint):
                await stack.enter_async_context(endpoint.running())
        yield


def _token_authenticator(memory: Memory) -> Authenticate:
    def authenticate(request: Request) -> Memory:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise Unauthorised("this server requires a token: send it as `Authorization: Bearer`")
        return memory.with_token(token.strip())

    return authenticate


def _handle_of(ctx: Context) -> Memory:
    request: Any = ctx.request
    handle: Memory = request.scope[_HANDLE]
    return handle


def _user(handle: Memory) -> AuthenticatedUser:
    """Return the user of a session: a hash of actor, credential, tenant and scope, without any secret."""
    actor = handle.actor
    parts = (actor.label, actor.credential or "", handle.tenant, handle.scope, handle.branch_name or "")
    name = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
