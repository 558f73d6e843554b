"""A model of few words: answers an OpenAI-compatible client from a script, and keeps what it was sent.

Asked with tools, it first calls one of them; asked again with the tool's result, it repeats that result. It listens
on loopback. Whatever else arrives, a proxy's CONNECT among it, is refused and kept as well.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = "scripted"


class Model:
    """What was asked of the model, and what it says."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool, self.arguments = tool, arguments
        #: Bodies of the calls, in the order in which they came.
        self.asked: list[dict[str, Any]] = []
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
        elif body.get("tools"):
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
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            if self.path != "/v1/chat/completions":
                self.refuse()
                return
            model.asked.append(body)
            frames = [chunk(delta, reason) for delta, reason in model.deltas(body)]
            data = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(data.encode())))
            self.end_headers()
            self.wfile.write(data.encode())

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
            thread.join()


def chunk(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": NAME}
    return {**head, "choices": [choice], **({"usage": usage} if reason else {})}
