"""Commands that read: recall, get, history, list, context, replay. None of them makes a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call, text_of
from keepward.cli.write import MemoryId

if TYPE_CHECKING:
    from keepward.cli.screen import Screen

AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="WHEN", help="A state of the past: a commit's number or id, or an instant."),
]
Purpose = Annotated[str, typer.Option(metavar="WORD", help="answer, act or core: what it is used for.")]
Tiers = Annotated[list[str] | None, typer.Option("--tier", metavar="TIER", help="Only these tiers. Several times.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Only these kinds. Several times.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="With any of these. Several times.")]
Subject = Annotated[str | None, typer.Option(metavar="NAME", help="About this subject alone.")]
Category = Annotated[str | None, typer.Option(metavar="NAME", help="Of this category alone.")]
Session = Annotated[str | None, typer.Option(metavar="NAME", help="Of this conversation alone.")]
Sensitive = Annotated[bool, typer.Option("--include-sensitive", help="Sensitive memories too.")]
Floor = Annotated[
    float | None,
    typer.Option(metavar="0..1", help="Least score of the best; below it nothing is shown. [default: by policy]"),
]
Everything = Annotated[bool, typer.Option("--all", help="No floor: also where nothing bears on it.")]


def recall(
    call: Call,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for; - reads stdin.", show_default=False)],
    limit: Annotated[int, typer.Option(metavar="N", help="Most hits.")] = 10,
    purpose: Purpose = "answer",
    tier: Tiers = None,
    kind: Kinds = None,
    tag: Tags = None,
    subject: Subject = None,
    category: Category = None,
    session: Session = None,
    min_importance: Annotated[float, typer.Option(metavar="0..1", help="Only what is at least so useful.")] = 0.0,
    include_sensitive: Sensitive = False,
    as_of: AsOf = None,
    order: Annotated[str, typer.Option(metavar="WORD", help="learned, fused or cosine.")] = "learned",
    floor: Floor = None,
    every: Everything = False,
    keep: Annotated[bool, typer.Option("--receipt", help="Keep a receipt that `feedback` can name.")] = False,
) -> Answer:
    """Find memories by words and meaning, best first, and say why each was found."""
    from keepward import present

    with call.memory() as memory:
        found = memory.recall(
            text_of(query),
            limit=limit,
            purpose=purpose,
            tiers=tuple(tier or ()),
            kinds=tuple(kind or ()),
            tags=tuple(tag or ()),
            subject=subject,
            category=category,
            session=session,
            min_importance=min_importance,
            include_sensitive=include_sensitive,
            as_of=as_of,
            order=order,
            floor=0.0 if every else floor,
            receipt=keep,
        )
    data = present.recall(found)
    # One visible line for what could not take part; it is in the object as well.
    return Answer(data=data, show=lambda screen: _show_recall(screen, data, every=every), talk=tuple(data["notes"]))


def _show_recall(screen: Screen, data: dict[str, Any], *, every: bool) -> None:
    """Print hits; weak ones only where they are asked for, or where there is nothing better."""
    strong = [hit for hit in data["hits"] if not hit["weak"]]
    shown = data["hits"] if every or not strong else strong
    for hit in shown:
        when = hit["occurred_at"]
        said = ": ".join(part for part in (when and when[:10], hit["speaker"]) if part)
        screen.labelled(f"{hit['rank']:>2}.", f"{said}: {hit['text']}" if said else hit["text"], width=4, style="bold")
        facts = [hit["tier"], hit["kind"], *([f"key {hit['key']}"] if hit["key"] else [])]
        score = f"{'weak, ' if hit['weak'] else ''}score {hit['score']:.2f}"
        facts += [f"from {hit['source']} ({hit['trust']})", score, " + ".join(hit["why"])]
        screen.labelled("", " · ".join(filter(None, facts)), width=4, style="dim")
        screen.labelled("", f"{hit['id']} v{hit['version']}", width=4, style="dim")
    if not data["hits"]:
        screen.line("Nothing found.", "dim")
    weak = len(data["hits"]) - len(shown)
    if weak:
        screen.line(f"{weak} weak {'hit' if weak == 1 else 'hits'} not shown; --all shows them", "dim")
    for left in data["excluded"]:
        screen.labelled("left out", f"{left['id']}: {left['reason']}", style="dim")
    screen.line(f"searched by {' and '.join(data['used']) or 'nothing'} at head {data['head']}", "dim")
    if data["receipt"]:
        screen.labelled("receipt", data["receipt"], style="dim")


def get(call: Call, memory_id: MemoryId, as_of: AsOf = None) -> Answer:
    """Show one memory with all its fields."""
    from keepward import present

    with call.memory() as memory:
        data = present.record(memory.get(memory_id, as_of=as_of))
    return Answer(data=data, show=lambda screen: _show_record(screen, data))


def _show_record(screen: Screen, data: dict[str, Any]) -> None:
    screen.line(data["text"], "bold")
    screen.line()
    for name, value in data.items():
        if name != "text" and value not in (None, [], ""):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            screen.labelled(name, shown, width=15)


def history(call: Call, memory_id: MemoryId) -> Answer:
    """Show every version of a memory: who changed what, when and why."""
    from keepward import present

    with call.memory() as memory:
        versions = memory.history(memory_id)
    data = {
        "id": versions[-1].record.id if versions else memory_id,
        "versions": [
            {
                "version": each.record.version,
                "op": each.op,
                "commit": each.commit.id,
                "seq": each.commit.seq,
                "at": present.instant(each.commit.at),
                "actor": each.details.actor,
                "approved_by": each.details.approved_by,
                "reason": each.details.reason,
                "receipt": each.details.receipt,
                "before": each.before and present.record(each.before),
                "after": present.record(each.record),
                "changed": present.changed(each.before, each.record),
            }
            for each in versions
        ],
    }
    return Answer(data=data, show=lambda screen: _show_history(screen, data))


def _show_history(screen: Screen, data: dict[str, Any]) -> None:
    screen.line(data["id"], "bold")
    for each in data["versions"]:
        approved = f", approved by {each['approved_by']}" if each["approved_by"] else ""
        screen.heading(f"v{each['version']} {each['op']} by {each['actor']}{approved}")
        screen.line(f"{each['at'][:19]} UTC · commit {each['seq']} · {each['commit']}", "dim", indent=2)
        if each["reason"]:
            screen.line(f"because: {each['reason']}", indent=2)
        for change in (
            each["changed"] if each["before"] else [{"field": "text", "before": None, "after": each["after"]["text"]}]
        ):
            screen.change(change["field"], change["before"], change["after"])


def list_memories(
    call: Call,
    tier: Tiers = None,
    kind: Kinds = None,
    tag: Tags = None,
    key: Annotated[str | None, typer.Option(metavar="NAME", help="Under this key alone.")] = None,
    subject: Subject = None,
    category: Category = None,
    session: Session = None,
    limit: Annotated[int, typer.Option(metavar="N", help="Most rows.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="No limit.")] = False,
    include_ended: Annotated[
        bool, typer.Option("--include-ended", help="Retired, archived, superseded and expired ones too.")
    ] = False,
    as_of: AsOf = None,
) -> Answer:
    """List memories, newest first."""
    from keepward import present

    with call.memory() as memory:
        found = memory.find(
            tiers=tuple(tier or ()),
            kinds=tuple(kind or ()),
            tags=tuple(tag or ()),
            key=key,
            subject=subject,
            category=category,
            session=session,
            limit=None if everything else limit,
            include_ended=include_ended,
            as_of=as_of,
        )
    data = {
        "memories": [present.record(each) for each in found],
        "count": len(found),
        "withheld": list(found.withheld),
        "notes": list(found.notes),
    }
    return Answer(data=data, show=lambda screen: _show_list(screen, data), talk=found.notes)


def _show_list(screen: Screen, data: dict[str, Any]) -> None:
    if not data["memories"]:
        screen.line("No memories.", "dim")
    for each in data["memories"]:
        screen.line(each["text"], hang=2)
        named = [f"key {each['key']}"] if each["key"] else []
        screen.line(" · ".join([each["id"], each["tier"], each["kind"], *named]), "dim", indent=2)


def context(
    call: Call,
    objective: Annotated[
        str, typer.Argument(metavar="OBJECTIVE", help="What the model is to do; - reads stdin.", show_default=False)
    ],
    budget: Annotated[int | None, typer.Option(metavar="TOKENS", help="Most tokens. [default: by policy]")] = None,
    purpose: Purpose = "answer",
    text_format: Annotated[
        str, typer.Option("--format", metavar="WORD", help="markdown, xml or messages.")
    ] = "markdown",
    include_sensitive: Sensitive = False,
    floor: Floor = None,
    every: Everything = False,
    as_of: AsOf = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Core block, by key or id, that may be missing. Several times."),
    ] = None,
) -> Answer:
    """Compile the context for a model: within a budget, with a receipt of what went in and what stayed out."""
    with call.memory() as memory:
        compiled = memory.context(
            text_of(objective),
            budget_tokens=budget,
            purpose=purpose,
            as_of=as_of,
            format=text_format,
            include_sensitive=include_sensitive,
            without=tuple(without or ()),
            floor=0.0 if every else floor,
        )
    data = compiled_data(compiled)
    return Answer(data=data, show=lambda screen: screen.exact(data["text"]), talk=(_summary(data), *data["notes"]))


def replay(
    call: Call,
    receipt: Annotated[str, typer.Argument(metavar="RECEIPT", help="Receipt of a context.", show_default=False)],
) -> Answer:
    """Compile a context again from its receipt, byte for byte as it was."""
    with call.memory() as memory:
        again = memory.replay(receipt)
    data = {
        "receipt": receipt,
        "text": again.text,
        "same": again.same,
        "unchanged": list(again.unchanged),
        "missing": [{"id": name, "version": version} for name, version in again.missing],
    }
    word = "the same bytes as then" if again.same else f"not the same as then: {len(again.missing)} sources are gone"
    return Answer(data=data, show=lambda screen: screen.exact(again.text), code=0 if again.same else 1, talk=(word,))


def compiled_data(compiled: Any) -> dict[str, Any]:
    """Return a compiled context as JSON values."""
    from keepward import present

    return {
        "text": compiled.text,
        "context_id": compiled.context_id,
        "receipt": compiled.receipt.id,
        "tokens": compiled.tokens,
        "head": compiled.head,
        "used": list(compiled.used),
        "notes": list(compiled.notes),
        "kept": compiled.kept,
        "withheld": list(compiled.withheld),
        "floor": compiled.floor,
        "best": compiled.best,
        "below": compiled.below,
        "sections": [
            {"name": section.name, "tokens": section.tokens, "items": [present.plain(item) for item in section.items]}
            for section in compiled.sections
        ],
        "excluded": [
            {"id": each.id, "version": each.version, "reason": each.reason.detail, "code": each.reason.code}
            for each in compiled.excluded
        ],
    }


def _summary(data: dict[str, Any]) -> str:
    parts = ", ".join(f"{each['name']} {each['tokens']}" for each in data["sections"]) or "nothing"
    return (
        f"{data['tokens']} tokens ({parts}); {len(data['excluded'])} left out; receipt {data['receipt']} "
        f"(`keepward receipt {data['receipt']}` tells why)"
    )
