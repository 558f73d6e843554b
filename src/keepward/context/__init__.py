"""The context compiler: a pure function from memories to one budgeted, replayable text."""

from keepward.context.compiler import compile_context, memory_block, snapshot
from keepward.context.render import replay
from keepward.context.sections import CompileInput, CompileResult, Entry, OutputFilterResult
from keepward.core.compiled import ContextItem, Exclusion, Replayed, Section

__all__ = [
    "CompileInput",
    "CompileResult",
    "ContextItem",
    "Entry",
    "Exclusion",
    "OutputFilterResult",
    "Replayed",
    "Section",
    "compile_context",
    "memory_block",
    "replay",
    "snapshot",
]
