"""Conversations whose messages are added to memory as they come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from keepward.core.memory import Tier
from keepward.core.policy import Policy
from keepward.core.principals import Trust, user_of
from keepward.core.quotes import quotes_metadata
from keepward.services.arguments import plain_text

if TYPE_CHECKING:
    from typing import Self

    from keepward.core.compiled import CompiledContext
    from keepward.core.messages import Added
    from keepward.core.proposal import Outcome
    from keepward.core.query import Memories

#: Minimum messages of a session that gets a summary at its end, and most that its end sums up.
MIN_TURNS, MAX_TURNS = 3, 64


class ConversationMemory(Protocol):
    """The operations of a memory that a conversation uses."""

    @property
    def scope(self) -> str:
        """The scope of the handle."""
        ...

    def add(self, *args: Any, **options: Any) -> Added:
        """Store messages."""
        ...

    def context(self, *args: Any, **options: Any) -> CompiledContext:
        """Compile a context."""
        ...

    def list_memories(self, *args: Any, **options: Any) -> Memories:
        """List memories."""
        ...

    def remember(self, *args: Any, **options: Any) -> Outcome:
        """Propose a new memory."""
        ...


class Conversation:
    """One session of messages. Each message is stored or quarantined when its call returns."""

    def __init__(self, memory: ConversationMemory, name: str, subject: str | None) -> None:
        self._memory = memory
        #: Name of the session, and the user it is about.
        self.name, self.subject = plain_text("name", name), subject

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Propose a summary of the messages without one, unless an error ended the block."""
        if kind is None:
            reason = "summed up at the end of the session"
            propose_summaries(self._memory, self.name, subject=self.subject, reason=reason)

    def user(self, /, text: str, **extra: Any) -> Added:
        """Add a message of the user; ``extra`` is its ``id``, ``name`` or ``timestamp``."""
        return self.say("user", text, **extra)

    def assistant(self, /, text: str, **extra: Any) -> Added:
        """Add a message of the assistant."""
        return self.say("assistant", text, **extra)

    def tool(self, /, text: str, **extra: Any) -> Added:
        """Add the output of a tool."""
        return self.say("tool", text, **extra)

    def say(self, /, role: str, text: str, *, timestamp: datetime | str | float | None = None, **extra: Any) -> Added:
        """Add a message of a role. Its default timestamp is now."""
        message: Mapping[str, Any] = {"role": role, "content": text, **extra}
        if timestamp is not None:
            message = {**message, "timestamp": timestamp}
        return self._memory.add([message], session=self.name, subject=self.subject)

    def context(self, /, objective: str, **options: Any) -> CompiledContext:
        """Compile the memories that the next answer needs; ``options`` are those of ``Memory.context``."""
        return self._memory.context(objective, **options)


def propose_summaries(memory: ConversationMemory, session: str, *, subject: str | None = None, reason: str) -> None:
    """Propose extracts of the messages that no summary covers; several if they are many or expire at different times.

    Sensitive messages, and messages below the trust of an agent, are left out.
    """
    # Imported here, as a program without sessions starts faster without.
    from keepward.jobs.extracts import by_expiry, session_extract

    subject = user_of(memory.scope) if subject is None else subject
    events = [
        event
        for event in memory.list_memories(session=session, kinds=["event"], include_sensitive=False, limit=500)
        if event.trust >= Trust.AGENT and event.scope == memory.scope and event.subject == subject
    ]
    if len(events) < MIN_TURNS:
        return
    summarized = {
        memory_id
        for summary in memory.list_memories(session=session, kinds=["summary"], limit=500)
        for memory_id in summary.derived_from
    }
    fresh = [event for event in reversed(events) if event.id not in summarized][-MAX_TURNS:]
    if len(fresh) < MIN_TURNS:
        return
    # A client does not know the policy of its server.
    policy: Policy = getattr(memory, "policy", None) or Policy()
    size = max(policy.summary_most, 1)
    for group in by_expiry(fresh):
        for part in (group[start : start + size] for start in range(0, len(group), size)):
            quoted = session_extract(part, policy.text_limit[Tier.EPISODIC])
            if quoted is not None:
                memory.remember(
                    quoted[0],
                    tier="episodic",
                    kind="summary",
                    subject=subject,
                    session=session,
                    job=session,
                    derived_from=[event.id for event in part],
                    metadata=quotes_metadata(quoted[1]),
                    reason=reason,
                )
