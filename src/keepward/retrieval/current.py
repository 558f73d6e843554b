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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from keepward.model.memory import Record
from keepward.model.value import to_micros
from keepward.retrieval.analyze import analyse, term_hash

Vectors = npt.NDArray[np.float32]
Cosines = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Read = TypeVar("Read")

#: Least cosine of two statements of the same thing: where the newer one tells of a change and they share a word that is
#: no name; where it does and they share names alone; and where they speak of the same property or have one form.
CHANGED: Final = 0.48
CHANGED_APART: Final = 0.73
SAME_PROPERTY: Final = 0.28
#: Least share of words in common, where there are no vectors of meaning.
COMMON: Final = 0.34
#: Words of a text up to which a property that both name is enough, and beyond which a change may be of anything.
SHORT: Final = 20
LONGEST: Final = 16
#: Words from which one form is told, and after which two of one form end.
_BEGIN: Final = 3
_END: Final = 4
_REMEMBERED: Final = 16_384

_LISTS: Final[dict[str, Any]] = tomllib.loads(files(__package__).joinpath("current.toml").read_text("utf-8"))
_VERBS, _KIN, _OPENERS, _PRONOUNS = (frozenset(_LISTS[name]) for name in ("verbs", "kin", "openers", "pronouns"))
_ONE_VALUE: Final = frozenset(map(term_hash, _LISTS["one_value"]))
_FAVOURITE: Final = re.compile(r"\bfavou?rite (\w+)|\bprefers? \w+ to any other (\w+)", re.IGNORECASE)
_TOKEN: Final = re.compile(r"\w+(?:[-.']\w+)*")


class Newer(NamedTuple):
    """What outdoes a statement, and what shows that it does."""

    id: str
    #: Of ``property``, both name one; ``form``, they begin alike and end differently; ``change``, the newer one tells
    #: of one.
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
    #: Who says it of themselves; empty where it is said in the third person.
    oneself: frozenset[int]


def outdone(records: Sequence[Record], vectors: Vectors | None) -> dict[str, Newer]:
    """Return the ids of the records that are outdone, and for each the newest that outdoes it.

    ``vectors`` are float32 (n, dim), L2-normalised or zeros where a record has none; None where there are none of
    meaning.
    """
    if len(records) < 2:
        return {}
    order = sorted(range(len(records)), key=lambda at: (*instant(records[at]), records[at].id))
    given = [records[at] for at in order]
    seen = [_remembered(_glanced, _GLANCES, record) for record in given]
    near: Cosines = np.ones((len(given), len(given)))
    if vectors is not None:
        near = (vectors[order] @ vectors[order].T).astype(np.float64).round(6)
    pairs = np.argwhere(_comparable(given, seen, near, by_meaning=vectors is not None))
    words: dict[int, _Words] = {}
    found: dict[str, Newer] = {}
    # From the newest on, so that what outdoes another is known not to be outdone itself.
    for newer, older in pairs[np.lexsort((pairs[:, 1], -pairs[:, 0]))].tolist():
        after, before = given[newer], given[older]
        if after.id in found or before.id in found or instant(before) >= instant(after):
            continue
        for at in {newer, older} - words.keys():
            words[at] = _remembered(_worded, _WORDS, given[at])
        likeness = float(near[newer, older]) if vectors is not None else None
        shown = _outdoes(words[newer], words[older], seen[newer], seen[older], likeness)
        if shown is not None:
            found[before.id] = Newer(after.id, *shown)
    return found


def _comparable(given: Sequence[Record], seen: Sequence[_Glance], near: Cosines, *, by_meaning: bool) -> Mask:
    """Return, for each newer (row) and older (column) one, whether the pair is worth to be read word by word."""
    trust = np.array([int(record.trust) for record in given])
    properties = np.array([glance.properties for glance in seen], dtype=np.int64)
    begin = np.array([hash(glance.form[:_BEGIN]) for glance in seen], dtype=np.int64)
    told = np.array([not glance.asks for glance in seen], dtype=np.bool_)
    able: Mask = ((properties[:, None] & properties) != 0) | (begin[:, None] == begin)
    able &= near >= SAME_PROPERTY
    # Without vectors of meaning every pair would have to be read.
    if by_meaning:
        brief = np.array([glance.length <= LONGEST for glance in seen], dtype=np.bool_)
        changes = np.array([glance.changes for glance in seen], dtype=np.bool_)
        able |= (changes & brief)[:, None] & brief & (near >= CHANGED)
    able &= told[:, None] & told & (trust[:, None] >= trust)
    return np.tril(able, -1)


def could_outdo(record: Record) -> bool:
    """Whether there can be a statement that this one outdoes."""
    seen = _remembered(_glanced, _GLANCES, record)
    one_form = not _ONE_VALUE.isdisjoint(seen.form)
    return not seen.asks and bool(seen.properties or one_form or (seen.changes and seen.length <= LONGEST))


def instant(record: Record) -> tuple[int, int]:
    """Return by what the newer of two statements is told: when it happened, then when it was written."""
    return to_micros(record.occurred_at or record.created_at), to_micros(record.created_at)


def _outdoes(
    after: _Words, before: _Words, new: _Glance, old: _Glance, likeness: float | None
) -> tuple[tuple[str, ...], float] | None:
    """Return the signs that one statement outdoes another and how close they are, or None where it does not."""
    common = after.every & before.every
    # (3) Each opens with something that the other does not mention.
    apart = (after.subject - before.every and before.subject - after.every) or after.kin != before.kin
    # A turn often opens with the name of whom it is said to.
    apart = apart or bool(after.oneself and before.oneself and after.oneself != before.oneself)
    if not common or apart or after.every == before.every:
        return None
    if new.properties and old.properties:
        favourites = after.favourites | before.favourites
        if not new.properties & old.properties or (favourites and after.favourites != before.favourites):
            return None
    share = len(common) / min(len(after.every), len(before.every))
    same = {"property": bool(new.properties & old.properties), "form": _one_form(new.form, old.form)}
    if any(same.values()):
        if likeness is None:
            holds = bool(common & after.subject or not after.subject)
        else:
            # Longer ones tell of many things.
            told = new.changes and likeness >= CHANGED_APART
            holds = max(new.length, old.length) <= SHORT or told
    else:
        least = CHANGED if common & (after.things | before.things) else CHANGED_APART
        holds = new.changes and (share >= COMMON if likeness is None else likeness >= least)
    if not holds:
        return None
    signs = same | {"change": new.changes}
    return tuple(sign for sign, is_there in signs.items() if is_there), share if likeness is None else likeness


def _one_form(newer: Sequence[int], older: Sequence[int]) -> bool:
    """Whether two statements begin alike up to a verb that takes one value, and end differently."""
    least, most = sorted((len(newer), len(older)))
    shared = next((at for at in range(least) if newer[at] != older[at]), least)
    return _BEGIN <= shared < least and most - shared <= _END and not _ONE_VALUE.isdisjoint(newer[:shared])


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
    words = [word.lower() for word in _TOKEN.findall(data.replace("’", "'"))]
    return _Glance(
        properties=sum(1 << place for place in properties.Match(data) or ()),
        changes=change.search(data) is not None,
        asks=data.rstrip().endswith("?"),
        form=tuple(map(term_hash, words[:24])),
        length=len(words),
    )


def _worded(record: Record) -> _Words:
    text, speaker = record.text.replace("’", "'"), analyse(record.speaker or "").kept
    tokens = _TOKEN.findall(text)
    lowered = [token.lower().removesuffix("'s") for token in tokens]
    opening: list[str] = []
    kin: set[str] = set()
    begun = False
    for token, word in zip(tokens[:10], lowered, strict=False):
        plural = token.islower() and len(word) > 3 and word.endswith("s") and not word.endswith("ss")
        if word in _VERBS or (begun and (word.endswith("ed") or plural)):
            break
        if word in _OPENERS:
            continue
        opening.extend(analyse(word).kept)
        kin |= {word} & _KIN
        begun = bool(opening) or word in _PRONOUNS
    first_person = not {"i", "i'm", "i've", "my", "we", "our", "me"}.isdisjoint(lowered)
    return _Words(
        every=frozenset(map(term_hash, (*analyse(text).kept, *speaker))),
        subject=frozenset(map(term_hash, (*opening, *(speaker if first_person else ())))),
        things=frozenset(term_hash(term) for token in tokens if token.islower() for term in analyse(token).kept),
        kin=frozenset(map(term_hash, kin)),
        oneself=frozenset(map(term_hash, speaker)) if first_person else frozenset(),
        favourites=frozenset((found[1] or found[2]).lower() for found in _FAVOURITE.finditer(text)),
    )
