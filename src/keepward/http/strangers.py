"""Strangers: who calls without a credential where the reads were opened.

Invariants
(1) A stranger reads status, core blocks, search and compiled contexts, and nothing else; it changes nothing.
(2) No sensitive memory reaches a stranger, whatever it asks for.
"""

from __future__ import annotations

from typing import Any

from keepward.app import Memory
from keepward.errors import Unauthorised
from keepward.model.query import Memories, Recall
from keepward.model.trust import Actor, ActorKind, Rights

#: What ``open_reads`` opens, by method and path.
OPEN = frozenset(
    {("GET", "/memory/status"), ("GET", "/memory/core"), ("GET", "/memory/search"), ("POST", "/memory/compile")}
)
ACTOR = Actor(kind=ActorKind.AGENT, name="stranger", rights=Rights.AGENT, can=frozenset({"read"}))


class Stranger(Memory):
    """A handle that holds back what is sensitive; see (2)."""

    def recall(self, query: str, **filters: Any) -> Recall:
        """Recall what is not sensitive."""
        _plain(filters)
        return super().recall(query, **filters)

    def find(self, **filters: Any) -> Memories:
        """Return what is not sensitive of that which passes."""
        return super().find(**{**filters, "include_sensitive": False})

    def context(self, objective: str, **asked: Any) -> Any:
        """Compile from what is not sensitive."""
        _plain(asked)
        return super().context(objective, **asked)


def stranger(memory: Memory) -> Memory:
    """Return the handle of a stranger on the store of an owner's handle."""
    lent = memory.acting_as(ACTOR)
    handle = Stranger.__new__(Stranger)
    # The same store and the same principal, behind verbs that hold back.
    vars(handle).update(vars(lent))
    return handle


def _plain(asked: dict[str, Any]) -> None:
    if asked.get("include_sensitive"):
        raise Unauthorised("what is sensitive is read with a token")
