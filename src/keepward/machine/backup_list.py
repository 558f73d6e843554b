"""The backups of a store that this machine has listed: when each was made, where it is, and what it contains."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from keepward.core.serialization import tenant_digest
from keepward.core.value import from_micros
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext

#: Another backup is due if the newest is older than this and lacks commits.
DUE_AFTER = timedelta(days=7)
#: At most so many listed backups, newest first, are sought on the disk.
_MAX_SOUGHT = 20


def backup_status(context: RequestContext, commits: int) -> dict[str, Any]:
    """Return what ``status`` reports of the newest backup that exists, as JSON values; the handle sees ``commits``.

    ``state`` is ``fresh``, ``due``, ``none``, or ``unknown`` where `keepward backup` makes none: for a database, in
    memory, or without a list. A backup counts only if it is of this store, which has the commit that it ends with. Its
    journal was verified when it was made. Only the owner sees ``path``.
    """
    found: dict[str, Any] = {"state": "unknown", "at": None, "path": None, "commits": 0, "missing": 0}
    address, listed = context.engine.path, context.engine.erasures
    if listed is None or address == ":memory:" or context.store.foreign is not None or "://" in address:
        return found
    try:
        entries = listed.entries()
    except OSError:
        return found
    # A restored store lists the backup that it came from without heads.
    own = [
        entry
        for entry in entries
        if (entry.get("entry"), entry.get("store")) == ("backup", context.store.store_id) and entry.get("heads")
    ]
    for entry in sorted(own, key=lambda entry: -int(entry["at"]))[:_MAX_SOUGHT]:
        covered = _commits_in(context, entry)
        if covered is None:
            continue
        if not _exists(entry["path"]):
            found["missing"] += 1
            continue
        at, covered = from_micros(entry["at"]), VisibleReader(context).commits_until(covered)
        late = covered < commits and context.clock.now() - at > DUE_AFTER
        path = entry["path"] if context.actor.is_owner else None
        return {**found, "state": "due" if late else "fresh", "at": at.isoformat(), "path": path, "commits": covered}
    first = context.store.commit_stamp(context.tenant, 1)
    late = first is not None and context.clock.now() - first[1] > DUE_AFTER
    return {**found, "state": "due" if late else "none"}


def _commits_in(context: RequestContext, entry: dict[str, Any]) -> int | None:
    """Return how many commits of the tenant a backup has; None if it ends with a commit of another journal."""
    named = entry["heads"].get(tenant_digest(context.tenant))
    if named is None:
        return 0
    seq = int(str(named).partition(":")[0])
    stamp = context.store.commit_stamp(context.tenant, seq)
    return seq if stamp is not None and stamp[0].name == named else None


def _exists(path: str) -> bool:
    with suppress(OSError):
        return Path(path).is_file()
    return False
