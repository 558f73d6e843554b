"""Vectors from somewhere else: a server that speaks the OpenAI embeddings protocol, or a runner that is installed.

Servers are Ollama, vLLM, llama.cpp or a hosted service; runners are sentence-transformers and fastembed, which may
fetch weights from a hub on first use.

Invariants
(1) The key goes to the host that was named and nowhere else: redirects are refused, not followed.
(2) No error repeats a text, the key, or what the server wrote; it names the host, the status and what to do.
(3) Waiting happens through the injected `sleep`, and there is a bound on attempts, waits and answer size.
(4) Rows are checked (count, dimension, finite, not zero) before they are believed.
(5) A runner is imported and its model loaded at the first use of `id`, `dim` or `embed`, once.

Whether one text gives the same bytes on every call is up to the server.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from http.client import HTTPException
from importlib import import_module
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import BaseHandler, HTTPRedirectHandler, ProxyHandler, Request, build_opener

import numpy as np
from numpy.typing import NDArray

from keepward.errors import ModelUnavailable
from keepward.model.value import is_loopback

_BATCH = 64
_ATTEMPTS = 4
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0
_LARGEST_ANSWER_BYTES = 64 * 2**20


class HttpEmbedder:
    """Ask `model` at `url` for vectors, 64 texts a request; thread safe.

    `url` is the endpoint, or its beginning: `/v1/embeddings` or `/embeddings` is added where missing. `dim` is
    what the answer must have; when it is not given, the first use of `dim` or `id` asks the server once.
    Busy servers (429, 5xx, no answer in `timeout_seconds`) are asked up to four times, waiting 0.5, 1 and 2
    seconds, or what `Retry-After` says up to 30.

    Raises:
        ValueError: `url` is not http or https, or carries a user name or password.
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
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the embedding url must start with http:// or https:// and name a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("put the key into api_key, not into the embedding url")
        if not model:
            raise ValueError("name the embedding model")
        self._host = parts.netloc
        self._url = parts._replace(path=_endpoint(parts.path), fragment="").geturl()
        self._model = model
        self._key = api_key
        self._dim = dim
        self._timeout = timeout_seconds
        self._sleep = sleep
        self._lock = threading.Lock()
        handlers: list[BaseHandler] = [_NoRedirect()]
        if is_loopback(parts.hostname):
            # A proxy of the environment cannot reach this machine's own servers, and must not see their texts.
            handlers.append(ProxyHandler({}))
        self._opener = build_opener(*handlers)

    @property
    def id(self) -> str:
        """Host, model and dimension; a server that swaps the weights behind a name cannot be noticed."""
        return f"http:{self._host}:{self._model}:{self.dim}"

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
        """Return float32, shape (len(texts), dim), L2-normalised rows, in the order of `texts`.

        Raises:
            ModelUnavailable: the server does not answer, refuses, or answers nonsense.
        """
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return np.concatenate([self._request(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)])

    def _request(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # Servers refuse empty input and bytes that are not UTF-8; neither is worth losing the other 63 texts.
        readable = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        body = json.dumps({"model": self._model, "input": readable, "encoding_format": "float"}).encode()
        rows = self._rows(self._send(body), len(texts))
        with self._lock:
            if self._dim is None:
                self._dim = rows.shape[1]
        if rows.shape[1] != self._dim:
            raise self._error(f"sent {rows.shape[1]} dimensions where {self._dim} were expected; check the model")
        return rows

    def _send(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = "Bearer " + self._key
        wait = _FIRST_WAIT_SECONDS
        for attempt in range(1, _ATTEMPTS + 1):
            asked_to_wait: float | None = None
            try:
                # The scheme was checked when the embedder was made.
                request = Request(self._url, data=body, headers=headers, method="POST")  # noqa: S310
                with self._opener.open(request, timeout=self._timeout) as answer:
                    data: bytes = answer.read(_LARGEST_ANSWER_BYTES + 1)
                if len(data) > _LARGEST_ANSWER_BYTES:
                    raise self._error("sent more than 64 MiB for one request")
                return data
            except HTTPError as error:
                status = error.code
                asked_to_wait = _seconds(error.headers.get("Retry-After"))
                error.close()
                if status != 429 and status < 500:
                    raise self._error(f"answered with status {status}{_advice(status)}") from None
                trouble = f"answered with status {status}"
            except (OSError, HTTPException) as error:
                trouble = f"did not answer ({type(error).__name__})"
            if attempt < _ATTEMPTS:
                self._sleep(min(wait if asked_to_wait is None else asked_to_wait, _LONGEST_WAIT_SECONDS))
                wait *= 2
        raise self._error(f"{trouble} in {_ATTEMPTS} attempts; try again later")

    def _rows(self, data: bytes, count: int) -> NDArray[np.float32]:
        try:
            entries = sorted(json.loads(data)["data"], key=lambda entry: int(entry["index"]))
            rows = np.array([entry["embedding"] for entry in entries], dtype=np.float64)
        except (ValueError, KeyError, TypeError):
            raise self._error("sent something that is not an embeddings answer; check the url") from None
        if rows.ndim != 2 or len(rows) != count or [entry["index"] for entry in entries] != list(range(count)):
            raise self._error(f"did not send exactly one vector for each of {count} texts")
        lengths = np.linalg.norm(rows, axis=1)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._error("sent a vector that is zero or not finite")
        return _unit(rows)

    def _error(self, trouble: str) -> ModelUnavailable:
        return ModelUnavailable(f"the embedding server at {self._host} {trouble}")


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow nothing (1); the redirect then surfaces as its own status."""


def _endpoint(path: str) -> str:
    path = path.rstrip("/")
    if path.endswith("/embeddings"):
        return path
    return path + ("/embeddings" if path.endswith("/v1") else "/v1/embeddings")


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
    """A model of sentence-transformers or fastembed, one text at a time so that neighbours change nothing."""

    def __init__(self, runner: str, model: str) -> None:
        self._runner = runner
        self._name = model
        self._lock = threading.Lock()
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
        """Return float32, shape (len(texts), dim), L2-normalised rows, in the order of `texts`.

        Raises:
            ModelUnavailable: the package is not installed.
        """
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
