"""The tools of the MCP server for your own agent loop, as JSON values, and the call of a tool.

No tool approves, rejects, rolls back, contains or erases. Tools called on an owner's handle run with the rights of an
agent. An error of the model is a result that it can read, not an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from keepward.core.principals import Actor
from keepward.core.value import Value, load_json, one_of, unknown_name_message
from keepward.errors import InvalidInput, KeepwardError

if TYPE_CHECKING:
    from keepward.mcp.tool import Tool

#: Sets of tools without state between two calls.
ToolProfile = Literal["default", "readonly"]
PROFILES: tuple[ToolProfile, ...] = ("default", "readonly")


class ToolResult(Value):
    """The result of a tool."""

    #: Whether the tool ran; true also for a refused or quarantined write.
    ok: bool
    #: Text for the model.
    text: str
    #: The same as JSON values; empty if the tool did not run.
    data: dict[str, Any]


class Tools:
    """A handle with tools."""

    def tools(self, *, profile: ToolProfile = "default") -> list[dict[str, Any]]:
        """Return the tools of a profile as ``{name, description, input_schema}``.

        This is the form of Anthropic's API. For OpenAI's API, use ``{"type": "function", "function": {"name": ...,
        "description": ..., "parameters": input_schema}}``.
        """
        return [
            {"name": tool.name, "description": tool.about, "input_schema": tool.input_schema}
            for tool in _tools_of_profile(profile)
        ]

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, *, profile: ToolProfile = "default"
    ) -> ToolResult:
        """Run a tool as the actor of this handle; for an owner's handle, as an agent.

        ``arguments`` is an object or its JSON text, as chat APIs return it. An unknown tool, invalid arguments and an
        unreachable store give ``ok=False`` and a sentence for the model.
        """
        tools = {tool.name: tool for tool in _tools_of_profile(profile)}
        # This class is a base of ``Memory``.
        own: Any = self
        handle = own.as_actor(Actor.agent()) if own.actor.is_owner else own
        try:
            if name not in tools:
                raise InvalidInput(unknown_name_message("tool", name, list(tools)))
            result = tools[name].call(handle, _object(arguments))
        except KeepwardError as exc:
            # The model reads the error; an exception would end its loop.
            return ToolResult(ok=False, text=str(exc), data={})
        return ToolResult(ok=True, text="\n\n".join((result.text, *result.notes)), data=result.data)


def _tools_of_profile(name: ToolProfile) -> tuple[Tool, ...]:
    # The tools are defined in a higher layer, with the MCP server.
    from keepward.mcp.profiles import tool_set

    return tool_set(one_of("profile", name, PROFILES)).tools


def _object(arguments: Any) -> Mapping[str, Any]:
    try:
        given = load_json(arguments or "{}") if isinstance(arguments, str) else {} if arguments is None else arguments
    except ValueError:
        given = None
    if not isinstance(given, Mapping):
        raise InvalidInput("arguments must be a JSON object")
    return given
