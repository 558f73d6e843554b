"""The verbs of the journal: commits, differences, rollback, and checks."""

from __future__ import annotations

from typing import Annotated

from keepward.core.journal import CommitView, Difference, Rollback, Verification
from keepward.verbs import Judged, Limit, Request, Wire, fields, verb


@verb("log", "GET /memory/commits", right="read", answer="items")
class Log(Request[list[CommitView]]):
    """Return commits within reach, newest first."""

    function = "services.provenance:log"
    limit: fields.Most = 50
    before: Annotated[int, Limit("Older than this number.", minimum=1, maximum=2**53)] | None = None
    actor: Annotated[fields.Word, Limit("Who made or approved it: `kind:name`, or a name alone.")] | None = None
    kind: Annotated[str, Limit("Such as `write`, `approve` or `rollback`.", pattern=r"^[a-z_]{1,32}$")] | None = None
    until: fields.AsOf | None = None


@verb("show", "GET /memory/commits/{commit_id}", right="read")
class Show(Request[CommitView]):
    """Return one commit: who, when, why, and each memory before and after."""

    function = "services.provenance:show"
    commit: Annotated[fields.CommitName, Wire("commit_id")]


@verb("diff", "GET /memory/diff", right="read", answer="items")
class Diff(Request[list[Difference]]):
    """Return the memories that differ between the states after two commits; `0` is the empty store."""

    function = "services.provenance:diff"
    earlier: Annotated[str, Limit("As for `as_of`.", minLength=1, maxLength=64), Judged(pattern=fields.AS_OF_PATTERN)]
    later: fields.AsOf | None = None


@verb("rollback", "POST /memory/rollback/{commit_id}", right="propose")
class RollBack(Request[Rollback]):
    """Undo one commit exactly; a second call changes nothing and gives the first receipt.

    `If-Match` carries the head's ETag (the header of `/memory/status` and of `/memory/commits`); a dry run needs
    none. Where later commits touched the same memories the answer is 409 with all the keys of the result: nothing was
    changed.
    """

    function = "services.rollback:roll_back"
    commit: Annotated[fields.CommitName, Wire("commit_id")]
    with_later: Annotated[bool, Limit("Undo later commits on the same memories as well.")] = False
    dry_run: Annotated[bool, Limit("Say what would happen and change nothing.")] = False
    reason: Annotated[str, Limit("Why.", maxLength=900)] = ""


@verb("verify", "POST /memory/verify", right="read", group="upkeep")
class Verify(Request[Verification]):
    """Check the chain, every seal, every projection and the anchor; a fault is an answer and not an error."""

    function = "services.status:verify"


@verb("rebuild", "POST /memory/rebuild", right="owner", answer="records", group="upkeep")
class Rebuild(Request[int]):
    """Compute the tenant's records anew from the journal; for the owner alone."""

    function = "services.index:rebuild"
    owner = "rebuilding"


@verb("reindex", "POST /memory/reindex", right="owner", answer="indexed", group="upkeep")
class Reindex(Request[int]):
    """Compute terms and vectors anew where they are missing or of another embedder; for the owner alone."""

    function = "services.index:reindex"
    owner = "reindexing"


@verb("tenants", "GET /memory/tenants", right="owner", answer="items", group="upkeep")
class Tenants(Request[list[str]]):
    """Return the names of all tenants with memories; for the owner alone."""

    function = "services.status:tenants"
    owner = "listing tenants"
