"""The HTTP embedder against a real server on this machine."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from keepward.embedding.remote import HttpEmbedder
from keepward.errors import ModelUnavailable
from support.loopback import Script, Server, serving

#: Stands for a key; made here so that no file holds anything key-shaped.
KEY = "-".join(["not", "a", "key"])


@dataclass
class Vectors(Script):
    """Answers each text with a vector of its own, in another order than they were asked."""

    dim: int = 3
    waits: list[float] = field(default_factory=list)

    def answer(self, asked: dict[str, Any]) -> Any:
        vectors = [[float(len(text)), 1.0] + [0.0] * (self.dim - 2) for text in asked["input"]]
        return {"data": [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)][::-1]}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def script(server: Server) -> Vectors:
    server.script = Vectors()
    return server.script


@pytest.fixture
def url(server: Server) -> str:
    return server.url


@pytest.fixture
def embedder(url: str, script: Vectors) -> HttpEmbedder:
    return HttpEmbedder(url, "small", KEY, 3, sleep=script.waits.append)


def test_vectors_are_put_into_the_order_of_the_texts(embedder: HttpEmbedder) -> None:
    rows = embedder.embed(["a", "bbbb"])
    assert (rows[:, 0] / rows[:, 1]).tolist() == pytest.approx([1, 4])


def test_a_request_carries_at_most_64_texts(embedder: HttpEmbedder, script: Vectors) -> None:
    embedder.embed(["x"] * 130)
    assert [len(asked["input"]) for _, _, asked in script.seen] == [64, 64, 2]


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/embeddings"])
def test_the_endpoint_is_completed(url: str, script: Vectors, ending: str) -> None:
    HttpEmbedder(url + ending, "small", dim=3).embed(["x"])
    assert script.seen[0][0] == "/v1/embeddings"


def test_the_key_is_sent_as_a_bearer_token(embedder: HttpEmbedder, script: Vectors) -> None:
    embedder.embed(["x"])
    assert script.seen[0][1] == f"Bearer {KEY}"


def test_without_a_key_no_authorisation_is_sent(url: str, script: Vectors) -> None:
    HttpEmbedder(url, "small", dim=3).embed(["x"])
    assert script.seen[0][1] is None


def test_the_dimension_is_asked_once_when_it_was_not_given(url: str, script: Vectors) -> None:
    embedder = HttpEmbedder(url, "small")
    assert (embedder.dim, embedder.dim, len(script.seen)) == (3, 3, 1)


def test_no_texts_ask_nothing(embedder: HttpEmbedder, script: Vectors) -> None:
    assert (embedder.embed([]).shape, script.seen) == ((0, 3), [])


def test_blank_and_broken_texts_are_made_acceptable(embedder: HttpEmbedder, script: Vectors) -> None:
    embedder.embed(["", "\ud800"])
    assert script.seen[0][2]["input"] == [" ", "?"]


def test_a_busy_server_is_asked_again_after_growing_waits(embedder: HttpEmbedder, script: Vectors) -> None:
    script.statuses = [429, 503]
    embedder.embed(["x"])
    assert script.waits == [0.5, 1.0]


def test_server_may_request_a_delay_up_to_a_bound(embedder: HttpEmbedder, script: Vectors) -> None:
    script.statuses, script.headers = [429], {"Retry-After": "9000"}
    embedder.embed(["x"])
    assert script.waits == [30.0]


def test_a_server_that_stays_busy_is_given_up(embedder: HttpEmbedder, script: Vectors) -> None:
    script.statuses = [500] * 4
    with pytest.raises(ModelUnavailable, match="status 500 in 4 attempts"):
        embedder.embed(["x"])


def test_a_refusal_is_not_repeated(embedder: HttpEmbedder, script: Vectors) -> None:
    script.statuses = [401]
    with pytest.raises(ModelUnavailable, match="check the api key"):
        embedder.embed(["x"])
    assert len(script.seen) == 1


def test_a_redirect_is_not_followed(embedder: HttpEmbedder, script: Vectors, url: str) -> None:
    script.statuses, script.headers = [307], {"Location": url + "/elsewhere"}
    with pytest.raises(ModelUnavailable, match="redirects are not followed"):
        embedder.embed(["x"])


def test_proxy_of_the_environment_is_not_asked_for_this_machine(
    embedder: HttpEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert embedder.embed(["x"]).shape == (1, 3)


def test_proxy_of_the_environment_is_asked_for_other_machines(url: str, script: Vectors, monkeypatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", url)
    HttpEmbedder("http://embedder.example.test", "small", dim=3).embed(["x"])
    assert script.seen[0][0] == "http://embedder.example.test/v1/embeddings"


@pytest.mark.parametrize("proxy", ["socks9://me:secret@127.0.0.1:9", "socks5://me:secret@127.0.0.1:9"])
def test_proxy_that_cannot_be_used_is_named_without_its_password(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ModelUnavailable, match="environment's proxy") as caught:
        HttpEmbedder("http://embedder.example.test", "small", dim=3).embed(["x"])
    assert "secret" not in str(caught.value)


def test_certificates_that_are_missing_are_no_failure_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    with pytest.raises(ModelUnavailable, match="certificates"):
        HttpEmbedder("https://embedder.example.test", "small", dim=3, sleep=pytest.fail).embed(["x"])


def test_key_that_no_header_can_have_is_not_repeated(url: str) -> None:
    with pytest.raises(ModelUnavailable, match="check its url, the api key") as caught:
        HttpEmbedder(url, "small", "schlüssel", 3).embed(["x"])
    assert "schl" not in str(caught.value)


def test_answer_is_read_up_to_a_limit(embedder: HttpEmbedder, script: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepward.embedding.remote._LARGEST_ANSWER_BYTES", 100)
    script.body = b" " * 101
    with pytest.raises(ModelUnavailable, match="more than 64 MiB"):
        embedder.embed(["x"])


def test_compressed_answer_is_neither_asked_for_nor_unpacked(embedder: HttpEmbedder, script: Vectors) -> None:
    embedder.embed(["x"])
    assert script.encodings == ["identity"]
    script.headers = {"Content-Encoding": "gzip"}
    script.body = gzip.compress(b'{"data": [{"index": 0, "embedding": [1, 0, 0]}]}')
    with pytest.raises(ModelUnavailable, match="not an embeddings answer"):
        embedder.embed(["x"])


def test_missing_library_is_named(embedder: HttpEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ModelUnavailable, match=re.escape("pip install 'keepward[client]'")):
        embedder.embed(["x"])


def test_an_error_names_the_host_and_neither_key_nor_text(embedder: HttpEmbedder, script: Vectors) -> None:
    script.statuses, script.body = [400], f"bad input: private words, {KEY}".encode()
    with pytest.raises(ModelUnavailable) as caught:
        embedder.embed(["private words"])
    message = str(caught.value)
    assert ("127.0.0.1" in message, KEY in message, "private" in message) == (True, False, False)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b'{"data": [{"index": 1, "embedding": [1, 0, 0]}]}',
        b'{"data": [{"index": 0, "embedding": [0, 0, 0]}]}',
        b'{"data": [{"index": 0, "embedding": [NaN, 0, 0]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 0]}]}',
    ],
)
def test_an_answer_that_makes_no_sense_is_not_believed(embedder: HttpEmbedder, script: Vectors, body: bytes) -> None:
    script.body = body
    with pytest.raises(ModelUnavailable, match="embedding server"):
        embedder.embed(["x"])


def test_unreachable_server_is_reported_after_the_last_attempt() -> None:
    waits: list[float] = []
    # Port 9 (discard) is not served on any machine that runs tests.
    with pytest.raises(ModelUnavailable, match="did not answer"):
        HttpEmbedder("http://127.0.0.1:9", "small", dim=3, sleep=waits.append).embed(["x"])
    assert waits == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("wrong", ["localhost:1", "file:///etc/hosts", "http://", "http://me:pw@host/"])
def test_a_url_that_cannot_be_meant_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="url"):
        HttpEmbedder(wrong, "small")


def test_a_server_that_failed_is_not_asked_for_a_minute() -> None:
    waits: list[float] = []
    now = [0.0]
    away = HttpEmbedder("http://127.0.0.1:9", "small", dim=3, sleep=waits.append, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(ModelUnavailable):
            away.embed(["x"])
    assert len(waits) == 3
    now[0] = 61.0
    with pytest.raises(ModelUnavailable, match="asked again in a minute"):
        away.embed(["x"])
    assert len(waits) == 6


def test_no_attempt_begins_after_the_time_limit(url: str, script: Vectors) -> None:
    script.statuses = [503] * 4
    # Every look at the clock is 40 seconds after the last one.
    slow = HttpEmbedder(url, "small", dim=3, timeout_seconds=30, sleep=script.waits.append, clock=count(0, 40).__next__)
    with pytest.raises(ModelUnavailable, match="status 503; it is asked again in a minute"):
        slow.embed(["x"])
    assert (len(script.seen), script.waits) == (1, [])


def test_query_is_repeated_once(embedder: HttpEmbedder, script: Vectors) -> None:
    script.statuses = [503]
    assert embedder.embed_query(["x"]).shape == (1, 3)
    script.statuses = [503] * 3
    with pytest.raises(ModelUnavailable, match="status 503 in 2 attempts"):
        embedder.embed_query(["x"])
    assert len(script.seen) == 4


def test_pause_repeats_why_the_server_failed(embedder: HttpEmbedder, script: Vectors) -> None:
    script.statuses = [503] * 9
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="status 503 in 4 attempts; it is asked again in a minute"):
            embedder.embed(["x"])
    assert len(script.seen) == 4
