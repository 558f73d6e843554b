"""The canonical encoding, held by golden files: what was written once must read and hash the same for ever."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

from keepward.core.commit import (
    EMPTY_HASH,
    Commit,
    CommitDetails,
    Event,
    commit_hash,
    decode_details,
    events_hash,
    recompute_commit_hash,
)
from keepward.core.json_form import canonical
from keepward.core.memory import (
    Access,
    ContentType,
    Kind,
    Record,
    Sensitivity,
    Stability,
    Status,
    Tier,
)
from keepward.core.principals import Trust
from keepward.core.serialization import commitment, decode_record, digest, encode_record
from keepward.errors import InvalidInput, Tampered
from support.strategies import records

GOLDEN = Path(__file__).with_name("golden")
AT = datetime(2026, 3, 1, 9, 30, 0, 123456, tzinfo=UTC)

RECORDS = {
    "least": Record(
        id="019ca8bb-b5c0-7000-8000-000000000001",
        version=1,
        tier=Tier.ARCHIVAL,
        kind=Kind.FACT,
        text="tea",
        scope="/",
        source="operator",
        trust=Trust.OWNER,
        confidence=1.0,
        importance=0.5,
        author="operator:owner",
        created_at=AT,
        reinforced_at=AT,
    ),
    "full": Record(
        id="019ca8bb-b5c0-7000-8000-000000000002",
        version=3,
        tier=Tier.CORE,
        kind=Kind.RULE,
        text='Grüße, 茶 and "🍵"\n\tback\\slash \x7f \u2028',
        scope="/agents/orion/tasks/42",
        key="operating_rules",
        subject="Bo",
        category="taste",
        tags=("a", "ü"),
        content_type=ContentType.STRUCTURED,
        blob="2026/03/ab",
        metadata_json='{"a":1.5}',
        source="document",
        trust=Trust.DOCUMENT,
        evidence=("chat:1", "chat:2"),
        derived_from=("019ca8bb-b5c0-7000-8000-000000000001",),
        confidence=0.8125,
        importance=0.0001,
        sensitivity=Sensitivity.SENSITIVE,
        stability=Stability.PERMANENT,
        access=Access.APPROVAL,
        status=Status.SUPERSEDED,
        superseded_by="019ca8bb-b5c0-7000-8000-000000000009",
        author="agent:orion",
        session="s1",
        speaker="Bo",
        job="j1",
        aliases=("note-7",),
        created_at=AT,
        updated_at=datetime(2026, 3, 2, tzinfo=UTC),
        occurred_at=datetime(1969, 7, 20, 20, 17, tzinfo=UTC),
        expires_at=datetime(2027, 1, 1, tzinfo=UTC),
        reinforced_at=AT,
    ),
}


def header(event: Event) -> bytes:
    """Return the header of an event, which is hashed."""
    named = {"n": event.n, "op": event.op, "memory": event.memory_id, "version": event.version}
    return canonical({**named, "payload_commit": event.payload_commit.hex()})


def journal() -> dict:
    """Return one commit of two events as plain values, every hash in hex."""
    events = []
    for n, record in enumerate(RECORDS.values()):
        salt, payload = bytes([n]) * 16, encode_record(record)
        events.append(
            Event(
                seq=1,
                n=n,
                op="insert",
                memory_id=record.id,
                version=record.version,
                salt=salt,
                payload=payload,
                payload_commit=commitment(salt, payload),
            )
        )
    details = CommitDetails(actor="operator:owner", reason="said so", receipt="r1", policy="0" * 16, undoes=("c0",))
    salt = bytes([9]) * 16
    payload = details.encode()
    commit = Commit(
        id="019ca8bb-b5c0-7000-8000-00000000000c",
        tenant="ada",
        seq=1,
        at=AT,
        kind="write",
        actor_kind="operator",
        prev=EMPTY_HASH,
        events_hash=events_hash(events),
        salt=salt,
        payload=payload,
        hash=b"",
    )
    assert [each.hash() for each in events] == [digest("event", header(each)) for each in events]
    hashed = commit_hash(commit)
    assert recompute_commit_hash(commit, events) == hashed
    return {
        "tenant": "ada",
        "details": payload.decode(),
        "salt": salt.hex(),
        "events": [
            {
                "salt": each.salt.hex(),
                "payload_commit": each.payload_commit.hex(),
                "header": header(each).decode(),
                "hash": each.hash().hex(),
            }
            for each in events
        ],
        "events_hash": events_hash(events).hex(),
        "hash": hashed.hex(),
    }


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_written_as_ever(name):
    assert encode_record(RECORDS[name]) == (GOLDEN / f"record_v1_{name}.json").read_bytes()


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_written_once_is_read_as_ever(name):
    assert decode_record((GOLDEN / f"record_v1_{name}.json").read_bytes()) == RECORDS[name]


def test_a_commit_is_hashed_as_ever():
    assert journal() == json.loads((GOLDEN / "journal_v1.json").read_text())


def test_the_golden_hashes_follow_from_the_page_alone():
    """Recompute a commit's hash with nothing but hashlib and json, as docs/internals/journal-format.md says."""
    golden = json.loads((GOLDEN / "journal_v1.json").read_text())

    def labelled(label, *parts):
        return hashlib.sha256(b"keepward/" + label + b"/v1\0" + b"".join(parts)).digest()

    def plain(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    hashes = []
    for n, (event, name) in enumerate(zip(golden["events"], RECORDS, strict=True)):
        payload = (GOLDEN / f"record_v1_{name}.json").read_bytes()
        promise = labelled(b"payload", bytes.fromhex(event["salt"]), payload).hex()
        record = json.loads(payload)
        header = {"n": n, "op": "insert", "memory": record["id"], "version": record["version"]}
        hashes.append(labelled(b"event", plain(header | {"payload_commit": promise})))
    header = {
        "v": 1,
        "id": "019ca8bb-b5c0-7000-8000-00000000000c",
        "tenant": labelled(b"tenant", b"ada").hex(),
        "seq": 1,
        "at": 1772357400123456,
        "kind": "write",
        "actor": "operator",
        "prev": "00" * 32,
        "events": labelled(b"events", *hashes).hex(),
        "payload_commit": labelled(b"payload", bytes.fromhex(golden["salt"]), golden["details"].encode()).hex(),
    }
    assert labelled(b"commit", plain(header)).hex() == golden["hash"]


@given(records)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_every_record_comes_back_from_its_canonical_form(record):
    payload = encode_record(record)
    assert payload == canonical(json.loads(payload))
    assert decode_record(payload) == record


def test_a_text_that_only_spells_a_nul_is_stored():
    record = msgspec.structs.replace(RECORDS["least"], text="a backslash, \\u0000, is no NUL")
    assert decode_record(encode_record(record)) == record


def test_keys_are_sorted_by_utf_16_code_units():
    assert canonical({"\ufb01": 1, "\U0001f375": 2}) == '{"\U0001f375":2,"\ufb01":1}'.encode()


@pytest.mark.parametrize("value", [1.0, 2**53 + 1, "a\0b", "\ud800", {1: 2}, {"a\0": 1}, b"x", object()])
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises((InvalidInput, AttributeError)):
        canonical(value)


@pytest.mark.parametrize("payload", [b"", b"null", b"[]", b"{}", b'{"v":2}', b'{"v":1}', b"\xff"])
def test_a_damaged_payload_is_tampered(payload):
    with pytest.raises(Tampered):
        decode_record(payload)


@pytest.mark.parametrize(("before", "behind"), [(b"", b" "), (b"", b"{}"), (b" ", b""), (b"\xef\xbb\xbf", b"")])
def test_a_payload_that_something_is_around_is_tampered(before, behind):
    whole = encode_record(RECORDS["least"])
    with pytest.raises(Tampered):
        decode_record(before + whole + behind)


@pytest.mark.parametrize("payload", [b"", b"null", b"{}", b'{"v":2}', b'{"v":1}', b'{"v":1,"x":2}'])
def test_damaged_details_are_tampered(payload):
    with pytest.raises(Tampered):
        decode_details(payload)
