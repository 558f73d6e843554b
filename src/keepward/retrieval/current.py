"""What is current: which of two statements of the same thing is the newer one, told from their words and vectors.

"Priya lives in Leeds" and, later, "Priya has relocated to Bristol": both were true when they were said, and one holds.
Nothing is merged or superseded by that; whoever shows both can say which came later.

Invariants
(1) A pure function of the statements and their vectors; the order of the given ones does not matter.
(2) What is outdone is outdone by a statement that is newer, trusted no less, and not outdone itself.
(3) Statements of different people or things never outdo each other, however alike their form is: who or what a
    sentence opens with has to stand in the other one as well.
(4) What is remembered of a text is hashes of its words, and not the words.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from keepward.model.memory import Record
from keepward.model.value import to_micros
from keepward.retrieval.analyze import IRREGULAR, MONTHS, STOP_WORDS, WEEKDAYS, analyse, term_hash

Vectors = npt.NDArray[np.float32]
Cosines = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
#: Places of a newer and an older statement, (n, 2).
Pairs = npt.NDArray[np.intp]
Read = TypeVar("Read")

#: Least cosine of two statements of the same thing: where the newer one tells of a change and they share a word that is
#: no name; where it does and they share names alone; and where they speak of the same property or have one form.
CHANGED: Final = 0.48
CHANGED_APART: Final = 0.73
SAME_PROPERTY: Final = 0.28
#: The same where both speak of one thing, by "the", a possessive or a name before it, and give different values.
SAME_TOPIC: Final = 0.42
#: The same where they have one form.
SAME_FORM: Final = 0.5
#: The same where they share no topic.
SAME_SAID: Final = 0.6
#: Share of the older one's words that a denial of one topic repeats.
DENIED: Final = 0.66
#: Least share of words in common, where there are no vectors of meaning.
COMMON: Final = 0.34
#: Pairs that are read word by word, where there are no vectors of meaning to say which are worth it.
MOST: Final = 256
#: Words of a text up to which a property that both name is enough, and beyond which a change may be of anything.
SHORT: Final = 20
LONGEST: Final = 16
#: Words from which one form is told, and after which two of one form end.
_BEGIN: Final = 3
_END: Final = 4
#: Words that may stand for as many others in a sentence of one form.
_SWAPPED: Final = 2
_REMEMBERED: Final = 16_384
#: Words from which somebody may be spoken to.
_CALLED: Final = 3
#: Kinds of value that are a name and a place, after numbers, days and months.
_NAME: Final = 3
_PLACE: Final = 4
#: Integers of a filter of words, and bits of each.
_COLUMNS: Final = 4
_BITS: Final = 63

_LISTS: Final[dict[str, Any]] = tomllib.loads(files(__package__).joinpath("current.toml").read_text("utf-8"))
_VERBS, _KIN, _OPENERS, _PRONOUNS = (frozenset(_LISTS[name]) for name in ("verbs", "kin", "openers", "pronouns"))
_ONE_VALUE: Final = frozenset(map(term_hash, _LISTS["one_value"]))
_DETERMINERS, _NUMBERS, _DENIALS, _SORTS, _PLACES = (
    frozenset(_LISTS[name]) for name in ("determiners", "numbers", "denials", "sorts", "places")
)
_DATES: Final = (frozenset(WEEKDAYS), frozenset(map(str.lower, MONTHS)))
_TIMES: Final = frozenset(map(term_hash, _LISTS["times"]))
_DOING: Final = frozenset(term_hash(term) for verb in _VERBS for term in analyse(verb).terms)
_VERB_HASHES: Final = _ONE_VALUE | frozenset(map(term_hash, _VERBS))
_OPENING: Final = frozenset(("", *".!?:;"))
_CALLING: Final = frozenset(("", *",.!?"))
#: Verbs of one, behind which a name may begin a sentence.
_ONE: Final = frozenset(("is", "has", "was"))
_SENTENCES: Final = re.compile(r"[a-z0-9][.!?]+\s")
_TITLE: Final = re.compile(r"\b[A-Z][a-z]{0,2}\.$")
_FAVOURITE: Final = re.compile(r"\bfavou?rite (\w+)|\bprefers? \w+ to any other (\w+)", re.IGNORECASE)
_TOKEN: Final = re.compile(r"\w+(?:[-.']\w+)*")


class Newer(NamedTuple):
    """What outdoes a statement, and what shows that it does."""

    id: str
    #: Of ``property``, both name one; ``form``, they begin alike and end differently; ``value``, they give values of
    #: one kind to one thing; ``denial``, one denies what the other says; ``change``, the newer one tells of one.
    signs: tuple[str, ...]
    #: How close the two are, 0..1: in meaning, or without vectors of meaning by the words that they have in common.
    score: float


@dataclass(frozen=True, slots=True)
class _Glance:
    """What a look at a text says of it."""

    #: Bits of the properties that it names.
    properties: int
    #: Whether it tells of a change, or could be one of two of one form.
    changes: bool
    asks: bool
    #: The words in their order, as hashes: the first of them.
    form: tuple[int, ...]
    length: int
    #: Bits of the kinds of value in a short text, of its words by their hash (`_filter`), and of those of its phrases.
    kinds: int
    mentions: tuple[int, ...]
    topics: tuple[int, ...]
    denies: bool


@dataclass(frozen=True, slots=True)
class _Words:
    """Hashes of the words that mean something."""

    every: frozenset[int]
    #: Those that the first sentence opens with, up to its verb.
    subject: frozenset[int]
    #: Those that are no names, and those of the subject that say whose relative it is.
    things: frozenset[int]
    kin: frozenset[int]
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
    #: Who says it of themselves; empty where it is said in the third person.
    oneself: frozenset[int]


def outdone(records: Sequence[Record], vectors: Vectors | None) -> dict[str, Newer]:
    """Return the ids of the records that are outdone, and for each the newest that outdoes it.

    ``vectors`` are float32 (n, dim), L2-normalised or zeros where a record has none; None where there are none of
    meaning.
    """
    if len(records) < 2:
        return {}
    instants = [(*instant(record), record.id) for record in records]
    order = sorted(range(len(records)), key=instants.__getitem__)
    given, when = [records[at] for at in order], [instants[at][:2] for at in order]
    seen = [_remembered(_glanced, _GLANCES, record) for record in given]
    near: Cosines = np.ones((len(given), len(given)))
    if vectors is not None:
        near = (vectors[order] @ vectors[order].T).astype(np.float64).round(6)
    pairs = np.argwhere(_comparable(given, seen, near, by_meaning=vectors is not None))
    words = {at: _remembered(_worded, _WORDS, given[at]) for at in np.unique(pairs).tolist()}
    found: dict[str, Newer] = {}
    # From the newest on, so that what outdoes another is known not to be outdone itself.
    alike = _of_one_thing(pairs[np.lexsort((pairs[:, 1], -pairs[:, 0]))], words, most=MOST if vectors is None else None)
    for newer, older in zip(*alike.T.tolist(), strict=True):
        after, before = given[newer], given[older]
        if after.id in found or before.id in found or when[older] >= when[newer]:
            continue
        likeness = float(near[newer, older]) if vectors is not None else None
        shown = _outdoes(words[newer], words[older], seen[newer], seen[older], likeness)
        if shown is not None:
            found[before.id] = Newer(after.id, *shown)
    return found


def _of_one_thing(pairs: Pairs, words: Mapping[int, _Words], *, most: int | None) -> Pairs:
    """Return, in their order, the pairs that share a word and do not each open with what the other lacks (3).

    Of more than ``most`` these are the pairs with the largest shares of words in common.
    """
    if not len(pairs):
        return pairs
    read, rows = [*words.values()], np.zeros(max(words) + 1, dtype=np.intp)
    rows[[*words]] = np.arange(len(words))
    newer, older = rows[pairs].T
    every, subjects = [each.every for each in read], [each.subject for each in read]
    counts = Counter(chain.from_iterable(map(frozenset.union, every, subjects)))
    # A word that one statement alone has is common to no two, and what opens with it has no other that mentions it.
    places = {word: place for place, word in enumerate(word for word, count in counts.items() if count > 1)}
    mentions, opens = _bits(every, places), _bits(subjects, places)
    common, of_newer, of_older = np.zeros((3, len(pairs)), dtype=np.int64)
    for mention, opening in zip(mentions.T, opens.T, strict=True):
        common += np.bitwise_count(mention[newer] & mention[older])
        of_newer += np.bitwise_count(opening[newer] & mention[older])
        of_older += np.bitwise_count(opening[older] & mention[newer])
    sizes, openings = np.array([*map(len, every)]), np.array([*map(len, subjects)])
    apart = (of_newer < openings[newer]) & (of_older < openings[older])
    kept = np.flatnonzero((common > 0) & ~apart)
    if most is not None and len(kept) > most:
        shares = common[kept] / np.minimum(sizes[newer[kept]], sizes[older[kept]])
        kept = kept[np.sort(np.argsort(-shares, kind="stable")[:most])]
    return pairs[kept]


def _bits(sets: Sequence[frozenset[int]], places: Mapping[int, int]) -> npt.NDArray[np.uint64]:
    """Return a row of bits for each set, 1 at the places of its members."""
    width = max(-(-len(places) // 64), 1) * 64
    table = np.zeros(len(sets) * width, dtype=np.bool_)
    table[[row * width + places[word] for row, words in enumerate(sets) for word in words if word in places]] = True
    return np.packbits(table.reshape(len(sets), width), axis=1).view(np.uint64)


def _comparable(given: Sequence[Record], seen: Sequence[_Glance], near: Cosines, *, by_meaning: bool) -> Mask:
    """Return, for each newer (row) and older (column) one, whether the pair is worth to be read word by word."""
    trust = np.array([int(record.trust) for record in given])
    properties = np.array([glance.properties for glance in seen], dtype=np.int64)
    begin = np.array([hash(glance.form[:_BEGIN]) for glance in seen], dtype=np.int64)
    told = np.array([not glance.asks for glance in seen], dtype=np.bool_)
    able: Mask = ((properties[:, None] & properties) != 0) | (begin[:, None] == begin)
    able &= near >= SAME_PROPERTY
    kinds = np.array([glance.kinds for glance in seen], dtype=np.int64)
    denies = np.array([glance.denies for glance in seen], dtype=np.bool_)
    denied = denies[:, None] != denies
    short = np.array([glance.length <= SHORT for glance in seen], dtype=np.bool_)
    otherwise = (((kinds[:, None] & kinds) != 0) | denied) & short[:, None] & short
    able |= otherwise & ((near >= SAME_SAID) | (_topical(seen) & (near >= SAME_TOPIC)))
    if not by_meaning:
        # Longer ones tell of many things, and only vectors would say whether of the same.
        able &= short[:, None] & short
    else:
        brief = np.array([glance.length <= LONGEST for glance in seen], dtype=np.bool_)
        changes = np.array([glance.changes for glance in seen], dtype=np.bool_)
        able |= (changes & brief)[:, None] & brief & (near >= CHANGED)
    able &= told[:, None] & told & (trust[:, None] >= trust)
    return np.tril(able, -1)


def _topical(seen: Sequence[_Glance]) -> Mask:
    """Return which may speak of one thing that both sides know: what the one calls so, the other mentions."""
    mentions = np.array([glance.mentions for glance in seen], dtype=np.int64)
    topics = np.array([glance.topics for glance in seen], dtype=np.int64)
    named: Mask = np.zeros((len(seen), len(seen)), dtype=np.bool_)
    for column in range(_COLUMNS):
        named |= (mentions[:, column, None] & topics[:, column]) != 0
    return named | named.T


def could_outdo(record: Record) -> bool:
    """Whether there can be a statement that this one outdoes."""
    seen = _remembered(_glanced, _GLANCES, record)
    one_form = not _ONE_VALUE.isdisjoint(seen.form)
    changes = seen.changes and seen.length <= LONGEST
    return not seen.asks and bool(seen.properties or seen.kinds or seen.denies or one_form or changes)


def instant(record: Record) -> tuple[int, int]:
    """Return by what the newer of two statements is told: when it happened, then when it was written."""
    return to_micros(record.occurred_at or record.created_at), to_micros(record.created_at)


def _outdoes(
    after: _Words, before: _Words, new: _Glance, old: _Glance, likeness: float | None
) -> tuple[tuple[str, ...], float] | None:
    """Return the signs that one statement outdoes another of one thing and how close they are; None if it does not."""
    common = after.every & before.every
    # A turn often opens with the name of whom it is said to.
    apart = after.kin != before.kin or bool(after.oneself and before.oneself and after.oneself != before.oneself)
    # "Ferry 3 sails to island 21" and "ferry 21 sails to island 147".
    one, other = (each.subject & each.values[0] for each in (after, before))
    apart = apart or bool(one and other and not one & other)
    if apart or (after.every == before.every and new.denies == old.denies):
        return None
    share, form = len(common) / min(len(after.every), len(before.every)), _one_form(new.form, old.form)
    if likeness is None:
        # By words alone these hold for nothing, whatever is read of them below: and most pairs get here.
        apart = not new.changes and bool(after.subject) and not common & after.subject
        if apart or (share < COMMON and not form and not new.properties & old.properties):
            return None
    conflicts = _conflicts(after, before)
    conflicting = any(conflicts)
    if new.properties and old.properties:
        favourites = after.favourites | before.favourites
        if favourites and after.favourites != before.favourites:
            return None
        one_topic = bool(new.properties & old.properties) or (conflicting and _one_topic(after, before))
        if not one_topic or (not new.properties & old.properties and _elsewhere(after, before, conflicts)):
            return None
    same = {
        "property": bool(new.properties & old.properties),
        "form": form and not (_elsewhere(after, before, conflicts) if conflicting else _unlike(after, before)),
        "value": conflicting and not form and _one_value(after, before, conflicts),
        "denial": new.denies != old.denies and _repeats(after, before),
    }
    same["value"] = same["value"] and not _elsewhere(after, before, conflicts)
    by_topic = not (same["property"] or same["form"])
    if any(same.values()):
        if likeness is None:
            holds = bool(common & after.subject or not after.subject) and (share >= COMMON or not by_topic)
        else:
            # Longer ones tell of many things.
            changed = new.changes and likeness >= CHANGED_APART
            holds = max(new.length, old.length) <= SHORT or changed
            holds = holds and likeness >= (SAME_PROPERTY if same["property"] else SAME_TOPIC if by_topic else SAME_FORM)
    else:
        least = CHANGED if common & (after.things | before.things) else CHANGED_APART
        near = share >= COMMON if likeness is None else likeness >= least
        # Who speaks and when is common to much that is about different things.
        shared = common - after.oneself - after.values[1] - after.values[2]
        holds = near and new.changes and bool(shared) and max(new.length, old.length) <= LONGEST
    if not holds:
        return None
    signs = same | {"change": new.changes}
    return tuple(sign for sign, is_there in signs.items() if is_there), share if likeness is None else likeness


def _one_topic(after: _Words, before: _Words) -> bool:
    """Whether they speak of one thing that both sides know, and what was said first is no event of the past."""
    if before.past:
        return False
    common = (after.every & before.every) - _TIMES
    topics = {word for words in (after, before) for head, sort in words.phrases for word in (head, *sort)} & common
    if not topics:
        return False
    for head, sort in after.phrases:
        # A laptop's bag is no laptop, and a lesson of cello and one of pottery are two things.
        if head in after.subject and head not in before.every:
            topics -= sort
        for known, other in before.phrases:
            if known == head and not (sort <= before.every and other <= after.every):
                topics -= {head}
    # "The library closes" and "the library opens": of one thing, and not the same of it.
    verbs = {after.verb, before.verb} if topics & after.subject & before.subject else {None}
    return bool(topics) and (None in verbs or len(verbs) == 1)


def _one_value(after: _Words, before: _Words, conflicts: Sequence[bool]) -> bool:
    """Whether one of the two values takes the place of the other one."""
    # "Supports JSON", "supports XML": names and places are added where the verb is the same and not one of one value.
    added = after.acts is not None and after.acts == before.acts and after.acts not in _ONE_VALUE
    topic = _one_topic(after, before) and (any(conflicts[:_NAME]) or not added)
    return topic or _short_for(after, before, conflicts)


def _short_for(after: _Words, before: _Words, conflicts: Sequence[bool]) -> bool:
    """Whether the newer one has no word beside its value that the older one lacks ("landing at five").

    Names and places are often several: who loves Dune loves Emma, too.
    """
    said, known = after.things - _TIMES, before.things - _TIMES
    dated = any(conflicts[:_NAME])
    return dated and said <= before.every and not before.past and (bool(said & known) or not (said or known))


def _conflicts(after: _Words, before: _Words) -> tuple[bool, ...]:
    """Return, for each kind of value, whether each gives one that the other does not give."""
    kinds = zip(after.values, before.values, strict=True)
    return tuple(not (new <= before.every or old <= after.every) for new, old in kinds)


def _unlike(after: _Words, before: _Words) -> bool:
    """Whether each gives values, and none of a kind that the other one gives: "is in June", "is in the old mill"."""
    kinds = [
        (bool(new - before.every), bool(old - after.every))
        for new, old in zip(after.values, before.values, strict=True)
    ]
    return all(any(side) for side in zip(*kinds, strict=True)) and not any(new and old for new, old in kinds)


def _elsewhere(after: _Words, before: _Words, conflicts: Sequence[bool]) -> bool:
    """Whether what stands beside two values differs as well, so that they are values of two things.

    Such as "my daughter starts school in May" and "my daughter starts piano in June".
    """
    *others, named, _ = conflicts
    if (named and any(others)) or (after.units and before.units and not after.units & before.units):
        return True
    gone = before.things - before.values[_PLACE] - after.every - _DOING
    come = after.things - after.values[_PLACE] - before.every - _DOING
    if not gone or not come:
        return False
    # One word in the place of another between words that are the same: most often seen without looking for the longest
    # run of words in common.
    aligned = ((0, 0), *zip(before.order, after.order, strict=False), (0, 0))
    for at, (old, new) in enumerate(aligned):
        if old in gone and new in come and all(one == other for one, other in aligned[at - 1 : at + 2 : 2]):
            return True
    for _, old, old_end, new, new_end in SequenceMatcher(None, before.order, after.order, autojunk=False).get_opcodes():
        few = max(old_end - old, new_end - new) <= _SWAPPED
        if few and not gone.isdisjoint(before.order[old:old_end]) and not come.isdisjoint(after.order[new:new_end]):
            return True
    return False


def _repeats(after: _Words, before: _Words) -> bool:
    """Whether the newer one repeats what the older one says: all of it and no more, or most of it of one topic."""
    more = after.things - before.every - _TIMES
    if not before.things - after.every and not more and not any(after.values):
        return not before.past
    return len(before.things & after.every) >= DENIED * len(before.things) and _one_topic(after, before)


def _one_form(newer: Sequence[int], older: Sequence[int]) -> bool:
    """Whether two statements begin alike up to a verb that takes one value, and end differently."""
    least, most = sorted((len(newer), len(older)))
    shared = next((at for at in range(least) if newer[at] != older[at]), least)
    verb = next((word for word in reversed(newer[:shared]) if word in _VERB_HASHES), None)
    return _BEGIN <= shared < least and most - shared <= _END and verb in _ONE_VALUE


_GLANCES: Final[dict[bytes, _Glance]] = {}
_WORDS: Final[dict[bytes, _Words]] = {}


def _remembered(read: Callable[[Record], Read], known: dict[bytes, Read], record: Record) -> Read:
    """Return what is read of a record, from what is known of its words (4) where they were read before."""
    words = f"{record.speaker}\0{record.text}".encode("utf-8", "surrogatepass")
    digest = blake2b(words, digest_size=20).digest()
    found = known.get(digest)
    if found is None:
        if len(known) >= _REMEMBERED:
            known.clear()
        found = known[digest] = read(record)
    return found


@cache
def _patterns() -> tuple[Any, Any]:
    """Return a search for each property, and one for words of change."""
    import re2

    options = re2.Options()
    options.case_sensitive = False
    properties = re2.Set.SearchSet(options)
    for patterns in _LISTS["property"].values():
        properties.Add(rf"\b(?:{'|'.join(patterns)})")
    properties.Compile()
    options.never_capture = True
    change = re2.compile(rf"\b(?:{'|'.join(_LISTS['change'])})\b", options)
    return properties, change


def _glanced(record: Record) -> _Glance:
    properties, change = _patterns()
    data = record.text.encode("utf-8", "replace").decode()
    tokens = _TOKEN.findall(data.replace("’", "'"))
    words = [token.lower() for token in tokens]
    kinds, mentioned, topics = 0, list[int](), list[int]()
    if len(words) <= SHORT:
        kinds = sum(1 << kind for kind in {kind for kind in _kinds(data) if kind is not None})
        kinds |= 0 if _PLACES.isdisjoint(words) else 1 << _PLACE
        rough = [() if word in STOP_WORDS else (word.removesuffix("'s").removesuffix("s"),) for word in words]
        mentioned = [term_hash(word) for each in rough for word in each]
        topics = [word for head, sort in _phrases(tokens, rough) for word in (head, *sort)]
    return _Glance(
        properties=sum(1 << place for place in properties.Match(data) or ()),
        changes=change.search(data) is not None,
        asks=data.rstrip().endswith("?"),
        form=tuple(map(term_hash, words[:24])),
        length=len(words),
        kinds=kinds,
        mentions=_filter(mentioned),
        topics=_filter(topics),
        denies=any(word in _DENIALS or word.endswith("n't") for word in words),
    )


def _places(words: Sequence[str], terms: Sequence[Sequence[str]], kinds: Sequence[int | None]) -> Iterator[int]:
    """Yield what stands behind "in the", "under a" and the like, up to a word that means nothing."""
    inside = False
    for word, kept, kind in zip(words, terms, kinds, strict=True):
        opens = word in _PLACES
        inside = opens or (inside and (bool(kept) or word in _DETERMINERS or word in {"a", "an"}))
        if inside and not opens and kind is None:
            yield from map(term_hash, kept)


def _filter(hashes: Iterable[int]) -> tuple[int, ...]:
    """Return a Bloom filter: `_BITS` in each of `_COLUMNS`."""
    columns = [0] * _COLUMNS
    for word in set(hashes):
        columns[word % _COLUMNS] |= 1 << word // _COLUMNS % _BITS
    return tuple(columns)


def _kind(token: str, before: str, behind: str) -> int | None:
    """Return the place of a value's kind: 0 a number, 1 a day, 2 a month, 3 a name; None where it is no value.

    A capital that begins a sentence names nothing, and who is spoken to ("Thanks, Ana!", "Hey Ana,") is no value.
    """
    word = token.lower()
    if word in _NUMBERS or token[0].isdigit():
        return 0
    for place, dates in enumerate(_DATES, start=1):
        if word.removesuffix("s") in dates or word in dates:
            return place
    if not token[0].isupper() or len(token) == 1 or word in STOP_WORDS or word.partition("'")[0] in _PRONOUNS:
        return None
    # "Bo is" names somebody where it begins a sentence, too.
    acts = _TOKEN.match(behind.lstrip())
    opens = before[-1:] in _OPENING and _TITLE.search(before) is None and not (acts and acts[0] in _ONE)
    called = behind[:1] in _CALLING and (before.endswith(",") or len(before.split()) < _CALLED)
    return None if called or (opens and token[1:].islower()) else _NAME


def _kinds(text: str) -> Iterator[int | None]:
    for found in _TOKEN.finditer(text):
        yield _kind(found[0], text[: found.start()].rstrip(), text[found.end() :])


def _phrases(tokens: Sequence[str], terms: Sequence[Sequence[str]]) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield what stands behind "the", a possessive or a name's, up to a word that means nothing or is a verb.

    And what has a number for a name, such as "ticket 5120".
    """
    words: list[int] | None = None
    before: Sequence[str] = ()
    for token, kept in zip((*tokens, ""), (*terms, ()), strict=True):
        lower = token.lower()
        ends = not kept or lower in _VERBS or lower.endswith("ed")
        if token[:1].isdigit() and kept and before:
            yield term_hash(kept[0]), frozenset(map(term_hash, before))
        before = () if ends else kept
        if words and (ends or token.istitle()):
            yield words[-1], frozenset(words[:-1])
        if ends or lower in _DETERMINERS:
            words = [] if lower in _DETERMINERS else None
        elif lower.endswith("'s"):
            words = []
        elif words is not None and lower not in _SORTS:
            words.extend(map(term_hash, kept))


def _worded(record: Record) -> _Words:
    text, speaker = record.text.replace("’", "'"), analyse(record.speaker or "").kept
    tokens = _TOKEN.findall(text)
    lowered = [token.lower().removesuffix("'s") for token in tokens]
    opening: list[str] = []
    kin: set[str] = set()
    begun = past = False
    acts = verb = None
    for token, word, before, following in zip(tokens[:10], lowered, ("", *lowered), (*tokens[1:], ""), strict=False):
        plural = token.islower() and len(word) > 3 and word.endswith("s") and not word.endswith("ss")
        joint = word.partition("'")[0] in _PRONOUNS and "'" in word
        if word in _VERBS or joint or (begun and (word.endswith("ed") or (plural and following.lower() not in _VERBS))):
            past = word.endswith("ed") or word in IRREGULAR
            acts = term_hash(word)
            verb = None if word in _VERBS or joint else term_hash(analyse(word).terms[0])
            break
        if word in _OPENERS:
            continue
        if word[0].isdigit() and before in STOP_WORDS:
            break
        opening.extend(analyse(word).kept)
        # "my boyfriend Kasper" is named, and who names him speaks of the same one.
        if not following.istitle():
            kin |= {word} & _KIN
        begun = bool(opening) or word in _PRONOUNS
    terms = [analyse(token).kept for token in tokens]
    kinds = [*_kinds(text)]
    values: tuple[set[int], ...] = (set(), set(), set(), set(), set())
    for kind, kept, token in zip(kinds, terms, tokens, strict=True):
        if kind is not None:
            values[kind].update(map(term_hash, kept or [token.lower()]))
    # Where several sentences stand, a place may be that of anything.
    if not _SENTENCES.search(text):
        values[_PLACE].update(_places(lowered, terms, kinds))
    first_person = not {"i", "i'm", "i've", "my", "we", "our", "me"}.isdisjoint(lowered)
    return _Words(
        every=frozenset(map(term_hash, (*analyse(text).kept, *speaker))),
        subject=frozenset(map(term_hash, (*opening, *(speaker if first_person else ())))),
        things=frozenset(term_hash(term) for token in tokens if token.islower() for term in analyse(token).kept),
        kin=frozenset(map(term_hash, kin)),
        oneself=frozenset(map(term_hash, speaker)) if first_person else frozenset(),
        phrases=tuple(_phrases(tokens, terms)),
        order=tuple(term_hash(kept[0] if kept else word) for kept, word in zip(terms, lowered, strict=True)),
        values=tuple(map(frozenset, values)),
        units=frozenset(
            term_hash(kept[0])
            for kind, kept, following in zip(kinds, terms[1:], kinds[1:], strict=False)
            if kind == 0 and kept and following in {None, _NAME}
        ),
        acts=acts,
        verb=verb,
        past=past,
        favourites=frozenset((found[1] or found[2]).lower() for found in _FAVOURITE.finditer(text)),
    )
