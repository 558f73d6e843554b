"""The stored results of two verifications of a tenant: the newest one, and the newest with faults, while these hold.

They are in one document outside the journal. Every caller who may verify has its result stored, without another right.
Faults hold until a verification that checks at least as much finds none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from keepward.core.commit import Head
from keepward.core.journal import Fault
from keepward.core.value import from_micros, to_micros
from keepward.errors import KeepwardError, Tampered
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext
from keepward.storage.documents import ReceiptArtefact

#: Kind and name of the document.
VERIFICATION = ("verification", "newest")
#: Most faults that are stored; their number is stored too.
MAX_STORED_FAULTS = 50


def heads_to_verify(context: RequestContext, tenant: str | None = None) -> dict[str, Head]:
    """Return the heads that a verification begun now covers: of one tenant, or of all; none if unreadable."""
    try:
        found = context.store.heads()
    except KeepwardError:
        return {}
    return {name: head for name, head in found.items() if tenant in (None, name)}


def store_verification(
    context: RequestContext, heads: Mapping[str, Head], faults: Sequence[Fault], *, everywhere: bool
) -> str | None:
    """Store the result of a verification that began at ``heads``; return why it is not stored, or None.

    ``everywhere``: it covered all tenants and the database.
    """
    if context.store.read_only or context.store.foreign is not None:
        return "the result is not stored: this store can only be read"
    if not context.policy.enabled:
        return "the result is not stored: policy switches memory off"
    run = {
        "at": to_micros(context.clock.now()),
        "by": context.actor.label,
        "everywhere": everywhere,
        "faults": len(faults),
        "first": [[fault.check, fault.row, fault.detail] for fault in faults[:MAX_STORED_FAULTS]],
    }
    try:
        for tenant in heads.keys() | {context.tenant}:
            covered = heads[tenant].seq if tenant in heads else 0
            with context.store.write() as writer:
                found = _document(writer, tenant)
                writer.replace_artefact(
                    ReceiptArtefact(tenant, *VERIFICATION, json.dumps(_with({**run, "commits": covered}, found)))
                )
    except KeepwardError as exc:
        return f"the result could not be stored: {exc}"
    return None


def _document(reader: Any, tenant: str) -> dict[str, Any]:
    try:
        return json.loads(reader.artefact(tenant, *VERIFICATION) or "{}")  # type: ignore[no-any-return]
    except Tampered:
        return {"open": {"at": 0, "everywhere": True, "commits": 0, **_FORGED}}


#: A document that does not match its seal counts as a run with this fault.
_FORGED = {
    "faults": 1,
    "first": [["seals", "documents", "the result of the newest verification does not match its seal"]],
}


def _with(run: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return the document with one more run."""
    earlier = found.get("open")
    if run["faults"]:
        if earlier:
            widest = {
                "everywhere": run["everywhere"] or earlier["everywhere"],
                "commits": max(run["commits"], earlier["commits"]),
            }
            return {"last": run, "open": {**run, **widest, "at": earlier["at"] or run["at"]}}
        return {"last": run, "open": run}
    covers = earlier and run["everywhere"] >= earlier["everywhere"] and run["commits"] >= earlier["commits"]
    return {"last": run, "open": None if covers else earlier}


def verification_status(context: RequestContext) -> dict[str, Any]:
    """Return what ``status`` reports of verifications, as JSON values.

    ``state`` is ``damaged`` from the first fault to the next run without any over at least as much; ``intact`` if the
    newest run found none; ``unverified`` before the first. A handle that does not see every scope learns of its own
    commits only, and not who verified.
    """
    found = _document(context.store, context.tenant)
    last, faulty = found.get("last"), found.get("open")
    reader = VisibleReader(context)
    return {
        "state": "damaged" if faulty else "intact" if last else "unverified",
        "at": _time(last),
        "by": last["by"] if last and reader.sees_store else None,
        "everywhere": bool(last and last["everywhere"]),
        "commits": reader.commits_until(last["commits"]) if last else 0,
        "faults": faulty["faults"] if faulty else 0,
        "damaged_since": _time(faulty),
        "first_faults": [
            {"check": check, "row": row, "detail": detail} for check, row, detail in (faulty["first"] if faulty else ())
        ]
        if reader.sees_store
        else [],
    }


def _time(run: Mapping[str, Any] | None) -> str | None:
    return from_micros(run["at"]).isoformat() if run and run["at"] else None
