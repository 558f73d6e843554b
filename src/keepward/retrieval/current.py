"""What is current: which of two statements of the same thing is the newer one, told from their words and vectors.

"Priya lives in Leeds" and, later, "Priya has relocated to Bristol": both were true when they were said, and one holds.
Nothing is merged or superseded by that; whoever shows both can say which came later.

Invariants
(1) A pure function of the statements and their vectors; the order of the given ones does not matter.
(2) What is outdone is outdone by a statement that is newer, trusted no less, and not outdone itself: the newest of a
    chain. So what is outdone among some statements is so among all that hold these, too.
(3) Statements of different people or things never outdo each other, however alike their form is: who or what a
    sentence opens with has to stand in the other one as well, or both tell states of one thing or person.
(4) What is remembered of a pair is what was told of it and the hashes of both, and not their words; of many pairs a
    hash of all.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from hashlib import blake2b
from itertools import chain, combinations
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keepward.model.memory import Record
from keepward.model.value import to_micros
from keepward.retrieval import states
from keepward.retrieval.rows import Places
from keepward.retrieval.statements import (
    ACTING,
    ANSWERING,
    BEGIN,
    BESIDE,
    COLUMNS,
    DAY,
    DOING,
    FEATURES,
    NAME,
    ONE_VALUE,
    OVER,
    OWN,
    PLACE,
    SELF,
    SEVERAL,
    SHORT,
    TIMES,
    VERB_HASHES,
    Glance,
    Statement,
    Words,
    remembered,
)

Vectors = npt.NDArray[np.float32]
Cosines = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
#: Places of a newer and an older statement, (n, 2).
Pairs = npt.NDArray[np.intp]
Bits = npt.NDArray[np.uint64]
#: A row of ``FEATURES`` for each statement.
Features = npt.NDArray[np.void]

#: Least cosine of two statements of the same thing: where the newer one tells of a change and they share a word that is
#: no name; where it does and they share names alone; and where they speak of the same property or have one form.
CHANGED: Final = 0.48
CHANGED_APART: Final = 0.73
SAME_PROPERTY: Final = 0.28
#: The same of what is of who tells of it.
SAME_OWN: Final = 0.2
#: The same where both speak of one thing, by "the", a possessive or a name before it, and give different values.
SAME_TOPIC: Final = 0.42
#: The same where they have one form.
SAME_FORM: Final = 0.5
#: The same where they share no topic.
SAME_SAID: Final = 0.6
#: The same where they tell states that exclude each other.
SAME_STATE: Final = 0.15
#: Share of the older one's words that a denial of one topic repeats.
DENIED: Final = 0.66
#: Least share of words in common, where there are no vectors of meaning.
COMMON: Final = 0.34
#: Pairs that are read word by word, where there are no vectors of meaning to say which are worth it.
MOST: Final = 256
#: Pairs up to which they are compared one by one, and how many are looked at together.
FEW: Final = 64
_TOGETHER: Final = 16_384
#: Pairs of which it is remembered what was told, some 200 bytes each; when there are more, all are forgotten. A context
#: of many memories of one form compares some 10,000.
_REMEMBERED: Final = 131_072
#: Sets of statements of which it is remembered which pairs are worth it, at most some 10 KB each.
_SETS: Final = 1_024
#: Words of a text beyond which a change may be of anything.
LONGEST: Final = 16
#: Words after which two of one form end.
_END: Final = 4
#: Words that may stand for as many others in a sentence of one form.
_SWAPPED: Final = 2


class Newer(NamedTuple):
    """What outdoes a statement, and what shows that it does."""

    id: str
    #: Of ``property``, both name one; ``form``, they begin alike and end differently; ``value``, they give values of
    #: one kind to one thing; ``denial``, one denies what the other says; ``state``, they tell
    #: states that exclude each other; ``change``, the newer one tells of one.
    signs: tuple[str, ...]
    #: How close the two are, 0..1: in meaning, or without vectors of meaning by the words that they have in common.
    score: float


#: Of many pairs of some statements, by a digest of all of them, which are worth to be compared: a bit each.
_WORTH: Final[dict[bytes, npt.NDArray[np.uint8]]] = {}
#: By both digests, the newer one first, and how close they are in meaning, what ``_outdoes`` returned.
_PAIRS: Final[dict[tuple[bytes, bytes, float | None], tuple[tuple[str, ...], float] | None]] = {}


def outdone(records: Sequence[Record], vectors: Vectors | None) -> dict[str, Newer]:
    """Return the ids of the records that are outdone, and for each the newest that outdoes it.

    ``vectors`` are float32 (n, dim), L2-normalised or zeros where a record has none; None where there are none of
    meaning.
    """
    if len(records) < 2:
        return {}
    instants = [(*instant(record), record.id) for record in records]
    order = sorted(range(len(records)), key=instants.__getitem__)
    given, when = [Statement(records[at]) for at in order], [instants[at][:2] for at in order]
    seen = [each.glance for each in given]
    features = _features(seen)
    near: Cosines = np.ones((1, 1))
    if vectors is not None:
        near = (vectors[order] @ vectors[order].T).astype(np.float64).round(6)
    excluded = _excluded(given, seen)
    able = _comparable(given, features, near, excluded, by_meaning=vectors is not None)
    own = excluded | _own(given, features)
    found: dict[str, Newer] = {}
    # From the newest on, so that what outdoes another is known not to be outdone itself.
    pairs = np.argwhere(able[::-1])
    pairs[:, 0] = len(given) - 1 - pairs[:, 0]
    if len(pairs) > FEW:
        most = MOST if vectors is None else None
        asked = b"".join((str(most).encode(), np.packbits(able).tobytes(), *(each.digest for each in given)))
        digest = blake2b(asked, digest_size=20).digest()
        worth = remembered(lambda all_of: _of_one_thing(all_of, given, own, most), _WORTH, pairs, digest, _SETS)
        pairs = pairs[np.unpackbits(worth, count=len(pairs)).view(np.bool_)]
    for newer, older in pairs.tolist():
        after, before = given[newer], given[older]
        if before.record.id in found or when[older] >= when[newer]:
            continue
        likeness = float(near[newer, older]) if vectors is not None else None
        pair = after.digest, before.digest, likeness
        try:
            shown = _PAIRS[pair]
        except KeyError:
            if len(_PAIRS) >= _REMEMBERED:
                _PAIRS.clear()
            both = after.words, before.words
            shown = None
            if own[newer, older] or _one_thing(*both):
                shown = _outdoes(*both, seen[newer], seen[older], likeness, bool(excluded[newer, older]))
            _PAIRS[pair] = shown
        if shown is not None:
            # What is outdone itself shows that something is, and by what it is outdone by.
            name = after.record.id
            found[before.record.id] = Newer(found[name].id if name in found else name, *shown)
    return found


def _features(seen: Sequence[Glance]) -> Features:
    return np.frombuffer(b"".join(each.features for each in seen), FEATURES)


def _one_thing(after: Words, before: Words) -> bool:
    """Whether two share a word and do not each open with what the other lacks (3)."""
    shares = not after.every.isdisjoint(before.every)
    return shares and (after.subject <= before.every or before.subject <= after.every)


def _of_one_thing(pairs: Pairs, given: Sequence[Statement], own: Mask, most: int | None) -> npt.NDArray[np.uint8]:
    """Return which of many pairs are of one thing and can differ, or of one subject (``own``): a bit each, packed.

    Of more than ``most`` of one thing or subject only those with the largest shares of words in common are looked at.
    """
    places, rows = np.unique(pairs, return_inverse=True)
    read, seen = zip(*((given[at].words, given[at].glance) for at in places.tolist()), strict=True)
    bits = _bits(read)
    newer, older = rows.reshape(pairs.shape).T
    common = np.zeros(len(pairs), dtype=np.int64)
    of_newer, of_older = np.zeros((2, len(pairs)), dtype=np.uint64)
    for mention, opening in zip(bits[0].T, bits[1].T, strict=True):
        later, earlier = mention[newer], mention[older]
        common += np.bitwise_count(later & earlier)
        of_newer |= opening[newer] & ~earlier
        of_older |= opening[older] & ~later
    apart = (of_newer != 0) & (of_older != 0)
    kept = np.flatnonzero(((common > 0) & ~apart) | own[pairs[:, 0], pairs[:, 1]])
    if most is not None and len(kept) > most:
        sizes = np.array([len(each.every) for each in read])
        shares = common[kept] / np.minimum(sizes[newer[kept]], sizes[older[kept]])
        kept = kept[np.sort(np.argsort(-shares, kind="stable")[:most])]
    can = own[pairs[kept, 0], pairs[kept, 1]]
    for part in np.array_split(np.flatnonzero(~can), 1 + len(kept) // _TOGETHER):
        can[part] = _can_differ(read, seen, bits, newer[kept[part]], older[kept[part]])
    worth = np.zeros(len(pairs), dtype=np.bool_)
    worth[kept[can]] = True
    return np.packbits(worth)


def _can_differ(read: Sequence[Words], seen: Sequence[Glance], bits: Bits, newer: Places, older: Places) -> Mask:
    """Return for which pairs ``_outdoes`` can find a sign, but for states that exclude each other.

    Most of many pairs of one form give two values of different kinds, or values of nothing that both speak of.
    """
    features = _features(seen)
    past, replaces = np.array([(each.past, bool(each.replaced)) for each in read]).T
    brief = features["length"] <= LONGEST
    can: Mask = (features["properties"][newer] & features["properties"][older]) != 0
    can |= (features["choice"] != 0)[newer] & (features["choice"][newer] == features["choice"][older])
    can |= (features["denies"][newer] != features["denies"][older]) | replaces[newer]
    can |= (features["changes"] & brief)[newer] & brief[older]
    # What is left has to begin alike, or to give other values of a topic, of what is counted, or of all that is said.
    left = np.flatnonzero(~can)
    newer, older = newer[left], older[left]
    mentions, _, topics, things, units, *values = bits
    after, before = mentions[newer], mentions[older]
    conflicts = [_some(kind[newer] & ~before) & _some(kind[older] & ~after) for kind in values]
    dated, conflicting = np.logical_or.reduce(conflicts[:NAME]), np.logical_or.reduce(conflicts)
    of_one = _some((topics[newer] | topics[older]) & after & before) | (dated & ~_some(things[newer] & ~before))
    of_one |= conflicts[0] & ~past[newer] & _some(units[newer] & units[older])
    one_value = np.array([not ONE_VALUE.isdisjoint(each.form) for each in seen])
    alike = (features["begin"][newer] == features["begin"][older]) & one_value[newer]
    can[left] = (alike | (conflicting & of_one & ~past[older])) & ~(conflicts[NAME] & dated)
    return can


def _some(bits: Bits) -> Mask:
    return np.asarray(bits.any(axis=1), dtype=np.bool_)


def _bits(read: Sequence[Words]) -> Bits:
    """Return of each statement a row of bits, 1 at the places of the words, for each of some sets of its words.

    These are what it mentions, opens with, speaks of, its things, units, and values by kind. The first place is for
    words of one statement alone: nobody mentions them.
    """
    phrases = [frozenset(word for head, sort in each.phrases for word in (head, *sort)) - TIMES for each in read]
    sets = [
        (each.every, each.subject, topics, each.things - TIMES, each.units, *each.values)
        for each, topics in zip(read, phrases, strict=True)
    ]
    every = np.array([word for each in sets for word in frozenset().union(*each)], dtype=np.int64)
    vocabulary, counts = np.unique(every, return_counts=True)
    places = np.cumsum(counts > 1) * (counts > 1)
    flat = [words for each in sets for words in each]
    table = np.zeros((len(flat), 64 * (1 + int(places.max(initial=0)) // 64)), dtype=np.bool_)
    sizes = [*map(len, flat)]
    words = np.fromiter(chain.from_iterable(flat), dtype=np.int64, count=sum(sizes))
    table[np.repeat(np.arange(len(flat)), sizes), places[np.searchsorted(vocabulary, words)]] = True
    table[:: len(sets[0]), 0] = False
    return np.packbits(table, axis=1).view(np.uint64).reshape(len(sets), len(sets[0]), -1).transpose(1, 0, 2)


def _excluded(given: Sequence[Statement], seen: Sequence[Glance]) -> Mask:
    """Return, for each newer (row) and older (column) one, whether they tell states that exclude each other."""
    found: Mask = np.zeros((len(seen), len(seen)), dtype=np.bool_)
    named = shared = 0
    for each in seen:
        shared |= named & each.states
        named |= each.states
    stated = [(at, *given[at].states) for at, each in enumerate(seen) if each.states & shared]
    for (older, before, _, others), (newer, after, sides, _) in combinations(stated, 2):
        if sides & others:
            found[newer, older] = states.exclude(after, before)
    return found


def _own(given: Sequence[Statement], features: Features) -> Mask:
    """Return, for each two, whether they name a property of the one who says both."""
    own = features["properties"] & OWN
    if not own.any():
        return np.zeros((), dtype=np.bool_)
    speakers: dict[str | None, int] = {}
    by = np.array([speakers.setdefault(each.record.speaker or None, len(speakers)) for each in given])
    return np.asarray(((own[:, None] & own) != 0) & (by[:, None] == by), dtype=np.bool_)


def _comparable(
    given: Sequence[Statement],
    features: Features,
    near: Cosines,
    excluded: Mask,
    *,
    by_meaning: bool,
) -> Mask:
    """Return, for each newer (row) and older (column) one, whether the pair is worth to be read word by word."""
    properties, begin, kinds, denies = (features[name] for name in ("properties", "begin", "kinds", "denies"))
    able: Mask = ((properties[:, None] & properties) != 0) | (begin[:, None] == begin)
    able &= near >= SAME_OWN
    choice = features["choice"]
    able |= (choice != 0)[:, None] & (choice[:, None] == choice) & (near >= SAME_FORM)
    short = features["length"] <= SHORT
    otherwise = ((kinds[:, None] & kinds) != 0) | (denies[:, None] != denies)
    if by_meaning:
        otherwise &= short[:, None] & short
        able |= otherwise & (near >= SAME_SAID)
        brief = features["length"] <= LONGEST
        able |= (features["changes"] & brief)[:, None] & brief & (near >= CHANGED)
    else:
        # Longer ones tell of many things, and only vectors would say whether of the same.
        able |= otherwise
        able &= short[:, None] & short
    able |= features["replaces"][:, None] & short & (near >= SAME_TOPIC)
    able |= excluded & (near >= SAME_STATE)
    said, trust = ~features["asks"], np.array([each.record.trust._value_ for each in given])
    either: Mask = np.tril(said[:, None] & said & (trust[:, None] >= trust), -1)
    if by_meaning:
        able |= _topical(given, either & ~able & otherwise & (near >= SAME_TOPIC))
    able &= either
    return able


def _topical(given: Sequence[Statement], pairs: Mask) -> Mask:
    """Return which pairs may be of one thing that both sides know: what the one calls so, the other mentions."""
    filters = np.array([each.glance.topics for each in given]).reshape(-1, 2, COLUMNS)
    named: Mask = np.zeros_like(pairs)
    for mentions, known in zip(*filters.transpose(1, 2, 0), strict=True):
        named |= (mentions[:, None] & known) != 0
    return np.asarray(pairs & (named | named.T), dtype=np.bool_)


def could_outdo(record: Record) -> bool:
    """Whether there can be a statement that this one outdoes."""
    statement = Statement(record)
    seen = statement.glance
    one_form = not ONE_VALUE.isdisjoint(seen.form)
    changes = seen.changes and seen.length <= LONGEST
    tells = seen.properties or seen.kinds or seen.denies or one_form or changes or seen.choice
    return not seen.asks and bool(tells or (seen.states and statement.states.states))


def instant(record: Record) -> tuple[int, int]:
    """Return by what the newer of two statements is told: when it happened, then when it was written."""
    return to_micros(record.occurred_at or record.created_at), to_micros(record.created_at)


def _outdoes(
    after: Words, before: Words, new: Glance, old: Glance, likeness: float | None, excluded: bool
) -> tuple[tuple[str, ...], float] | None:
    """Return the signs that one statement outdoes another of one thing and how close they are; None if it does not.

    They may tell states that exclude each other (``excluded``).
    """
    common = (after.every & before.every) - after.somebody
    # A turn often opens with the name of whom it is said to.
    apart = after.kin != before.kin or bool(after.oneself and before.oneself and after.oneself != before.oneself)
    # "Ferry 3 sails to island 21" and "ferry 21 sails to island 147".
    number, other = (each.subject & each.values[0] for each in (after, before))
    apart = apart or bool(number and other and not number & other)
    # "Ana's mother Inga lives in Bergen" and "Ana moved".
    for one, two in ((after, before), (before, after)):
        apart = apart or bool(one.named and one.named.isdisjoint(two.every))
    # Of where somebody works, it says nothing that they worked somewhere for some years that are over.
    if apart or after.over:
        return None
    share = len(common) / min(len(after.every), len(before.every))
    if excluded:
        return ("state", "change") if new.changes else ("state",), share if likeness is None else likeness
    conflicts = _conflicts(after, before)
    conflicting = any(conflicts)
    chosen = 0 < new.choice == old.choice and _chosen(new, old, named=conflicts[NAME])
    if after.every == before.every and new.denies == old.denies and not chosen:
        return None
    form = chosen or _one_form(new.form, old.form)
    if likeness is None:
        # By words alone these hold for nothing, whatever is read of them below: and most pairs get here.
        apart = not new.changes and bool(after.subject) and not common & after.subject
        if apart or (share < COMMON and not form and not new.properties & old.properties):
            return None
    # "On Sundays" and "not on Mondays" both hold.
    both = conflicts[DAY] and new.denies != old.denies
    properties, in_place = new.properties & old.properties, _replaces(after, before, old)
    if new.properties and old.properties:
        favourites = after.favourites | before.favourites
        if favourites and after.favourites != before.favourites:
            return None
        two_topics = not (conflicting and _one_topic(after, before)) or _elsewhere(after, before, conflicts)
        if not properties and two_topics:
            return None
    # Who is allergic to peanuts and to cashews has told two things, unless the newer one takes the older one back.
    several = not properties & ~SEVERAL and not new.changes and not in_place
    # "I weigh 71 kilos" and "my dog weighs 6".
    theirs = not properties & ~SELF and (after.subject < before.subject or before.subject < after.subject)
    # Nor does what is not so exclude what is not so either.
    form = form and not (new.denies and old.denies) and not (properties and several)
    same = {
        "property": bool(properties) and not several and not theirs,
        "form": form and not (_elsewhere(after, before, conflicts) if conflicting else _unlike(after, before)),
        "value": conflicting and not (both or form or _of_two(conflicts)) and _one_value(after, before, conflicts),
        "denial": in_place or (new.denies != old.denies and not both and _repeats(after, before)),
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
            holds = holds and likeness >= (
                (SAME_OWN if properties & OWN else SAME_PROPERTY)
                if same["property"]
                else SAME_TOPIC
                if by_topic
                else SAME_PROPERTY
                if conflicting and new.changes
                else SAME_FORM
            )
    else:
        least = CHANGED if common & (after.things | before.things) else CHANGED_APART
        near = share >= COMMON if likeness is None else likeness >= least
        # Who speaks and when is common to much that is about different things.
        shared = common - after.oneself - after.values[1] - after.values[2] - ACTING
        holds = near and new.changes and bool(shared) and max(new.length, old.length) <= LONGEST
    if not holds:
        return None
    signs = same | {"change": new.changes}
    return tuple(sign for sign, is_there in signs.items() if is_there), share if likeness is None else likeness


def _one_topic(after: Words, before: Words) -> bool:
    """Whether they speak of one thing that both sides know, and what was said first is no event of the past."""
    if before.past:
        return False
    common = (after.every & before.every) - TIMES
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


def _counted(after: Words, before: Words) -> bool:
    """Whether the same count the same, and another number of it: "speaks three languages", "speaks four languages"."""
    one, other = (each.subject - each.values[0] - each.units for each in (after, before))
    return bool(after.units & before.units) and one == other and not (after.past or before.past)


def _one_value(after: Words, before: Words, conflicts: Sequence[bool]) -> bool:
    """Whether one of the two values takes the place of the other one."""
    if conflicts[0] and _counted(after, before):
        return True
    # "Supports JSON", "supports XML": names and places are added where the verb is the same and not one of one value.
    added = after.acts is not None and after.acts == before.acts and after.acts not in ONE_VALUE
    topic = _one_topic(after, before) and (any(conflicts[:NAME]) or not added)
    return topic or _short_for(after, before, conflicts)


def _short_for(after: Words, before: Words, conflicts: Sequence[bool]) -> bool:
    """Whether the newer one has no word beside its value that the older one lacks ("landing at five").

    Names and places are often several: who loves Dune loves Emma, too.
    """
    said, known = after.things - TIMES, before.things - TIMES
    dated = any(conflicts[:NAME])
    return dated and said <= before.every and not before.past and (bool(said & known) or not (said or known))


def _conflicts(after: Words, before: Words) -> tuple[bool, ...]:
    """Return, for each kind of value, whether each gives one that the other does not give."""
    kinds = zip(after.values, before.values, strict=True)
    return tuple(not (new <= before.every or old <= after.every) for new, old in kinds)


def _of_two(conflicts: Sequence[bool]) -> bool:
    """Whether a name and a number, a day or a month differ: the values are of two things."""
    return conflicts[NAME] and any(conflicts[:NAME])


def _unlike(after: Words, before: Words) -> bool:
    """Whether each gives values, and none of a kind that the other one gives: "is in June", "is in the old mill"."""
    kinds = [
        (bool(new - before.every), bool(old - after.every))
        for new, old in zip(after.values, before.values, strict=True)
    ]
    return all(any(side) for side in zip(*kinds, strict=True)) and not any(new and old for new, old in kinds)


def _elsewhere(after: Words, before: Words, conflicts: Sequence[bool]) -> bool:
    """Whether what stands beside two values differs as well, so that they are values of two things.

    Such as "my daughter starts school in May" and "my daughter starts piano in June".
    """
    if _of_two(conflicts) or (after.units and before.units and not after.units & before.units):
        return True
    gone = before.things - before.values[PLACE] - before.values[0] - after.every - DOING
    come = after.things - after.values[PLACE] - after.values[0] - before.every - DOING
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


def _repeats(after: Words, before: Words) -> bool:
    """Whether the newer one repeats what the older one says: all of it and no more, or most of it of one topic."""
    more = after.things - before.every - TIMES
    if not before.things - after.every and not more and not any(after.values):
        return not before.past
    shared = before.things & after.every
    # What is denied is what was said, and not something beside it.
    denied = len(shared & (after.denied | before.denied)) * 2 >= len(shared)
    return denied and len(shared) >= DENIED * len(before.things) and _one_topic(after, before)


def _replaces(after: Words, before: Words, old: Glance) -> bool:
    """Whether the newer one names what it says in the place of what the older one says: "marine biology, not law"."""
    return not before.past and not old.denies and bool(after.replaced & before.things - before.replaced)


def _one_form(newer: Sequence[int], older: Sequence[int]) -> bool:
    """Whether two statements begin alike up to a verb that takes one value, and end differently."""
    least, most = sorted((len(newer), len(older)))
    shared = next((at for at in range(least) if newer[at] != older[at]), least)
    verb = next((word for word in reversed(newer[:shared]) if word in VERB_HASHES), None)
    return BEGIN <= shared < least and most - shared <= _END and verb in ONE_VALUE


def _chosen(new: Glance, old: Glance, *, named: bool) -> bool:
    """Whether one chooses another of the same: "prefers dark mode" and "prefers light mode", "answer in English".

    What is chosen stands before words that both have, or the one passes over what the other chose, or it is the name of
    what one answers in: who prefers tea may prefer trains.
    """
    begin, after, before = new.choice, new.form, old.form
    if after[:begin] != before[:begin]:
        return False
    (choice, passed), (last_choice, last_passed) = (_parted(form[begin:]) for form in (after, before))
    if passed or last_passed:
        return passed == last_choice or choice == last_passed
    first = next((at for at, both in enumerate(zip(after, before, strict=False)) if both[0] != both[1]), 0)
    last = next((at for at, both in enumerate(zip(after[::-1], before[::-1], strict=False)) if both[0] != both[1]), 0)
    if not all(0 < len(form) - first - last <= _SWAPPED for form in (after, before)):
        return False
    return after[-last] not in BESIDE if last else named and after[begin - 1] in ANSWERING


def _parted(form: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what is chosen, and what it is chosen over."""
    at = form.index(OVER) if OVER in form else len(form)
    return form[:at], form[at + 1 :]
