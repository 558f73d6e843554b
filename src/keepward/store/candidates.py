"""Where candidates of recall come from in a large tenant: an inverted index and sign bits of vectors, as tables.

Only PostgreSQL has these tables, and only for tenants that were taken in (``Writer.take_in``); what ranks their
candidates is what ranks everywhere.

Invariants
(1) Once a tenant was taken in, its tables change in the transaction that changes the memory. Everything in them is
    computed from ``records``: they can be dropped and made anew at any time, and nothing in them is shown or believed.
(2) A memory stands under its order of arrival, and in a class: what has one scope, sensitivity and trust. Statistics
    are kept by class and summed over the classes that a reader may see, so what is hidden changes no score.
(3) A term's postings lie in blocks. A memory stands in the block that begins last before it or with it; only what
    arrived after everything else begins a block behind others.
(4) Nothing is left in them of a memory that is not active.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from hashlib import blake2b
from typing import Final

from keepward.model.memory import Status
from keepward.model.query import Filter
from keepward.ports.store import TERMS, UNITS, Profile
from keepward.store.rows import listed, parameters, profile_of
from keepward.store.seals import Sealer
from keepward.store.sql import SQL, Row, Session, Snapshot

#: Bytes of a block from which on the next is begun: small enough to lie in the row itself.
FULL: Final = 1_600
#: Memories taken in together.
TOGETHER: Final = 20_000
#: Vectors of a space up to which all of them are compared; beyond, a graph leads to the nearest.
SCANNED: Final = 50_000
#: Bits of a posting: below the order of arrival the length of the text in steps of four terms, and the count.
COUNT_BITS, LENGTH_BITS, LENGTH_STEP = 3, 6, 4
SHIFT: Final = COUNT_BITS + LENGTH_BITS
_MOST: Final = 1 << 40
_SIGNS: Final = b"1" * 128 + b"0" * 128

NAMES: Final = ("search_state", "search_classes", "search_spaces", "search_terms", "search_rows", "search_units")


def space_of(tenant: str, model: str, dim: int) -> int:
    """Return the number of a tenant's vectors of one model and dimension, below 2**63."""
    name = f"{tenant}\0{model}\0{dim}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big") >> 1


def signs(codes: bytes) -> str:
    """Return the signs of 8-bit components in digits: 1 for what is not negative."""
    return codes.translate(_SIGNS).decode()


def _postings(arrival: int, packed: bytes) -> Iterator[tuple[int, int]]:
    """Yield each term of packed terms, and the posting of a memory under it."""
    _, length = TERMS.unpack_from(packed)
    count = (len(packed) - TERMS.size) // 5
    base = arrival << SHIFT | min(length // LENGTH_STEP, (1 << LENGTH_BITS) - 1) << COUNT_BITS
    tallies = packed[TERMS.size + 4 * count :]
    for term, tally in zip(struct.unpack_from(f"<{count}I", packed, TERMS.size), tallies, strict=True):
        yield term, base | min(tally & 0x7F, (1 << COUNT_BITS) - 1)


@dataclass(slots=True)
class _Sums:
    """What is counted in one class."""

    memories: int = 0
    length: int = 0
    turns: int = 0
    spoken: int = 0


@dataclass(slots=True)
class _Space:
    """What is counted of the vectors of one space in one class."""

    holders: int = 0
    units: int = 0
    ones: bytes = b""
    #: Signs of vectors that came and that went.
    added: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def summed(self) -> tuple[int, int, bytes]:
        """Return what is kept of the space."""
        import numpy as np

        ones = np.frombuffer(self.ones, dtype="<u4").astype(np.int64)
        for sign, digits in ((1, self.added), (-1, self.gone)):
            if digits:
                signs = np.frombuffer("".join(digits).encode(), dtype=np.uint8).reshape(len(digits), -1) == ord("1")
                ones = (ones if len(ones) else np.zeros(signs.shape[1], dtype=np.int64)) + sign * signs.sum(axis=0)
        return self.holders, self.units + len(self.added) - len(self.gone), ones.astype("<u4").tobytes()


# --- writing


def take_in(db: Session, sealer: Sealer, tenant: str, most: int = TOGETHER) -> bool:
    """Take in a tenant's next memories, in the order of their arrival; return whether these were the last."""
    if not db.searchable:
        return True
    after, level = db.run("search_state", tenant=tenant).fetchone() or (-1, 0)
    if level:
        return True
    rows = db.run("search_unread", tenant=tenant, after=after, most=most).fetchall()
    last = rows[-1][5] if rows else after
    done = len(rows) < most
    found = [profile_of(sealer, tenant, row) for row in rows]
    _change(db, tenant, after, [], [each for each in found if each is not None])
    db.many("set_search_state", [(tenant, last, int(done))])
    return done


def refresh(db: Session, sealer: Sealer, tenant: str, ids: Collection[str]) -> None:
    """Bring the tables level with these memories, where the tenant was taken in so far; see (1)."""
    last, level = db.run("search_state", tenant=tenant).fetchone()
    rows = [row for row in db.run("profiles_by_id", tenant=tenant, ids=listed(ids)) if level or row[5] <= last]
    rows.sort(key=lambda row: row[5])
    found = [profile_of(sealer, tenant, row) for row in rows if row[6] == Status.ACTIVE]
    _change(db, tenant, last, [row[5] for row in rows], [each for each in found if each is not None])
    if rows and rows[-1][5] > last:
        db.many("set_search_state", [(tenant, rows[-1][5], level)])


def forget(db: Session, tenant: str) -> None:
    """Drop all that is kept of a tenant; it can be taken in anew."""
    for name in NAMES:
        db.execute(f"DELETE FROM {name} WHERE tenant = ?", (tenant,))


def _change(db: Session, tenant: str, last: int, gone: Sequence[int], fresh: Sequence[Profile]) -> None:
    """Take out what is kept of some memories, and put in others, by arrival; ``last`` arrived last of all before."""
    if not gone and not fresh:
        return
    classes: dict[Row, int] = {}
    sums: dict[int, _Sums] = defaultdict(_Sums)
    for number, *name, memories, length, turns, spoken in db.run("search_scopes", tenant=tenant):
        classes[tuple(name)] = number
        sums[number] = _Sums(memories, length, turns, spoken)
    spaces: dict[tuple[int, int], _Space] = defaultdict(_Space)
    for number, space, holders, units, ones in db.run("search_sums", tenant=tenant):
        spaces[number, space] = _Space(holders, units, ones)
    touched: set[int] = set()
    turned: set[tuple[int, int]] = set()

    def count(number: int, packed: bytes, turn: int, sign: int) -> None:
        found, length = sums[number], TERMS.unpack_from(packed)[1]
        found.memories += sign
        found.length += sign * length
        found.turns += sign * turn
        found.spoken += sign * turn * length
        touched.add(number)

    if gone:
        old = db.run("drop_search_rows", tenant=tenant, arrivals=list(gone)).fetchall()
        for _, number, turn, packed in old:
            count(number, packed, turn, -1)
        _cut(db, tenant, old)
        held = set()
        for arrival, number, space, bits in db.run("drop_search_units", tenant=tenant, arrivals=list(gone)).fetchall():
            spaces[number, space].gone.append(bits)
            held.add((arrival, number, space))
        for _, number, space in held:
            spaces[number, space].holders -= 1
            turned.add((number, space))
    rows, units = [], []
    postings: list[tuple[int, int, int]] = []
    for each in fresh:
        name = (each.scope, int(each.sensitive), each.trust)
        number, turn = classes.setdefault(name, len(classes) + 1), int(each.session is not None)
        count(number, each.terms, turn, 1)
        rows.append((tenant, each.position, number, turn, each.terms))
        postings += ((term, number, posting) for term, posting in _postings(each.position, each.terms))
        if each.units is None or each.vector_model is None:
            continue
        _, _, dim, many = UNITS.unpack_from(each.units)
        space, start = space_of(tenant, each.vector_model, dim), UNITS.size + 4 * many
        spaces[number, space].holders += 1
        turned.add((number, space))
        for n in range(many):
            bits = signs(each.units[start + n * dim : start + (n + 1) * dim])
            spaces[number, space].added.append(bits)
            units.append((tenant, each.position, n, space, number, each.expires_at, bits))
    db.many("add_search_row", rows)
    db.many("add_search_unit", units)
    _add(db, tenant, last, postings)
    named = {number: name for name, number in classes.items()}
    counted = [(tenant, each, *named[each], *astuple(sums[each])) for each in sorted(touched)]
    db.many("put_search_class", counted)
    db.many("put_search_sum", [(tenant, *each, *spaces[each].summed()) for each in sorted(turned)])


def _cut(db: Session, tenant: str, old: Iterable[Row]) -> None:
    """Take memories out of the postings, given their rows of ``search_rows``."""
    places: dict[tuple[int, int], set[int]] = defaultdict(set)
    for arrival, number, _, packed in old:
        for term, posting in _postings(arrival, packed):
            places[term, number].add(posting)
    wanted = [(term, number, posting >> SHIFT) for (term, number), found in places.items() for posting in found]
    if not wanted:
        return
    terms, numbers, arrivals = map(list, zip(*wanted, strict=True))
    blocks = db.run("search_block", tenant=tenant, terms=terms, classes=numbers, arrivals=arrivals).fetchall()
    cut = []
    for term, number, first, refs in {(row[0], row[1], row[2]): row for row in blocks}.values():
        kept = [each for (each,) in struct.iter_unpack("<q", refs) if each not in places[term, number]]
        cut.append((len(kept), struct.pack(f"<{len(kept)}q", *kept), tenant, term, number, first))
    db.many("set_search_block", cut)
    db.run("drop_empty_blocks", tenant=tenant, terms=sorted({term for term, _ in places}))


def _add(db: Session, tenant: str, last: int, postings: Iterable[tuple[int, int, int]]) -> None:
    """Put postings into their blocks; see (3)."""
    by_term: dict[tuple[int, int], list[int]] = defaultdict(list)
    late: dict[int, list[Row]] = defaultdict(list)
    for term, number, posting in postings:
        if posting >> SHIFT > last:
            by_term[term, number].append(posting)
        else:
            late[posting >> SHIFT].append((term, number, posting >> SHIFT, struct.pack("<q", posting)))
    heads: list[Row] = []
    others: list[Row] = []
    for (term, number), found in sorted(by_term.items()):
        found.sort()
        for n in range(0, len(found), FULL // 8):
            part = found[n : n + FULL // 8]
            packed = struct.pack(f"<{len(part)}q", *part)
            (others if n else heads).append((term, number, part[0] >> SHIFT, packed))
    # Two memories may belong into one block, which a statement changes once.
    for name, rows, full in [("add_postings", heads, FULL), ("add_blocks", others, FULL)] + [
        ("add_postings", each, _MOST) for each in late.values()
    ]:
        if rows:
            terms, numbers, firsts, refs = map(list, zip(*rows, strict=True))
            values = {"tenant": tenant, "terms": terms, "classes": numbers, "firsts": firsts, "refs": refs}
            db.run(name, values | ({"full": full} if name == "add_postings" else {}))


# --- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """What a reader may see of a tenant, in numbers."""

    classes: tuple[int, ...]
    memories: int
    length: int
    turns: int
    spoken: int
    #: Memories with vectors of the space that is asked in, their vectors, and by component how many are not negative.
    holders: int
    units: int
    ones: tuple[int, ...]


class CandidateReads(Snapshot):
    """What may be asked about candidates; a part of ``Reader``. Filters are those of ``find``, as parameters."""

    def searchable(self, tenant: str) -> bool:
        """Whether the tables hold all of a tenant."""
        with self._reading(tenant) as db:
            return db.searchable and (db.run("search_state", tenant=tenant).fetchone() or (0, 0))[1] == 1

    def visible(
        self, tenant: str, space: int, *, scopes: Collection[str], trust: int, include_sensitive: bool
    ) -> Visible:
        """Return what a reader of some scopes may see, in numbers."""
        values = {"space": space, "trust": trust, "sensitive": int(include_sensitive), "scopes": listed(scopes)}
        rows = self._run("search_classes", tenant, **values)
        ones = [struct.unpack(f"<{len(row[7]) // 4}I", row[7]) for row in rows if row[6]]
        sums = [sum(row[at] or 0 for row in rows) for at in range(1, 7)]
        return Visible(
            classes=tuple(row[0] for row in rows),
            ones=tuple(map(sum, zip(*ones, strict=True))),
            **dict(zip(("memories", "length", "turns", "spoken", "holders", "units"), sums, strict=True)),
        )

    def holders(self, tenant: str, classes: Collection[int], terms: Collection[int]) -> dict[int, int]:
        """Return how many memories hold each term, rarest first; nothing of a term that none holds."""
        return dict(self._run("search_holders", tenant, terms=list(terms), classes=list(classes)))

    def postings(
        self, tenant: str, classes: Collection[int], terms: Collection[int], most: int
    ) -> list[tuple[int, bytes]]:
        """Return postings of terms by block, at most so many blocks, those of what arrived last first."""
        return self._run("search_postings", tenant, terms=list(terms), classes=list(classes), most=most)

    def nearest(
        self, tenant: str, seen: Visible, space: int, bits: str, most: int, filters: Filter | None, now: int
    ) -> list[int]:
        """Return the arrivals of the vectors that differ least in their signs, at most so many, nearest first."""
        dim = len(bits)
        passes = f"SELECT 1 FROM records r WHERE r.tenant = u.tenant AND r.arrival = u.arrival AND {SQL['passes']}"
        passing = "" if filters is None else f"AND EXISTS ({passes})"
        with self._reading(tenant) as db:
            graph, schema = db.run("search_index", name=graph_of(space)).fetchone()
            graph = graph and seen.units > SCANNED
            breadth = str(min(max(most, 40), 1_000))
            db.run("search_tune", sort="off" if graph else "on", breadth=breadth)
            distance = f"CAST(u.bits AS BIT({dim})) OPERATOR({schema}.<~>) CAST(CAST(:bits AS TEXT) AS BIT({dim}))"
            # What is not the very expression of the graph is not found by it.
            order = f"ORDER BY {distance}" if graph else f"ORDER BY ({distance}) + 0, u.arrival, u.n"
            query = f"""
                SELECT u.arrival FROM search_units u
                 WHERE u.tenant = :tenant AND u.space = {space} AND u.class = ANY(CAST(:classes AS BIGINT[]))
                   AND (u.until IS NULL OR u.until > :until) {passing} {order} LIMIT :most"""
            own = {"tenant": tenant, "classes": list(seen.classes), "until": now, "bits": bits, "most": most}
            values = own if filters is None else parameters(filters, None) | own
            return [arrival for (arrival,) in db.execute(query, values)]

    def vectors_at(self, tenant: str, arrivals: Collection[int], model: str) -> list[tuple[int, bytes]]:
        """Return packed vectors by arrival, unchecked: they tell what is worth reading."""
        return self._run("search_vectors", tenant, arrivals=list(arrivals), model=model)

    def passing(self, tenant: str, arrivals: Collection[int], filters: Filter) -> set[int]:
        """Return which of some memories pass a filter."""
        values = parameters(filters, None) | {"arrivals": list(arrivals)}
        return {arrival for (arrival,) in self._run("search_passing", tenant, **values)}

    def narrowed(self, tenant: str, filters: Filter, most: int) -> list[int]:
        """Return active memories that pass a filter, at most so many, in no stated order."""
        found = self._run("search_narrow", tenant, **parameters(filters, None), most=most)
        return [arrival for (arrival,) in found]

    def near_turns(self, tenant: str, turns: Collection[tuple[str, int]], reach: int) -> set[int]:
        """Return what stands at most so many turns before and after each of some, given session and arrival."""
        sessions, arrivals = map(list, zip(*turns, strict=True))
        found = self._run("search_near_turns", tenant, sessions=sessions, arrivals=arrivals, reach=reach)
        return {arrival for (arrival,) in found}

    def profiles_at(self, tenant: str, arrivals: Collection[int] = (), *, ids: Collection[str] = ()) -> list[Profile]:
        """Return active memories by arrival or id, in no stated order, without those whose rows do not hold."""
        rows = self._run("search_profiles", tenant, arrivals=list(arrivals), ids=listed(ids))
        return [found for row in rows if (found := profile_of(self._sealer, tenant, row)) is not None]

    def graphs(self, tenant: str) -> list[str]:
        """Return the statements that make the graphs which a tenant lacks; they run outside of transactions."""
        with self._reading(tenant) as db:
            if not db.searchable:
                return []
            part = (db.run("search_part", tenant=tenant).fetchone() or ("",))[0]
            made: list[str] = []
            for space, units, dim in db.run("search_spaces", tenant=tenant).fetchall():
                name = graph_of(space)
                there, schema = db.run("search_index", name=name).fetchone()
                if units <= SCANNED or there:
                    continue
                key = f"((CAST(bits AS BIT({dim}))) {schema}.bit_hamming_ops)"
                # One that is there and does not serve was broken off.
                made.append(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
                made.append(f"CREATE INDEX CONCURRENTLY {name} ON {part} USING hnsw {key} WHERE space = {space}")
        return made


def graph_of(space: int) -> str:
    """Return the name of the graph over a space."""
    return f"search_graph_{space:x}"
