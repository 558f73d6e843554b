"""Tools for an agent loop of one's own: those of the MCP server as plain data, and a call of one.

Invariants
(1) No tool approves, rejects, rolls back, contains or erases, and what a model says is never said with an owner's
    rights: an owner's handle lends its tools those of an agent.
(2) What a model gets wrong is an answer that it can read, and no exception that ends its loop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from keepward.core.principals import Actor
from keepward.core.value import Value, one_of, unknown_name_message
from keepward.errors import InvalidInput, KeepwardError

if TYPE_CHECKING:
    from keepward.mcp.tool import Tool

#: Sets of tools that need nothing kept between two calls.
ToolProfile = Literal["default", "readonly"]
PROFILES: tuple[ToolProfile, ...] = ("default", "readonly")


class ToolResult(Value):
    """What a tool gave back."""

    #: Whether the call was carried out; a write that was refused or held is one that was.
    ok: bool
    #: For the model to read.
    text: str
    #: The same as data; empty where the call was not carried out.
    data: dict[str, Any]


class Tools:
    """A handle that lends its tools."""

    def tools(self, *, profile: ToolProfile = "default") -> list[dict[str, Any]]:
        """Return the tools of a profile as ``{name, description, input_schema}``, plain JSON values.

        That is the form of Anthropic's API; OpenAI's is ``{"type": "function", "function": {"name": ...,
        "description": ..., "parameters": input_schema}}``.
        """
        return [
            {"name": each.name, "description": each.about, "input_schema": each.input_schema}
            for each in _tools_of_profile(profile)
        ]

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, *, profile: ToolProfile = "default"
    ) -> ToolResult:
        """Run a tool as this handle's actor; an owner's handle lends it an agent's rights.

        ``arguments`` are an object or its JSON text, as chat APIs give them. A tool that there is not, arguments that
        do not fit and a store that cannot be reached are results with ``ok`` False and a sentence for the model.
        """
        tools = {each.name: each for each in _tools_of_profile(profile)}
        # It is a part of ``Memory``, which stands above.
        own: Any = self
        lent = own.as_actor(Actor.agent()) if own.actor.is_owner else own
        try:
            if name not in tools:
                raise InvalidInput(unknown_name_message("tool", name, list(tools)))
            answer = tools[name].call(lent, _object(arguments))
        except KeepwardError as fault:
            # See (2).
            return ToolResult(ok=False, text=str(fault), data={})
        return ToolResult(ok=True, text="\n\n".join((answer.text, *answer.notes)), data=answer.data)


def _tools_of_profile(name: ToolProfile) -> tuple[Tool, ...]:
    # Upward, and the one time: the table of tools is kept beside the protocol that they are for.
    from keepward.mcp.profiles import tool_set

    return tool_set(one_of("profile", name, PROFILES)).tools


def _object(arguments: Any) -> Mapping[str, Any]:
    try:
        given = json.loads(arguments or "{}") if isinstance(arguments, str) else {} if arguments is None else arguments
    except ValueError:
        given = None
    if not isinstance(given, Mapping):
        raise InvalidInput("arguments are a JSON object")
    return given
