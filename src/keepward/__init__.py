"""Keepward: memory for AI agents that can be audited, approved and undone.

    from keepward import Memory

    mem = Memory.open("memory.db")
    out = mem.remember("Ana prefers tabs", source="user_message", evidence=["chat:42"])
    mem.recall("what does Ana prefer?")[0].memory.text

Names are imported on first use, so that ``import keepward`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keepward.aio import AsyncMemory
    from keepward.calls.draft import Draft
    from keepward.client import Client
    from keepward.errors import (
        Conflict,
        ContextTooSmall,
        InvalidInput,
        KeepwardError,
        ModelUnavailable,
        NewerSchema,
        NotAdopted,
        NotAStore,
        NotFound,
        StaleVersion,
        StoreError,
        StoreUnavailable,
        Tampered,
        Unauthorised,
    )
    from keepward.memory import Memory
    from keepward.model.change import (
        Append,
        Archive,
        Insert,
        Move,
        Promote,
        Reinforce,
        Replace,
        Restore,
        Retire,
        Supersede,
    )
    from keepward.model.commit import Reason, Receipt
    from keepward.model.memory import (
        Access,
        ContentType,
        Kind,
        Record,
        Sensitivity,
        Stability,
        Status,
        Tier,
    )
    from keepward.model.policy import EthicsRule, Policy
    from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused, Waiting
    from keepward.model.query import Filter, Hit, Recall
    from keepward.model.trust import SOURCES, Actor, Trust

__version__ = "0.1.0"

_HOMES = {
    "keepward.aio": ("AsyncMemory",),
    "keepward.calls.draft": ("Draft",),
    "keepward.memory": ("Memory",),
    "keepward.client": ("Client",),
    "keepward.model.change": (
        "Append",
        "Archive",
        "Insert",
        "Move",
        "Promote",
        "Reinforce",
        "Replace",
        "Restore",
        "Retire",
        "Supersede",
    ),
    "keepward.model.memory": (
        "Access",
        "ContentType",
        "Kind",
        "Record",
        "Sensitivity",
        "Stability",
        "Status",
        "Tier",
    ),
    "keepward.model.policy": ("EthicsRule", "Policy"),
    "keepward.model.proposal": ("Committed", "Duplicate", "Outcome", "Quarantined", "Refused", "Waiting"),
    "keepward.model.query": ("Filter", "Hit", "Recall"),
    "keepward.model.commit": ("Reason", "Receipt"),
    "keepward.model.trust": ("SOURCES", "Actor", "Trust"),
    "keepward.errors": (
        "Conflict",
        "ContextTooSmall",
        "InvalidInput",
        "KeepwardError",
        "ModelUnavailable",
        "NewerSchema",
        "NotAdopted",
        "NotAStore",
        "NotFound",
        "StaleVersion",
        "StoreError",
        "StoreUnavailable",
        "Tampered",
        "Unauthorised",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "SOURCES",
    "Access",
    "Actor",
    "Append",
    "Archive",
    "AsyncMemory",
    "Client",
    "Committed",
    "Conflict",
    "ContentType",
    "ContextTooSmall",
    "Draft",
    "Duplicate",
    "EthicsRule",
    "Filter",
    "Hit",
    "Insert",
    "InvalidInput",
    "KeepwardError",
    "Kind",
    "Memory",
    "ModelUnavailable",
    "Move",
    "NewerSchema",
    "NotAStore",
    "NotAdopted",
    "NotFound",
    "Outcome",
    "Policy",
    "Promote",
    "Quarantined",
    "Reason",
    "Recall",
    "Receipt",
    "Record",
    "Refused",
    "Reinforce",
    "Replace",
    "Restore",
    "Retire",
    "Sensitivity",
    "Stability",
    "StaleVersion",
    "Status",
    "StoreError",
    "StoreUnavailable",
    "Supersede",
    "Tampered",
    "Tier",
    "Trust",
    "Unauthorised",
    "Waiting",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'keepward' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
