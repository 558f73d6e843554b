"""What the conformance suite calls beside the product: tools, resources and prompts that do as their name says.

`extended` puts them beside what a server of ours answers already: a name that is a fixture's is answered here, every
other by us. What carries them (endpoint, sessions, streams, sealed state, errors) is the product's.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import anyio
import mcp_types as types
from conformance_asking import (
    ASKING,
    DEFAULTS,
    ENUMS,
    PROMPT_QUESTION,
    STRING,
    Tool,
    asking,
    eliciting,
    said,
    user_form,
    with_sampling,
)
from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC"
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="
TEXT, IMAGE = "text/plain", "image/png"
PAUSE = 0.05


def embedded(uri: str, text: str, media_type: str = TEXT) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=media_type, text=text))


def image() -> types.ImageContent:
    return types.ImageContent(data=PNG, mime_type=IMAGE)


#: Input schemas other than that of no arguments.
TAKES: dict[str, dict[str, Any]] = {
    "test_sampling": {"properties": {"prompt": STRING}, "required": ["prompt"]},
    "test_elicitation": {"properties": {"message": STRING}, "required": ["message"]},
    "test_custom_header": {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}}
        },
        "properties": {
            "name": STRING,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": STRING,
            "email": STRING,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}
#: Tools that only answer.
PLAIN: dict[str, types.CallToolResult] = {
    "test_simple_text": said("This is a simple text response for testing."),
    "test_image_content": said(image()),
    "test_audio_content": said(types.AudioContent(data=WAV, mime_type="audio/wav")),
    "test_embedded_resource": said(embedded("test://embedded-resource", "This is an embedded resource content.")),
    "test_multiple_content_types": said(
        "Multiple content types test:",
        image(),
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
    "test_error_handling": said("This tool intentionally returns an error for testing", wrong=True),
    "test_custom_header": said("The header and the argument agree."),
    "json_schema_2020_12_tool": said("The schema came through."),
}


async def log(ctx: Any, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)


async def with_logging(ctx: Any, params: types.CallToolRequestParams) -> Any:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(ctx, text)
        await anyio.sleep(PAUSE)
    return said("Three messages were sent to the log.")


async def with_progress(ctx: Any, params: types.CallToolRequestParams) -> Any:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(PAUSE)
    return said("Progress was reported.")


async def reconnection(ctx: Any, params: types.CallToolRequestParams) -> Any:
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
        await anyio.sleep(PAUSE)
    return said("The stream was closed before this answer, where it can be resumed.")


async def missing_capability(ctx: Any, params: types.CallToolRequestParams) -> Any:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        needs = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool asks the client's model", needs)
    return said("The client declared sampling.")


async def logging_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    await log(ctx, "A message for clients that asked for messages.")
    return said("Done.")


def answering(result: types.CallToolResult) -> Tool:
    async def run(ctx: Any, params: types.CallToolRequestParams) -> Any:
        return result

    return run


RESOURCES = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text", mime_type=TEXT, text="This is the content of the static text resource."
    ),
    "test://static-binary": types.BlobResourceContents(uri="test://static-binary", mime_type=IMAGE, blob=PNG),
    "test://watched-resource": types.TextResourceContents(
        uri="test://watched-resource", mime_type=TEXT, text="Watched."
    ),
}
TEMPLATE = "test://template/{id}/data"


def resource(uri: str) -> Any:
    """Return what stands at an address of the fixtures; None where it is none of theirs."""
    if uri in RESOURCES:
        return RESOURCES[uri]
    head, tail = TEMPLATE.split("{id}")
    if not (uri.startswith(head) and uri.endswith(tail)):
        return None
    name = uri[len(head) : -len(tail)]
    data = {"id": name, "templateTest": True, "data": f"Data for ID: {name}"}
    return types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))


#: Names of prompts with their arguments.
PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


def prompt(params: types.GetPromptRequestParams) -> Any:
    """Return a prompt of the fixtures."""
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            content: list[Any] = ["This is a simple prompt for testing."]
        case "test_prompt_with_arguments":
            content = [f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"]
        case "test_prompt_with_embedded_resource":
            content = [embedded(given["resourceUri"], "Embedded resource content for testing.")]
            content.append("Please process the embedded resource above.")
        case "test_prompt_with_image":
            content = [image(), "Please analyze the image above."]
        case _:
            answer = (params.input_responses or {}).get("user_context")
            if not isinstance(answer, types.ElicitResult):
                return types.InputRequiredResult(input_requests=PROMPT_QUESTION)
            content = [f"Prompt with context: {json.dumps(answer.content)}"]
    messages = [types.PromptMessage(role="user", content=block) for block in said(*content).content]
    return types.GetPromptResult(messages=messages)


#: What fixtures stand beside, of a server with documents.
OURS = (
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
)


def extended(server: Server[Any]) -> Server[Any]:
    """Return the same server with the fixtures beside what it answers."""
    bus = InMemorySubscriptionBus()

    def publishing(event: Any) -> Tool:
        async def run(ctx: Any, params: types.CallToolRequestParams) -> Any:
            await bus.publish(event)
            return said("Those who listen were told.")

        return run

    tools: dict[str, Tool] = {name: answering(result) for name, result in PLAIN.items()}
    tools |= {name: asking(name, rounds) for name, rounds in ASKING.items()}
    tools |= {
        "test_tool_with_logging": with_logging,
        "test_tool_with_progress": with_progress,
        "test_sampling": with_sampling,
        "test_elicitation": eliciting(user_form),
        "test_elicitation_sep1034_defaults": eliciting(lambda _: DEFAULTS),
        "test_elicitation_sep1330_enums": eliciting(lambda _: ENUMS),
        "test_reconnection": reconnection,
        "test_missing_capability": missing_capability,
        "test_logging_tool": logging_tool,
        "test_trigger_tool_change": publishing(ToolsListChanged()),
        "test_trigger_prompt_change": publishing(PromptsListChanged()),
    }
    schemas = {name: {"type": "object", "properties": {}} | TAKES.get(name, {}) for name in tools}
    listed = [types.Tool(name=name, description=f"Fixture {name}.", input_schema=schemas[name]) for name in tools]
    ours = {method: server.get_request_handler(method).handler for method in OURS}

    async def list_tools(ctx: Any, params: Any) -> Any:
        found = await ours["tools/list"](ctx, params)
        return found.model_copy(update={"tools": [*found.tools, *listed]})

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
        return await tools.get(params.name, ours["tools/call"])(ctx, params)

    async def list_resources(ctx: Any, params: Any) -> Any:
        found = await ours["resources/list"](ctx, params)
        more = [
            types.Resource(uri=uri, name=uri.partition("://")[2], description="A fixture.", mime_type=each.mime_type)
            for uri, each in RESOURCES.items()
        ]
        return found.model_copy(update={"resources": [*found.resources, *more]})

    async def list_templates(ctx: Any, params: Any) -> Any:
        found = await ours["resources/templates/list"](ctx, params)
        more = types.ResourceTemplate(uri_template=TEMPLATE, name="template", description="A family of fixtures.")
        return found.model_copy(update={"resource_templates": [*found.resource_templates, more]})

    async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> Any:
        found = resource(params.uri)
        return types.ReadResourceResult(contents=[found]) if found else await ours["resources/read"](ctx, params)

    async def list_prompts(ctx: Any, params: Any) -> Any:
        found = await ours["prompts/list"](ctx, params)
        more = [
            types.Prompt(
                name=name,
                description="A fixture.",
                arguments=[types.PromptArgument(name=each, description="A text.", required=True) for each in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
        return found.model_copy(update={"prompts": [*found.prompts, *more]})

    async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> Any:
        return prompt(params) if params.name in PROMPTS else await ours["prompts/get"](ctx, params)

    async def complete(ctx: Any, params: types.CompleteRequestParams) -> Any:
        words = [each for each in ("paris", "park", "party") if each.startswith(params.argument.value)]
        return types.CompleteResult(completion=types.Completion(values=words, total=len(words), has_more=False))

    async def accepted(ctx: Any, params: Any) -> Any:
        return types.EmptyResult()

    for method, model, handler in (
        ("tools/list", types.PaginatedRequestParams, list_tools),
        ("tools/call", types.CallToolRequestParams, call_tool),
        ("resources/list", types.PaginatedRequestParams, list_resources),
        ("resources/templates/list", types.PaginatedRequestParams, list_templates),
        ("resources/read", types.ReadResourceRequestParams, read_resource),
        ("prompts/list", types.PaginatedRequestParams, list_prompts),
        ("prompts/get", types.GetPromptRequestParams, get_prompt),
        ("completion/complete", types.CompleteRequestParams, complete),
        ("logging/setLevel", types.SetLevelRequestParams, accepted),
        ("resources/subscribe", types.SubscribeRequestParams, accepted),
        ("resources/unsubscribe", types.UnsubscribeRequestParams, accepted),
        ("subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(bus)),
    ):
        server.add_request_handler(method, model, handler)
    known = server.get_tool_input_schema
    server.get_tool_input_schema = lambda name: schemas.get(name) or (known(name) if known else None)
    # Where nobody is asked in the chat, ours has no state to seal; the fixtures do.
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="keepward"))
    return server
