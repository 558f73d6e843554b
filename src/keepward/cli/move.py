"""Commands that carry memories over: export, import and restore-export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.errors import InvalidInput
from keepward.model.value import unknown

if TYPE_CHECKING:
    from keepward.cli.screen import Screen

#: How many lines that could not be used are shown; all are in the object of `--json`.
_SHOWN = 10


def export(
    call: Call,
    path: Annotated[
        str, typer.Argument(metavar="[PATH]", help="File to write; - or none is stdout.", show_default=False)
    ] = "-",
) -> Answer:
    """Write every version of every memory of the tenant as JSON lines."""
    from keepward import present
    from keepward.interchange import write_vault
    from keepward.interchange.exports import Tally

    tally = Tally()
    with call.memory("decide") as memory:
        head = memory.status()["head"]
        if path != "-":
            count = write_vault(memory, Path(path).expanduser(), tally=tally)
        elif call.as_json:
            # One object on stdout is the promise of --json, so the lines need a file.
            raise InvalidInput("with --json name a file: keepward export PATH --json")
        else:
            count = write_vault(memory, sys.stdout, tally=tally)
    data = {
        "path": None if path == "-" else path,
        "lines": count,
        "head": head,
        "tenant": memory.tenant,
        "weights": len(tally.weights),
        "lost_weights": sorted(tally.lost),
    }
    told = f"{present.counted(count, 'line', 'lines')}, tenant {memory.tenant}, head {head}"
    if tally.weights:
        told += f", weights of the reranker: {len(tally.weights)}"
    talk = [told] if path == "-" else []
    talk.append("not in it: the review queue, receipts, feedback and counts of use")
    if tally.lost:
        lost = f"weights of the reranker that the journal names and that could not be read: {len(tally.lost)}"
        talk.append(f"{lost}; `keepward verify` says more")
    return Answer(
        data=data,
        show=lambda screen: None if path == "-" else screen.line(f"{path}: {told}"),
        talk=tuple(talk),
    )


def import_file(
    call: Call,
    path: Annotated[str, typer.Argument(metavar="PATH", help="File to read; - is stdin.", show_default=False)],
    file_format: Annotated[
        str,
        typer.Option("--format", metavar="WORD", help="auto, vault, locomo, messages, legacy-jsonl or markdown."),
    ] = "auto",
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="Session of messages. [default: the file's name]")
    ] = None,
) -> Answer:
    """Bring memories in from a file, each through the gates. A missing store is made.

    It comes in as an agent's, an export too: `keepward restore-export` brings back one of your own as it was.
    """
    from keepward.cli.screen import progress
    from keepward.interchange import FORMATS, load
    from keepward.interchange.formats import recognise
    from keepward.interchange.reading import opened

    if file_format not in FORMATS:
        raise InvalidInput(f"--format: {unknown('format', file_format, FORMATS)}")
    target: Any = sys.stdin.buffer if path == "-" else Path(path).expanduser()
    if path != "-":
        # Before a store is made for it.
        with opened(target) as source:
            file_format = recognise(source) if file_format == "auto" else file_format
    with call.memory(create=True) as memory:
        with progress("importing", quiet=call.quiet) as report:
            result = load(memory, target, format=file_format, session=session, on_progress=report)
        tenants = list(result.tenants) or [memory.tenant]
    data: dict[str, Any] = {
        "format": result.format,
        "total": result.total,
        "committed": result.committed,
        "duplicates": result.duplicates,
        "quarantined": result.quarantined,
        "refused": result.refused,
        "failed": [{"line": line, "reason": why} for line, why in result.failed],
        "refusals": [{"line": line, "reason": why} for line, why in result.refusals],
        "tenants": tenants,
        "notes": list(result.notes),
    }
    talk = ("held for review: see them with `keepward pending`",) if result.quarantined else ()
    if call.as_json:
        talk = (f"imported {result.total} items into {', '.join(tenants)}", *talk)
    stored = result.committed or result.duplicates or not result.total
    code = 0 if stored else 6 if result.quarantined else 5
    return Answer(data=data, show=lambda screen: _show_import(screen, data), code=code, talk=talk)


def _show_import(screen: Screen, data: dict[str, Any]) -> None:
    names = ("committed", "duplicates", "quarantined", "refused")
    told = ", ".join(f"{data[name]} {'held for review' if name == 'quarantined' else name}" for name in names)
    screen.labelled("imported", f"{data['total']} items ({data['format']}): {told}, {len(data['failed'])} unusable")
    screen.labelled("tenants", ", ".join(data["tenants"]))
    for word, rows in (("unusable", data["failed"]), ("refused", data["refusals"])):
        for row in rows[:_SHOWN]:
            screen.labelled(word, f"{row['line']}: {row['reason']}", style="yellow")
        if len(rows) > _SHOWN:
            screen.labelled("", f"and {len(rows) - _SHOWN} more; --json lists all of them")
    for note in data["notes"]:
        screen.labelled("note", note)


def restore_export(
    call: Call,
    path: Annotated[str, typer.Argument(metavar="PATH", help="An export of your own.", show_default=False)],
    apply: Annotated[
        str | None, typer.Option("--apply", metavar="DIGEST", help="The digest of the plan you saw: carry that out.")
    ] = None,
) -> Answer:
    """Bring an export back as it was, core blocks and all, into an empty tenant. First shows what it holds.

    Its hashes show that it is whole, not who wrote it: restore what you trust as you trust the store itself.
    """
    from keepward import present
    from keepward.cli.screen import progress
    from keepward.interchange import plan_restore_export
    from keepward.interchange import restore_export as carry_out
    from keepward.interchange.reading import opened

    file = Path(path).expanduser()
    with opened(file):
        # Before a store is made for it.
        pass
    with call.memory("decide", create=True) as memory:
        plan, done = plan_restore_export(memory, file), None
        if apply is not None:
            with progress("restoring", quiet=call.quiet) as report:
                done = carry_out(memory, file, apply, on_progress=report)
    data = {"applied": done is not None, **present.plain(plan), "notes": list(done.notes) if done else []}

    def draw(screen: Screen) -> None:
        word = "restored" if done else "would restore"
        screen.labelled(word, f"{plan.versions} versions, {plan.live} live memories, {plan.blobs} blobs", width=15)
        screen.labelled("tenant", f"{plan.tenant}, head {plan.head}", width=15)
        for block in plan.core:
            screen.labelled("core", f"{block.scope} {block.key}: {block.text}", style="yellow", width=15)
        for note in data["notes"]:
            screen.labelled("note", note, width=15)
        screen.labelled("digest", plan.digest, style="dim", width=15)

    talk = () if done else (f"nothing was changed; restore it with the same arguments and --apply {plan.digest}",)
    return Answer(data=data, show=draw, talk=talk)
