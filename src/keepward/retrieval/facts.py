"""Facts of a talk: what somebody said of themselves that is worth knowing for longer, in the third person.

Without any model: clauses that begin with their subject are held against the rules of ``facts.toml``. What is asked,
supposed, hedged, quoted or pasted is no statement. Half of what people tell in passing is missed so; of what is
found little is wrong.

Invariants
(1) Pure: the same talk gives the same facts for ever, in the order in which they were said.
(2) Every fact quotes the words that it rests on, as they stand in the turn.
(3) Nothing is said of anybody but who speaks and what they call theirs.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from keepward.model.patterns import regex, table
from keepward.model.talk import Fact, Turn
from keepward.retrieval.dates import spelled_out
from keepward.retrieval.units import sentences

#: Characters of a clause, and facts of one turn: what is longer or more is pasted, not told.
LONGEST: Final = 300
MOST: Final = 12
_FENCED: Final = regex(r"```.*?(?:```|\Z)|^[ \t]*>.*$", re.DOTALL | re.MULTILINE)
_QUOTED: Final = regex(r"[\"“][^\"“”]*[\"”]")
_SPLIT: Final = regex(
    r"(?:\s*[;–—]\s*|\s+-\s+|,?\s+(?:and|but|though|plus)\s+|,\s+)(?=(?:I|I'm|I've|I'd|I'll|we|my|My|We)\b)"
)
_PASTED: Final = regex(r"[{}<>=\\|]|https?://|\w\(\)|::")
_SUPPOSED: Final = regex(r"(?:if|unless|suppose|imagine|pretend|what if)\b", re.IGNORECASE)
_VERB_S: Final = {"have": "has", "do": "does", "go": "goes", "don't": "does not", "do not": "does not"}
_PRONOUNS: Final = tuple(
    (regex(rf"\b(?:{pattern})\b"), form)
    for pattern, form in (
        ("I'm|I am", "they are"),
        ("I was", "they were"),
        ("I've", "they have"),
        ("I'd", "they would"),
        ("I'll", "they will"),
        ("I", "they"),
        ("[Mm]yself", "themselves"),
        ("[Mm]y", "their"),
        ("[Mm]ine", "theirs"),
        ("me", "them"),
    )
)
_PAST: Final = regex(
    r"[a-z]+ed|[a-z]*(?:got|bought|sold|won|lost|broke|met|went|flew|chose|quit|gave|had|left|grew|was|taught|ran|built)"
)
#: Where a second verb of the same subject follows one that is no infinitive: "I live in Leeds and work as a baker".
_SECOND: Final = regex(
    r"(?<= and )(?:(?:live|work|teach|study)(?= (?:in|as|at|for|from)\b)|(?:have|own|speak|play)(?= \w))"
)
_UNCHANGED: Final = frozenset(["can", "can't", "cannot", "will", "would", "used"])
_SHORT: Final = (
    ("I'm", "is"),
    ("I am", "is"),
    ("I've", "has"),
    ("I was", "was"),
    ("I'd", "would"),
    ("I'll", "will"),
)


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    pattern: re.Pattern[str]
    says: str | None
    slot: str | None
    importance: float


@dataclass(frozen=True, slots=True)
class _Tables:
    """What ``facts.toml`` says."""

    rules: tuple[_Rule, ...]
    openers: re.Pattern[str]
    idle: re.Pattern[str]
    passing: re.Pattern[str]
    hedge: re.Pattern[str]
    remember: re.Pattern[str]
    recalled: re.Pattern[str]
    standing: re.Pattern[str]
    adverbs: frozenset[str]
    padding: frozenset[str]


@cache
def _tables() -> _Tables:
    read: dict[str, Any] = table(__package__, "facts.toml")

    def pattern(text: str) -> re.Pattern[str]:
        # A name is told by its capital letter; everything else is the same in either case.
        return regex(text, 0 if "[A-Z]" in text else re.IGNORECASE)

    return _Tables(
        rules=tuple(
            _Rule(each["name"], pattern(each["pattern"]), each.get("says"), each.get("slot"), each["importance"])
            for each in read["rule"]
        ),
        openers=pattern(rf"{read['openers']}\b(?:\s*[,:.!–—-]+\s*|\s+)(?=\S)"),
        idle=pattern(read["idle"]),
        passing=pattern(read["passing"]),
        hedge=pattern(read["hedge_after"]),
        remember=pattern(read["remember"]),
        recalled=pattern(read["recalled"]),
        standing=pattern(rf"(?:{'|'.join(read['standing'])})\W*"),
        adverbs=frozenset(read["adverbs"] + read["padding"]),
        padding=frozenset(read["padding"]),
    )


class Rules:
    """The extractor that needs no model: what users say of themselves, by the rules of ``facts.toml``."""

    id = "rules"

    def extract(self, turns: Sequence[Turn]) -> list[Fact]:
        """Return the facts of a talk; those of each turn stand together."""
        return [
            fact.saying(fact.text, number)
            for number, turn in enumerate(turns)
            if turn.role == "user"
            for fact in facts_of(turn)
        ]


def facts_of(turn: Turn) -> list[Fact]:
    """Return what one turn tells of who said it, in order."""
    name = turn.speaker
    found: dict[str, Fact] = {}
    body = _FENCED.sub(" ", turn.text.replace("’", "'"))
    for sentence in sentences(body):
        if len(sentence) > LONGEST or _PASTED.search(sentence) or _tables().hedge.search(_QUOTED.sub(" ", sentence)):
            continue
        if sentence.endswith(("?", "？")) and not _tables().remember.match(sentence):
            continue
        for clause in _clauses(sentence.rstrip(" .!?。！？").lstrip("-*• ")):
            fact = _fact_of(clause, name)
            if fact is not None:
                dated = fact if turn.said_at is None else fact.saying(spelled_out(fact.text, turn.said_at), 0)
                found.setdefault(dated.text.casefold(), dated)
    return list(found.values())[:MOST]


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence that begin with who speaks, without what leads up to them."""
    whole = _without_openers(sentence)
    if _tables().remember.match(whole) or _tables().standing.fullmatch(whole):
        yield whole
        return
    supposed = False
    for part in _SPLIT.split(whole):
        clause = _without_openers(part.strip())
        # What hangs on a condition is supposed as much as the condition is.
        supposed = supposed or _SUPPOSED.match(clause) is not None
        if clause and not supposed:
            yield clause


def _without_openers(text: str) -> str:
    while True:
        match = _tables().openers.match(text)
        if match is None or match.end() == len(text):
            return text
        text = text[match.end() :]


def _fact_of(clause: str, name: str) -> Fact | None:
    match = _tables().remember.match(clause)
    if match is not None and not _tables().recalled.match(match["what"]):
        what = re.sub(r"^(?:remind me )?(?:that |about )?", "", match["what"].strip())
        if match["to"]:
            verb = "be reminded to" if match["to"].strip() == "to" else "be reminded about"
            return Fact(f"{name} asked to {verb} {_others(what)}", quote=clause, importance=0.8, confidence=0.9)
        inner = _statement(_without_openers(what), name)
        text = inner.text if inner else _sentence(what, name)
        return Fact(text, quote=clause, slot=inner.slot if inner else None, importance=0.8, confidence=0.9)
    if _tables().standing.fullmatch(clause):
        return Fact(f'{name} asked: "{clause}"', quote=clause, importance=0.8, confidence=0.8)
    return _statement(clause, name)


def _statement(clause: str, name: str) -> Fact | None:
    tables = _tables()
    # "I'm vegetarian" has three words, too.
    if tables.idle.match(clause) or len(clause.replace("'", " ").split()) < 3:
        return None
    # A name is told by its capital letter, so that the first word must not have one that says nothing.
    spoken = "I" + clause[1:] if re.match(r"[iI](?=[ '])", clause) else clause[0].lower() + clause[1:]
    for rule in tables.rules:
        match = rule.pattern.fullmatch(spoken)
        if match is None:
            continue
        groups = match.groupdict()
        if "whose" in groups:
            if tables.passing.match(groups["what"]):
                return None
            text = f"{_possessive(name)} {_others(spoken[3:])}"
        elif rule.says is not None:
            words = {key: _others((value or "").strip()) for key, value in groups.items()}
            text = rule.says.format(name=name, whose=_possessive(name), clause=spoken, **words)
        else:
            text = _third_person(spoken, name)
        slot = rule.slot and rule.slot.format(**groups).replace(" ", "_").lower()
        return Fact(text, quote=clause, slot=slot, importance=rule.importance, confidence=0.8)
    return None


def _third_person(clause: str, name: str) -> str:
    """Return a clause that begins with "I" as one about ``name``."""
    for short, long in _SHORT:
        if re.match(rf"{short}\b", clause):
            return _agreeing(f"{name} {long}{_others(clause[len(short) :])}")
    rest = clause[2:]
    words = rest.split(" ")
    at = 0
    while at < len(words) - 1 and words[at].lower() in _tables().adverbs:
        at += 1
    if words[at : at + 2] in (["no", "longer"], ["kind", "of"]):
        at += 2
    head, verb = [each for each in words[:at] if each.lower() not in _tables().padding], words[at]
    tail = words[at + 1 :]
    if verb in {"do", "don't"} or (verb == "do" and tail[:1] == ["not"]):
        negated = verb == "don't" or tail[:1] == ["not"]
        tail = tail[1:] if verb == "do" and negated else tail
        verb = "does not" if negated else "does"
    elif verb not in _UNCHANGED and not _PAST.fullmatch(verb):
        verb = _singular(verb)
    return _agreeing(" ".join((name, *head, verb, *_others(" ".join(tail)).split(" "))).strip())


def _agreeing(text: str) -> str:
    """Return a statement in the third person with its second verb in it, too."""
    first, joint, second = text.partition(" and ")
    if re.search(r"\b(?:to|not|can|will|would)\b", first):
        return text
    return first + _SECOND.sub(lambda verb: _singular(verb[0]), joint + second)


def _singular(verb: str) -> str:
    if verb in _VERB_S:
        return _VERB_S[verb]
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"


def _others(text: str) -> str:
    """Return what follows the subject, with its own "I" and "my" in the third person; what is quoted stays."""
    parts = re.split(f"({_QUOTED.pattern})", text)
    for pattern, form in _PRONOUNS:
        parts[::2] = [pattern.sub(form, part) for part in parts[::2]]
    return "".join(parts)


def _sentence(text: str, name: str) -> str:
    """Return a statement about anything as it was said, with who speaks by name."""
    third = text
    for pattern, form in ((r"\b[Mm]y\b", _possessive(name)), (r"\bI'm\b|\bI am\b", f"{name} is"), (r"\bI\b", name)):
        third = re.sub(pattern, form, third)
    return third[:1].upper() + third[1:]


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"
