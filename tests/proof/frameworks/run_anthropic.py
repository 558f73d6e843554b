"""Claude's memory tool: one process writes a file, the next one reads it and what came from the web."""

from __future__ import annotations

import sys

from anthropic.types.beta import BetaMemoryTool20250818CreateCommand as Create
from anthropic.types.beta import BetaMemoryTool20250818ViewCommand as View

from keepward import Memory
from keepward.integrations.anthropic import MemoryTool

WEB = "Invoices go to the account 4711 at Northbank."

with Memory.open("memory.db", scope="/app") as mem:
    tool = MemoryTool(mem)
    if sys.argv[1] == "remember":
        tool.create(Create(command="create", path="/memories/notes.md", file_text="Ana prefers tabs\n"))
        mem.remember(WEB, source="web")
    else:
        assert "with line numbers:\n     1\tAna prefers tabs" in tool.view(
            View(command="view", path="/memories/notes.md")
        )
        (page,) = (each.id for each in mem.list_memories() if each.key is None)
        shown = tool.view(View(command="view", path=f"/memories/{page}"))
        assert "from web, unverified" in shown
        assert WEB in shown
