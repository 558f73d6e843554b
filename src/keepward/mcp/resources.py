"""Resources: core blocks, snapshots, memories and receipts, each under an address of its own.

Invariants
(1) A resource shows what the handle's own scope reaches, and nothing that waits for review: only what is in the
    journal has an address here.
(2) What is not there and what is out of reach are one answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from keepward import present
from keepward.errors import InvalidInput, NotFound, Unauthorised
from keepward.mcp.blocks_read import blocks
from keepward.model.trust import parse_scope, visible_from

if TYPE_CHECKING:
    from keepward.memory import Memory

SCHEME = "memory://"
JSON, MARKDOWN = "application/json", "text/markdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One resource, or a family of them by template."""

    uri: str
    name: str
    title: str
    about: str
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What stands at an address."""

    uri: str
    text: str
    media_type: str


CORE = Document(
    uri="memory://core",
    name="core",
    title="Core blocks",
    about="Every core block with its text, tokens, budget and access.",
    media_type=JSON,
)
SNAPSHOT = Document(
    uri="memory://snapshot/{scope}",
    name="snapshot",
    title="Snapshot of a scope",
    about="What belongs in every prompt of a scope: core blocks, lasting memories and state. A scope is `shared`, an "
    "agent's name, or a path whose slashes are written %2F.",
    media_type=MARKDOWN,
)
ITEM = Document(
    uri="memory://items/{id}",
    name="item",
    title="A memory",
    about="One memory at its newest version, every field of it.",
    media_type=JSON,
)
RECEIPT = Document(
    uri="memory://receipts/{id}",
    name="receipt",
    title="A receipt",
    about="The record of one decision: a commit, a refusal, a quarantine, an approval, a compiled context.",
    media_type=JSON,
)
TEMPLATES = (SNAPSHOT, ITEM, RECEIPT)


def listed(memory: Memory) -> list[Document]:
    """Return the resources that have one address: the core blocks, and the snapshot of the handle's own scope."""
    scope = "shared" if memory.scope == "/" else quote(memory.scope.lstrip("/"), safe="")
    own = Document(
        uri=f"memory://snapshot/{scope}",
        name=f"snapshot {memory.scope}",
        title=f"Snapshot of {memory.scope}",
        about="What belongs in every prompt here: core blocks, lasting memories and state.",
        media_type=MARKDOWN,
    )
    return [CORE, own]


def read(memory: Memory, uri: str) -> Content:
    """Return what stands at an address.

    Raises:
        NotFound: nothing does, as far as this handle reaches.
    """
    head, _, rest = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME):
        raise NotFound("there is no such resource; addresses here begin with memory://")
    name = unquote(rest)
    if head == "core" and not rest:
        return _json(uri, {"scope": memory.scope, "blocks": blocks(memory)})
    if not name or "\0" in name or not name.isprintable():
        raise NotFound("there is no such resource; list resources and templates to see which there are")
    try:
        match head:
            case "snapshot":
                return Content(uri=uri, text=_at(memory, name).snapshot().text, media_type=MARKDOWN)
            case "items":
                return _json(uri, present.record(memory.get(name)))
            case "receipts":
                return _json(uri, present.plain(memory.receipt(name)))
    except (Unauthorised, InvalidInput) as fault:
        raise NotFound("there is no such resource within reach; check the id and the scope") from fault
    raise NotFound("there is no such resource; list resources and templates to see which there are")


def _at(memory: Memory, name: str) -> Memory:
    """Return the handle at a scope that this one sees or stands above."""
    scope = parse_scope(f"/{name}" if "/" in name and not name.startswith("/") else name)
    if scope == memory.scope:
        return memory
    if scope not in visible_from(memory.scope) and memory.scope not in visible_from(scope):
        raise NotFound("there is no such resource within reach; check the id and the scope")
    return memory.at(scope=scope)


def _json(uri: str, value: Any) -> Content:
    return Content(uri=uri, text=json.dumps(value, indent=2, ensure_ascii=False), media_type=JSON)
