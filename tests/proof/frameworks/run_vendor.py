"""The page of a vendor, by its real SDK: what was said on Monday is in the instructions that the model has on Tuesday."""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from keepward import Actor, Memory

SENTENCE = "I have read that."
FACT = "the deploy target is db-7"
#: An answer of each service, by the end of its path.
ANSWERS: dict[str, dict[str, Any]] = {
    "/chat/completions": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": SENTENCE}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
    "/messages": {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [{"type": "text", "text": SENTENCE}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    ":generateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": SENTENCE}]}, "finishReason": "STOP"}]
    },
    "/api/chat": {"model": "scripted", "message": {"role": "assistant", "content": SENTENCE}, "done": True},
}
#: Where each SDK reads the address of the server and a key.
ADDRESSES = {"OPENAI_BASE_URL": "/v1", "ANTHROPIC_BASE_URL": "", "GOOGLE_GEMINI_BASE_URL": "", "OLLAMA_HOST": ""}
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
asked: list[dict[str, Any]] = []


class Service(BaseHTTPRequestHandler):
    """A vendor that says one sentence, and keeps what it was asked."""

    def do_POST(self) -> None:
        asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = next(each for end, each in ANSWERS.items() if self.path.partition("?")[0].endswith(end))
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def instructions(body: dict[str, Any]) -> str:
    """Return what a call says to the model as its instructions, in the form of each service."""
    if "messages" not in body:
        return json.dumps(body["systemInstruction"])
    if "system" in body:
        return json.dumps(body["system"])
    (only,) = [each["content"] for each in body["messages"] if each["role"] == "system"]
    return str(only)


def main(page: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ |= {
            name: f"http://127.0.0.1:{server.server_port}{path}" for name, path in ADDRESSES.items()
        } | dict.fromkeys(KEYS, "none")
        exec(compile(page, "page", "exec"), {"__name__": "page"})
        server.shutdown()
    monday, tuesday = map(instructions, asked)
    assert FACT not in monday, monday
    assert FACT in tuesday, tuesday
    with Memory.open("memory.db", actor=Actor.operator("me")) as mem:
        ana = mem.user("ana")
        said = [each.text for each in ana.list_memories(kinds=["event"])]
        assert f"Remember that {FACT}." in said, said
        assert said.count(SENTENCE) == 2, said
        assert FACT not in mem.user("bob").context("Where do we deploy?").text


main(sys.stdin.read())
