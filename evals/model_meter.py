"""A model behind a meter: an OpenAI-compatible server on loopback that forwards chats and counts them.

Each memory system is given its address, so calls and tokens are counted alike, whichever client a system uses. It
answers ``/embeddings`` itself, with one embedder for all. Other paths are refused.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import numpy as np

from keepward.ports.models import Embedder

#: What a model thought aloud before its answer.
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
#: Seconds that a model may take for an answer.
PATIENCE = 600.0


class ModelFault(Exception):
    """The model did not answer; the text says why."""


@dataclass(slots=True)
class Spent:
    """What the model was asked, and what it read and wrote."""

    calls: int = 0
    #: Tokens of prompts and of replies, as the model reports them; 0 where it reports none.
    tokens_in: int = 0
    tokens_out: int = 0


class Meter:
    """Forward chats to a model and count them until ``take``."""

    def __init__(self, url: str, model: str, *, key: str, embedder: Embedder, seed: int) -> None:
        self.model, self.embedder = model, embedder
        #: The address to give to a memory system.
        self.url = ""
        self._upstream, self._seed = url.rstrip("/"), seed
        self._client = httpx2.Client(timeout=PATIENCE, headers={"Authorization": f"Bearer {key}"} if key else {})
        self._spent, self._lock = Spent(), threading.Lock()

    def take(self) -> Spent:
        """Return what was spent since the last call, and begin anew."""
        with self._lock:
            spent, self._spent = self._spent, Spent()
        return spent

    def ask(self, prompt: str, *, model: str = "") -> str:
        """Return the model's reply to one message, at temperature 0.

        Raises:
            ModelFault: it did not answer.
        """
        body = {"model": model or self.model, "messages": [{"role": "user", "content": prompt}]}
        status, data = self.chat(json.dumps(body | {"temperature": 0, "seed": self._seed}).encode())
        try:
            if status != 200:
                raise ValueError("refused")
            reply: str = json.loads(data)["choices"][0]["message"]["content"]
            return _THOUGHT.sub("", reply).strip()
        except (ValueError, KeyError, IndexError, TypeError) as fault:
            raise ModelFault(f"the model answered {status}: {data[:200].decode(errors='replace')}") from fault

    def chat(self, body: bytes) -> tuple[int, bytes]:
        """Forward one request for a chat completion; return the status and the body of the reply."""
        try:
            done = self._client.post(
                f"{self._upstream}/chat/completions", content=body, headers={"Content-Type": "application/json"}
            )
        except httpx2.HTTPError as fault:
            return 502, json.dumps({"error": {"message": f"no answer from the model: {fault}"}}).encode()
        if done.status_code == 200:
            usage = self._usage(done.content)
            with self._lock:
                self._spent.calls += 1
                self._spent.tokens_in += usage.get("prompt_tokens") or 0
                self._spent.tokens_out += usage.get("completion_tokens") or 0
        return done.status_code, done.content

    @staticmethod
    def _usage(data: bytes) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(data).get("usage") or {}
        except (ValueError, AttributeError):
            return {}
        return found

    def embeddings(self, body: bytes) -> bytes:
        """Answer a request for embeddings with the embedder of this run."""
        asked = json.loads(body)
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        vectors = np.asarray(self.embedder.embed(texts), dtype="<f4")
        packed = asked.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": place,
                "embedding": base64.b64encode(row.tobytes()).decode() if packed else row.tolist(),
            }
            for place, row in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return json.dumps({"object": "list", "model": asked.get("model", ""), "data": data, "usage": usage}).encode()

    @contextmanager
    def served(self) -> Iterator[Meter]:
        """Listen on a free port of loopback for as long as the block lasts."""
        meter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.endswith("/chat/completions"):
                    status, data = meter.chat(body)
                elif self.path.endswith("/embeddings"):
                    status, data = 200, meter.embeddings(body)
                else:
                    status, data = 404, b'{"error": {"message": "only chat completions and embeddings are here"}}'
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_port}/v1"
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()
                self._client.close()
