"""An agent of OpenAI's SDK with a session in a store: what one process keeps, the model of the next one is sent."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from keepward import Memory
from keepward.integrations import GateWarning
from keepward.integrations.openai_agents import KeepwardSession

PASSWORD = "the database password is Tr0ub4dor&3x!"

set_tracing_disabled(True)


class Scripted(Model):
    """A model that answers by what it was sent, and keeps that."""

    sent = ""

    async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
        self.sent = str(named["input"] if "input" in named else given[1])
        text = ResponseOutputText(
            text="Use tabs." if "Ana prefers tabs" in self.sent else "Noted.", type="output_text", annotations=[]
        )
        message = ResponseOutputMessage(id="1", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise AssertionError("nobody asks for it")


def say(mem: Memory, text: str) -> tuple[str, str]:
    """Say something in a session; return the answer and what the model was sent."""
    model = Scripted()
    session = KeepwardSession("monday", mem)
    result = asyncio.run(Runner.run(Agent(name="helper", model=model), text, session=session))
    return str(result.final_output), model.sent


with Memory.open("memory.db", scope="/app") as mem:
    if sys.argv[1] == "remember":
        assert say(mem, "My cat is called Tom.")[0] == "Noted."
        assert say(mem, "Ana prefers tabs.")[0] == "Use tabs."
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            say(mem, PASSWORD)
        assert any(issubclass(each.category, GateWarning) for each in said), said
    else:
        answer, sent = say(mem, "How should I indent?")
        assert answer == "Use tabs."
        assert "My cat is called Tom." in sent
        assert PASSWORD not in sent, "a password was stored"
        assert "Tom" in mem.call_tool("recall", {"query": "the cat"}).text
        asyncio.run(KeepwardSession("monday", mem).clear_session())
        assert not mem.list_memories(session="monday")
