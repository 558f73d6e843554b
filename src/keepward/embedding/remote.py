"""Vectors of a server with the OpenAI embeddings protocol, or of an installed runner.

Servers are Ollama, vLLM, llama.cpp or a hosted service. Runners are sentence-transformers and fastembed, which may
download weights from a hub on first use.

Invariants
(1) The key is sent to the named host only: redirects are refused, not followed.
(2) No error repeats a text, the key, or the server's response; it names the host, the status and what to do.
(3) Waits use the injected `sleep`; attempts, waits and the size of a response are limited.
(4) Rows are checked before use: count, dimension, finite, not zero.
(5) A runner is imported and its model loaded once, at the first use of `id`, `dim` or `embed`.

The server decides whether one text gives the same bytes on every call.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from importlib import import_module
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import BaseHandler, HTTPRedirectHandler, ProxyHandler, Request, build_opener

import numpy as np
from numpy.typing import NDArray

from keepward.core.value import is_loopback
from keepward.embedding.minilm import disable_telemetry
from keepward.errors import ModelUnavailable
from keepward.locks import ForkSafeLock

_BATCH = 64
_ATTEMPTS = 4
_FIRST_WAIT_SECONDS = 0.5
#: Seconds without requests after a server failed.
PAUSE_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 30.0
_LARGEST_ANSWER_BYTES = 64 * 2**20


class Server:
    """One endpoint for JSON requests and responses; thread safe.

    `what` names it in errors, such as "embedding". A request to a busy server (429, 5xx, no answer in
    `timeout_seconds`) is repeated up to `attempts` times, after 0.5, 1 and 2 seconds, or after `Retry-After` up to 30.

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
        self.host = parts.netloc
        self._what = what
        self._url = parts._replace(path=_endpoint(parts.path, path), fragment="").geturl()
        self._key = api_key
        self._timeout = timeout_seconds
        self._attempts = attempts
        self._sleep = sleep
        self._clock = clock
        self._paused_until = -math.inf
        handlers: list[BaseHandler] = [_NoRedirect()]
        if is_loopback(parts.hostname):
            # A proxy of the environment cannot reach this machine's own servers, and must not see their texts.
            handlers.append(ProxyHandler({}))
        self._opener = build_opener(*handlers)

    def send(self, body: dict[str, Any]) -> bytes:
        """Post JSON and return the bytes of the answer.

        Raises:
            ModelUnavailable: no answer, a status that is an error, or more than 64 MiB.
        """
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = "Bearer " + self._key
        if self._clock() < self._paused_until:
            raise self.error("failed less than a minute ago and is not asked; it is asked again after the minute")
        wait = _FIRST_WAIT_SECONDS
        for attempt in range(1, self._attempts + 1):
            asked_to_wait: float | None = None
            try:
                # The scheme was checked when the endpoint was named.
                request = Request(self._url, data=json.dumps(body).encode(), headers=headers, method="POST")  # noqa: S310
                with self._opener.open(request, timeout=self._timeout) as answer:
                    data: bytes = answer.read(_LARGEST_ANSWER_BYTES + 1)
                if len(data) > _LARGEST_ANSWER_BYTES:
                    raise self.error("sent more than 64 MiB for one request")
                self._paused_until = -math.inf
                return data
            except HTTPError as error:
                status = error.code
                asked_to_wait = _seconds(error.headers.get("Retry-After"))
                error.close()
                if status != 429 and status < 500:
                    raise self.error(f"answered with status {status}{_advice(status)}") from None
                trouble = f"answered with status {status}"
            except (OSError, HTTPException) as error:
                trouble = f"did not answer ({type(error).__name__})"
            if attempt < self._attempts:
                self._sleep(min(wait if asked_to_wait is None else asked_to_wait, _LONGEST_WAIT_SECONDS))
                wait *= 2
        self._paused_until = self._clock() + PAUSE_SECONDS
        raise self.error(f"{trouble} in {self._attempts} attempts; it is asked again in a minute")

    def error(self, trouble: str) -> ModelUnavailable:
        """Return an error with the name of this server."""
        return ModelUnavailable(f"the {self._what} server at {self.host} {trouble}")


def as_utf8_text(text: str) -> str:
    """Return a text that UTF-8 can encode; never empty."""
    return text.encode("utf-8", "replace").decode("utf-8") or " "


class HttpEmbedder:
    """Ask `model` at `url` for vectors, 64 texts a request; thread safe.

    `url` is the endpoint, or its beginning: `/v1/embeddings` or `/embeddings` is added if missing. `dim` is the
    required dimension; without it, the first use of `dim` or `id` asks the server once.

    Raises:
        ValueError: as `Server`.
    """

    def __init__(
        self,
        url: str,
        model: str,
        api_key: str | None = None,
        dim: int | None = None,
        *,
        timeout_seconds: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = Server(
            "embedding", url, "embeddings", api_key, timeout_seconds=timeout_seconds, sleep=sleep, clock=clock
        )
        self._model = model
        self._dim = dim
        self._lock = ForkSafeLock()

    @property
    def id(self) -> str:
        """Host, model and dimension; new weights of a server under the same name cannot be noticed."""
        return f"http:{self._server.host}:{self._model}:{self.dim}"

    @property
    def dim(self) -> int:
        """Components of a vector; asks the server the first time unless it was given.

        Raises:
            ModelUnavailable: the server does not answer or answers nonsense.
        """
        if self._dim is None:
            self._request(["dimension"])
        assert self._dim is not None
        return self._dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return np.concatenate([self._request(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)])

    def _request(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # Servers refuse empty input and bytes that are not UTF-8, and with them the other 63 texts.
        body = {"model": self._model, "input": [as_utf8_text(text) for text in texts], "encoding_format": "float"}
        rows = self._rows(self._server.send(body), len(texts))
        with self._lock:
            if self._dim is None:
                self._dim = rows.shape[1]
        if rows.shape[1] != self._dim:
            sent = f"sent {rows.shape[1]} dimensions where {self._dim} were expected; check the model"
            raise self._server.error(sent)
        return rows

    def _rows(self, data: bytes, count: int) -> NDArray[np.float32]:
        try:
            entries = sorted(json.loads(data)["data"], key=lambda entry: int(entry["index"]))
            rows = np.array([entry["embedding"] for entry in entries], dtype=np.float64)
        except (ValueError, KeyError, TypeError):
            raise self._server.error("sent something that is not an embeddings answer; check the url") from None
        if rows.ndim != 2 or len(rows) != count or [entry["index"] for entry in entries] != list(range(count)):
            raise self._server.error(f"did not send exactly one vector for each of {count} texts")
        lengths = np.linalg.norm(rows, axis=1)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._server.error("sent a vector that is zero or not finite")
        return _unit(rows)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow nothing (1); the redirect then surfaces as its own status."""


def _endpoint(path: str, end: str) -> str:
    path = path.rstrip("/")
    if path.endswith(f"/{end}"):
        return path
    return path + (f"/{end}" if path.endswith("/v1") else f"/v1/{end}")


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isascii() and header.isdecimal() else None


def _advice(status: int) -> str:
    match status:
        case 401 | 403:
            return "; check the api key"
        case 404:
            return "; check the url and the model's name"
        case 413:
            return "; the texts are too long for it"
        case _ if 300 <= status < 400:
            return "; redirects are not followed, name the final url"
        case _:
            return "; check the model's name and its limits"


class RunnerEmbedder:
    """A model of sentence-transformers or fastembed; one text at a time, so that a batch changes no vector."""

    def __init__(self, runner: str, model: str) -> None:
        self._runner = runner
        self._name = model
        self._lock = ForkSafeLock()
        self._opened: tuple[Callable[[str], Any], int] | None = None

    @property
    def id(self) -> str:
        """Runner, model and dimension; loads the model."""
        return f"{self._runner}:{self._name}:{self.dim}"

    @property
    def dim(self) -> int:
        """Components of a vector; loads the model and embeds one word."""
        return self._open()[1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        encode, dim = self._open()
        return _unit(np.array([encode(text) for text in texts], dtype=np.float64).reshape(len(texts), dim))

    def _open(self) -> tuple[Callable[[str], Any], int]:
        with self._lock:
            if self._opened is None:
                encode = _RUNNERS[self._runner](self._name)
                self._opened = encode, len(encode("dimension"))
            return self._opened


def _sentence_transformers(name: str) -> Callable[[str], Any]:
    model = _import("sentence_transformers").SentenceTransformer(name)
    return lambda text: model.encode(text, show_progress_bar=False)


def _fastembed(name: str) -> Callable[[str], Any]:
    with suppress(ImportError):
        disable_telemetry()
    model = _import("fastembed").TextEmbedding(name)
    return lambda text: next(iter(model.embed([text])))


_RUNNERS = {"sentence-transformers": _sentence_transformers, "fastembed": _fastembed}


def _import(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.replace("_", "-")
        raise ModelUnavailable(f"this embedder needs the package {package}: pip install {package}") from error


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray(rows / lengths, dtype=np.float32)
