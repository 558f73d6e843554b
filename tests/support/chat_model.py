"""An OpenAI-compatible model on loopback that answers from what it reads, by rule.

A question gets the line of the notes that shares most words with it. A judge says RIGHT if the answer has the expected
words. What asks for a tool or for JSON of a schema gets an object of that shape, with the last message in its texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.loopback import Script, serving

PROMPT_TOKENS, REPLY_TOKENS = 100, 7
_ANSWER = re.compile(r"Notes:\n(.*)\n\nQuestion: (.*)", re.DOTALL)
_JUDGE = re.compile(r"Expected answer: (.*?)\nAnswer: (.*?)\n\nReply", re.DOTALL)


class ChatModel(Script):
    """What the model was asked, and where it listens."""

    def __init__(self, *, names: tuple[str, str] = ("Ada", "boat")) -> None:
        super().__init__(headers={"Content-Type": "application/json"})
        #: Names of things in objects of a schema, so that a graph has two nodes.
        self.names = names
        self.url = ""

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Bodies of the requests, each with its authorisation."""
        return [body | {"authorization": key or ""} for _, key, body in self.seen]

    def answer(self, asked: dict[str, Any]) -> Any:
        message = self.reply(asked)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        return {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {
                "prompt_tokens": PROMPT_TOKENS,
                "completion_tokens": REPLY_TOKENS,
                "total_tokens": PROMPT_TOKENS + REPLY_TOKENS,
            },
        }

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the message that answers a request."""
        text = str(body["messages"][-1]["content"])
        if tools := body.get("tools"):
            # A client with memories offers to change them, too.
            function = next(
                (it["function"] for it in tools if it["function"]["name"] == "Memory"), tools[0]["function"]
            )
            arguments = json.dumps(self.filled(function.get("parameters", {}), text))
            call = {"id": "call_1", "type": "function", "function": {"name": function["name"], "arguments": arguments}}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        shape = body.get("response_format", {})
        if shape.get("type") == "json_schema":
            return said(json.dumps(self.filled(shape["json_schema"]["schema"], text)))
        if shape.get("type") == "json_object":
            return said(json.dumps({"memory": [{"id": "0", "text": last(text)}]}))
        if match := _JUDGE.search(text):
            return said("RIGHT" if match[1].casefold() in match[2].casefold() else "WRONG")
        if match := _ANSWER.search(text):
            words = set(re.findall(r"\w+", match[2].casefold()))
            lines = [line for line in match[1].splitlines() if words & set(re.findall(r"\w+", line.casefold()))]
            best = max(lines, key=lambda line: len(words & set(re.findall(r"\w+", line.casefold()))), default="")
            return said(f"<think>Which line?</think>{best or 'I do not know'}")
        return said(last(text))

    def filled(self, schema: dict[str, Any], text: str) -> Any:
        """Return a value of a JSON schema."""
        return self._filled(schema, schema.get("$defs", {}), text, "")

    def _filled(self, schema: dict[str, Any], defs: dict[str, Any], text: str, name: str) -> Any:
        if "$ref" in schema:
            schema = defs[schema["$ref"].rpartition("/")[2]]
        for several in ("anyOf", "allOf", "oneOf"):
            if several in schema:
                return self._filled(schema[several][0], defs, text, name)
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                properties = schema.get("properties", {})
                return {
                    key: self._filled(each, defs, text, key)
                    for key, each in properties.items()
                    if key in schema.get("required", properties)
                }
            case "array":
                item = schema.get("items", {})
                made = self._filled(item, defs, text, name)
                # Two things with names, so that something can connect them.
                named = isinstance(made, dict) and "name" in made
                return [made | {"name": each} for each in self.names] if named else [made]
            case "integer" | "number":
                return 0
            case "boolean":
                return False
        given = {"source_entity_name": self.names[0], "target_entity_name": self.names[1], "relation_type": "HAS"}
        return given.get(name, last(text))


def last(text: str) -> str:
    """Return the last line of a message that a person could have said."""
    lines = [line.strip() for line in re.findall(r"^.*\b(?:Ada|Ben): .*$", text, re.MULTILINE)]
    return lines[-1] if lines else "nothing"


def said(text: str) -> dict[str, Any]:
    """Return a message of the model."""
    return {"role": "assistant", "content": text}


@contextmanager
def chatting(model: ChatModel) -> Iterator[ChatModel]:
    """Serve a model on a free port of loopback for as long as the block lasts."""
    with serving() as server:
        server.script = model
        model.url = f"{server.url}/v1"
        yield model
