"""Keepward: memory for AI agents that can be audited, approved and undone.

    from keepward import Memory

    mem = Memory.open("memory.db")
    out = mem.remember("Ana prefers tabs", source="user_message", evidence=["chat:42"])
    mem.recall("what does Ana prefer?")[0].memory.text

Names are imported on first use, so that ``import keepward`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

# What type checkers take for true, and a start does not pay for.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from keepward.aio import AsyncMemory as AsyncMemory
    from keepward.calls.draft import Draft as Draft
    from keepward.calls.tools import ToolResult as ToolResult
    from keepward.client import Client as Client
    from keepward.errors import Conflict as Conflict
    from keepward.errors import ContextTooSmall as ContextTooSmall
    from keepward.errors import InvalidInput as InvalidInput
    from keepward.errors import KeepwardError as KeepwardError
    from keepward.errors import ModelUnavailable as ModelUnavailable
    from keepward.errors import NewerSchema as NewerSchema
    from keepward.errors import NotAdopted as NotAdopted
    from keepward.errors import NotAStore as NotAStore
    from keepward.errors import NotFound as NotFound
    from keepward.errors import StaleVersion as StaleVersion
    from keepward.errors import StoreError as StoreError
    from keepward.errors import StoreUnavailable as StoreUnavailable
    from keepward.errors import Tampered as Tampered
    from keepward.errors import Unauthorised as Unauthorised
    from keepward.memory import Memory as Memory
    from keepward.model.blob import Blob as Blob
    from keepward.model.browse import Activity as Activity
    from keepward.model.browse import Facets as Facets
    from keepward.model.browse import Lineage as Lineage
    from keepward.model.browse import Sources as Sources
    from keepward.model.change import Append as Append
    from keepward.model.change import Archive as Archive
    from keepward.model.change import Insert as Insert
    from keepward.model.change import Move as Move
    from keepward.model.change import Promote as Promote
    from keepward.model.change import Reinforce as Reinforce
    from keepward.model.change import Replace as Replace
    from keepward.model.change import Restore as Restore
    from keepward.model.change import Retire as Retire
    from keepward.model.change import Supersede as Supersede
    from keepward.model.commit import Commit as Commit
    from keepward.model.commit import Event as Event
    from keepward.model.commit import Head as Head
    from keepward.model.commit import Reason as Reason
    from keepward.model.commit import Receipt as Receipt
    from keepward.model.commit import ReceiptLine as ReceiptLine
    from keepward.model.commit import ReceiptPage as ReceiptPage
    from keepward.model.commit import Step as Step
    from keepward.model.compiled import CompiledContext as CompiledContext
    from keepward.model.compiled import Considered as Considered
    from keepward.model.compiled import Explanation as Explanation
    from keepward.model.compiled import Replayed as Replayed
    from keepward.model.compiled import TokenCount as TokenCount
    from keepward.model.copies import Adoption as Adoption
    from keepward.model.copies import Backup as Backup
    from keepward.model.copies import ExportPlan as ExportPlan
    from keepward.model.copies import Rescued as Rescued
    from keepward.model.copies import Restored as Restored
    from keepward.model.copies import RestoredExport as RestoredExport
    from keepward.model.job import Alike as Alike
    from keepward.model.job import JobState as JobState
    from keepward.model.job import Run as Run
    from keepward.model.journal import Bisection as Bisection
    from keepward.model.journal import Blame as Blame
    from keepward.model.journal import Check as Check
    from keepward.model.journal import CommitView as CommitView
    from keepward.model.journal import Containment as Containment
    from keepward.model.journal import ContextDifference as ContextDifference
    from keepward.model.journal import Contradiction as Contradiction
    from keepward.model.journal import Contradictions as Contradictions
    from keepward.model.journal import Difference as Difference
    from keepward.model.journal import Erased as Erased
    from keepward.model.journal import ErasePlan as ErasePlan
    from keepward.model.journal import Impact as Impact
    from keepward.model.journal import Lifted as Lifted
    from keepward.model.journal import Rollback as Rollback
    from keepward.model.journal import Verification as Verification
    from keepward.model.journal import Version as Version
    from keepward.model.memory import Access as Access
    from keepward.model.memory import ContentType as ContentType
    from keepward.model.memory import Kind as Kind
    from keepward.model.memory import Record as Record
    from keepward.model.memory import Sensitivity as Sensitivity
    from keepward.model.memory import Stability as Stability
    from keepward.model.memory import Status as Status
    from keepward.model.memory import Tier as Tier
    from keepward.model.policy import EthicsRule as EthicsRule
    from keepward.model.policy import Policy as Policy
    from keepward.model.proposal import Committed as Committed
    from keepward.model.proposal import Decided as Decided
    from keepward.model.proposal import Duplicate as Duplicate
    from keepward.model.proposal import Outcome as Outcome
    from keepward.model.proposal import Quarantined as Quarantined
    from keepward.model.proposal import Refused as Refused
    from keepward.model.proposal import Shown as Shown
    from keepward.model.proposal import Waiting as Waiting
    from keepward.model.query import Feedback as Feedback
    from keepward.model.query import Filter as Filter
    from keepward.model.query import Hit as Hit
    from keepward.model.query import Memories as Memories
    from keepward.model.query import Ranked as Ranked
    from keepward.model.query import Ranking as Ranking
    from keepward.model.query import Recall as Recall
    from keepward.model.query import Reinforced as Reinforced
    from keepward.model.query import Training as Training
    from keepward.model.trust import SOURCES as SOURCES
    from keepward.model.trust import Actor as Actor
    from keepward.model.trust import Issued as Issued
    from keepward.model.trust import Token as Token
    from keepward.model.trust import Trust as Trust

__version__ = "0.1.0"

#: Exported names by the module that has them.
_HOMES = {
    "aio": "AsyncMemory",
    "calls.draft": "Draft",
    "client": "Client",
    "errors": "Conflict ContextTooSmall InvalidInput KeepwardError ModelUnavailable NewerSchema NotAStore "
    "NotAdopted NotFound StaleVersion StoreError StoreUnavailable Tampered Unauthorised",
    "calls.tools": "ToolResult",
    "memory": "Memory",
    "model.blob": "Blob",
    "model.change": "Append Archive Insert Move Promote Reinforce Replace Restore Retire Supersede",
    "model.commit": "Commit Event Head Reason Receipt ReceiptLine ReceiptPage Step",
    "model.compiled": "CompiledContext Considered Explanation Replayed TokenCount",
    "model.copies": "Adoption Backup ExportPlan Rescued Restored RestoredExport",
    "model.job": "Alike JobState Run",
    "model.browse": "Activity Facets Lineage Sources",
    "model.journal": "Bisection Blame Check CommitView Containment ContextDifference "
    "Contradiction Contradictions Difference ErasePlan Erased "
    "Impact Lifted Rollback Verification Version",
    "model.memory": "Access ContentType Kind Record Sensitivity Stability Status Tier",
    "model.policy": "EthicsRule Policy",
    "model.proposal": "Committed Decided Duplicate Outcome Quarantined Refused Shown Waiting",
    "model.query": "Feedback Filter Hit Memories Ranked Ranking Recall Reinforced Training",
    "model.trust": "SOURCES Actor Issued Token Trust",
}
_HOME = {name: f"keepward.{home}" for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted([*_HOME, "__version__"])  # noqa: PLE0605  each name stands above for checkers


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'keepward' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
