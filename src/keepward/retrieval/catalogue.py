"""The catalogue of a tenant: a few columns of every version of every memory, to browse, count and chart by.

Invariants
(1) Rows are in the order of the journal and only ever added, so that a state of the past is what its first rows say.
(2) What a reader may not see counts nowhere: sight comes before filters, counts and orders.
(3) Every order is total: ties by newer arrival, and no two memories arrived at once.
(4) Nothing is believed because it stands here: ids, counts and orders come from it, and what is shown of a memory is
    read from the store, which checks it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keepward.model.memory import FLOOR, IDLE_RATE, Kind, Stability, Status, Tier, half_life_of
from keepward.model.trust import Trust
from keepward.model.where import Where
from keepward.retrieval.fields import Fields
from keepward.retrieval.rows import Codes, Growable, Mask, Places

#: What memories are counted by, beside tags.
WORDS: Final = (
    "tier", "kind", "scope", "source", "trust", "status", "author", "session", "subject", "category", "content_type",
)  # fmt: skip
FACETS: Final = (*WORDS, "tag")
#: The same, who wrote a version where that is not the author of the memory, and what is only looked for.
_CODED: Final = (*WORDS, "actor", "key", "job")
_LISTS: Final = ("tag", "reference")
#: Ops that say something; the others confirm, move or end what was said.
SAYS: Final = frozenset({"insert", "replace", "append", "promote"})
_NEVER: Final = np.iinfo(np.int64).max
_DAY: Final = 86_400_000_000
_NUMBERS: Final[dict[str, type]] = {
    "memory": np.int32,
    "seq": np.int64,
    "at": np.int64,
    "created_at": np.int64,
    "expires_at": np.int64,
    "reinforced_at": np.int64,
    "idle_since": np.int64,
    "half_life": np.int64,
    "importance": np.int16,
    "confidence": np.int16,
    "rank": np.int8,
    "sensitive": np.bool_,
    "says": np.bool_,
}
_RANKS: Final = {each.label: int(each) for each in Trust}
_ACTIVE: Final = Status.ACTIVE.value
#: What a memory may be sorted by; all but ``created`` put what is equal in order of arrival.
SORTS: Final = ("created", "changed", "importance", "confidence", "trust", "tier", "kind", "scope", "source", "author")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a reader may see."""

    #: Whether it sees a scope.
    reaches: Callable[[str], bool]
    include_sensitive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which memories count; what is empty or None leaves all."""

    #: By facet, any of these values.
    any_of: Mapping[str, Collection[str]] = field(default_factory=dict)
    #: Part of the text or the key, whatever the case.
    text: str | None = None
    #: Instants of creation in microseconds, from and before.
    since: int | None = None
    until: int | None = None
    #: Conditions on fields of the memory's own.
    where: Where = ()
    min_importance: float = 0.0
    include_ended: bool = False


class Catalogue:
    """Every version of a tenant's memories up to a commit. Not safe for threads."""

    def __init__(self) -> None:
        self.seq = 0
        #: By number, ids of memories in order of arrival.
        self.ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._columns: dict[str, Growable] = {name: Growable(kind) for name, kind in _NUMBERS.items()}
        self._columns |= {name: Codes() for name in _CODED}
        self._codes: dict[str, dict[str, int]] = {name: {} for name in (*_CODED, *_LISTS)}
        self._list_rows = {name: Growable(np.int32) for name in _LISTS}
        self._list_codes = {name: Growable(np.int32) for name in _LISTS}
        #: Text and key of each version, as they are looked through.
        self._texts: list[str] = []
        self._fields = Fields()
        #: Rows of versions whose terms slide, by memory and version.
        self._sliding: dict[tuple[str, int], int] = {}
        #: Ids that a memory was superseded by, by the id of the latter.
        self.replaced: dict[str, list[str]] = {}
        self._state: tuple[int, int, Places] | None = None

    def prolong(self, memory_id: str, ends: Mapping[int, int]) -> None:
        """Take in when versions of a memory end since they were touched; ends never fall."""
        for version, end in ends.items():
            row = self._sliding.get((memory_id, version))
            if row is not None:
                self["expires_at"][row] = max(end, int(self["expires_at"][row]))

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name].view

    def names(self, column: str) -> list[str]:
        """Return the values of a column by their code."""
        return list(self._codes[column])

    def code(self, column: str, value: str) -> int:
        """Return the code of a value, -2 where no memory has it."""
        return self._codes[column].get(value, -2)

    def extend(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add versions in the order of the journal: (seq, op, memory, payload, instant, details of the commit)."""
        found: dict[str, list[Any]] = {name: [] for name in (*_NUMBERS, *_CODED)}
        codes, first = self._codes, len(self)
        lists: dict[str, list[tuple[int, int]]] = {name: [] for name in _LISTS}
        for seq, op, memory_id, payload, at, details in rows:
            self.seq = seq
            if payload is None:
                # It was erased; its tombstone is a version of its own.
                continue
            told = json.loads(payload)
            number = self._numbers.setdefault(memory_id, len(self.ids))
            if number == len(self.ids):
                self.ids.append(memory_id)
            actor = told["author"]
            if told["version"] > 1 and details is not None:
                actor = json.loads(details).get("actor", actor)
            trust = min((told["trust"], told.get("heard", told["trust"])), key=_RANKS.__getitem__)
            tier, kind, created = told["tier"], told["kind"], told["created_at"]
            half_life = _half_life(tier, kind, told["stability"])
            reinforced = told["reinforced_at"]
            told |= {"actor": actor, "trust": trust}
            told.setdefault("status", _ACTIVE)
            told.setdefault("content_type", "text")
            for name in _CODED:
                value, known = told.get(name), codes[name]
                found[name].append(-1 if value is None else known.setdefault(value, len(known)))
            for name, key in (("tag", "tags"), ("reference", "evidence")):
                known, row = codes[name], len(self._texts)
                lists[name] += [(row, known.setdefault(each, len(known))) for each in told.get(key, ())]
            numbers = (
                number, seq, at, created, told.get("expires_at", _NEVER), reinforced,
                max(reinforced, told.get("updated_at", created)), half_life, told["importance"],
                told["confidence"], _RANKS[trust], told.get("sensitivity") == "sensitive", op in SAYS,
            )  # fmt: skip
            for name, number_of in zip(_NUMBERS, numbers, strict=True):
                found[name].append(number_of)
            if "metadata" in told:
                self._fields.add(len(self._texts), json.loads(told["metadata"]))
            self._note(memory_id, told)
            self._texts.append(f"{told['text']}\n{told.get('key', '')}".casefold())
        if len(self) == first:
            return
        for name, values in found.items():
            self._columns[name].extend(values)
        for name, pairs in lists.items():
            self._list_rows[name].extend([row for row, _ in pairs])
            self._list_codes[name].extend([code for _, code in pairs])

    def _note(self, memory_id: str, told: Mapping[str, Any]) -> None:
        """Take in what superseded a version that is about to be added, and that its term slides."""
        if told.get("superseded_by"):
            held = self.replaced.setdefault(told["superseded_by"], [])
            if memory_id not in held:
                held.append(memory_id)
        if "sliding_ms" in told:
            self._sliding[memory_id, told["version"]] = len(self._texts)

    # --- states

    def state(self, seq: int | None) -> Places:
        """Return the newest row of each memory after a commit, None for the newest, in order of arrival."""
        end = len(self) if seq is None else int(np.searchsorted(self["seq"], seq, side="right"))
        if self._state is None or self._state[:2] != (len(self), end):
            newest = np.full(len(self.ids), -1, dtype=np.intp)
            # Of a memory's several rows the last one stays.
            newest[self["memory"][:end]] = np.arange(end)
            self._state = (len(self), end, newest[newest >= 0])
        return self._state[2]

    def seen(self, rows: Places, sight: Sight) -> Places:
        """Return those of some rows that a reader may see: what is sensitive, or is by now, takes a right."""
        scopes = np.array([*map(sight.reaches, self.names("scope")), False], dtype=np.bool_)
        mask = scopes[self["scope"][rows]]
        if not sight.include_sensitive:
            hidden = np.zeros(len(self.ids), dtype=np.bool_)
            # Of a memory's several rows the last one stays.
            hidden[self["memory"]] = self["sensitive"]
            mask &= ~self["sensitive"][rows] & ~hidden[self["memory"][rows]]
        return np.asarray(rows[mask])

    def status(self, rows: Places, now: int) -> npt.NDArray[Any]:
        """Return the code of the status of rows at an instant: what is active and past its term has expired."""
        known = self._codes["status"]
        expired = known.setdefault("expired", len(known))
        lapsed = (self["status"][rows] == self.code("status", _ACTIVE)) & (self["expires_at"][rows] <= now)
        return np.asarray(np.where(lapsed, expired, self["status"][rows]))

    def importance(self, rows: Places, now: int) -> npt.NDArray[np.float64]:
        """Return what the importance of rows has faded to, 0..1, as ``importance_at`` of the model does."""
        base = self["importance"][rows] / 10_000
        days = np.maximum(now - self["idle_since"][rows], 0) / _DAY
        faded = np.maximum(base * np.exp(-IDLE_RATE * days), np.minimum(base, FLOOR))
        return np.asarray(np.where(self["half_life"][rows] == _NEVER, base, faded).round(4))

    def confidence(self, rows: Places, now: int) -> npt.NDArray[np.float64]:
        """Return what the confidence of rows has faded to, 0..1, as ``confidence_at`` of the model does."""
        base, half = self["confidence"][rows] / 10_000, self["half_life"][rows]
        idle = np.maximum(now - self["reinforced_at"][rows], 0)
        return np.asarray(np.where(half == _NEVER, base, base * np.exp2(-idle / half)).round(4))

    # --- filters, counts and orders

    def passing(self, rows: Places, wanted: Wanted, now: int) -> tuple[Mask, dict[str, Mask]]:
        """Return which rows pass all that names no facet, and by facet which pass that one."""
        mask = np.ones(len(rows), dtype=np.bool_)
        if wanted.since is not None:
            mask &= self["created_at"][rows] >= wanted.since
        if wanted.until is not None:
            mask &= self["created_at"][rows] < wanted.until
        if wanted.where:
            mask &= self._fields.passing(wanted.where, len(self))[rows]
        if wanted.min_importance:
            mask &= self.importance(rows, now) >= round(wanted.min_importance, 4)
        if wanted.text:
            part = wanted.text.casefold()
            mask &= np.fromiter((part in self._texts[row] for row in rows), dtype=np.bool_, count=len(rows))
        facets: dict[str, Mask] = {}
        for name, values in wanted.any_of.items():
            if values:
                codes = [code for each in values if (code := self._codes[name].get(each)) is not None]
                facets[name] = (
                    self._tagged(rows, name, codes) if name in _LISTS else np.isin(self._column(rows, name, now), codes)
                )
        if not wanted.include_ended and "status" not in facets:
            facets["status"] = self.status(rows, now) == self.code("status", _ACTIVE)
        return mask, facets

    def _column(self, rows: Places, name: str, now: int) -> npt.NDArray[Any]:
        return self.status(rows, now) if name == "status" else self[name][rows]

    def _tagged(self, rows: Places, name: str, codes: Sequence[int]) -> Mask:
        tagged = np.zeros(len(self), dtype=np.bool_)
        tagged[self._list_rows[name].view[np.isin(self._list_codes[name].view, codes)]] = True
        return np.asarray(tagged[rows], dtype=np.bool_)

    def chosen(self, rows: Places, wanted: Wanted, now: int) -> Places:
        """Return the rows that pass everything."""
        mask, facets = self.passing(rows, wanted, now)
        for each in facets.values():
            mask &= each
        return rows[mask]

    def counts(
        self, rows: Places, wanted: Wanted, now: int, of: Collection[str] = FACETS
    ) -> dict[str, list[tuple[str, int]]]:
        """Return by facet the values and how many rows have each, most first, ties by name.

        A facet is counted as if nothing was chosen of it, so that one sees what else there would be.
        """
        mask, facets = self.passing(rows, wanted, now)
        found: dict[str, list[tuple[str, int]]] = {}
        for name in of:
            own = mask.copy()
            for other, each in facets.items():
                if other != name:
                    own &= each
            found[name] = self.tally(rows[own], name, now)
        return found

    def tally(self, rows: Places, name: str, now: int) -> list[tuple[str, int]]:
        """Return how many rows have each value of a column, most first, ties by name."""
        if name in _LISTS:
            held = np.zeros(len(self), dtype=np.bool_)
            held[rows] = True
            codes = self._list_codes[name].view[held[self._list_rows[name].view]]
        else:
            codes = self._column(rows, name, now)
            codes = codes[codes >= 0]
        names = self.names(name)
        counted = np.bincount(codes, minlength=len(names))
        return sorted(((names[code], int(counted[code])) for code in np.flatnonzero(counted)), key=_most_first)

    def ordered(self, rows: Places, sort: str, now: int, *, ascending: bool) -> Places:
        """Return rows in an order, the largest or newest first unless ``ascending``; see (3)."""
        arrival = self["memory"][rows].astype(np.int64)
        keys: npt.NDArray[Any]
        match sort:
            case "created":
                keys = arrival
            case "changed":
                keys = self["at"][rows]
            case "importance":
                keys = self.importance(rows, now)
            case "confidence":
                keys = self.confidence(rows, now)
            case "trust":
                keys = self["rank"][rows]
            case _:
                names = self.names(sort)
                places = np.empty(len(names) + 1, dtype=np.int64)
                places[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
                # Names run from a to z unless they are turned round.
                places[-1], ascending = len(names), not ascending
                keys = places[self[sort][rows]]
        return rows[np.lexsort((-arrival, keys if ascending else -keys.astype(np.float64)))]

    def said_by(self, rows: Places, name: str) -> tuple[Places, npt.NDArray[np.int64]]:
        """Return pairs of a row and a code of ``name``, which may be a list that a row has several of."""
        if name not in _LISTS:
            codes = self[name][rows].astype(np.int64)
            return rows[codes >= 0], codes[codes >= 0]
        held = np.zeros(len(self), dtype=np.bool_)
        held[rows] = True
        mine = held[self._list_rows[name].view]
        return self._list_rows[name].view[mine].astype(np.intp), self._list_codes[name].view[mine].astype(np.int64)


@cache
def _half_life(tier: str, kind: str, stability: str) -> int:
    span = half_life_of(Tier(tier), Kind(kind), Stability(stability))
    return _NEVER if span is None else span // timedelta(microseconds=1)


def _most_first(each: tuple[str, int]) -> tuple[int, str]:
    return -each[1], each[0]
