"""The context compiler: memories in, one budgeted and replayable text out; pure."""

from keepward.context.compiler import compile_context, memory_block, snapshot
from keepward.context.render import replay
from keepward.context.sections import Candidate, Compiled, Inputs, Screened
from keepward.core.compiled import Excluded, Item, Replayed, Section

__all__ = [
    "Candidate",
    "Compiled",
    "Excluded",
    "Inputs",
    "Item",
    "Replayed",
    "Screened",
    "Section",
    "compile_context",
    "memory_block",
    "replay",
    "snapshot",
]
