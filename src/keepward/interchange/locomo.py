"""LoCoMo: long conversations between two named people, in dated sessions.

One conversation becomes one tenant, one ``session_n`` one session, one turn one episodic memory that
stays: its speaker, the session's date, the dialogue id as alias and evidence, and the caption of a
shared picture behind the text. Questions and answers in the file are no memories and stay out.

Format: Maharana et al. (2024), "Evaluating Very Long-Term Conversational Memory of LLM Agents".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from keepward.errors import InvalidInput
from keepward.interchange.items import Flaw, Item, Plan, numbered
from keepward.interchange.reading import Unusable, well_formed
from keepward.model.value import parse_instant

# Not from the calendar module, whose names follow the locale.
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DATED = re.compile(r"(\d{1,2}):(\d{2})\s*([ap])\.?m\.?\s+on\s+(\d{1,2})\s+([A-Za-z]+),?\s+(\d{4})", re.IGNORECASE)
_SESSION = re.compile(r"session_(\d+)")
_DIALOGUE = re.compile(r"D\d+:\d+")


def looks_like(value: Any) -> bool:
    """Whether a JSON value is a conversation of this format."""
    return isinstance(value, dict) and isinstance(value.get("conversation"), dict)


def plan(value: Any, *, tenant: str, limit: int) -> Plan:
    """Read conversations into items; ``tenant`` picks one, ``default`` all.

    Raises:
        InvalidInput: not this format, an id is missing or used twice, or the tenant names none of them.
    """
    conversations = value if isinstance(value, list) else [value]
    names: list[str] = []
    for place, each in enumerate(conversations, 1):
        name = each.get("sample_id") if looks_like(each) else None
        if not isinstance(name, str) or not name or name in names:
            raise InvalidInput(f"conversation {place} is not in the LoCoMo format or has no sample_id of its own")
        names.append(name)
    if not names:
        raise InvalidInput("the file holds no conversation")
    if tenant not in {*names, "default"}:
        raise InvalidInput(f"the file holds no conversation for this tenant; it holds {', '.join(names)}")
    chosen = [each for each in conversations if tenant in {each["sample_id"], "default"}]
    if tenant in names:
        chosen = [each for each in chosen if each["sample_id"] == tenant]
    notes = []
    if len(chosen) < len(names):
        notes.append(f"other conversations in the file left out: {len(names) - len(chosen)}")
    if any(each.get("qa") for each in chosen):
        notes.append("questions and answers in the file left out: they are no memories")
    entries = list(_turns(chosen, limit, notes))
    return Plan(total=len(entries), entries=iter(entries), notes=notes)


def read_date(text: str) -> datetime:
    """Read ``1:56 pm on 8 May, 2023``, or ISO 8601, as UTC.

    Raises:
        InvalidInput: neither.
    """
    match = _DATED.fullmatch(text.strip())
    if match is None or match[5].lower() not in _MONTHS:
        return parse_instant(text.strip())
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    try:
        return datetime(
            int(match[6]), _MONTHS.index(match[5].lower()) + 1, int(match[4]), hour, int(match[2]), tzinfo=UTC
        )
    except ValueError as fault:
        raise InvalidInput("no such date") from fault


def _turns(conversations: list[dict[str, Any]], limit: int, notes: list[str]) -> Iterator[Item | Flaw]:
    number = 0
    for conversation in conversations:
        talk = conversation["conversation"]
        sessions = sorted((int(m[1]), name) for name in talk if (m := _SESSION.fullmatch(name)))
        for _, session in sessions:
            at = _date_of(talk.get(f"{session}_date_time"), f"{conversation['sample_id']} {session}", notes)
            turns = talk[session]
            if not isinstance(turns, list):
                number += 1
                yield Flaw(number=number, reason=f"{conversation['sample_id']} {session} is not a list of turns")
                continue
            for turn in turns:
                number += 1
                try:
                    for fields in numbered(_fields(turn, session, at), limit):
                        yield Item(number=number, tenant=conversation["sample_id"], fields=fields, named=True)
                except Unusable as fault:
                    yield Flaw(number=number, reason=f"{conversation['sample_id']} {session}: {fault}")


def _date_of(text: Any, where: str, notes: list[str]) -> datetime | None:
    try:
        return read_date(text) if isinstance(text, str) else None
    except InvalidInput:
        notes.append(f"{where}: its date was not understood; its turns have none")
        return None


def _fields(turn: Any, session: str, at: datetime | None) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise Unusable("a turn is not an object")
    well_formed(turn)
    text, speaker, name = turn.get("text", ""), turn.get("speaker"), turn.get("dia_id")
    if not isinstance(text, str) or not isinstance(speaker, str) or not speaker.strip():
        raise Unusable("a turn needs a text and a speaker")
    if not isinstance(name, str) or not _DIALOGUE.fullmatch(name):
        raise Unusable("a turn needs a dialogue id such as D1:3")
    shown = next((turn[key] for key in ("blip_caption", "query") if isinstance(turn.get(key), str)), "").strip()
    if shown:
        text = f"{text.strip()} [shares a photo: {shown}]".strip()
    if not text.strip():
        raise Unusable(f"turn {name} has no text")
    return {
        "text": text,
        "tier": "episodic",
        "kind": "event",
        "stability": "stable",
        "session": session,
        "speaker": speaker.strip(),
        "occurred_at": at,
        "aliases": (name,),
        "evidence": (name,),
    }
