"""What copying, rescuing, accepting and restoring a store gives."""

from __future__ import annotations

from msgspec import field

from keepward.core.journal import Fault
from keepward.core.value import Data, Value

ADOPTION_WARNING = (
    "Accepting seals everything anew under a fresh key and forgets the heads that this machine had noted. From then "
    "on edits are noticed. An edit, or a newer end of the journal, that was lost before is not: compare the head with "
    "one that you trust, such as that of a receipt. Tombstones made on another machine refuse nothing here."
)


#: What a new store does not take over, in words.
NOT_COPIED = "receipts, tokens, the review queue, feedback, learned weights and counts of use"


class Backup(Value):
    """A copy that was made."""

    path: str
    bytes: int
    #: Name of the head by tenant.
    heads: dict[str, str]
    #: Whether the copy is on the list, so that later erasures reach it in place.
    listed: bool
    #: Blobs in the folder beside it, and names of those that were not copied: gone or changed, as ``verify`` says.
    blobs: int
    faulty: tuple[str, ...]


class Restored(Value):
    """A backup that was brought back."""

    path: str
    store_id: str
    #: Whether the store it was made of lives on, so that this copy is a store of its own.
    separate: bool
    heads: dict[str, str]
    #: Places whose content was erased after the backup was made, and again now.
    erased: int
    #: Blobs that came with it, and names of those that the backup has lost.
    blobs: int
    faulty: tuple[str, ...]
    #: Tokens that were revoked after the backup was made, and again now.
    revoked: int = 0
    #: What this machine cannot know of the backup; empty where it made it and has kept its lists since.
    warning: str = ""


class MigratedTenant(Value):
    """A tenant of a store that is moved."""

    tenant: str
    commits: int
    #: Name of its head, there as here.
    head: str
    #: Whether it came over now; not where it was there already, or where nothing was to be moved yet.
    carried: bool


class MigrationResult(Value):
    """A store that was moved, or that would be."""

    #: The new place; of a database without the password.
    place: str
    tenants: tuple[MigratedTenant, ...]
    #: Names the new store; None where nothing was moved yet.
    store_id: str | None = None
    blobs: int = 0


class RecoveredTenant(Value):
    """What came of one tenant."""

    tenant: str
    #: Name of the last commit that was carried over as it is.
    head: str
    #: Commits carried over as they are, and those known that are not.
    commits: int
    lost_commits: int
    #: Ids of memories brought by the commit of the rescue, in order.
    rescued: tuple[str, ...]
    #: Ids whose newest version is lost: an older one came, archived.
    outdated: tuple[str, ...]
    #: Ids of memories of which nothing holds, or whose blob is gone.
    lost: tuple[str, ...]


class RecoveryResult(Value):
    """A store that was made out of a damaged one."""

    path: str
    store_id: str
    #: Id of the damaged store; empty where it is lost.
    of: str
    #: Whether this machine had the key of the damaged store: without it, hashes alone speak for what was carried over.
    sealed: bool
    tenants: tuple[RecoveredTenant, ...]
    #: Blobs carried over, and names of those that are gone or changed.
    blobs: int
    lost_blobs: tuple[str, ...]
    #: Rows between damaged pages that were not read, by table: there were too many numbers to try.
    skipped: tuple[str, ...]
    not_carried: str = NOT_COPIED

    @property
    def whole(self) -> bool:
        """Whether every commit and every memory that is known came over."""
        return not (self.lost_blobs or self.skipped) and all(
            not (each.lost_commits or each.outdated or each.lost) for each in self.tenants
        )


class AdoptedBlock(Data):
    """A core block: what a store would tell an agent in every context."""

    tenant: str
    scope: str
    key: str | None
    text: str


class AdoptedToken(Data):
    """A token that opens a store, without its secret."""

    id: str
    name: str
    rights: str
    tenant: str
    scope: str


class AdoptionPlan(Value):
    """What would be accepted."""

    #: Names exactly this state; 64 hex digits.
    digest: str
    heads: dict[str, str]
    #: What does not hold as it stands.
    faults: tuple[Fault, ...]
    #: Whether this machine did not know the store: its tokens end when it is accepted.
    foreign: bool = False
    #: Live core blocks of every tenant, by tenant, scope and key.
    core: tuple[AdoptedBlock, ...] = ()
    #: Tokens that hold, oldest first.
    tokens: tuple[AdoptedToken, ...] = ()
    #: By tenant, of memories that are live and of proposals that wait.
    live: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    #: Memories that were erased.
    erased: int = 0
    warning: str = ADOPTION_WARNING


class ExportPlan(Data):
    """What bringing an export back would restore."""

    #: Names exactly this file and the tenant it goes to; 64 hex digits.
    digest: str
    tenant: str
    #: Name of the head that the journal ends in.
    head: str
    #: Memory versions.
    versions: int
    #: Memories that hold now.
    live: int
    #: Core blocks that hold now, by scope and key.
    core: tuple[AdoptedBlock, ...]
    blobs: int


class RestoredExport(Data):
    """An export that was brought back."""

    tenant: str
    head: str
    versions: int
    #: Plain sentences on what was done otherwise than one might expect.
    notes: tuple[str, ...]


class KeyTransfer(Value):
    """A key that was exported or imported."""

    path: str
    store_id: str
    #: Erasures and revocations that went with it.
    entries: int
    #: Whether the texts erased in the other home are refused here when they are said again.
    tombstones: bool
