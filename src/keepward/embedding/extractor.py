"""Facts of a conversation, extracted by a server with the OpenAI chat protocol: Ollama, vLLM, llama.cpp, for example.

Invariants
(1) A model only proposes: its facts pass the gates like any other memory.
(2) Every fact quotes a user's message word for word. Other facts are dropped, and so are facts that are too long or too
    many.
(3) The messages are one JSON text after instructions that call them data. If an instruction in a message changes the
    model's answer, (2) and the gates limit the effect.
(4) An answer that is not JSON of the expected form raises ``ModelUnavailable``; the error does not repeat the answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keepward.core.messages import Fact, Turn
from keepward.core.patterns import load_toml
from keepward.core.value import from_micros
from keepward.embedding.remote import ModelServer, as_utf8_text

#: Maximum characters of a fact, and maximum facts of one answer.
MAX_FACT_CHARS = 300
MAX_FACTS = 64
_ASKED: Mapping[str, Any] = load_toml(__package__, "extractor.toml")


class HttpExtractor:
    """Ask `model` at `url` for the facts of a conversation. A URL without `/v1/chat/completions` is completed.

    A busy server is asked twice; one that does not answer within `timeout_seconds` is asked once.

    Raises:
        ValueError: as `Server`.
    """

    def __init__(
        self,
        url: str,
        model: str,
        api_key: str | None = None,
        *,
        timeout_seconds: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._server = ModelServer(
            "chat", url, "chat/completions", api_key, timeout_seconds=timeout_seconds, attempts=2, sleep=sleep
        )

    @property
    def id(self) -> str:
        return f"http:{self._server.host}:{self._model}"

    def extract(self, turns: Sequence[Turn]) -> list[Fact]:
        if not any(turn.role == "user" for turn in turns):
            return []
        talk = [
            {
                "message": number,
                "role": turn.role,
                "speaker": turn.speaker,
                "date": None if turn.said_at is None else from_micros(turn.said_at).date().isoformat(),
                "text": as_utf8_text(turn.text),
            }
            for number, turn in enumerate(turns)
        ]
        body = {
            "model": self._model,
            "temperature": 0,
            "messages": [
                {"role": "system", "content": _ASKED["system"]},
                {"role": "user", "content": json.dumps(talk, ensure_ascii=False)},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "facts", "strict": True, "schema": _ASKED["schema"]},
            },
        }
        found = [fact for each in self._answer(self._server.send(body)) if (fact := _checked(each, turns))]
        return sorted(found[:MAX_FACTS], key=lambda fact: fact.turn)

    def _answer(self, data: bytes) -> list[Any]:
        try:
            content = json.loads(data)["choices"][0]["message"]["content"]
            facts = json.loads(content)["facts"]
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            raise self._server.error("sent something that is no list of facts; check the model") from None
        if not isinstance(facts, list):
            raise self._server.error("sent something that is no list of facts; check the model")
        return facts


def _checked(value: Any, turns: Sequence[Turn]) -> Fact | None:
    """Return what a model said as a fact; None where it breaks (2)."""
    if not isinstance(value, dict):
        return None
    text, turn, quote = (value.get(name) for name in ("fact", "message", "quote"))
    if not isinstance(text, str) or not isinstance(quote, str) or type(turn) is not int:
        return None
    text, quote = " ".join(text.split()), quote.strip()
    if not 0 <= turn < len(turns) or turns[turn].role != "user":
        return None
    if not 0 < len(text) <= MAX_FACT_CHARS or not quote or quote not in turns[turn].text:
        return None
    return Fact(text, quote=quote, turn=turn, importance=0.4, confidence=0.7)
