"""What the conformance suite lets a server ask: forms for the person, questions for the model, and rounds of them.

In the earlier era a tool asks in the middle of its call; in the later one it answers with its questions, and is called
again with what was said to them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPDeprecationWarning

Tool = Callable[[Any, types.CallToolRequestParams], Awaitable[Any]]
Rounds = tuple[dict[str, Any], ...]


def said(*content: Any, wrong: bool = False) -> types.CallToolResult:
    """Return a tool's answer; texts may be given bare."""
    blocks = [types.TextContent(text=each) if isinstance(each, str) else each for each in content]
    return types.CallToolResult(content=blocks, is_error=wrong)


def form(message: str, *needed: str, **properties: dict[str, Any]) -> types.ElicitRequest:
    """Return a question to the person behind the client."""
    schema = {"type": "object", "properties": properties} | ({"required": list(needed)} if needed else {})
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str, tokens: int = 100) -> types.CreateMessageRequest:
    """Return a question to the model behind the client."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens))


STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}
NAME = form("What is your name?", "name", name=STRING)
CONFIRM = form("Please confirm", "ok", ok=BOOLEAN)
#: Tools that ask before they answer: what each round asks for. A round's number is the state that goes with it.
ASKING: dict[str, Rounds] = {
    "test_input_required_result_elicitation": ({"user_name": NAME},),
    "test_input_required_result_sampling": ({"capital_question": sampling("What is the capital of France?")},),
    "test_input_required_result_list_roots": ({"client_roots": types.ListRootsRequest()},),
    "test_input_required_result_request_state": ({"confirm": CONFIRM},),
    "test_input_required_result_tampered_state": ({"confirm": CONFIRM},),
    "test_input_required_result_multiple_inputs": (
        {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": types.ListRootsRequest()},
    ),
    "test_input_required_result_multi_round": (
        {"step1": form("Step 1: What is your name?", "name", name=STRING)},
        {"step2": form("Step 2: What is your favorite color?", "color", color=STRING)},
    ),
    "test_input_required_result_capabilities": ({"person": NAME, "model": sampling("Say hello")},),
    "test_streaming_elicitation": ({"user_name": NAME},),
}
#: Tools whose question goes without a state, as a server may do that keeps none.
STATELESS = {"test_input_required_result_elicitation", "test_streaming_elicitation"}
PROMPT_QUESTION = {"user_context": form("What context should the prompt use?", "context", context=STRING)}

CHOICES = ["option1", "option2", "option3"]
DEFAULTS = form(
    "Please review and update the form fields with defaults",
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
ENUMS = form(
    "Please choose",
    untitledSingle={"type": "string", "enum": CHOICES},
    titledSingle={
        "type": "string",
        "oneOf": [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second"), 1)],
    },
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": CHOICES}},
    titledMulti={
        "type": "array",
        "items": {
            "anyOf": [
                {"const": f"value{n}", "title": f"{word} Choice"} for n, word in enumerate(("First", "Second"), 1)
            ]
        },
    },
)


async def with_sampling(ctx: Any, params: types.CallToolRequestParams) -> Any:
    question = sampling(params.arguments["prompt"]).params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        answer = await ctx.session.create_message(
            question.messages, max_tokens=question.max_tokens, related_request_id=ctx.request_id
        )
    return said(f"LLM response: {answer.content.text}")


def eliciting(question: Callable[[dict[str, Any]], types.ElicitRequest]) -> Tool:
    """Return a tool that asks the person in the middle of its call, as the earlier era does."""

    async def run(ctx: Any, params: types.CallToolRequestParams) -> Any:
        asked = question(params.arguments or {}).params
        answer = await ctx.session.elicit_form(asked.message, asked.requested_schema, related_request_id=ctx.request_id)
        return said(f"User response: action={answer.action}, content={json.dumps(answer.content)}")

    return run


def user_form(given: dict[str, Any]) -> types.ElicitRequest:
    fields = {"username": "User's response", "email": "User's email address"}
    properties = {name: {"type": "string", "description": about} for name, about in fields.items()}
    return form(given["message"], *fields, **properties)


def declared_only(ctx: Any, questions: dict[str, Any]) -> dict[str, Any]:
    """Return the questions that the client said it can answer."""
    found = ctx.session.client_capabilities
    can = found.model_dump(exclude_none=True).keys() if found else ()
    named = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
    return {key: each for key, each in questions.items() if named[each.method] in can}


def asking(name: str, rounds: Rounds) -> Tool:
    """Return a tool that asks round by round; its state is how many were answered."""

    async def run(ctx: Any, params: types.CallToolRequestParams) -> Any:
        answered = int(params.request_state or 0)
        given = params.input_responses or {}
        if given and rounds[answered].keys() <= given.keys():
            answered += 1
        if answered == len(rounds):
            heard = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in given.values()]
            return said(f"state-ok: {json.dumps(heard)}")
        questions = rounds[answered]
        if name == "test_input_required_result_capabilities":
            questions = declared_only(ctx, questions)
        if name == "test_streaming_elicitation":
            await ctx.session.report_progress(0, 1)
        state = None if name in STATELESS else str(answered)
        return types.InputRequiredResult(input_requests=questions, request_state=state)

    return run
