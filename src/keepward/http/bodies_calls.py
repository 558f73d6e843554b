"""Bodies of all other calls: compiling, deciding, undoing, asking what came of something, erasing, tokens."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from keepward.http.bodies import (
    MANY,
    MOST,
    TERM_PATTERN,
    AsOf,
    Body,
    Digest,
    Format,
    Id,
    Purpose,
    ReadLine,
    ReadWhy,
    Scope,
    Seconds,
    Tokens,
    Version,
    Why,
    told,
)


class Compile(Body):
    """What a model is to be told of."""

    objective: Annotated[str, Field(description="What the model is about to do.", max_length=20_000)]
    budget_tokens: Tokens | None = None
    purpose: Purpose = "answer"
    as_of: AsOf | None = None
    format: Format = "markdown"
    include_sensitive: bool = False
    without: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(description="Core blocks, by key or id, that may be missing where they do not hold.", max_length=100),
    ] = []  # noqa: RUF012  pydantic copies it
    #: Least score of the best that is recalled; left out, the policy's own.
    floor: Annotated[float, Field(ge=0, le=1)] | None = None


class Block(Body):
    """What memories are to be relevant to."""

    query: Annotated[str, Field(min_length=1, max_length=20_000)]
    budget_tokens: Tokens | None = None
    purpose: Purpose = "answer"
    #: The least score that counts as relevant; left out, the policy's own.
    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    format: Format = "markdown"


class Approval(Body):
    """One proposal and the digest that was seen."""

    id: Id
    digest: Digest | None = None


class Approvals(Body):
    """Proposals to approve, each by the digest that was seen."""

    items: Annotated[list[Approval], Field(min_length=1, max_length=MANY)]


class Rejections(Body):
    """Proposals to reject, for one reason."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=MANY)]
    reason: ReadWhy


class Reject(Body):
    """Why a proposal is rejected; its proposer is told."""

    reason: Why


class RollBack(Body):
    """How a commit is to be undone."""

    with_later: Annotated[bool, Field(description="Undo later commits on the same memories as well.")] = False
    dry_run: Annotated[bool, Field(description="Say what would happen and change nothing.")] = False


def _named(name: str, **schema: Any) -> dict[str, Any]:
    """Return the schema of an object in which a field is given, and not as null."""
    return {"required": [name], "properties": {name: schema or {"type": "string"}}}


class Selected(Body):
    """Exactly one way to name what is meant."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [_named(way) for way in ("source", "actor", "session", "commit", "memory")]}
    )

    source: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    actor: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    session: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    commit: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    memory: Id | None = None


class Contain(Selected):
    """A plan that was seen, and what it was made of."""

    digest: Digest
    reason: Annotated[str, Field(max_length=900)] = ""


class Bisect(Body):
    """What to look for in the contexts of the past."""

    query: Annotated[str, Field(min_length=1, max_length=20_000)]
    contains: Annotated[str, Field(min_length=1, max_length=20_000)]
    since: Version = 0
    purpose: Purpose = "answer"


class PlanErase(Body):
    """What is to be destroyed: memories by id, subject or source, and a code that says why."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_named("ids", type="array", minItems=1), _named("subject"), _named("source")]}
    )

    ids: Annotated[list[Id], Field(max_length=MOST)] = Field(default_factory=list)
    subject: ReadLine | None = None
    source: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    reason: Literal["request", "consent", "retention", "mistake", "secret", "other"] = "request"


class Erase(PlanErase):
    """The plan that was seen, and what it was made of."""

    digest: Digest


class Lift(Body):
    """The erased memory whose content may be remembered again."""

    name: Id


class Adopt(Body):
    """The plan that was seen."""

    digest: Digest


class GiveFeedback(Body):
    """Which memories of a recall or context were of use, and which were not; at least one."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_named(name, type="array", minItems=1) for name in ("used", "ignored")]}
    )

    receipt: Annotated[str, Field(min_length=1, max_length=64)]
    used: Annotated[list[Id], Field(max_length=MOST)] = Field(default_factory=list)
    ignored: Annotated[list[Id], Field(max_length=MOST)] = Field(default_factory=list)


class CreateToken(Body):
    """A token to be."""

    name: Annotated[
        str, told("Its bearer, as receipts name it.", minLength=1, maxLength=64, pattern=r"^[!-~]([ -~]*[!-~])?$")
    ]
    rights: Literal["agent", "reviewer", "owner"] = "agent"
    can: (
        Annotated[
            list[Literal["read", "propose", "approve", "erase", "admin", "sensitive", "consent"]],
            told("As far as its class goes; an owner's can do everything.", minItems=1),
        ]
        | None
    ) = None
    tenant: Annotated[str, told(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._@:-]{0,127}$")] | None = None
    scope: Scope | None = None
    #: An instant, or a term such as `30d`; left out, it does not expire.
    expires: Annotated[str, Field(max_length=64), told(pattern=TERM_PATTERN)] | Seconds | None = None


class RunJob(Body):
    """How a job is to be run."""

    force: Annotated[bool, Field(description="Run it even when it is not due.")] = False
