"""The drill command: which defence fired, and which did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepward.cli.call import Answer, Call
from keepward.errors import StoreUnavailable, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.screen import Screen

_STYLES = {"fired": "green", "breached": "bold red", "inconclusive": "bold yellow"}


def drill(call: Call) -> Answer:
    """Attack a copy of the store and show which defence fired; any that did not exits with 1.

    The store, its key and its noted heads are not touched. A check that could not have failed, since the same is
    refused to those who may do it, is inconclusive and exits with 1 as well.
    """
    from keepward.drill.drill import drill as attack

    if not call.principal("decide").is_owner:
        raise Unauthorised("the drill copies the whole store; it takes the owner")
    if not call.path.exists():
        raise StoreUnavailable(
            f"there is no store at {call.path}; make one with `keepward init`, or name it with --db PATH"
        )
    settings = call.settings
    lines = attack(call.path, tenant=call.tenant or settings.tenant, policy=settings.policy)
    checks: list[dict[str, Any]] = [
        {"name": each.name, "title": each.title, "status": each.status, "defence": each.defence} for each in lines
    ]
    counts = {word: sum(1 for each in checks if each["status"] == word) for word in _STYLES}
    data = {"ok": counts["fired"] == len(checks), "path": str(call.path), **counts, "checks": checks}
    return Answer(data=data, show=lambda screen: _show(screen, data), code=0 if data["ok"] else 1)


def _show(screen: Screen, data: dict[str, Any]) -> None:
    for each in data["checks"]:
        word = each["status"] if each["status"] == "fired" else each["status"].upper()
        told = f"{each['title']}: {each['defence']}"
        screen.labelled(word, told, width=13, style="" if word == "fired" else _STYLES[each["status"]])
    if data["ok"]:
        screen.line(f"All {len(data['checks'])} defences fired.", "bold green")
    else:
        screen.line(f"{data['breached']} breached, {data['inconclusive']} inconclusive.", "bold red")
