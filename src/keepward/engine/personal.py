"""Ask the store's own redactor about every text of a write, before any gate judges it."""

from __future__ import annotations

import re

from keepward.engine.kit import Kit
from keepward.errors import InvalidInput
from keepward.gates.detect.finding import Finding
from keepward.gates.fields import texts
from keepward.gates.verdict import Case

_KIND = re.compile(r"[a-z][a-z_]{0,40}")
_MARKER = re.compile(r"\[[A-Z_]+\]")


def personal(kit: Kit, case: Case) -> dict[str, tuple[Finding, ...]]:
    """Return what the redactor found, by text; nothing where there is none.

    Raises:
        ModelUnavailable: it cannot be used now.
        InvalidInput: it named a span outside of the text, or a kind that is no name.
    """
    if kit.redactor is None:
        return {}
    found = {}
    for text in dict.fromkeys(text for _, text in texts(case)):
        spans = tuple(_finding(text, *span) for span in kit.redactor.find(text))
        if kept := tuple(each for each in spans if not _MARKER.fullmatch(text[each.start : each.end])):
            found[text] = kept
    return found


def _finding(text: str, start: int, end: int, kind: str) -> Finding:
    if not (0 <= start < end <= len(text) and _KIND.fullmatch(kind)):
        raise InvalidInput("the redactor named a span outside of the text, or a kind that is no lower-case name")
    return Finding(detector=kind, start=start, end=end)
