"""Likeness of two texts: equal as declared, a harmless rewording, or a different fact.

Being similar never makes two texts duplicates by itself; everything that can carry a fact must agree too.

Invariants
(1) Texts that are equal after ``normalise`` are duplicates, and ``compare`` finds no difference in them.
(2) Every word, number and sign that is not a declared filler counts; a leftover one, substituted or added,
    is a difference. Doubt keeps both facts: a duplicate kept is a nuisance, a fact refused is a loss.
(3) All answers are symmetric in their two texts.
(4) Work is linear in the texts up to ``LONGEST`` characters; beyond it only equality is examined.
(5) Nothing of a text is kept between calls: there is no cache that would outlive an erasure.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

Protected = Literal["number", "date", "name", "unit", "negation", "quantifier", "order", "value"]

#: The order in which ``Likeness.differs`` names what differs.
PROTECTED: Final[tuple[Protected, ...]] = get_args(Protected)

#: Characters after normalisation; longer texts are duplicates only when they are equal.
LONGEST: Final = 8_000


# Compatibility forms that NFKC would fuse with the digits around them: 10² is not 102, 3½ is not 31/2.
_RAISED = re.compile("[²³¹⁰⁴-⁹⁺⁻]+|[₀-₉₊₋]+|[¼-¾⅐-⅞↉①-⓿]|№")
_UNIFIED: Final = str.maketrans("“”„‟«»‘’‚‛‐‑‒–—―−⁄﹘︱︲", '""""""\'\'\'\'-------/---') | dict.fromkeys(
    map(ord, "\u00ad\u200b\u2060\ufeff"), ""
)
# Two ligatures stand for whole sentences; spelt out they would multiply a text by eighteen.
_COMPOSABLE = re.compile("[^\ufdfa\ufdfb]+")
_OPENING: Final = "\"'([{`"
_CLOSING: Final = ".,;:!\"')]}`"
_SENTENCE_ENDS: Final = (".", "!", "?", ":")


def normalise(text: str) -> str:
    """Return the form under which two texts count as equal.

    Done, in this order: soft hyphens, zero-width spaces and byte order marks dropped; NFKC, with raised,
    lowered, fractional and circled digits kept apart from their neighbours; typographic quotes and dashes
    and the minus sign made plain; whitespace collapsed to single spaces and trimmed; words that are letters
    with at most a first capital put in lower case; the closing full stops (or, after a letter, exclamation
    marks) of the text dropped.

    Kept, because it can carry meaning: every digit, sign and unit; question marks; word order; the case of
    anything that is more than a first capital ("US" is not "us", nor "MB" "Mb", nor ``fooBar`` ``foobar``), that
    holds a digit or other sign (``/Data``, ``-V``), or that is one letter (except "A" opening a sentence); "ß".
    Words that differ by a first capital only ("Polish", "polish") are equal, since sentences capitalise.

    Idempotent. Linear in the text: NFKC spares the ligatures U+FDFA and U+FDFB, and is left out for a text with
    over thirty combining marks in a row, which no language writes.
    """
    if not text.isascii():
        text = _compose(_RAISED.sub(_apart, text.translate(_UNIFIED)))
    folded: list[str] = []
    first = True
    for word in text.split():
        folded.append(word if word.islower() or word == word.lower() else _fold(word, first=first))
        first = word.endswith(_SENTENCE_ENDS)
    plain = " ".join(folded)
    return _without_end(plain if plain.isascii() else _compose(plain))


def digest(text: str) -> str:
    """Return the SHA-256 of ``normalise(text)`` in UTF-8, as 64 hex digits; lone surrogates are allowed."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()


def _apart(match: re.Match[str]) -> str:
    shown = match[0]
    if shown == "№":
        return "#"
    plain = unicodedata.normalize("NFKC", shown).translate(_UNIFIED)
    tag = unicodedata.decomposition(shown[0])
    if tag.startswith("<super>"):
        return "^" + plain
    if tag.startswith("<sub>"):
        return "_" + plain
    return f" {plain} "


def _compose(text: str) -> str:
    run = 0
    for mark in map(unicodedata.combining, text):
        run = run + 1 if mark else 0
        if run > 30:
            return text
    return _COMPOSABLE.sub(lambda part: unicodedata.normalize("NFKC", part[0]), text)


def _fold(word: str, *, first: bool) -> str:
    core = word.strip(_OPENING + _CLOSING + "?")
    if len(core) < 2:
        return word.replace("A", "a") if first and core == "A" else word
    if core[1:] != core[1:].lower() or not core.replace("-", "").replace("'", "").isalpha():
        return word
    return word.replace(core, core[0].lower() + core[1:], 1) if core[0].isalpha() else word


def _without_end(plain: str) -> str:
    core = plain.rstrip(".。!…")
    # ".." and "../.." are paths and "5!" a product: only a word or a closing sign sheds its marks.
    if not core or not (core[-1].isalnum() or core[-1] in "\"')]"):
        return plain
    if core[-1].isalpha() or "!" not in plain[len(core) :]:
        return core
    return plain.rstrip(".。…")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(lines: str) -> dict[str, str]:
    """Read "word synonym synonym, word synonym" into synonym -> word."""
    return {other: group.split()[0] for group in lines.split(",") for other in group.split()[1:]}


def _pairs(text: str) -> list[list[str]]:
    return [pair.split() for pair in text.split(",")]


_FILLERS: Final = (
    "the a an is are am be do does of that please really very quite simply just also currently now actually "
    "basically indeed their its der das ein eine le les une el los una"
)
_SAME: Final = _table(
    "with using via, in inside, begin start, begins starts, colour color, colours colors, favourite favorite, "
    "behaviour behavior, email e-mail, ok okay, buy purchase, buys purchases, config configuration, "
    "repo repository, big large, 1 one, 2 two zwei deux dos, 3 three drei trois tres, "
    "4 four vier quatre cuatro, 5 five fünf cinq cinco, 6 six sechs seis, 7 seven sieben siete, "
    "8 eight acht huit ocho, 9 nine neun nueve, 10 ten zehn dix diez, 11 eleven, 12 twelve, 13 thirteen, "
    "14 fourteen, 15 fifteen, 16 sixteen, 17 seventeen, 18 eighteen, 19 nineteen, 20 twenty, 30 thirty, "
    "40 forty, 50 fifty, 60 sixty, 70 seventy, 80 eighty, 90 ninety, 100 hundred, 1000 thousand, 0 zero, "
    "s seconds sec secs, min minute minutes mins, h hour hours hr hrs, % percent, "
    "km kilometers kilometres, kg kilograms, ms milliseconds"
)
_SAME.update(dict.fromkeys(_FILLERS.split(), ""))
_SAME.update({"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "n'": "ne"})

_NEGATIONS: Final = _words(
    "not no nor neither without nothing nobody nowhere non un kein keine keinen keinem keiner nicht nie niemals "
    "ohne ne pas jamais sans aucun aucune rien nunca sin ningún ninguna ninguno jamás nada "
    "不 没 沒 無 无 非 未 别 別 勿"
)
_NEGATIONS_CJK = re.compile("[不没沒無无非未别勿]|ない|なかっ|なく|ません|ぬ")
_QUANTIFIERS: Final = _words(
    "all none always never only every each any some most both either few many several least exactly except "
    "sometimes often rarely usually everyone everything alle alles immer nur jeder jede manche tous toutes toujours "
    "seulement chaque todos todas siempre solo sólo cada 都 全 每 毎 只 仅 总 皆"
)
_UNITS: Final = _words(
    "ns µs μs ms s min h d day days week weeks month months year years mm cm m km inch ft feet mile miles "
    "mg g kg t lb lbs oz ml l kb mb gb tb KB MB GB TB kB KiB MiB GiB TiB Kb Mb Gb kbit mbit hz Hz khz kHz mhz MHz "
    "ghz GHz w W kw kW mW MW kwh kWh v V % ° °c °f °C °F $ € £ ¥ eur usd gbp EUR USD GBP CHF JPY px pt em rem "
    "bytes byte bits bit tokens rpm fps dollars euros"
)
_DATES: Final = _words(
    "monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat january february "
    "april june july august september october november december jan feb mar apr jun jul aug sep sept oct nov "
    "dec today tomorrow yesterday tonight noon midnight morning evening am pm AM PM utc UTC daily weekly monthly "
    "yearly hourly nightly"
)
_OPPOSITES: Final = _pairs(
    "enable disable, allow deny, allow forbid, allow block, allow prohibit, permit deny, permit forbid, "
    "accept reject, approve reject, before after, left right, true false, increase decrease, raise lower, "
    "on off, open close, start stop, begin end, begin stop, add remove, include exclude, above below, "
    "over under, up down, max min, maximum minimum, more less, more fewer, high low, first last, like "
    "dislike, love hate, like hate, yes no, public private, internal external, to from, lock unlock, win "
    "lose, pass fail, succeed fail, light dark, hot cold, old new, early late, with without, encrypt "
    "decrypt, push pull, read write, buy sell, show hide, keep discard, can cannot, must may, required "
    "optional, import export, upgrade downgrade, inside outside, same different, safe unsafe, valid "
    "invalid, active inactive, for against "
)
# What may open a phrase that wanders to the front of a sentence without changing who does what to whom.
_OPENERS: Final = _words(
    "in on at for with during when while before after if since until by under over inside within from to per "
    "daily weekly monthly today tomorrow yesterday tonight monday tuesday wednesday thursday friday saturday "
    "sunday always usually sometimes"
)
_JOINTS: Final = frozenset({"and", "or", "but", "then", "und", "oder", "et", "ou", "y", "o", "respectively"})
_PREFIXES: Final = ("un", "in", "im", "dis", "non", "de")
_NOT_INFLECTED: Final = _words(
    "news goods customs means evening morning during something everything anything windows always less series"
)


_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_CJK_TOKENS = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\W\d_]+|[+-]?\d[\d.]*|[^\s,;:!.。、・「」()]"
)
_MEASURE = re.compile(r"([$€£¥]?)([+-]?\d[\d.,]*)([^\W\d_]{0,6}|%|°[cCfF]?)")
_DATE = re.compile(
    r"\d{4}-\d{2}(?:-\d{2}.*)?|\d{1,2}[:/]\d{2}.*|\d{1,2}/\d{1,2}(?:/\d{2,4})?|\d+(?:st|nd|rd|th)|\d{1,2}\.\d{1,2}\.\d{4}"
)
_NUMBER = re.compile(r"[<>=≤≥≈~+±-]*\d[\d.,:/^_x*-]*")
_VERBS: Final = frozenset({"is", "was", "has", "will", "can", "must", "may", "should", "does", "and"})
_TENS: Final = frozenset({"20", "30", "40", "50", "60", "70", "80", "90"})
_ELISIONS: Final = frozenset({"l", "d", "j", "qu", "c", "s", "m", "t"})
_ENDINGS: Final = {"m": "", "re": "", "s": "", "ll": "will", "ve": "have", "d": "would"}


def _tokens(plain: str) -> list[str]:
    """Split a normalised text into what it says, in order: fillers gone, number words and synonyms unified."""
    out: list[str] = []
    chunks = plain.split()
    for at, chunk in enumerate(chunks):
        known = _SAME.get(chunk)
        if known is not None:
            if known:
                out.extend(known.split())
        elif chunk.isascii() and chunk.isalpha():
            out.append(chunk)
        elif chunk == "-":
            # A dash between words is punctuation; beside a number it may be an operator.
            if any(near[:1].isdigit() for near in chunks[max(at - 1, 0) : at + 2]):
                out.append(chunk)
        else:
            out.extend(_split(chunk))
    return out


def _split(chunk: str) -> Iterator[str]:
    if _CJK.search(chunk):
        yield from _CJK_TOKENS.findall(chunk)
        return
    core = chunk.lstrip(_OPENING).rstrip(_CLOSING + "?")
    if not core:
        if chunk.startswith("..") or "?" in chunk:
            yield chunk
        return
    yield from _split_core(core)
    tail = chunk[chunk.index(core) + len(core) :]
    if "?" in tail:
        yield "?"
    if core[-1].isdigit():
        # 5! is a product, 5' a length.
        yield from (sign for sign in tail if sign in "!\"'")


def _split_core(core: str) -> Iterator[str]:
    known = _SAME.get(core)
    if known is not None:
        yield from known.split()
    elif core.isalpha():
        yield core
    elif (measure := _MEASURE.fullmatch(core)) is not None:
        yield from (_SAME.get(part) or part for part in measure.groups() if part)
    elif "'" in core and core.replace("'", "").isalpha():
        yield from _split_contraction(core)
    elif "-" in core and core.replace("-", "").isalpha() and not core.startswith("-"):
        parts = [_SAME.get(part, part) for part in core.split("-")]
        if len(parts) == 2 and parts[0] in _TENS and parts[1].isdigit() and len(parts[1]) == 1:
            yield str(int(parts[0]) + int(parts[1]))
        else:
            yield from (part for part in parts if part)
    else:
        yield core


def _split_contraction(core: str) -> Iterator[str]:
    head, _, ending = core.rpartition("'")
    if ending == "t" and head.endswith("n"):
        head, tail = head[:-1], "not"
    elif head == "n":
        head, tail = "ne", ending
    elif head in _ELISIONS:
        head, tail = "", ending
    else:
        tail = _ENDINGS.get(ending, "'" + ending)
    yield from (_SAME.get(part, part) for part in (head, tail) if _SAME.get(part, part))


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike two texts are, and what keeps them apart."""

    #: Overlap coefficient of the two token sets, 0..1, fillers left out.
    overlap: float
    #: Normalised indel similarity of the normalised texts, 0..1.
    ratio: float
    #: Members of ``PROTECTED`` that differ, in its order; empty when the texts state the same.
    differs: tuple[Protected, ...]


def compare(a: str, b: str) -> Likeness:
    """Measure how alike two texts are and name what differs.

    ``overlap`` is |A & B| / min(|A|, |B|) over sets of tokens; when either is empty, 1.0 for equal texts and
    else 0.0. Over ``LONGEST`` characters the measures read the first ``LONGEST``, and any inequality is the
    difference "value". "order" means the same tokens in another order, except for one phrase moved to the front.
    A word in another inflection (plural, third person, -ing) is the same; another tense is not.
    """
    plain_a, plain_b = normalise(a), normalise(b)
    if plain_a == plain_b:
        return Likeness(overlap=1.0, ratio=1.0, differs=())
    head_a, head_b = plain_a[:LONGEST], plain_b[:LONGEST]
    tokens_a, tokens_b = _tokens(head_a), _tokens(head_b)
    found: set[Protected] = set()
    if max(len(plain_a), len(plain_b)) > LONGEST:
        found.add("value")
    elif tokens_a != tokens_b:
        found = _differences(tokens_a, tokens_b, _capitalised(a) | _capitalised(b))
    return Likeness(
        overlap=_overlap(tokens_a, tokens_b),
        ratio=_ratio(head_a, head_b),
        differs=tuple(kind for kind in PROTECTED if kind in found),
    )


def is_duplicate(a: str, b: str, *, overlap_floor: float = 0.60, ratio_floor: float = 0.70) -> bool:
    """Tell whether two texts state the same: equal as declared, or alike by either floor with no difference.

    Floors are inclusive, 0..1; 1.0 is the strictest.
    """
    plain_a, plain_b = normalise(a), normalise(b)
    if plain_a == plain_b:
        return True
    if max(len(plain_a), len(plain_b)) > LONGEST:
        return False
    tokens_a, tokens_b = _tokens(plain_a), _tokens(plain_b)
    # The floors come first: most pairs are far apart, and naming what differs costs the most.
    if _overlap(tokens_a, tokens_b) < overlap_floor and _ratio(plain_a, plain_b) < ratio_floor:
        return False
    return tokens_a == tokens_b or not _differences(tokens_a, tokens_b, _capitalised(a) | _capitalised(b))


def _overlap(a: list[str], b: list[str]) -> float:
    set_a, set_b = set(a), set(b)
    smaller = min(len(set_a), len(set_b))
    return len(set_a & set_b) / smaller if smaller else 0.0


def _ratio(a: str, b: str) -> float:
    from rapidfuzz.distance import Indel  # takes 50 ms to import

    return Indel.normalized_similarity(a, b)


def _differences(a: list[str], b: list[str], names: set[str]) -> set[Protected]:
    """Name what differs between two token lists; ``names`` holds what is capitalised inside a sentence."""
    left_a, left_b = Counter(a), Counter(b)
    left_a.subtract(b)
    left_b.subtract(a)
    only_a, only_b = list((+left_a).elements()), list((+left_b).elements())
    same = _inflections(only_a, only_b, names)
    found: set[Protected] = set()
    opposed = _opposed(only_a, only_b)
    if opposed:
        found.add("negation")
    found |= {_kind(token, names) for token in {*only_a, *only_b} - opposed}
    if len(_NEGATIONS_CJK.findall("".join(a))) != len(_NEGATIONS_CJK.findall("".join(b))):
        found.add("negation")
    b = [same.get(token, token) for token in b]
    if found:
        shared = Counter(a) & Counter(b)
        a, b = _keep(a, shared), _keep(b, shared)
    if a != b and not _is_fronted(a, b):
        found.add("order")
    return found


def _inflections(only_a: list[str], only_b: list[str], names: set[str]) -> dict[str, str]:
    """Take pairs that differ in inflection out of both lists; return them as b's word -> a's word."""
    by_stem: dict[str, list[str]] = {}
    for token in only_b:
        for stem in sorted(_stems(token)) if token not in names else ():
            by_stem.setdefault(stem, []).append(token)
    same: dict[str, str] = {}
    for token in tuple(only_a):
        for stem in sorted(by_stem.keys() & _stems(token)) if token not in names else ():
            waiting = by_stem.get(stem)
            if waiting and waiting[-1] in only_b:
                other = waiting.pop()
                only_a.remove(token)
                only_b.remove(other)
                same[other] = token
                break
    return same


def _stems(word: str) -> set[str]:
    stems = {word}
    if not (word.isascii() and word.isalpha() and word.islower()) or word in _NOT_INFLECTED:
        return stems
    if len(word) > 4 and word.endswith("ies"):
        stems.add(word[:-3] + "y")
    elif len(word) > 4 and word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        stems |= {word[:-2], word[:-1]}
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        stems.add(word[:-1])
    elif len(word) > 5 and word.endswith("ing") and any(vowel in word[:-3] for vowel in "aeiouy"):
        stems |= {word[:-3], word[:-3] + "e"}
        if word[-4] == word[-5]:
            stems.add(word[:-4])
    return stems


def _opposed(only_a: list[str], only_b: list[str]) -> set[str]:
    """Return the leftover words that face their opposite in the other text."""
    roots_a, roots_b = _roots(dict.fromkeys(only_a)), _roots(dict.fromkeys(only_b))
    opposed: set[str] = set()
    for these, those in ((roots_a, roots_b), (roots_b, roots_a)):
        for one, other in _OPPOSITES if these and those else ():
            if one in these and other in those:
                opposed |= {these[one], those[other]}
        for root, word in these.items():
            if root.startswith(_PREFIXES):
                for plain in (root[2:], root[3:]):
                    opposed |= {word, those[plain]} if plain in those else set()
    return opposed


def _roots(words: Iterable[str]) -> dict[str, str]:
    roots: dict[str, str] = {}
    for word in words:
        for root in (*_stems(word), *((word[:-1], word[:-2]) if word.endswith("ed") else ())):
            roots.setdefault(root, word)
    return roots


def _kind(token: str, names: set[str]) -> Protected:
    if token in _NEGATIONS:
        return "negation"
    if token in _QUANTIFIERS:
        return "quantifier"
    if token in _UNITS:
        return "unit"
    if token in _DATES or _DATE.fullmatch(token):
        return "date"
    if _NUMBER.fullmatch(token):
        return "number"
    if token in names or token != token.lower() or (len(token) > 1 and not token.isalpha()):
        return "name"
    return "value"


def _capitalised(raw: str) -> set[str]:
    """Collect, in lower case, the words with a capital that no sentence start explains."""
    words = [".", *raw.split(), ""]
    return {
        word.strip(_OPENING + _CLOSING + "?").lower().removesuffix("'s")
        for at, word in enumerate(words)
        if not word.islower()
        and word != word.lower()
        and (not words[at - 1].endswith(_SENTENCE_ENDS) or words[at + 1] in _VERBS)
    }


def _keep(tokens: list[str], shared: Counter[str]) -> list[str]:
    room = Counter(shared)
    kept: list[str] = []
    for token in tokens:
        room[token] -= 1
        if room[token] >= 0:
            kept.append(token)
    return kept


def _is_fronted(a: list[str], b: list[str]) -> bool:
    """Tell whether one short adverbial phrase moved to or from the front, within a single clause.

    "Ben calls on Monday" and "On Monday Ben calls" share their roles; any other reordering may not.
    """
    if not _JOINTS.isdisjoint(a):
        return False
    end = len(a)
    while end and a[end - 1] == b[end - 1]:
        end -= 1
    if end < len(a) and a[end] not in _OPENERS:
        return False
    front, moved = a[:end], b[:end]
    cuts = sorted({*range(1, min(7, end)), *range(max(1, end - 6), end)})
    return any(
        front[cut:] + front[:cut] == moved
        and ((front[0] in _OPENERS and cut <= 6) or (front[cut] in _OPENERS and end - cut <= 6))
        for cut in cuts
    )
