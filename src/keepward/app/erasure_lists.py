"""Lists of erasures: this machine's own, and those that lie beside backups for when its own is lost.

Invariants
(1) A list beside a backup holds no content and no key: ids, places, commitments, and hashes of revoked tokens.
(2) It is written when the backup is made and after every erasure, also while the backup itself is elsewhere.
(3) What it says is carried out in what is restored, where a place has the very content that was erased.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward import durable
from keepward.errors import InvalidInput, StoreUnavailable
from keepward.model.value import from_micros, to_micros

if TYPE_CHECKING:
    from datetime import datetime

    from keepward.engine.kit import Kit

#: What stands behind the name of a backup.
END = ".erased"
#: Entries that mean something elsewhere; paths of backups do not.
CARRIED = frozenset({"erasure", "lift", "revocation"})
_FORMAT = "keepward-erasures/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the lists beside a backup say."""

    entries: tuple[dict[str, Any], ...] = ()
    #: When the newest of them was written; None where there is none.
    at: datetime | None = None


def remember(kit: Kit, entries: Sequence[dict[str, Any]]) -> None:
    """Add erasures to this machine's list, those that it does not name yet."""
    if kit.erasures is None:
        return
    known = {entry.get("commit") for entry in kit.erasures.entries()}
    kit.erasures.note([entry for entry in entries if entry["commit"] not in known])


def list_again(kit: Kit) -> None:
    """Add to this machine's list what the journal says was erased, where the list has lost it."""
    from keepward.engine import traces as certificate

    known = {entry.get("commit") for entry in kit.erasures.entries()} if kit.erasures else set()
    for tenant in kit.store.tenants():
        if known.issuperset(kit.store.erasing(tenant)):
            continue
        remember(kit, [certificate.entry(kit, commit, events) for commit, events in certificate.erasures(kit, tenant)])


def write_beside(kit: Kit, backup: Path) -> None:
    """Write the list of this store beside a backup, in place of an older one.

    Raises:
        OSError: it cannot be written.
    """
    listed = kit.erasures.entries() if kit.erasures else []
    own = {commit for tenant in kit.store.tenants() for commit in kit.store.erasing(tenant)}
    carried = [each for each in listed if each.get("entry") in CARRIED]
    mine = [each for each in carried if each.get("store") == kit.store.store_id or each.get("commit") in own]
    head = {"list": _FORMAT, "store": kit.store.store_id, "at": to_micros(kit.clock.now())}
    lines = (json.dumps(each, sort_keys=True, separators=(",", ":")) + "\n" for each in (head, *mine))
    durable.replace(_list_path(backup), "".join(lines).encode("ascii"))


def has_list(backup: Path) -> bool:
    """Whether a list lies beside a backup, be that there or not."""
    return _list_path(backup).exists()


def read_beside(backup: Path) -> Beside:
    """Return what the list of a backup says, with those of other backups in its folder, which may be newer.

    Raises:
        InvalidInput: one of them is damaged.
        StoreUnavailable: one of them cannot be read.
    """
    own = _list_path(backup)
    found: list[dict[str, Any]] = []
    times: list[int] = []
    try:
        for file in sorted(backup.parent.glob(f"*{END}")):
            lines = file.read_text("ascii", errors="replace").splitlines()
            head = _entry(lines[0]) if lines else None
            if head is None or head.get("list") != _FORMAT:
                if file == own:
                    raise _damaged(file)
                continue
            entries = [_entry(line) for line in lines[1:]]
            if not isinstance(head.get("at"), int) or not all(_is_entry(each) for each in entries):
                raise _damaged(file)
            times.append(head["at"])
            found += [each for each in entries if each is not None and each not in found]
    except OSError as fault:
        raise StoreUnavailable(f"a list of erasures beside the backup cannot be read: {fault.strerror}") from fault
    return Beside(entries=tuple(found), at=from_micros(max(times)) if times else None)


def _list_path(backup: Path) -> Path:
    return backup.with_name(backup.name + END)


def _damaged(file: Path) -> InvalidInput:
    return InvalidInput(f"{file.name} is not a list of erasures as it was written; move it away to go on without it")


def _entry(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _is_entry(entry: dict[str, Any] | None) -> bool:
    """Whether an entry has the form in which it was written."""
    if entry is None or not isinstance(entry.get("store"), str) or not isinstance(entry.get("at"), int):
        return False
    match entry.get("entry"):
        case "revocation":
            return isinstance(entry.get("hash"), str)
        case "erasure":
            named = all(isinstance(entry.get(name), str) for name in ("tenant", "commit"))
            return named and _texts(entry.get("memories")) and _places(entry.get("places"))
        case "lift":
            return isinstance(entry.get("tenant"), str) and _texts(entry.get("memories"))
        case _:
            return False


def _texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


def _places(found: Any) -> bool:
    return isinstance(found, list) and all(
        isinstance(each, list) and [type(value) for value in each] == [int, int, str] for each in found
    )
