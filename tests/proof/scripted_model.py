"""A model of few words: answers an OpenAI-compatible client from a script, and keeps what it was sent.

It speaks as four services do. By chat completions, asked with tools, it first calls one of them; asked again with the
tool's result, it repeats that result. By the others it says one sentence. It listens on loopback. Whatever else arrives, a proxy's CONNECT among it, is refused and kept as well.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = "scripted"
SENTENCE = "I have read that."


class Model:
    """What was asked of the model, and what it says."""

    def __init__(self, tool: str = "", arguments: dict[str, Any] | None = None) -> None:
        self.tool, self.arguments = tool, arguments or {}
        #: Bodies of the calls, in the order in which they came.
        self.asked: list[dict[str, Any]] = []
        #: What was sent to the model by any of the services, byte for byte.
        self.sent: list[bytes] = []
        #: Requests for anything that is not this model.
        self.strays: list[str] = []
        self.url = ""

    def listed(self) -> list[str]:
        """Return the names of all tools that the model was shown."""
        return sorted({tool["function"]["name"] for body in self.asked for tool in body.get("tools", ())})

    def results(self) -> list[str]:
        """Return the results of tools that were fed back to the model."""
        return [said(message) for body in self.asked for message in body["messages"] if message["role"] == "tool"]

    def deltas(self, body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str | None]]:
        """Return what the model says to a call, piece by piece, with the reason why it stops."""
        told = [said(message) for message in body["messages"] if message["role"] == "tool"]
        if told:
            yield {"role": "assistant", "content": f"I looked it up: {told[-1]}"}, None
            yield {}, "stop"
        elif body.get("tools") and self.tool:
            name = next((n for n in self.names(body) if n.endswith(self.tool)), self.tool)
            function = {"name": name, "arguments": json.dumps(self.arguments)}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            yield {"role": "assistant", "tool_calls": [call]}, None
            yield {}, "tool_calls"
        else:
            # A title, a summary: clients ask for such things without tools.
            yield {"role": "assistant", "content": "A talk about style"}, None
            yield {}, "stop"

    @staticmethod
    def names(body: dict[str, Any]) -> list[str]:
        return [tool["function"]["name"] for tool in body["tools"]]


def said(message: dict[str, Any]) -> str:
    """Return the text of a message, whose content may come in parts."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@contextmanager
def answering(model: Model) -> Iterator[Model]:
    """Serve a model on a free port of loopback for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            # Some clients pack what they send.
            data = gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data
            path = self.path.partition("?")[0]
            spoken = next((say for end, say in SERVICES.items() if path.endswith(end)), None)
            if spoken is None:
                self.refuse()
                return
            model.sent.append(data)
            frames = "".join(spoken(model, json.loads(data))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(frames)))
            self.end_headers()
            self.wfile.write(frames)

        def refuse(self) -> None:
            model.strays.append(f"{self.command} {self.path}")
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_CONNECT = do_PUT = do_HEAD = refuse  # noqa: N815

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join(20)


def chunk(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": NAME}
    return {**head, "choices": [choice], **({"usage": usage} if reason else {})}


def completed(model: Model, body: dict[str, Any]) -> Iterator[str]:
    """Speak as OpenAI's chat completions, which OpenCode uses."""
    model.asked.append(body)
    for delta, reason in model.deltas(body):
        yield f"data: {json.dumps(chunk(delta, reason))}\n\n"
    yield "data: [DONE]\n\n"


def messages(_: Model, body: dict[str, Any]) -> Iterator[str]:
    """Speak as Anthropic's messages, which Claude Code uses."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield event("message_start", message={**head, **dict.fromkeys(stop), "usage": usage})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": SENTENCE})
    yield event("content_block_stop", index=0)
    yield event("message_delta", delta=stop, usage=usage)
    yield event("message_stop")


def responses(_: Model, body: dict[str, Any]) -> Iterator[str]:
    """Speak as OpenAI's responses, which Codex uses."""
    part = {"type": "output_text", "text": SENTENCE, "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": body["model"], "output": []}
    yield event("response.created", response={**response, "status": "in_progress"})
    yield event("response.output_item.done", output_index=0, item=item)
    yield event("response.completed", response={**response, "status": "completed", "output": [item], "usage": usage})


def generated(_: Model, __: dict[str, Any]) -> Iterator[str]:
    """Speak as Gemini's generated content, which Gemini CLI uses."""
    said = {"content": {"role": "model", "parts": [{"text": SENTENCE}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    yield f"data: {json.dumps({'candidates': [said], 'usageMetadata': usage})}\n\n"


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


#: How each service is spoken, by the end of its path.
SERVICES: dict[str, Callable[[Model, dict[str, Any]], Iterator[str]]] = {
    "/chat/completions": completed,
    "/messages": messages,
    "/responses": responses,
    ":streamGenerateContent": generated,
}
