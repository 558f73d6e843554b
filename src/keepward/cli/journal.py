"""Commands on the journal: log, show, diff, rollback, receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.cli.review import show_changes

if TYPE_CHECKING:
    from keepward.cli.screen import Screen

Commit = Annotated[
    str, typer.Argument(metavar="COMMIT", help="A commit's number, id or first letters.", show_default=False)
]


def log(
    call: Call,
    limit: Annotated[int, typer.Option(metavar="N", help="Most commits.")] = 50,
    before: Annotated[int | None, typer.Option(metavar="SEQ", help="Older than this commit's number.")] = None,
) -> Answer:
    """List commits, newest first."""
    from keepward import present

    with call.memory("decide") as memory:
        data: dict[str, Any] = {"commits": [present.commit(each) for each in memory.log(limit=limit, before=before)]}
    data["next_before"] = data["commits"][-1]["seq"] if data["commits"] and len(data["commits"]) == limit else None
    return Answer(data=data, show=lambda screen: _show_log(screen, data))


def _show_log(screen: Screen, data: dict[str, Any]) -> None:
    rows = []
    for each in data["commits"]:
        changes = ", ".join(change["op"] for change in each["changes"][:3])
        more = f" +{len(each['changes']) - 3}" if len(each["changes"]) > 3 else ""
        who = f"{each['actor']} / {each['approved_by']}" if each["approved_by"] else each["actor"]
        rows.append((str(each["seq"]), each["id"][:13], each["at"][:16], who, f"{changes}{more} {each['reason']}"))
    screen.table(("seq", "commit", "at (UTC)", "who", "what"), rows, empty="No commits.")


def show(call: Call, commit: Commit) -> Answer:
    """Show one commit: who, when, why, and each memory before and after."""
    from keepward import present

    with call.memory("decide") as memory:
        view = memory.show(commit)
    data = {**present.commit(view), "events": [present.step(each) for each in view.steps]}
    return Answer(data=data, show=lambda screen: _show_commit(screen, data))


def _show_commit(screen: Screen, data: dict[str, Any]) -> None:
    screen.line(f"commit {data['seq']} · {data['id']}", "bold")
    screen.labelled("at", f"{data['at'][:19]} UTC")
    screen.labelled("by", f"{data['actor']} ({data['kind']})")
    for label, value in (
        ("approved by", data["approved_by"]),
        ("because", data["reason"]),
        ("undoes", ", ".join(data["undoes"])),
        ("receipt", data["receipt"]),
        ("hash", data["hash"]),
    ):
        if value:
            screen.labelled(label, value)
    _show_differences(screen, data["events"])


def _show_differences(screen: Screen, items: list[dict[str, Any]]) -> None:
    for each in items:
        side = each["after"] or each["before"]
        named = f" · key {side['key']}" if side["key"] else ""
        what = each.get("op") or ("added" if not each["before"] else "gone" if not each["after"] else "changed")
        screen.heading(f"{what} · {side['tier']} {side['kind']}{named}")
        screen.line(f"{each['id']} v{side['version']}", "dim", indent=2)
        if each["after"] is None:
            screen.change("text", side["text"], None)
        else:
            show_changes(screen, each)


def diff(
    call: Call,
    first: Annotated[str, typer.Argument(metavar="A", help="A commit, or 0 for the empty store.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="B", help="Another commit.", show_default=False)],
) -> Answer:
    """Show which memories differ between the states after two commits."""
    from keepward import present

    with call.memory("decide") as memory:
        found = [present.difference(each) for each in memory.diff(first, second)]
    data = {"from": first, "to": second, "differences": found, "count": len(found)}

    def draw(screen: Screen) -> None:
        _show_differences(screen, found)
        if not found:
            screen.line("The two states are equal.", "dim")

    return Answer(data=data, show=draw)


def rollback(
    call: Call,
    commit: Commit,
    with_later: Annotated[
        bool, typer.Option("--with-later", help="Undo later commits that touched the same memories as well.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen and change nothing.")] = False,
) -> Answer:
    """Undo one commit with a new one. A later change of the same memories is a conflict; nothing changes then."""
    with call.memory("decide") as memory:
        data = rollback_data(memory.rollback(commit, with_later=with_later, dry_run=dry_run), dry_run=dry_run)
    held = bool(data["conflicts"])
    talk = ("later commits touched the same memories; undo them too with --with-later",) if held else ()
    return Answer(data=data, show=lambda screen: show_rollback(screen, data), code=4 if held else 0, talk=talk)


def rollback_data(result: Any, *, dry_run: bool) -> dict[str, Any]:
    """Return what a rollback did, or would do, as JSON values."""
    from keepward import present

    return {
        "applied": result.applied,
        "already": result.already,
        "dry_run": dry_run,
        "commit": result.commit.id if result.commit else None,
        "receipt": result.receipt_id,
        "undone": list(result.undone),
        "targets": [present.difference(each) for each in result.targets],
        "conflicts": [
            {"memory": each.memory_id, "seq": each.seq, "commit": each.commit_id} for each in result.conflicts
        ],
        "dependents": list(result.dependents),
        "reasons": present.reasons(result.reasons),
    }


def show_rollback(screen: Screen, data: dict[str, Any]) -> None:
    """Print what a rollback did, or would do."""
    from keepward.present import counted

    back = counted(len(data["targets"]), "memory", "memories")
    if data["already"]:
        screen.labelled("undone", "before already; nothing was left to do", style="bold cyan")
    elif data["conflicts"]:
        screen.labelled("conflict", "nothing was changed", style="bold red")
    elif data["applied"]:
        screen.labelled("rolled back", f"{back}, as before that commit", style="bold green")
    else:
        word = "dry run" if data["dry_run"] else "nothing"
        screen.labelled(word, f"{back} would change back; nothing was changed", style="bold")
    for each in data["conflicts"]:
        screen.labelled("touched by", f"commit {each['seq']} {each['commit']}: memory {each['memory']}")
    _show_differences(screen, data["targets"])
    for each in data["dependents"]:
        screen.labelled("look at", f"{each}: it was made from a memory that changed back", style="yellow")
    for reason in data["reasons"]:
        screen.labelled("why", f"{reason['detail']} ({reason['code']})")
    for label in ("commit", "receipt"):
        if data[label]:
            screen.labelled(label, data[label], style="dim")


def receipt(
    call: Call, receipt_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a receipt.", show_default=False)]
) -> Answer:
    """Show a receipt: the record of one decision, such as a commit, a refusal or a compiled context."""
    from keepward import present

    with call.memory("decide") as memory:
        data = present.plain(memory.receipt(receipt_id))
    return Answer(data=data, show=lambda screen: _show_tree(screen, data, 0))


def _show_tree(screen: Screen, data: dict[str, Any], indent: int) -> None:
    for name, value in data.items():
        if isinstance(value, dict) and value:
            screen.line(name, "dim", indent=indent)
            _show_tree(screen, value, indent + 2)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            screen.line(f"{name}:", "dim", indent=indent)
            for item in value:
                flat = ", ".join(f"{key} {item[key]}" for key in item if item[key] not in (None, [], {}, ""))
                screen.labelled("  -", flat, width=4, indent=indent)
        elif value not in (None, [], {}, ""):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            screen.labelled(name, shown, width=16, indent=indent)
