"""Vectors of a server with the OpenAI embeddings protocol, or of an installed runner.

Servers are Ollama, vLLM, llama.cpp or a hosted service. Runners are sentence-transformers and fastembed, which may
download weights from a hub on first use.

Invariants
(1) The key is sent to the named host only: redirects are refused, not followed.
(2) No error repeats a text, the key, or the server's response; it names the host, the status and what to do.
(3) Waits use the injected `sleep`; attempts, waits and the size of a response are limited.
(4) Rows are checked before use: count, dimension, finite, not zero.
(5) A runner is imported and its model loaded once, at the first use.
(6) A query and the question for the dimension wait for a limited time only, whatever the server does.
(7) Embedders with other prefixes have other ids.

The server decides whether one text gives the same bytes on every call.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from keepward.core.value import is_loopback
from keepward.embedding.minilm import disable_telemetry
from keepward.embedding.prefixes import Prefixes, parse_prefixes
from keepward.errors import ModelUnavailable
from keepward.locks import ForkSafeLock

_BATCH = 64
_ATTEMPTS = 4
_QUERY_ATTEMPTS = 2
_FIRST_WAIT_SECONDS = 0.5
#: Seconds without requests after a server failed.
PAUSE_SECONDS = 60.0
#: Seconds that a query waits for its vector.
QUERY_SECONDS = 5.0
_LONGEST_WAIT_SECONDS = 30.0
_LARGEST_ANSWER_BYTES = 64 * 2**20
#: What to do about a status.
_ADVICE = {
    401: "check the api key",
    403: "check the api key",
    404: "check the url and the model's name",
    413: "the texts are too long for it",
}


class ModelServer:
    """One endpoint for JSON requests and responses; thread safe.

    `what` names it in errors, such as "embedding". A request to a busy server (429, 5xx, no connection) is repeated up
    to `attempts` times, after 0.5, 1 and 2 seconds, or after `Retry-After` up to 30. No attempt begins later than
    `timeout_seconds` after the first, so a request without an answer in this time is not repeated.

    Raises:
        ValueError: `url` is not http or https, or contains a user name or password.
    """

    def __init__(
        self,
        what: str,
        url: str,
        path: str,
        api_key: str | None,
        *,
        timeout_seconds: float,
        attempts: int = _ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the {what} url must start with http:// or https:// and name a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"put the key into api_key, not into the {what} url")
        endpoint = parts.path.rstrip("/")
        if not endpoint.endswith(f"/{path}"):
            endpoint += f"/{path}" if endpoint.endswith("/v1") else f"/v1/{path}"
        self.host = parts.netloc
        self._what = what
        self._url = parts._replace(path=endpoint, fragment="").geturl()
        self._key = api_key
        self._timeout = timeout_seconds
        self._attempts = attempts
        self._sleep = sleep
        self._clock = clock
        self._paused_until, self._trouble = -math.inf, ""
        # A proxy of the environment cannot reach this machine's own servers, and must not see their texts.
        self._trust_env = not is_loopback(parts.hostname)
        self._tls: Any = None

    def send(self, body: dict[str, Any], *, attempts: int | None = None) -> bytes:
        """Post JSON and return the bytes of the answer; ``attempts`` are the server's by default.

        Raises:
            ModelUnavailable: no answer, a status that is an error, or more than 64 MiB.
        """
        library = _import("httpx2", "'keepward[client]'")
        if self._clock() < self._paused_until:
            raise self._paused()
        content = json.dumps(body).encode()
        wait, last, began = _FIRST_WAIT_SECONDS, attempts or self._attempts, self._clock()
        for attempt in range(1, last + 1):
            try:
                status, asked_to_wait, data = self._post(library, content)
            except library.HTTPError as error:
                trouble, asked_to_wait = f"did not answer ({type(error).__name__})", None
            except (ImportError, ValueError, OSError, library.InvalidURL):
                # The library's message may quote the key, or the password of a proxy.
                advice = "check its url, the api key, and the environment's proxy and certificates"
                raise self.error(f"cannot be asked; {advice}") from None
            else:
                if status < 300:
                    self._paused_until = -math.inf
                    return data
                trouble = f"answered with status {status}"
                if status < 400:
                    raise self.error(f"{trouble}; redirects are not followed, name the final url")
                if status != 429 and status < 500:
                    advice = _ADVICE.get(status, "check the model's name and its limits")
                    raise self.error(f"{trouble}; {advice}")
            if attempt == last or self._clock() - began >= self._timeout:
                break
            self._sleep(min(wait if asked_to_wait is None else asked_to_wait, _LONGEST_WAIT_SECONDS))
            wait *= 2
        raise self.pause(trouble if attempt == 1 else f"{trouble} in {attempt} attempts")

    def _post(self, library: Any, content: bytes) -> tuple[int, float | None, bytes]:
        """Send one request. Return the status, the seconds of `Retry-After`, and the body of a success."""
        # Bytes are counted as they come, so an answer must not be compressed.
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = "Bearer " + self._key
        if self._tls is None:
            # It takes 15 ms to make, longer than many an answer.
            self._tls = library.create_ssl_context(trust_env=self._trust_env)
        how = {"timeout": self._timeout, "trust_env": self._trust_env, "verify": self._tls, "follow_redirects": False}
        data = bytearray()
        with library.stream("POST", self._url, content=content, headers=headers, **how) as answer:
            if answer.status_code < 300:
                for piece in answer.iter_raw():
                    data += piece
                    if len(data) > _LARGEST_ANSWER_BYTES:
                        raise self.error("sent more than 64 MiB for one request")
            after = answer.headers.get("Retry-After", "")
            return answer.status_code, float(after) if after.isascii() and after.isdecimal() else None, bytes(data)

    def pause(self, trouble: str) -> ModelUnavailable:
        """Ask nothing for a minute, unless an answer arrives after all; return the error that says so."""
        self._trouble, self._paused_until = trouble, self._clock() + PAUSE_SECONDS
        return self._paused()

    def _paused(self) -> ModelUnavailable:
        return self.error(f"{self._trouble}; it is asked again in a minute")

    def error(self, trouble: str) -> ModelUnavailable:
        """Return an error with the name of this server."""
        return ModelUnavailable(f"the {self._what} server at {self.host} {trouble}")


def as_utf8_text(text: str) -> str:
    """Return a text that UTF-8 can encode; never empty."""
    return text.encode("utf-8", "replace").decode("utf-8") or " "


class HttpEmbedder:
    """Ask `model` at `url` for vectors, 64 texts a request; thread safe.

    `url` is the endpoint, or its beginning: `/v1/embeddings` or `/embeddings` is added if missing. `dim` is the
    required dimension; without it, the first use of `dim` or `id` asks the server once. `prefixes` are those of the
    model's family by default. A query waits `query_seconds` and is repeated once at most. A late answer ends the
    pause after a failure.

    Raises:
        ValueError: as `ModelServer`.
    """

    def __init__(
        self,
        url: str,
        model: str,
        api_key: str | None = None,
        dim: int | None = None,
        *,
        prefixes: Prefixes | None = None,
        query_seconds: float = QUERY_SECONDS,
        timeout_seconds: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = ModelServer(
            "embedding", url, "embeddings", api_key, timeout_seconds=timeout_seconds, sleep=sleep, clock=clock
        )
        self._model = model
        self.prefixes = parse_prefixes("auto", model) if prefixes is None else prefixes
        self._query_seconds = query_seconds
        self._dim = dim
        self._lock = ForkSafeLock()

    @property
    def id(self) -> str:
        """Host, model, dimension and prefixes; new weights of a server under the same name cannot be noticed."""
        return f"http:{self._server.host}:{self._model}:{self.dim}{self.prefixes.mark}"

    @property
    def dim(self) -> int:
        """Components of a vector; asks the server the first time unless it was given.

        Raises:
            ModelUnavailable: the server does not answer or answers nonsense.
        """
        if self._dim is None:
            self._ask_in_time(["dimension"])
        assert self._dim is not None
        return self._dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._ask([self.prefixes.document + text for text in texts])

    def embed_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries; unlike ``embed``, this waits a short time only."""
        return self._ask_in_time([self.prefixes.query + text for text in texts])

    def _ask_in_time(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # A time limit of the connection is one for each of its steps, and a slow server can make many.
        answers: SimpleQueue[NDArray[np.float32] | Exception] = SimpleQueue()

        def ask() -> None:
            try:
                answers.put(self._ask(texts, attempts=_QUERY_ATTEMPTS))
            except Exception as exc:  # noqa: BLE001  raised in the caller's thread
                answers.put(exc)

        Thread(target=ask, name="keepward-query", daemon=True).start()
        try:
            answer = answers.get(timeout=self._query_seconds)
        except Empty:
            raise self._server.pause(f"did not answer a query within {self._query_seconds:g} seconds") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _ask(self, texts: Sequence[str], *, attempts: int | None = None) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        parts = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        return np.concatenate([self._request(part, attempts) for part in parts])

    def _request(self, texts: Sequence[str], attempts: int | None) -> NDArray[np.float32]:
        # Servers refuse empty input and bytes that are not UTF-8, and with them the other 63 texts.
        body = {"model": self._model, "input": [as_utf8_text(text) for text in texts], "encoding_format": "float"}
        data = self._server.send(body, attempts=attempts)
        try:
            entries = sorted(json.loads(data)["data"], key=lambda entry: int(entry["index"]))
            rows = np.array([entry["embedding"] for entry in entries], dtype=np.float64)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise self._server.error("sent something that is not an embeddings answer; check the url") from None
        if rows.ndim != 2 or [entry["index"] for entry in entries] != list(range(len(texts))):
            raise self._server.error(f"did not send exactly one vector for each of {len(texts)} texts")
        lengths = np.linalg.norm(rows, axis=1)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._server.error("sent a vector that is zero or not finite")
        with self._lock:
            if self._dim is None:
                self._dim = rows.shape[1]
        if rows.shape[1] != self._dim:
            sent = f"sent {rows.shape[1]} dimensions where {self._dim} were expected; check the model"
            raise self._server.error(sent)
        return _unit(rows)


class RunnerEmbedder:
    """A model of sentence-transformers or fastembed; one text at a time, so that a batch changes no vector.

    ``prefixes`` are those of the model's family by default, else those that the model itself names, if any.
    """

    def __init__(self, runner: str, model: str, *, prefixes: Prefixes | None = None) -> None:
        self._runner = runner
        self._name = model
        self._chosen = prefixes
        self._lock = ForkSafeLock()
        self._opened: tuple[_Runner, int] | None = None

    @property
    def id(self) -> str:
        """Runner, model, dimension and prefixes; loads the model."""
        return f"{self._runner}:{self._name}:{self.dim}{self.prefixes.mark}"

    @property
    def dim(self) -> int:
        """Components of a vector; loads the model and embeds one word."""
        return self._open()[1]

    @property
    def prefixes(self) -> Prefixes:
        """What is put in front of texts; loads the model."""
        return self._open()[0].prefixes

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        runner = self._open()[0]
        return self._vectors(runner.document, runner.prefixes.document, texts)

    def embed_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries."""
        runner = self._open()[0]
        return self._vectors(runner.query, runner.prefixes.query, texts)

    def _vectors(self, encode: Callable[[str], Any], prefix: str, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([encode(prefix + text) for text in texts], dtype=np.float64)
        return _unit(rows.reshape(len(texts), self.dim))

    def _open(self) -> tuple[_Runner, int]:
        with self._lock:
            if self._opened is None:
                runner = _RUNNERS[self._runner](self._name)
                chosen = self._chosen
                if chosen is None:
                    chosen = parse_prefixes("auto", self._name)
                    chosen = chosen if any(chosen) else runner.prefixes
                runner = runner._replace(prefixes=chosen)
                self._opened = runner, len(runner.document("dimension"))
            return self._opened


class _Runner(NamedTuple):
    """A loaded model: functions from a text to its vector, and the prefixes that the model names."""

    document: Callable[[str], Any]
    query: Callable[[str], Any]
    prefixes: Prefixes = Prefixes()


def _sentence_transformers(name: str) -> _Runner:
    model = _import("sentence_transformers").SentenceTransformer(name)
    named = getattr(model, "prompts", None) or {}
    prefixes = Prefixes(named.get("query") or "", named.get("document") or named.get("passage") or "")

    def encode(text: str) -> Any:
        # With an empty prompt the model adds none of its own.
        return model.encode(text, prompt="", show_progress_bar=False)

    return _Runner(encode, encode, prefixes)


def _fastembed(name: str) -> _Runner:
    with suppress(ImportError):
        disable_telemetry()
    model = _import("fastembed").TextEmbedding(name)
    return _Runner(
        document=lambda text: next(iter(model.passage_embed([text]))),
        query=lambda text: next(iter(model.query_embed(text))),
    )


_RUNNERS = {"sentence-transformers": _sentence_transformers, "fastembed": _fastembed}


def _import(module: str, distribution: str = "") -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.replace("_", "-")
        advice = f"pip install {distribution or package}"
        raise ModelUnavailable(f"this model needs the package {package}: {advice}") from error


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray(rows / lengths, dtype=np.float32)
