"""Secrets that are told: what a sentence presents as a password, PIN, code or key, in some thirty languages.

Invariants
(1) A told value counts when its own shape is that of a secret, or when the sentence leaves no other reading: a password
    noun, a linking verb, one word that describes nothing, the end of the clause.
(2) The answer to a security question counts, and, in languages without blanks, a code by its relation to what it opens.
(3) Where no phrase holds, a value of the shape of a secret counts by the words in its `proximity`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from keepward.gates.detect import proximity
from keepward.gates.detect.checks import digits, high_entropy, ordinary, passphrase, placeholder, strong, wordy
from keepward.gates.detect.engine import Finding, any_literal, literal_set, located
from keepward.gates.detect.rules import any_word, expanded, literals_of
from keepward.gates.detect.tables import listed, once, read, words
from keepward.gates.detect.text import Text
from keepward.model.patterns import regex

#: Told values looked at in one text, all phrases together: so many at least, and one more for so many characters.
#: What comes after is covered as a flood.
_LEAST_TOLD, _EACH_TOLD = 200, 320

#: A word with a number, ``Heron-2``: of the shape of a ticket, but for the place where a password is told.
_NUMBERED = regex("(?:[A-Z][a-z]{3,}-[0-9]{1,4}|[a-z]{4,}-[0-9]{2,4})")
#: An instant, cut at the colon by which a name and its password are told: its day and hour, and the rest.
_HOUR = regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:\Z")
_MINUTES = regex(r"[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?")
#: A sign of HTML behind a value, as far as the phrases read it, and an address up to a value in it.
_ENTITY, _ADDRESS = regex(r"\.?&[a-z]{2,6}\Z"), regex(r"://\S*\Z")
#: Kinds of phrases that leave no other reading than that a password follows.
_SURE = frozenset({"said", "set", "wanted", "script"})
#: Digits that are most often a year.
_YEAR = regex("(?:19|20)[0-9]{2}")
#: Half-open spans of a match by the names of its groups; the empty name is the whole.
Groups = dict[str, tuple[int, int]]


def last_word(text: str) -> str:
    """Return the letters that a text ends with, in lower case."""
    return re.split(r"[^a-z]+", text.lower().rstrip("_- "))[-1]


def no_keys() -> frozenset[str]:
    """Return words before "key" that make it no secret: a primary key, a sort key."""
    return words("told", "assigned", "no_keys")


@functools.cache
def _english() -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what stands in every text that an English phrase finds something in, and the phrases."""
    tables = read("told")
    phrases = tuple((row["kind"], expanded(row["pattern"], tables)) for row in tables["phrase"])
    return "(?i)" + "|".join(tables["telling"]), phrases


class _Languages:
    """The languages of a file: the literals of each, without which its phrases find nothing."""

    def __init__(
        self,
        file: str,
        lists: Iterable[str],
        phrases_of: Callable[[int], tuple[tuple[str, str], ...]],
        needs: Callable[[int], str] | None = None,
    ) -> None:
        rows = read(file)["language"]
        self.languages = [
            (place, frozenset(literals_of(listed(" | ".join(row[name] for name in lists if name in row)))))
            for place, row in enumerate(rows)
        ]
        self.literals = tuple(sorted({literal for _, literals in self.languages for literal in literals}))
        self._phrases_of = phrases_of
        #: A pattern that occurs in every text that a phrase of a language finds something in.
        self._needs = needs

    @once
    def _matcher(self) -> Any:
        return literal_set(self.literals)

    def phrases(self, text: Text) -> Iterator[tuple[str, str]]:
        """Yield kind and pattern of the phrases whose literals stand in a text in lower case."""
        found = self._matcher.Match(text.lower.encode("utf-8", "replace")) or ()
        here = {self.literals[place] for place in found}
        for place, literals in self.languages:
            if not here.isdisjoint(literals) and (self._needs is None or text.occurs(self._needs(place))):
                yield from self._phrases_of(place)


@functools.cache
def _foreign() -> tuple[str, _Languages]:
    """Return what stands in every text that a phrase of another language finds something in, and the languages."""
    languages = _Languages("told", ("password", "pin"), _phrases, _noun)
    return any_literal(set(languages.literals) - {"pin", "pw"}) + r"|(?i:\bpin\b|pin-?co|pin-?ko|\bpw\b)", languages


@functools.cache
def _opened() -> tuple[str, _Languages]:
    """Return what stands in every text in which a relation holds, and the languages (2)."""
    asked = ("question", "topic")
    languages = _Languages("opened", ("code", "opens", "lock", "turn", *asked), _relations)
    questions = {
        literal
        for row in read("opened")["language"]
        for name in asked
        for literal in literals_of(listed(row.get(name, "")))
    }
    word, number = any_literal(set(languages.literals) - questions), "(?:[0-9][ -]?[0-9]|[!#$%&@_*][0-9])"
    return rf"{any_literal(questions)}|{word}[^\n]*{number}|{number}[^\n]*{word}", languages


@functools.cache
def _relations(place: int) -> tuple[tuple[str, str], ...]:
    """Return kind and pattern of each relation between the lists of a language."""
    tables = read("opened")
    row = tables["language"][place]
    spaced = row.get("spaced", True)
    edge = r"\b" if spaced else ""
    lists = {name: any_word(listed(text), begin=edge, end=edge) for name, text in row.items() if isinstance(text, str)}
    parts = {name: [pattern] for name, pattern in (tables["parts"] | lists).items()}
    return tuple(
        (relation["kind"], "(?i)" + expanded(relation["pattern"], {"lists": parts}))
        for relation in tables["relation"]
        if relation.get("spaced", True) == spaced
    )


@functools.cache
def _noun(place: int) -> str:
    """Return a pattern that is a part of each phrase of a language: a word for a password or a PIN."""
    row = read("told")["language"][place]
    spaced, compounds = row.get("spaced", True), "*" in row["password"]
    edge = r"(?:^|[^\p{L}])" if spaced and not compounds else ""
    begin, end = (r"\b" if compounds or not spaced else ""), ("" if spaced else r"\b")
    password, pin = (any_word(listed(row[name]), begin=begin, end=end) for name in ("password", "pin"))
    return rf"(?i){edge}(?:(?P<p>{password})|(?P<n>{pin}))"


@functools.cache
def _phrases(place: int) -> tuple[tuple[str, str], ...]:
    """Return kind and pattern of the phrases of a language: with a colon, with a verb, and with nothing between."""
    tables = read("told")
    row = tables["language"][place]
    opening, value, shaped = (tables["lists"][name][0] for name in ("open", "value", "shaped"))
    spaced = row.get("spaced", True)
    blank, gap = (r"\s+", r"[^.\n:=!?;\"]{1,60}?") if spaced else (r"\s*", r"[^.\n:=!?;。！？\"]{1,30}?")
    noun = _noun(place)
    link = rf"(?:{blank}{any_word(listed(row['link']))}|\s?[:：=]|\s?->|\s[-–—])"
    tail = rf"(?:\s*[:：=])?(?:\s+{any_word(listed(tables['still']))})?{blank if spaced else ''}\s*"
    patterns = [
        rf"{noun}(?:{blank}{gap})?(?:\s*[:：=]|\s[-–—])\s*{opening}{value}",
        rf"{noun}(?:{blank}{gap})?{link}{tail}{opening}{value}",
        *([rf"{noun}{blank}{opening}{value}"] if row.get("link_may_lack") else ()),
    ]
    found = [("said" if spaced else "script", pattern) for pattern in patterns]
    if "to" in row:
        to, changed = (any_word(listed(row[name]), begin=r"\b", end=r"\b") for name in ("to", "changed"))
        found += (
            ("apart", rf"{noun}(?:{blank}{gap})?[,?]?\s+{opening}{shaped}"),
            ("apart", rf"(?i){changed}(?:\s{gap})?{noun[4:]}(?:\s+{gap})?\s+{to}\s+{opening}{shaped}"),
            ("changed", rf"(?i){shaped}[\"'”»]?\s+{any_word(listed(row['as']))}(?:\s+\w+)?{noun[4:]}"),
            ("changed", rf"{noun}(?:\s+{gap})?\s+{to}\s+{opening}{shaped}[^\w\n]{{0,2}}\s+{changed}"),
        )
    return tuple(found)


def patterns() -> tuple[str, tuple[str, ...]]:
    """Return what stands in every text that an English phrase finds something in, and a pattern for each place.

    Places are those that `in_prose` takes: the English phrases, the other languages, what is opened, what is near.
    """
    telling, phrases = _english()
    return telling, (*(pattern for _, pattern in phrases), _foreign()[0], _opened()[0], proximity.telling())


def in_prose(text: Text, telling: Collection[int] | None) -> Iterator[Finding]:
    """Yield values that prose presents as a password, PIN, code or key (1).

    ``telling`` holds the places of the `patterns` that may occur; None: all.
    """
    budget = iter(range(max(_LEAST_TOLD, len(text.text) // _EACH_TOLD)))
    gate, phrases = _english()
    if (telling is None or telling) and text.occurs(gate):
        for place, (kind, pattern) in enumerate(phrases):
            if telling is None or place in telling:
                yield from _said(kind, pattern, text, budget)
    for place, (gate, languages) in enumerate((_foreign(), _opened()), start=len(phrases)):
        if (telling is None or place in telling) and text.occurs(gate):
            for kind, pattern in languages.phrases(text):
                yield from _said(kind, pattern, text, budget)
    if (telling is None or len(phrases) + 2 in telling) and text.occurs(proximity.telling()):
        for start, end, _ in proximity.find(text.text):
            yield located(text, start, end, "told_secret", "likely")


def _said(kind: str, pattern: str, text: Text, budget: Iterator[int]) -> Iterator[Finding]:
    whole = text.text
    for groups in text.groups(pattern):
        start, end = groups["v"]
        if kind == "words":
            phrase = whole[start:end].replace(",", " ").replace("-", " ").lower().split()
            if len(phrase) >= 4 and _listed("glue").isdisjoint(phrase):
                yield located(text, start, end, "told_secret", "likely")
            continue
        if next(budget, None) is None:
            yield located(text, start, len(whole), "told_secret", "likely")
            return
        if kind == "script":
            end = next((place for place in range(start, end) if not 0x21 <= ord(whole[place]) < 0x7F), end)
        end = start + len(whole[start:end].rstrip(".,;:)]}'’”…*"))
        if whole[start:end].endswith(("!", "?")) and not digits(whole[start:end]):
            end -= 1
        if whole.startswith(";", end):
            end = start + len(_ENTITY.sub("", whole[start:end]))
        judge = _JUDGES.get(kind, _tells_secret)
        if kind != "turns" and _ADDRESS.search(whole, max(0, start - 200), start):
            continue  # passwords in addresses have rules of their own
        if kind == "turns" or (end - start >= 3 and judge(whole, start, end, kind, groups)):
            yield located(text, start, end, "told_secret", "likely")


def _listed(name: str) -> frozenset[str]:
    return words("told", "words", name)


def _is_other_code(text: str, groups: Groups) -> bool:
    """Whether the word for a code is part of one that opens nothing: of an error, of a product, of a circuit."""
    first, last = groups.get("n", (0, 0))
    named = text[first:last].lower()
    if named.startswith("pin") and proximity.speaks_of("circuit", text[max(0, first - 80) : last + 80]):
        return True
    before = re.split(r"[^\w']+", text[max(0, first - 24) : first].lower().rstrip())[-1]
    after = re.split(r"[^\w']+", text[last : last + 24].lower().lstrip())[0]
    around = {before, named, after if after.startswith("postal") else ""}
    others = _opening("other_codes")
    glued = not before.isascii() and before.endswith(tuple(word for word in others if not word.isascii()))
    return first < last and (glued or not others.isdisjoint(around))


def _opening(name: str) -> frozenset[str]:
    return words("opened", "words", name)


def _answers(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    """Whether a value that stands behind a security question is of the shape of an answer (2)."""
    value = text[start:end]
    if value.lower() in _listed("not_values") | _opening("no_answers") or placeholder(value):
        return False
    named = value[0].isupper() or not value.isascii()
    return digits(value) >= 4 or named or (kind == "answer" and plain_word(value) and _ends_clause(text, end))


def _opens(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    """Whether a value that stands beside what it would open is of the shape of a code or a password (2)."""
    value, rest = text[start:end], text[end : end + 1]
    named = start > groups.get("n", (0, start))[1] and "ァ" <= text[start - 1] <= "ー"
    if named or _is_other_code(text, groups) or rest in _opening("counters") or _is_product(value):
        return False
    if all(char.isdigit() or char in "-#*" for char in value):
        return 4 <= digits(value) <= 12 and (value.isdigit() or not ordinary(value))
    return digits(value) >= (1 if len(value) < 6 or not value.isalnum() else 2) and strong(value)


def _is_product(value: str) -> bool:
    return proximity.shape_of(value) == "product"


def _looks_like_password(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    """Whether a value without a verb before it looks like a password, and ends its clause."""
    value = text[start:end]
    number = "n" in groups and value.isdigit() and 4 <= len(value) <= 12 and not _YEAR.fullmatch(value)
    shaped = number or (strong(value) and digits(value) > 0)
    counted = value.isdigit() and proximity.is_counted(text, start)
    no_secret = counted or _is_product(value) or _is_other_code(text, groups)
    return shaped and not no_secret and (kind == "changed" or _ends_clause(text, end))


def _is_something_else(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    """Whether a value, or what stands around it, says that it is none of a secret."""
    value = text[start:end]
    if value[0] == "-" or value.lower() in _listed("not_values") or placeholder(value) or _is_other_code(text, groups):
        return True
    if kind == "pair":
        hour = _MINUTES.fullmatch(value) and _HOUR.search(text, max(0, start - 14), start)
        return bool(hour) or _is_product(value) or (value.isdigit() and text.startswith(": ", start - 2))
    # What is assigned to something else after the noun: m=65536.
    noun = max(groups[name][1] for name in ("p", "n", "k") if name in groups)
    return text.startswith("=", start - 1) and text[start - 2].isalnum() and start - 1 > noun


def _tells_secret(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    value = text[start:end]
    noun = "p" if "p" in groups else "n" if "n" in groups else "k"
    quoted = "q" in groups or (start > 0 and text[start - 1] in "\"'`“‘«「")
    after = text[end : end + 24].lstrip("\"'`”’ ").split(" ", 1)[0].lower().strip(".,;:!?)\n")
    counted = after in _listed("units") or text[end : end + 1] in _opening("counters")
    if noun == "p" and _passes(text, groups):
        return False
    number = digits(value) > 0 and all(char.isdigit() or char in "-#*/." for char in value)
    if kind in {"turned", "as"}:
        compound = text[slice(*groups.get("after", (0, 0)))].strip(" -").lower()
        plain = (
            noun == "p" and plain_word(value) and (quoted or kind == "as" or value.lower() in _listed("common"))
        ) or (noun == "n" and number and len(value) >= 4)
        variable = noun == "k" and digits(value) == 0  # of code: positiveName = token
        return compound not in _listed("compounds") and not variable and (strong(value) or plain)
    if _is_something_else(text, start, end, kind, groups):
        return False
    if noun == "n" and number:
        said = text[slice(*groups["n"])].lower()
        least = 3 if said.startswith(("cv", "com")) else 4
        # Digits that are a date, a time or a version are no code.
        odd = not value.isdigit() and ordinary(value) and "-" not in value.strip("-")
        return least <= digits(value) <= 12 and not counted and not odd
    if noun == "k":
        first, last = groups["k"]
        if text[first:last].lower() == "key" and (
            ":" in value or last_word(text[max(0, first - 24) : first]) in no_keys()
        ):
            return False
        if kind == "beside":
            return not ordinary(value) and high_entropy(value)
        random = high_entropy(value, least=12) or (strong(value) and len(value) >= 6 and digits(value) > 0)
        return random and not ordinary(value) and not wordy(value)
    named = text[slice(*groups["n"])].lower() if noun == "n" else ""
    if named.startswith("com") or (named.startswith("pin") and digits(value) * 2 < len(value)):
        return False
    if value.isdigit():
        return len(value) >= (4 if kind != "beside" else 5) and not counted
    if strong(value) or (noun == "p" and kind in _SURE and _NUMBERED.fullmatch(value)):
        return not counted or not value[0].isdigit()
    if noun == "p" and (value.lower() in _listed("common") or passphrase(value)):
        return True
    if noun != "p" or kind in {"beside", "pair"} or (kind == "with" and value.lower() in _listed("compounds")):
        return False
    if kind == "script":
        return plain_word(value) and value.isascii()
    return plain_word(value) and (quoted or _ends_clause(text, end))


def _passes(text: str, groups: Groups) -> bool:
    """Whether "pass" is a verb: "did not correctly pass it"."""
    first, last = groups["p"]
    return text[first:last].lower() == "pass" and last_word(text[max(0, first - 24) : first]) in _listed("before_verbs")


def plain_word(value: str) -> bool:
    """Whether a value is a word that can be a password: it describes nothing, and is no example."""
    lowered = value.lower()
    if lowered in _listed("not_values") or placeholder(value) or ordinary(value) or len(value) < 4:
        return False
    describes = lowered.endswith(tuple(_listed("not_endings"))) and lowered not in _listed("nouns")
    return value.replace("-", "").replace("'", "").isalpha() and not describes


def _ends_clause(text: str, end: int) -> bool:
    rest = text[end : end + 20].lstrip("\"'`”’")
    if not rest.strip() or rest[0] in "\n.,;!?)\"'`”’»」…(*-–—" or "\n" in rest[:2]:
        return True
    return rest[0] == " " and len(rest) > 1 and rest.split(" ", 2)[1].strip(".,").lower() in _listed("next_clause")


#: Who judges the values of a kind of phrase, where it is not the rule for told ones.
_JUDGES = {
    "apart": _looks_like_password,
    "changed": _looks_like_password,
    "opened": _opens,
    "within": _opens,
    "answer": _answers,
    "topic": _answers,
}
