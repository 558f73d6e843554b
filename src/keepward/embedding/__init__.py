"""Models that compute vectors, count tokens and extract facts, chosen by name.

To choose an embedder is cheap: no weights are opened, no server is called, no runner is imported. An unknown name is
refused; the error lists the valid names.

Late imports: each embedder loads its own libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepward.core.value import suggestion

if TYPE_CHECKING:
    from keepward.ports.models import Embedder, Extractor

#: The names of embedders, in the order of the error message.
NAMES = (
    "auto",
    "minilm",
    "hashed",
    "none",
    "http:<url>#<model>",
    "sentence-transformers:<model>",
    "fastembed:<model>",
)


def choose_embedder(
    name: str, *, api_key: str | None = None, prefixes: str = "auto", query_seconds: float | None = None
) -> Embedder | None:
    """Return the embedder with this name; None for "none", which means search by text only.

    "auto" is MiniLM if its weights are installed, else hashed words. `api_key` and `query_seconds` are for "http:"
    only; a URL such as "https://host/v1#model" needs no prefix. `prefixes` are for servers and runners.

    Raises:
        ValueError: the name is unknown; the message lists `NAMES`. Or `prefixes` are; see ``parse_prefixes``.
        ModelUnavailable: "minilm" was named and its weights or tokenizer are not installed.
    """
    kind, _, rest = name.strip().partition(":")
    match kind, rest:
        case "none", "":
            return None
        case (("auto" | "minilm" | "hashed"), ""):
            if kind != "hashed":
                from keepward.embedding.minilm import MiniLmEmbedder

                if kind == "minilm" or MiniLmEmbedder.available():
                    return MiniLmEmbedder()
            from keepward.embedding.hashed import HashedEmbedder

            return HashedEmbedder()
        case (("http" | "https"), _) if server := parse_server_name(name):
            from keepward.embedding.prefixes import parse_prefixes
            from keepward.embedding.remote import QUERY_SECONDS, HttpEmbedder

            found = parse_prefixes(prefixes, server[1])
            return HttpEmbedder(*server, api_key, prefixes=found, query_seconds=query_seconds or QUERY_SECONDS)
        case (("sentence-transformers" | "fastembed"), _) if rest:
            from keepward.embedding.prefixes import parse_prefixes
            from keepward.embedding.remote import RunnerEmbedder

            return RunnerEmbedder(kind, rest, prefixes=None if prefixes == "auto" else parse_prefixes(prefixes, rest))
    # The text after the colon may be a URL with a password, and errors are logged.
    shown = kind + (":..." if rest else "")
    raise ValueError(f"no embedder is named {shown!r}; {suggestion(kind, NAMES)}choose one of: {', '.join(NAMES)}")


def choose_extractor(name: str, *, api_key: str | None = None) -> Extractor | None:
    """Return the extractor with this name; None for "none"."""
    if name.strip() == "none":
        return None
    server = parse_server_name(name)
    if server is None:
        raise ValueError("an extractor is `none`, or a chat server's model as http:<url>#<model>")
    from keepward.embedding.extractor import HttpExtractor

    return HttpExtractor(*server, api_key)


def parse_server_name(name: str) -> tuple[str, str] | None:
    """Return URL and model of a name such as "http:https://host/v1#model" or "https://host/v1#model"."""
    kind, _, rest = name.strip().partition(":")
    url, _, model = (name.strip() if rest.startswith("//") else rest).rpartition("#")
    found = kind in {"http", "https"} and url.startswith(("http://", "https://")) and model
    return (url, model) if found else None
