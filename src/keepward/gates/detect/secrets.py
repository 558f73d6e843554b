"""Secrets in a text: documented provider formats, keys, credentials, assignments and told passwords.

Invariants
(1) Findings of a documented format are ``certain``; told and assigned values are ``likely``.
(2) The same rules read the text as given, with invisible characters and look-alikes undone, with escapes
    undone, with quotes and line breaks squeezed out, and decoded from base64 or hexadecimal.
(3) Spans always refer to the text that was given.
(4) A variable's name ends in a secret word (``token_count`` and ``key_id`` are no secrets), and a value read from
    elsewhere (a variable, a call, a template, a path) is none.
(5) A told value counts when its own shape is that of a secret, or when the sentence leaves no other reading: a password
    noun, a linking verb, one word that describes nothing, the end of the clause.
(6) Of bytes that are no text the runs of readable characters are looked at, and there a documented format alone counts:
    what reads like a password is too often chance. What is packed or enciphered is not opened, and nobody says it is.
(7) A code counts without a word for it where it stands in a relation to what it opens, and its clause ends with it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from keepward.gates.detect.checks import (
    dense,
    digits,
    entropy,
    high_entropy,
    not_example,
    ordinary,
    passphrase,
    placeholder,
    strong,
    wordy,
)
from keepward.gates.detect.engine import Finding, Pack, Sieve, any_literal, literal_set, settled
from keepward.gates.detect.rules import any_word, expanded, literals_of, load, split_forms
from keepward.gates.detect.tables import listed, once, read, words
from keepward.gates.detect.text import TRACES, Text

_JUNK = " \t\r\n\"'`+\\"
_JUNK_BYTES = _JUNK.encode()
#: Every match of a rule without a telling string (``bare``) holds a run.
RUN = r"[A-Za-z0-9%+./=_~-]{16}"
#: Candidates looked at in one text; what comes after is covered as a flood. Of told values, all phrases together: so
#: many at least, and one more for so many characters.
_MOST_ASSIGNED, _LEAST_TOLD, _EACH_TOLD = 250, 200, 320
#: Characters of a blob that are looked at at once, and how many of them the next window looks at again: more than the
#: longest key block, so that none is cut in two.
WINDOW, OVERLAP = 65_536, 8_192

#: A word with a number, ``Heron-2``: of the shape of a ticket, but for the place where a password is told.
_NUMBERED = re.compile("(?:[A-Z][a-z]{3,}-[0-9]{1,4}|[a-z]{4,}-[0-9]{2,4})")
#: An instant, cut at the colon by which a name and its password are told: its day and hour, and the rest.
_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:\Z")
_MINUTES = re.compile(r"[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?")
#: Digits that are most often a year.
_YEAR = re.compile("(?:19|20)[0-9]{2}")
#: Kinds of phrases that leave no other reading than that a password follows.
_SURE = frozenset({"said", "set", "wanted", "script"})
#: Digits that are most often a year.
_YEAR = re.compile("(?:19|20)[0-9]{2}")
Groups = dict[str, tuple[int, int]]


@functools.cache
def _pack() -> Pack:
    return Pack((*load("providers"), *load("credentials"), *load("tokens", "formats")))


@functools.cache
def _services() -> Pack:
    return Pack(load("services", "names"))


@functools.cache
def _split_pack() -> tuple[Pack, Sieve]:
    pack = Pack(split_forms(load("providers")))
    return pack, Sieve(lambda: (rule.pattern for rule in pack.rules))


@functools.cache
def _anything() -> Sieve:
    """One search for rules, keys of services, assignments, told values and encodings, in this order."""
    rules = _pack().rules
    bare = [place for place, rule in enumerate(rules) if rule.bare]
    telling, phrases = _english()
    told = len(rules) + 2
    said = (*(pattern for _, pattern in phrases), _foreign()[0], _opened()[0])
    others = (read("services")["gate"], read("told")["assigned"]["gate"], *said, *TRACES)
    return Sieve(
        lambda: (*(rule.pattern for rule in rules), *others), {RUN: bare, telling: range(told, told + len(phrases))}
    )


def calm(text: Text) -> bool:
    """Whether one look at the whole text rules out any finding, in it and in each of its lines.

    False means only that it has to be scanned.
    """
    if not text.is_plain or not _anything().silent(text.data):
        return False
    return _split_pack()[1].silent(text.data.translate(None, _JUNK_BYTES))


def scan(given: str | Text) -> list[Finding]:
    """Return what looks like a secret, by start of span, then end, longer first."""
    text = given if isinstance(given, Text) else Text(given)
    form = text.normal
    if form.text == text.text:
        findings = list(_plain(text, _anything().matching(text.data)))
    else:
        findings = list(_plain(form))
        if form.origin is None:
            # A folded letter may have been part of the secret itself.
            findings += _plain(text)
    if form.unescaped is not None:
        findings += _plain(form.unescaped)
    for piece in form.hidden:
        # One finding covers the run: half an encoding is no safer than the whole.
        inner = next(iter(_plain(Text(piece.text))), None)
        if inner is not None:
            found = Finding(detector=inner.detector, start=piece.start, end=piece.end, certainty=inner.certainty)
            findings.append(found)
    if not _split_pack()[1].silent(form.data.translate(None, _JUNK_BYTES)):
        findings += _split(form)
    return settled(findings, len(text.text))


def _plain(text: Text, occurring: Collection[int] | None = None) -> Iterator[Finding]:
    """Yield findings of all rules, or only of those that are known to occur, by their places in ``_anything``."""
    rules = len(_pack().rules)
    if occurring is None or occurring:
        if occurring is None or min(occurring) < rules:
            yield from _pack().scan(text)
        # Names of services are looked for where a value stands that may be a key: most texts have none.
        if (occurring is None or rules in occurring) and text.occurs(read("services")["gate"]):
            yield from _services().scan(text)
        yield from _assigned(text)
        yield from _in_prose(text, None if occurring is None else {place - rules - 2 for place in occurring})


def _split(form: Text) -> Iterator[Finding]:
    """Find keys broken up by blanks, line ends, quotes and plus signs."""
    whole = form.text
    tight = Text(form.data.translate(None, _JUNK_BYTES).decode())
    rules = _split_pack()[0].awake(tight)
    if not rules or len(tight.text) == len(whole):
        return
    kept = form.places_without(_JUNK)
    for rule in rules:
        for count, (start, end) in enumerate(tight.spans(rule.pattern)):
            if count > 200:
                return
            body = tight.text[start:end]
            first, last = kept[start], kept[end - 1] + 1
            while last < len(whole) and (whole[last] in "-_" or (whole[last].isascii() and whole[last].isalnum())):
                last += 1
            glued = first > 0 and whole[first - 1].isascii() and whole[first - 1].isalnum()
            if (
                last - first > end - start
                and not glued
                and not_example(body)
                and entropy(body) >= 3.2
                and digits(body[4:])
            ):
                yield _found(form, first, last, rule.name, likely=False)


def _found(text: Text, start: int, end: int, name: str, *, likely: bool = True) -> Finding:
    first, last = text.span(start, end)
    return Finding(detector=name, start=first, end=last, certainty="likely" if likely else "certain")


@functools.cache
def _assignment() -> str:
    table = read("told")["assigned"]
    password, key = (
        any_word(sorted(listed(table[name]), key=lambda word: (-len(word), word))) for name in ("password", "key")
    )
    return rf"(?i)(?:(?P<p>{password})|(?P<k>{key})){table['after']}"


def _assigned(text: Text) -> Iterator[Finding]:
    """Yield the values assigned to secret-named variables: ``DB_PASSWORD=...``, ``"api_key": "..."`` (4)."""
    if not text.occurs(read("told")["assigned"]["gate"]):
        return
    whole = text.text
    for count, groups in enumerate(text.groups(_assignment())):
        start, end = groups["v"]
        if count >= _MOST_ASSIGNED:
            yield _found(text, start, len(whole), "secret_assignment")
            return
        value = whole[start:end].rstrip(".)]}\\" if "(" not in whole[start:end] else "\\")
        first = groups[""][0]
        name = groups.get("p") or groups["k"]
        glued = first > 0 and whole[first - 1].isalnum() and whole[first].islower() and name[1] - name[0] <= 4
        if "p" in groups:
            # Only code and configuration assign a plain quoted word: password = "sunshine".
            word = groups["q"][1] > groups["q"][0] and value.isalpha() and "=" in whole[name[1] : start]
            # So do a variable of the environment and a line of settings: PGPASSWORD=sunshine.
            word = word or (value.isalpha() and _is_setting(whole, first, name, start, end))
            counts = not glued and (strong(value) or passphrase(value) or (word and _word_assigned(value)))
        else:
            value = value.split("&", 1)[0]
            counts = high_entropy(value, least=12) and (dense(value) or not ordinary(value)) and "sha256:" not in value
            counts = counts and not (glued and whole[first - 1].islower())
            if whole[slice(*name)].lower() == "key":
                counts = counts and _names_a_secret(whole[max(0, first - 40) : first]) and digits(value) >= 3
        if counts and len(value) >= 4:
            yield _found(text, start, start + len(value), "secret_assignment")


def _names_a_secret(before: str) -> bool:
    """Whether a variable whose name ends in "key" may hold a secret: ``CLAY_KEY``, and not ``cache_key``."""
    if not before.endswith(("_", "-")):
        return False
    return _last_word(before) not in _no_keys()


def _last_word(text: str) -> str:
    return re.split(r"[^a-z]+", text.lower().rstrip("_- "))[-1]


def _no_keys() -> frozenset[str]:
    return words("told", "assigned", "no_keys")


def _is_setting(text: str, first: int, name: tuple[int, int], start: int, end: int) -> bool:
    """Whether a word is assigned to a variable in capitals, or at the end of a line to ``some_password:``."""
    capitals = text[slice(*name)].isupper() and text[name[1] : start] == "="
    line = first > 0 and text[first - 1] in "_-" and text[end : end + 1] in ("", "\n")
    return (capitals or line) and _plain_word(text[start:end])


def _word_assigned(value: str) -> bool:
    usual = value.lower() in {"password", "secret", "test", "pass"}
    return not (usual or placeholder(value) or ordinary(value))


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
    languages = _Languages("told", ("password", "pin"), _phrases)
    return any_literal(set(languages.literals) - {"pin", "pw"}) + r"|(?i:\bpin\b|pin-?co|pin-?ko|\bpw\b)", languages


@functools.cache
def _opened() -> tuple[str, _Languages]:
    """Return what stands in every text that tells by what something is opened, and the languages (7)."""
    asked = ("question", "topic")
    languages = _Languages("opened", ("code", "opens", "unlocks", "lock", "enter", "turn", *asked), _relations, _thing)
    questions = {
        literal
        for row in read("opened")["language"]
        for name in asked
        for literal in literals_of(listed(row.get(name, "")))
    }
    word = any_literal(set(languages.literals) - questions)
    number = "(?:[0-9][ -]?[0-9]|[!#$%&@_*][0-9])"
    return rf"{any_literal(questions)}|{word}[^\n]*{number}|{number}[^\n]*{word}", languages


@functools.cache
def _thing(place: int) -> str:
    """Return a pattern without which no relation of a language holds: what is opened, or a word that implies it."""
    row = read("opened")["language"][place]
    edge = r"\b" if row.get("spaced", True) else ""
    lists = (row.get(name, "") for name in ("thing", "lock", "unlocks", "purpose", "question", "topic"))
    return f"(?i){any_word(listed(' | '.join(filter(None, lists))), begin=edge, end=edge)}"


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
def _phrases(place: int) -> tuple[tuple[str, str], ...]:
    """Return kind and pattern of the phrases of a language: with a colon, with a verb, and with nothing between."""
    tables = read("told")
    row = tables["language"][place]
    opening, value, shaped = (tables["lists"][name][0] for name in ("open", "value", "shaped"))
    spaced, compounds = row.get("spaced", True), "*" in row["password"]
    edge = r"(?:^|[^\p{L}])" if spaced and not compounds else ""
    blank, gap = (r"\s+", r"[^.\n:=!?;\"]{1,60}?") if spaced else (r"\s*", r"[^.\n:=!?;。！？\"]{1,30}?")
    password, pin = (any_word(listed(row[name]), begin=r"\b" if compounds else "") for name in ("password", "pin"))
    noun = rf"(?i){edge}(?:(?P<p>{password})|(?P<n>{pin}))"
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


def _in_prose(text: Text, telling: Collection[int] | None) -> Iterator[Finding]:
    """Yield values that prose presents as a password, PIN, code or key (5).

    ``telling`` holds the places of the English phrases that may occur, one more for all other
    languages, and one for what is opened; None: all.
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


def _said(kind: str, pattern: str, text: Text, budget: Iterator[int]) -> Iterator[Finding]:
    whole = text.text
    for groups in text.groups(pattern):
        start, end = groups["v"]
        if kind == "words":
            phrase = whole[start:end].replace(",", " ").replace("-", " ").lower().split()
            if len(phrase) >= 4 and _listed("glue").isdisjoint(phrase):
                yield _found(text, start, end, "told_secret")
            continue
        if next(budget, None) is None:
            yield _found(text, start, len(whole), "told_secret")
            return
        if kind == "script":
            end = next((place for place in range(start, end) if not 0x21 <= ord(whole[place]) < 0x7F), end)
        end = start + len(whole[start:end].rstrip(".,;:)]}'’”…*"))
        if whole[start:end].endswith(("!", "?")) and not digits(whole[start:end]):
            end -= 1
        judge = _JUDGES.get(kind, _tells_secret)
        if end - start >= 3 and judge(whole, start, end, kind, groups):
            yield _found(text, start, end, "told_secret")


def _listed(name: str) -> frozenset[str]:
    return words("told", "words", name)


def _is_other_code(text: str, groups: Groups) -> bool:
    """Whether the word for a code is part of one that opens nothing: of an error, of a place, of a product."""
    first, last = groups.get("n", (0, 0))
    before = re.split(r"[^\w']+", text[max(0, first - 24) : first].lower().rstrip())[-1]
    after = _first_word(text[last : last + 24])
    around = {before, text[first:last].lower(), after if after.startswith("postal") else ""}
    return first < last and not _opening("other_codes").isdisjoint(around)


def _first_word(text: str) -> str:
    return re.split(r"[^\w']+", text.lower().lstrip())[0]


def _opening(name: str) -> frozenset[str]:
    return words("opened", "words", name)


def _opens(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    """Whether a value that stands beside what it would open is of the shape of a code or a password (7)."""
    value = text[start:end]
    if kind == "turns":
        return True
    if kind in {"answer", "topic"}:
        if value.lower() in _listed("not_values") | _opening("no_answers") or placeholder(value):
            return False
        named = value[0].isupper() or not value.isascii()
        return digits(value) >= 4 or named or (kind == "answer" and _plain_word(value) and _ends_clause(text, end))
    if _is_other_code(text, groups) or not _stands_free(text, start, end, kind, groups):
        return False
    key = text[slice(*groups.get("n", (0, 0)))].lower() in _opening("keys")
    if all(char.isdigit() or char in "-#* " for char in value):
        least = 8 if key else 4 if kind in {"lock", "entered", "opens"} else 3
        return least <= digits(value) <= (24 if key else 12) and (value.isdigit() or not ordinary(value))
    signs = len(value) < 6 or not value.isalnum()
    return kind != "lock" and digits(value) >= (1 if signs else 2) and strong(value) and not _is_program(value)


def _stands_free(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    """Whether what stands around a value makes it no number of a thing, no year, no count and no part of a number."""
    value, rest = text[start:end], text[end : end + 24]
    before = text[max(0, start - 24) : start].lower().rstrip("\"'`( ")
    if value.isdigit() and kind in {"lock", "opens"}:
        said = text[max(0, groups[""][0] - 24) : start].lower()
        if before.split(" ")[-1] in _opening("numbered") or any(word in said for word in _opening("numbers")):
            return False
    year = _YEAR.fullmatch(value) and before.endswith((",", " in"))
    if year or value in _opening("emergency") or (rest[:1] in {".", ",", ":", "/", "-"} and rest[1:2].isdigit()):
        return False
    if kind in {"within", "opens"} or (rest and not rest[0].isascii() and rest[0] not in _opening("counters")):
        return True
    return _ends_clause(text, end) or _first_word(rest) in _opening("goes_on")


def _is_program(value: str) -> bool:
    return value.lower().rstrip("0123456789.") in _opening("programs")


def _stands_apart(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    """Whether a value without a verb before it looks like a password, and ends its clause."""
    value = text[start:end]
    number = "n" in groups and value.isdigit() and 4 <= len(value) <= 12 and not _YEAR.fullmatch(value)
    shaped = number or (strong(value) and digits(value) > 0)
    return shaped and not _is_program(value) and (kind == "changed" or _ends_clause(text, end))


def _tells_secret(text: str, start: int, end: int, kind: str, groups: Groups) -> bool:
    value = text[start:end]
    noun = "p" if "p" in groups else "n" if "n" in groups else "k"
    quoted = "q" in groups or (start > 0 and text[start - 1] in "\"'`“‘«「")
    after = text[end : end + 24].lstrip("\"'`”’ ").split(" ", 1)[0].lower().strip(".,;:!?)\n")
    counted = after in _listed("units")
    number = digits(value) > 0 and all(char.isdigit() or char in "-#*/." for char in value)
    if kind in {"turned", "as"}:
        compound = text[slice(*groups.get("after", (0, 0)))].strip(" -").lower()
        plain = (
            noun == "p" and _plain_word(value) and (quoted or kind == "as" or value.lower() in _listed("common"))
        ) or (noun == "n" and number and len(value) >= 4)
        return compound not in _listed("compounds") and (strong(value) or plain)
    if value.lower() in _listed("not_values") or placeholder(value) or _is_other_code(text, groups):
        return False
    if kind == "pair" and _MINUTES.fullmatch(value) and _HOUR.search(text, max(0, start - 14), start):
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
            ":" in value or _last_word(text[max(0, first - 24) : first]) in _no_keys()
        ):
            return False
        if kind == "beside":
            return not ordinary(value) and high_entropy(value)
        random = high_entropy(value, least=12) or (strong(value) and len(value) >= 6 and digits(value) > 0)
        return random and not ordinary(value) and not wordy(value)
    if noun == "n" and text[slice(*groups["n"])][:3].lower() == "com":
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
        return _plain_word(value) and value.isascii()
    return _plain_word(value) and (quoted or _ends_clause(text, end))


def _plain_word(value: str) -> bool:
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
_JUDGES = dict.fromkeys(("apart", "changed"), _stands_apart) | dict.fromkeys(
    ("opened", "opens", "entered", "within", "lock", "turns", "answer", "topic"), _opens
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InContent:
    """The first secret of a blob's content."""

    detector: str
    #: Line of a text, from 1; None in what is no text.
    line: int | None


def secret_in(data: bytes, text: str | None) -> InContent | None:
    """Return the first secret of a content, None when there is none; ``text`` is the content read as a text (6)."""
    if text is not None:
        for start, part in _windows(text):
            for finding in scan(part):
                line = text.count("\n", 0, start + finding.start) + 1
                return InContent(detector=finding.detector, line=line)
        return None
    narrow, wide = rb"[\t\n\r\x20-\x7e]{16,}", rb"(?:[\t\n\r\x20-\x7e]\0){16,}"
    for pattern in (narrow, wide):
        runs = b"\n".join(match[0] for match in re.finditer(pattern, data)).decode("ascii").replace("\0", "")
        for _, part in _windows(runs):
            for finding in scan(part):
                if finding.certainty == "certain":
                    return InContent(detector=finding.detector, line=None)
    return None


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start, part) of a text; a part ends at a line's end where there is one in its last quarter."""
    start = 0
    while start + WINDOW < len(text):
        end = start + WINDOW
        cut = text.rfind("\n", end - WINDOW // 4, end)
        end = end if cut < 0 else cut
        yield start, text[start:end]
        start = end - OVERLAP
    if text[start:].strip():
        yield start, text[start:]
