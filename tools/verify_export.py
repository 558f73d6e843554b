"""Check an export of `keepward export` against docs/internals/journal-format.md, with nothing but the standard library.

    python verify_export.py FILE [--head SEQ:HASH]      FILE - is stdin

It needs no Keepward, no store and no key: copy this one file to wherever the export is to be believed. It prints
what it checked and exits with 0; at the first thing that does not hold it names the line and exits with 1. A file
that cannot be read, or a command line that means nothing, exits with 2.

What it shows is that the file is whole in itself. That it is the journal that was written is shown by --head: a
head noted elsewhere (`keepward status`, a receipt, a note on paper), as SEQ:HASH with 16 or 64 hex digits. The
export may have grown since: the head need only be one of its commits.

Invariants
(1) Runs on Python 3.9 and later, and imports nothing outside the standard library.
(2) Every byte of every line is covered: by a hash, by its place, or by being the only way to write the line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Dict  # noqa: UP035 - see `Line`

FORMAT = "keepward-vault/1"
FIRST = ("id", "version", "tier", "kind", "key", "scope", "text", "status")
#: What a line shows and a payload leaves out when it is so.
IMPLIED = {"key": None, "status": "active"}
REST = ("op", "seq", "n", "salt", "seal")
COMMIT = ("id", "at", "kind", "actor_kind", "events")
LINKS = ("prev", "hash")
#: A place whose content an erasure destroyed: `seq.n` of an event, `seq` of a commit's own content.
PLACE = re.compile(r"[1-9][0-9]*(?:\.(?:0|[1-9][0-9]*))?\Z")
OPS = (
    *("insert", "replace", "append", "supersede", "move", "promote", "retire", "archive", "expire", "contain"),
    *("restore", "reinforce", "revert", "erase", "redact"),
)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - 3.9 has no other name for it
SAFE = 2**53
HEX = re.compile(r"(?:[0-9a-f]{2})*\Z")
# Ends of lines to some readers, though not to JSON.
BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


Line = Dict[str, Any]  # noqa: UP006 - a value, so that 3.9 has to read it


class Fault(Exception):
    """Something that does not hold."""


def require(holds: object, what: str) -> None:
    if not holds:
        raise Fault(what)


# --- docs/internals/journal-format.md, "Canonical JSON" and "Hashes"


def canonical(value: Any) -> bytes:
    return write(ordered(value)).encode("utf-8")


def write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def ordered(value: Any) -> Any:
    if isinstance(value, str):
        require(
            "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value), "text is not well formed"
        )
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        require(abs(value) <= SAFE, "a number is out of range")
        return value
    if isinstance(value, list):
        return [ordered(item) for item in value]
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return {ordered(name): ordered(value[name]) for name in names}
    raise Fault("a number is not whole")


def in_order(value: Any, raw: bytes) -> bool:
    """Whether bytes are the canonical form of a value."""
    try:
        return canonical(value) == raw
    except Fault:
        return False


def digest(label: str, *parts: bytes) -> bytes:
    state = hashlib.sha256((f"keepward/{label}/v1").encode() + b"\0")
    for part in parts:
        state.update(part)
    return state.digest()


def opens(salt: bytes, payload: bytes) -> bytes:
    return digest("payload", salt, payload)


# --- one line


def unique(pairs: list[tuple[str, Any]]) -> Line:
    require(len({name for name, _ in pairs}) == len(pairs), "a field stands twice")
    return dict(pairs)


def parse(raw: bytes) -> Line:
    try:
        text = raw.decode("utf-8")
        line: Any = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise Fault("it is not JSON in UTF-8") from None
    require(isinstance(line, dict), "it is not an object")
    require(write(line).translate(BREAKS) == text, "it is not written as an export writes it")
    return dict(line)


def of(line: Line, name: str, kind: Any) -> Any:
    value = line.get(name)
    # True is a number to Python.
    require(isinstance(value, kind) and not isinstance(value, bool), f"the field `{name}` is missing or damaged")
    return value


def binary(line: Line, name: str, size: int | None = None) -> bytes:
    text = of(line, name, str)
    require(HEX.match(text) and (size is None or len(text) == 2 * size), f"the field `{name}` is not hexadecimal")
    return bytes.fromhex(text)


def exactly(line: Line, names: tuple[str, ...], where: str) -> None:
    require(tuple(line) == tuple(names), f"{where} has other fields than it must have, or in another order")


def payload_of(line: Line) -> bytes | None:
    """Return the payload that a line's fields make up; None where it was erased."""
    if "erased" in line:
        require(line["erased"] is True, "the field `erased` is damaged")
        return None
    first = {name: line.get(name) for name in FIRST}
    if "payload" in line:
        payload: bytes = of(line, "payload", str).encode("utf-8", "surrogatepass")
        try:
            record = json.loads(payload, object_pairs_hook=unique)
        except ValueError:
            raise Fault("its payload is not JSON") from None
        require(isinstance(record, dict), "its payload is not an object")
        shown = {name: record.get(name, IMPLIED.get(name)) for name in FIRST}
        require(write(shown) == write(first), "what it shows is not what its payload says")
        require(not in_order(record, payload), "it is not written as an export writes it")
        return payload
    more = of(line, "more", dict)
    require(write(more) == write(ordered(more)), "it is not written as an export writes it")
    require(not set(FIRST) & set(more), "a field stands twice")
    kept = {name: value for name, value in first.items() if name not in IMPLIED or value != IMPLIED[name]}
    return canonical({**more, **kept})


def fields_of(line: Line, *, opening: bool, beginning: bool) -> tuple[str, ...]:
    record = ("id", "version", "erased") if "erased" in line else (*FIRST, "payload" if "payload" in line else "more")
    return (*record, *REST, *(("commit",) if opening else ()), *(("export",) if beginning else ()))


def micros(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        require(at.tzinfo is not None and at.isoformat() == text, "its instant is not written as it must be")
        return (at - EPOCH) // timedelta(microseconds=1)
    except ValueError:
        raise Fault("its instant is damaged") from None


def commitment_of(opening: Line) -> bytes:
    """Return the commitment to a commit's own content, which outlives it."""
    if "erased" in opening:
        require(opening["erased"] is True, "the field `erased` is damaged")
        return binary(opening, "seal", 32)
    details = opening.get("details")
    require(isinstance(details, (dict, str)), "its details are damaged")
    if isinstance(details, str):
        return opens(binary(opening, "salt", 16), details.encode("utf-8", "surrogatepass"))
    require(write(details) == write(ordered(details)), "its details are out of order")
    return opens(binary(opening, "salt", 16), canonical(details))


def commit_hash(opening: Line, tenant: str, seq: int, prev: bytes, events: list[bytes]) -> bytes:
    header = {
        "v": 1,
        "id": of(opening, "id", str),
        "tenant": digest("tenant", tenant.encode("utf-8")).hex(),
        "seq": seq,
        "at": micros(of(opening, "at", str)),
        "kind": of(opening, "kind", str),
        "actor": of(opening, "actor_kind", str),
        "prev": prev.hex(),
        "events": digest("events", *events).hex(),
        "payload_commit": commitment_of(opening).hex(),
    }
    return digest("commit", canonical(header))


class Journal:
    """What was read so far; ``take`` raises a Fault at the first thing that does not hold."""

    def __init__(self) -> None:
        self.tenant = ""
        #: Number and hash that the first line says the file ends in.
        self.promised = (0, bytes(32))
        self.seq = 0
        self.prev = bytes(32)
        #: What the first line of the commit says of it.
        self.opening: Line = {}
        #: Hashes of the events of a commit that is not complete yet.
        self.events: list[bytes] = []
        #: Newest version of each memory.
        self.versions: dict[str, int] = {}
        self.lines = self.erased = 0
        self.ids: set[str] = set()
        #: Places without content, and those that erasures name, with the number of the last that does.
        self.gone: set[str] = set()
        self.named: dict[str, int] = {}
        #: Hash of each commit by number.
        self.heads: dict[int, bytes] = {}

    def take(self, raw: bytes) -> None:
        line = parse(raw)
        beginning = self.lines == 0
        if beginning:
            self.begin(line)
        if not self.events:
            self.opening = of(line, "commit", dict)
            content = ("erased", "seal") if "erased" in self.opening else ("details", "salt")
            exactly(self.opening, (*COMMIT, *content, *LINKS), "the commit")
            require(of(self.opening, "events", int) >= 1, "the commit has no events")
            self.seq += 1
        exactly(line, fields_of(line, opening=not self.events, beginning=beginning), "the line")
        self.event(line)
        if len(self.events) == self.opening["events"]:
            self.close()

    def begin(self, line: Line) -> None:
        require(isinstance(line.get("export"), dict), "the beginning is missing: the first line names no head")
        export: Line = line["export"]
        exactly(export, ("format", "tenant", "head"), "the field `export`")
        require(export["format"] == FORMAT, f"the export is of another format than {FORMAT}")
        self.tenant = of(export, "tenant", str)
        head = of(export, "head", dict)
        exactly(head, ("seq", "hash"), "the head")
        self.promised = (of(head, "seq", int), binary(head, "hash", 32))

    def event(self, line: Line) -> None:
        place = (of(line, "seq", int), of(line, "n", int))
        due = (self.seq, len(self.events))
        require(place == due, f"event {due[0]}.{due[1]} is due here and event {place[0]}.{place[1]} stands here")
        memory, version = of(line, "id", str), of(line, "version", int)
        require(of(line, "op", str) in OPS, "the field `op` is none of the ops")
        seal = binary(line, "seal", 32)
        payload = payload_of(line)
        if payload is None:
            self.erased += 1
            self.gone.add(f"{due[0]}.{due[1]}")
            require(len(binary(line, "salt")) == 0, "its content was erased and its salt was not")
        else:
            require(opens(binary(line, "salt", 16), payload) == seal, "its content does not open its commitment")
        expected = self.versions.get(memory, 0) + 1
        require(version == expected, f"version {expected} of the memory is due and version {version} stands here")
        self.versions[memory] = version
        header = {"memory": memory, "n": due[1], "op": line["op"], "payload_commit": seal.hex(), "version": version}
        self.events.append(digest("event", canonical(header)))
        self.lines += 1

    def close(self) -> None:
        opening = self.opening
        require(binary(opening, "prev", 32) == self.prev, f"commit {self.seq} does not follow the one before it")
        found = commit_hash(opening, self.tenant, self.seq, self.prev, self.events)
        require(binary(opening, "hash", 32) == found, f"commit {self.seq} does not match its hash")
        require(opening["id"] not in self.ids, f"commit {self.seq} has the id of another")
        self.ids.add(opening["id"])
        if "erased" in opening:
            self.gone.add(str(self.seq))
        elif opening["kind"] == "erase" and isinstance(opening["details"], dict):
            for place in of(opening["details"], "erased", list):
                require(isinstance(place, str) and PLACE.match(place), "an erasure names what is no place")
                self.named[place] = self.seq
        self.prev = self.heads[self.seq] = found
        self.events = []

    def end(self, known: tuple[int, str] | None) -> None:
        require(self.lines, "the file holds no memory version")
        lacking = self.opening["events"] - len(self.events) if self.events else 0
        require(not lacking, f"the file was cut: commit {self.seq} lacks {lacking} of its lines")
        seq, head = self.promised
        ends = f"the file ends at {name(self.seq, self.prev)} and must end at {name(seq, head)}: it was cut or added to"
        require((self.seq, self.prev) == (seq, head), ends)
        for place in sorted(self.gone | self.named.keys(), key=lambda each: [int(part) for part in each.split(".")]):
            named = self.named.get(place, 0) > int(place.split(".")[0])
            require(named, f"the content at {place} is missing, and no later erasure names it")
            require(place in self.gone, f"the content at {place} was erased and is here again")
        if known is not None:
            here = self.heads.get(known[0], bytes(32)).hex()
            told = f"the head {known[0]}:{known[1]} is not in this journal: it is another one, or an older copy"
            require(here.startswith(known[1]) and known[0] in self.heads, told)


def name(seq: int, head: bytes) -> str:
    return f"{seq}:{head.hex()[:16]}"


def verify(lines: Iterable[bytes], known: tuple[int, str] | None = None) -> Journal:
    """Return the journal of an export's lines, as bytes without their ends.

    Raises:
        Fault: the first thing that does not hold, with its line.
    """
    journal = Journal()
    number = 0
    for number, raw in enumerate(lines, start=1):
        try:
            journal.take(raw)
        except Fault as fault:
            raise Fault(f"line {number}: {fault}") from None
    try:
        journal.end(known)
    except Fault as fault:
        raise Fault(f"after line {number}: {fault}") from None
    return journal


def report(journal: Journal, known: tuple[int, str] | None) -> Iterator[str]:
    yield f"tenant      {journal.tenant}"
    yield f"sequence    {journal.seq} commits, {journal.lines} events, no gap"
    yield "chain       every commit names the hash of the one before and matches its own"
    opened = journal.lines - journal.erased
    yield f"commitments {opened} of {journal.lines} contents open theirs, {journal.erased} were erased"
    yield f"versions    {len(journal.versions)} memories, each from version 1 on"
    yield f"head        {name(journal.seq, journal.prev)}, as the first line promises"
    if known is None:
        yield "not checked that this is the journal that was written: name a head you know with --head"
    else:
        yield f"known head  {known[0]}:{known[1]} is commit {known[0]} of this journal"


def head(text: str) -> tuple[int, str]:
    seq, _, rest = text.partition(":")
    if not (seq.isdigit() and len(rest) in (16, 64) and HEX.match(rest)):
        raise argparse.ArgumentTypeError("a head is SEQ:HASH with 16 or 64 hexadecimal digits")
    return int(seq), rest


def stripped(stream: Iterable[bytes]) -> Iterator[bytes]:
    for raw in stream:
        yield raw[:-1] if raw.endswith(b"\n") else raw


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check an export of Keepward.")
    parser.add_argument("file", metavar="FILE", help="the export; - reads stdin")
    parser.add_argument("--head", type=head, metavar="SEQ:HASH", help="a head noted elsewhere")
    given = parser.parse_args(arguments)
    try:
        if given.file == "-":
            journal = verify(stripped(sys.stdin.buffer), given.head)
        else:
            with Path(given.file).open("rb") as stream:
                journal = verify(stripped(stream), given.head)
    except Fault as fault:
        print(f"FAULT       {fault}")
        return 1
    except OSError as fault:
        print("cannot be read: %s" % (fault.strerror or "the disk gave an error"), file=sys.stderr)
        return 2
    for sentence in report(journal, given.head):
        print(sentence)
    print("verified")
    return 0


if __name__ == "__main__":
    sys.exit(main())
