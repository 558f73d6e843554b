"""Keepward: memory for AI agents that can be audited, approved and undone.

    from keepward import Memory

    mem = Memory.open("memory.db")
    out = mem.remember("Ana prefers tabs", source="user_message", evidence=["chat:42"])
    mem.recall("what does Ana prefer?")[0].memory.text

Names are imported on first use, so that ``import keepward`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

# Type checkers read this block; it costs nothing at a start, because it does not run.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from keepward.async_memory import AsyncMemory as AsyncMemory
    from keepward.client import Client as Client
    from keepward.core.blob import Blob as Blob
    from keepward.core.browse import Activity as Activity
    from keepward.core.browse import Facets as Facets
    from keepward.core.browse import Lineage as Lineage
    from keepward.core.browse import Member as Member
    from keepward.core.browse import News as News
    from keepward.core.browse import Sources as Sources
    from keepward.core.change import Append as Append
    from keepward.core.change import Archive as Archive
    from keepward.core.change import Insert as Insert
    from keepward.core.change import Move as Move
    from keepward.core.change import Promote as Promote
    from keepward.core.change import Reinforce as Reinforce
    from keepward.core.change import Replace as Replace
    from keepward.core.change import Restore as Restore
    from keepward.core.change import Retire as Retire
    from keepward.core.change import Supersede as Supersede
    from keepward.core.commit import Commit as Commit
    from keepward.core.commit import Event as Event
    from keepward.core.commit import Head as Head
    from keepward.core.commit import Reason as Reason
    from keepward.core.commit import Receipt as Receipt
    from keepward.core.commit import ReceiptLine as ReceiptLine
    from keepward.core.commit import ReceiptPage as ReceiptPage
    from keepward.core.commit import Step as Step
    from keepward.core.compiled import CompiledContext as CompiledContext
    from keepward.core.compiled import Considered as Considered
    from keepward.core.compiled import Explanation as Explanation
    from keepward.core.compiled import Replayed as Replayed
    from keepward.core.copies import AdoptionPlan as AdoptionPlan
    from keepward.core.copies import Backup as Backup
    from keepward.core.copies import ExportPlan as ExportPlan
    from keepward.core.copies import RecoveryResult as RecoveryResult
    from keepward.core.copies import Restored as Restored
    from keepward.core.copies import RestoredExport as RestoredExport
    from keepward.core.copies import SubjectExport as SubjectExport
    from keepward.core.evidence import SourceCheck as SourceCheck
    from keepward.core.evidence import SourceState as SourceState
    from keepward.core.job import Alike as Alike
    from keepward.core.job import JobState as JobState
    from keepward.core.job import Run as Run
    from keepward.core.journal import Bisection as Bisection
    from keepward.core.journal import Blame as Blame
    from keepward.core.journal import Check as Check
    from keepward.core.journal import CommitView as CommitView
    from keepward.core.journal import Containment as Containment
    from keepward.core.journal import ContextDifference as ContextDifference
    from keepward.core.journal import Contradiction as Contradiction
    from keepward.core.journal import Contradictions as Contradictions
    from keepward.core.journal import Difference as Difference
    from keepward.core.journal import Erased as Erased
    from keepward.core.journal import ErasePlan as ErasePlan
    from keepward.core.journal import Impact as Impact
    from keepward.core.journal import Rollback as Rollback
    from keepward.core.journal import Verification as Verification
    from keepward.core.journal import Version as Version
    from keepward.core.journal import Versions as Versions
    from keepward.core.memory import Access as Access
    from keepward.core.memory import ContentType as ContentType
    from keepward.core.memory import Kind as Kind
    from keepward.core.memory import Record as Record
    from keepward.core.memory import Sensitivity as Sensitivity
    from keepward.core.memory import Stability as Stability
    from keepward.core.memory import Status as Status
    from keepward.core.memory import Tier as Tier
    from keepward.core.policy import EthicsRule as EthicsRule
    from keepward.core.policy import Policy as Policy
    from keepward.core.principals import SOURCES as SOURCES
    from keepward.core.principals import Actor as Actor
    from keepward.core.principals import Issued as Issued
    from keepward.core.principals import Token as Token
    from keepward.core.principals import Trust as Trust
    from keepward.core.proposal import Committed as Committed
    from keepward.core.proposal import DecisionResult as DecisionResult
    from keepward.core.proposal import Duplicate as Duplicate
    from keepward.core.proposal import Forgetting as Forgetting
    from keepward.core.proposal import Match as Match
    from keepward.core.proposal import Outcome as Outcome
    from keepward.core.proposal import Proposal as Proposal
    from keepward.core.proposal import ProposedStep as ProposedStep
    from keepward.core.proposal import Quarantined as Quarantined
    from keepward.core.proposal import Refused as Refused
    from keepward.core.query import Feedback as Feedback
    from keepward.core.query import Filter as Filter
    from keepward.core.query import Filters as Filters
    from keepward.core.query import Hit as Hit
    from keepward.core.query import Memories as Memories
    from keepward.core.query import Recall as Recall
    from keepward.core.query import Training as Training
    from keepward.draft import Draft as Draft
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
    from keepward.tools import ToolResult as ToolResult

__version__ = "0.2.0"

#: Exported names by the module that has them.
_HOMES = {
    "async_memory": "AsyncMemory",
    "draft": "Draft",
    "client": "Client",
    "errors": "Conflict ContextTooSmall InvalidInput KeepwardError ModelUnavailable NewerSchema NotAStore "
    "NotAdopted NotFound StaleVersion StoreError StoreUnavailable Tampered Unauthorised",
    "tools": "ToolResult",
    "memory": "Memory",
    "core.blob": "Blob",
    "core.change": "Append Archive Insert Move Promote Reinforce Replace Restore Retire Supersede",
    "core.commit": "Commit Event Head Reason Receipt ReceiptLine ReceiptPage Step",
    "core.compiled": "CompiledContext Considered Explanation Replayed",
    "core.copies": "AdoptionPlan Backup ExportPlan RecoveryResult Restored RestoredExport SubjectExport",
    "core.evidence": "SourceCheck SourceState",
    "core.job": "Alike JobState Run",
    "core.browse": "Activity Facets Lineage Member News Sources",
    "core.journal": "Bisection Blame Check CommitView Containment ContextDifference "
    "Contradiction Contradictions Difference ErasePlan Erased "
    "Impact Rollback Verification Version Versions",
    "core.memory": "Access ContentType Kind Record Sensitivity Stability Status Tier",
    "core.policy": "EthicsRule Policy",
    "core.proposal": "Committed DecisionResult Duplicate Forgetting Match Outcome Proposal ProposedStep Quarantined "
    "Refused",
    "core.query": "Feedback Filter Filters Hit Memories Recall Training",
    "core.principals": "SOURCES Actor Issued Token Trust",
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
