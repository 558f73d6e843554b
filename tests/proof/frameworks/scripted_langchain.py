"""A model of LangChain that answers from a script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


class Scripted(GenericFakeChatModel):
    """Calls tools, each with its arguments, one after another, and then says that it is done."""

    def bind_tools(self, tools: Any, **_: Any) -> Scripted:
        """Return itself: it knows what it will call."""
        return self


def calling(*calls: tuple[str, dict[str, Any]]) -> Scripted:
    """Return a model that calls these tools."""

    def messages() -> Iterator[AIMessage]:
        for number, (name, arguments) in enumerate(calls):
            yield AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{number}"}])
        yield AIMessage("Done")

    return Scripted(messages=messages())


def results(state: dict[str, Any]) -> list[str]:
    """Return what the tools answered."""
    return [str(each.content) for each in state["messages"] if each.type == "tool"]
