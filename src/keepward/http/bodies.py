"""Bodies: what calls carry, as pydantic models.

Invariants
(1) A field that is not listed is refused; a value of another JSON type is refused, never converted.
(2) What a gate judges (lengths, ranges) is told in the schema and judged by the gate, so that a write refused here
    is refused as anywhere else: with reasons and a receipt. Names of tiers and the like are the library's to know.
(3) A field that is left out is not the same as null: out leaves a memory as it is, null empties it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from keepward.model.memory import Access, ContentType, Kind, Sensitivity, Stability, Tier
from keepward.model.trust import SOURCES, parse_scope
from keepward.model.value import parse_duration, parse_instant

#: Most items, changes or ids in one call.
MOST = 500
#: Most proposals decided, and most memories named, in one call.
MANY = 200


def told(description: str = "", **schema: Any) -> Any:
    """Return a field whose limits stand in the schema and are judged by the gates (2)."""
    return Field(description=description or None, json_schema_extra=schema or None)


def _one_of(names: Any, description: str = "") -> Any:
    return told(description, enum=[str(each) for each in names])


_LINE = {"minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"}
_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"
SCOPE_PATTERN = rf"^(/|/?{_SEGMENT}(/{_SEGMENT}){{0,5}})$"
TTL_PATTERN = r"^([1-9][0-9]{0,8}s|[1-9][0-9]{0,6}m|[1-9][0-9]{0,4}h|[1-9][0-9]{0,3}d|[1-9][0-9]{0,2}w)$"

_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
#: A number, the name of a head, the id of a commit, or an instant. More is taken, such as the first letters of an id.
_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
AS_OF_PATTERN = rf"^(0|[1-9][0-9]{{0,14}}|[0-9]{{1,15}}:[0-9a-f]{{16}}|{_ID}|{_DAY}(T{_TIME})?)$"

TERM_PATTERN = rf"({TTL_PATTERN}|^{_DAY}(T{_TIME})?$)"


def _integral(value: Any) -> Any:
    # 3.0 is an integer to JSON, which has one kind of number.
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: Reads a whole number that was written with a point.
WHOLE = BeforeValidator(_integral)

Line = Annotated[str, told(**_LINE)]
#: The same where no gate is asked.
ReadLine = Annotated[str, Field(min_length=1, max_length=256, pattern=_LINE["pattern"])]
Text = Annotated[str, told("What is remembered.", minLength=1, pattern=r"\S")]
Id = Annotated[str, Field(description="Id or alias of a memory.", min_length=1, max_length=300)]
Why = Annotated[
    str, told("Why; it stands in the journal and on the receipt.", minLength=1, maxLength=1000, pattern=r"\S")
]
ReadWhy = Annotated[str, Field(description="Why.", min_length=1, max_length=1000, pattern=r"\S")]
Scope = Annotated[str, told("`/`, an agent's name, or a path.", pattern=SCOPE_PATTERN, examples=["/agents/orion"])]
Seconds = Annotated[int | float, Field(allow_inf_nan=False), told(exclusiveMinimum=0, maximum=3_155_760_000)]
Ttl = Annotated[
    Annotated[str, told(pattern=TTL_PATTERN)] | Seconds,
    told("How long it holds: text such as `24h` or `30d`, or a number of seconds."),
]
Instant = Annotated[str, told("ISO 8601; without an offset it is UTC.", format="date-time")]
Share = Annotated[float, told(minimum=0, maximum=1)]
Digest = Annotated[str, Field(description="64 hex digits.", pattern=r"^[0-9a-f]{64}$")]
Version = Annotated[int, Field(ge=0, le=2**53), WHOLE]
Tags = Annotated[list[Line], told(maxItems=64)]
Tokens = Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
Purpose = Literal["answer", "act", "core"]
Format = Literal["markdown", "xml", "messages"]
TierName = Annotated[str, _one_of(Tier)]
KindName = Annotated[str, _one_of(Kind)]
SourceName = Annotated[str, _one_of(SOURCES, "It can lower trust and never raise it.")]
SensitivityName = Annotated[str, _one_of(Sensitivity)]
References = Annotated[list[Annotated[str, told(minLength=1, maxLength=512, pattern=r"\S")]], told(maxItems=64)]
Ids = Annotated[list[Id], Field(min_length=1, max_length=MOST)]
AsOf = Annotated[
    Annotated[int, Field(ge=0, le=2**53), WHOLE]
    | Annotated[str, Field(min_length=1, max_length=64), told(pattern=AS_OF_PATTERN)],
    told("A commit's number or id, the name of a head, or an ISO 8601 instant; `0` is the empty store."),
]


class Body(BaseModel):
    """A JSON object of named fields, and no others (1)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def given(self, *without: str) -> dict[str, Any]:
        """Return the fields that were sent (3), lists as tuples, instants read, ``without`` some.

        Raises:
            InvalidInput: an instant, duration or scope that cannot be read.
        """
        sent = self.model_dump(exclude_unset=True, exclude=set(without))
        return {name: _read(name, value) for name, value in sent.items()}


def _read(name: str, value: Any) -> Any:
    match name, value:
        case "occurred_at", str():
            return parse_instant(value)
        case "scope", str():
            return parse_scope(value)
        case "ttl", str() | int() | float():
            return parse_duration(value)
        case _, list():
            return tuple(value)
    return value


class Fields(Body):
    """What a memory may be given beside its text and its name."""

    tier: TierName | None = None
    kind: KindName | None = None
    scope: Scope | None = None
    subject: Line | None = None
    category: Line | None = None
    tags: Tags = Field(default_factory=list)
    content_type: Annotated[str, _one_of(ContentType)] = "text"
    blob: Annotated[str, told("Reference of stored bytes, as `POST /memory/blobs` gave it.")] | None = None
    metadata: dict[str, Any] | None = None
    source: SourceName | None = None
    #: References that back it, such as `chat:42`.
    evidence: References = Field(default_factory=list)
    #: Ids of the memories it was made from.
    derived_from: References = Field(default_factory=list)
    confidence: Share | None = None
    importance: Share | None = None
    ttl: Ttl | None = None
    stability: Annotated[str, _one_of(Stability)] | None = None
    sensitivity: SensitivityName | None = None
    access: Annotated[str, _one_of(Access)] | None = None
    session: Line | None = None
    speaker: Line | None = None
    job: Line | None = None
    #: Ids under which other systems know it.
    aliases: Tags = Field(default_factory=list)
    occurred_at: Instant | None = None
    consent: Annotated[bool, told("Personal identifiers in the text were given with consent.")] = False
    vector: (
        Annotated[
            list[Annotated[float, Field(allow_inf_nan=False)]],
            Field(description="An embedding by this store's model; the owner's to give.", max_length=8192),
        ]
        | None
    ) = None


class Named(Fields):
    """The same, and a name."""

    key: Annotated[Line, told("A stable name; writing to a taken one updates its holder.", **_LINE)] | None = None


class NewMemory(Named):
    """A memory to be: its text and what goes with it."""

    text: Text


class Remember(NewMemory):
    """One memory to remember."""

    reason: Annotated[str, told("Why.", maxLength=1000)] = ""


def _each_judged(schema: dict[str, Any]) -> None:
    """Take out of a schema what a gate judges: one item that breaks it is refused by itself, and not the call."""
    for name, field in schema.get("properties", {}).items():
        if name not in {"scope", "ttl", "occurred_at"}:
            for each in (field, field.get("items", {}), *field.get("anyOf", ())):
                for limit in ("enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "maxItems"):
                    each.pop(limit, None)


class OneOfMany(NewMemory):
    """One of several memories to be; each is judged by itself."""

    model_config = ConfigDict(json_schema_extra=_each_judged)


class RememberMany(Body):
    """Several memories to remember."""

    items: Annotated[list[OneOfMany], Field(min_length=1, max_length=MOST)]
    mode: Annotated[
        Literal["each", "atomic"], Field(description="`each`: every item by itself; `atomic`: all or none.")
    ] = "each"
    reason: Annotated[str, told("Why.")] = ""


class Keyed(Fields):
    """The text that a key is to have; without a kind it is a state."""

    text: Text
    reason: Annotated[str, told("Why.", maxLength=1000)] = ""


def _no_defaults(schema: dict[str, Any]) -> None:
    """Take the defaults out of a schema whose fields mean nothing unless they are sent (3)."""
    for each in schema.get("properties", {}).values():
        each.pop("default", None)


class Edited(Body):
    """New text or fields; what is left out stays, null empties."""

    model_config = ConfigDict(json_schema_extra=_no_defaults)

    text: Text = ""
    category: Line | None = None
    subject: Line | None = None
    tags: Tags = Field(default_factory=list)
    metadata: dict[str, Any] | None = None
    source: SourceName | None = None
    evidence: References = Field(default_factory=list)
    confidence: Share | None = None
    importance: Share | None = None
    sensitivity: SensitivityName | None = None
    #: From now; null removes it.
    ttl: Ttl | None = None
    consent: bool = False
    if_version: Version | None = None


class Revise(Edited):
    """An edit of one memory."""

    reason: Why


class Appended(Body):
    """Text to add after a line break."""

    text: Text
    source: SourceName | None = None
    evidence: References = Field(default_factory=list)
    confidence: Share | None = None
    consent: bool = False
    if_version: Version | None = None


class AppendBody(Appended):
    """An addition to one memory."""

    reason: Why


class Moved(Body):
    """Where a memory is to be; what is left out stays, a null key takes its name away."""

    model_config = ConfigDict(json_schema_extra=_no_defaults)

    tier: TierName = ""
    scope: Scope = ""
    key: Line | None = None
    if_version: Version | None = None


class MoveBody(Moved):
    """A move of one memory."""

    reason: Why


class ArchiveBody(Body):
    """A memory that is put away."""

    reason: Why
    if_version: Version | None = None


class RestoreBody(Body):
    """A return of what had ended."""

    reason: Why
    ttl: Ttl | None = None
    if_version: Version | None = None


class ReinforceBody(Body):
    """A confirmation."""

    reason: Why = "confirmed"
    gain: Share = 0.0


class PromoteBody(Body):
    """The canonical text of lasting knowledge."""

    text: Text
    reason: Why


class SupersedeBody(Body):
    """What takes a memory's place."""

    by: Id
    reason: Why


class Merge(Named):
    """One summary in place of several memories; without a text it is theirs, one a line."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=64)]
    text: Text | None = None
    reason: Why


class ForgetMany(Body):
    """Memories that no longer hold."""

    ids: Ids
    reason: ReadWhy
