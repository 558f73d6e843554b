"""Told secrets: prose that gives away a password, PIN, code or key.

Invariants
(1) A value counts when its own shape is that of a secret, or when the sentence leaves no other reading:
    a password noun, a linking verb, one word that describes nothing, the end of the clause.
(2) Rules about passwords ("must be 12 characters", "is strict") yield nothing.
"""

# ruff: noqa: E501, SIM905, S105

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from typing import Any

from keepward.gates.detect.engine import Haystack, literal_set
from keepward.gates.detect.finding import Finding
from keepward.gates.detect.strength import high_entropy, ordinary, placeholder, strong
from keepward.gates.detect.told_words import COMPOUNDS, NOT_ENDINGS, NOT_VALUES, NOUNS, TONGUES

_PASSWORD = r"(?:pass[- ]?words?|pass[- ]?codes?|pass[- ]?phrases?|passwds?|pwd|pw|p/w|psw|pass|(?:wifi|wi-fi|wlan|wpa2?|network|router|hotspot)\s+(?:key|code|login|pass)|network\s+security\s+key|security\s+answer|magic\s+word|safe\s+word|secret\s+word)"
_PIN = r"(?:pin|pins|pin[- ]?(?:code|number)s?|puk|cvv2?|cvc2?|(?:door|gate|alarm|access|entry|entrance|security|lock|locker|garage|safe|unlock|screen|phone|verification|2fa|mfa|otp|one[- ]time|recovery|backup|pairing|voicemail|keypad|building|lockbox|lobby|elevator|vault|login|sim|parental|disarm|panel|padlock)\s+(?:code|combination|combo|pin|passcode|number)s?|(?:combination|combo)|otp|one[- ]time\s+password|passcode|bank\s+pin|(?:safe|lock|locker)\s+combination|lockbox)"
_KEY = r"(?:(?:[a-z0-9-]{1,20}\s+)?(?:api|secret|access|auth|private|encryption|signing|master|license|service|account|webhook|admin|deploy|session|app|client|integration|server|ssh|recovery|root|shared|personal\s+access|bearer|refresh|bot|oauth|service\s+account|live|production|prod|test|write|read)[- ]?(?:api\s+|access\s+|auth\s+|secret\s+)?(?:key|token|secret|pat)s?|token|secret|api\s+credentials?|key|pat|credentials?)"
_WORDS = r"[^.\n:=!?;\"]{1,60}?"
_PREP = rf"(?:\s+(?:for|of|to|on|at|in|into|from|under|behind|that|we|which|i)\s+{_WORDS}|\s+\([^()\n]{{1,40}}\))?"
_LINK = (
    r"(?:\s+(?:(?:has\s+been|have\s+been|was|is|got|gets|being|been|were)\s+(?:just\s+|now\s+|recently\s+)?(?:set|changed|reset|updated|rotated|switched|moved|turned)(?:\s+back)?\s+to|is|was|are|were|used\s+to\s+be|reads|equals|remains|stays|became|becomes|will\s+be|goes|would\s+be|should\s+be|being|has\s+been"
    r"|(?:has\s+been|was|is|got|gets|being|been)?\s*(?:just\s+|now\s+|recently\s+)?(?:set|changed|reset|updated|rotated|switched|moved|turned)(?:\s+back)?\s+to|as)"
    r"|['’]s|\s?:|\s?={1,2}|\s?->|\s?=>|\s?→|\s[-–—])"
)
_FILL = r"(?:(?:\s*(?:now|still|currently|just|set\s+to|simply|literally|actually|always|again|temporarily|probably|exactly|called|the\s+word|the\s+string|this|as\s+follows|changed\s+to|spelled|like|usually|apparently|basically|really|something\s+like|the\s+same|only|is|:)(?:\s*:)?\s+){1,3}|\s+)?\s*"
_STILL = r"(?:jetzt|nun|aktuell|weiterhin|noch|ahora|maintenant|toujours|agora|ora|nu|teraz|nyt|ny|теперь|сейчас)"
_OPEN = r"(?P<q>[\"'`«“”‘’„(*「『]{1,3})?"
_VALUE = r"(?P<v>[^\s\"`«»“”„<>,;「」『』。，、；！？]{3,100})"
#: Stands in every text that a frame or a phrase in English finds something in.
TELLING = (
    r"(?i)pass|pwd|\bpw\b|p/w|psw|\bpin|puk|cvv|cvc|code|combination|combo|otp|\bkey|token|secret|\bpat\b|credential|creds"
    r"|login|log ?in|admin|root|owner|lockbox|magic word|safe word|security answer|phrase|seed|user"
)

_FRAMES: tuple[tuple[str, str], ...] = (
    ("said", rf"(?i)\b(?:(?P<p>{_PASSWORD})|(?P<n>{_PIN})|(?P<k>{_KEY})){_PREP}{_LINK}{_FILL}{_OPEN}{_VALUE}"),
    ("beside", rf"(?i)\b(?:(?P<p>{_PASSWORD})|(?P<n>{_PIN})|(?P<k>{_KEY}))(?:\s+of)?\s+{_OPEN}{_VALUE}"),
    (
        "with",
        rf"(?i)\b(?:with|using|uses?|enter|type|try|has|(?:user(?:name)?|login|account)\s+[^\s,]+,?\s+(?:and\s+)?(?:the\s+)?|,|encrypted,)\s*(?:the\s+|my\s+|our\s+)?(?P<p>password|passcode|passphrase|pass\s+phrase|pw|pwd)\s+{_OPEN}{_VALUE}",
    ),
    (
        "pair",
        r"(?i)(?:^|[\s(\"'`])(?P<p>)(?:(?:admin|root|user|test|demo|guest|administrator|sa|owner|operator|support|dev|service|superuser)(?:\s*/\s+|\s+/\s*|\s\|\s|:)|(?:ubuntu|pi|postgres|oracle|elastic)\s+/\s+)(?P<v>[^\s\"'`<>,;/:]{5,60})",
    ),
    (
        "set",
        rf"(?i)\b(?:set|change|changed|reset|update|updated|rotate|rotated|make|made|switch|switched)\s+(?:[^\s.]+\s+){{0,6}}?(?:(?P<p>{_PASSWORD})|(?P<n>{_PIN})){_PREP}\s+(?:to|as|from\s+\S+\s+to)\s+(?:be\s+)?{_OPEN}{_VALUE}",
    ),
    (
        "turned",
        rf"(?i)(?:^|[\s(\"'`]){_VALUE}[\"'`”’»]?\s+(?:is|was|as|=|will be|works as|being|remains)\s+(?:(?:my|the|our|his|her|their|a|your|its)\s+)?(?:[\w'’-]+\s+){{0,3}}?(?:(?P<p>{_PASSWORD})|(?P<n>{_PIN})|(?P<k>{_KEY}))\b(?P<after>[\s-]+\w+)?",
    ),
    (
        "pair",
        r"(?i)\b(?:credentials?|creds|log-?\s?ins?|sign-?\s?in|username|user|account|admin\s+access)\b[^\n.]{0,40}?(?:[:=\s]|\bas\s|\bwith\s)\s*[\"'`]?[\w.@+-]{2,40}[\"'`]?\s*(?:/|:|\||,?\s+(?:and|with|using|pw|pass)\s+)\s*[\"'`]?(?P<p>)(?P<v>[^\s\"'`<>,;]{4,80})",
    ),
)
_PLACES = r"(?:doors?|gate|alarm|lock|safe|garage|building|house|flat|apartment|office|gym|locker|lockbox|entrance|lobby|bike|suitcase|elevator|lift|tablet|phone|vault|shed|cabin|portail|deur|tur|tor|puerta|porta|drzwi)"
_DOOR = (
    rf"(?i)\b(?P<n>code|combination|pin|kode|kod)\s+(?:for|to|of|on|van|fur|zum|zur|de|del|da|do)\s+[^.\n:=\d]{{0,40}}?{_PLACES}\b[^.\n\d]{{0,16}}?(?:is|was|ist|lautet|est|es|:|=|->)\s+{_VALUE}",
    rf"(?i)\b{_PLACES}\b[^.\n\d]{{0,40}}?\b(?:with|using|is|enter|by)\s+(?:the\s+)?(?P<n>code|pin|combination)\s+{_VALUE}",
)
_PHRASE = r"(?i)\b(?:seed|recovery|mnemonic|backup|wallet|pass|secret|twelve[- ]word|24[- ]word|12[- ]word)[- ]?(?:recovery\s+|seed\s+|wallet\s+)?(?:phrase|words|key)\b[^\n]{0,40}?(?:\bis|\bare|:|=|->|—|-)\s*[\"'`“]?(?P<v>(?:[a-z]{3,10}[ ,-]{1,2}){3,23}[a-z]{3,10})\b"
_ASKED = (*_FRAMES, *(("said", pattern) for pattern in _DOOR))
_UNITS = frozenset(
    "character characters chars char digits digit letters letter days day minutes hours months weeks times attempts years bytes bits words symbols numbers seconds tries logins users more or to and of per percent requests levels items".split()
)
_CLOSERS = ("\n", ".", ",", ";", "!", "?", ")", '"', "'", "`", "”", "’", "»", "」", "…", "(", "*", "-", "–", "—")
_NEXT = frozenset("and but so if when btw please thanks now y und et e i en".split())


#: Candidates looked at in one text, all frames together, at least, and one more for so many characters; what comes
#: after is covered as a flood.
_LEAST = 200
_EACH = 320


def told(hay: Haystack, telling: Collection[int] | None = None) -> Iterator[Finding]:
    """Yield values that prose presents as a password, PIN, code or key.

    ``telling`` holds the places of those patterns of ``tells`` that occur, where that is known.
    """
    budget = [max(_LEAST, len(hay.text) // _EACH)]
    if (telling is None or telling) and hay.occurs(TELLING):
        for place, (kind, pattern) in enumerate(_ASKED):
            if telling is None or place in telling:
                yield from _frame(kind, pattern, hay, budget)
        if telling is None or len(_ASKED) in telling:
            for start, end in hay.spans(_PHRASE):
                if _is_phrase(hay.text[start:end]):
                    yield Finding(detector="told_secret", start=start, end=end, certainty="likely")
    if (telling is None or len(_ASKED) + 1 in telling) and hay.occurs(_foreign_gate()):
        here = _literals_in(hay)
        for pattern, literals, spaced in _foreign():
            if not here.isdisjoint(literals):
                yield from _frame("said" if spaced else "script", pattern, hay, budget)


#: How many of ``tells``, the first ones, tell nothing where ``TELLING`` does not occur.
GATED = len(_ASKED) + 1


@functools.cache
def tells() -> tuple[str, ...]:
    """Return patterns of which one occurs in every text that ``told`` finds something in."""
    return (*(pattern for _, pattern in _ASKED), _PHRASE, _foreign_gate())


@functools.cache
def _foreign_gate() -> str:
    from keepward.gates.detect.engine import any_of

    return (
        "(?i)"
        + any_of({word.strip() for tongue in TONGUES for word in tongue.literals} - {"pin", "pw"})
        + r"|(?i:\bpin\b|pin-?co|pin-?ko|\bpw\b)"
    )


def _literals_in(hay: Haystack) -> set[str]:
    """Return the literals of all tongues that stand in a text in lower case, found in one pass."""
    known, matcher = _literals()
    return {known[place] for place in matcher.Match(hay.lower.encode("utf-8", "replace")) or ()}


@functools.cache
def _literals() -> tuple[tuple[str, ...], Any]:
    known = tuple(sorted({literal for tongue in TONGUES for literal in tongue.literals}))
    return known, literal_set(known)


@functools.cache
def _foreign() -> tuple[tuple[str, tuple[str, ...], bool], ...]:
    patterns: list[tuple[str, tuple[str, ...], bool]] = []
    for tongue in TONGUES:
        edge = r"(?:^|[^\p{L}])" if tongue.spaced and not tongue.compounds else ""
        blank, gap = (r"\s+", _WORDS) if tongue.spaced else (r"\s*", r"[^.\n:=!?;。！？\"]{1,30}?")
        nouns = rf"(?:(?P<p>{tongue.password})|(?P<n>{tongue.pin}))"
        between = rf"(?:{blank}{gap})?"
        optional = tongue.link.endswith("?")
        verb = tongue.link.removesuffix("?").removesuffix("(?:了)") or tongue.link
        link = rf"(?:{blank}{verb.removesuffix('?')}|\s?[:：=]|\s?->|\s[-–—])"
        tail = rf"(?:\s*[:：=])?(?:\s+{_STILL})?{blank if tongue.spaced else ''}\s*"
        colon = rf"(?:\s*[:：=]|\s[-–—])\s*{_OPEN}{_VALUE}"
        patterns.append((rf"(?i){edge}{nouns}{between}{colon}", tongue.literals, tongue.spaced))
        patterns.append((rf"(?i){edge}{nouns}{between}{link}{tail}{_OPEN}{_VALUE}", tongue.literals, tongue.spaced))
        if optional:
            patterns.append((rf"(?i){edge}{nouns}{blank}{_OPEN}{_VALUE}", tongue.literals, tongue.spaced))
    return tuple(patterns)


def _frame(kind: str, pattern: str, hay: Haystack, budget: list[int]) -> Iterator[Finding]:
    text = hay.text
    for groups in hay.groups(pattern):
        start, end = groups["v"]
        budget[0] -= 1
        if budget[0] < 0:
            yield Finding(detector="told_secret", start=start, end=len(text), certainty="likely")
            return
        if kind == "script":
            end = _ascii_end(text, start, end)
        end = _trimmed(text, start, end)
        if end - start < 3:
            continue
        noun = "p" if "p" in groups else "n" if "n" in groups else "k"
        quoted = "q" in groups or (start > 0 and text[start - 1] in "\"'`“‘«「")
        if _tells(text, start, end, kind=kind, noun=noun, quoted=quoted, groups=groups):
            yield Finding(detector="told_secret", start=start, end=end, certainty="likely")


def _ascii_end(text: str, start: int, end: int) -> int:
    for position in range(start, end):
        if not 0x21 <= ord(text[position]) < 0x7F:
            return position
    return end


def _trimmed(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1] in ".,;:)]}'’”…*":
        end -= 1
    if end > start and text[end - 1] in "!?" and not any(map(str.isdigit, text[start:end])):
        end -= 1
    return end


def _tells(
    text: str, start: int, end: int, *, kind: str, noun: str, quoted: bool, groups: dict[str, tuple[int, int]]
) -> bool:
    value = text[start:end]
    after = text[end : end + 24].lstrip("\"'`”’ ").split(" ", 1)[0].lower().strip(".,;:!?)\n")
    if kind == "turned":
        compound = text[groups["after"][0] : groups["after"][1]].strip(" -").lower() if "after" in groups else ""
        if compound in COMPOUNDS:
            return False
        return (
            strong(value)
            or (quoted and noun == "p" and _plain_word(value))
            or (noun == "n" and _digits(value) and len(value) >= 4)
        )
    if value.lower() in NOT_VALUES or placeholder(value):
        return False
    if noun == "n" and _digits(value):
        return _pin_like(text, value, after, groups)
    if noun == "k":
        return _key_like(value, kind)
    if noun == "n" and text[groups["n"][0] : groups["n"][0] + 3].lower() == "com":
        return False
    if value.isdigit():
        return len(value) >= (4 if kind != "beside" else 5) and after not in _UNITS
    if strong(value):
        return after not in _UNITS or not value[0].isdigit()
    if noun != "p" or kind in {"beside", "pair"} or (kind == "with" and value.lower() in COMPOUNDS):
        return False
    if kind == "script":
        return _plain_word(value) and value.isascii()
    return _plain_word(value) and (quoted or _ends_clause(text, end))


def _pin_like(text: str, value: str, after: str, groups: dict[str, tuple[int, int]]) -> bool:
    digits = sum(map(str.isdigit, value))
    said = text[groups["n"][0] : groups["n"][1]].lower()
    least = 3 if said.startswith(("cv", "com")) else 4
    return least <= digits <= 12 and after not in _UNITS and not ordinary_number(value)


def ordinary_number(value: str) -> bool:
    """Whether digits are a date, a time or a version and not a code."""
    return not value.isdigit() and ordinary(value) and "-" not in value.strip("-")


def _digits(value: str) -> bool:
    return any(map(str.isdigit, value)) and all(char.isdigit() or char in "-#*/." for char in value)


def _key_like(value: str, kind: str) -> bool:
    if ordinary(value):
        return False
    if kind == "beside":
        return high_entropy(value, least=16)
    return high_entropy(value, least=12) or (strong(value) and len(value) >= 6 and any(map(str.isdigit, value)))


def _plain_word(value: str) -> bool:
    lowered = value.lower()
    if lowered in NOT_VALUES or placeholder(value) or ordinary(value) or len(value) < 4:
        return False
    return value.replace("-", "").replace("'", "").isalpha() and (lowered in NOUNS or not lowered.endswith(NOT_ENDINGS))


def _ends_clause(text: str, end: int) -> bool:
    rest = text[end : end + 20].lstrip("\"'`”’")
    if not rest.strip() or rest[0] in _CLOSERS or "\n" in rest[:2]:
        return True
    return rest.split(" ", 2)[1].strip(".,").lower() in _NEXT if rest[0] == " " and len(rest) > 1 else False


def _is_phrase(value: str) -> bool:
    words = value.replace(",", " ").replace("-", " ").lower().split()
    return len(words) >= 4 and not any(word in _GLUE for word in words)


_GLUE = frozenset(
    "the and for with that this from must should are not was will you your has have can when where stored kept written needed used only never always all any they them then than who which into our his her its one two per via new old".split()
)
