"""Who asks and how far they are relied on: classes of trust, principals and their rights, scopes, tokens.

Invariants
(1) Trust is set by channel and credential. A caller's claim can lower it and never raise it.
(2) What is derived has the least trust of its parents and of its writer.
(3) Two principals are the same when their credential is, or their kind and name are, however they were opened.
(4) Whether one may approve what another proposed is asked more strictly: a name is no evidence, so neither another
    class under the same name nor another name without a credential makes a second person, nor a name that looks alike.
(5) A scope is ``/`` or ``/a/b``: segments of letters, digits, ``.``, ``_``, ``-``, never ``.`` or ``..``. A reader at a
    path sees that path and its ancestors, decided on whole paths: ``/agents/or`` does not see ``/agents/orion``.
    A reader at a user of a project, ``/projects/shop/users/ana``, also sees ``/users/ana``.
(6) A token is ``kw_`` and 256 random bits in base 62; the store keeps its SHA-256 alone. Actor, tenant and scope of its
    bearer come from it and from nothing else, until it expires or is revoked.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from enum import IntEnum, StrEnum

from keepward.core.letters import skeleton
from keepward.core.value import Data, Value, repr_without, suggestion
from keepward.errors import InvalidInput


class Trust(IntEnum):
    """Classes of origin, least first; comparison is by rank."""

    UNKNOWN = 0
    WEB = 1
    IMPORT = 2
    DOCUMENT = 3
    TOOL = 4
    AGENT = 5
    USER = 6
    OWNER = 7

    @property
    def label(self) -> str:
        """The lower-case name shown to people."""
        return self.name.lower()


class ActorKind(StrEnum):
    """Who asks; it comes from the handle or the token, never from an argument."""

    AGENT = "agent"
    USER = "user"
    OPERATOR = "operator"
    JOB = "job"
    SYSTEM = "system"
    IMPORTER = "importer"


class Role(StrEnum):
    """The class of a credential."""

    #: May read and propose.
    AGENT = "agent"
    #: May read, approve and reject.
    REVIEWER = "reviewer"
    #: May do everything.
    OWNER = "owner"


#: What it is given by name alone: to ask for sensitive memories, to say that a person consented to keeping theirs, to
#: write to the scopes above that of its token.
GRANTABLE_RIGHTS = frozenset({"sensitive", "consent", "share"})
#: What a credential of each class can do. A token may be given less; reading is always among it.
ROLE_RIGHTS: dict[Role, frozenset[str]] = {
    Role.AGENT: frozenset({"read", "propose"}),
    Role.REVIEWER: frozenset({"read", "approve"}),
    Role.OWNER: frozenset({"read", "propose", "approve", "erase", "admin", *GRANTABLE_RIGHTS}),
}
MAX_ROLE_RIGHTS: dict[Role, frozenset[str]] = {
    Role.AGENT: ROLE_RIGHTS[Role.AGENT] | GRANTABLE_RIGHTS,
    Role.REVIEWER: ROLE_RIGHTS[Role.REVIEWER] | {"sensitive"},
    Role.OWNER: ROLE_RIGHTS[Role.OWNER],
}


def _named(name: str) -> str:
    """Return the name of an actor: a line that can be read.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidInput("an actor has a name: a line of text that can be printed")
    return name


class Actor(Data):
    """One principal."""

    kind: ActorKind
    name: str
    rights: Role
    #: Id of the token that it came with; None for a handle that was opened in this process.
    credential: str | None = None
    #: What it can do, where that is not what its class can.
    can: frozenset[str] | None = None

    @classmethod
    def agent(cls, name: str = "agent", *, also: Iterable[str] = ()) -> Actor:
        """An AI agent: reads and proposes; ``also`` gives it rights of ``GRANTABLE_RIGHTS``."""
        can = ROLE_RIGHTS[Role.AGENT] | GRANTABLE_RIGHTS.intersection(also) if also else None
        return cls(kind=ActorKind.AGENT, name=_named(name), rights=Role.AGENT, can=can)

    @classmethod
    def user(cls, name: str = "user") -> Actor:
        """The person in the conversation, as the host relays them: reads and proposes."""
        return cls(kind=ActorKind.USER, name=_named(name), rights=Role.AGENT)

    @classmethod
    def operator(cls, name: str = "operator") -> Actor:
        """The human who owns the store."""
        return cls(kind=ActorKind.OPERATOR, name=_named(name), rights=Role.OWNER)

    @classmethod
    def reviewer(cls, name: str = "reviewer") -> Actor:
        """A human who may decide what waits, and nothing more."""
        return cls(kind=ActorKind.OPERATOR, name=_named(name), rights=Role.REVIEWER)

    @classmethod
    def importer(cls, name: str = "importer") -> Actor:
        """A program that brings memories in from elsewhere."""
        return cls(kind=ActorKind.IMPORTER, name=_named(name), rights=Role.AGENT)

    @property
    def label(self) -> str:
        """``kind:name``, as it stands in receipts."""
        return f"{self.kind.value}:{self.name}"

    @property
    def is_owner(self) -> bool:
        """Whether this principal owns the store."""
        return self.rights is Role.OWNER

    @property
    def may_decide(self) -> bool:
        """Whether this principal may approve and reject what others proposed."""
        return self.has_right("approve")

    @property
    def may_propose(self) -> bool:
        """Whether this principal may ask for changes."""
        return self.has_right("propose")

    def has_right(self, what: str) -> bool:
        """Whether it has a right: read, propose, approve, erase, admin, or one of ``GRANTABLE_RIGHTS``."""
        given = ROLE_RIGHTS[self.rights] if self.can is None else self.can & MAX_ROLE_RIGHTS[self.rights]
        if what in GRANTABLE_RIGHTS and (
            "admin" in given or self.kind in {ActorKind.USER, ActorKind.JOB, ActorKind.SYSTEM}
        ):
            # The owner may, whatever an older token lists; people ask for their own; programs work on everything.
            return True
        return what in given

    def is_same_actor(self, other: Actor) -> bool:
        """Whether both are one principal (3). Names that look alike once normalised are one name."""
        if self.credential is not None and self.credential == other.credential:
            return True
        return self.kind is other.kind and _plain(self.name) == _plain(other.name)

    def may_be_same_actor(self, other: Actor) -> bool:
        """Whether nothing but a name or a class tells both apart (4)."""
        if self.is_same_actor(other) or skeleton(self.name) == skeleton(other.name):
            return True
        people = self.kind is other.kind is ActorKind.OPERATOR
        return people and self.credential is None and other.credential is None


def principal_of(actor: Actor) -> str:
    """Return ``kind:name`` with the form of the name that look-alikes share: equal for one principal."""
    return f"{actor.kind.value}:{_plain(actor.name)}"


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


class Source(Data):
    """What a writer may name as the source of a memory."""

    trust: Trust
    #: 0..1, used when the writer states none.
    confidence: float
    #: 0..1, used when the writer states none.
    importance: float = 0.5


#: Every accepted source name. A claim above the writer's own class counts as the writer's class.
SOURCES: dict[str, Source] = {
    "operator": Source(trust=Trust.OWNER, confidence=1.0),
    "manual": Source(trust=Trust.OWNER, confidence=1.0),
    "user_message": Source(trust=Trust.USER, confidence=0.9),
    "user": Source(trust=Trust.USER, confidence=0.9),
    "chat": Source(trust=Trust.USER, confidence=0.9, importance=0.4),
    "assistant": Source(trust=Trust.AGENT, confidence=0.5),
    "inference": Source(trust=Trust.AGENT, confidence=0.5),
    "extracted": Source(trust=Trust.AGENT, confidence=0.5, importance=0.4),
    "promotion": Source(trust=Trust.OWNER, confidence=0.9),
    "system": Source(trust=Trust.OWNER, confidence=0.9),
    "job": Source(trust=Trust.AGENT, confidence=0.5),
    "tool": Source(trust=Trust.TOOL, confidence=0.8),
    "document": Source(trust=Trust.DOCUMENT, confidence=0.7),
    "seeded": Source(trust=Trust.OWNER, confidence=0.9, importance=0.7),
    "import": Source(trust=Trust.IMPORT, confidence=0.7),
    "web": Source(trust=Trust.WEB, confidence=0.5),
    "unknown": Source(trust=Trust.UNKNOWN, confidence=0.5),
}

_MAX_TRUST = {
    ActorKind.OPERATOR: Trust.OWNER,
    ActorKind.SYSTEM: Trust.OWNER,
    ActorKind.USER: Trust.USER,
    ActorKind.AGENT: Trust.AGENT,
    ActorKind.JOB: Trust.AGENT,
    ActorKind.IMPORTER: Trust.IMPORT,
}

_DEFAULT_SOURCE = {
    ActorKind.OPERATOR: "operator",
    ActorKind.SYSTEM: "system",
    ActorKind.USER: "user_message",
    ActorKind.AGENT: "inference",
    ActorKind.JOB: "job",
    ActorKind.IMPORTER: "import",
}


def may_act_as(actor: Actor, other: Actor) -> bool:
    """Whether a handle of ``other`` may act as ``actor``: only an owner's, and only as somebody who is none."""
    return other.is_owner and not actor.is_owner


def is_actor(label: str, named: str) -> bool:
    """Whether the principal with a label is the one that is named: as ``kind:name``, or by the name alone."""
    return named in {label, label.partition(":")[2]}


def default_source(actor: Actor) -> str:
    """Return the source name assumed when the writer names none."""
    return _DEFAULT_SOURCE[actor.kind]


def trust_of(actor: Actor, source: str, parents: Iterable[Trust] = ()) -> Trust:
    """Return the least of the actor's ceiling, the claimed source and all parents.

    An unknown source name ranks as ``UNKNOWN``; the shape gate refuses it before it is stored.
    """
    claimed = SOURCES[source].trust if source in SOURCES else Trust.UNKNOWN
    return min(_MAX_TRUST[actor.kind], claimed, *parents)


SHARED_SCOPE = "/"
#: Where the store keeps what is its own, such as which learned weights serve. Not a well-formed scope, so that no
#: handle stands there, sees it from anywhere, or writes to it.
RESERVED_SCOPE = "/.keepward"
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
_TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@:-]{0,127}", re.ASCII)
_USER = re.compile(r"(?:/projects/[^/]+)?/users/(?P<user>[^/]+)")
_PROJECT = re.compile(r"/projects/(?P<project>[^/]+)")
#: The longest path, in segments.
MAX_SCOPE_DEPTH = 8


def parse_scope(name: str) -> str:
    """Return the canonical path of a scope name.

    ``shared`` and ``user`` are ``/``; a bare name such as ``orion`` is ``/agents/orion``; a path is
    itself without a trailing slash.

    Raises:
        InvalidInput: the name breaks (1) or has more than 8 segments.
    """
    said = name if isinstance(name, str) else ""
    if said in {SHARED_SCOPE, "shared", "user"}:
        return SHARED_SCOPE
    path = said if said.startswith("/") else f"/agents/{said}"
    segments = path.removesuffix("/").split("/")[1:] if said else []
    if not segments or len(segments) > MAX_SCOPE_DEPTH or not all(_SEGMENT.fullmatch(part) for part in segments):
        raise InvalidInput(
            "unknown scope: use `shared`, an agent's name, or a path such as /agents/orion/tasks/42: at most "
            f"{MAX_SCOPE_DEPTH} labels of 1 to 64 letters of ASCII, digits and `. _ -`, the first no `.` or `-`"
        )
    return "/" + "/".join(segments)


def is_scope(path: str) -> bool:
    """Whether a path is the canonical one of a scope that can be named."""
    try:
        return parse_scope(path) == path
    except InvalidInput:
        return False


def is_within_scope(path: str, scope: str) -> bool:
    """Whether a canonical path is a scope or lies below it."""
    return scope in {path, SHARED_SCOPE} or path.startswith(f"{scope}/")


def visible_from(path: str) -> tuple[str, ...]:
    """Return the scopes a reader at a canonical path sees: its own first, ``/`` last."""
    parts = path.split("/")[1:] if path != SHARED_SCOPE else []
    own = tuple("/" + "/".join(parts[:depth]) for depth in range(len(parts), 0, -1))
    user = user_of(path) if project_of(path) else None
    return (*own, f"/users/{user}", SHARED_SCOPE) if user else (*own, SHARED_SCOPE)


def user_of(path: str) -> str | None:
    """Return the user whom a canonical path belongs to: ``ana`` of ``/users/ana`` and ``/projects/shop/users/ana``."""
    found = _USER.match(path)
    return found["user"] if found else None


def project_of(path: str) -> str | None:
    """Return the project that a canonical path belongs to: ``shop`` of ``/projects/shop/users/ana``."""
    found = _PROJECT.match(path)
    return found["project"] if found else None


def is_task_scope(path: str) -> bool:
    """Whether a canonical path is a task's scope (``.../tasks/<id>``) or lies in one."""
    return "tasks" in path.split("/")[:-1]


def parse_tenant(name: str) -> str:
    """Return the tenant name, unchanged.

    Raises:
        InvalidInput: empty, longer than 128, or outside letters, digits and ``. _ @ : -``.
    """
    if not isinstance(name, str) or not _TENANT.fullmatch(name):
        raise InvalidInput("a tenant is 1 to 128 letters, digits or . _ @ : - and starts with a letter or digit")
    return name


#: In place of the maker's token: the owner made it at the machine of the store, without a token.
AT_MACHINE = "machine"
TOKEN_PREFIX = "kw_"  # noqa: S105  no password
#: 62 to the power of 43 is more than 2 to the power of 256.
_SECRET_CHARS = 43
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Token(Value):
    """What the store knows of a token."""

    id: str
    #: Name of its bearer, as it stands in receipts.
    name: str
    #: SHA-256 of the token.
    hash: bytes
    rights: Role
    #: Sorted; see ``trust.CAN``.
    can: tuple[str, ...]
    tenant: str
    scope: str
    #: ``kind:name`` of the owner who made it.
    created_by: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    #: Id of the token that it was made with, ``AT_MACHINE`` where it was made without one; None where nobody noted it.
    made_with: str | None = None

    def __repr__(self) -> str:
        return repr_without(self, "hash")

    @property
    def actor(self) -> Actor:
        """The principal that bears it."""
        kind = ActorKind.AGENT if self.rights is Role.AGENT else ActorKind.OPERATOR
        return Actor(kind=kind, name=self.name, rights=self.rights, credential=self.id, can=frozenset(self.can))

    def state(self, now: datetime) -> str:
        """Return ``valid``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


class Issued(Value):
    """A new token: the only moment at which its secret is known."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return repr_without(self, "secret")


def encode_token(random: bytes) -> str:
    """Return the token text of 32 random bytes."""
    number, digits = int.from_bytes(random, "big"), []
    for _ in range(_SECRET_CHARS):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return TOKEN_PREFIX + "".join(digits)


def hash_token(secret: str) -> bytes:
    """Return what the store keeps of a token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def token_rights(rights: Role, asked: frozenset[str] | None) -> tuple[str, ...]:
    """Return what a token of a class can do, sorted; ``asked`` narrows it, or adds ``sensitive`` and ``consent``.

    Raises:
        InvalidInput: the class cannot do that, or the narrowed token could do nothing.
    """
    whole = ROLE_RIGHTS[rights]
    if asked is None:
        return tuple(sorted(whole))
    if rights is Role.OWNER and asked != whole:
        raise InvalidInput("an owner's token can do everything; make one of an agent or a reviewer for less")
    most = MAX_ROLE_RIGHTS[rights]
    if not asked or not asked <= most:
        guess = next((found for each in sorted(asked - most) if (found := suggestion(each, sorted(most)))), "")
        raise InvalidInput(f"{guess}a token of this class can be given {', '.join(sorted(most))}")
    # What is proposed or decided has to be read first.
    return tuple(sorted(asked | {"read"}))
