"""Tokens: the owner creates and revokes them, and every request with a token is authenticated here.

Only an owner creates, lists or revokes tokens; each creation and revocation has a receipt in the same transaction.
The secret of a token is returned once, by ``create``, and is stored nowhere.
A revocation is also recorded outside the store, by the hash of the token: neither a restored row nor an older copy of
the store makes the token valid again.
Unknown, expired and revoked tokens get the same error message, so that trying reveals nothing.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from keepward.core.commit import Receipt
from keepward.core.principals import (
    AT_MACHINE,
    SHARED_SCOPE,
    Actor,
    ActorKind,
    Issued,
    Role,
    StoredToken,
    Token,
    encode_token,
    hash_token,
    main_scope,
    resembles,
    token_rights,
    user_of,
)
from keepward.core.value import Duration, to_micros, unknown_name_message
from keepward.errors import Conflict, InvalidInput, NotFound, StoreUnavailable, Unauthorised
from keepward.gates.content import redact_secrets
from keepward.services.arguments import expiry_time, valid_scope, valid_tenant
from keepward.services.request_context import Engine, RequestContext
from keepward.services.transaction import Transaction

_log = logging.getLogger(__name__)

#: Longest name of a token holder, in characters.
MAX_NAME_LENGTH = 64
TOKEN_REFUSED = "this token does not open this store; ask the owner for a new one"  # noqa: S105  no password


def create(
    context: RequestContext,
    name: str,
    *,
    rights: str = "agent",
    can: Sequence[str] | None = None,
    tenant: str | None = None,
    scope: str | None = None,
    expires: datetime | Duration | None = None,
) -> Issued:
    """Create a token for a holder with this name, and store its hash.

    Raises:
        Unauthorised: this handle is not an owner's.
        Conflict: an owner's token has a scope.
        InvalidInput: an unknown role, a right beyond it, an invalid name, one that resembles
            another's, or an expiry in the past.
    """
    expiry = None if expires is None else expiry_time("expires", expires)
    tenant = context.tenant if tenant is None else valid_tenant(tenant)
    scope = main_scope(context.scope) if scope is None else valid_scope(scope)
    _require_owner(context)
    if rights not in set(Role):
        raise InvalidInput(unknown_name_message("rights", rights, list(Role)))
    if rights == Role.OWNER and scope != SHARED_SCOPE:
        raise Conflict(
            f"an owner's token has no scope: it reaches everything. Make it at {SHARED_SCOPE} and leave the scope out, "
            f"or make a token of a reviewer or an agent for {scope}"
        )
    if not (0 < len(name) <= MAX_NAME_LENGTH and name.isprintable() and name == name.strip()):
        raise InvalidInput(f"a token is named after its holder: 1 to {MAX_NAME_LENGTH} printable characters")
    if redact_secrets(name) != name:
        raise InvalidInput("the name of a token contains what looks like a secret; choose another")
    user = user_of(scope)
    if user is not None and "share" in (can or ()):
        raise InvalidInput(f"a token of the user {user} writes that user alone: leave `share` out")
    now = context.clock.now()
    expires_at = now + expiry if isinstance(expiry, timedelta) else expiry
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("a token expires in the future; leave the expiry out for one that does not expire")
    secret = encode_token(context.ids.salt() + context.ids.salt())
    token = StoredToken(
        id=context.ids.new_id(now),
        name=name,
        hash=hash_token(secret),
        rights=Role(rights),
        can=token_rights(Role(rights), None if can is None else frozenset(can)),
        tenant=tenant,
        scope=scope,
        created_by=context.actor.label,
        made_with=context.actor.credential or AT_MACHINE,
        created_at=now,
        expires_at=expires_at,
    )
    _refuse_lookalike(context, token)
    _save_token(context, token, "created")
    return Issued(token=token.public(), secret=secret)


def _refuse_lookalike(context: RequestContext, token: StoredToken) -> None:
    """Refuse a name that a person may take for that of a valid token, if only one of the two approves.

    Raises:
        InvalidInput: there is such a token.
    """
    for other in context.store.documents(StoredToken, None).list():
        if (
            other.actor.may_decide is not token.actor.may_decide
            and resembles(token.name, other.name)
            and other.state(token.created_at) == "valid"
        ):
            raise InvalidInput(
                f"the name resembles that of the token {other.id}, and one of the two approves what the other "
                "proposes; choose another name, or revoke that token"
            )


def revoke(context: RequestContext, token_id: str) -> Receipt:
    """Revoke a token. A second call leaves it as it is, as its receipt says.

    Raises:
        Unauthorised: this handle is not an owner's.
        NotFound: there is no such token.
    """
    _require_owner(context)
    tokens = context.store.documents(StoredToken, None).list(id=token_id)
    if not tokens:
        raise NotFound("there is no token by that id; `keepward token list` shows them")
    token = tokens[0]
    if token.revoked_at is not None:
        return _save_token(context, token, "revoked before")
    now = context.clock.now()
    # Recorded outside first: the token is revoked even if the store fails.
    listed = _record_revocation(context.engine, token, now)
    return _save_token(context, replace(token, revoked_at=now), "revoked", listed=listed)


def revoke_again(context: RequestContext) -> int:
    """Revoke the tokens of an older copy of the store that were revoked since; return how many."""
    revoked = _revoked(context.engine)
    ended = [
        token
        for token in context.store.documents(StoredToken, None).list()
        if token.revoked_at is None and token.hash.hex() in revoked
    ]
    for token in ended:
        at = dataclasses.replace(context, tenant=token.tenant)
        _save_token(at, replace(token, revoked_at=context.clock.now()), "revoked again")
    return len(ended)


def revoke_all(engine: Engine) -> None:
    """Record every token of a store as revoked, so that none is valid on this machine whatever the store says.

    Raises:
        StoreUnavailable: the list cannot be written.
    """
    for token in engine.store.documents(StoredToken, None).list():
        if token.hash.hex() not in _revoked(engine) and not _record_revocation(engine, token, engine.clock.now()):
            raise StoreUnavailable("the store's tokens cannot be ended: the configuration folder cannot be written")


def _record_revocation(engine: Engine, token: StoredToken, now: datetime) -> bool:
    """Record a revocation outside the store; return whether that worked."""
    entry = {
        "entry": "revocation",
        "store": engine.store.store_id,
        "token": token.id,
        "hash": token.hash.hex(),
        "at": to_micros(now),
    }
    try:
        if engine.erasures is not None:
            engine.erasures.add([entry])
            return True
    except OSError as exc:
        _log.warning("the revocation could not be listed outside the store: %s", exc, extra={"action": "not_listed"})
    return False


def _revoked(engine: Engine) -> frozenset[str]:
    try:
        return engine.erasures.revoked() if engine.erasures else frozenset()
    except OSError as exc:
        raise StoreUnavailable("the list of revoked tokens cannot be read; check the configuration folder") from exc


def list_tokens(context: RequestContext) -> list[Token]:
    """Return all tokens of the store, oldest first.

    Raises:
        Unauthorised: this handle is not an owner's.
    """
    _require_owner(context)
    return [token.public() for token in context.store.documents(StoredToken, None).list()]


def authenticate(engine: Engine, secret: str) -> StoredToken:
    """Return the token with a secret.

    Raises:
        Unauthorised: there is no valid one.
    """
    return _valid(engine, engine.store.token_by_hash(hash_token(secret)) if isinstance(secret, str) else None)


def get_token(context: RequestContext, token_id: str) -> StoredToken:
    """Return the token with an id.

    Raises:
        Unauthorised: there is no valid one.
    """
    return _valid(context.engine, next(iter(context.store.documents(StoredToken, None).list(id=token_id)), None))


def require_valid(context: RequestContext, actor: Actor) -> StoredToken | None:
    """Return the token of an actor, which must still be valid; None for an actor without one, who needs none.

    Raises:
        Unauthorised: it is not valid.
    """
    if actor.credential is None:
        return None
    token = get_token(context, actor.credential)
    if token.actor != actor:
        raise Unauthorised(TOKEN_REFUSED)
    return token


def _valid(engine: Engine, token: StoredToken | None) -> StoredToken:
    if token is None or token.state(engine.clock.now()) != "valid" or token.hash.hex() in _revoked(engine):
        raise Unauthorised(TOKEN_REFUSED)
    if is_scoped_owner(token):
        raise Unauthorised(
            f"an owner's token has no scope, and this one is for {token.scope}: make another, and end this one with "
            f"`keepward token revoke {token.id}`"
        )
    return token


def is_scoped_owner(token: StoredToken) -> bool:
    """Whether a token is an owner's with a scope; earlier releases made such tokens, and none is accepted."""
    return token.rights is Role.OWNER and token.scope != SHARED_SCOPE


def scoped_owners(context: RequestContext) -> list[StoredToken]:
    """Return the owner's valid tokens with a scope."""
    now = context.clock.now()
    return [
        token
        for token in context.store.documents(StoredToken, None).list()
        if is_scoped_owner(token) and token.state(now) == "valid"
    ]


def may_be_same_person(context: RequestContext, proposer: Actor, approver: Actor) -> bool:
    """Whether one actor created the other's token, or one token created both, directly or through further tokens.

    The owner without a token, at the machine of the store, creates tokens for different people. The owner counts as
    the same person as each of them, but not as their agents, which are programs. A token without a recorded creator
    approves nothing; it counts as one of any owner with its creator's name.
    """
    theirs, mine = _issuers(context, proposer), _issuers(context, approver)
    if not (theirs and mine) or (mine == [AT_MACHINE] and proposer.kind is ActorKind.AGENT):
        return False
    if ":" in mine[-1]:
        # A label: the token that created the approver's was not recorded.
        return True
    labels = {
        approver.label,
        *(token.actor.label for token in context.store.documents(StoredToken, None).list(ids=mine)),
    }
    shared = set(theirs) & set(mine)
    return theirs[-1] in labels or mine[0] in theirs or theirs[0] in mine or bool(shared - {AT_MACHINE})


def _issuers(context: RequestContext, actor: Actor) -> list[str]:
    """Return an actor's token and the tokens that created it, nearest first.

    The last is ``AT_MACHINE``, or the creator's label if its token was not recorded. Without a token an owner has only
    ``AT_MACHINE``, and any other actor an empty list.
    """
    if actor.credential is None:
        return [AT_MACHINE] if actor.kind is ActorKind.OPERATOR else []
    chain = [actor.credential]
    while tokens := context.store.documents(StoredToken, None).list(id=chain[-1]):
        chain.append(tokens[0].made_with or tokens[0].created_by)
    return chain


def _require_owner(context: RequestContext) -> None:
    if not context.actor.is_owner:
        raise Unauthorised("only the owner manages tokens; act as an operator, or use an owner's token")


def _save_token(context: RequestContext, token: StoredToken, action: str, **extra: object) -> Receipt:
    facts = {
        "token": token.id,
        "name": token.name,
        "action": action,
        "rights": token.rights.value,
        "can": list(token.can),
        "of": {"tenant": token.tenant, "scope": token.scope},
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        "credential": context.actor.credential,
        **extra,
    }
    with context.store.write() as writer:
        writer.put(token)
        return Transaction(context.for_transaction(writer), writer).receipt("token", facts)
