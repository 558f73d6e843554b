"""Quoting: a summary without a model, made of the sources' own sentences.

Invariants
(1) Pure: the same sources give the same text, whatever else there is.
(2) Every sentence stands in a source, word for word, and in the order of the sources; nothing is added but who spoke.
(3) Where all sources fit they all stand in full. Else each source has its say before any has a second one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from keepward.model.memory import Record
from keepward.retrieval.analyze import terms
from keepward.retrieval.units import named, sentences

#: What a question counts for beside a statement, and what a sentence with a number does.
_QUESTION, _FIGURE = 0.5, 1.25
_CUT = " …"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    source: int
    place: int
    text: str
    worth: float


def quoted(sources: Sequence[Record], limit: int) -> str:
    """Return what the sources say, one a line, oldest first, in at most ``limit`` characters.

    A sentence is worth the sum over its distinct terms of log(1 + sources that hold the term), divided by the
    square root of their number, so that what several sources speak of comes first and length alone does not pay.
    """
    lines = [_line(source, _plain(source.text)) for source in sources]
    if len("\n".join(lines)) <= limit:
        return "\n".join(lines)
    return _drawn(sources, _chosen(sources, limit)) or lines[0][: max(limit - len(_CUT), 0)].rstrip() + _CUT


def _chosen(sources: Sequence[Record], limit: int) -> list[_Sentence]:
    told = _sentences(sources)
    ranked = sorted(told, key=lambda each: (-each.worth, each.source, each.place))
    first: dict[int, _Sentence] = {}
    for each in ranked:
        first.setdefault(each.source, each)
    ahead = sorted(first.values(), key=lambda each: (-each.worth, each.source))
    chosen: list[_Sentence] = []
    seen: set[str] = set()
    for each in dict.fromkeys((*ahead, *ranked)):
        if each.text not in seen and len(_drawn(sources, [*chosen, each])) <= limit:
            chosen.append(each)
            seen.add(each.text)
    return chosen


def _sentences(sources: Sequence[Record]) -> list[_Sentence]:
    parts = [(at, place, text) for at, source in enumerate(sources) for place, text in enumerate(_split(source.text))]
    held = [frozenset(terms(text)) for _, _, text in parts]
    spread: Counter[str] = Counter()
    for at in range(len(sources)):
        spread.update({term for (source, _, _), own in zip(parts, held, strict=True) if source == at for term in own})
    return [
        _Sentence(source=at, place=place, text=text, worth=_worth(text, own, spread))
        for (at, place, text), own in zip(parts, held, strict=True)
    ]


def _worth(text: str, own: frozenset[str], spread: Counter[str]) -> float:
    if not own:
        return 0.0
    worth = sum(math.log1p(spread[term]) for term in sorted(own)) / math.sqrt(len(own))
    worth *= _QUESTION if text.endswith(("?", "？")) else 1.0
    return worth * (_FIGURE if any(map(str.isdigit, text)) else 1.0)


def _drawn(sources: Sequence[Record], chosen: Sequence[_Sentence]) -> str:
    lines = []
    for at, source in enumerate(sources):
        own = sorted((each for each in chosen if each.source == at), key=lambda each: each.place)
        if own:
            lines.append(_line(source, " ".join(each.text for each in own)))
    return "\n".join(lines)


def _line(source: Record, text: str) -> str:
    speaker = named(source.speaker) or (source.speaker or "").strip()
    return f"{speaker}: {text}" if speaker else text


def _split(text: str) -> list[str]:
    return [_plain(each) for each in sentences(text)] or [_plain(text)]


def _plain(text: str) -> str:
    return " ".join(text.split())
