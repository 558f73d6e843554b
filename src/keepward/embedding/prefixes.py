"""Prefixes that a model was trained with: one for queries, one for documents.

Each model's own description names them. Without them its vectors find less. The name of a model chooses its family; the
setting ``embedder_prefixes`` chooses another one, none, or prefixes of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Final, NamedTuple

from keepward.core.value import suggestion


class Prefixes(NamedTuple):
    """What is put in front of a query and of a document."""

    query: str = ""
    document: str = ""

    @property
    def mark(self) -> str:
        """The end of an embedder's id: empty without prefixes, else different for different ones."""
        if not any(self):
            return ""
        return ":prefixes-" + sha256("\0".join(self).encode("utf-8", "surrogatepass")).hexdigest()[:8]


NONE: Final = Prefixes()
_PASSAGES: Final = "Represent this sentence for searching relevant passages: "
_INSTRUCT: Final = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
#: By the name that the setting takes. GTE models other than those with Qwen, and BGE-M3, have no prefixes.
FAMILIES: Final[Mapping[str, Prefixes]] = MappingProxyType(
    {
        "e5": Prefixes("query: ", "passage: "),
        "instruct": Prefixes(f"{_INSTRUCT} "),
        "bge": Prefixes(_PASSAGES),
        "bge-zh": Prefixes("为这个句子生成表示以用于检索相关文章："),
        "nomic": Prefixes("search_query: ", "search_document: "),
        "arctic": Prefixes(_PASSAGES),
        "arctic-2": Prefixes("query: "),
        "qwen3": Prefixes(_INSTRUCT),
        "embeddinggemma": Prefixes("task: search result | query: ", "title: none | text: "),
    }
)
#: Patterns of models' names, the first that matches decides: of Hugging Face, Ollama, LM Studio and files.
_NAMES: Final = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (r"noinstruct", ""),
        (r"\be5-.*instruct|\be5-mistral", "instruct"),
        (r"\be5-(small|base|large)", "e5"),
        (r"\bbge-(small|base|large)-zh", "bge-zh"),
        (r"\bbge-(small|base|large)", "bge"),
        (r"\bgte-qwen", "instruct"),
        (r"\bnomic-embed-text", "nomic"),
        (r"\barctic-embed-?2|\barctic-embed-[a-z]+-v2", "arctic-2"),
        (r"\barctic-embed", "arctic"),
        (r"\bqwen3-embedding", "qwen3"),
        (r"\bembedding-?gemma", "embeddinggemma"),
    )
)


def family_of(model: str) -> str:
    """Return the name of a model's family; empty if it has no prefixes."""
    name = model.lower().replace("_", "-")
    return next((family for pattern, family in _NAMES if pattern.search(name)), "")


def parse_prefixes(choice: str, model: str) -> Prefixes:
    """Return the prefixes that a setting chooses: `auto`, `none`, a family's name, or `QUERY||DOCUMENT`.

    Raises:
        ValueError: it is none of these.
    """
    name = choice.strip()
    if name == "auto":
        return FAMILIES.get(family_of(model), NONE)
    if name == "none":
        return NONE
    if name in FAMILIES:
        return FAMILIES[name]
    if "||" in choice:
        query, _, document = choice.partition("||")
        return Prefixes(query, document)
    known = ("auto", "none", *FAMILIES)
    raise ValueError(
        f"embedder_prefixes: no family has this name; {suggestion(name, known)}use one of {', '.join(known)}, "
        "or both prefixes as QUERY||DOCUMENT"
    )
