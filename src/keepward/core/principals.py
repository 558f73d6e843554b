"""Actors and trust: trust classes, roles and rights, scopes, tokens.

* Channel and credential set the trust. A caller's claim can only lower it.
* A derived memory has the lowest trust of its parents and its writer.
* Two actors are the same if their credential is equal, or their kind and name are.
* Approval of one's own proposal is checked more strictly, because a name is no evidence. Another role under the same
  name, another name without a credential, and a name that looks alike do not make a second person.
* A scope is ``/`` or ``/a/b``. Its segments have letters, digits, ``.``, ``_``, ``-``; ``.`` and ``..`` are invalid.
  From a scope, that scope and its ancestors are visible: ``/agents/or`` does not see ``/agents/orion``. From
  ``/projects/shop/users/ana``, ``/users/ana`` is also visible.
* On the branch ``try-x``, what is written at ``/users/ana`` is stored at ``/@try-x/users/ana``. From there, that scope
  and its ancestors on the branch and on main are visible. No scope of main contains one of a branch.
* A token is ``kw_`` and 256 random bits in base 62; the store has only its SHA-256. It determines actor, tenant and
  scope until it expires or is revoked.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum, StrEnum
from functools import total_ordering
from typing import Literal

from keepward.core.letters import skeleton
from keepward.core.value import Data, Instant, Value, repr_without, unknown_name_message
from keepward.errors import InvalidInput


@total_ordering
class Trust(Enum):
    """Trust classes by origin, lowest first."""

    UNKNOWN = "unknown"
    WEB = "web"
    IMPORT = "import"
    DOCUMENT = "document"
    TOOL = "tool"
    AGENT = "agent"
    USER = "user"
    OWNER = "owner"

    def __init__(self, label: str) -> None:
        #: The lower-case name.
        self.label = label
        self._rank = len(type(self).__members__)

    def __int__(self) -> int:
        """Return its position, 0 for the lowest."""
        return self._rank

    def __lt__(self, other: Trust) -> bool:
        return self._rank < other._rank


class ActorKind(StrEnum):
    """The kind of an actor. It comes from the handle or the token, never from an argument."""

    AGENT = "agent"
    USER = "user"
    OPERATOR = "operator"
    JOB = "job"
    SYSTEM = "system"
    IMPORTER = "importer"


class Role(StrEnum):
    """The role of a credential."""

    #: May read and propose.
    AGENT = "agent"
    #: May read, approve and reject.
    REVIEWER = "reviewer"
    #: May do everything.
    OWNER = "owner"


#: All rights. The last three are granted by name: to read sensitive memories, to record a person's consent, and to
#: write to scopes above that of the token.
RIGHTS = ("read", "propose", "approve", "erase", "admin", "sensitive", "consent", "share")
GRANTABLE_RIGHTS = frozenset(RIGHTS[-3:])
#: Rights of each role. A token may have fewer, but can always read.
ROLE_RIGHTS: dict[Role, frozenset[str]] = {
    Role.AGENT: frozenset({"read", "propose"}),
    Role.REVIEWER: frozenset({"read", "approve"}),
    Role.OWNER: frozenset(RIGHTS),
}
MAX_ROLE_RIGHTS: dict[Role, frozenset[str]] = {
    Role.AGENT: ROLE_RIGHTS[Role.AGENT] | GRANTABLE_RIGHTS,
    Role.REVIEWER: ROLE_RIGHTS[Role.REVIEWER] | {"sensitive"},
    Role.OWNER: ROLE_RIGHTS[Role.OWNER],
}
#: Begins the label of a reviewer, whose kind is that of an operator.
_REVIEWER = "reviewer"
#: Maximum length of the name of an actor.
MAX_ACTOR_NAME = 256


def _named(name: str) -> str:
    """Return a valid name of an actor.

    Raises:
        InvalidInput: it is not a printable line, or too long.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > MAX_ACTOR_NAME:
        raise InvalidInput(f"an actor has a name: a line of text of at most {MAX_ACTOR_NAME} characters to print")
    return name


class Actor(Data):
    """An actor and its rights."""

    kind: ActorKind
    name: str
    rights: Role
    #: Id of its token; None for a handle opened without a token.
    credential: str | None = None
    #: Its rights, sorted, if they differ from those of its role.
    can: tuple[str, ...] | None = None

    @classmethod
    def agent(cls, name: str = "agent", *, also: Iterable[str] = ()) -> Actor:
        """Return an AI agent, which reads and proposes; ``also`` adds rights of ``GRANTABLE_RIGHTS``.

        Raises:
            InvalidInput: a right cannot be added, or the name is not a printable line.
        """
        added = None if isinstance(also, str) or not isinstance(also, Iterable) else list(also)
        if added is None or not all(isinstance(right, str) and right in GRANTABLE_RIGHTS for right in added):
            raise InvalidInput(f"also is a list of rights, each one of {', '.join(sorted(GRANTABLE_RIGHTS))}")
        can = tuple(sorted(ROLE_RIGHTS[Role.AGENT].union(added))) if added else None
        return cls(kind=ActorKind.AGENT, name=_named(name), rights=Role.AGENT, can=can)

    @classmethod
    def user(cls, name: str = "user") -> Actor:
        """Return the person in the conversation, relayed by the host; reads and proposes."""
        return cls(kind=ActorKind.USER, name=_named(name), rights=Role.AGENT)

    @classmethod
    def operator(cls, name: str = "operator") -> Actor:
        """Return the person who owns the store."""
        return cls(kind=ActorKind.OPERATOR, name=_named(name), rights=Role.OWNER)

    @classmethod
    def reviewer(cls, name: str = "reviewer") -> Actor:
        """Return a person who reads, approves and rejects."""
        return cls(kind=ActorKind.OPERATOR, name=_named(name), rights=Role.REVIEWER)

    @classmethod
    def importer(cls, name: str = "importer") -> Actor:
        """Return a program that imports memories."""
        return cls(kind=ActorKind.IMPORTER, name=_named(name), rights=Role.AGENT)

    @property
    def label(self) -> str:
        """``kind:name``, as in receipts. The kind of an operator who is a reviewer is ``reviewer``."""
        kind = _REVIEWER if (self.kind, self.rights) == (ActorKind.OPERATOR, Role.REVIEWER) else self.kind.value
        return f"{kind}:{self.name}"

    @property
    def is_owner(self) -> bool:
        """Whether this actor is the owner of the store."""
        return self.rights is Role.OWNER

    @property
    def may_decide(self) -> bool:
        """Whether this actor may approve and reject proposals of others."""
        return self.has_right("approve")

    @property
    def may_propose(self) -> bool:
        """Whether this actor may propose changes."""
        return self.has_right("propose")

    def has_right(self, what: str) -> bool:
        """Whether the actor has a right: read, propose, approve, erase, admin, or one of ``GRANTABLE_RIGHTS``."""
        given = ROLE_RIGHTS[self.rights] if self.can is None else MAX_ROLE_RIGHTS[self.rights].intersection(self.can)
        if what in GRANTABLE_RIGHTS and (
            "admin" in given or self.kind in {ActorKind.USER, ActorKind.JOB, ActorKind.SYSTEM}
        ):
            # The owner always has these rights. So have users, for their own data, and jobs.
            return True
        return what in given

    def is_same_actor(self, other: Actor) -> bool:
        """Whether both are the same actor, by credential or by kind and normalized name."""
        if self.credential is not None and self.credential == other.credential:
            return True
        return self.kind is other.kind and _plain(self.name) == _plain(other.name)

    def may_be_same_actor(self, other: Actor) -> bool:
        """Whether both may be the same person: same or similar name, or two operators without credentials."""
        if self.is_same_actor(other) or skeleton(self.name) == skeleton(other.name):
            return True
        people = self.kind is other.kind is ActorKind.OPERATOR
        return people and self.credential is None and other.credential is None


def resembles(name: str, other: str) -> bool:
    """Whether a name is another one than ``other`` and is read as the same."""
    return _plain(name) != _plain(other) and skeleton(name) == skeleton(other)


def principal_of(actor: Actor) -> str:
    """Return ``kind:name`` with a normalized name, equal for equal actors."""
    return f"{actor.kind.value}:{_plain(actor.name)}"


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


class Source(Data):
    """A source that a writer may name, with its defaults."""

    trust: Trust
    #: 0..1, default of a write.
    confidence: float
    #: 0..1, default of a write.
    importance: float = 0.5


#: All source names. A source above the trust of the writer counts as the writer's trust.
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

#: Roles of messages, with the source of their memories; None for instructions to the model, which are not stored.
ROLES: Mapping[str, str | None] = {
    "user": "user_message",
    "assistant": "assistant",
    "system": None,
    "developer": None,
    "tool": "tool",
    "function": "tool",
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
#: Evidence such as ``claimed:operator`` begins so: an agent named that source, and may not.
CLAIMED = "claimed:"
_IMPORT = "import"
#: Actors who are persons.
PEOPLE = frozenset({ActorKind.OPERATOR, ActorKind.USER})


def may_act_as(actor: Actor, other: Actor) -> bool:
    """Whether a handle of ``other`` may act as ``actor``: only the owner, and only as an actor who is not an owner."""
    return other.is_owner and not actor.is_owner


def is_person(label: str) -> bool:
    """Whether a label ``kind:name`` is a person's."""
    return label.partition(":")[0] in {*PEOPLE, _REVIEWER}


def is_actor(label: str, named: str) -> bool:
    """Whether a label ``kind:name`` matches a filter: the label, or its name."""
    return named in {label, label.partition(":")[2]}


def default_source(actor: Actor) -> str:
    """Return the default source of an actor's writes."""
    return _DEFAULT_SOURCE[actor.kind]


def trust_of(actor: Actor, source: str, parents: Iterable[Trust] = ()) -> Trust:
    """Return the lowest trust of the actor's maximum, the claimed source and all parents.

    A person who imports a file vouches for it as a user does. An unknown source ranks as ``UNKNOWN``; the validation
    gate refuses it before it is stored.
    """
    claimed = SOURCES[source].trust if source in SOURCES else Trust.UNKNOWN
    if source == _IMPORT and actor.kind in PEOPLE:
        claimed = Trust.USER
    return min(_MAX_TRUST[actor.kind], claimed, *parents)


SHARED_SCOPE = "/"
#: A scope that is not valid, so no handle can be at it, see it or write to it. Earlier releases had records of the
#: store itself there.
RESERVED_SCOPE = "/.keepward"
#: One segment of a path, as a regular expression.
SCOPE_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"
_SEGMENT = re.compile(SCOPE_SEGMENT, re.ASCII)
TENANT_NAME = r"[A-Za-z0-9_][A-Za-z0-9._@:-]{0,127}"
_TENANT = re.compile(TENANT_NAME, re.ASCII)
_USER = re.compile(r"(?:/projects/[^/]+)?/users/(?P<user>[^/]+)")
_PROJECT = re.compile(r"/projects/(?P<project>[^/]+)")
#: The longest path, in segments.
MAX_SCOPE_DEPTH = 8


def parse_scope(name: str) -> str:
    """Return the canonical path of a scope.

    ``shared`` and ``user`` are ``/``. A bare name such as ``orion`` is ``/agents/orion``. A trailing slash is dropped.

    Raises:
        InvalidInput: the name is not valid, or it has more than 8 segments.
    """
    given = name if isinstance(name, str) else ""
    if given in {SHARED_SCOPE, "shared", "user"}:
        return SHARED_SCOPE
    if given.partition("/")[0] in {"users", "projects", "agents"}:
        raise InvalidInput(f"a path of a scope starts with a slash: /{given}")
    path = given if given.startswith("/") else f"/agents/{given}"
    segments = path.removesuffix("/").split("/")[1:] if given else []
    if not segments or len(segments) > MAX_SCOPE_DEPTH or not all(_SEGMENT.fullmatch(part) for part in segments):
        raise InvalidInput(
            "unknown scope: use `shared`, an agent's name, or a path such as /agents/orion/tasks/42: at most "
            f"{MAX_SCOPE_DEPTH} segments of 1 to 64 ASCII letters, digits and `. _ -`, not starting with `.` or `-`"
        )
    return "/" + "/".join(segments)


def is_scope(path: str) -> bool:
    """Whether a path is the canonical path of a valid scope, of main or of a branch."""
    try:
        return parse_scope(main_scope(path)) == main_scope(path)
    except InvalidInput:
        return False


#: Begins the paths of all branches. No scope that a caller names begins so.
BRANCH_PREFIX = "/@"
#: All paths of branches are at or after the first, and before the second.
BRANCH_PATHS = (BRANCH_PREFIX, "/A")
#: The branch without a name is the registry: it has the records of the branches, each at the scope of its branch.
REGISTRY = ""


def parse_branch(name: str) -> str:
    """Return the name of a branch, unchanged.

    Raises:
        InvalidInput: it is not a valid segment of a scope.
    """
    if not isinstance(name, str) or not _SEGMENT.fullmatch(name):
        raise InvalidInput(
            "the name of a branch is 1 to 64 ASCII letters, digits and `. _ -`, and starts with none of `. -`, "
            "such as `try-x`"
        )
    return name


def branch_of(path: str) -> str | None:
    """Return the branch of a canonical path; None for a path of main. That of the registry is empty."""
    return path[len(BRANCH_PREFIX) :].partition("/")[0] if path.startswith(BRANCH_PREFIX) else None


def main_scope(path: str) -> str:
    """Return the path on main of a canonical path: ``/users/ana`` for ``/@try-x/users/ana``."""
    if not path.startswith(BRANCH_PREFIX):
        return path
    return "/" + path[len(BRANCH_PREFIX) :].partition("/")[2]


def branch_scope(branch: str | None, path: str) -> str:
    """Return the path on a branch, or with None on main, of a canonical path of any branch."""
    main = main_scope(path)
    return main if branch is None else f"{BRANCH_PREFIX}{branch}{'' if main == SHARED_SCOPE else main}"


def is_within_scope(path: str, scope: str) -> bool:
    """Whether a canonical path equals a scope or lies below it, on the same branch or both on main."""
    if scope == SHARED_SCOPE:
        return not path.startswith(BRANCH_PREFIX)
    return scope == path or path.startswith(f"{scope}/")


def is_read_within(path: str, scope: str) -> bool:
    """Whether a canonical path is within a scope as that scope reads it: a branch reads what main has."""
    return is_within_scope(path, scope) or (
        scope.startswith(BRANCH_PREFIX) and is_within_scope(path, main_scope(scope))
    )


def lies_below(path: str, scope: str) -> bool:
    """Whether a canonical path lies below a scope, as that scope reads it."""
    return path not in {scope, main_scope(scope)} and is_read_within(path, scope)


def visible_from(path: str) -> tuple[str, ...]:
    """Return the scopes visible from a canonical path: its own first, ``/`` last.

    On a branch, each is followed by that of main.
    """
    if path.startswith(BRANCH_PREFIX):
        branch = branch_of(path)
        return tuple(each for main in visible_from(main_scope(path)) for each in (branch_scope(branch, main), main))
    parts = path.split("/")[1:] if path != SHARED_SCOPE else []
    own = tuple("/" + "/".join(parts[:depth]) for depth in range(len(parts), 0, -1))
    user = user_of(path) if project_of(path) else None
    return (*own, f"/users/{user}", SHARED_SCOPE) if user else (*own, SHARED_SCOPE)


def registry_scopes(path: str) -> tuple[str, ...]:
    """Return where the records of branches are that a canonical path sees: ``/@/users/ana`` and ``/@``, for example."""
    return tuple(branch_scope(REGISTRY, scope) for scope in visible_from(main_scope(path)))


def user_of(path: str) -> str | None:
    """Return the user of a canonical path: ``ana`` for ``/users/ana`` and ``/projects/shop/users/ana``."""
    match = _USER.match(main_scope(path))
    return match["user"] if match else None


def project_of(path: str) -> str | None:
    """Return the project of a canonical path: ``shop`` for ``/projects/shop/users/ana``."""
    match = _PROJECT.match(main_scope(path))
    return match["project"] if match else None


def is_task_scope(path: str) -> bool:
    """Whether a canonical path is the scope of a task (``.../tasks/<id>``) or lies below it."""
    return "tasks" in path.split("/")[:-1]


def parse_tenant(name: str) -> str:
    """Return the tenant name, unchanged.

    Raises:
        InvalidInput: empty, longer than 128, or outside letters, digits and ``. _ @ : -``.
    """
    if not isinstance(name, str) or not _TENANT.fullmatch(name):
        raise InvalidInput("a tenant is 1 to 128 letters, digits or . _ @ : - and starts with a letter or digit")
    return name


#: The maker's id of a token that the owner made on the machine of the store, without a token.
AT_MACHINE = "machine"
TOKEN_PREFIX = "kw_"  # noqa: S105  no password
#: 62 to the power of 43 is more than 2 to the power of 256.
_SECRET_CHARS = 43
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
TokenState = Literal["valid", "expired", "revoked"]


class Token(Value):
    """What a store knows of a token, without the token itself."""

    id: str
    #: Name of its actor, as in receipts.
    name: str
    rights: Role
    #: Sorted; see ``ROLE_RIGHTS``.
    can: tuple[str, ...]
    tenant: str
    scope: str
    #: ``kind:name`` of the owner who created it.
    created_by: str
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    #: Id of the token it was created with; ``AT_MACHINE`` without a token; None if unknown.
    made_with: str | None = None

    @property
    def actor(self) -> Actor:
        """The actor of the token."""
        kind = ActorKind.AGENT if self.rights is Role.AGENT else ActorKind.OPERATOR
        return Actor(kind=kind, name=self.name, rights=self.rights, credential=self.id, can=self.can)

    def state(self, now: datetime) -> TokenState:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


class StoredToken(Token):
    """A token as stored."""

    #: SHA-256 of the token.
    hash: bytes

    def __repr__(self) -> str:
        return repr_without(self, "hash")

    def public(self) -> Token:
        """Return it without its hash."""
        return Token(**{name: getattr(self, name) for name in Token.__struct_fields__})


class Issued(Value):
    """A new token with its secret, which is shown only once."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return repr_without(self, "secret")


def rights_of_role(role: Role) -> list[str]:
    """Return the rights that a token of a role can have, in order."""
    return [right for right in RIGHTS if right in MAX_ROLE_RIGHTS[role]]


def encode_token(random: bytes) -> str:
    """Return the token text of 32 random bytes."""
    number, digits = int.from_bytes(random, "big"), []
    for _ in range(_SECRET_CHARS):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return TOKEN_PREFIX + "".join(digits)


def hash_token(secret: str) -> bytes:
    """Return the stored hash of a token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def token_rights(rights: Role, requested: frozenset[str] | None) -> tuple[str, ...]:
    """Return the rights of a token of a role, sorted. ``requested`` restricts or extends them.

    Raises:
        InvalidInput: the role does not allow a right, or no right is left.
    """
    of_role = ROLE_RIGHTS[rights]
    if requested is None:
        return tuple(sorted(of_role))
    if rights is Role.OWNER and requested != of_role:
        raise InvalidInput(
            "an owner's token has all rights; for fewer rights, create a token of an agent or a reviewer"
        )
    allowed = rights_of_role(rights)
    unknown = next((right for right in sorted(map(str, requested)) if right not in RIGHTS), None)
    if unknown is not None:
        raise InvalidInput(unknown_name_message("right in `can`", unknown, allowed))
    if not requested or not requested <= {*allowed}:
        raise InvalidInput(f"a token of this role can have {', '.join(allowed)}")
    # Proposing and deciding need reading.
    return tuple(sorted(requested | {"read"}))
