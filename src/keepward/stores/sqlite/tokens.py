"""Tokens as rows: read through their seals, found by their hash.

Invariants
(1) A row that does not match its seal is no token: whoever can write the file cannot make itself one.
(2) A row put back as it once was is found by ``check``, as long as the receipts of what came after are there.
(3) Hashes are compared whole and in constant time; the index is asked for their first 4 bytes alone.
"""

from __future__ import annotations

import hmac
import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator

from keepward.model.journal import Fault
from keepward.model.trust import Rights, Token
from keepward.model.value import from_micros, to_micros
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.beside import Ledger
from keepward.stores.sqlite.rows import Row
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
_ALIKE = 4
_log = logging.getLogger(__name__)


def put_token(connection: sqlite3.Connection, sealer: Sealer, ledger: Ledger, token: Token) -> None:
    """Keep a token, or its new state."""
    values = (
        token.tenant,
        token.id,
        token.name,
        token.hash,
        token.rights.value,
        json.dumps(token.can),
        token.scope,
        token.created_by,
        to_micros(token.created_at),
        None if token.expires_at is None else to_micros(token.expires_at),
        None if token.revoked_at is None else to_micros(token.revoked_at),
    )
    seal = sealer.row("tokens", *values)
    before = connection.execute(SQL["token_seal"], values[:2]).fetchone()
    connection.execute(SQL["set_token"], (*values, seal))
    ledger.turn("tokens", token.tenant, before and before[0], seal)


def tokens(connection: sqlite3.Connection, sealer: Sealer, token_id: str | None = None) -> list[Token]:
    """Return all tokens, or the one by an id, oldest first."""
    return _held(sealer, connection.execute(SQL["tokens"], {"id": token_id}))


def token_by_hash(connection: sqlite3.Connection, sealer: Sealer, digest: bytes) -> Token | None:
    """Return the token with a hash, whatever its state, or None."""
    first, rest = digest[:_ALIKE], len(digest) - _ALIKE
    alike = {"low": first + b"\0" * rest, "high": first + b"\xff" * rest}
    found = _held(sealer, connection.execute(SQL["tokens_like"], alike))
    same = [token for token in found if hmac.compare_digest(token.hash, digest)]
    return same[0] if same else None


def check(connection: sqlite3.Connection, tenant: str) -> Iterator[Fault]:
    """Compare the tokens with the receipts of making and revoking them: none is gone, none holds again."""
    for (body,) in connection.execute(SQL["token_receipts"], {"tenant": tenant}):
        try:
            told = json.loads(body)
            name, revoked = str(told["token"]), str(told["action"]).startswith("revoked")
        except (ValueError, KeyError, TypeError):
            continue  # The check of seals names the receipt.
        row = connection.execute(SQL["tokens"], {"id": name}).fetchone()
        if row is None:
            yield Fault(check="tokens", row=f"tokens {tenant}/{name}", detail="it is gone, and a receipt names it")
        elif revoked and row[10] is None:
            yield Fault(check="tokens", row=f"tokens {tenant}/{name}", detail="a receipt says that it was revoked")


def _held(sealer: Sealer, rows: Iterable[Row]) -> list[Token]:
    held = []
    for row in rows:
        if not sealer.holds_row(row[-1], "tokens", *row[:-1]):
            _log.warning("a token does not match its seal and was left out", extra={"action": "damaged"})
            continue
        try:
            held.append(_token(row))
        except (ValueError, TypeError, OverflowError):
            # Only without a key does a row get here that this program has not written.
            _log.warning("a token cannot be read and was left out", extra={"action": "damaged"})
    return held


def _token(row: Row) -> Token:
    tenant, token_id, name, digest, rights, can, scope, by, created, expires, revoked, _ = row
    return Token(
        id=token_id,
        name=name,
        hash=digest,
        rights=Rights(rights),
        can=tuple(json.loads(can)),
        tenant=tenant,
        scope=scope,
        created_by=by,
        created_at=from_micros(created),
        expires_at=None if expires is None else from_micros(expires),
        revoked_at=None if revoked is None else from_micros(revoked),
    )
