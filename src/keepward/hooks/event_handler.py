"""Handle events: a context at the start, relevant memories at a prompt, and a summary at the end.

Invariants
(1) The user's prompts, and the beginning of the assistant's last message, become events of the session and pass the
    gates as an agent's writes. Quarantined and refused texts are in no answer.
(2) A session gets no memory twice, unless the client was compacted.
(3) An answer is a compiled context: within its budget, as data, with a receipt. A start contains no prompt.
(4) A summary quotes what the prompts state and is derived from them. A second summary of a session contains only new
    prompts. A long summary is split into several texts.
(5) The ids that a session received are stored in a file of the user. If the file is lost, a memory may be added twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from keepward import durable
from keepward.conversation import propose_summaries
from keepward.core.evidence import line_about, parse_reference
from keepward.core.value import load_json
from keepward.gates.content import redact_personal_data, redact_secrets
from keepward.memory import request_context_of
from keepward.services.reading.contexts import ContextRequest, compile_unrecorded
from keepward.services.reading.session_start import MAX_REPLY_LENGTH, last_reply, session_start
from keepward.services.writing.ingest import add
from keepward.shadow import compile_call

if TYPE_CHECKING:
    from datetime import datetime

    from keepward.core.compiled import CompiledContext
    from keepward.hooks.events import HookEvent
    from keepward.memory import Memory
    from keepward.shadow import ShadowLog

#: Token budget at the start of a session, and at a prompt.
START_BUDGET_TOKENS, PROMPT_BUDGET_TOKENS = 1_500, 600
#: Characters of a prompt that are used as the query. A longer prompt is not stored: it contains pasted text.
MAX_PROMPT_LENGTH = 4_000
#: Seconds after which a session is forgotten, and maximum number of ids of one session.
_SESSION_TTL_S, _MAX_IDS_PER_SESSION = 7 * 86_400, 2_000
#: Explains the last line of a start.
_REPLY_NOTE = (
    f"`[event] assistant` is the assistant's last message of the session before this one, at most {MAX_REPLY_LENGTH} "
    "characters."
)


class DeliveredIds:
    """The ids of memories that each session of a client has received."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, session: str) -> set[str]:
        """Return the ids that a session has received."""
        try:
            listed = load_json(self._path(session).read_text("utf-8"))
        except (OSError, ValueError):
            return set()
        return {item for item in listed if isinstance(item, str)} if isinstance(listed, list) else set()

    def add(self, session: str, ids: Iterable[str]) -> None:
        """Record that a session has received these ids."""
        known = self.of(session)
        if known >= set(ids):
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        listed = [*sorted(known), *(memory_id for memory_id in ids if memory_id not in known)][-_MAX_IDS_PER_SESSION:]
        durable.replace(self._path(session), json.dumps(listed).encode(), mode=0o600)

    def clear(self, session: str, now: datetime) -> None:
        """Forget the ids of a session, and all old sessions."""
        self._path(session).unlink(missing_ok=True)
        long_ago = now.timestamp() - _SESSION_TTL_S
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            if path.stat().st_mtime < long_ago:
                path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        return self._folder / f"{hashlib.sha256(session.encode()).hexdigest()[:32]}.json"


def handle_event(memory: Memory, event: HookEvent, delivered: DeliveredIds, shadow: ShadowLog | None = None) -> str:
    """Handle an event; return the text to add to the model's input.

    With ``shadow`` it is empty: the log gets what would have been added, and no receipt says that a model read it.
    """
    match event.what:
        case "start":
            return _on_start(memory, event, delivered, shadow)
        case "prompt":
            return _on_prompt(memory, event, delivered, shadow)
        case "reply":
            _on_reply(memory, event, delivered)
        case "compact" | "end":
            when = "compaction" if event.what == "compact" else "the end of the session"
            propose_summaries(memory, event.session, reason=f"summed up at {when}")
            if event.what == "compact":
                delivered.clear(event.session, memory.now)
    return ""


def _on_start(memory: Memory, event: HookEvent, delivered: DeliveredIds, shadow: ShadowLog | None) -> str:
    if event.afresh:
        delivered.clear(event.session, memory.now)
    elif delivered.of(event.session):
        # The model still sees the context that was added before (2).
        return ""
    start = partial(session_start, request_context_of(memory), event.session, budget_tokens=START_BUDGET_TOKENS)
    if shadow is not None:
        made = compile_call(memory, "start", partial(start, recorded=False))
        shadow.add(made)
        delivered.add(event.session, made.ids)
        return ""
    context = start()
    delivered.add(event.session, _ids(context))
    recalled = [item for section in context.sections if section.name == "recalled" for item in section.items]
    has_reply = any(item.kind == "event" for item in recalled)
    return f"{context.text}\n\n{_REPLY_NOTE}" if has_reply else context.text


def _on_prompt(memory: Memory, event: HookEvent, delivered: DeliveredIds, shadow: ShadowLog | None) -> str:
    prompt = event.prompt.strip()
    if not prompt or prompt.startswith("/"):
        # A command of the client.
        return ""
    query = prompt[:MAX_PROMPT_LENGTH]
    seen = sorted(delivered.of(event.session))
    if shadow is None:
        context = memory.memory_block(query, budget_tokens=PROMPT_BUDGET_TOKENS, seen=seen)
        text, ids = context.text, _ids(context)
    else:
        request = ContextRequest(budget_tokens=PROMPT_BUDGET_TOKENS, seen=seen)
        block = partial(compile_unrecorded, request_context_of(memory), query, request, "memory_block")
        made = compile_call(memory, "prompt", block)
        shadow.add(made)
        text, ids = "", list(made.ids)
    delivered.add(event.session, ids)
    if len(prompt) <= MAX_PROMPT_LENGTH:
        added = add(
            request_context_of(memory),
            [{"role": "user", "content": prompt}],
            session=event.session,
            evidence_of=partial(_file_evidence, memory, event),
        )
        # The model already sees the messages of its own session.
        delivered.add(
            event.session, [record.id for outcome in (*added.turns, *added.facts) for record in outcome.records]
        )
    return text


def _file_evidence(memory: Memory, event: HookEvent, text: str) -> tuple[str, ...]:
    """Return what a fact cites of the files that its prompt names: the line with its numbers and names.

    A file without such a line, or outside of the accepted folders, is not cited.
    """
    sources = request_context_of(memory).engine.sources
    found: list[str] = []
    for name in event.files if sources is not None else ():
        # A path relative to an accepted folder stays valid on another machine.
        for path in (name, str(PurePath(event.folder) / name)):
            reference = parse_reference(f"file:{path}")
            source = None if reference is None or sources is None else sources.read(reference)
            if source is not None and source.text is not None:
                if (line := line_about(source.content, text)) is not None:
                    found.append(f"file:{path}#{line}")
                break
    return tuple(found)


def _on_reply(memory: Memory, event: HookEvent, delivered: DeliveredIds) -> None:
    """Store the beginning of the assistant's message in place of the last one of the session."""
    # A secret that the cut would split is recognized only before.
    text = " ".join(redact_personal_data(redact_secrets(event.reply)).split())
    if not text:
        return
    if len(text) > MAX_REPLY_LENGTH:
        # Cut at a word, if there are several.
        head = text[:MAX_REPLY_LENGTH]
        text = f"{head[: max(head.rfind(' '), 0) or MAX_REPLY_LENGTH - 1].rstrip()}…"
    before = last_reply(request_context_of(memory), conversation=event.session)
    if before is not None and before.text == text:
        return
    added = memory.add([{"role": "assistant", "content": text}], session=event.session, extract=False)
    stored = [record.id for outcome in added.turns for record in outcome.records]
    delivered.add(event.session, stored)
    if before is not None and stored:
        memory.forget(before.id, reason="the assistant's next message replaces it")


def _ids(context: CompiledContext) -> list[str]:
    return [item.id for section in context.sections for item in section.items]
