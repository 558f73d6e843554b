"""Adding a talk: its messages become events of a session, and "remember that ..." a fact, as it was said.

A model of one's own (an ``Extractor``) may propose further facts. No sentence is rewritten here, and no keyed state
is written.

Invariants
(1) Every message and every fact goes through the gates by itself; what is held or refused costs nothing but itself.
(2) Facts are taken from what was stored, after redaction, and from nothing that is held; each names the turn that told
    it as what it was derived from, so that it is trusted no more than that.
(3) A message with an id is added once, and so is a fact of it: the same call again stores nothing.
(4) No extractor holds a transaction open, and none that fails takes a message with it.
(5) A message longer than a text may be becomes several events, linked by ``part`` and ``parts``; one that cannot be cut
    is refused whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from keepward.core.change import Insert
from keepward.core.memory import Record, Status, Tier
from keepward.core.messages import ROLES, Added, Fact, Message, Turn, parse_message
from keepward.core.patterns import lazy_regex
from keepward.core.principals import user_of
from keepward.core.proposal import Outcome, Proposal
from keepward.core.value import plain_name, to_micros
from keepward.errors import InvalidInput, ModelUnavailable
from keepward.services.request_context import RequestContext
from keepward.services.splitter import UnusableItem, split_item
from keepward.services.write import propose_each

#: Importance of what was noted by itself: nobody said that it matters.
NOTED: Final = 0.4
#: Messages in one commit.
MESSAGE_BATCH = 100
#: What somebody is called who has no name.
DEFAULT_SPEAKER = "The user"
#: Characters: in a longer message, or one of several lines, "remember that ..." counts only at the very beginning.
MAX_TYPED_LENGTH: Final = 300
_ASKED_TO_REMEMBER: Final = lazy_regex(
    r"(?:^|(?<=[.!?。]\s))[ \t]*(?P<quote>(?:(?:and|also|hey|hi|ok|okay|please),? )*"
    r"(?P<you>(?:can|could|will|would) you (?:please )?)?(?:remember|keep in mind|do not forget|don['’]t forget)"
    r"(?:,? that\b(?! (?:time|day|night|one)\b)|:)[ \t]*(?P<what>[^\s.!?].{0,298}?))"
    r"(?P<end>(?<!\b[A-Za-z])(?<!\b[DMS][rst])(?<!\bMrs)(?<!\bNo)[.!?。]+(?=\s)|[.!?。]*[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
#: Code, quotes and elements of HTML. An open quote or element goes on to the end.
_NOT_TYPED: Final = lazy_regex(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^[ \t]*>.*$|^(?: {4}|\t).*$"
    r"|<(?P<tag>[a-z][\w:.-]*)\b[^>]*(?:>.*?(?:</(?P=tag)\s*>|\Z)|\Z)"
    r"|[\"＂][^\"＂]*(?:[\"＂]|\Z)|[“‟][^”]*(?:”|\Z)|„[^“”]*(?:[“”]|\Z)|«[^»]*(?:»|\Z)|»[^«]*(?:«|\Z)"
    r"|‹[^›]*(?:›|\Z)|›[^‹]*(?:‹|\Z)|「[^」]*(?:」|\Z)|『[^』]*(?:』|\Z)|《[^》]*(?:》|\Z)|〈[^〉]*(?:〉|\Z)"
    r"|(?<!\w)['‘‚‛`](?=\S).*?(?:['’‘`](?!\w)|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
#: Opens what somebody pasted: "Sum this up: ...".
_COLON: Final = lazy_regex(r"[:：](?!\S)|：")


def add(
    session: RequestContext,
    messages: Sequence[Any],
    *,
    conversation: str | None,
    subject: str | None,
    extract: bool,
    reason: str,
    on_progress: Callable[[int, int], None] | None = None,
) -> Added:
    """Add messages in their order; ``on_progress`` is called with (done, total) after each hundred.

    Raises:
        InvalidInput: one of them is no message; nothing was stored.
    """
    conversation = None if conversation is None else plain_name(conversation)
    said = [_read(number, each) for number, each in enumerate(messages, 1)]
    spoken = [each for each in said if each.text and ROLES[each.role]]
    notes = list(_left_out(said))
    events = [event for each in spoken for event in _events(session, each, conversation, subject, notes)]
    named = _pending_records(session, (name for each in events for name in each.aliases))
    waiting = {(after.session, alias) for after in named for alias in after.aliases}  # See (3).
    kept = [each for each in events if not each.aliases or (conversation, each.aliases[0]) not in waiting]
    if len(kept) < len(events):
        notes.append(f"left out: {len(events) - len(kept)} messages that wait for review since they were first added")
    turns: list[Outcome] = []
    facts: list[Outcome] = []
    for start in range(0, len(kept), MESSAGE_BATCH):
        part = kept[start : start + MESSAGE_BATCH]
        outcomes = propose_each(session, part, reason=reason, conversation=conversation, kind="write")
        turns += outcomes
        if extract:
            stored = [outcome.record for outcome in outcomes if outcome.record is not None]
            found, said_of = propose_facts(session, stored, subject or user_of(session.scope))
            notes += [note for note in said_of if note not in notes]
            facts += found
        if on_progress is not None:
            on_progress(len(turns), len(kept))
    unkept = sum(outcome.record is None for outcome in turns)
    if extract and unkept:
        notes.append(f"no facts were taken from {unkept} messages that are held or were refused")
    notes += redaction_notes(turns)
    return Added(turns=tuple(turns), facts=tuple(facts), notes=tuple(notes))


def redaction_notes(outcomes: Iterable[Outcome]) -> list[str]:
    """Return a note on the kinds of secrets and identifiers that markers replace, each with how many memories."""
    counts = Counter(kind for each in outcomes if each.record is not None for kind in each.redacted)
    named = ", ".join(f"{kind.replace('_', ' ')} in {count}" for kind, count in sorted(counts.items()))
    return [f"replaced by a marker: {named}"] if named else []


def _read(number: int, value: Any) -> Message:
    try:
        return parse_message(value)
    except InvalidInput as fault:
        raise InvalidInput(f"message {number}: {fault}") from fault


def _pending_records(session: RequestContext, names: Iterable[str]) -> list[Record]:
    """Return what would be stored by the proposals that wait and name one of some ids."""
    asked = set(names)
    queue = session.store.documents(Proposal, session.tenant).list(state="pending", refs=asked) if asked else ()
    return [step.after for item in queue for step in item.steps]


def _left_out(said: Sequence[Message]) -> Iterator[str]:
    empty = sum(not each.text for each in said)
    others = sum(each.others for each in said if each.text)
    instructions = sum(bool(each.text) and ROLES[each.role] is None for each in said)
    for count, what in (
        (empty, "messages without text (calls of tools, pictures)"),
        (others, "parts that are not text (pictures, files)"),
        (instructions, "instructions to the model (system, developer)"),
    ):
        if count:
            yield f"left out: {count} {what}"


def _events(
    session: RequestContext, message: Message, conversation: str | None, subject: str | None, notes: list[str]
) -> list[Insert]:
    """Return a message as one event, or as several where it is long; what it holds that bars a cut is a note."""
    fields = {
        "text": message.text,
        "kind": "event",
        "occurred_at": message.said_at,
        "aliases": (plain_name(message.id),) if message.id else (),
        "metadata": {"role": message.role},
    }
    try:
        pieces = list(split_item(fields, session.policy.text_limit[Tier.EPISODIC]))
    except UnusableItem as fault:
        notes.append(f"a long message {fault}")
        pieces = [fields]
    return [
        Insert(
            id=session.ids.new_id(session.clock.now()),
            tier="episodic",
            stability="stable",
            scope=session.scope,
            session=conversation,
            subject=subject,
            speaker=message.name or (subject if subject and message.role == "user" else message.role),
            source=ROLES[message.role],
            importance=NOTED,
            **piece,
        )
        for piece in pieces
    ]


def propose_facts(
    session: RequestContext, stored: Sequence[Record], subject: str | None
) -> tuple[list[Outcome], list[str]]:
    """Propose the facts that stored turns of one session tell; return them, and what was left out.

    What waits for a person since it was first told is not proposed again (3).
    """
    turns = [
        Turn(
            role=str(record.metadata.get("role")),
            speaker=record.speaker
            if record.speaker and record.speaker != record.metadata.get("role")
            else subject or DEFAULT_SPEAKER,
            text=record.text,
            said_at=None if record.occurred_at is None else to_micros(record.occurred_at),
        )
        for record in stored
    ]
    found = [
        fact
        for number, turn in enumerate(turns)
        if turn.role == "user" and stored[number].metadata.get("part", 1) == 1
        for fact in _remember_requests(turn, number)
    ]
    notes: list[str] = []
    if session.engine.extractor is not None:
        try:
            told = session.engine.extractor.extract(turns)
        except ModelUnavailable as fault:
            notes.append(f'only what follows "remember that" was kept as facts: {fault}')
        else:
            kept = [(fact.turn, fact.text) for fact in found]
            found += [fact for fact in told if not any(fact.turn == turn and text in fact.quote for turn, text in kept)]
    # A turn that no longer holds, such as one that was forgotten, tells nothing any more.
    proposals = [
        Insert(
            id=session.ids.new_id(session.clock.now()),
            text=fact.text,
            tier="archival",
            kind="fact",
            scope=record.scope,
            subject=subject,
            speaker=record.speaker,
            occurred_at=record.occurred_at,
            source="extracted",
            derived_from=(record.id,),
            evidence=(record.id,),
            confidence=fact.confidence,
            importance=fact.importance,
            metadata={"quote": fact.quote},
        )
        for fact in found
        if (record := stored[fact.turn]).status is Status.ACTIVE
    ]
    if proposals:
        queue = _pending_records(session, (name for each in proposals for name in each.derived_from))
        waiting = {(after.scope, after.text, after.derived_from) for after in queue}
        fresh = [each for each in proposals if (each.scope, each.text, each.derived_from) not in waiting]
        if len(fresh) < len(proposals):
            notes.append("left out: facts that wait for review since they were first told")
        proposals = fresh
    session_of = stored[0].session if stored else None
    return propose_each(session, proposals, reason="told in a talk", conversation=session_of), notes


def _remember_requests(turn: Turn, number: int) -> Iterator[Fact]:
    """Yield what the user asked to remember, as it was said; what is quoted, code or pasted is nobody's request."""
    masked = _NOT_TYPED.sub(lambda found: "\0" * len(found[0]), turn.text)
    begin = len(masked) - len(masked.lstrip())
    typed = len(masked) <= MAX_TYPED_LENGTH and "\n" not in masked.strip()
    for asked in _ASKED_TO_REMEMBER.finditer(masked, begin):
        pasted = asked.start() > begin and (not typed or _COLON.search(masked, 0, asked.start()))
        if not pasted and (asked["you"] or "?" not in asked["end"]):
            text, quote = (turn.text[slice(*asked.span(name))] for name in ("what", "quote"))
            yield Fact(text, quote=quote, turn=number, importance=NOTED, confidence=0.9)
