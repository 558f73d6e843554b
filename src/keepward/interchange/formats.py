"""Formats: which one a file is in, and the plan of its items.

Told by content, not by name: a vault by its seals, LoCoMo by its conversations, messages by role and
content, a legacy vault by its ids, and what is no JSON by its headings and lists.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal, get_args

from keepward.errors import InvalidInput
from keepward.interchange import legacy, locomo, markdown, messages, vault
from keepward.interchange.items import Plan
from keepward.interchange.reading import Source, Unusable, parse
from keepward.model.memory import Tier
from keepward.model.value import unknown

if TYPE_CHECKING:
    from keepward.memory import Memory

Format = Literal["auto", "vault", "locomo", "messages", "legacy-jsonl", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)
#: How many lines ``auto`` looks at before it gives up on damaged ones.
_PROBE = 50


def recognise(source: Source) -> Format:
    """Tell the format of a file by what is in it.

    Raises:
        InvalidInput: it looks like none of them, or like damaged JSON.
    """
    fault = ""
    is_json = source.first() in {"{", "["}
    for _, line in itertools.islice(source.lines(), _PROBE if is_json else 0):
        try:
            if isinstance(line, Unusable):
                raise line
            value = parse(line)
        except Unusable as problem:
            fault = fault or str(problem)
            continue
        known = _format_of(value)
        if known is not None:
            return known
    if is_json:
        try:
            known = _format_of(parse(source.text()))
        except Unusable as problem:
            raise InvalidInput(f"{source.name} cannot be read: {fault or problem}") from problem
        if known is not None:
            return known
    elif markdown.looks_like(source.text(), source.suffix):
        return "markdown"
    raise InvalidInput(f"{source.name} is in no format known here: name one of {', '.join(FORMATS[1:])}")


def _format_of(value: Any) -> Format | None:
    if isinstance(value, list):
        value = next((each for each in value if isinstance(each, dict)), None)
    if vault.looks_like(value):
        return "vault"
    if locomo.looks_like(value):
        return "locomo"
    if messages.looks_like(value):
        return "messages"
    return "legacy-jsonl" if legacy.looks_like(value) else None


def plan_of(chosen: Format, source: Source, mem: Memory, session: str | None) -> Plan:
    """Read a file in a format other than the vault's into items.

    Raises:
        InvalidInput: unreadable, cut, or nothing in it.
    """
    limit = mem.policy.text_limit[Tier.EPISODIC]
    match chosen:
        case "locomo":
            return locomo.plan(_document(source), tenant=mem.tenant, limit=limit)
        case "markdown":
            return markdown.plan(source, limit=mem.policy.text_limit[Tier.ARCHIVAL])
        case "legacy-jsonl":
            _checked_lines(source)
            return legacy.plan(source, core_keys=mem.policy.core_keys)
        case "messages":
            if _is_document(source):
                document = _document(source)
                return messages.plan_document(document, name=source.stem, session=session, limit=limit)
            total = _checked_lines(source)
            return messages.plan_lines(source, session=session, limit=limit, total=total)
    raise InvalidInput(unknown("format", chosen, FORMATS))


def _document(source: Source) -> Any:
    try:
        return parse(source.text())
    except Unusable as fault:
        raise InvalidInput(f"{source.name} cannot be read, nothing was imported: {fault}") from fault


def _is_document(source: Source) -> bool:
    """Whether a file of messages is one JSON value, and not one value a line."""
    if source.first() == "[":
        return True
    for _, line in itertools.islice(source.lines(), _PROBE):
        try:
            if isinstance(line, str) and isinstance(parse(line), dict):
                return False
        except Unusable:
            continue
    return True


def _checked_lines(source: Source) -> int:
    """Return the number of lines of a JSONL file that holds at least one whole line and was not cut."""
    count = good = 0
    fault: str | None = None
    for number, line in source.lines():
        count += 1
        if good:
            continue
        try:
            good += isinstance(line, str) and isinstance(parse(line), dict)
        except Unusable as problem:
            fault = fault or f"line {number}: {problem}"
    if not good:
        raise InvalidInput(f"{source.name} cannot be read, nothing was imported: {fault or 'no line is an object'}")
    if not source.ends_whole():
        raise InvalidInput(f"{source.name} ends within line {count}: it was cut. Nothing was imported")
    return count
