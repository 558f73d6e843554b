"""What an event does: a context at the start, what is relevant at a prompt, and a summary at the end.

Invariants
(1) The user's words become events of the session and pass the gates as an agent's relay of them; what is held or
    refused is in no answer.
(2) Nothing is put in twice in one session, unless the client has lost what it was told before.
(3) What is put in is compiled: within its budget, as data, with a receipt.
(4) A summary quotes what was said and is derived from it; the same session summed up again says only what is new.
    What does not fit one text stands in several.
(5) What a session was told is noted by ids alone, in a file of the user's own. It may be lost at any time: then
    something is put in a second time, and nothing worse.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from keepward import durable
from keepward.conversation import propose_summaries

if TYPE_CHECKING:
    from datetime import datetime

    from keepward.core.compiled import CompiledContext
    from keepward.hooks.events import Event
    from keepward.memory import Memory

#: Tokens of what is put in at the start of a session, and at a prompt.
START_BUDGET_TOKENS, PROMPT_BUDGET_TOKENS = 1_500, 600
#: Characters of a prompt that are kept and searched for: what is longer is pasted.
MAX_PROMPT_LENGTH = 4_000
#: Seconds after which a session is forgotten, and ids that are kept of one.
_SESSION_TTL_S, _MAX_IDS_PER_SESSION = 7 * 86_400, 2_000
_OBJECTIVE = "preferences, standing instructions and decisions of the user for {project}"


class DeliveredIds:
    """The memories that sessions of a client were told."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, session: str) -> set[str]:
        """Return the ids that a session was told."""
        try:
            listed = json.loads(self._path(session).read_text("utf-8"))
        except (OSError, ValueError):
            return set()
        return {each for each in listed if isinstance(each, str)} if isinstance(listed, list) else set()

    def add(self, session: str, ids: Iterable[str]) -> None:
        """Note that a session was told these."""
        known = self.of(session)
        if known >= set(ids):
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        listed = [*sorted(known), *(each for each in ids if each not in known)][-_MAX_IDS_PER_SESSION:]
        durable.replace(self._path(session), json.dumps(listed).encode(), mode=0o600)

    def clear(self, session: str, now: datetime) -> None:
        """Forget what a session was told, and sessions that are long over."""
        self._path(session).unlink(missing_ok=True)
        long_ago = now.timestamp() - _SESSION_TTL_S
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            if path.stat().st_mtime < long_ago:
                path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        return self._folder / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.json"


def handle_event(memory: Memory, event: Event, delivered: DeliveredIds) -> str:
    """Do what an event asks for, and return what is to be added to what the model reads."""
    match event.what:
        case "start":
            return _on_start(memory, event, delivered)
        case "prompt":
            return _on_prompt(memory, event, delivered)
        case "compact" | "end":
            heading = f"What was asked{f' in {event.project}' if event.project else ''}:"
            when = "compaction" if event.what == "compact" else "the end of the session"
            propose_summaries(memory, event.session, heading, reason=f"summed up at {when}")
            if event.what == "compact":
                delivered.clear(event.session, memory.now)
    return ""


def _on_start(memory: Memory, event: Event, delivered: DeliveredIds) -> str:
    if event.afresh:
        delivered.clear(event.session, memory.now)
    elif delivered.of(event.session):
        # What was put in before is still there: (2).
        return ""
    objective = _OBJECTIVE.format(project=event.project or "this project")
    # What holds for every session need not be asked for in its words: the budget is the cap.
    found = memory.context(objective, budget_tokens=START_BUDGET_TOKENS, include_weak=True)
    delivered.add(event.session, _ids(found))
    return found.text


def _on_prompt(memory: Memory, event: Event, delivered: DeliveredIds) -> str:
    prompt = event.prompt.strip()
    if not prompt or prompt.startswith("/"):
        # A command to the client itself.
        return ""
    asked = prompt[:MAX_PROMPT_LENGTH]
    found = memory.memory_block(asked, budget_tokens=PROMPT_BUDGET_TOKENS, seen=sorted(delivered.of(event.session)))
    delivered.add(event.session, _ids(found))
    if len(prompt) <= MAX_PROMPT_LENGTH:
        added = memory.add([{"role": "user", "content": prompt}], session=event.session)
        # The session has its own words.
        delivered.add(event.session, [record.id for each in (*added.turns, *added.facts) for record in each.records])
    return found.text


def _ids(context: CompiledContext) -> list[str]:
    return [item.id for section in context.sections for item in section.items]
