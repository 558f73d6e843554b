"""LoCoMo: long conversations between two named people, in dated sessions.

One conversation is told to one tenant, one ``session_n`` one session, one turn one episodic memory that
stays: its speaker, the session's date, the dialogue id as alias and evidence, and the caption of a
shared picture behind the text. Questions and answers in the file are no memories and stay out.

Format: Maharana et al. (2024), "Evaluating Very Long-Term Conversational Memory of LLM Agents".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from keepward.core.value import parse_instant
from keepward.errors import InvalidInput
from keepward.interchange.parsing import Row, require_well_formed
from keepward.services.writing.splitter import UnusableItem

# Not from the calendar module, whose names follow the locale.
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DATED = re.compile(r"(\d{1,2}):(\d{2})\s*([ap])\.?m\.?\s+on\s+(\d{1,2})\s+([A-Za-z]+),?\s+(\d{4})", re.IGNORECASE)
_SESSION = re.compile(r"session_(\d+)")
_DIALOGUE = re.compile(r"D\d+:\d+")


def rows(file: Path, *, tenant: str, notes: list[str]) -> Iterator[Row]:
    """Yield the turns of the conversation of a file that is named like the tenant; what is odd is added to ``notes``.

    Raises:
        InvalidInput: not this format, or there is none of that name.
    """
    value = json.loads(file.read_text("utf-8"))
    found = [each for each in (value if isinstance(value, list) else [value]) if each.get("sample_id") == tenant]
    if len(found) != 1 or not isinstance(found[0].get("conversation"), dict):
        raise InvalidInput(f"{file.name} holds no conversation {tenant} in the LoCoMo format")
    yield from _turns(found[0], notes)


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


def _turns(conversation: dict[str, Any], notes: list[str]) -> Iterator[Row]:
    talk, name = conversation["conversation"], conversation["sample_id"]
    number = 0
    for _, session in sorted((int(found[1]), name) for name in talk if (found := _SESSION.fullmatch(name))):
        at = _date_of(talk.get(f"{session}_date_time"), f"{name} {session}", notes)
        for turn in talk[session]:
            number += 1
            try:
                yield number, _item(turn, session, at)
            except UnusableItem as exc:
                yield number, UnusableItem(f"{name} {session}: {exc}")


def _date_of(text: Any, where: str, notes: list[str]) -> datetime | None:
    try:
        return read_date(text) if isinstance(text, str) else None
    except InvalidInput:
        notes.append(f"{where}: its date was not understood; its turns have none")
        return None


def _item(turn: Any, session: str, at: datetime | None) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise UnusableItem("a turn is not an object")
    require_well_formed(turn)
    text, speaker, name = turn.get("text", ""), turn.get("speaker"), turn.get("dia_id")
    if not isinstance(text, str) or not isinstance(speaker, str) or not speaker.strip():
        raise UnusableItem("a turn needs a text and a speaker")
    if not isinstance(name, str) or not _DIALOGUE.fullmatch(name):
        raise UnusableItem("a turn needs a dialogue id such as D1:3")
    shown = next((turn[key] for key in ("blip_caption", "query") if isinstance(turn.get(key), str)), "").strip()
    if shown:
        text = f"{text.strip()} [shares a photo: {shown}]".strip()
    if not text.strip():
        raise UnusableItem(f"turn {name} has no text")
    return {
        "text": text,
        "tier": "episodic",
        "kind": "event",
        "stability": "stable",
        "session": session,
        "speaker": speaker.strip(),
        "occurred_at": at,
        "name": name,
        "evidence": (name,),
    }
