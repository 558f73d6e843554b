"""The vault format: the complete journal of a tenant as JSONL, one line a memory version, and a folder with its blobs.

The first line names the last head, so that a truncated file is noticed. ``<file>.blobs/<64 hex digits>`` contains the
bytes of the blobs that lines name.

Invariants
(1) A line is a record with the most important fields first, its seal and, with the first line of a commit, that commit.
    A file that is read gives the same bytes again: a payload or details in another form are written as text.
(2) ``verify_file`` accepts a complete file only: every line, seal, number and hash, up to the declared head. An error
    is ``UnusableItem`` for a line, and ``InvalidInput`` with the line for the file.
(3) A pass has at most one commit and the ids of the memories in memory.
(4) The folder has mode 0700 and its files 0600.
(5) A blob of the folder passes the checks of every new blob, and has the hash that the line names.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward import durable
from keepward.core.blob import MAX_BLOB_BYTES, REF_PREFIX, StoredBlob, parse_ref, ref_of
from keepward.core.commit import EMPTY_HASH, Commit, Event, Head, events_hash, recompute_commit_hash
from keepward.core.json_form import HexBytes, canonical
from keepward.core.memory import Record, Tier
from keepward.core.principals import RESERVED_SCOPE, parse_tenant
from keepward.core.serialization import commitment, decode_record
from keepward.core.value import parse_instant
from keepward.errors import InvalidInput, KeepwardError
from keepward.gates.detectors import secrets
from keepward.interchange.parsing import ImportSource, Row, parse, strings
from keepward.interchange.records import COPIED_FIELDS, INACTIVE_NOTE
from keepward.interchange.run import ImportRun
from keepward.memory import request_context_of
from keepward.services.writing.blobs import blob_ref_of, files_of, translate_file_errors
from keepward.services.writing.splitter import UnusableItem

if TYPE_CHECKING:
    from keepward.memory import Memory

FORMAT = "keepward-vault/1"
_LEADING_FIELDS = ("id", "version", "tier", "kind", "key", "scope", "text", "status")
#: Fields that every line shows; a payload omits them if they have these values.
_IMPLIED: dict[str, Any] = {"key": None, "status": "active"}
# Line ends for some readers, but not in JSON.
_LINE_BREAK_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


def event_line(fields: dict[str, Any]) -> str:
    """Return the line with these fields, without a line end."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).translate(_LINE_BREAK_ESCAPES)


def event_fields(
    event: Event,
    commit: Commit | None,
    events: int = 0,
    export: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the fields of one event's line.

    ``commit`` is given for the first event of a commit, which has ``events`` events in all; ``export``
    for the first line of the file.
    """
    line = _record_fields(event)
    line |= {"op": event.op, "seq": event.seq, "n": event.n}
    line |= {"salt": event.salt.hex(), "seal": event.payload_commit.hex()}
    if commit is not None:
        line["commit"] = {
            "id": commit.id,
            "at": commit.at.isoformat(),
            "kind": commit.kind,
            "actor_kind": commit.actor_kind,
            "events": events,
            **_details_fields(commit),
            "prev": commit.prev.hex(),
            "hash": commit.hash.hex(),
        }
    if export is not None:
        line["export"] = export
    return line


def _details_fields(commit: Commit) -> dict[str, Any]:
    if commit.payload is None:
        return {"erased": True, "seal": commit.commitment().hex()}
    details = json.loads(commit.payload)
    if canonical(details) != commit.payload:
        # In another form than this version writes: as text, so that no byte changes.
        details = commit.payload.decode()
    return {"details": details, "salt": commit.salt.hex()}


def export_fields(tenant: str, head: Head) -> dict[str, Any]:
    """Return the field of the first line that describes the file."""
    return {"format": FORMAT, "tenant": tenant, "head": {"seq": head.seq, "hash": head.hash.hex()}}


def _record_fields(event: Event) -> dict[str, Any]:
    if event.payload is None:
        return {"id": event.memory_id, "version": event.version, "erased": True}
    record = json.loads(event.payload)
    line = {name: record.pop(name, _IMPLIED.get(name)) for name in _LEADING_FIELDS}
    line["more"] = record
    if payload_of(line) != event.payload:
        # In another form than this version writes: as text, so that no byte changes.
        line = {name: line[name] for name in _LEADING_FIELDS} | {"payload": event.payload.decode()}
    return line


def payload_of(line: dict[str, Any]) -> bytes | None:
    """Return the record's canonical payload, None if it was erased."""
    if line.get("erased") is True:
        return None
    if "payload" in line:
        return str(line["payload"]).encode()
    more = line.get("more")
    if not isinstance(more, dict):
        raise UnusableItem("the fields of the record are missing")
    first = {name: line[name] for name in _LEADING_FIELDS if name in line}
    return canonical(more | {n: v for n, v in first.items() if n not in _IMPLIED or v != _IMPLIED[n]})


def declared_head(line: dict[str, Any]) -> tuple[str, Head]:
    """Return the tenant and the head that the first line of a file names."""
    export = line.get("export")
    if not isinstance(export, dict):
        raise UnusableItem("the beginning of the file is missing: its first line names no head")
    if export["format"] != FORMAT:
        raise UnusableItem("written by a newer Keepward; upgrade this one")
    head = Head(seq=export["head"]["seq"], hash=bytes.fromhex(export["head"]["hash"]))
    if not isinstance(head.seq, int) or len(head.hash) != 32:
        raise UnusableItem("the head in the first line is damaged")
    tenant = parse_tenant(export["tenant"])
    if export != export_fields(tenant, head):
        raise UnusableItem("a field was changed")
    return tenant, head


def event_of(line: dict[str, Any], seq: int, n: int) -> Event:
    """Return the event of a line, which must have this position."""
    if (line["seq"], line["n"]) != (seq, n):
        raise UnusableItem(f"event {seq}.{n} is missing here: lines were taken out, added or moved")
    payload = payload_of(line)
    salt, seal = bytes.fromhex(line["salt"]), bytes.fromhex(line["seal"])
    if payload is not None and commitment(salt, payload) != seal:
        raise UnusableItem("the content does not match its seal: the line was changed")
    return Event(
        seq=seq,
        n=n,
        op=line["op"],
        memory_id=line["id"],
        version=line["version"],
        salt=salt,
        payload=payload,
        payload_commit=seal,
    )


def commit_of(opening: dict[str, Any], tenant: str, seq: int, prev: bytes, events: list[Event]) -> Commit:
    """Return the commit of these events, which must follow the hash ``prev``."""
    erased = opening.get("erased") is True
    details = None if erased else opening["details"]
    commit = Commit(
        id=opening["id"],
        tenant=tenant,
        seq=seq,
        at=parse_instant(opening["at"]),
        kind=opening["kind"],
        actor_kind=opening["actor_kind"],
        prev=HexBytes.fromhex(opening["prev"]),
        events_hash=HexBytes(events_hash(events)),
        salt=HexBytes() if erased else HexBytes.fromhex(opening["salt"]),
        payload=None if erased else HexBytes(details.encode() if isinstance(details, str) else canonical(details)),
        hash=HexBytes.fromhex(opening["hash"]),
        payload_commit=HexBytes.fromhex(opening["seal"]) if erased else None,
    )
    if commit.prev != prev or recompute_commit_hash(commit, events) != commit.hash:
        raise UnusableItem(f"commit {seq} does not match its hash: the file was changed")
    return commit


_MAX_FAULTS_NAMED = 5
_SHORTEST_SECRET = 8
# Names of fields, actors and sessions repeat in every line; each is scanned once.
_MAX_CACHED_TEXT_LENGTH = 64
_MAX_CACHED_TEXTS = 10_000


def detect(value: Any) -> bool:
    """Whether a JSON value is a line of this format."""
    return isinstance(value, dict) and {"id", "version", "op", "seq", "n", "seal"} <= value.keys()


@dataclass(slots=True, kw_only=True)
class VaultSummary:
    """The content of a verified file."""

    tenant: str
    head: Head
    #: Memory versions.
    lines: int = 0
    #: Line number of the newest version of each memory, by id, in order of first appearance.
    newest: dict[str, int] = field(default_factory=dict)
    #: Blobs that any version refers to.
    blobs: set[str] = field(default_factory=set)


def verify_file(source: ImportSource) -> VaultSummary:
    """Read the file once and verify it."""
    faults: list[str] = []
    found: VaultSummary | None = None
    last = Head(seq=0, hash=EMPTY_HASH)
    clean: set[str] = set()
    try:
        for head, commit, events, numbers in _commits(source):
            for number, event in zip(numbers, events, strict=True):
                _screen_payload(number, event.payload, faults, clean)
                _check_record(number, event, faults)
            _screen_payload(numbers[0], commit.payload, faults, clean)
            found = found or VaultSummary(tenant=commit.tenant, head=head)
            found.lines += len(events)
            found.blobs |= {ref for each in events if each.payload and (ref := blob_ref_of(each.payload)) is not None}
            found.newest |= {event.memory_id: number for number, event in zip(numbers, events, strict=True)}
            last = Head(seq=commit.seq, hash=commit.hash)
            if len(faults) >= _MAX_FAULTS_NAMED:
                break
    except UnusableItem as exc:
        faults.append(str(exc))
    if faults:
        more = " and more" if len(faults) >= _MAX_FAULTS_NAMED else ""
        raise InvalidInput(f"nothing was imported: {'; '.join(faults)}{more}")
    if found is None:
        raise InvalidInput("nothing was imported: the file contains no memory version")
    if last != found.head:
        ends = f"the file ends at {last.name} and must end at {found.head.name}: it was cut"
        raise InvalidInput(f"nothing was imported: {ends}")
    return found


def commits_of(source: ImportSource, head: Head) -> Iterator[tuple[Commit, list[Event]]]:
    """Yield the commits of a verified file; ``head`` is its head then."""
    last = Head(seq=0, hash=EMPTY_HASH)
    try:
        for _, commit, events, _ in _commits(source):
            yield commit, events
            last = Head(seq=commit.seq, hash=commit.hash)
    except UnusableItem as exc:
        raise InvalidInput(f"the file changed while it was read: {exc}") from exc
    if last != head:
        raise InvalidInput("the file changed while it was read; nothing was imported")


def records(source: ImportSource, line_numbers: frozenset[int]) -> Iterator[tuple[int, Record]]:
    """Yield (line number, record) for the given lines of a verified file."""
    for number, text in source.lines() if line_numbers else ():
        if number in line_numbers and not isinstance(text, UnusableItem):
            payload = payload_of(parse(text))
            if payload is not None:
                yield number, decode_record(payload)


def _check_lines(lines: list[dict[str, Any]], numbers: list[int], commit: Commit, events: list[Event]) -> None:
    """Check that lines contain only fields that their hashes cover."""
    for number, line, event in zip(numbers, lines, events, strict=True):
        first = commit if event.n == 0 else None
        export = line.get("export") if first and commit.seq == 1 else None
        if line != event_fields(event, first, len(events), export):
            raise UnusableItem(f"line {number}: a field was changed")


def _commits(source: ImportSource) -> Iterator[tuple[Head, Commit, list[Event], list[int]]]:
    """Yield the declared head, each verified commit, its events, and the numbers of their lines."""
    tenant, head = "", Head(seq=0, hash=EMPTY_HASH)
    prev, seq = EMPTY_HASH, 0
    events: list[Event] = []
    numbers: list[int] = []
    lines: list[dict[str, Any]] = []
    opening: dict[str, Any] = {}
    for number, line in source.values():
        try:
            if isinstance(line, UnusableItem):
                raise line
            if not isinstance(line, dict):
                raise UnusableItem("not an object")
            if not tenant:
                tenant, head = declared_head(line)
            if not events:
                opening, seq = line["commit"], seq + 1
            events.append(event_of(line, seq, len(events)))
            numbers.append(number)
            lines.append(line)
            if len(events) < opening["events"]:
                continue
            commit = commit_of(opening, tenant, seq, prev, events)
            _check_lines(lines, numbers, commit, events)
        except (KeyError, TypeError, ValueError, AttributeError, KeepwardError) as exc:
            said = str(exc) if isinstance(exc, UnusableItem | KeepwardError) else "a field is missing or damaged"
            raise UnusableItem(said if said.startswith("line ") else f"line {number}: {said}") from exc
        yield head, commit, events, numbers
        prev, events, numbers, lines = commit.hash, [], [], []
    if events:
        raise UnusableItem(f"the file was cut: commit {seq} lacks {opening['events'] - len(events)} of its lines")


def _check_record(number: int, event: Event, faults: list[str]) -> None:
    if event.payload is None:
        return
    try:
        record = decode_record(event.payload)
    except KeepwardError:
        faults.append(f"line {number}: the record cannot be read")
        return
    if (record.id, record.version) != (event.memory_id, event.version):
        faults.append(f"line {number}: the record belongs to another memory")


def _screen_payload(number: int, payload: bytes | None, faults: list[str], clean: set[str]) -> None:
    if payload is None:
        return
    for text in strings(json.loads(payload)):
        if len(text) < _SHORTEST_SECRET or text in clean:
            continue
        certain = [finding for finding in secrets.scan(text) if finding.certainty == "certain"]
        if certain:
            faults.append(f"line {number}: contains a secret ({certain[0].detector})")
            return
        if len(text) <= _MAX_CACHED_TEXT_LENGTH and len(clean) < _MAX_CACHED_TEXTS:
            clean.add(text)


def read(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read the live memories of a verified file as new ones; old ids become names."""
    found = verify_file(source)
    run.notes.append(
        "the live memories were imported as new ones, without their history; `keepward restore-export` brings back an "
        "export of your own as it was"
    )
    now = run.mem.now
    for number, record in records(source, frozenset(found.newest.values())):
        if not record.is_live(now):
            # Records of the store itself are not counted.
            run.skipped[INACTIVE_NOTE] += record.scope != RESERVED_SCOPE
        elif run.storing and record.blob is not None and (error := blob_error(run.mem, source.path, record.blob)):
            yield number, UnusableItem(f"it refers to a blob: {error}")
        else:
            copied = {name: getattr(record, name) for name in sorted(COPIED_FIELDS)}
            item = {name: value.value if isinstance(value, Enum) else value for name, value in copied.items()}
            item |= {
                # Only stored bytes can be referred to.
                "blob": record.blob if run.storing else None,
                "metadata": record.metadata or None,
                # A person reviewed the core block there and reviews it again here, so no minimum confidence applies.
                "confidence": None if record.tier is Tier.CORE else record.confidence,
                "ttl": record.expires_at and record.expires_at - run.mem.now,
                "occurred_at": record.said_at,
                "name": record.id,
                "parents": record.derived_from,
            }
            yield number, item


def folder_of(file: Path) -> Path:
    """Return the folder of the blobs of a vault file."""
    return file.with_name(file.name + ".blobs")


def write_blobs(mem: Memory, file: Path, refs: set[str]) -> None:
    """Replace the folder of blobs next to a vault file; blobs that the store has lost are skipped."""
    context = request_context_of(mem, owners="reading every blob")
    folder = folder_of(file)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        if refs:
            partial.mkdir(mode=0o700)
        for row in context.store.documents(StoredBlob, context.tenant).list():
            if row.blob.ref not in refs:
                continue
            with translate_file_errors():
                data = files_of(context.engine).read(row.place)
            if data is not None and ref_of(data) == row.blob.ref:
                with durable.new_file(partial / row.blob.ref.removeprefix(REF_PREFIX)) as out:
                    out.write(data)
        if folder.is_dir():
            shutil.rmtree(folder)
        if refs:
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def blob_error(mem: Memory, file: Path | None, ref: str) -> str | None:
    """Store a blob of a vault file; return None, or the reason why it could not be stored."""
    if file is None:
        return "a stream has no folder of blobs: import the file by its path"
    blob = folder_of(file) / parse_ref(ref).removeprefix(REF_PREFIX)
    if not blob.is_file():
        return "its bytes are not in the folder of blobs next to the file"
    if blob.stat().st_size > MAX_BLOB_BYTES:
        return "its bytes are more than a blob may have"
    try:
        data = blob.read_bytes()
        if ref_of(data) != ref:
            return "its bytes do not match the hash in its name"
        mem.put_blob(data)
    except KeepwardError as exc:
        return str(exc)
    except OSError as exc:
        return exc.strerror or "it cannot be read"
    return None
