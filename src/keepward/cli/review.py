"""Commands that decide: pending, approve, reject. A proposer never approves what it proposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.cli.frame import EXIT_OF
from keepward.cli.write import show_written
from keepward.errors import InvalidInput, KeepwardError

if TYPE_CHECKING:
    from keepward.cli.screen import Screen

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of proposals.", show_default=False)]


def pending(
    call: Call,
    state: Annotated[
        str, typer.Option(metavar="WORD", help="pending, approved, rejected, expired, stale or all.")
    ] = "pending",
) -> Answer:
    """Show what waits for a person: who proposes what, why it is held, and the exact change."""
    from keepward import present

    if state not in {"pending", "approved", "rejected", "expired", "stale", "all"}:
        raise InvalidInput("--state takes pending, approved, rejected, expired, stale or all")
    with call.memory("decide") as memory:
        found = memory.pending(state=None if state == "all" else state)
        shown = [[present.plain(step) for step in memory.shown(each)] for each in found]
    proposals = [{**present.waiting(each), "shown": steps} for each, steps in zip(found, shown, strict=True)]
    data = {"proposals": proposals, "count": len(found)}
    return Answer(data=data, show=lambda screen: _show_pending(screen, data))


def _show_pending(screen: Screen, data: dict[str, Any]) -> None:
    if not data["proposals"]:
        screen.line("Nothing waits for review.", "dim")
    for each in data["proposals"]:
        show_proposal(screen, each)
        if each["state"] == "pending":
            screen.labelled("approve", f"keepward approve {each['id']}", style="bold")


def show_proposal(screen: Screen, data: dict[str, Any]) -> None:
    """Print a proposal as its reviewer needs it: every field that changes, invisible characters written out."""
    screen.heading(f"{data['id']} · {data['state']}")
    screen.labelled("from", f"{data['proposer']}, {data['created_at'][:16].replace('T', ' ')} UTC")
    if data["reason"]:
        screen.labelled("because", data["reason"])
    for reason in data["reasons"]:
        screen.labelled("held by", f"{reason['gate']}: {reason['detail']} ({reason['code']})")
    for step in data["diff"]:
        after = step["after"]
        named = f" · key {after['key']}" if after["key"] else ""
        base = data["base"].get(step["id"], 0)
        screen.labelled(
            step["op"], f"{after['tier']} {after['kind']}{named} · {f'on version {base}' if base else 'new'}"
        )
        screen.labelled("memory", step["id"], style="dim")
        legible = next((each for each in data.get("shown", ()) if each["id"] == step["id"]), None)
        if legible is None:
            show_changes(screen, step, joiners=False)
            continue
        # All of it, not what tells most: nothing is approved that was not on the screen.
        first = [each for each in legible["changes"] if each[0] == "text"]
        for name, before, after in (*first, *(each for each in legible["changes"] if each[0] != "text")):
            if step["before"] is None and name != "text":
                screen.labelled(name, after, indent=2)
            else:
                screen.change(name, before, after)
    if data["decided_by"]:
        screen.labelled("decided", f"{data['state']} by {data['decided_by']}: {data['decision']}")
    screen.labelled("digest", data["digest"], style="dim")


#: What a new memory shows of itself in a diff; the rest is a `--json` away.
_TELLING = ("text", "key", "scope", "tags", "evidence", "sensitivity", "stability", "expires_at", "status")


def show_changes(screen: Screen, item: dict[str, Any], *, joiners: bool = True) -> None:
    """Print the fields that differ; of a new memory those that tell most."""
    for change in item["changed"]:
        if item["before"] is not None or change["field"] in _TELLING[:1]:
            screen.change(change["field"], change["before"], change["after"], joiners=joiners)


def approve(
    call: Call,
    ids: Ids,
    digest: Annotated[
        str | None, typer.Option(metavar="HEX", help="The digest you saw; another one is not approved. One ID only.")
    ] = None,
) -> Answer:
    """Approve proposals: store exactly what was shown."""
    from keepward import present

    if digest is not None and len(ids) > 1:
        raise InvalidInput("--digest goes with one ID: each proposal has its own")
    with call.memory("decide") as memory:
        shown = {each.id: present.waiting(each) for each in memory.pending()}

        def decide(name: str) -> dict[str, Any]:
            outcome = present.outcome(memory.approve(name, digest=digest))
            return {**outcome, "proposal": name, "memory": outcome["id"], "item": shown.get(name)}

        return _each(ids, decide, "approved")


def reject(
    call: Call,
    ids: Ids,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the proposer is told.", show_default=False)],
) -> Answer:
    """Reject proposals: what held before still holds."""
    from keepward import present

    with call.memory("decide") as memory:
        shown = {each.id: present.waiting(each) for each in memory.pending()}

        def decide(name: str) -> dict[str, Any]:
            receipt = memory.reject(name, reason=reason)
            return {
                "outcome": "rejected",
                "receipt": receipt.id,
                "reasons": present.reasons(receipt.reasons),
                "item": shown.get(name),
            }

        return _each(ids, decide, "rejected")


def _each(ids: list[str], decide: Callable[[str], dict[str, Any]], word: str) -> Answer:
    """Decide on one after the other; one that fails does not stop the rest. The first failure gives the code."""
    results: list[dict[str, Any]] = []
    code = 0
    for name in dict.fromkeys(ids):
        try:
            results.append({**decide(name), "id": name, "error": None})
        except KeepwardError as fault:
            error = {"code": fault.code, "message": str(fault)}
            results.append({"id": name, "outcome": "error", "error": error})
            code = code or EXIT_OF.get(fault.code, 1)
    done = sum(1 for each in results if each["error"] is None)
    data = {"results": results, word: done, "failed": len(results) - done}
    return Answer(data=data, show=lambda screen: _show_decided(screen, results), code=code)


def _show_decided(screen: Screen, results: list[dict[str, Any]]) -> None:
    for each in results:
        if each["error"]:
            screen.labelled("failed", f"{each['id']}: {each['error']['message']}", style="red")
        elif each["outcome"] == "rejected":
            screen.labelled("rejected", f"{each['id']}; what held before still holds", style="bold")
            screen.labelled("receipt", each["receipt"], style="dim")
        else:
            screen.labelled("approved", each["id"], style="bold green")
            show_written(screen, {**each, "id": each["memory"], "proposal": None})
