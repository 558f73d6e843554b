"""Names of embedders."""

from __future__ import annotations

import pytest

from keepward.embedding import NAMES, choose_embedder
from keepward.embedding.hashed import HashedEmbedder
from keepward.embedding.minilm import MiniLmEmbedder
from keepward.embedding.remote import HttpEmbedder, RunnerEmbedder


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("hashed", HashedEmbedder),
        ("http:http://localhost:11434#small", HttpEmbedder),
        ("https://host.example/v1#small", HttpEmbedder),
        ("sentence-transformers:some/model", RunnerEmbedder),
        ("fastembed:some/model", RunnerEmbedder),
    ],
)
def test_a_name_gives_its_embedder(name: str, kind: type) -> None:
    assert type(choose_embedder(name)) is kind


@pytest.mark.parametrize(("installed", "kind"), [(True, MiniLmEmbedder), (False, HashedEmbedder)])
def test_auto_is_minilm_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, installed: bool, kind: type) -> None:
    if installed and not MiniLmEmbedder.available():
        pytest.skip("the weights are not installed")
    monkeypatch.setattr(MiniLmEmbedder, "available", staticmethod(lambda: installed))
    assert type(choose_embedder("auto")) is kind


@pytest.mark.parametrize("name", ["", "bert", "http:", "http://host", "http:#m", "fastembed:", "hashed:9", "none:1"])
def test_an_unknown_name_is_answered_with_the_names_there_are(name: str) -> None:
    with pytest.raises(ValueError, match="fastembed:<model>") as caught:
        choose_embedder(name)
    assert all(known in str(caught.value) for known in NAMES)


def test_an_error_does_not_repeat_what_may_hold_a_password() -> None:
    with pytest.raises(ValueError) as caught:
        choose_embedder("http://me:letmein@host")
    assert "letmein" not in str(caught.value)


def test_the_key_goes_to_the_http_embedder() -> None:
    embedder = choose_embedder("http://localhost#small", api_key="k")
    assert isinstance(embedder, HttpEmbedder)
    assert embedder._server._key == "k"
