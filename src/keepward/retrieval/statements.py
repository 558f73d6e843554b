"""Read a statement: what it is about, and which values, properties and states it gives.

Invariants
(1) A pure function of a text and its speaker.
(2) What is remembered of a text is hashes of its words, and not the words.
(3) A statement is read as far as it takes, and each text is parted into words once.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, reduce
from hashlib import blake2b
from itertools import chain
from operator import or_
from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from keepward.model.memory import Record
from keepward.model.patterns import regex, table
from keepward.retrieval import states
from keepward.retrieval.analyze import (
    IRREGULAR,
    MONTHS,
    NUMBERS,
    STOP_WORDS,
    WEEKDAYS,
    analyse,
    hashes,
    term_hash,
    word_hashes,
)

Given = TypeVar("Given")
Read = TypeVar("Read")

#: Words of a text up to which values are read in it, and from which its beginning is remembered.
SHORT: Final = 20
_REMEMBERED: Final = 16_384
#: Words from which somebody may be spoken to.
_CALLED: Final = 3
#: Kinds of value that are a day, a name and a place; a number is the first and a month the third.
DAY: Final = 1
NAME: Final = 3
PLACE: Final = 4
#: Words among which a verb by which one chooses stands.
_SOON: Final = 5
#: Words from which one form is told.
BEGIN: Final = 3
#: Integers of a filter of words, and bits of each.
COLUMNS: Final = 4
_BITS: Final = 63
#: What of statements is compared all at once: bits of the properties and of the kinds of value in a short text, a hash
#: of how it begins, one of who chooses, and whether it names something that it says something else in the place of.
FEATURES: Final = np.dtype(
    [
        *((name, np.int64) for name in ("properties", "kinds", "begin", "length", "choice")),
        *((name, np.bool_) for name in ("asks", "changes", "denies", "replaces")),
    ]
)
_FEATURES: Final = Struct("=5q4?")
#: Bits of the patterns that are looked for in one pass, and how many there are before the properties.
_CHANGE, _IDIOMS, _REPLACES = 1, 2, 4
_PROPERTIES: Final = 3

_LISTS: Final[dict[str, Any]] = table(__package__, "current.toml")
_VERBS, _KIN, _OPENERS, _PRONOUNS = (frozenset(_LISTS[name]) for name in ("verbs", "kin", "openers", "pronouns"))
ONE_VALUE: Final = frozenset(map(term_hash, _LISTS["one_value"]))
_DETERMINERS, _DENIALS, _SORTS, _PLACES = (
    frozenset(_LISTS[name]) for name in ("determiners", "denials", "sorts", "places")
)
_DATES: Final = (frozenset(WEEKDAYS), frozenset(map(str.lower, MONTHS)))
_VALUES: Final = NUMBERS.union(*_DATES, (f"{day}s" for day in WEEKDAYS))
#: Bits of the properties of which somebody has several values at a time, those that are of who tells
#: them, and those that are of a person and not of what is theirs.
SEVERAL, OWN, SELF = (
    sum(1 << at for at, name in enumerate(_LISTS["property"]) if name in _LISTS[names])
    for names in ("several", "own", "self")
)
TIMES: Final = frozenset(map(term_hash, _LISTS["times"]))
DOING: Final = frozenset(term_hash(term) for verb in _VERBS for term in analyse(verb).terms)
VERB_HASHES: Final = ONE_VALUE | frozenset(map(term_hash, _VERBS))
_OPENING: Final = frozenset(("", *".!?:;"))
_CALLING: Final = frozenset(("", *",.!?"))
#: Verbs of one, behind which a name may begin a sentence.
_ONE: Final = frozenset(("is", "has", "was", *_LISTS["roles"]))
_ROLES: Final = frozenset(_LISTS["roles"])
_PHRASE_ENDS: Final = _VERBS.union(_LISTS["doing"])
ACTING: Final = frozenset(word for verb in _PHRASE_ENDS for word in word_hashes(verb))
_CHOOSING: Final = frozenset(_LISTS["choosing"] + _LISTS["answering"])
#: Hashes of the verbs by which one answers, of what begins what is told beside a choice, and of "over".
ANSWERING, BESIDE = (frozenset(map(term_hash, _LISTS[name])) for name in ("answering", "beside"))
OVER: Final = term_hash("over")
_FIRST: Final = frozenset(("i", "my", "we", "our", "me"))
_SENTENCES: Final = regex(r"[a-z0-9][.!?]+\s")
_TITLE: Final = regex(r"\b[A-Z][a-z]{0,2}\.$")
#: Characters of a title, and one before it.
_TITLED: Final = 5
_FAVOURITE: Final = regex(r"\bfavou?rite (\w+)|\bprefers? \w+ to any other (\w+)", re.IGNORECASE)
_REPLACED: Final = regex(
    r"(?:, (?:and )?not|instead of|rather than|no longer|in place of|replac(?:es|ing)) ((?:[\w'-]+ ){0,2}[\w'-]+)",
    re.IGNORECASE,
)
_YEARS: Final = regex(r"\b(?:(?:from|between) [12]\d{3} (?:to|and|until|till)|[12]\d{3} ?[-–]) ?[12]\d{3}\b")
_TOKEN: Final = regex(r"\w+(?:[-.']\w+)*")


@dataclass(frozen=True, slots=True)
class Glance:
    """What a look at a text says of it."""

    #: Bits of the properties that it names.
    properties: int
    #: Whether it tells of a change, or could be one of two of one form.
    changes: bool
    asks: bool
    #: The words in their order, as hashes: the first of them.
    form: tuple[int, ...]
    length: int
    #: How many words there are up to a verb by which somebody chooses one of several, with it; 0 without one.
    choice: int
    kinds: int
    denies: bool
    #: A row of ``FEATURES``.
    features: bytes
    #: Bits of the states that a short text may tell of.
    states: int
    #: Filters, `COLUMNS` integers each, of the words of a short text and of those of its phrases.
    topics: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Hashes of the words that mean something."""

    #: With ``somebody``.
    every: frozenset[int]
    #: Those that the first sentence opens with, up to its verb.
    subject: frozenset[int]
    #: Those that are no names, and those of the subject that say whose relative it is.
    things: frozenset[int]
    kin: frozenset[int]
    #: What the first sentence calls by its kind and its name: "my cousin Bo".
    named: frozenset[int]
    favourites: frozenset[str]
    #: What is spoken of as one that both sides know ("the clinic's emergency line"): its last word and those before it.
    phrases: tuple[tuple[int, frozenset[int]], ...]
    #: All words in their order, and by their kind those that are values: numbers, days, months, names, places.
    order: tuple[int, ...]
    values: tuple[frozenset[int], ...]
    #: What the numbers count.
    units: frozenset[int]
    #: The first verb, again where it is one of a certain meaning, and whether it tells of what happened once.
    acts: int | None
    verb: int | None
    past: bool
    #: Whether what it tells of was so for some years that are over.
    over: bool
    #: What it says something else in the place of: "cashews, not peanuts".
    replaced: frozenset[int]
    #: What stands in a clause with a denial.
    denied: frozenset[int]
    #: Who says it of themselves; empty where it is said in the third person.
    oneself: frozenset[int]
    #: Whom it is about, where they speak of themselves and are not named.
    somebody: frozenset[int]


class States(NamedTuple):
    """The states that a text tells of, the bits of their sides, and of the other sides of these."""

    states: tuple[states.State, ...]
    sides: int
    others: int


class _Token(NamedTuple):
    """What a word is by itself, wherever it stands."""

    token: str
    #: In small letters, also without "'s", and what stands before the first "'".
    word: str
    bare: str
    front: str
    #: Its hash but for its ending; none of a stop word.
    rough: tuple[int, ...]
    #: The hashes of its terms, none of a stop word, and one that tells it from others.
    terms: tuple[int, ...]
    mark: int
    #: The kind of value that it is; ``NAME`` for what may be one.
    kind: int | None
    titled: bool
    digit: bool
    determiner: bool
    #: Whether no phrase goes on with it, such as a verb.
    ends: bool
    possessive: bool
    sort: bool


_GLANCES: Final[dict[bytes, Glance]] = {}
_WORDS: Final[dict[bytes, Words]] = {}
_STATES: Final[dict[bytes, States]] = {}


class _Pass:
    """A text and its words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found = [*_TOKEN.finditer(text)]
        self.tokens = [_token(found[0]) for found in self._found]

    @cached_property
    def kinds(self) -> list[int | None]:
        """The kind of value that each word is."""
        pairs = zip(self._found, self.tokens, strict=True)
        return [None if token.kind == NAME and not _names(self.text, found) else token.kind for found, token in pairs]


class Statement:
    """What is read of a statement; from what is known of its words (2) where they were read before."""

    def __init__(self, record: Record) -> None:
        self.record = record
        words = f"{record.speaker}\0{record.subject}\0{record.text}".encode("utf-8", "surrogatepass")
        #: 20 bytes by which it is known: those of its words, its speaker and whom it is about.
        self.digest: Final = blake2b(words, digest_size=20).digest()

    @property
    def glance(self) -> Glance:
        return remembered(_glanced, _GLANCES, self, self.digest)

    @property
    def words(self) -> Words:
        return remembered(_read, _WORDS, self, self.digest)

    @property
    def states(self) -> States:
        """The states that a short statement tells of."""
        return remembered(_read_states, _STATES, self, self.digest)

    @cached_property
    def plain(self) -> tuple[_Pass, int]:
        """The text without what denies nothing, and bits of the patterns that are in it."""
        text = self.record.text.encode("utf-8", "replace").decode().replace("’", "'")
        bits = sum(1 << place for place in _patterns().Match(text) or ())
        return _Pass(states.IDIOMS.sub(" ", text) if bits & _IDIOMS else text), bits

    @property
    def whole(self) -> _Pass:
        """The text as it is."""
        text = self.record.text.replace("’", "'")
        return self.plain[0] if self.plain[0].text == text else _Pass(text)


def remembered(
    read: Callable[[Given], Read], known: dict[bytes, Read], given: Given, digest: bytes, most: int = _REMEMBERED
) -> Read:
    """Return what is read of something, or what is known of it by a digest where that was read before."""
    found = known.get(digest)
    if found is None:
        if len(known) >= most:
            known.clear()
        found = known[digest] = read(given)
    return found


@cache
def _patterns() -> Any:
    """Return a search for words of change, what denies nothing, what is replaced, and each property behind these."""
    import re2

    options = re2.Options()
    options.case_sensitive = False
    # In the usual 8 MB the states of these patterns have no room: they are thrown away and made anew, text by text.
    options.max_mem = 32 << 20
    patterns = re2.Set.SearchSet(options)
    patterns.Add(rf"\b(?:{'|'.join(_LISTS['change'])})\b")
    patterns.Add(states.IDIOMS.pattern)
    patterns.Add(_REPLACED.pattern)
    for each in _LISTS["property"].values():
        patterns.Add(rf"\b(?:{'|'.join(each)})")
    patterns.Compile()
    return patterns


def _glanced(statement: Statement) -> Glance:
    said, bits = statement.plain
    words = [token.word for token in said.tokens]
    kinds = stated = 0
    topics: tuple[int, ...] = (0,) * 2 * COLUMNS
    if len(words) <= SHORT:
        kinds = sum(1 << kind for kind in {*said.kinds} if kind is not None)
        kinds |= 0 if _PLACES.isdisjoint(words) else 1 << PLACE
        stated = states.named(said.text)
        rough = [token.rough for token in said.tokens]
        phrases = (word for head, sort in _phrases(said.tokens, rough) for word in (head, *sort))
        topics = *_filter(chain.from_iterable(rough)), *_filter(phrases)
    properties, changes, asks = bits >> _PROPERTIES, bool(bits & _CHANGE), said.text.rstrip().endswith("?")
    form, denies = tuple(map(term_hash, words[:24])), _denies(said.text, words)
    choice = next((at for at, word in enumerate(words[:_SOON], start=1) if word in _CHOOSING), 0)
    numbers = properties, kinds, hash(form[:BEGIN]), len(words), hash(form[:choice]) if choice else 0
    return Glance(
        properties=properties,
        changes=changes,
        asks=asks,
        form=form,
        length=len(words),
        choice=choice,
        kinds=kinds,
        denies=denies,
        features=_FEATURES.pack(*numbers, asks, changes, denies, bool(bits & _REPLACES)),
        states=stated,
        topics=topics,
    )


def _read_states(statement: Statement) -> States:
    found = states.read(statement.plain[0].text, statement.record.speaker or "")
    sides, others = (reduce(or_, bits, 0) for bits in ([it.side for it in found], [it.other for it in found]))
    return States(found, sides, others)


def _denies(text: str, words: Sequence[str]) -> bool:
    return "n't" in text or not _DENIALS.isdisjoint(words)


def _denied(text: str) -> Iterator[int]:
    """Yield the words of the clauses that deny something."""
    for clause in states.clauses(text):
        words = _TOKEN.findall(clause.lower())
        if _denies(clause, words):
            yield from chain.from_iterable(map(word_hashes, words))


def _places(said: _Pass) -> Iterator[int]:
    """Yield what stands behind "in the", "under a" and the like, up to a word that means nothing."""
    inside = False
    for token, kind in zip(said.tokens, said.kinds, strict=True):
        opens = token.bare in _PLACES
        inside = opens or (inside and (bool(token.terms) or token.bare in _DETERMINERS or token.bare in {"a", "an"}))
        if inside and not opens and kind is None:
            yield from token.terms


def _filter(hashes: Iterable[int]) -> tuple[int, ...]:
    """Return a Bloom filter: `_BITS` in each of `COLUMNS`."""
    columns = [0] * COLUMNS
    for word in set(hashes):
        columns[word % COLUMNS] |= 1 << word // COLUMNS % _BITS
    return tuple(columns)


@lru_cache(maxsize=_REMEMBERED)
def _token(token: str) -> _Token:
    word = token.lower()
    bare, terms = word.removesuffix("'s"), word_hashes(token)
    return _Token(
        token,
        word,
        bare,
        bare.partition("'")[0],
        () if word in STOP_WORDS else (term_hash(bare.removesuffix("s")),),
        terms,
        terms[0] if terms else term_hash(bare),
        _kind(token, word),
        token.istitle(),
        token[:1].isdigit(),
        word in _DETERMINERS,
        word in _PHRASE_ENDS or word.endswith("ed"),
        word.endswith("'s"),
        word in _SORTS,
    )


def _kind(token: str, word: str) -> int | None:
    """Return the place of a value's kind: 0 a number, 1 a day, 2 a month, 3 what may be a name; None for no value."""
    if token[:1].isdigit() or word in NUMBERS:
        return 0
    if token.islower() and token not in _VALUES:
        return None
    for place, dates in enumerate(_DATES, start=1):
        if word.removesuffix("s") in dates or word in dates:
            return place
    named = token[:1].isupper() and len(token) > 1 and word not in STOP_WORDS
    return NAME if named and word.partition("'")[0] not in _PRONOUNS else None


def _names(text: str, found: re.Match[str]) -> bool:
    """Whether what has a capital is a name.

    A capital that begins a sentence names nothing, and who is spoken to ("Thanks, Ana!", "Hey Ana,") is no value.
    """
    before, behind = text[: found.start()].rstrip(), text[found.end() :]
    if before[-1:] in _OPENING and found[0][1:].islower() and _TITLE.search(before[-_TITLED:]) is None:
        # "Bo is" names somebody where it begins a sentence, too.
        acts = _TOKEN.match(behind.lstrip())
        if acts is None or acts[0] not in _ONE:
            return False
    return behind[:1] not in _CALLING or not (before.endswith(",") or len(before.split(maxsplit=_CALLED)) < _CALLED)


def _phrases(tokens: Sequence[_Token], terms: Sequence[Sequence[int]]) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield what stands behind "the", a possessive or a name's, up to a word that means nothing or is a verb.

    And what has a number for a name, such as "ticket 5120".
    """
    # "Invoices go out on the 15th": all of them, as both sides know.
    words: list[int] | None = [] if tokens and tokens[0].titled and tokens[0].token.endswith("s") else None
    whole: int | None = None
    before: Sequence[int] = ()
    for token, kept in zip((*tokens, _token("")), (*terms, ()), strict=True):
        word, titled, digit, known, ends, possessive, sort = token.word, *token[-6:]
        # "Activities that involve animals": what follows a noun is none.
        known = known and not (before and word == "that")
        # "The tank holds 40 litres": what a number counts is none.
        ends = ends or not kept or (digit and bool(words))
        if digit and kept and before:
            yield kept[0], frozenset(before)
        before = () if ends else kept
        if words and (ends or titled):
            yield words[-1], frozenset(words[:-1])
            # "The trip of the class" is no class.
            if whole is not None:
                yield whole, frozenset(words)
            whole = words[-1] if word == "of" else None
        if ends or known:
            words = [] if known else None
        elif possessive:
            words = []
        elif words is not None and not sort:
            words.extend(kept)


def _read(statement: Statement) -> Words:
    record, said = statement.record, statement.whole
    text, tokens, kinds = said.text, said.tokens, said.kinds
    # In ASCII the search in one pass finds the same.
    replaced = _REPLACED.finditer(text) if statement.plain[1] & _REPLACES or not text.isascii() else ()
    opening: list[int] = []
    kin: set[str] = set()
    named: list[int] = []
    begun = past = False
    acts = verb = None
    nothing = _token("")
    for token, last, following in zip(tokens[:10], (nothing, *tokens), (*tokens[1:], nothing), strict=False):
        word, before = token.bare, last.bare
        plural = begun and word.endswith("s") and not word.endswith("ss")
        plural = plural and token.token.islower() and len(word) > 3 and not before[:1].isdigit()
        joint = token.front in _PRONOUNS and "'" in word
        if (
            word in _PHRASE_ENDS
            or joint
            or (begun and (word.endswith("ed") or (plural and following.word not in _VERBS)))
        ):
            past = (word.endswith("ed") and word not in _PHRASE_ENDS) or word in IRREGULAR
            # "Viktor does the shopping": of the shopping.
            opening = [] if word in _ROLES and tokens[0].titled and following.word in _DETERMINERS else opening
            acts = term_hash(word)
            plain = joint or word in _VERBS or (word in _PHRASE_ENDS and not word.endswith("s"))
            verb = None if plain else (word_hashes(word) or (term_hash(word),))[0]
            break
        if word in _OPENERS:
            continue
        if word[0].isdigit() and before in STOP_WORDS:
            break
        opening.extend(word_hashes(word))
        # "my boyfriend Kasper" is named, and who names him speaks of the same one.
        if not following.titled:
            kin |= {word} & _KIN
        elif following.kind == NAME and token.token.islower() and (last.possessive or last.determiner or word in _KIN):
            named += token.terms + following.terms
        begun = bool(opening) or word in _PRONOUNS
    values: tuple[set[int], ...] = (set(), set(), set(), set(), set())
    for kind, token in zip(kinds, tokens, strict=True):
        if kind is not None:
            values[kind].update(token.terms or [term_hash(token.word)])
    # Where several sentences stand, a place may be that of anything.
    if not _SENTENCES.search(text):
        values[PLACE].update(_places(said))
    first_person = not _FIRST.isdisjoint([token.front for token in tokens])
    speaker = frozenset(hashes(record.speaker or ""))
    oneself = speaker if first_person else frozenset()
    # "I live in Lisbon" and "I moved to Porto", noted down without a speaker, share no other word.
    unnamed = first_person and not speaker and TIMES.issuperset(opening)
    somebody = frozenset((term_hash(f"\0{record.subject}"),) if unnamed else ())
    return Words(
        every=speaker.union(hashes(text), somebody),
        subject=frozenset((*opening, *oneself)),
        things=frozenset(chain.from_iterable([token.terms for token in tokens if token.token.islower()])),
        kin=frozenset(map(term_hash, kin)),
        named=frozenset(named),
        oneself=oneself,
        somebody=somebody,
        phrases=tuple(_phrases(tokens, [token.terms for token in tokens])),
        order=tuple([token.mark for token in tokens]),
        values=tuple(map(frozenset, values)),
        units=frozenset(
            token.mark
            for kind, token, following in zip(kinds, tokens[1:], kinds[1:], strict=False)
            if kind == 0 and token.terms and following in {None, NAME}
        ),
        replaced=frozenset(term for found in replaced for word in found[1].split() for term in word_hashes(word)),
        denied=frozenset(_denied(text) if _denies(text, [token.bare for token in tokens]) else ()),
        acts=acts,
        verb=verb,
        past=past,
        over=past and _YEARS.search(text) is not None,
        favourites=frozenset((found[1] or found[2]).lower() for found in _FAVOURITE.finditer(text)),
    )
