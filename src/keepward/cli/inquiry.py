"""Commands of an inquiry: impact, contain, blame, bisect, context-diff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.cli.erase import Apply

if TYPE_CHECKING:
    from keepward.cli.screen import Screen

Source = Annotated[
    str | None, typer.Option(metavar="NAME", help="A source such as web, or a reference that stands in evidence.")
]
Writer = Annotated[str | None, typer.Option("--actor", metavar="WHO", help="Who said it: agent:claude, user:ana ...")]
Session = Annotated[str | None, typer.Option(metavar="NAME", help="The conversation it comes from.")]
Commit = Annotated[str | None, typer.Option(metavar="COMMIT", help="A commit's number, id or first letters.")]
MemoryId = Annotated[str | None, typer.Option("--memory", metavar="ID", help="A memory by id or alias.")]
Receipt = Annotated[str, typer.Argument(metavar="RECEIPT", help="Receipt of a compiled context.", show_default=False)]


def impact(
    call: Call,
    source: Source = None,
    writer: Writer = None,
    session: Session = None,
    commit: Commit = None,
    memory_id: MemoryId = None,
) -> Answer:
    """Show what one source, actor, session, commit or memory touched, down to every context that held it."""
    with call.memory("decide") as memory:
        found = memory.impact(source=source, actor=writer, session=session, commit=commit, memory=memory_id)
    data = _impact_data(found)
    return Answer(data=data, show=lambda screen: _show_impact(screen, data))


def _impact_data(found: Any) -> dict[str, Any]:
    from keepward import present

    return {
        "by": {"way": found.selector.way, "value": found.selector.value},
        "direct": [present.record(each) for each in found.direct],
        "derived": [present.record(each) for each in found.derived],
        "contexts": [
            {
                "receipt": each.receipt,
                "at": each.at,
                "actor": each.actor,
                "purpose": each.purpose,
                "items": [{"id": name, "version": version} for name, version in each.items],
            }
            for each in found.contexts
        ],
        "waiting": list(found.waiting),
        "damaged": list(found.damaged),
    }


def _show_impact(screen: Screen, data: dict[str, Any]) -> None:
    from keepward.present import counted

    many = counted(len(data["direct"]) + len(data["derived"]), "memory", "memories")
    screen.line(f"{data['by']['way']} {data['by']['value']}: {many}", "bold")
    for word in ("direct", "derived"):
        for each in data[word]:
            _show_memory(screen, word, each)
    for each in data["contexts"]:
        held = counted(len(each["items"]), "memory", "memories")
        screen.labelled("context", f"{each['receipt']} {each['at'][:16]} to {each['actor']}: {held}")
    for name in data["waiting"]:
        screen.labelled("waits", f"proposal {name}")
    for name in data["damaged"]:
        screen.labelled("damaged", f"{name}: it does not match its seal", style="red")


def _show_memory(screen: Screen, word: str, each: dict[str, Any]) -> None:
    screen.labelled(word, f"{each['text'][:200]}")
    screen.labelled("", f"{each['id']} v{each['version']} · {each['tier']} · {each['status']}", style="dim")


def contain(
    call: Call,
    source: Source = None,
    writer: Writer = None,
    session: Session = None,
    commit: Commit = None,
    memory_id: MemoryId = None,
    apply: Apply = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stands in the commit.")] = "",
) -> Answer:
    """Take all that one of these touched out of use. First shows the plan and its digest, and changes nothing."""
    from keepward import present

    with call.memory("decide") as memory:
        done = memory.contain(
            apply, source=source, actor=writer, session=session, commit=commit, memory=memory_id, reason=reason
        )
    data: dict[str, Any] = {
        "applied": done.applied,
        "digest": done.digest,
        "items": [present.record(each) for each in done.items],
        "impact": _impact_data(done.impact),
        "commit": done.commit.id if done.commit else None,
        "receipt": done.receipt.id if done.receipt else None,
    }
    talk: tuple[str, ...] = ()
    if done.items and not done.applied:
        talk = (f"nothing was changed; carry it out with the same options and --apply {done.digest}",)
    elif done.commit is not None:
        talk = (f"undo it with `keepward rollback {done.commit.id}`",)
    return Answer(data=data, show=lambda screen: _show_containment(screen, data), talk=talk)


def _show_containment(screen: Screen, data: dict[str, Any]) -> None:
    from keepward.present import counted

    many = counted(len(data["items"]), "memory", "memories")
    if data["applied"]:
        screen.labelled("contained", f"{many}, in one commit", style="bold green")
    elif data["items"]:
        screen.labelled("plan", f"{many} would be taken out of use; nothing was changed", style="bold")
    else:
        screen.labelled("nothing", "there is nothing left to contain", style="bold cyan")
    for each in data["items"]:
        _show_memory(screen, "memory", each)
    contexts = len(data["impact"]["contexts"])
    screen.labelled("contexts", f"{counted(contexts, 'context', 'contexts')} held some of it")
    for label in ("digest", "commit", "receipt"):
        if data[label]:
            screen.labelled(label, data[label], style="dim")


def blame(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A memory's id, alias or key.", show_default=False)],
) -> Answer:
    """Show which commit, actor, source and approval made each value of a memory what it is."""
    from keepward import present

    with call.memory("decide") as memory:
        found = memory.blame(name)
    data = {
        "id": found.record.id,
        "version": found.record.version,
        "fields": [
            {
                "field": each.field,
                "value": present.plain(each.value),
                "version": each.version,
                "commit": each.made.commit.id,
                "seq": each.made.commit.seq,
                "at": present.instant(each.made.commit.at),
                "op": each.made.op,
                "actor": each.actor,
                "source": each.source,
                "approved_by": each.approved_by,
                "reason": each.made.details.reason,
            }
            for each in found.origins
        ],
    }
    return Answer(data=data, show=lambda screen: _show_blame(screen, data))


def _show_blame(screen: Screen, data: dict[str, Any]) -> None:
    screen.line(f"{data['id']} v{data['version']}", "bold")
    for each in data["fields"]:
        value = ", ".join(map(str, each["value"])) if isinstance(each["value"], list) else str(each["value"])
        screen.labelled(each["field"], value[:200], width=14)
        approved = f" · approved by {each['approved_by']}" if each["approved_by"] else ""
        told = f"commit {each['seq']} {each['commit'][:13]} · {each['actor']} · from {each['source']}{approved}"
        screen.labelled("", told, width=14, style="dim")


def bisect(
    call: Call,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What the context is for.", show_default=False)],
    contains: Annotated[str, typer.Option(metavar="TEXT", help="The text to look for.", show_default=False)],
    since: Annotated[int, typer.Option(metavar="SEQ", help="A commit whose context does not hold it.")] = 0,
) -> Answer:
    """Find the commit with which the context for a query began to hold a text, in about log2(n) compiles."""
    from keepward import present

    with call.memory("decide") as memory:
        found = memory.bisect(query, contains=contains, since=since)
    commit = present.commit(found.commit)
    data: dict[str, Any] = {
        "commit": commit,
        "compiled": found.compiled,
        "events": [present.step(each) for each in found.commit.steps],
        "next": [f"keepward rollback {commit['id']}", f"keepward contain --commit {commit['id']}"],
    }

    def draw(screen: Screen) -> None:
        screen.labelled("since", f"commit {commit['seq']} {commit['id']}, {commit['at'][:16]} UTC", style="bold")
        screen.labelled("by", f"{commit['actor']}: {commit['reason']}")
        for each in data["events"]:
            screen.labelled(each["op"], f"{each['after']['text'][:200]} (from {each['after']['source']})")
        screen.labelled("compiled", present.counted(found.compiled, "context", "contexts"))
        for command in data["next"]:
            screen.labelled("undo", command, style="dim")

    return Answer(data=data, show=draw)


def context_diff(call: Call, first: Receipt, second: Receipt) -> Answer:
    """Show what differs between two compiled contexts, and the commit responsible for each."""
    from keepward import present

    with call.memory("decide") as memory:
        found = memory.context_diff(first, second)
    data = {
        "first": first,
        "second": second,
        "same": found.same,
        "items": [
            {
                "id": each.id,
                "change": each.change,
                "section": each.section,
                "before": each.before,
                "after": each.after,
                "commit": each.commit.commit.id if each.commit else None,
                "why": each.why,
            }
            for each in found.items
        ],
        "inputs": {name: present.plain(list(sides)) for name, sides in found.inputs.items()},
    }
    return Answer(data=data, show=lambda screen: _show_difference(screen, data))


def _show_difference(screen: Screen, data: dict[str, Any]) -> None:
    for each in data["items"]:
        screen.labelled(each["change"], f"{each['id']} in {each['section']}", style="bold")
        screen.labelled("", each["why"])
    for name, (before, after) in data["inputs"].items():
        screen.labelled("asked", f"{name}: {before} / {after}", style="dim")
    if data["same"]:
        screen.line("The two have the same bytes.", "dim")
    elif not data["items"]:
        screen.line("They hold the same memories and differ in form.", "dim")
