"""Results of backup, restore, migration, recovery and adoption of a store."""

from __future__ import annotations

from msgspec import field

from keepward.core.journal import Delivery, Fault, Version
from keepward.core.proposal import Proposal
from keepward.core.value import Data, Instant, Value

ADOPTION_WARNING = (
    "Adopting reseals everything with a new key and forgets the heads recorded on this machine. Later edits are "
    "detected. Earlier edits, and a lost end of the journal, are not: compare the head with one that you trust, such "
    "as that of a receipt. Tombstones from another machine have no effect here."
)

#: What a recovery does not copy into the new store, in words.
NOT_COPIED = "receipts, tokens, the review queue, feedback, learned weights and counts of use"


class Backup(Value):
    """A backup."""

    path: str
    bytes: int
    #: Name of the head by tenant.
    heads: dict[str, str]
    #: Whether the copy is on the list of backups to which later erasures are applied.
    listed: bool
    #: Number of blobs in its folder, and names of missing or changed blobs, which were not copied.
    blobs: int
    faulty: tuple[str, ...]


class Restored(Value):
    """A restored backup."""

    path: str
    store_id: str
    #: Whether the original store still exists, so that this copy got an id of its own.
    separate: bool
    heads: dict[str, str]
    #: Number of erasures after the backup that were applied again.
    erased: int
    #: Number of restored blobs, and names of those missing in the backup.
    blobs: int
    faulty: tuple[str, ...]
    #: Number of revocations after the backup that were applied again.
    revoked: int = 0
    #: What this machine cannot know about the backup; empty if this machine made it and still has its lists.
    warning: str = ""


class MigratedTenant(Value):
    """A tenant of a migrated store."""

    tenant: str
    commits: int
    #: Name of its head, equal in both stores.
    head: str
    #: Whether this run copied it. False in a plan, and if an earlier run had copied it.
    carried: bool


class MigrationResult(Value):
    """A migrated store, or the plan of a migration."""

    #: The new file, or the address of the database without the password.
    place: str
    tenants: tuple[MigratedTenant, ...]
    #: Id of the new store; None in a plan.
    store_id: str | None = None
    blobs: int = 0


class RecoveredTenant(Value):
    """What was recovered of one tenant."""

    tenant: str
    #: Name of the last restored commit, equal in both stores.
    head: str
    #: Number of commits restored unchanged, and of known commits that were lost.
    commits: int
    lost_commits: int
    #: Ids of memories that are as they were before a lost version.
    outdated: tuple[str, ...]
    #: Ids of memories of which no version was restored.
    lost: tuple[str, ...]


class RecoveryResult(Value):
    """A store recovered from a damaged one."""

    path: str
    store_id: str
    #: Id of the damaged store; empty if lost.
    of: str
    #: Whether this machine had the key of the damaged store. Without it, only hashes were checked.
    sealed: bool
    tenants: tuple[RecoveredTenant, ...]
    #: Number of copied blobs, and names of missing or changed ones.
    blobs: int
    lost_blobs: tuple[str, ...]
    #: Rows between damaged pages that were not read, by table, because the gap was too large.
    skipped: tuple[str, ...]
    not_carried: str = NOT_COPIED

    @property
    def whole(self) -> bool:
        """Whether all known commits and memories were recovered."""
        return not (self.lost_blobs or self.skipped) and all(
            not (tenant.lost_commits or tenant.outdated or tenant.lost) for tenant in self.tenants
        )


class AdoptedBlock(Data):
    """A core block that the store would add to contexts."""

    tenant: str
    scope: str
    key: str | None
    text: str


class AdoptedToken(Data):
    """A valid token of the store, without its secret."""

    id: str
    name: str
    rights: str
    tenant: str
    scope: str


class AdoptionPlan(Value):
    """What adopting a store would accept."""

    #: Identifies this state; 64 hex digits.
    digest: str
    heads: dict[str, str]
    #: Failed checks.
    faults: tuple[Fault, ...]
    #: Whether the store comes from another machine: adopting it revokes its tokens.
    foreign: bool = False
    #: Active core blocks of every tenant, by tenant, scope and key.
    core: tuple[AdoptedBlock, ...] = ()
    #: Valid tokens, oldest first.
    tokens: tuple[AdoptedToken, ...] = ()
    #: Numbers of active memories and of pending proposals, by tenant.
    live: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    #: Number of erased memories.
    erased: int = 0
    warning: str = ADOPTION_WARNING


class ExportPlan(Data):
    """What restoring an export would write."""

    #: Identifies this file and the target tenant; 64 hex digits.
    digest: str
    tenant: str
    #: Name of the last head of the journal.
    head: str
    #: Number of memory versions.
    versions: int
    #: Number of active memories.
    live: int
    #: Active core blocks, by scope and key.
    core: tuple[AdoptedBlock, ...]
    blobs: int


class RestoredExport(Data):
    """A restored export."""

    tenant: str
    head: str
    versions: int
    #: Sentences about anything unexpected.
    notes: tuple[str, ...]


class KeyTransfer(Value):
    """An exported or imported key."""

    path: str
    store_id: str
    #: Number of erasures and revocations copied with it.
    entries: int
    #: Whether texts erased on the other machine are refused here too.
    tombstones: bool


class SubjectMemory(Data):
    """A memory that is bound to a person, agent or project."""

    id: str
    #: ``about`` if it is its subject; ``own`` if it is in its scope; ``said`` if it wrote or said it; ``mentions`` if
    #: some text names it. A version is enough.
    bond: str
    #: Oldest first.
    versions: tuple[Version, ...]


class SubjectExport(Value):
    """Everything that a store has about one person, agent or project."""

    name: str
    at: Instant
    head: str
    #: By bond, in the order above, then by id; whatever their status.
    memories: tuple[SubjectMemory, ...]
    #: By it, or with one of these memories; in any state, oldest first.
    proposals: tuple[Proposal, ...]
    #: Those that contained one of these memories, oldest first.
    contexts: tuple[Delivery, ...]
    #: Sentences about what is not here.
    left_out: tuple[str, ...]
