"""Credentials: tokens are made and revoked by the owner, and recognised at the door.

Invariants
(1) Only an owner makes, lists or revokes tokens; each making and revoking leaves a receipt in the same
    transaction.
(2) The secret of a token is returned once, by ``create``, and is stored nowhere.
(3) A revocation is kept outside of the store as well, by the hash of the token: neither a row put back nor an older
    copy of the store makes it hold again.
(4) Unknown, expired and revoked tokens are refused with one message, so that nothing is learnt by trying.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from msgspec.structs import replace

from keepward.core.commit import Receipt
from keepward.core.principals import (
    AT_MACHINE,
    Actor,
    ActorKind,
    Issued,
    Role,
    Token,
    encode_token,
    hash_token,
    token_rights,
    user_of,
)
from keepward.core.value import to_micros, unknown_name_message
from keepward.errors import InvalidInput, NotFound, StoreUnavailable, Unauthorised
from keepward.gates.content import redact_secrets
from keepward.services.request_context import Engine, RequestContext
from keepward.services.transaction import Transaction

#: Longest name of a bearer, in characters.
MAX_NAME_LENGTH = 64
TOKEN_REFUSED = "this token does not open this store; ask the owner for a new one"  # noqa: S105  no password


def create(
    session: RequestContext,
    *,
    name: str,
    rights: str,
    can: frozenset[str] | None,
    tenant: str,
    scope: str,
    expires_at: datetime | None,
) -> Issued:
    """Make a token and keep its hash.

    Raises:
        Unauthorised: this handle is not an owner's.
        InvalidInput: an unknown class, a capability beyond it, a name that is no name, a term in the past.
    """
    _require_owner(session)
    if rights not in set(Role):
        raise InvalidInput(unknown_name_message("rights", rights, list(Role)))
    if not (0 < len(name) <= MAX_NAME_LENGTH and name.isprintable() and name == name.strip()):
        raise InvalidInput(f"a token is named after its bearer: 1 to {MAX_NAME_LENGTH} printable characters")
    if redact_secrets(name) != name:
        raise InvalidInput("the name of a token holds what looks like a secret; choose another")
    user = user_of(scope)
    if user is not None and "share" in (can or ()):
        raise InvalidInput(f"a token of the user {user} writes that user alone: leave `share` out")
    now = session.clock.now()
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("a token expires in the future; leave the term out for one that does not")
    secret = encode_token(session.ids.salt() + session.ids.salt())
    token = Token(
        id=session.ids.new_id(now),
        name=name,
        hash=hash_token(secret),
        rights=Role(rights),
        can=token_rights(Role(rights), can),
        tenant=tenant,
        scope=scope,
        created_by=session.actor.label,
        made_with=session.actor.credential or AT_MACHINE,
        created_at=now,
        expires_at=expires_at,
    )
    _save_token(session, token, "created")
    return Issued(token=token, secret=secret)


def revoke(session: RequestContext, token_id: str) -> Receipt:
    """End a token; a second call changes nothing and tells so in its receipt.

    Raises:
        Unauthorised: this handle is not an owner's.
        NotFound: there is no such token.
    """
    _require_owner(session)
    found = session.store.documents(Token, None).list(id=token_id)
    if not found:
        raise NotFound("there is no token by that id; `keepward token list` shows them")
    token = found[0]
    if token.revoked_at is not None:
        return _save_token(session, token, "revoked before")
    now = session.clock.now()
    # Listed first: if the store fails, the token has ended all the same.
    listed = _record_revocation(session.engine, token, now)
    return _save_token(session, replace(token, revoked_at=now), "revoked", listed=listed)


def revoke_again(session: RequestContext) -> int:
    """End the tokens of an older copy that were revoked since it was made; return how many."""
    gone = _revoked(session.engine)
    ended = [
        token
        for token in session.store.documents(Token, None).list()
        if token.revoked_at is None and token.hash.hex() in gone
    ]
    for token in ended:
        at = dataclasses.replace(session, tenant=token.tenant)
        _save_token(at, replace(token, revoked_at=session.clock.now()), "revoked again")
    return len(ended)


def revoke_all(engine: Engine) -> None:
    """List every token of a store as revoked, so that none holds on this machine whatever the store says.

    Raises:
        StoreUnavailable: this machine has no place for the list.
    """
    for token in engine.store.documents(Token, None).list():
        if token.hash.hex() not in _revoked(engine) and not _record_revocation(engine, token, engine.clock.now()):
            raise StoreUnavailable("the store's tokens cannot be ended: the configuration folder cannot be written")


def _record_revocation(engine: Engine, token: Token, now: datetime) -> bool:
    """Keep a revocation outside of the store; return whether this machine has a place for it."""
    entry = {
        "entry": "revocation",
        "store": engine.store.store_id,
        "token": token.id,
        "hash": token.hash.hex(),
        "at": to_micros(now),
    }
    return engine.record_outside_store("the revocation", entry)


def _revoked(engine: Engine) -> frozenset[str]:
    try:
        return engine.erasures.revoked() if engine.erasures else frozenset()
    except OSError as fault:
        raise StoreUnavailable("the list of revoked tokens cannot be read; check the configuration folder") from fault


def list_tokens(session: RequestContext) -> list[Token]:
    """Return all tokens of the store, oldest first.

    Raises:
        Unauthorised: this handle is not an owner's.
    """
    _require_owner(session)
    return session.store.documents(Token, None).list()


def authenticate(engine: Engine, secret: str) -> Token:
    """Return the token that a secret is.

    Raises:
        Unauthorised: see (4).
    """
    return _valid(engine, engine.store.token_by_hash(hash_token(secret)) if isinstance(secret, str) else None)


def get_token(session: RequestContext, token_id: str) -> Token:
    """Return the token of an id.

    Raises:
        Unauthorised: see (4).
    """
    return _valid(session.engine, next(iter(session.store.documents(Token, None).list(id=token_id)), None))


def require_valid(session: RequestContext, actor: Actor) -> None:
    """See that the token an actor came with is valid still; one without a token is always confirmed.

    Raises:
        Unauthorised: see (4).
    """
    if actor.credential is not None and get_token(session, actor.credential).actor != actor:
        raise Unauthorised(TOKEN_REFUSED)


def _valid(engine: Engine, token: Token | None) -> Token:
    if token is None or token.state(engine.clock.now()) != "valid" or token.hash.hex() in _revoked(engine):
        raise Unauthorised(TOKEN_REFUSED)
    return token


def may_be_same_person(session: RequestContext, proposer: Actor, approver: Actor) -> bool:
    """Whether one actor made the other's token, or one token made both, directly or through further tokens.

    The owner at the machine of the store, without a token, gives tokens to different people and counts as each of
    them, though not as its agents, which are programs. A token from before its maker was noted approves nothing; it
    counts as one of any owner with its maker's name.
    """
    theirs, mine = _issuers(session, proposer), _issuers(session, approver)
    if not (theirs and mine) or (mine == [AT_MACHINE] and proposer.kind is ActorKind.AGENT):
        return False
    if ":" in mine[-1]:
        return True
    labels = {approver.label, *(each.actor.label for each in session.store.documents(Token, None).list(ids=mine))}
    shared = set(theirs) & set(mine)
    return theirs[-1] in labels or mine[0] in theirs or theirs[0] in mine or bool(shared - {AT_MACHINE})


def _issuers(session: RequestContext, actor: Actor) -> list[str]:
    """Return an actor's token and those that it was made with, nearest first.

    The last is ``AT_MACHINE``, or the maker's label where its token was not noted. An agent without a token has none.
    """
    if actor.credential is None:
        return [AT_MACHINE] if actor.kind is ActorKind.OPERATOR else []
    line = [actor.credential]
    while found := session.store.documents(Token, None).list(id=line[-1]):
        line.append(found[0].made_with or found[0].created_by)
    return line


def _require_owner(session: RequestContext) -> None:
    if not session.actor.is_owner:
        raise Unauthorised("tokens are the owner's; act as an operator, or use an owner's token")


def _save_token(session: RequestContext, token: Token, what: str, **more: object) -> Receipt:
    facts = {
        "token": token.id,
        "name": token.name,
        "action": what,
        "rights": token.rights.value,
        "can": list(token.can),
        "of": {"tenant": token.tenant, "scope": token.scope},
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        "credential": session.actor.credential,
        **more,
    }
    with session.store.write() as writer:
        writer.put(token)
        return Transaction(session.for_transaction(writer), writer).receipt("token", facts)
