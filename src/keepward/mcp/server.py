"""The protocol: a profile's tools, resources and prompts answered for whoever asks.

One server speaks both eras: sessions that begin with `initialize`, and calls that stand alone.

Invariants
(1) Whoever asks is an agent: an owner's handle is lowered to one before a tool sees it, so that no model's text
    counts as its owner's word.
(2) What became of a write is data. An argument that does not fit, and what memory cannot do, is one sentence with
    `isError`; a name that is not there is an error of the protocol. No message repeats a text that was sent.
(3) Memory is asked in threads; the event loop never waits for a disk.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from keepward.errors import KeepwardError
from keepward.mcp import elicit, prompts, resources
from keepward.mcp.arguments import checked
from keepward.mcp.profiles import Profile
from keepward.mcp.spec import Given, Tool
from keepward.model.trust import Actor

if TYPE_CHECKING:
    from keepward.memory import Memory

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
#: Returns the handle on whose behalf a request is answered.
HandleOf = Callable[[Context], "Memory"]
#: Counts a change of a handle's; returns 0, or the seconds to wait when it is one too many.
Admit = Callable[["Memory"], float]

#: What earlier revisions of the protocol answer where a resource is not there.
_RESOURCE_NOT_FOUND = -32_002
#: What a profile shows stays the same for as long as the server runs; clients may keep it for an hour.
_FIXED = CacheHint(ttl_ms=3_600_000, scope="public")
_QUESTION = "decision"
#: Most characters of an address that an error names, as the protocol asks.
_ADDRESS = 256


def as_agent(handle: Memory, name: str) -> Memory:
    """Return the handle, an owner's lowered to an agent's of that name; see (1)."""
    return handle.acting_as(Actor.agent(name)) if handle.actor.is_owner else handle


def build(
    profile: Profile, handle_of: HandleOf, *, reviewer: Memory | None = None, admit: Admit | None = None
) -> Server[Any]:
    """Return a server of a profile.

    ``reviewer`` is the handle of the person in the chat, who may then be asked about what is held; see ``elicit``.
    """
    answers = _Answers(profile, handle_of, reviewer, admit)
    documents: dict[str, Any] = {}
    if profile.documents:
        documents = {
            "on_list_resources": answers.list_resources,
            "on_list_resource_templates": answers.list_templates,
            "on_read_resource": answers.read_resource,
            "on_list_prompts": answers.list_prompts,
            "on_get_prompt": answers.get_prompt,
        }
    server: Server[Any] = Server(
        "keepward",
        title="Keepward",
        version=version("keepward"),
        description="Memory for AI agents that one can audit, approve and undo.",
        instructions=profile.instructions,
        cache_hints={"tools/list": _FIXED, "prompts/list": _FIXED, "resources/templates/list": _FIXED},
        get_tool_input_schema=answers.input_schema,
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        **documents,
    )
    if reviewer is not None:
        # What a client sends back between two rounds is sealed: it cannot make up a proposal that was never asked.
        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="keepward"))
    return server


class _Answers:
    """The answers of one server."""

    def __init__(self, profile: Profile, handle_of: HandleOf, reviewer: Memory | None, admit: Admit | None) -> None:
        self._handle_of, self._reviewer, self._admit = handle_of, reviewer, admit
        self._tools = {tool.name: tool for tool in profile.tools}
        self._listed = [types.Tool.model_validate(tool.as_dict()) for tool in profile.tools]

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the schema of a tool's arguments."""
        tool = self._tools.get(name)
        return tool.input_schema if tool else None

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Answer tools/list."""
        del ctx, params
        return types.ListToolsResult(tools=self._listed)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Answer tools/call."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such tool here; tools/list names those there are")
        memory = self._handle_of(ctx)
        try:
            if params.request_state is not None and self._reviewer is not None:
                return await self._resumed(memory, self._reviewer, params)
            given = await anyio.to_thread.run_sync(self._run, memory, tool, params.arguments)
            return await self._asked(ctx, memory, given)
        except KeepwardError as fault:
            return _failed(str(fault))
        except (MCPError, ValidationError):
            raise
        except Exception as fault:  # noqa: BLE001  a trace may quote a memory, and a client could do nothing with it
            logger.error("the tool %s failed: %s", tool.name, type(fault).__name__, extra={"action": "mcp_tool"})
            return _failed(f"unexpected {type(fault).__name__} in Keepward; ask for `status`, and report it")

    def _run(self, memory: Memory, tool: Tool, given: dict[str, Any] | None) -> Given:
        arguments = checked(tool, given)
        if not tool.reads and self._admit is not None:
            wait = self._admit(memory)
            if wait > 0:
                raise KeepwardError(f"too many changes at once; wait {max(1, round(wait))} seconds, then go on")
        return tool.run(memory, arguments)

    async def _asked(
        self, ctx: Context, memory: Memory, given: Given
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Put what is held to the person in the chat where that is possible; else return what the tool gave."""
        reviewer, item = self._reviewer, given.held
        if reviewer is None or item is None or not _has_forms(ctx):
            return _result(given)
        if not await anyio.to_thread.run_sync(elicit.askable, memory, item):
            return _result(given)
        question = await anyio.to_thread.run_sync(elicit.question, memory, item)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            form = types.ElicitRequestFormParams(message=question, requested_schema=elicit.FORM)
            state = {"proposal": item.id, "data": given.data, "text": given.text}
            return types.InputRequiredResult(
                input_requests={_QUESTION: types.ElicitRequest(params=form)}, request_state=json.dumps(state)
            )
        try:
            answer = await ctx.session.elicit_form(question, elicit.FORM, related_request_id=ctx.request_id)
        except (MCPError, ValidationError):
            # Nobody could be asked, or the answer is none: it goes on waiting.
            return _result(given)
        return await self._decided(memory, reviewer, given, answer)

    async def _resumed(
        self, memory: Memory, reviewer: Memory, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Take a call up again after the person was asked; nothing is proposed a second time."""
        state = json.loads(params.request_state or "{}")
        waiting = await anyio.to_thread.run_sync(memory.pending)
        item = next((each for each in waiting if each.id == state["proposal"]), None)
        given = Given(data=state["data"], text=state["text"], held=item)
        answer = (params.input_responses or {}).get(_QUESTION)
        if item is None or not isinstance(answer, types.ElicitResult):
            return _result(given)
        if not await anyio.to_thread.run_sync(elicit.askable, memory, item):
            return _result(given)
        return await self._decided(memory, reviewer, given, answer)

    async def _decided(
        self, memory: Memory, reviewer: Memory, given: Given, answer: types.ElicitResult
    ) -> types.CallToolResult:
        if answer.action != "accept":
            return _result(given)
        decision = elicit.decision_of(answer.content)
        return _result(await anyio.to_thread.run_sync(elicit.decide, memory, reviewer, given, decision))

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer resources/list."""
        del params
        found = resources.listed(self._handle_of(ctx))
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=each.uri, name=each.name, title=each.title, description=each.about, mime_type=each.media_type
                )
                for each in found
            ]
        )

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer resources/templates/list."""
        del ctx, params
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=each.uri,
                    name=each.name,
                    title=each.title,
                    description=each.about,
                    mime_type=each.media_type,
                )
                for each in resources.TEMPLATES
            ]
        )

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Answer resources/read."""
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        found = await self._told(
            lambda: resources.read(self._handle_of(ctx), params.uri),
            missing=types.INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND,
            data={"uri": params.uri[:_ADDRESS]},
        )
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=found.uri, mime_type=found.media_type, text=found.text)]
        )

    async def list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Answer prompts/list."""
        del ctx, params
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=each.name,
                    title=each.title,
                    description=each.about,
                    arguments=[
                        types.PromptArgument(name=one.name, description=one.about, required=one.needed)
                        for one in each.arguments
                    ],
                )
                for each in prompts.PROMPTS
            ]
        )

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Answer prompts/get."""
        prompt, text = await self._told(
            lambda: prompts.written(self._handle_of(ctx), params.name, params.arguments), missing=types.INVALID_PARAMS
        )
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.about, messages=[message])

    async def _told(self, ask: Callable[[], Any], *, missing: int, data: dict[str, str] | None = None) -> Any:
        """Ask memory in a thread; what it cannot do is an error of the protocol with its sentence."""
        try:
            return await anyio.to_thread.run_sync(ask)
        except KeepwardError as fault:
            wrong = fault.code in {"not_found", "invalid_input", "context_too_small", "unauthorised"}
            raise MCPError(missing if wrong else types.INTERNAL_ERROR, str(fault), data) from fault


def _has_forms(ctx: Context) -> bool:
    """Whether the client declared that it can put a form to its person, and this call can carry the question."""
    declared = ctx.session.client_capabilities
    asks = declared.elicitation if declared else None
    # An empty declaration is an older one and means forms.
    if asks is None or (asks.form is None and asks.url is not None):
        return False
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.can_send_request


def _result(given: Given) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=text) for text in (given.text, *given.notes)], structured_content=given.data
    )


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)
