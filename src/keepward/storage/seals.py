"""Seals: message authentication codes of rows. The key is stored elsewhere, so a thief of the file cannot forge them.

A seal covers its table, its key and every other cell of its row, each with type and length. Without a key nothing is
sealed or checked, and the store reports that.
"""

from __future__ import annotations

import hashlib
import hmac
import marshal
import struct
from typing import TypeAlias

from keepward.idempotency import IdempotencyKey

Cell: TypeAlias = str | int | bytes | None
_EVENT = b"keepward/seal/v1\0"
_TAIL = struct.Struct(">qq").pack
_LENGTH = struct.Struct(">q").pack


def encode_cells(*values: object) -> bytes:
    """Return an unambiguous encoding: a type byte, then 8 bytes of length or number, then the content."""
    parts: list[bytes] = []
    for value in values:
        if isinstance(value, bytes):
            parts += (b"b", _LENGTH(len(value)), value)
        elif isinstance(value, str):
            raw = value.encode("utf-8", "surrogatepass")
            parts += (b"s", _LENGTH(len(raw)), raw)
        elif isinstance(value, int):
            parts += (b"i", _LENGTH(value))
        else:
            # No column has any other type unless its page is corrupt; such a row must not match.
            parts.append(b"n" if value is None else b"?")
    return b"".join(parts)


def pack(table: str, tenant: str, cells: tuple[Cell, ...]) -> bytes:
    """Encode a row of a table, without its tenant; the fast form for tables with many rows."""
    # It takes a third of the time of the general form; version 2 of ``marshal`` is frozen.
    return marshal.dumps((table, tenant, cells), 2)


class Sealer:
    """Makes and checks seals with one key. None makes empty seals and accepts any."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key
        # Copies of a keyed hash are faster than new ones.
        self._rows = None if key is None else _keyed(self._mac(b"keepward/rows/v1"), b"keepward/row", 16)
        self._sums = None if key is None else self._mac(b"keepward/sums/v1")
        self._sum_of: dict[str, hashlib.blake2b] = {}

    def _mac(self, message: bytes) -> bytes:
        return hmac.digest(self._key or b"", message, "sha256")

    @property
    def active(self) -> bool:
        """Whether a key exists."""
        return self._key is not None

    @property
    def key_id(self) -> str:
        """16 hex digits that identify the key and reveal nothing about it; empty without one."""
        return "" if self._key is None else self._mac(b"keepward/key/v1").hex()[:16]

    def derived(self, label: bytes) -> bytes | None:
        """Derive a key for another purpose; None without a key."""
        return None if self._key is None else self._mac(b"keepward/derived/v1" + label)

    def request_key(self, tenant: str, key: IdempotencyKey) -> bytes:
        """Return the 16-byte hash by which the commit of a request is found."""
        return self._request(tenant, *key.name)

    def request_digest(self, tenant: str, key: IdempotencyKey, commit_id: str) -> bytes:
        """Return the 16-byte hash of the request of a commit, and 16 bytes that seal the two hashes of its row."""
        call = self._request(tenant, *key.name, key.request, commit_id)
        return call + self._request(commit_id, self.request_key(tenant, key), call)

    def matches_request(self, commit_id: str, key: bytes | None, digest: bytes | None) -> bool:
        """Whether the hashes of a request belong to a commit."""
        if self._key is None or (key is None and digest is None):
            return True
        call, seal = (digest or b"")[:16], (digest or b"")[16:]
        return key is not None and hmac.compare_digest(seal, self._request(commit_id, key, call))

    def _request(self, *values: Cell) -> bytes:
        # Hashed without a sealing key too, because requests are compared by it.
        return hmac.digest(self._key or b"", b"keepward/request/v1\0" + encode_cells(*values), "sha256")[:16]

    def event(self, tenant: bytes, seq: int, n: int, event_hash: bytes) -> bytes:
        """Return the 16-byte seal of an event."""
        if self._key is None:
            return b""
        return self._mac(_EVENT + tenant + b"\0" + _TAIL(seq, n) + event_hash)[:16]

    def matches_event(self, seal: object, tenant: bytes, seq: int, n: int, event_hash: bytes) -> bool:
        """Whether an event's seal matches."""
        return self._key is None or seal == self.event(tenant, seq, n, event_hash)

    def commit(self, tenant: bytes, seq: int, commit_hash: bytes, receipt: bytes | None) -> bytes:
        """Return the 16-byte seal of a commit and of its receipt."""
        return self.event(tenant, seq, -1, commit_hash if receipt is None else commit_hash + sha256(receipt))

    def matches_commit(self, seal: object, tenant: bytes, seq: int, commit_hash: bytes, receipt: bytes | None) -> bool:
        """Whether a commit's seal matches."""
        return self._key is None or seal == self.commit(tenant, seq, commit_hash, receipt)

    def row(self, table: str, *values: Cell) -> bytes:
        """Return the 16-byte seal of a row of another table."""
        if self._key is None:
            return b""
        return self._mac(b"keepward/row/v1\0" + encode_cells(table, *values))[:16]

    def sum_term(self, table: str, content: bytes) -> int:
        """Return the number that a row adds to its table's sum, below 2^256; 0 without a key. ``content`` names it."""
        if self._sums is None:
            return 0
        # Tables have many rows, and this takes a quarter of the time of a seal.
        if table not in self._sum_of:
            self._sum_of[table] = _keyed(self._sums, table.encode(), 32)
        hashed = self._sum_of[table].copy()
        hashed.update(content)
        return int.from_bytes(hashed.digest(), "big")

    def matches_row(self, seal: object, table: str, *values: Cell) -> bool:
        """Whether a row's seal matches."""
        return self._key is None or seal == self.row(table, *values)

    def cells(self, table: str, tenant: str, cells: tuple[Cell, ...]) -> bytes:
        """Return the 16-byte seal of a row of a table, without its tenant; the fast form for tables with many rows."""
        if self._rows is None:
            return b""
        return self.packed(pack(table, tenant, cells))

    def packed(self, content: bytes) -> bytes:
        """Return the 16-byte seal of the result of ``pack``."""
        if self._rows is None:
            return b""
        hashed = self._rows.copy()
        hashed.update(content)
        return hashed.digest()


def _keyed(key: bytes, person: bytes, size: int) -> hashlib.blake2b:
    return hashlib.blake2b(key=key, digest_size=size, person=person)


def sha256(*parts: bytes) -> bytes:
    """Return SHA-256 over the parts joined."""
    return hashlib.sha256(b"".join(parts)).digest()
