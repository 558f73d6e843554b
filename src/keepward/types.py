"""JSON types, limits and descriptions of the parameters of operations.

``PARAMETERS`` gives the type of a parameter by its name in Python. If one operation differs, the key is
``operation.parameter``, such as ``recall.floor``. Any other parameter has the type of its annotation in ``api.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from keepward.core.commit import ErasureReason, ReceiptKind
from keepward.core.memory import Access, ContentType, Kind, Sensitivity, Stability, Status, Tier
from keepward.core.principals import MAX_SCOPE_DEPTH, RIGHTS, SCOPE_SEGMENT, SOURCES, TENANT_NAME, Role, Trust
from keepward.core.proposal import ProposalState
from keepward.core.query import MAX_HITS, Order, Purpose


def gate_limit(doc: str = "", **schema: Any) -> Meta:
    """Return limits as JSON Schema keywords. The schema documents them and a gate checks them, so that a refusal has
    reasons and a receipt.
    """
    return Meta(description=doc or None, extra_json_schema=schema)


def request_limit(in_python: Mapping[str, Any] | None = None, **limits: Any) -> Meta:
    """Return limits of one HTTP request, such as a page. In Python, an argument has those of ``in_python`` instead."""
    return Meta(**limits, extra=dict(in_python or {}))


#: What a number is, where its limits would say nothing: errors say this instead.
COMMIT_NUMBER, VERSION_NUMBER = "the number of a commit, such as 120", "the number of a version, such as 3"


class Alias(NamedTuple):
    """The name of a parameter in JSON and in a query, if it differs from that in Python."""

    name: str


class Local:
    """Marks a parameter that is not sent to a server, such as a callback."""


class RequiredInJson:
    """Marks a parameter that is optional in Python and required in JSON."""


#: Maximum number of items, changes or ids in one request, and of proposals decided in one request.
MAX_ITEMS = 500
MAX_DECISIONS = 200
#: Maximum length of a query, and of a page.
MAX_QUERY_LENGTH = 32_768
MAX_PAGE_SIZE = 500

_LINE_PATTERN = r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
# A path without a first slash lies below /agents, so it has one segment less.
SCOPE_PATTERN = (
    rf"^(/|/{SCOPE_SEGMENT}(/{SCOPE_SEGMENT}){{0,{MAX_SCOPE_DEPTH - 1}}}/?"
    rf"|{SCOPE_SEGMENT}(/{SCOPE_SEGMENT}){{0,{MAX_SCOPE_DEPTH - 2}}}/?)$"
)
TTL_PATTERN = r"^([1-9][0-9]{0,8}s|[1-9][0-9]{0,6}m|[1-9][0-9]{0,4}h|[1-9][0-9]{0,3}d|[1-9][0-9]{0,2}w)$"
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
#: A UUIDv7, the id of a new memory.
NEW_ID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
#: A number, the name of a head, the id of a commit, or an instant. A prefix of an id is also accepted.
AS_OF_PATTERN = rf"^(0|[1-9][0-9]{{0,14}}|[0-9]{{1,15}}:[0-9a-f]{{16}}|{_ID}|{_DAY}(T{_TIME})?)$"
TTL_OR_DATE_PATTERN = rf"({TTL_PATTERN}|^{_DAY}(T{_TIME})?$)"
_AS_OF = "A commit's number or id, the name of a head, or an ISO 8601 instant; `0` is the empty store."
#: The names of each field with a closed set of them.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "tier": tuple(Tier),
    "kind": tuple(Kind),
    "content_type": tuple(ContentType),
    "source": tuple(SOURCES),
    "stability": tuple(Stability),
    "sensitivity": tuple(Sensitivity),
    "access": tuple(Access),
}


def _name_in(names: Iterable[str]) -> Any:
    """Return the type of one name of a closed set."""
    return Literal[tuple(str(name) for name in names)]


def _list_of(names: Iterable[str], *notes: Any) -> Any:
    """Return the type of a list of names of a closed set."""
    return Annotated[(list[_name_in(names)], *notes)]  # type: ignore[misc]


def one_of(field: str, doc: str = "") -> Meta:
    """Return the limit to the names of a field."""
    return gate_limit(doc, enum=[str(name) for name in CHOICES[field]])


def _described(kind: Any, doc: str) -> Any:
    """Return a type with a description."""
    return Annotated[kind, Meta(description=doc)]


# --- fields of writes, checked by gates

ShortText = Annotated[str, gate_limit(minLength=1, maxLength=256, pattern=_LINE_PATTERN)]
Text = Annotated[str, gate_limit("Text of the memory.", minLength=1, pattern=r"\S")]
#: An optional reason.
ReasonText = Annotated[str, gate_limit("Why; it is stored in the journal.", maxLength=1000)]
Scope = Annotated[
    str,
    gate_limit(
        "A path such as `/agents/orion`, an agent's name, or `shared`. Default: that of the handle.",
        pattern=SCOPE_PATTERN,
        examples=["/agents/orion"],
    ),
]
Seconds = Annotated[int | float, gate_limit(exclusiveMinimum=0, maximum=3_155_760_000)]
Ttl = Annotated[
    Annotated[str, gate_limit(pattern=TTL_PATTERN)] | Seconds,
    gate_limit("Time to live from now: text such as `90s`, `24h` or `30d`, or a number of seconds."),
]
TtlOrDate = Annotated[str, Meta(max_length=64), gate_limit(pattern=TTL_OR_DATE_PATTERN)] | Seconds


def _instant(doc: str) -> Any:
    """Return the type of an instant with a description."""
    return Annotated[str, gate_limit(doc, format="date-time")]


Instant = _instant("When it happened, as ISO 8601; without an offset it is UTC.")
Fraction = Annotated[float, gate_limit(minimum=0, maximum=1)]
Tags = Annotated[list[ShortText], gate_limit(maxItems=64)]
References = Annotated[
    list[Annotated[str, gate_limit(minLength=1, maxLength=512, pattern=r"\S")]], gate_limit(maxItems=64)
]
TierName = Annotated[str, one_of("tier")]
KindName = Annotated[str, one_of("kind")]
SourceName = Annotated[
    str,
    one_of(
        "source",
        "Where the text comes from, such as `user_message`, `document` or `web`. It can lower trust, never raise it; "
        "without a new text, only the owner changes it.",
    ),
]
SensitivityName = Annotated[str, one_of("sensitivity", "`normal` or `sensitive`.")]

# --- parameters of other operations, checked before they run

Id = Annotated[str, Meta(description="Id or alias of a memory.", min_length=1, max_length=300)]
Ids = Annotated[list[Id], request_limit(min_length=1, max_length=MAX_ITEMS)]
#: A name; in a path it has no slash.
Name = Annotated[str, Meta(min_length=1, max_length=300), request_limit(pattern=r"^[^/\x00-\x1f\x7f]+$")]
#: A name in a path, ``id`` in JSON.
NamedId = Annotated[Name, Alias("id")]
MemoryId = _described(NamedId, "A memory's id, the first 8 or more characters of it, an alias, or its key.")
CommitName = Annotated[
    str,
    Meta(
        description="A commit's number or id, or the first characters of its id.",
        min_length=1,
        max_length=64,
        pattern=r"^[0-9A-Za-z-]+$",
    ),
]
ParsedReasonText = Annotated[
    str, Meta(description="Why; it is stored in the journal.", min_length=1, max_length=1000, pattern=r"\S")
]
#: A name of the caller's own, such as a subject.
Line = Annotated[str, Meta(min_length=1, max_length=256, pattern=_LINE_PATTERN)]
Question = Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_LENGTH, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
Digest = Annotated[str, Meta(description="64 hex digits.", pattern=r"^[0-9a-f]{64}$")]
BranchName = Annotated[
    str,
    Meta(description="Name of a branch.", min_length=1, max_length=64),
    gate_limit(pattern=f"^{SCOPE_SEGMENT}$"),
]
CommitKind = Annotated[str, Meta(description="Such as `write`, `approve` or `rollback`.", pattern=r"^[a-z_]{1,32}$")]
Version = Annotated[int, Meta(title=VERSION_NUMBER, ge=0, le=2**53)]
Tokens = Annotated[int, Meta(ge=1, le=128_000)]
Threshold = Annotated[float, Meta(ge=0, le=1)]
PageSize = Annotated[
    int,
    Meta(description="Maximum number of items.", ge=1),
    request_limit({"le": 2**53}, le=MAX_PAGE_SIZE),
]
Format = Literal["markdown", "messages"]
QueueOrder = Literal["age", "danger"]
#: A state of a proposal, or ``all``.
StateFilter = Literal[ProposalState, "all"]
#: A past state: a number or text in a body, text in a query.
AsOf = Annotated[
    Annotated[int, Meta(ge=0, le=2**53)]
    | Annotated[str, Meta(min_length=1, max_length=64), gate_limit(pattern=AS_OF_PATTERN)],
    gate_limit(_AS_OF),
]
OneTier: Any = _name_in(Tier)
ANY_OF_16, ANY_OF_64 = (Meta(description="Only with one of these.", max_length=most) for most in (16, 64))
Lines = Annotated[list[Line], ANY_OF_64]
Tiers: Any = _list_of(Tier, ANY_OF_16, Alias("tier"))
Kinds: Any = _list_of(Kind, ANY_OF_16, Alias("kind"))
ContentTypes: Any = _list_of(ContentType, ANY_OF_16, Alias("content_type"))

# --- further filters of lists

Scopes = Annotated[list[Line], Meta(description="Only in one of these, as exact paths.", max_length=64), Alias("scope")]
Sources: Any = _list_of(SOURCES, ANY_OF_64, Alias("source"))
Trusts: Any = _list_of((trust.label for trust in Trust), ANY_OF_16, Alias("trust"))
Statuses: Any = _list_of(
    Status, Meta(description="Only with one of these. Default: active memories.", max_length=16), Alias("status")
)
Authors = Annotated[
    list[
        Annotated[
            str,
            Meta(description="As `kind:name`.", min_length=3, max_length=256, pattern=r"^[a-z]+:[^\x00-\x1f\x7f]+$"),
        ]
    ],
    Meta(description="Only by one of these, as `kind:name`.", max_length=64),
    Alias("author"),
]
Substring = Annotated[str, Meta(description="Part of the text or key; case is ignored.", min_length=1, max_length=1000)]
NamePart = Annotated[
    str,
    Meta(description="Only names that contain this; case is ignored.", min_length=1, max_length=1000, pattern=r"\S"),
]
Timestamp = Annotated[
    str,
    Meta(description="ISO 8601; without an offset it is UTC.", min_length=1, max_length=64),
    gate_limit(pattern=rf"^{_DAY}(T{_TIME})?$"),
]
Where = Annotated[
    str,
    Meta(
        description="A JSON object of conditions on the metadata, by path: "
        '`{"stars": {"$gte": 4}}`; operators are $eq $ne $in $nin $gt $gte $lt $lte $exists.',
        min_length=2,
        max_length=MAX_QUERY_LENGTH,
    ),
]
ScopeSubtree = Annotated[
    str,
    Meta(description="Only this scope and the scopes below it that you may see.", min_length=1, max_length=512),
    gate_limit(pattern=SCOPE_PATTERN),
]
Facet = Literal[
    "tier", "kind", "scope", "source", "trust", "status", "author", "session", "subject", "category", "content_type",
    "tag",
]  # fmt: skip
#: Series of an activity.
SeriesName = Literal["author", "source", "session", "tier", "kind", "scope"]
Sort = Literal["created", "changed", "importance", "confidence", "trust", "tier", "kind", "scope", "source", "author"]
#: Types of the fields of a memory. ``core.change`` defines the fields of each change and their defaults.
FIELDS: Mapping[str, Any] = {
    "id": Id,
    "text": Text,
    "tier": _described(TierName, "`core`, `working`, `episodic` or `archival`. Default: by kind, else `archival`.")
    | None,
    "kind": _described(KindName, "`rule`, `fact`, `state`, `event`, `summary` or `document`. Default: by tier.") | None,
    "key": _described(ShortText, "A stable name, such as `deploy.port`; a write with a known key updates that memory.")
    | None,
    "scope": Scope | None,
    "subject": _described(ShortText, "Who or what it is about.") | None,
    "category": _described(ShortText, "A label of your own.") | None,
    "tags": _described(Tags, "Labels of your own; new ones replace the old."),
    "content_type": Annotated[str, one_of("content_type", "What its blob has, such as `image`.")],
    "blob": Annotated[
        str, gate_limit("The bytes that the text describes: the `ref` from `put_blob`, or `POST /memory/blobs`.")
    ]
    | None,
    "metadata": _described(dict[str, Any], "A JSON object of your own.") | None,
    "source": SourceName | None,
    "evidence": _described(
        References,
        "References that support it, such as `chat:42`. A check compares `file:PATH#NAME`, `git:REVISION:PATH`, "
        "`url:ADDRESS` and `memory:ID` with what they say now.",
    ),
    "derived_from": _described(References, "Ids of the memories that it was made from."),
    "confidence": _described(Fraction, "How likely it is true, from 0 to 1. Default: by source.") | None,
    "importance": _described(Fraction, "How useful it is, from 0 to 1. Default: by source.") | None,
    "ttl": Ttl | None,
    "stability": Annotated[str, one_of("stability", "`volatile`, `stable` or `permanent`. Default: by kind and tier.")]
    | None,
    "sensitivity": SensitivityName | None,
    "access": Annotated[
        str,
        one_of("access", "Who may change it without approval: `read_only`, `approval`, `append` or `read_write`."),
    ]
    | None,
    "session": _described(ShortText, "The session it comes from.") | None,
    "speaker": _described(ShortText, "Who said it.") | None,
    "job": _described(ShortText, "The job that wrote it.") | None,
    "aliases": _described(Tags, "Its ids in other systems."),
    "occurred_at": Instant | None,
    "valid_from": _instant("When what it says begins to be so. Before that, reads leave it out.") | None,
    "valid_until": _instant("From when on it is no longer so; then reads leave it out.") | None,
    "consent": Annotated[
        bool, gate_limit("The person agreed to storing the personal identifiers in the text; it becomes sensitive.")
    ],
    "vector": Annotated[
        list[float],
        Meta(description="An embedding made with this store's model; requires the owner.", max_length=8192),
    ]
    | None,
    "if_version": _described(Version, "Change it only if this is still its newest version.") | None,
    "by": _described(Id, "The memory that replaces it: its id, the first characters of it, or its key."),
    "gain": _described(Fraction, "Added to the importance, up to 1; 0.2 raises 0.6 to 0.8."),
    "confirms": bool,
}

_LISTED = Annotated[list[Any], request_limit(min_length=1, max_length=MAX_ITEMS)]


def _word(doc: str) -> Any:
    return Annotated[Line, Meta(description=doc)]


def _line(most: int) -> Any:
    return Annotated[str, Meta(min_length=1, max_length=most, pattern=_LINE_PATTERN)]


#: Types of all other parameters, by name or by operation and name.
PARAMETERS: Mapping[str, Any] = {
    # Filters of lists and searches.
    "query": _described(Question, "What to search for."),
    "purpose": _described(Purpose, "What the result is used for: `act` and `core` trust fewer sources than `answer`."),
    "include_sensitive": _described(bool, "Include sensitive memories."),
    "include_ended": _described(bool, "Include retired, archived, superseded and expired memories."),
    "recall.order": _described(Order, "`learned`: by the trained reranker, if one is in use; `fused`; or `cosine`."),
    **dict.fromkeys(
        ("context.format", "snapshot.format", "memory_block.format"),
        _described(Format, "`markdown`, or `messages` for a chat API."),
    ),
    "limit": PageSize,
    "recall.limit": Annotated[
        int,
        Meta(description="Maximum number of hits.", ge=1),
        request_limit({"le": MAX_HITS}, le=MAX_PAGE_SIZE),
    ],
    "tiers": Tiers,
    "kinds": Kinds,
    "tags": Lines,
    "content_types": ContentTypes,
    "subject": _described(Line, "Only about this subject."),
    "category": _described(Line, "Only of this category."),
    "session": _described(Line, "Only of this session."),
    "key": _described(Line, "Only under this key."),
    "job": _described(Line, "Only of this job."),
    "min_importance": _described(Threshold, "Only memories of at least this importance."),
    "as_of": AsOf,
    "since": Annotated[Timestamp, Meta(description="Written at or after this instant.")],
    "until": Annotated[Timestamp, Meta(description="Written before this instant.")],
    "occurred_since": Annotated[
        Timestamp,
        Meta(
            description="Occurred at or after this instant, by `occurred_at`. An event without it occurred when it "
            "was written; any other memory without it does not pass."
        ),
    ],
    "occurred_until": Annotated[Timestamp, Meta(description="Occurred before this instant; as `occurred_since`.")],
    "valid_at": Annotated[
        Timestamp,
        Meta(
            description="Only what holds at this instant, by `valid_from` and `valid_until`. A search without it "
            "asks for now, a list for any time."
        ),
    ],
    "within": ScopeSubtree,
    "where": Where,
    "scopes": Scopes,
    "sources": Sources,
    "trusts": Trusts,
    "statuses": Statuses,
    "authors": Authors,
    "text": Substring,
    "below": Annotated[bool, Meta(description="Also scopes below; requires a reviewer or the owner.")],
    "list_memories.sort": _described(Sort, "What to order by."),
    "list_memories.offset": Annotated[int, Meta(description="Number of items to skip.", ge=0, le=2**53)],
    "list_memories.ascending": Annotated[bool, Meta(description="Smallest or oldest first; names from z to a.")],
    "floor": _described(Threshold, "Minimum similarity, from 0 to 1."),
    "recall.query": Annotated[Question, Meta(description="What to search for."), RequiredInJson],
    "recall.vector": Annotated[list[float], Local],
    "recall.floor": Annotated[
        Threshold,
        Meta(description="Minimum score of a hit; without it all hits are returned, weak ones marked."),
    ],
    "recall.receipt": Annotated[bool, Meta(description="Store a receipt for `feedback`.")],
    "facets.of": Annotated[list[Facet], Meta(description="Facets to count. Default: all.", max_length=16)],
    "facets.name": NamePart,
    "sources.name": NamePart,
    "users.name": NamePart,
    "projects.name": NamePart,
    "facets.most": Annotated[int, Meta(description="Maximum number of values listed for a facet.", ge=1, le=100_000)],
    "news.since": Annotated[Timestamp, Meta(description="Beginning of the period.")],
    "news.most": Annotated[int, Meta(description="Maximum number of the newest of each.", ge=1, le=50)],
    "activity.days": Annotated[int, Meta(description="Number of days, up to `until` or today.", ge=1, le=400)],
    "activity.by": _described(SeriesName, "`author`, `source`, `session`, `tier`, `kind` or `scope`."),
    "activity.zone": Annotated[
        int, Meta(description="Time zone of the days, in minutes east of UTC.", ge=-1439, le=1439)
    ],
    # Ids and names.
    "memory_id": MemoryId,
    "proposal_id": _described(NamedId, "Id of a proposal."),
    "receipt_id": _described(NamedId, "Id of a receipt."),
    "token_id": _described(NamedId, "Id of a token."),
    "blame.name": _described(Name, "A memory's id, alias or key."),
    "export_subject.name": _described(Name, "A person, agent or project, such as `olga brandt` or `agent:planner`."),
    "certificate.name": _described(Name, "Id of an erased memory, or of the commit that erased."),
    "commit": Annotated[CommitName, Alias("commit_id")],
    "digest": _described(Digest, "Digest of what you saw, 64 hex digits."),
    # Contexts and receipts.
    "objective": Annotated[str, Meta(description="The task of the model.", max_length=MAX_QUERY_LENGTH)],
    "budget_tokens": _described(Tokens, "Maximum number of tokens. Default: by policy."),
    "without": Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=200)]],
        Meta(description="Core blocks, by key or id, that may be missing if they are invalid.", max_length=100),
    ],
    "context.summaries": Annotated[
        int, Meta(description="How many of the newest summaries to add, whatever the objective.", ge=0, le=5)
    ],
    "context.preview": Annotated[bool, Meta(description="Store no receipt, and explain every candidate.")],
    "snapshot.without": _described(Lines, "Core blocks, by key or id, that may be missing if they are invalid."),
    "memory_block.query": Annotated[
        str, Meta(description="What to search for; empty: the newest 20 memories.", max_length=MAX_QUERY_LENGTH)
    ],
    "check.contents": Annotated[
        dict[str, Annotated[str, Meta(max_length=1_000_000)]],
        Meta(description="Texts of pages by their address, to compare with what was cited."),
    ],
    "memory_block.seen": Annotated[
        list[Id],
        request_limit(
            description="Memories that the model has already read: they are left out, and the receipt lists them.",
            max_length=2_000,
        ),
    ],
    "receipts.kinds": Annotated[list[ReceiptKind], ANY_OF_16, Alias("kind")],
    "receipts.actor": _word("`kind:name`, or a name."),
    "receipts.objective": _word("Part of the objective or query; case is ignored."),
    "receipts.before": _word("Id of a receipt; only older ones are returned."),
    # Writes.
    "reason": ReasonText,
    "forget_many.reason": Annotated[str, Meta(description="Why; it is stored in the journal.", max_length=1000)],
    "reject.reason": ParsedReasonText,
    "reopen.reason": ParsedReasonText,
    "rollback.reason": Annotated[str, Meta(description="Why; it is stored in the journal.", max_length=900)],
    "plan_forget_matching.text": _described(Question, "What to forget."),
    "forget_matching.text": _described(Question, "What to forget, as in the plan."),
    "merge.text": _described(Text, "Text of the summary. Default: the texts, one on each line."),
    "move.tier": _described(TierName, "Another tier."),
    "move.scope": _described(Scope, "Another scope, such as `shared` or `/agents/orion`."),
    "move.key": _described(ShortText, "Another stable name; in core, the name of a block.") | None,
    "restore.ttl": _described(Ttl, "A new time to live, for an expired memory.") | None,
    **dict.fromkeys(
        ("remember.if_version", "merge.if_version"),
        _described(Version, "Write to the key only if this is its newest version; 0: only if the key is unused.")
        | None,
    ),
    "remember_many.items": _described(_LISTED, "Texts, or the arguments of `remember`."),
    "remember_many.mode": Annotated[
        Literal["each", "atomic"], Meta(description="`each`: every item separately; `atomic`: all or none.")
    ],
    "remember_many.reason": Annotated[str, gate_limit("Why; it is stored in the journal.")],
    "remember_many.kind": Annotated[CommitKind, Local],
    "remember_many.batch": Annotated[int, Local, Meta(ge=1, le=2**53)],
    "on_progress": Local,
    "add.messages": Annotated[
        list[Any], Meta(description="As chat APIs take them.", min_length=1, max_length=MAX_ITEMS)
    ],
    "add.session": _described(Line, "Name of the session."),
    "add.subject": _described(Line, "The user whom the conversation is about."),
    "add.extract": Annotated[bool, Meta(description="Whether to propose facts.")],
    # Checked before the operation runs: messages without text give a gate nothing to check.
    "add.reason": Annotated[str, Meta(description="Why; it is stored in the journal.", max_length=1000)],
    "update_identity.text": Annotated[Text, gate_limit("The complete new text.")],
    "merge.memory_ids": Annotated[
        list[Id],
        Meta(description="Two memories or more, of one subject, scope and sensitivity."),
        request_limit(min_length=1, max_length=64),
        Alias("ids"),
    ],
    "forget_many.memory_ids": Annotated[Ids, Meta(description="Ids of memories, or their aliases."), Alias("ids")],
    "import.session": _described(Line, "The session that they come from."),
    "import.subject": _described(Line, "Who or what they are about."),
    "propose.changes": _described(_LISTED, "Changes, in the order in which they are made."),
    "propose.session": _described(Line, "The session it belongs to."),
    "propose.kind": Annotated[CommitKind, Local],
    # Review.
    "state": _described(StateFilter, "State of the proposals, or `all`."),
    "pending.proposer": _word("As `kind:name`."),
    "pending.gate": _word("The gate that quarantined it."),
    "pending.tier": _described(OneTier, "Tier of the memory."),
    "pending.sort": _described(QueueOrder, "`age`, oldest first, or `danger`."),
    "pending.offset": Annotated[int, Meta(description="Number of proposals to skip.", ge=0, le=2**31)],
    "amend.memory": Annotated[Id, Meta(description="The memory to amend, if the proposal stores several texts.")],
    "amend.if_version": Annotated[
        int,
        Meta(
            title=VERSION_NUMBER,
            description="Version of the memory that you saw, if it has changed since the proposal.",
            ge=1,
            le=2**53,
        ),
    ],
    "amend.leave_out": Annotated[
        list[Id], Meta(description="Memories whose changes are not made.", max_length=MAX_DECISIONS)
    ],
    "approve_many.items": Annotated[
        list[Any],
        Meta(description="Ids of proposals, each perhaps with its digest."),
        request_limit(min_length=1, max_length=MAX_DECISIONS),
    ],
    "reject_many.ids": Annotated[
        list[Id], Meta(description="Ids of proposals."), request_limit(min_length=1, max_length=MAX_DECISIONS)
    ],
    "reject_many.reason": ParsedReasonText,
    **{f"{name}.name": BranchName for name in ("create_branch", "branch_changes", "merge_branch", "discard_branch")},
    "branches.closed": _described(bool, "List the branches that were discarded or expired too."),
    "branches.offset": Annotated[int, Meta(description="Number of branches to skip.", ge=0, le=2**31)],
    "branch_changes.offset": Annotated[int, Meta(description="Number of changes to skip.", ge=0, le=2**31)],
    "create_branch.reason": Annotated[str, Meta(description="What it is for.", max_length=900)],
    "create_branch.expires": _described(Ttl, "How long it is open, such as `30d`. Default: as long as a proposal."),
    "merge_branch.take": _described(
        dict[str, Literal["branch", "main"]], "By the id of a memory that both sides changed: the side that counts."
    ),
    # The journal and inquiries.
    "log.before": Annotated[
        int, Meta(title=COMMIT_NUMBER, description="Only commits with a smaller number.", ge=1, le=2**53)
    ],
    "log.actor": _word("The actor who made or approved it: `kind:name`, or a name."),
    "log.kind": CommitKind,
    "log.until": _described(AsOf, "Up to and including a commit's number or id, or an instant."),
    "diff.earlier": AsOf,
    "diff.later": AsOf,
    "diff.offset": Annotated[int, Meta(description="Number of memories to skip.", ge=0, le=2**31)],
    "rollback.with_later": Annotated[bool, Meta(description="Undo later commits on the same memories as well.")],
    "rollback.dry_run": Annotated[bool, Meta(description="Return what would happen; change nothing.")],
    "memory": _described(Id, "A memory by id or alias."),
    "source": _described(_line(512), "A source such as `web`, or a reference in the evidence."),
    "actor": _described(_line(128), "Who wrote it, such as `agent:claude` or `user:ana`."),
    **{
        f"{name}.{what}": kind
        for name in ("impact", "plan_contain", "contain")
        for what, kind in {
            "session": _described(_line(256), "The session it comes from."),
            "commit": _described(_line(64), "The commit that wrote it."),
        }.items()
    },
    "contain.reason": Annotated[str, Meta(description="Why; it is stored in the journal.", max_length=900)],
    "contradictions.limit": Annotated[int, Meta(description="Maximum number of pairs.", ge=1, le=100)],
    "bisect.query": _described(Question, "The query of the contexts; a test has its own."),
    "bisect.contains": _described(Question, "The text to search for in the context."),
    "bisect.test": _described(dict[str, Any], "A test that fails now, as for `run_tests`."),
    "bisect.since": Annotated[
        int,
        Meta(
            title=COMMIT_NUMBER,
            description="A commit before the change, such as one whose context lacks the text.",
            ge=0,
            le=2**53,
        ),
    ],
    "run_tests.tests": _described(
        _LISTED, 'Tests, each such as `{"objective": "Where do we deploy?", "contains": "db-7"}`.'
    ),
    "run_tests.label": _described(Line, "What ran, such as the name of a file."),
    "bisect.predicate": Local,
    "context_diff.first": _described(NamedId, "Receipt of a compiled context."),
    "context_diff.second": Annotated[Name, Meta(description="Receipt of a compiled context."), Alias("other")],
    # Erasing and maintenance.
    "ids": Annotated[
        list[Id], Meta(description="Ids of memories, or their aliases."), request_limit(max_length=MAX_ITEMS)
    ],
    **{
        f"{name}.{what}": kind
        for name in ("plan_erase", "erase")
        for what, kind in {
            "subject": _described(Line, "Every memory about this subject."),
            "source": _described(_line(512), "Every memory from this source, reference or alias."),
            "reason": _described(ErasureReason, "`request`, `consent`, `retention`, `mistake`, `secret` or `other`."),
        }.items()
    },
    "include_citing": Annotated[bool, Meta(description="Also erase memories that derive from these or cite them.")],
    "feedback.receipt_id": Annotated[
        str,
        Meta(description="Receipt of a `context`, or of a `recall` that stored one.", min_length=1, max_length=64),
        Alias("receipt"),
    ],
    "feedback.used": Annotated[list[Id], request_limit(description="Memories that were used.", max_length=MAX_ITEMS)],
    "feedback.ignored": Annotated[
        list[Id], request_limit(description="Memories that were not used.", max_length=MAX_ITEMS)
    ],
    "run_jobs.name": Annotated[
        str,
        RequiredInJson,
        Meta(
            description="Name of a job; `due` for all due jobs.", min_length=1, max_length=64, pattern=r"^[a-z][a-z_]*$"
        ),
    ],
    "run_jobs.force": Annotated[bool, Meta(description="Run it even if it is not due.")],
    "create_token.name": Annotated[
        str,
        gate_limit("Name of the actor, as in receipts.", minLength=1, maxLength=64, pattern=r"^[!-~]([ -~]*[!-~])?$"),
    ],
    "create_token.rights": _described(_name_in(Role), "`agent`, `reviewer` or `owner`."),
    "create_token.can": _list_of(
        RIGHTS, gate_limit("Limited to the rights of the role; an owner has all rights.", minItems=1)
    ),
    "create_token.tenant": Annotated[str, gate_limit("Default: that of the handle.", pattern=f"^{TENANT_NAME}$")],
    "create_token.scope": Scope,
    "create_token.expires": _described(
        TtlOrDate, "When it expires: an instant, a duration such as `30d`, or seconds from now."
    ),
    "put_blob.data": _described(bytes, "1 byte to 32 MB."),
    "put_blob.media_type": _described(str, "Type of the bytes. Default: found in the bytes."),
    "read_blob.ref": _described(str, "The `ref` of a blob."),
}
