"""A commit's header is canonical, or the commit is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from keepward.core.commit import Commit, commit_hash
from keepward.core.json_form import canonical
from keepward.core.serialization import digest
from keepward.core.value import to_micros
from keepward.errors import InvalidInput

NAMES = st.text(st.characters(), max_size=4) | st.sampled_from(['"', "\\", "\n\x01", "\0", "\ud800", "密\u2028", "a"])
HASHES = st.binary(min_size=32, max_size=32)
INSTANTS = st.integers(-(2**55), 2**55).map(lambda micros: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(0, 0, micros))


def slowly(commit):
    header = {
        "v": 1,
        "id": commit.id,
        "tenant": digest("tenant", commit.tenant.encode()).hex(),
        "seq": commit.seq,
        "at": to_micros(commit.at),
        "kind": commit.kind,
        "actor": commit.actor_kind,
        "prev": commit.prev.hex(),
        "events": commit.events_hash.hex(),
        "payload_commit": commit.payload_commit.hex(),
    }
    return digest("commit", canonical(header))


def written_or_none(write, commit):
    try:
        return write(commit)
    except InvalidInput:
        return None


@given(
    id=NAMES,
    tenant=st.text(st.characters(codec="utf-8"), max_size=4),
    seq=st.integers(1, 2**53 + 1),
    at=INSTANTS,
    kind=NAMES,
    actor_kind=NAMES,
    prev=HASHES,
    events_hash=HASHES,
    payload_commit=HASHES | st.just(b""),
)
def test_a_header_is_canonical_or_refused(**given_):
    commit = Commit(**given_, salt=b"", payload=None, hash=b"")
    assert written_or_none(commit_hash, commit) == written_or_none(slowly, commit)
