"""Commands that learn: feedback, train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call

if TYPE_CHECKING:
    from keepward.cli.screen import Screen


def feedback(
    call: Call,
    receipt: Annotated[
        str, typer.Argument(metavar="RECEIPT", help="Of `context`, or of `recall --receipt`.", show_default=False)
    ],
    used: Annotated[
        list[str] | None, typer.Option("--used", metavar="ID", help="A memory that was of use. Several times.")
    ] = None,
    ignored: Annotated[
        list[str] | None, typer.Option("--ignored", metavar="ID", help="One that was not. Several times.")
    ] = None,
) -> Answer:
    """Say which memories of a recall or context were used; `train` learns from it. Nothing changes until then.

    It counts as an agent's, up to a share of what people say; with `--as operator` as a person's.
    """
    from keepward import present

    with call.memory() as memory:
        given = memory.feedback(receipt, used=tuple(used or ()), ignored=tuple(ignored or ()))
    data = {
        "number": given.n,
        "receipt": given.receipt,
        "actor": given.actor,
        "trust": given.trust.label,
        "at": present.instant(given.at),
        "used": list(given.used),
        "ignored": list(given.ignored),
    }

    def draw(screen: Screen) -> None:
        told = f"{len(given.used)} used, {len(given.ignored)} ignored"
        kept = f"kept as number {given.n}" if given.n else "not kept: memory is switched off by policy"
        screen.labelled("feedback", f"{told}; {kept}", style="bold green" if given.n else "bold")
        counts = "" if given.by_person else "; it counts up to a share of what people say"
        screen.labelled("by", f"{given.actor}{counts}", style="dim")

    return Answer(data=data, show=draw)


def train(call: Call) -> Answer:
    """Train the reranker from feedback, in one commit; it serves only where it orders held-out feedback better."""
    from keepward.cli.screen import progress

    with call.memory("decide") as memory, progress("training", quiet=call.quiet) as report:
        found = memory.train_reranker(on_progress=report)
    data = {
        "version": found.version,
        "serving": found.serving,
        "feedback": found.feedback,
        "held_out": found.held_out,
        "learned": found.learned,
        "fused": found.fused,
        "cosine": found.cosine,
        "gain": found.gain,
        "why": found.why,
        "from_agents": found.from_agents,
        "commit": found.commit.id if found.commit else None,
        "receipt": found.receipt.id if found.receipt else None,
    }
    return Answer(data=data, show=lambda screen: _show_training(screen, data))


def _show_training(screen: Screen, data: dict[str, Any]) -> None:
    style = "bold green" if data["serving"] else "bold"
    screen.labelled("reranker", f"{data['version'] or 'none'}, {'serves' if data['serving'] else 'off'}", style=style)
    screen.labelled("why", data["why"])
    told = f"{data['feedback'] - data['held_out']} feedbacks; {data['held_out']} held out"
    screen.labelled("learned from", f"{told}; {data['from_agents']:.0%} of it from agents")
    shares = ", ".join(f"{name} {data[name]:.3f}" for name in ("learned", "fused", "cosine"))
    screen.labelled("in order", f"{shares}: share of held-out pairs; gain {data['gain']:+.3f}")
    for label in ("commit", "receipt"):
        screen.labelled(label, data[label] or "none: nothing new was found", style="dim")
