"""Tokens: credentials that name their bearer, kept as hashes.

Invariants
(1) A token is ``kw_`` and 256 random bits in base 62; the store keeps its SHA-256 alone.
(2) Actor, tenant and scope of its bearer come from the token and from nothing else.
(3) A token holds until it expires or is revoked; after that it is as good as unknown.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from keepward.errors import InvalidInput
from keepward.model.names import meant
from keepward.model.trust import CAN, MAY_BE_GIVEN, Actor, ActorKind, Rights
from keepward.model.value import Value

PREFIX = "kw_"
#: 62 to the power of 43 is more than 2 to the power of 256.
_LENGTH = 43
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token(Value):
    """What the store knows of a token."""

    id: str
    #: Name of its bearer, as it stands in receipts.
    name: str
    #: SHA-256 of the token.
    hash: bytes = field(repr=False)
    rights: Rights
    #: Sorted; see ``trust.CAN``.
    can: tuple[str, ...]
    tenant: str
    scope: str
    #: ``kind:name`` of the owner who made it.
    created_by: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def actor(self) -> Actor:
        """The principal that bears it."""
        kind = ActorKind.AGENT if self.rights is Rights.AGENT else ActorKind.OPERATOR
        return Actor(kind=kind, name=self.name, rights=self.rights, credential=self.id, can=frozenset(self.can))

    def state(self, now: datetime) -> str:
        """Return ``valid``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued(Value):
    """A new token: the only moment at which its secret is known."""

    token: Token
    secret: str = field(repr=False)


def secret_of(random: bytes) -> str:
    """Return the token text of 32 random bytes."""
    number, digits = int.from_bytes(random, "big"), []
    for _ in range(_LENGTH):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return PREFIX + "".join(digits)


def hash_of(secret: str) -> bytes:
    """Return what the store keeps of a token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def capabilities(rights: Rights, asked: frozenset[str] | None) -> tuple[str, ...]:
    """Return what a token of a class can do, sorted; ``asked`` narrows it, or adds ``sensitive`` and ``consent``.

    Raises:
        InvalidInput: the class cannot do that, or the narrowed token could do nothing.
    """
    whole = CAN[rights]
    if asked is None:
        return tuple(sorted(whole))
    if rights is Rights.OWNER and asked != whole:
        raise InvalidInput("an owner's token can do everything; make one of an agent or a reviewer for less")
    most = MAY_BE_GIVEN[rights]
    if not asked or not asked <= most:
        guess = next((found for each in sorted(asked - most) if (found := meant(each, sorted(most)))), "")
        raise InvalidInput(f"{guess}a token of this class can be given {', '.join(sorted(most))}")
    # What is proposed or decided has to be read first.
    return tuple(sorted(asked | {"read"}))
