"""Parameters of operations as JSON has them: their types, their limits, and what surfaces say of them.

``PARAMETERS`` gives the type of a parameter by its name in Python. Where one operation differs, the key is
``operation.parameter``. A parameter that is not listed has the type of its annotation in ``api.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from keepward.core.commit import ReceiptKind
from keepward.core.memory import Access, ContentType, Kind, Sensitivity, Stability, Tier
from keepward.core.principals import SOURCES


class Limit:
    """Limits in words of JSON Schema, and a description. A surface refuses a value outside of them."""

    __slots__ = ("doc", "schema")

    def __init__(self, doc: str = "", **schema: Any) -> None:
        self.doc, self.schema = doc, MappingProxyType(schema)


class GateLimit(Limit):
    """Limits that stand in the schema and are checked by a gate, so that a refusal has reasons and a receipt."""


class Alias(NamedTuple):
    """The name of a parameter in JSON and in a query, where it differs from Python's."""

    name: str


class Local:
    """Marks a parameter that stays in this process, such as a callback."""


class RequiredInJson:
    """Marks a parameter that may be left out in Python alone."""


#: Most items, changes or ids in one call; most proposals decided, and most memories named, in one.
MAX_ITEMS = 500
MAX_DECISIONS = 200
#: Most bytes of a question, and most items of one page.
MAX_QUERY_LENGTH = 20_000
MAX_PAGE_SIZE = 500

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
TTL_OR_DATE_PATTERN = rf"({TTL_PATTERN}|^{_DAY}(T{_TIME})?$)"
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


def one_of(field: str, doc: str = "") -> GateLimit:
    """Return the limit to the names that a field takes."""
    return GateLimit(doc, enum=[str(each) for each in CHOICES[field]])


# --- what writes carry: judged

ShortText = Annotated[str, GateLimit(**_LINE)]
Text = Annotated[str, GateLimit("What is remembered.", minLength=1, pattern=r"\S")]
RequiredReasonText = Annotated[
    str, GateLimit("Why; it stands in the journal and on the receipt.", minLength=1, maxLength=1000, pattern=r"\S")
]
#: The same where it may be left out.
ReasonText = Annotated[str, GateLimit("Why.", maxLength=1000)]
Scope = Annotated[str, GateLimit("`/`, an agent's name, or a path.", pattern=SCOPE_PATTERN, examples=["/agents/orion"])]
Seconds = Annotated[int | float, Limit(allow_inf_nan=False), GateLimit(exclusiveMinimum=0, maximum=3_155_760_000)]
Ttl = Annotated[
    Annotated[str, GateLimit(pattern=TTL_PATTERN)] | Seconds,
    GateLimit("How long it holds: text such as `24h` or `30d`, or a number of seconds."),
]
TtlOrDate = Annotated[str, Limit(maxLength=64), GateLimit(pattern=TTL_OR_DATE_PATTERN)] | Seconds
Instant = Annotated[str, GateLimit("ISO 8601; without an offset it is UTC.", format="date-time")]
Fraction = Annotated[float, GateLimit(minimum=0, maximum=1)]
Tags = Annotated[list[ShortText], GateLimit(maxItems=64)]
References = Annotated[
    list[Annotated[str, GateLimit(minLength=1, maxLength=512, pattern=r"\S")]], GateLimit(maxItems=64)
]
TierName = Annotated[str, one_of("tier")]
KindName = Annotated[str, one_of("kind")]
SourceName = Annotated[str, one_of("source", "It can lower trust and never raise it.")]
SensitivityName = Annotated[str, one_of("sensitivity")]

# --- what other calls carry: refused at the edge

Id = Annotated[str, Limit("Id or alias of a memory.", minLength=1, maxLength=300)]
Ids = Annotated[list[Id], Limit(minItems=1, maxItems=MAX_ITEMS)]
#: A name in a path.
Name = Annotated[str, Limit(minLength=1, maxLength=300, pattern=r"^[^/\x00-\x1f\x7f]+$")]
#: The same, called ``id`` on the wire.
NamedId = Annotated[Name, Alias("id")]
Key = Annotated[
    str, Limit(minLength=1, maxLength=256, pattern=r"^[^/\x00-\x1f\x7f]*[^/\s\x00-\x1f\x7f][^/\x00-\x1f\x7f]*$")
]
CommitName = Annotated[
    str, Limit("Number, id or first letters.", minLength=1, maxLength=64, pattern=r"^[0-9A-Za-z-]+$")
]
ParsedShortText = Annotated[str, Limit(minLength=1, maxLength=256, pattern=_LINE["pattern"])]
ParsedReasonText = Annotated[str, Limit("Why.", minLength=1, maxLength=1000, pattern=r"\S")]
#: A text in a query.
FilterText = Annotated[str, Limit(minLength=1, maxLength=256, pattern=r"^[^\x00-\x1f\x7f]+$")]
Question = Annotated[str, Limit(minLength=1, maxLength=MAX_QUERY_LENGTH, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
QueryText = Annotated[str, Limit(minLength=1, maxLength=MAX_QUERY_LENGTH)]
Digest = Annotated[str, Limit("64 hex digits.", pattern=r"^[0-9a-f]{64}$")]
Version = Annotated[int, Limit(minimum=0, maximum=2**53)]
Tokens = Annotated[int, Limit(minimum=1, maximum=128_000)]
Threshold = Annotated[float, Limit(minimum=0, maximum=1)]
PageSize = Annotated[int, Limit("Most items on this page.", minimum=1, maximum=MAX_PAGE_SIZE)]
Format = Literal["markdown", "messages"]
ProposalState = Literal["pending", "approved", "rejected", "expired", "stale", "all"]
QueueOrder = Literal["age", "danger"]
#: A moment of the past: in a body a number or text, in a query text.
AsOf = Annotated[
    Annotated[int, Limit(minimum=0, maximum=2**53)]
    | Annotated[str, Limit(minLength=1, maxLength=64), GateLimit(pattern=AS_OF_PATTERN)],
    GateLimit(_AS_OF),
]
OneTier = Literal["core", "working", "episodic", "archival"]
ANY_OF_16, ANY_OF_64 = (Limit("Any of them.", maxItems=most) for most in (16, 64))
FilterTexts = Annotated[list[FilterText], ANY_OF_64]
Tiers = Annotated[list[OneTier], ANY_OF_16, Alias("tier")]
Kinds = Annotated[
    list[Literal["identity", "rule", "fact", "state", "event", "summary", "document"]], ANY_OF_16, Alias("kind")
]
ContentTypes = Annotated[
    list[Literal["text", "image", "file", "audio", "video", "structured"]], ANY_OF_16, Alias("content_type")
]

# --- what browsing takes beside

Scopes = Annotated[list[FilterText], Limit("Any of them, as exact paths.", maxItems=64), Alias("scope")]
Sources = Annotated[list[FilterText], ANY_OF_64, Alias("source")]
Trusts = Annotated[
    list[Literal["unknown", "web", "import", "document", "tool", "agent", "user", "owner"]], ANY_OF_16, Alias("trust")
]
Statuses = Annotated[
    list[Literal["active", "superseded", "expired", "retired", "archived", "erased"]],
    Limit("Any of them, in place of those that hold.", maxItems=16),
    Alias("status"),
]
Authors = Annotated[list[FilterText], Limit("Any of them, as `kind:name`.", maxItems=64), Alias("author")]
Substring = Annotated[str, Limit("A part of the text or key, whatever the case.", minLength=1, maxLength=1000)]
Timestamp = Annotated[
    str,
    Limit("ISO 8601; without an offset it is UTC.", minLength=1, maxLength=64),
    GateLimit(pattern=rf"^{_DAY}(T{_TIME})?$"),
]
Where = Annotated[
    str,
    Limit(
        'A JSON object of conditions on the metadata, by path: `{"stars": {"$gte": 4}}`; operators are $eq $ne $in '
        "$nin $gt $gte $lt $lte $exists.",
        minLength=2,
        maxLength=MAX_QUERY_LENGTH,
    ),
]
ScopeSubtree = Annotated[
    str,
    Limit("Only this scope and those below it, for who may see them.", minLength=1, maxLength=512),
    GateLimit(pattern=SCOPE_PATTERN),
]
Facet = Literal[
    "tier", "kind", "scope", "source", "trust", "status", "author", "session", "subject", "category", "content_type",
    "tag",
]  # fmt: skip
Sort = Literal["created", "changed", "importance", "confidence", "trust", "tier", "kind", "scope", "source", "author"]

Right = Literal["read", "propose", "approve", "erase", "admin", "sensitive", "consent"]
ErasureReason = Literal["request", "consent", "retention", "mistake", "secret", "other"]

#: Types of the fields of a memory; ``core.change`` says which change takes which, and the defaults.
FIELDS: Mapping[str, Any] = {
    "id": Id,
    "text": Text,
    "tier": TierName | None,
    "kind": KindName | None,
    "key": Annotated[ShortText, GateLimit("A stable name; writing to a taken one updates its holder.", **_LINE)] | None,
    "scope": Scope | None,
    "subject": ShortText | None,
    "category": ShortText | None,
    "tags": Tags,
    "content_type": Annotated[str, one_of("content_type")],
    "blob": Annotated[str, GateLimit("Reference of stored bytes, as `POST /memory/blobs` gave it.")] | None,
    "metadata": dict[str, Any] | None,
    "source": SourceName | None,
    "evidence": References,
    "derived_from": References,
    "confidence": Fraction | None,
    "importance": Fraction | None,
    "ttl": Ttl | None,
    "stability": Annotated[str, one_of("stability")] | None,
    "sensitivity": SensitivityName | None,
    "access": Annotated[str, one_of("access")] | None,
    "session": ShortText | None,
    "speaker": ShortText | None,
    "job": ShortText | None,
    "aliases": Tags,
    "occurred_at": Instant | None,
    "consent": Annotated[bool, GateLimit("Personal identifiers in the text were given with consent.")],
    "vector": Annotated[
        list[Annotated[float, Limit(allow_inf_nan=False)]],
        Limit("An embedding by this store's model; the owner's to give.", maxItems=8192),
    ]
    | None,
    "if_version": Version | None,
    "by": Id,
    "gain": Fraction,
    "confirms": bool,
}

_LISTED = Annotated[list[Any], Limit(minItems=1, maxItems=MAX_ITEMS)]


def _word(doc: str) -> Any:
    return Annotated[FilterText, Limit(doc)]


def _line(most: int) -> Any:
    return Annotated[str, Limit(minLength=1, maxLength=most)]


#: Types of all other parameters, by name or by operation and name.
PARAMETERS: Mapping[str, Any] = {
    # What narrows a list and a search.
    "query": Question,
    "limit": PageSize,
    "tiers": Tiers,
    "kinds": Kinds,
    "tags": FilterTexts,
    "content_types": ContentTypes,
    "subject": FilterText,
    "category": FilterText,
    "session": FilterText,
    "key": FilterText,
    "job": FilterText,
    "min_importance": Threshold,
    "as_of": AsOf,
    "since": Annotated[Timestamp, Limit("Written from then on, whenever it happened.")],
    "until": Annotated[Timestamp, Limit("Written before.")],
    "occurred_since": Annotated[
        Timestamp,
        Limit(
            "What it tells happened from then on, by `occurred_at`. An event without it happened when it was written; "
            "another memory without it does not pass."
        ),
    ],
    "occurred_until": Annotated[Timestamp, Limit("What it tells happened before; as `occurred_since`.")],
    "within": ScopeSubtree,
    "where": Where,
    "scopes": Scopes,
    "sources": Sources,
    "trusts": Trusts,
    "statuses": Statuses,
    "authors": Authors,
    "text": Text,
    "below": Annotated[bool, Limit("Also scopes below, for who may decide.")],
    "find.text": Substring,
    "facets.text": Substring,
    "activity.text": Substring,
    "sources.text": Substring,
    "find.offset": Annotated[int, Limit("How many to pass over.", minimum=0, maximum=2**53)],
    "find.ascending": Annotated[bool, Limit("The least or oldest first; names from z to a.")],
    "floor": Threshold,
    "recall.floor": Annotated[
        Threshold,
        Limit("Least score of a hit; without it all are returned, weak ones marked.", minimum=0, maximum=1),
    ],
    "recall.receipt": Annotated[bool, Limit("Keep a receipt that feedback can name.")],
    "facets.of": Annotated[
        list[Facet], Limit("Facets that are counted; all of them where none is named.", maxItems=16)
    ],
    "facets.most": Annotated[int, Limit("Most values listed of a facet.", minimum=1, maximum=100_000)],
    "activity.days": Annotated[int, Limit("How many.", minimum=1, maximum=400)],
    "activity.zone": Annotated[int, Limit("Minutes east of UTC that a day begins by.", minimum=-1439, maximum=1439)],
    # Names of what there is.
    "memory_id": NamedId,
    "proposal_id": NamedId,
    "receipt_id": NamedId,
    "token_id": NamedId,
    "name": Name,
    "commit": Annotated[CommitName, Alias("commit_id")],
    "digest": Digest,
    "if_version": Version,
    # Contexts and receipts.
    "objective": Annotated[str, Limit("What the model is about to do.", maxLength=MAX_QUERY_LENGTH)],
    "budget_tokens": Tokens,
    "without": Annotated[
        list[Annotated[str, Limit(minLength=1, maxLength=200)]],
        Limit("Core blocks, by key or id, that may be missing where they do not hold.", maxItems=100),
    ],
    "context.preview": Annotated[bool, Limit("Keep no receipt, and explain every candidate.")],
    "snapshot.without": FilterTexts,
    "memory_block.query": QueryText,
    "memory_block.seen": Annotated[list[Id], Limit("Memories that the reader has already.", maxItems=2_000)],
    "identity.edition": _word("Version of one of its editions, or the first letters of it."),
    "receipts.kinds": Annotated[list[ReceiptKind], ANY_OF_16, Alias("kind")],
    "receipts.actor": _word("`kind:name`, or the name alone."),
    "receipts.objective": _word("A text that the objective or query holds, in any case."),
    "receipts.before": _word("Id of a receipt: older ones alone."),
    # Writes.
    "reason": ReasonText,
    "reject.reason": RequiredReasonText,
    "reopen.reason": RequiredReasonText,
    "rollback.reason": Annotated[str, Limit("Why.", maxLength=900)],
    "plan_forget_matching.text": Question,
    "forget_matching.text": Question,
    "update_by_key.key": Key,
    "remember_many.items": _LISTED,
    "remember_many.mode": Annotated[
        Literal["each", "atomic"], Limit("`each`: every item by itself; `atomic`: all or none.")
    ],
    "remember_many.reason": Annotated[str, GateLimit("Why.")],
    "remember_many.kind": Local,
    "remember_many.batch": Local,
    "on_progress": Local,
    "add.messages": Annotated[list[Any], Limit("As chat APIs take them.", minItems=1, maxItems=MAX_ITEMS)],
    "add.session": ParsedShortText,
    "add.subject": ParsedShortText,
    "add.extract": Annotated[bool, Limit("Whether facts are proposed.")],
    # Refused at the edge: a talk without a word has nothing for a gate to check.
    "add.reason": Annotated[str, Limit("Why.", maxLength=1000)],
    "update_identity.text": Annotated[Text, GateLimit("All that the document is to say.")],
    "merge.memory_ids": Annotated[list[Id], Limit(minItems=1, maxItems=64), Alias("ids")],
    "forget_many.memory_ids": Annotated[Ids, Alias("ids")],
    "propose.changes": _LISTED,
    "propose.session": ParsedShortText,
    "propose.kind": Local,
    # Review.
    "state": ProposalState,
    "pending.proposer": _word("As `kind:name`."),
    "pending.gate": _word("A gate that held it."),
    "pending.tier": OneTier,
    "pending.sort": QueueOrder,
    "pending.offset": Annotated[int, Limit(minimum=0, maximum=2**31)],
    "amend.memory": Annotated[Id, Limit("Which one is meant, where it would store several texts.")],
    "amend.if_version": Annotated[
        int, Limit("Version of the memory that you saw, where it has changed since it was proposed.", minimum=1)
    ],
    "amend.leave_out": Annotated[list[Id], Limit("Memories whose changes are not made.", maxItems=MAX_DECISIONS)],
    "approve_many.items": Annotated[list[Any], Limit(minItems=1, maxItems=MAX_DECISIONS)],
    "reject_many.ids": Annotated[list[Id], Limit(minItems=1, maxItems=MAX_DECISIONS)],
    "reject_many.reason": ParsedReasonText,
    # The journal and inquiries.
    "log.before": Annotated[int, Limit("Older than this number.", minimum=1, maximum=2**53)],
    "log.actor": _word("Who made or approved it: `kind:name`, or a name alone."),
    "log.kind": Annotated[str, Limit("Such as `write`, `approve` or `rollback`.", pattern=r"^[a-z_]{1,32}$")],
    "log.until": AsOf,
    "diff.earlier": Annotated[
        str, Limit("As for `as_of`.", minLength=1, maxLength=64), GateLimit(pattern=AS_OF_PATTERN)
    ],
    "diff.later": AsOf,
    "rollback.with_later": Annotated[bool, Limit("Undo later commits on the same memories as well.")],
    "rollback.dry_run": Annotated[bool, Limit("Say what would happen and change nothing.")],
    "memory": Id,
    "source": _line(512),
    "actor": _line(128),
    **{
        f"{name}.{what}": kind
        for name in ("impact", "plan_contain", "contain")
        for what, kind in {"session": _line(256), "commit": _line(64)}.items()
    },
    "contain.reason": Annotated[str, Limit(maxLength=900)],
    "bisect.query": QueryText,
    "bisect.contains": Annotated[QueryText, RequiredInJson],
    "bisect.since": Version,
    "bisect.predicate": Local,
    "context_diff.first": NamedId,
    "context_diff.second": Annotated[Name, Alias("other")],
    # Erasing and upkeep.
    "ids": Annotated[list[Id], Limit(maxItems=MAX_ITEMS)],
    "plan_erase.subject": ParsedShortText,
    "erase.subject": ParsedShortText,
    "plan_erase.reason": ErasureReason,
    "erase.reason": ErasureReason,
    "include_citing": Annotated[bool, Limit("Also take what derives from one of these or cites it.")],
    "feedback.receipt_id": Annotated[str, Limit(minLength=1, maxLength=64), Alias("receipt")],
    "feedback.used": Annotated[list[Id], Limit(maxItems=MAX_ITEMS)],
    "feedback.ignored": Annotated[list[Id], Limit(maxItems=MAX_ITEMS)],
    "run_jobs.name": Annotated[str, RequiredInJson, Limit(minLength=1, maxLength=64, pattern=r"^[a-z][a-z_]*$")],
    "run_jobs.force": Annotated[bool, Limit("Run it even when it is not due.")],
    "create_token.name": Annotated[
        str, GateLimit("Its bearer, as receipts name it.", minLength=1, maxLength=64, pattern=r"^[!-~]([ -~]*[!-~])?$")
    ],
    "create_token.rights": Literal["agent", "reviewer", "owner"],
    "create_token.can": Annotated[
        list[Right], GateLimit("As far as its class goes; an owner's can do everything.", minItems=1)
    ],
    "create_token.tenant": Annotated[str, GateLimit(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._@:-]{0,127}$")],
    "create_token.scope": Scope,
    "create_token.expires": TtlOrDate,
    "read_blob.ref": str,
}
