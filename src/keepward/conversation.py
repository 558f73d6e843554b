"""Conversations, whose turns are added to memory as they come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from keepward.core.memory import Tier
from keepward.core.policy import Policy
from keepward.core.principals import Trust, user_of

if TYPE_CHECKING:
    from typing import Self

    from keepward.api import MemoryAPI
    from keepward.core.compiled import CompiledContext
    from keepward.core.memory import Record
    from keepward.core.messages import Added

#: Least turns of a summary, and characters of each in it: the most, and the least where there are many.
MIN_TURNS, MAX_QUOTE_LENGTH, MIN_QUOTE_LENGTH = 3, 160, 60


class Conversation:
    """One session of a talk; every turn is stored, or held, when its call returns."""

    def __init__(self, memory: MemoryAPI, name: str, subject: str | None) -> None:
        self._memory = memory
        #: Name of the session, and whom it is about.
        self.name, self.subject = name, subject

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Propose a summary of the turns that are in none yet, unless an error ends the block."""
        if kind is None:
            reason = "summed up at the end of the session"
            propose_summaries(
                self._memory, self.name, "What was said:", subject=self.subject, speakers=True, reason=reason
            )

    def user(self, /, text: str, **more: Any) -> Added:
        """Say what the user said; ``more`` is ``id``, ``name`` or ``timestamp`` of the message."""
        return self.say("user", text, **more)

    def assistant(self, /, text: str, **more: Any) -> Added:
        """Say what the assistant answered."""
        return self.say("assistant", text, **more)

    def tool(self, /, text: str, **more: Any) -> Added:
        """Say what a tool returned."""
        return self.say("tool", text, **more)

    def say(self, /, role: str, text: str, *, timestamp: datetime | str | float | None = None, **more: Any) -> Added:
        """Say one turn of a role; without a timestamp it is said now."""
        message: Mapping[str, Any] = {"role": role, "content": text, **more}
        if timestamp is not None:
            message = {**message, "timestamp": timestamp}
        return self._memory.add([message], session=self.name, subject=self.subject)

    def context(self, /, query: str, **options: Any) -> CompiledContext:
        """Compile what a model should know for the next answer; ``options`` are those of ``Memory.context``."""
        return self._memory.context(query, **options)


def propose_summaries(
    memory: MemoryAPI, session: str, heading: str, *, subject: str | None = None, speakers: bool = False, reason: str
) -> None:
    """Propose a summary of the turns that no summary covers yet; several where one text is too short.

    Sensitive turns and turns that are trusted less than an agent's are left out.
    """
    subject = user_of(memory.scope) if subject is None else subject
    told = [
        each
        for each in memory.list_memories(session=session, kinds=["event"], include_sensitive=False, limit=500)
        if each.trust >= Trust.AGENT and each.scope == memory.scope and each.subject == subject
    ]
    if len(told) < MIN_TURNS:
        return
    summed = {
        name
        for each in memory.list_memories(session=session, kinds=["summary"], limit=500)
        for name in each.derived_from
    }
    fresh = [each for each in reversed(told) if each.id not in summed][-64:]
    if len(fresh) < MIN_TURNS:
        return
    # A client does not know the policy of its server.
    policy: Policy = getattr(memory, "policy", None) or Policy()
    room = policy.text_limit[Tier.EPISODIC] - len(heading)
    longest = max(MIN_QUOTE_LENGTH, min(MAX_QUOTE_LENGTH, room // len(fresh) - len("\n- ")))
    most = max(1, room // (longest + len("\n- ")))
    for part in (fresh[start : start + most] for start in range(0, len(fresh), most)):
        memory.remember(
            "\n- ".join([heading, *(_quote_turn(each, longest, speakers) for each in part)]),
            tier="episodic",
            kind="summary",
            subject=subject,
            session=session,
            # The end of a smaller piece of work is not told.
            job=session,
            derived_from=[each.id for each in part],
            reason=reason,
        )


def _quote_turn(record: Record, max_length: int, speakers: bool) -> str:
    speaker = f"{record.speaker}: " if speakers and record.speaker else ""
    line = " ".join(f"{speaker}{record.text}".split())
    return line if len(line) <= max_length else line[: max_length - 1].rstrip() + "…"
