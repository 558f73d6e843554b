"""Commands that propose: remember, revise, forget, restore.

Each acts as an agent unless told otherwise, and says what became of the write: a write that stored
nothing says so and why.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.blobs import MediaType, attached
from keepward.cli.call import Answer, Call, text_of
from keepward.cli.frame import EXIT_OF_OUTCOME
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.cli.screen import Screen
    from keepward.model.proposal import Outcome

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the journal.")]
IfVersion = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", help="Change it only if N is still its newest version."),
]
MemoryId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Its id, the first letters of it (8 or more), or its key.", show_default=False),
]
Consent = Annotated[
    bool, typer.Option("--consent", help="Personal identifiers in the text were given with consent: keep them.")
]


def remember(
    call: Call,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads stdin.", show_default=False)],
    tier: Annotated[
        str | None, typer.Option(metavar="TIER", help="core, working, episodic or archival. [default: archival]")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="rule, fact, state, event, summary or document.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="NAME", help="A stable name; writing to it again updates it.")
    ] = None,
    subject: Annotated[str | None, typer.Option(metavar="NAME", help="Whom or what it is about.")] = None,
    category: Annotated[str | None, typer.Option(metavar="NAME", help="A label of your own.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="May be given several times.")] = None,
    source: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="user_message, tool, document, web, inference ...")
    ] = None,
    evidence: Annotated[
        list[str] | None, typer.Option(metavar="REF", help="What backs it, such as chat:42. Several times.")
    ] = None,
    confidence: Annotated[float | None, typer.Option(metavar="0..1", help="Is it true? [default: by source]")] = None,
    importance: Annotated[float | None, typer.Option(metavar="0..1", help="Is it useful? [default: by source]")] = None,
    ttl: Annotated[str | None, typer.Option(metavar="TIME", help="How long it holds: 90s, 15m, 24h, 30d, 2w.")] = None,
    stability: Annotated[str | None, typer.Option(metavar="WORD", help="volatile, stable or permanent.")] = None,
    sensitivity: Annotated[str | None, typer.Option(metavar="WORD", help="normal or sensitive.")] = None,
    session: Annotated[str | None, typer.Option(metavar="NAME", help="The conversation it comes from.")] = None,
    derived_from: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A memory it was made from. Several times.")
    ] = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="A JSON object of your own.")] = None,
    consent: Consent = False,
    reason: Reason = "",
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A picture, recording or other file that TEXT describes.")
    ] = None,
    blob: Annotated[str | None, typer.Option(metavar="REF", help="The same for one that `blob put` keeps.")] = None,
    media_type: MediaType = None,
) -> Answer:
    """Remember a text. A missing store is made."""
    # Names as they were typed: the library says which there are.
    named: dict[str, Any] = {
        "tier": tier,
        "kind": kind,
        "source": source,
        "stability": stability,
        "sensitivity": sensitivity,
        "metadata": None if metadata is None else _object(metadata),
    }
    with call.memory(create=True) as memory:
        result = memory.remember(
            text_of(text),
            key=key,
            subject=subject,
            category=category,
            tags=tuple(tag or ()),
            evidence=tuple(evidence or ()),
            confidence=confidence,
            importance=importance,
            ttl=ttl,
            session=session,
            derived_from=tuple(derived_from or ()),
            consent=consent,
            reason=reason,
            **named,
            **attached(memory, file, blob, media_type),
        )
    return written(result)


def revise(
    call: Call,
    memory_id: MemoryId,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The new text; - reads stdin.", show_default=False)
    ] = None,
    reason: Reason = "",
    if_version: IfVersion = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="New tags, in place of the old.")] = None,
    category: Annotated[str | None, typer.Option(metavar="NAME", help="A label of your own.")] = None,
    subject: Annotated[str | None, typer.Option(metavar="NAME", help="Whom or what it is about.")] = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="A JSON object.")] = None,
    source: Annotated[str | None, typer.Option(metavar="SOURCE", help="Where the new text comes from.")] = None,
    evidence: Annotated[list[str] | None, typer.Option(metavar="REF", help="What backs it. Several times.")] = None,
    confidence: Annotated[float | None, typer.Option(metavar="0..1", help="Is it true?")] = None,
    importance: Annotated[float | None, typer.Option(metavar="0..1", help="Is it useful?")] = None,
    sensitivity: Annotated[str | None, typer.Option(metavar="WORD", help="normal or sensitive.")] = None,
    ttl: Annotated[
        str | None, typer.Option(metavar="TIME", help="New time to live from now; never removes it.")
    ] = None,
    append: Annotated[bool, typer.Option("--append", help="Add the text to what is there.")] = False,
    consent: Consent = False,
) -> Answer:
    """Give a memory a new text or new fields; the old version stays in its history."""
    from keepward.model.change import KEEP

    fields: dict[str, Any] = {
        "tags": tuple(tag) if tag else KEEP,
        "category": KEEP if category is None else category,
        "subject": KEEP if subject is None else subject,
        "metadata": KEEP if metadata is None else _object(metadata),
        "sensitivity": sensitivity,
        "importance": importance,
        "ttl": KEEP if ttl is None else None if ttl == "never" else ttl,
    }
    backing: dict[str, Any] = {"source": source, "confidence": confidence, "if_version": if_version}
    if append and (text is None or any(value is not KEEP and value is not None for value in fields.values())):
        raise InvalidInput("--append takes a text, --source, --evidence and --confidence alone")
    with call.memory() as memory:
        if append:
            result = memory.append(
                memory_id, text_of(str(text)), reason=reason, evidence=tuple(evidence or ()), **backing
            )
        else:
            result = memory.revise(
                memory_id,
                KEEP if text is None else text_of(text),
                reason=reason,
                evidence=tuple(evidence) if evidence else KEEP,
                consent=consent,
                **fields,
                **backing,
            )
    return written(result)


def forget(call: Call, memory_id: MemoryId, reason: Reason = "", if_version: IfVersion = None) -> Answer:
    """Retire a memory: it no longer holds, and `restore` brings it back."""
    with call.memory() as memory:
        return written(memory.forget(memory_id, reason=reason, if_version=if_version))


def archive(call: Call, memory_id: MemoryId, reason: Reason = "", if_version: IfVersion = None) -> Answer:
    """Put a memory away: it is not at hand until `restore` brings it back."""
    with call.memory() as memory:
        return written(memory.archive(memory_id, reason=reason, if_version=if_version))


def restore(
    call: Call,
    memory_id: MemoryId,
    reason: Reason = "",
    ttl: Annotated[str | None, typer.Option(metavar="TIME", help="A new term, for one that has expired.")] = None,
    if_version: IfVersion = None,
) -> Answer:
    """Bring back a retired, archived or expired memory."""
    with call.memory() as memory:
        return written(memory.restore(memory_id, reason=reason, ttl=ttl, if_version=if_version))


def written(result: Outcome) -> Answer:
    """Return the answer to a write, with what to do next where there is something to do."""
    from keepward import present

    data = present.outcome(result)
    talk: tuple[str, ...] = ()
    if data["proposal"]:
        held = f"held for review: approve it with `keepward approve {data['proposal']}`"
        talk = (held, "what is said with `--as operator` is the owner's own and is decided by that")
    return Answer(
        data={**data, "next": talk[0] if talk else None},
        show=lambda screen: show_written(screen, data),
        code=EXIT_OF_OUTCOME[data["outcome"]],
        talk=talk,
    )


_WORDS = {
    "committed": ("committed", "bold green", "{id} v{version}"),
    "duplicate": ("duplicate", "bold cyan", "{id} v{version} holds this already; nothing new was stored"),
    "quarantined": ("held", "bold yellow", "nothing changes until a person approves it"),
    "refused": ("refused", "bold red", "nothing was stored but the receipt"),
}


def show_written(screen: Screen, data: dict[str, Any], *, indent: int = 0, brief: bool = False) -> None:
    """Print what became of a write, its reasons and its receipt; `brief` leaves out the ids to look it up by."""
    word, style, rest = _WORDS[data["outcome"]]
    from keepward.present import redaction

    # What is stored is not what was said: that belongs in the first line.
    said = "; ".join(filter(None, (rest.format(**data), redaction(data["redacted"]))))
    screen.labelled(word, said, style=style, indent=indent)
    if data["outcome"] != "refused" and data["tier"]:
        named = f" · key {data['key']}" if data["key"] else ""
        until = f" · until {data['expires_at'][:16].replace('T', ' ')} UTC" if data["expires_at"] else ""
        screen.labelled("", f"{data['tier']} {data['kind']}{named}{until}", style="dim", indent=indent)
    for reason in data["reasons"]:
        screen.labelled("why", f"{reason['gate']}: {reason['detail']} ({reason['code']})", indent=indent)
    for label in () if brief else ("proposal", "commit", "receipt"):
        if data[label]:
            screen.labelled(label, data[label], style="dim", indent=indent)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as fault:
        raise InvalidInput("--metadata is not JSON") from fault
    if not isinstance(value, dict):
        raise InvalidInput("--metadata takes a JSON object")
    return value
