"""The vault format: the whole journal of a tenant as JSONL, one line a memory version.

The first line names the head that the file must end in, so that a cut file is noticed.

Invariants
(1) ``survey`` accepts a file only whole: every line, seal, number and hash, up to the promised head.
(2) No pass holds more than one commit and the ids of the memories.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from keepward.engine.blobs import ref_in
from keepward.engine.learned import named_in
from keepward.errors import InvalidInput, KeepwardError
from keepward.interchange.lines import (
    commit_of,
    event_fields,
    event_of,
    export_fields,
    payload_of,
    tenant_of,
    weights_in,
)
from keepward.interchange.reading import Source, Unusable, parse, strings
from keepward.model.codec import decode_record
from keepward.model.commit import EMPTY_HASH, Commit, Event, Head
from keepward.model.memory import Record

#: Weights of the reranker that a line names: by their name, with its number, and whether it carries them.
Carried = tuple[str, int, bool]

_MOST_NAMED = 5
_SHORTEST_SECRET = 8
# Names of fields, actors and sessions come again in every line; they are screened once.
_REPEATED = 64
_REMEMBERED = 10_000


def looks_like(value: Any) -> bool:
    """Whether a JSON value is a line of this format."""
    return isinstance(value, dict) and {"id", "version", "op", "seq", "n", "seal"} <= value.keys()


@dataclass(slots=True, kw_only=True)
class Survey:
    """What a whole and true file holds."""

    tenant: str
    head: Head
    #: Memory versions.
    lines: int = 0
    #: Line number of the newest version of each memory, by id, in order of first appearance.
    newest: dict[str, int] = field(default_factory=dict)
    #: Blobs that any version refers to.
    blobs: set[str] = field(default_factory=set)
    #: Line number of the weights of the reranker that the file carries, by their name, in order.
    weights: dict[str, int] = field(default_factory=dict)


def survey(source: Source) -> Survey:
    """Read the file once and verify it.

    Raises:
        InvalidInput: damaged, cut, changed, or holding a secret; names the lines.
    """
    faults: list[str] = []
    found: Survey | None = None
    last = Head(seq=0, hash=EMPTY_HASH)
    clean: set[str] = set()
    named: set[str] = set()
    try:
        # Before the pass below: a source gives one pass at a time.
        head = _promised(source)
        for commit, events, lines, carried in _commits(source):
            for number, event in zip(lines, events, strict=True):
                _screen(number, event.payload, faults, clean)
                if event.payload is not None:
                    _check_record(number, event, faults)
            _screen(lines[0], commit.payload, faults, clean)
            found = found or Survey(tenant=commit.tenant, head=head)
            found.lines += len(events)
            for name, number, here in carried:
                if here and name in named:
                    raise Unusable(f"line {number}: it carries weights and is not the first to name them")
                named.add(name)
                if here:
                    found.weights[name] = number
            found.blobs |= {ref for each in events if each.payload and (ref := ref_in(each.payload)) is not None}
            found.newest |= {event.memory_id: number for number, event in zip(lines, events, strict=True)}
            last = Head(seq=commit.seq, hash=commit.hash)
            if len(faults) >= _MOST_NAMED:
                break
    except Unusable as fault:
        faults.append(str(fault))
    if faults:
        more = " and more" if len(faults) >= _MOST_NAMED else ""
        raise InvalidInput(f"nothing was imported: {'; '.join(faults)}{more}")
    if found is None:
        raise InvalidInput("nothing was imported: the file holds no memory version")
    if last != found.head:
        raise InvalidInput(
            f"nothing was imported: the file ends at {last.name} and must end at {found.head.name}: it was cut"
        )
    return found


def journal(source: Source, head: Head) -> Iterator[tuple[Commit, list[Event]]]:
    """Yield the commits of a surveyed file; ``head`` is the one found then.

    Raises:
        InvalidInput: the file has changed since.
    """
    last = Head(seq=0, hash=EMPTY_HASH)
    try:
        for commit, events, _, _ in _commits(source):
            yield commit, events
            last = Head(seq=commit.seq, hash=commit.hash)
    except Unusable as fault:
        raise InvalidInput(f"the file changed while it was read: {fault}") from fault
    if last != head:
        raise InvalidInput("the file changed while it was read; nothing was imported")


def records(source: Source, wanted: frozenset[int]) -> Iterator[tuple[int, Record]]:
    """Yield (line number, record) for the given lines of a surveyed file."""
    for number, line in source.lines():
        if number in wanted and not isinstance(line, Unusable):
            payload = payload_of(parse(line))
            if payload is not None:
                yield number, decode_record(payload)


def weights(source: Source, found: Survey) -> Iterator[tuple[str, str]]:
    """Yield name and text of the weights that a surveyed file carries; their place in it is looked up, not judged."""
    wanted = frozenset(found.weights.values())
    for number, text in source.lines() if wanted else ():
        if number in wanted and not isinstance(text, Unusable):
            line = parse(text)
            carried = weights_in(line, payload_of(line))
            if carried is not None:
                yield carried


def _promised(source: Source) -> Head:
    for number, text in source.lines():
        line = _object(text, number)
        try:
            tenant, export = tenant_of(line), line["export"]
            head = Head(seq=export["head"]["seq"], hash=bytes.fromhex(export["head"]["hash"]))
            if export != export_fields(tenant, head):
                raise Unusable("a field was changed")
            return head
        except (KeyError, TypeError, ValueError, AttributeError, KeepwardError) as fault:
            raise _at(number, fault) from fault
    raise Unusable("the file holds no memory version")


def _unchanged(lines: list[dict[str, Any]], numbers: list[int], commit: Commit, events: list[Event]) -> list[Carried]:
    """Check that lines say what their hashes cover and nothing else; return the weights that they name."""
    found = []
    for number, line, event in zip(numbers, lines, events, strict=True):
        first = commit if event.n == 0 else None
        export = line.get("export") if first and commit.seq == 1 else None
        if line != event_fields(event, first, len(events), export, line.get("weights")):
            raise Unusable(f"line {number}: a field was changed")
        carried = weights_in(line, event.payload)
        name = None if event.payload is None else named_in(event.payload)
        if name is not None:
            found.append((name, number, carried is not None))
    return found


def _at(number: int, fault: Exception) -> Unusable:
    if not isinstance(fault, Unusable | KeepwardError):
        return Unusable(f"line {number}: a field is missing or damaged")
    return Unusable(str(fault) if str(fault).startswith("line ") else f"line {number}: {fault}")


def _commits(source: Source) -> Iterator[tuple[Commit, list[Event], list[int], list[Carried]]]:
    """Yield verified commits with their events, the numbers of their lines, and the weights that these name.

    Raises:
        Unusable: the first thing that does not hold, with its line.
    """
    tenant: str | None = None
    prev, seq = EMPTY_HASH, 0
    events: list[Event] = []
    numbers: list[int] = []
    lines: list[dict[str, Any]] = []
    opening: dict[str, Any] = {}
    for number, text in source.lines():
        line = _object(text, number)
        try:
            if tenant is None:
                tenant = tenant_of(line)
            if not events:
                opening, seq = line["commit"], seq + 1
            events.append(event_of(line, seq, len(events)))
            numbers.append(number)
            lines.append(line)
            if len(events) < opening["events"]:
                continue
            commit = commit_of(opening, tenant, seq, prev, events)
            carried = _unchanged(lines, numbers, commit, events)
        except (KeyError, TypeError, ValueError, AttributeError, KeepwardError) as fault:
            raise _at(number, fault) from fault
        yield commit, events, numbers, carried
        prev, events, numbers, lines = commit.hash, [], [], []
    if events:
        raise Unusable(f"the file was cut: commit {seq} lacks {opening['events'] - len(events)} of its lines")


def _object(text: str | Unusable, number: int) -> dict[str, Any]:
    try:
        if isinstance(text, Unusable):
            raise text
        line = parse(text)
    except Unusable as fault:
        raise Unusable(f"line {number}: {fault}") from fault
    if not isinstance(line, dict):
        raise Unusable(f"line {number}: not an object")
    return line


def _check_record(number: int, event: Event, faults: list[str]) -> None:
    assert event.payload is not None
    try:
        record = decode_record(event.payload)
    except KeepwardError:
        faults.append(f"line {number}: the record cannot be read")
        return
    if (record.id, record.version) != (event.memory_id, event.version):
        faults.append(f"line {number}: the record is another memory's")


def _screen(number: int, payload: bytes | None, faults: list[str], clean: set[str]) -> None:
    # Loaded here: the detectors take longer to load than everything else in this module.
    from keepward.gates.detect import secrets

    if payload is None:
        return
    for text in strings(json.loads(payload)):
        if len(text) < _SHORTEST_SECRET or text in clean:
            continue
        certain = [finding for finding in secrets.scan(text) if finding.certainty == "certain"]
        if certain:
            faults.append(f"line {number}: holds a secret ({certain[0].detector})")
            return
        if len(text) <= _REPEATED and len(clean) < _REMEMBERED:
            clean.add(text)
