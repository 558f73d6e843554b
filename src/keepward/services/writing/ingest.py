"""Ingest chat messages: each becomes an event of a session, and "remember that ..." a fact, as it was said.

An ``Extractor`` may propose further facts. No sentence is rewritten here, and no keyed state is written.

Every message and every fact goes through the gates by itself; one that is quarantined or refused affects no other.
Facts come from stored, redacted messages only. Each is derived from its message, so that it is trusted no more.
A message with an id is added once, and so are its facts: the same call again stores nothing.
No extractor runs inside a transaction, and a failing one loses no message.
A message longer than a text may be becomes several events, linked by ``part`` and ``parts``; one that cannot be split
is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from keepward.core.change import Insert
from keepward.core.memory import Record, Status, Tier
from keepward.core.messages import Added, Fact, Message, Turn, parse_message
from keepward.core.patterns import lazy_regex
from keepward.core.principals import ROLES, user_of
from keepward.core.proposal import Outcome, Proposal
from keepward.core.value import plain_name, to_micros
from keepward.errors import InvalidInput, ModelUnavailable
from keepward.retrieval.small_talk import has_content
from keepward.services.request_context import RequestContext
from keepward.services.writing.splitter import UnusableItem, split_item
from keepward.services.writing.write import propose_each

#: Returns evidence for a text.
EvidenceOf = Callable[[str], Sequence[str]]
#: Importance of what is stored automatically: no person said that it matters.
AUTOMATIC_IMPORTANCE: Final = 0.4
#: Messages in one commit.
MESSAGE_BATCH = 100
#: Name of a user whose name is unknown.
DEFAULT_SPEAKER = "The user"
#: In a longer message, or one of several lines, "remember that ..." counts only at the very beginning. Characters.
MAX_TYPED_LENGTH: Final = 300
_ASKED_TO_REMEMBER: Final = lazy_regex(
    r"(?:^|(?<=[.!?。]\s))[ \t]*(?P<quote>(?:(?:and|also|hey|hi|ok|okay|please),? )*"
    r"(?P<you>(?:can|could|will|would) you (?:please )?)?(?:remember|keep in mind|do not forget|don['’]t forget)"
    r"(?:,? that\b(?! (?:time|day|night|one)\b)|:)[ \t]*(?P<what>[^\s.!?].{0,298}?))"
    r"(?P<end>(?<!\b[A-Za-z])(?<!\b[DMS][rst])(?<!\bMrs)(?<!\bNo)[.!?。]+(?=\s)|[.!?。]*[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
#: Code, quotes and HTML elements. An open quote or element extends to the end.
_NOT_TYPED: Final = lazy_regex(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^[ \t]*>.*$|^(?: {4}|\t).*$"
    r"|<(?P<tag>[a-z][\w:.-]*)\b[^>]*(?:>.*?(?:</(?P=tag)\s*>|\Z)|\Z)"
    r"|[\"＂][^\"＂]*(?:[\"＂]|\Z)|[“‟][^”]*(?:”|\Z)|„[^“”]*(?:[“”]|\Z)|«[^»]*(?:»|\Z)|»[^«]*(?:«|\Z)"
    r"|‹[^›]*(?:›|\Z)|›[^‹]*(?:‹|\Z)|「[^」]*(?:」|\Z)|『[^』]*(?:』|\Z)|《[^》]*(?:》|\Z)|〈[^〉]*(?:〉|\Z)"
    r"|(?<!\w)['‘‚‛`](?=\S).*?(?:['’‘`](?!\w)|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
#: Introduces pasted text: "Sum this up: ...".
_COLON: Final = lazy_regex(r"[:：](?!\S)|：")
#: What a person says of oneself, and not of a text: "I moved to Bristol. Remember that ...".
_OF_ONESELF: Final = lazy_regex(
    r"(?:I|I['’](?:m|ve|ll|d)|my|we|we['’](?:re|ve|ll|d)|our)\b(?!.*\b(?:sa(?:y|ys|id)|wr(?:ite|ites|ote)|read|reads|t(?:ells?|old)"
    r"|quote[ds]?|found|got|received|copied|pasted|this|these|following|here|below|page|site|web\w*|e?-?mails?"
    r"|messages?|letters?|articles?|posts?|documents?|files?|texts?|notes?|links?)\b).*",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE_END: Final = lazy_regex(r"(?<=[.!?。])\s+")


def add(
    context: RequestContext,
    /,
    messages: Sequence[Any],
    *,
    reason: str = "",
    extract: bool = True,
    subject: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    evidence_of: EvidenceOf = lambda _: (),
    **extra: Any,
) -> Added:
    """Add messages in their order, and propose the facts in them; ``session`` is the conversation.

    ``on_progress`` is called with (done, total) after each hundred. ``evidence_of`` returns evidence for the text of a
    fact, in addition to its message.

    Raises:
        InvalidInput: one of them is not a message; nothing was stored.
    """
    conversation = extra.get("session")
    conversation = None if conversation is None else plain_name(conversation)
    reason = reason or "said in a conversation"
    parsed: list[Message] = []
    for number, value in enumerate(messages, 1):
        try:
            parsed.append(parse_message(value))
        except InvalidInput as exc:
            raise InvalidInput(f"message {number}: {exc}") from exc
    spoken = [message for message in parsed if message.text and ROLES[message.role]]
    notes = list(_left_out(parsed))
    events = [event for message in spoken for event in _events(context, message, conversation, subject, notes)]
    proposed = _pending_records(context, (name for event in events for name in event.aliases))
    pending = {(after.scope, after.session, alias) for after in proposed for alias in after.aliases}
    new = [
        event for event in events if not event.aliases or (event.scope, event.session, event.aliases[0]) not in pending
    ]
    if len(new) < len(events):
        notes.append(f"left out: {len(events) - len(new)} messages that are in the review queue already")
    turns: list[Outcome] = []
    facts: list[Outcome] = []
    for start in range(0, len(new), MESSAGE_BATCH):
        batch = new[start : start + MESSAGE_BATCH]
        outcomes = propose_each(context, batch, reason=reason, conversation=conversation, kind="write")
        turns += outcomes
        missing = dict.fromkeys(each.detail for one in outcomes for each in one.reasons if each.code == "no_vector")
        notes += [detail for detail in missing if detail not in notes]
        if extract:
            stored = [outcome.record for outcome in outcomes if outcome.record is not None]
            new_facts, fact_notes = propose_facts(context, stored, subject or user_of(context.scope), evidence_of)
            notes += [note for note in fact_notes if note not in notes]
            facts += new_facts
        if on_progress is not None:
            on_progress(len(turns), len(new))
    unstored = sum(outcome.record is None for outcome in turns)
    if extract and unstored:
        notes.append(f"no facts were taken from {unstored} messages that were quarantined or refused")
    notes += redaction_notes(turns)
    return Added(turns=tuple(turns), facts=tuple(facts), notes=tuple(notes))


def redaction_notes(outcomes: Iterable[Outcome]) -> list[str]:
    """Return a note with the kinds of secrets and identifiers that were redacted, and in how many memories."""
    counts = Counter(kind for outcome in outcomes if outcome.record is not None for kind in outcome.redacted)
    named = ", ".join(f"{kind.replace('_', ' ')} in {count}" for kind, count in sorted(counts.items()))
    return [f"replaced by a marker: {named}"] if named else []


def _pending_records(context: RequestContext, names: Iterable[str]) -> list[Record]:
    """Return the records of pending proposals that refer to one of some ids."""
    refs = set(names)
    queue = context.store.documents(Proposal, context.tenant).list(state="pending", refs=refs) if refs else ()
    return [step.after for item in queue for step in item.steps]


def _left_out(messages: Sequence[Message]) -> Iterator[str]:
    empty = sum(not message.text for message in messages)
    others = sum(message.others for message in messages if message.text)
    instructions = sum(bool(message.text) and ROLES[message.role] is None for message in messages)
    for count, what in (
        (empty, "messages without text (calls of tools, pictures)"),
        (others, "parts that are not text (pictures, files)"),
        (instructions, "instructions to the model (system, developer)"),
    ):
        if count:
            yield f"left out: {count} {what}"


def _events(
    context: RequestContext, message: Message, conversation: str | None, subject: str | None, notes: list[str]
) -> list[Insert]:
    """Return a message as one event, or as several if it is long; if it cannot be split, add a note."""
    fields = {
        "text": message.text,
        "kind": "event",
        "occurred_at": message.said_at,
        "aliases": (plain_name(message.id),) if message.id else (),
        "metadata": {"role": message.role},
    }
    try:
        pieces = list(split_item(fields, context.policy.text_limit[Tier.EPISODIC]))
    except UnusableItem as exc:
        notes.append(f"a long message {exc}")
        pieces = [fields]
    return [
        Insert(
            id=context.ids.new_id(context.clock.now()),
            tier="episodic",
            stability="stable",
            scope=context.scope,
            session=conversation,
            subject=subject,
            speaker=message.name or (subject if subject and message.role == "user" else message.role),
            source=ROLES[message.role],
            importance=AUTOMATIC_IMPORTANCE,
            **piece,
        )
        for piece in pieces
    ]


def propose_facts(
    context: RequestContext,
    stored: Sequence[Record],
    subject: str | None,
    evidence_of: EvidenceOf = lambda _: (),
) -> tuple[list[Outcome], list[str]]:
    """Propose the facts in stored messages of one session; return the outcomes, and notes on what was left out.

    A fact that is pending already is not proposed again.
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
    facts = [
        fact
        for number, turn in enumerate(turns)
        if turn.role == "user" and stored[number].metadata.get("part", 1) == 1
        for fact in _remember_requests(turn, number)
    ]
    notes: list[str] = []
    if context.engine.extractor is not None:
        try:
            extracted = context.engine.extractor.extract(turns)
            if not all(isinstance(fact, Fact) for fact in extracted):
                raise ModelUnavailable("the extractor returned something else than facts")
        except ModelUnavailable as exc:
            notes.append(f'only what follows "remember that" was stored as facts: {exc}')
        else:
            own = [(fact.turn, fact.text) for fact in facts]
            facts += [
                fact for fact in extracted if not any(fact.turn == turn and text in fact.quote for turn, text in own)
            ]
    # A message that is not active any more, such as a forgotten one, gives no facts.
    proposals = [
        Insert(
            id=context.ids.new_id(context.clock.now()),
            text=fact.text,
            tier="archival",
            kind="fact",
            scope=record.scope,
            subject=subject,
            speaker=record.speaker,
            occurred_at=record.occurred_at,
            source="extracted",
            derived_from=(record.id,),
            evidence=(record.id, *evidence_of(fact.text)),
            confidence=fact.confidence,
            importance=fact.importance,
            metadata={"quote": fact.quote},
        )
        for fact in facts
        if (record := stored[fact.turn]).status is Status.ACTIVE
    ]
    if proposals:
        queue = _pending_records(context, (name for change in proposals for name in change.derived_from))
        pending = {(after.scope, after.text, after.derived_from) for after in queue}
        new = [change for change in proposals if (change.scope, change.text, change.derived_from) not in pending]
        if len(new) < len(proposals):
            notes.append("left out: facts that are in the review queue already")
        proposals = new
    session_of = stored[0].session if stored else None
    return propose_each(context, proposals, reason="said in a conversation", conversation=session_of), notes


def _is_of_oneself(text: str) -> bool:
    """Whether each sentence is small talk or about its author; any other may announce pasted text."""
    return all(not has_content(each) or _OF_ONESELF.match(each) for each in _SENTENCE_END.split(text))


def _remember_requests(turn: Turn, number: int) -> Iterator[Fact]:
    """Yield what the user asked to remember, as it was said; quoted text, code and pasted text are no request."""
    masked = _NOT_TYPED.sub(lambda match: "\0" * len(match[0]), turn.text)
    begin = len(masked) - len(masked.lstrip())
    typed = len(masked) <= MAX_TYPED_LENGTH and "\n" not in masked.strip()
    for match in _ASKED_TO_REMEMBER.finditer(masked, begin):
        before = masked[begin : match.start()].strip()
        pasted = before and (not typed or _COLON.search(before) or not _is_of_oneself(before))
        if not pasted and (match["you"] or "?" not in match["end"]):
            text, quote = (turn.text[slice(*match.span(name))] for name in ("what", "quote"))
            yield Fact(text, quote=quote, turn=number, importance=AUTOMATIC_IMPORTANCE, confidence=0.9)
