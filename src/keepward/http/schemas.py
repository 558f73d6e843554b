"""JSON schemas of the OpenAPI document, by name, and those of the classes of responses.

* ``schema_of_result`` describes a response: its keys are the fields of its class. A test compares each response with
  its schema.
* ``SCHEMAS`` are the schemas of the document by name, also those of bodies.
"""

from __future__ import annotations

from functools import cache
from inspect import cleandoc
from typing import Any, Literal

import msgspec

from keepward.core.branch import BranchDiff, BranchPage
from keepward.core.commit import Reason
from keepward.core.compiled import Explanation
from keepward.core.journal import Erased, Fault, Rollback
from keepward.core.json_form import HexBytes, JsonText
from keepward.core.memory import Record
from keepward.core.memory_test import NewestTestRun
from keepward.core.principals import Actor, Token, TokenState
from keepward.core.proposal import DecisionResult, Outcome, Proposal, ProposedStep
from keepward.core.query import Memories, Recall
from keepward.core.value import Data, Instant
from keepward.errors import KeepwardError
from keepward.settings import EffectiveSetting

Schema = dict[str, Any]
#: The named schemas of the document.
SCHEMAS: dict[str, Schema] = {}
#: Of these, further keys are part of the answer.
_OPEN = frozenset({"AnyReceipt", "Problem", "StatusReport"})
_REFERENCE = "#/components/schemas/"
_HEX = {"type": "string", "description": "Hex digits.", "pattern": "^([0-9a-f]{2})*$"}


def _one_of(options: list[Schema]) -> Schema:
    options = [option for number, option in enumerate(options) if option not in options[:number]]
    return {"anyOf": options} if len(options) > 1 else {} if not options else options[0]


@cache
def schema_of_result(kind: Any) -> Schema:
    """Return the JSON schema of the type of a response; add the objects in it to ``SCHEMAS``.

    A response has every key of an object, and may have more.
    """
    (schema,), parts = msgspec.json.schema_components(
        [kind], schema_hook=_schema_of_other, ref_template=_REFERENCE + "{name}"
    )
    for name, part in _without_positions(parts).items():
        if "description" in part:
            # Before Python 3.13 the lines of a docstring keep the indentation that they have in the file.
            part["description"] = cleandoc(part["description"])
        if "properties" in part:
            # A default is for those who make the value, not for those who read it.
            given = {*part["required"]} | {key for key, value in part["properties"].items() if "default" in value}
            part["required"] = [key for key, value in part["properties"].items() if key in given]
            for value in part["properties"].values():
                value.pop("default", None)
            if name in _OPEN:
                part["additionalProperties"] = True
        if SCHEMAS.setdefault(name, part) != part:
            raise ValueError(f"two schemas are named {name}")
    return schema


def _without_positions(schema: Any) -> Any:
    """Return a schema in which a tuple is a list of any of its types, which generators of clients understand."""
    if isinstance(schema, list):
        return [_without_positions(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "prefixItems" in schema:
        return {"type": "array", "items": _one_of([_without_positions(part) for part in schema["prefixItems"]])}
    return {name: _without_positions(part) for name, part in schema.items()}


def _schema_of_other(kind: Any) -> Schema:
    """Return the schema of a type that msgspec does not know."""
    if kind is HexBytes:
        return dict(_HEX)
    if kind is JsonText:
        return {"type": "object"}
    if kind is KeepwardError:
        return schema_of_result(Failure)
    # msgspec then reports the type.
    raise NotImplementedError


def page_of(item: Any, name: str, **extra: Any) -> Any:
    """Return the class of a page of a list."""
    fields = [("items", list[item]), ("cursor", str | None), *extra.items()]
    return msgspec.defstruct(name, fields, namespace={"__doc__": "One page."}, kw_only=True)


# --- responses that are not the result of an operation as it is


class Failure(Data):
    """An error inside a response."""

    code: str
    detail: str


class Reviewed(Proposal):
    """A proposal for its reviewer; `shown` has every character that would be stored."""

    shown: list[ProposedStep]


class Proposals(Data):
    """One page of the review queue, oldest first; `counts` is by proposer, gate, tier and operation."""

    items: list[Reviewed]
    offset: int
    total: int
    counts: dict[str, dict[str, int]]
    oldest_at: Instant | None
    next_offset: int | None


class Branches(BranchPage):
    """A page of branches: the open ones, oldest first; then the closed ones, newest first."""

    next_offset: int | None


class BranchChanges(BranchDiff):
    """A page of what a branch changes, conflicts first; `counts` is of all."""

    next_offset: int | None


class Found(Recall):
    """A page of the result of a query, best first."""

    cursor: str | None


class Listed(Memories):
    """A page of the memories that pass."""

    cursor: str | None


class Destroyed(Erased):
    """An applied erasure; the certificate says what was erased, what proves it, and what it cannot promise."""

    certificate: dict[str, Any]


class RolledBack(Rollback):
    """The result of a rollback or of its dry run; `etag` is its digest in quotes, as `If-Match` takes it."""

    dry_run: bool
    etag: str


class BlockState(Data):
    """A core block in numbers."""

    tokens: int
    budget: int
    id: str | None
    version: int | None


class CoreBlock(BlockState):
    """A core block. Without a memory, it is a document outside the store, whose text is not repeated here."""

    key: str
    text: str | None
    memory: Record | None


class Core(Data):
    """Core memory visible from the caller's scope: blocks in their order in a context, and memories of no block."""

    head: str
    scope: str
    withheld: list[str]
    notes: list[str]
    blocks: list[CoreBlock]
    items: list[Record]


class Approved(Data):
    """The result of each, in order."""

    results: list[DecisionResult]
    approved: int
    failed: int


class RejectedMany(Data):
    """The result of each, in order."""

    results: list[DecisionResult]
    rejected: int
    failed: int


class ShownToken(Token):
    """A token, its state, and its last use since this server started."""

    # In Python, the state is a method of a token.
    state: TokenState  # type: ignore[assignment]
    used_at: Instant | None


class IssuedToken(Data):
    """A new token with its secret, which is shown only once."""

    token: ShownToken
    secret: str


class Rebuilt(Data):
    """The number of rebuilt records."""

    records: int
    head: str


class Reindexed(Data):
    """The number of reindexed memories."""

    indexed: int


class Outcomes(Data):
    """Outcomes of several memories: with `each` one for each item, with `atomic` one for all `count` items."""

    mode: str
    count: int
    outcomes: list[Outcome]


class Forgotten(Data):
    """The outcome for the existing memories, and the ids of missing ones."""

    outcome: Outcome | None
    missing: list[str]


class AnyReceipt(Data):
    """The record of one decision; its further keys depend on `kind`. That of a context has an `explanation`,
    and that of a damaged commit a list `damage` of sentences about it.
    """

    id: str
    tenant: str
    kind: str
    actor: str
    policy: str
    head: str
    at: Instant
    reasons: list[Reason]
    explanation: Explanation | msgspec.UnsetType = msgspec.UNSET


class Queue(Data):
    """The review queue in numbers."""

    depth: int
    stuck: int
    expired: int
    oldest_at: str | None
    oldest_age_seconds: int | None


class VerificationState(Data):
    """What the newest verification covered, and whether faults were found that no later one refutes."""

    state: Literal["unverified", "intact", "damaged"]
    at: Instant | None
    by: str | None
    everywhere: bool
    commits: int
    faults: int
    damaged_since: Instant | None
    first_faults: list[Fault]


class BackupState(Data):
    """The newest backup on this machine that exists; `missing` counts newer ones that do not."""

    state: Literal["fresh", "due", "none", "unknown"]
    at: Instant | None
    path: str | None
    commits: int
    missing: int


class StatusReport(Data):
    """Counts, sizes, the queue and the use of budgets; only the owner sees `path`."""

    tenant: str
    scope: str
    #: The branch that the handle is on; null on main.
    branch: str | None
    actor: str
    head: str
    policy: str
    path: str | None
    embedder: str | None
    enabled: bool
    capture: bool
    recall: bool
    by_tier: dict[str, int]
    by_status: dict[str, int]
    live: int
    total: int
    commits: int
    actor_record: Actor
    now: Instant
    quarantine: Queue
    blocks: dict[str, BlockState]
    verification: VerificationState
    memory_tests: NewestTestRun | None
    backups: BackupState


class SettingsFile(Data):
    """The settings file read at the start of the server.

    If `accepted`, all of it is in force; if `changed`, a restart is needed.
    """

    path: str
    digest: str
    named: bool
    accepted: bool
    changed: bool
    loosens: dict[str, str]
    withheld: list[str]
    accept_with: str | None


class SettingsInForce(Data):
    """The settings in force of a server."""

    file: SettingsFile | None
    items: list[EffectiveSetting]
