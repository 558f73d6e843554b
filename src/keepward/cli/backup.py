"""Commands that destroy, copy, accept and move data: erase, backups, store, adopt, export and import.

Invariants
(1) An action that cannot be undone shows its plan and a digest first, and runs only with that digest.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, to_json_object
from keepward.cli.review import APPLY
from keepward.core.value import pluralize
from keepward.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.proposal import Outcome
    from keepward.interchange.run import Imported
    from keepward.memory import Memory

#: What became of a message or a fact, in words.
_COUNT_OF_OUTCOME = {"committed": "committed", "duplicate": "known", "quarantined": "quarantined", "refused": "refused"}
#: How many lines that could not be used are shown; all are in the object of `--json`.
_MAX_LINES_SHOWN = 10


@command(
    argument("[ID]...", "Ids of memories, or their aliases.", "ids"),
    option("--subject", "Every memory about this subject.", "NAME"),
    option("--source", "Every memory from this source, reference or foreign name.", "NAME"),
    option("--reason", "request, consent, retention, mistake, secret or other.", "REASON", default="request"),
    option("--include-citing", "Also erase what derives from one of these or cites it as evidence."),
    APPLY,
    option("--certificate", "Print the certificate of an erasure that was made; one ID."),
)
def erase(
    call: CommandContext, ids: tuple[str, ...], apply: str | None, certificate: bool, **chosen: Any
) -> CommandResult:
    """Destroy the text of memories everywhere, for good. First shows the plan, and changes nothing."""
    more = apply or any(chosen[name] for name in ("subject", "source", "include_citing"))
    if certificate and (len(ids) != 1 or more):
        raise InvalidInput("--certificate takes one ID, of an erased memory, and nothing else")
    memory = call.memory("decide")
    blank = dict.fromkeys(("plan", "commit", "receipt", "certificate"))
    data: dict[str, Any] = {"applied": bool(apply), **blank}
    if certificate:
        data["certificate"] = memory.certificate(ids[0])
        return CommandResult(data, lambda screen, data: screen.verbatim(json.dumps(data["certificate"], indent=2)))
    if apply is not None:
        done = memory.erase(apply, ids, **chosen)
        data |= {**to_json_object(done, plan=_plan_data(done.plan)), "certificate": memory.certificate(done.commit.id)}
        return CommandResult(data, hidden=("places", "commit_details"))
    plan = memory.plan_erase(ids, **chosen)
    data["plan"] = _plan_data(plan)
    notes = [f"nothing was changed; erase it with the same arguments and --apply {plan.digest}"]
    if plan.candidates:
        notes.insert(0, "candidates stay unless you name them too or add --include-citing")
    return CommandResult(data, talk=tuple(notes))


def _plan_data(plan: Any) -> dict[str, Any]:
    weights = sum(1 for kind, _ in plan.artefacts if kind == "reranker")
    counts = {name: len(getattr(plan, name)) for name in ("versions", "receipts", "proposals", "feedback", "blobs")}
    more = {"commit_details": len(plan.details), "documents": len(plan.artefacts) - weights, "weights": weights}
    return to_json_object(plan, "details", "artefacts", **counts, **more)


@command(argument("PATH", "A file that is not there yet.", "path"))
def backup(call: CommandContext, path: str) -> CommandResult:
    """Copy the live store to one file, consistent and readable by you alone. Later erasures reach it too."""
    return CommandResult(to_json_object(call.memory("decide").backup(Path(path).expanduser())))


@command(argument("PATH", "A backup.", "path"), option("--to", "A store that is not there yet.", "DB", required=True))
def restore_backup(call: CommandContext, path: str, to: str) -> CommandResult:
    """Restore a backup. Later erasures are repeated in it first; its older state is accepted by this."""
    from keepward.memory import Memory
    from keepward.settings import config_folder

    places = Path(path).expanduser(), Path(to).expanduser()
    made = Memory.restore_backup(*places, actor=call.principal("decide"), config_dir=config_folder(call.environ))
    return CommandResult(to_json_object(made))


@command(
    argument("migrate|recover", "What to do.", "action"),
    argument("[BROKEN]", "With recover: the damaged store.", "broken"),
    argument("[NEW]", "With recover: a store that is not there yet.", "new"),
    option("--to", "With migrate: a new file, or the address of a database.", "DB"),
    option("--dry-run", "With migrate: only say what would be copied."),
)
def store(
    call: CommandContext, action: str, broken: str | None, new: str | None, to: str | None, dry_run: bool
) -> CommandResult:
    """Migrate the store to another file or database, or recover a damaged one.

    `store migrate --to DB` copies everything, with the same heads. The old store stays; a migration that stopped goes
    on. `store recover BROKEN NEW` makes a new store of all that is still valid in a damaged one, and names what is
    lost. The damaged one is left as it is.
    """
    if action == "migrate":
        if to is None or broken is not None:
            raise InvalidInput("store migrate takes --to DB and no other argument")
        return _migrated(call, to, dry_run)
    if action != "recover":
        raise InvalidInput("store takes migrate or recover")
    if broken is None or new is None or to is not None or dry_run:
        raise InvalidInput("store recover takes BROKEN and NEW, the paths of two stores, and no other option")
    return _recovered(call, broken, new)


def _migrated(call: CommandContext, to: str, dry_run: bool) -> CommandResult:
    call.require_store()
    with call.progress("migrating") as report:
        moved = call.memory("decide").move_store(to, dry_run=dry_run, on_progress=report)
    following = "nothing was copied; leave out --dry-run" if dry_run else f"from now on: --db {moved.place}"
    return CommandResult(to_json_object(moved), talk=(following,))


def _recovered(call: CommandContext, broken: str, new: str) -> CommandResult:
    from keepward.memory import Memory
    from keepward.settings import config_folder

    made = Memory.rescue(
        Path(broken).expanduser(),
        Path(new).expanduser(),
        actor=call.principal("decide"),
        config_dir=config_folder(call.environ),
        on_progress=None if call.quiet else lambda said: print(said, file=sys.stderr),  # noqa: T201
    )
    return CommandResult(to_json_object(made, whole=made.whole), None, 0 if made.whole else 1)


@command(APPLY)
def adopt(call: CommandContext, apply: str | None) -> CommandResult:
    """Accept a store from elsewhere, or an older state, as it is. First shows what that means."""
    memory = call.memory("decide")
    plan = memory.plan_adopt() if apply is None else memory.adopt(apply)
    talk = () if apply else (f"nothing was changed; accept it with `keepward adopt --apply {plan.digest}`",)
    return CommandResult(to_json_object(plan, applied=apply is not None), talk=talk)


@command(
    argument(
        "[PATH]", "File to write; - or none is stdout. With --markdown a folder that is new.", "path", default="-"
    ),
    option("--markdown", "Write active memories as notes, one each, for Obsidian or any editor."),
    option("--legacy", "Write active memories as lines of a legacy vault: canon and register."),
)
def export(call: CommandContext, path: str, markdown: bool, legacy: bool) -> CommandResult:
    """Write every version of every memory of the tenant as JSON lines, or active memories in another form."""
    from keepward.interchange import write_legacy, write_notes, write_vault

    memory, piped = call.memory("decide"), path == "-"
    if piped and markdown:
        raise InvalidInput("--markdown takes a folder: keepward export FOLDER --markdown")
    if markdown and legacy:
        raise InvalidInput("--markdown and --legacy are two forms: name one")
    if piped and call.as_json:
        # One object on stdout is the promise of --json, so the lines need a file.
        raise InvalidInput("with --json name a file: keepward export PATH --json")
    target, head = Path(path).expanduser(), memory.status()["head"]
    if markdown:
        count = write_notes(memory, target)
        told = f"{pluralize(count, 'note', 'notes')}, tenant {memory.tenant}"
        talk = ["not included: earlier versions, inactive memories, and the bytes of blobs"]
    elif legacy:
        count, talk = write_legacy(memory, sys.stdout if piped else target)
        told = f"{pluralize(count, 'line', 'lines')}, tenant {memory.tenant}"
    else:
        count = write_vault(memory, sys.stdout if piped else target)
        told = f"{pluralize(count, 'line', 'lines')}, tenant {memory.tenant}, head {head}"
        talk = [
            *([told] if piped else []),
            "not included: the review queue, receipts, feedback, learned weights and counts of use",
        ]
    data = {
        "path": None if piped else path,
        "lines": count,
        "head": head,
        "tenant": memory.tenant,
    }
    return CommandResult(data, lambda screen, _: None if piped else screen.line(f"{path}: {told}"), talk=tuple(talk))


@command(
    argument("PATH", "A file, a folder or a zip archive; - is stdin.", "path"),
    option("--from, --format", "Its format, if its content does not show it.", "FORMAT", "format", default="auto"),
    option("--user", "Put all of it into one user. [default: each user of the file has a scope]", "NAME"),
    option("--session", "Session of messages. [default: the file's name]", "NAME"),
    option("--facts", "Also propose facts that users state about themselves in conversations."),
    option("--subject", "With --facts: who the user is.", "NAME"),
    option("--dry-run", "Check everything and store nothing."),
    name="import",
)
def import_(call: CommandContext, path: str, format: str, dry_run: bool, **how: Any) -> CommandResult:  # noqa: A002
    """Import memories from another system or a file; each passes the gates. A missing store is made.

    Known are exports of ChatGPT and Claude (the zip as it is downloaded), mem0, Letta, Zep and Graphiti, MCP's
    memory server, a LangGraph store, folders of Markdown such as Obsidian's, basic-memory's and Claude Code's,
    messages, a CSV with a column `text`, and our own; `--from lines` reads one text a line. It comes in as an
    agent's; `keepward restore-export` brings back an export as it was.
    """
    from keepward.core.value import unknown_name_message
    from keepward.interchange import FORMATS, load
    from keepward.interchange.imports import holds_items

    if format not in FORMATS:
        raise InvalidInput(f"--from: {unknown_name_message('format', format, FORMATS)}")
    if not path:
        raise InvalidInput("PATH is empty: name a file or a folder; . is this one")
    with ExitStack() as stack:
        target: Any = _rereadable_source(path, stack)
        memory: Memory | None = None
        if not call.path.exists():
            # No store is made by a dry run, or for a file that cannot be read or has nothing to store.
            nowhere = stack.enter_context(call.dry_run_memory())
            with call.progress("looking into files") as report:
                found = holds_items(nowhere, target, format=format, user=how["user"], on_progress=report)
            memory = nowhere if dry_run or not found else None
            if not isinstance(target, Path):
                target.seek(0)
        memory = memory or call.memory(create=True)
        with call.progress("importing") as report:
            result = load(memory, target, format=format, dry_run=dry_run, on_progress=report, **how)
        tenants = list(result.tenants) or [memory.tenant]
    unused = {
        name: [{"line": line, "reason": why} for line, why in getattr(result, name)] for name in ("failed", "refusals")
    }
    talk = _import_messages(result)
    if not (dry_run or call.path.exists()):
        talk = ("there was nothing to store, so no store was made",)
    if call.as_json:
        talk = (f"imported {result.total} items into {', '.join(tenants)}", *talk)
    stored = result.committed or result.duplicates or not result.total
    code = 0 if stored or dry_run else 6 if result.quarantined else 5
    return CommandResult(to_json_object(result, **unused, tenants=tenants), _show_import, code, talk)


def _rereadable_source(path: str, stack: ExitStack) -> Any:
    """Return the path; for `-` and a pipe a stream in memory, since an import reads its source twice."""
    if path != "-" and not Path(path).expanduser().is_fifo():
        return Path(path).expanduser()
    from keepward.interchange.parsing import open_source

    source = stack.enter_context(open_source(sys.stdin.buffer if path == "-" else Path(path).expanduser()))
    if isinstance(source.stream, io.BytesIO):
        # An import is called by the name of its stream.
        source.stream.name = source.name
    source.stream.seek(0)
    return source.stream


def _import_messages(result: Imported) -> tuple[str, ...]:
    if result.dry_run:
        return ("nothing was stored; import it without --dry-run",)
    pending = ("some are pending review: see them with `keepward pending`",) if result.quarantined else ()
    source = shlex.quote(result.reference)
    undone = (
        f"see all of it with `keepward impact --source {source}`; `contain` takes it out of use, `erase` destroys it"
    )
    return (*pending, *((undone,) if result.committed or result.quarantined else ()))


def _show_import(screen: Screen, data: dict[str, Any]) -> None:
    names = ("committed", "duplicates", "quarantined", "refused")
    told = ", ".join(f"{data[name]} {name}" for name in names)
    label = "would import" if data["dry_run"] else "imported"
    screen.labelled(label, f"{data['total']} items ({data['format']}): {told}, {len(data['failed'])} unusable")
    screen.labelled("facts", ", ".join(f"{count} {_COUNT_OF_OUTCOME[name]}" for name, count in data["facts"].items()))
    screen.labelled("tenants", ", ".join(data["tenants"]))
    for word, rows in (("unusable", data["failed"]), ("refused", data["refusals"])):
        screen.labelled(word, [f"{row['line']}: {row['reason']}" for row in rows[:_MAX_LINES_SHOWN]], "yellow")
        if len(rows) > _MAX_LINES_SHOWN:
            screen.labelled("", f"and {len(rows) - _MAX_LINES_SHOWN} more; --json lists all of them")
    screen.labelled("note", data["notes"])


@command(argument("PATH", "An export of your own.", "path"), APPLY)
def restore_export(call: CommandContext, path: str, apply: str | None) -> CommandResult:
    """Restore an export with its history and core blocks into an empty tenant. First shows what it contains.

    Its hashes show that it is complete, not who wrote it. Restore only exports that you trust.
    """
    from keepward.interchange import plan_restore_export
    from keepward.interchange import restore_export as carry_out

    file = Path(path).expanduser()
    notes: list[str] = []
    if call.path.exists():
        plan = plan_restore_export(call.memory("decide"), file)
    else:
        # The plan follows from the file alone, so that any empty store will do.
        with call.dry_run_memory("decide") as nowhere:
            plan = plan_restore_export(nowhere, file)
    if apply is not None:
        if apply != plan.digest:
            raise Conflict("the export is not the one that was shown; look at it again")
        memory = call.memory("decide", create=True)
        with call.progress("restoring") as report:
            notes = list(carry_out(memory, file, apply, on_progress=report).notes)
    again = f"nothing was changed; restore it with the same arguments and --apply {plan.digest}"
    return CommandResult(to_json_object(plan, applied=apply is not None, notes=notes), talk=() if apply else (again,))


@command(
    argument("PATH", "Messages as JSON or JSONL, each with role and content; - is stdin.", "path"),
    option("--session", "Name of the session. [default: the file's name]", "NAME"),
    option("--subject", "Who the messages of the role user are from.", "NAME"),
    option("--no-facts", "Store the messages and propose no facts."),
)
def add(call: CommandContext, path: str, session: str | None, subject: str | None, no_facts: bool) -> CommandResult:
    """Add messages of a conversation, and propose the facts in them. A missing store is made.

    What a user asks to remember ("remember that ...") becomes a fact, in the same words; the model of the setting
    `extractor` may propose more. A message with an `id` is added once. `keepward import` reads files of many sessions.
    """
    from keepward.interchange.messages import messages_in
    from keepward.interchange.parsing import open_source

    with open_source(sys.stdin.buffer if path == "-" else Path(path).expanduser()) as source:
        messages = messages_in(source)
    named = session or (Path(path).stem if path != "-" else None)
    if not call.path.exists():
        with call.dry_run_memory() as nowhere:
            nowhere.add(messages, session=named, subject=subject, extract=False)
    memory = call.memory(create=True)
    with call.progress("adding") as report:
        result = memory.add(messages, session=named, subject=subject, extract=not no_facts, on_progress=report)
    data = {
        "session": named,
        "turns": [each.to_dict() for each in result.turns],
        "facts": [{**each.to_dict(), "text": _text_of(each)} for each in result.facts],
        "notes": list(result.notes),
    }
    outcomes = [each.outcome for each in (*result.turns, *result.facts)]
    talk = ("some are pending review: see them with `keepward pending`",) if "quarantined" in outcomes else ()
    stored = not outcomes or {"committed", "duplicate"} & set(outcomes)
    return CommandResult(data, None, 0 if stored else 6 if "quarantined" in outcomes else 5, talk, hidden=("memories",))


def _text_of(outcome: Outcome) -> str:
    """Return the text of a fact; a refused one is stored nowhere."""
    if outcome.record is not None:
        return outcome.record.text
    return outcome.item.steps[0].after.text if outcome.item else "a fact that was not stored"
