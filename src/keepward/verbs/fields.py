"""The types of arguments on the wire: their limits, and what surfaces say of them. Each is said here and nowhere else.

``Limit`` is refused at the edge; what is ``Judged`` stands in the schema and is judged by a gate, which refuses with
reasons and a receipt. Both use the words of JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from keepward.core.memory import Access, ContentType, Kind, Sensitivity, Stability, Tier
from keepward.core.trust import SOURCES
from keepward.verbs import Judged, Limit, Wire

#: Most items, changes or ids in one call; most proposals decided, and most memories named, in one.
MOST = 500
MANY = 200
#: Most bytes of a question, and most items of one page.
LONG = 20_000
PAGE = 500

_LINE = {"minLength": 1, "maxLength": 256, "pattern": r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"}
_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"
SCOPE_PATTERN = rf"^(/|/?{_SEGMENT}(/{_SEGMENT}){{0,5}})$"
TTL_PATTERN = r"^([1-9][0-9]{0,8}s|[1-9][0-9]{0,6}m|[1-9][0-9]{0,4}h|[1-9][0-9]{0,3}d|[1-9][0-9]{0,2}w)$"
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
#: A UUIDv7, as new memories have.
NEW_ID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
#: A number, the name of a head, the id of a commit, or an instant. More is taken, such as the first letters of an id.
AS_OF_PATTERN = rf"^(0|[1-9][0-9]{{0,14}}|[0-9]{{1,15}}:[0-9a-f]{{16}}|{_ID}|{_DAY}(T{_TIME})?)$"
TERM_PATTERN = rf"({TTL_PATTERN}|^{_DAY}(T{_TIME})?$)"
_AS_OF = "A commit's number or id, the name of a head, or an ISO 8601 instant; `0` is the empty store."


#: Names that each field with a list of them takes.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "tier": tuple(Tier),
    "kind": tuple(Kind),
    "content_type": tuple(ContentType),
    "source": tuple(SOURCES),
    "stability": tuple(Stability),
    "sensitivity": tuple(Sensitivity),
    "access": tuple(Access),
}


def one_of(field: str, doc: str = "") -> Judged:
    """Return the limit to the names that a field takes."""
    return Judged(doc, enum=[str(each) for each in CHOICES[field]])


# --- what writes carry: judged

Line = Annotated[str, Judged(**_LINE)]
Text = Annotated[str, Judged("What is remembered.", minLength=1, pattern=r"\S")]
Why = Annotated[
    str, Judged("Why; it stands in the journal and on the receipt.", minLength=1, maxLength=1000, pattern=r"\S")
]
#: The same where it may be left out.
Because = Annotated[str, Judged("Why.", maxLength=1000)]
Scope = Annotated[str, Judged("`/`, an agent's name, or a path.", pattern=SCOPE_PATTERN, examples=["/agents/orion"])]
Seconds = Annotated[int | float, Limit(allow_inf_nan=False), Judged(exclusiveMinimum=0, maximum=3_155_760_000)]
Ttl = Annotated[
    Annotated[str, Judged(pattern=TTL_PATTERN)] | Seconds,
    Judged("How long it holds: text such as `24h` or `30d`, or a number of seconds."),
]
Term = Annotated[str, Limit(maxLength=64), Judged(pattern=TERM_PATTERN)] | Seconds
Instant = Annotated[str, Judged("ISO 8601; without an offset it is UTC.", format="date-time")]
Share = Annotated[float, Judged(minimum=0, maximum=1)]
Tags = Annotated[list[Line], Judged(maxItems=64)]
References = Annotated[list[Annotated[str, Judged(minLength=1, maxLength=512, pattern=r"\S")]], Judged(maxItems=64)]
TierName = Annotated[str, one_of("tier")]
KindName = Annotated[str, one_of("kind")]
SourceName = Annotated[str, one_of("source", "It can lower trust and never raise it.")]
SensitivityName = Annotated[str, one_of("sensitivity")]

# --- what other calls carry: refused at the edge

Id = Annotated[str, Limit("Id or alias of a memory.", minLength=1, maxLength=300)]
Ids = Annotated[list[Id], Limit(minItems=1, maxItems=MOST)]
#: A name in a path.
Name = Annotated[str, Limit(minLength=1, maxLength=300, pattern=r"^[^/\x00-\x1f\x7f]+$")]
#: The same, called ``id`` on the wire.
NamedId = Annotated[Name, Wire("id")]
Key = Annotated[
    str, Limit(minLength=1, maxLength=256, pattern=r"^[^/\x00-\x1f\x7f]*[^/\s\x00-\x1f\x7f][^/\x00-\x1f\x7f]*$")
]
CommitName = Annotated[
    str, Limit("Number, id or first letters.", minLength=1, maxLength=64, pattern=r"^[0-9A-Za-z-]+$")
]
ReadLine = Annotated[str, Limit(minLength=1, maxLength=256, pattern=_LINE["pattern"])]
ReadWhy = Annotated[str, Limit("Why.", minLength=1, maxLength=1000, pattern=r"\S")]
#: A text in a query.
Word = Annotated[str, Limit(minLength=1, maxLength=256, pattern=r"^[^\x00-\x1f\x7f]+$")]
Question = Annotated[str, Limit(minLength=1, maxLength=LONG, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
Asked = Annotated[str, Limit(minLength=1, maxLength=LONG)]
Digest = Annotated[str, Limit("64 hex digits.", pattern=r"^[0-9a-f]{64}$")]
Version = Annotated[int, Limit(minimum=0, maximum=2**53)]
Tokens = Annotated[int, Limit(minimum=1, maximum=128_000)]
Floor = Annotated[float, Limit(minimum=0, maximum=1)]
Most = Annotated[int, Limit("Most items on this page.", minimum=1, maximum=PAGE)]
Format = Literal["markdown", "messages"]
State = Literal["pending", "approved", "rejected", "expired", "stale", "all"]
#: A moment of the past: in a body a number or text, in a query text.
AsOf = Annotated[
    Annotated[int, Limit(minimum=0, maximum=2**53)]
    | Annotated[str, Limit(minLength=1, maxLength=64), Judged(pattern=AS_OF_PATTERN)],
    Judged(_AS_OF),
]
OneTier = Literal["core", "working", "episodic", "archival"]
ANY, ANY_OF_MANY = (Limit("Any of them.", maxItems=most) for most in (16, 64))
Words = Annotated[list[Word], ANY_OF_MANY]
Tiers = Annotated[list[OneTier], ANY, Wire("tier")]
Kinds = Annotated[list[Literal["identity", "rule", "fact", "state", "event", "summary", "document"]], ANY, Wire("kind")]
ContentTypes = Annotated[
    list[Literal["text", "image", "file", "audio", "video", "structured"]], ANY, Wire("content_type")
]

# --- what browsing takes beside

Scopes = Annotated[list[Word], Limit("Any of them, as exact paths.", maxItems=64), Wire("scope")]
Sources = Annotated[list[Word], ANY_OF_MANY, Wire("source")]
Trusts = Annotated[
    list[Literal["unknown", "web", "import", "document", "tool", "agent", "user", "owner"]], ANY, Wire("trust")
]
Statuses = Annotated[
    list[Literal["active", "superseded", "expired", "retired", "archived", "erased"]],
    Limit("Any of them, in place of those that hold.", maxItems=16),
    Wire("status"),
]
Authors = Annotated[list[Word], Limit("Any of them, as `kind:name`.", maxItems=64), Wire("author")]
Part = Annotated[str, Limit("A part of the text or key, whatever the case.", minLength=1, maxLength=1000)]
When = Annotated[
    str,
    Limit("ISO 8601; without an offset it is UTC.", minLength=1, maxLength=64),
    Judged(pattern=rf"^{_DAY}(T{_TIME})?$"),
]
Where = Annotated[
    str,
    Limit(
        'A JSON object of conditions on the metadata, by path: `{"stars": {"$gte": 4}}`; operators are $eq $ne $in '
        "$nin $gt $gte $lt $lte $exists.",
        minLength=2,
        maxLength=LONG,
    ),
]
Within = Annotated[
    str,
    Limit("Only this scope and those below it, for who may see them.", minLength=1, maxLength=512),
    Judged(pattern=SCOPE_PATTERN),
]
Facet = Literal[
    "tier", "kind", "scope", "source", "trust", "status", "author", "session", "subject", "category", "content_type",
    "tag",
]  # fmt: skip
Sort = Literal["created", "changed", "importance", "confidence", "trust", "tier", "kind", "scope", "source", "author"]

#: Types of what a memory may be given, by name; ``core.change`` says which change takes which, and the defaults.
WIRE: Mapping[str, Any] = {
    "id": Id,
    "text": Text,
    "tier": TierName | None,
    "kind": KindName | None,
    "key": Annotated[Line, Judged("A stable name; writing to a taken one updates its holder.", **_LINE)] | None,
    "scope": Scope | None,
    "subject": Line | None,
    "category": Line | None,
    "tags": Tags,
    "content_type": Annotated[str, one_of("content_type")],
    "blob": Annotated[str, Judged("Reference of stored bytes, as `POST /memory/blobs` gave it.")] | None,
    "metadata": dict[str, Any] | None,
    "source": SourceName | None,
    "evidence": References,
    "derived_from": References,
    "confidence": Share | None,
    "importance": Share | None,
    "ttl": Ttl | None,
    "stability": Annotated[str, one_of("stability")] | None,
    "sensitivity": SensitivityName | None,
    "access": Annotated[str, one_of("access")] | None,
    "session": Line | None,
    "speaker": Line | None,
    "job": Line | None,
    "aliases": Tags,
    "occurred_at": Instant | None,
    "consent": Annotated[bool, Judged("Personal identifiers in the text were given with consent.")],
    "vector": Annotated[
        list[Annotated[float, Limit(allow_inf_nan=False)]],
        Limit("An embedding by this store's model; the owner's to give.", maxItems=8192),
    ]
    | None,
    "if_version": Version | None,
    "by": Id,
    "gain": Share,
    "confirms": bool,
}
