"""Models: what turns text into vectors, into token counts and into facts, chosen by name.

Invariants
(1) Choosing an embedder is cheap: no weights are opened, no server is asked, no runner is imported.
(2) A name that can be mistaken is refused; the error lists what there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepward.core.value import suggestion

if TYPE_CHECKING:
    from keepward.ports.models import Embedder, Extractor

#: The names that `choose` understands, in the order in which an error lists them.
NAMES = (
    "auto",
    "minilm",
    "hashed",
    "none",
    "http:<url>#<model>",
    "sentence-transformers:<model>",
    "fastembed:<model>",
)


def choose_embedder(name: str, *, api_key: str | None = None) -> Embedder | None:
    """Return the embedder of that name; None for "none", which means search by text alone.

    "auto" is MiniLM where its weights are installed, else hashed words. `api_key` is for "http:" alone; a url
    may also be written by itself, as in "https://host/v1#model".

    Raises:
        ValueError: the name means nothing; the message lists `NAMES`.
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
            from keepward.embedding.remote import HttpEmbedder

            return HttpEmbedder(*server, api_key)
        case (("sentence-transformers" | "fastembed"), _) if rest:
            from keepward.embedding.remote import RunnerEmbedder

            return RunnerEmbedder(kind, rest)
    # What follows the colon may be a url with a password in it, and errors are logged.
    shown = kind + (":..." if rest else "")
    raise ValueError(f"no embedder is named {shown!r}; {suggestion(kind, NAMES)}choose one of: {', '.join(NAMES)}")


def choose_extractor(name: str, *, api_key: str | None = None) -> Extractor | None:
    """Return the extractor of that name; None for "none"."""
    if name.strip() == "none":
        return None
    server = parse_server_name(name)
    if server is None:
        raise ValueError("an extractor is `none`, or a chat server's model as http:<url>#<model>")
    from keepward.embedding.extractor import HttpExtractor

    return HttpExtractor(*server, api_key)


def parse_server_name(name: str) -> tuple[str, str] | None:
    """Return url and model of a name such as "http:https://host/v1#model" or "https://host/v1#model"."""
    kind, _, rest = name.strip().partition(":")
    url, _, model = (name.strip() if rest.startswith("//") else rest).rpartition("#")
    found = kind in {"http", "https"} and url.startswith(("http://", "https://")) and model
    return (url, model) if found else None
