"""Decide on writes by their origin: JSON lines in, JSON lines out.

Reads ``{"id", "text", "provenance", "target"}`` a line: provenance is owner, user, agent, tool, web, document,
import or unknown, and arrives on the matching channel; target is core, state, archival, working or episodic.
Writes ``{"id", "decision"}`` a line: commit, quarantine (its content was objected to), pending (it waits for
approval as every such write does) or reject. Each line is judged on
a fresh tenant of one store, through the public API.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from keepward import Actor, KeepwardError, Memory, Quarantined

#: Which handle an origin comes in by, and what it can name as its source.
CHANNELS: dict[str, tuple[Actor, str]] = {
    "owner": (Actor.operator("host"), "operator"),
    "user": (Actor.user("user"), "user_message"),
    "agent": (Actor.agent("agent"), "inference"),
    "tool": (Actor.agent("agent"), "tool"),
    "web": (Actor.agent("agent"), "web"),
    "document": (Actor.agent("agent"), "document"),
    "import": (Actor.importer("importer"), "import"),
    "unknown": (Actor.agent("agent"), "unknown"),
}
#: What a target means in the arguments of ``remember``.
TARGETS: dict[str, dict[str, Any]] = {
    "core": {"tier": "core", "key": "mission"},
    "state": {"tier": "working", "kind": "state", "key": "current_state"},
    "archival": {"tier": "archival"},
    "working": {"tier": "working"},
    "episodic": {"tier": "episodic"},
}
#: Gates that hold a write for who asks rather than for what it says.
_FOR_APPROVAL = {"authority", "confidence"}


def decide(mem: Memory, text: str, provenance: str, target: str) -> str:
    """Return the decision on one write."""
    actor, source = CHANNELS[provenance]
    outcome = mem.as_actor(actor).remember(text, source=source, **TARGETS[target])
    match outcome.outcome:
        case "committed" | "duplicate":
            return "commit"
        case "refused":
            return "reject"
    assert isinstance(outcome, Quarantined)
    gates = {reason.gate for reason in outcome.reasons if reason.code != "default_ttl"}
    return "pending" if gates <= _FOR_APPROVAL else "quarantine"


def run(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield a decision for each line."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config"
        with Memory.open(
            Path(folder) / "origin.db", embedder=None, config_dir=config, actor=Actor.operator("host")
        ) as mem:
            for number, line in enumerate(lines):
                if not line.strip():
                    continue
                asked = json.loads(line)
                fresh = mem.at(tenant=f"case-{number}")
                decision = decide(fresh, asked["text"], asked["provenance"], asked["target"])
                yield {"id": asked["id"], "decision": decision}


def main() -> int:
    """Run the program; return its exit code."""
    try:
        for answer in run(sys.stdin):
            print(json.dumps(answer, ensure_ascii=False), flush=True)
    except (KeyError, ValueError, KeepwardError) as fault:
        print(f"a line could not be judged: {type(fault).__name__}: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
