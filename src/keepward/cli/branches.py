"""Commands on branches: make, list, compare, merge and discard them.

`--branch NAME` lets any other command read and write on a branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.core.json_form import to_json
from keepward.core.value import format_time, pluralize
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keepward.cli.render import Screen

#: The results of a merge, in the order in which they are shown.
_RESULTS = ("landed", "waiting", "refused", "dropped")


@command(
    argument("create|list|diff|merge|discard", "What to do.", "action"),
    argument("NAME", "Name of the branch.", "name", required=False),
    option("--closed", "Show the discarded and expired ones too; goes with list.", name="closed"),
    option("--reason", "What it is for; goes with create.", "TEXT"),
    option("--expires", "Time until it expires, such as 30d; goes with create.", "DURATION"),
    option("--take", "Decide a conflict in a merge: ID=branch or ID=main. Repeatable.", "ID=SIDE", multiple=True),
)
def branch(
    call: CommandContext,
    action: str,
    name: str | None,
    closed: bool,
    reason: str | None,
    expires: str | None,
    take: tuple[str, ...],
) -> CommandResult:
    """Try changes and leave main as it is: make, list, compare, merge or discard branches of memory.

    A branch reads main under its own changes; `--branch NAME` lets another command work on it. A merge runs every gate
    again: what lands is on main, what waits is in the review queue. What both sides changed is a conflict; it stays
    until you decide with --take.
    """
    if (name is None) is not (action == "list"):
        raise InvalidInput("branch create, diff, merge and discard take a NAME; list takes none")
    if action != "create" and (reason is not None or expires is not None):
        raise InvalidInput("--reason and --expires go with `branch create`")
    if action != "list" and closed:
        raise InvalidInput("--closed goes with `branch list`")
    if action != "merge" and take:
        raise InvalidInput("--take goes with `branch merge`")
    memory = call.memory("propose" if action in {"create", "list", "diff"} else "decide")
    if action == "list" or name is None:
        found = memory.branches(closed=closed, limit=None)
        data = {"items": to_json(found.items), "count": len(found)}
        return CommandResult(data, hidden=("count", "base"))
    if action == "create":
        made = memory.create_branch(name, reason=reason or "", expires=expires)
        return CommandResult(to_json(made), messages=(f"work on it with --branch {name}",))
    if action == "discard":
        receipt = memory.discard_branch(name)
        undo = f"undo it with `keepward rollback {receipt.id}`"
        return CommandResult({"name": name, "receipt": receipt.id}, messages=(undo,))
    if action == "diff":
        return CommandResult(to_json(memory.branch_changes(name, limit=None)), _show_changes)
    merged = memory.merge_branch(name, take=_sides(take))
    messages = []
    if merged.waiting:
        messages.append("what waits is in the review queue: `keepward pending`")
    if merged.conflicts:
        messages.append(f"decide a conflict: keepward branch merge {name} --take {merged.conflicts[0].id}=branch")
    return CommandResult(to_json(merged), _show_merge, 4 if merged.conflicts else 0, tuple(messages))


def _sides(take: Iterable[str]) -> dict[str, Any]:
    sides = dict(each.rpartition("=")[::2] for each in take)
    if not all(sides) or not {*sides.values()} <= {"branch", "main"}:
        raise InvalidInput("--take names the id of a memory and a side, such as 01a2...=branch or 01a2...=main")
    return sides


def _show_changes(screen: Screen, data: dict[str, Any]) -> None:
    """Print each change as in a diff: main before, the branch after."""
    about = data["branch"]
    screen.line(f"branch {about['name']} at {about['scope']}, made by {about['author']}", "bold")
    for change in data["changes"]:
        screen.line()
        _show_change(screen, change)
    if not data["changes"]:
        screen.line("No changes.")


def _show_change(screen: Screen, change: dict[str, Any]) -> None:
    conflict = ": a conflict, main has changed it too" if change["conflict"] else ""
    screen.line(f"{change['op']} {change['id']}{conflict}", "bold")
    if (change["main"] is not None and change["op"] != "added") or (change["conflict"] and change["main"] is not None):
        _show_side(screen, "main", change["main"])
    if change["op"] != "removed":
        _show_side(screen, "branch", change["branch"])


def _show_side(screen: Screen, side: str, record: dict[str, Any]) -> None:
    said = f"{record['text_by']}, {format_time(record['text_at'])}"
    status = "" if record["status"] == "active" else f", {record['status']}"
    screen.labelled(side, f"{record['text']} ({said}{status})")


def _show_merge(screen: Screen, data: dict[str, Any]) -> None:
    for result in _RESULTS:
        if data[result]:
            screen.line(f"{pluralize(len(data[result]), 'change', 'changes')} {result}", "bold")
        for change in data[result]:
            reasons = "; ".join(reason["detail"] for reason in change["reasons"])
            screen.labelled(change["main_id"] or change["id"], f"{change['text']}{f' ({reasons})' if reasons else ''}")
    for change in data["conflicts"]:
        _show_change(screen, change)
    if not any(data[name] for name in (*_RESULTS, "conflicts")):
        screen.line("No changes.")
