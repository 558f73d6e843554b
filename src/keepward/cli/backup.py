"""Commands that erase, copy, adopt and import data: erase, backup, store, adopt, export, import and add.

An action that cannot be undone shows its plan and a digest first. It runs only with that digest.

Late imports: other commands start faster.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.cli.parameters import operation_command
from keepward.cli.review import APPLY
from keepward.core.json_form import to_json
from keepward.core.results import outcome_summary
from keepward.core.value import pluralize, unknown_name_message
from keepward.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.proposal import Outcome
    from keepward.interchange.run import Imported
    from keepward.memory import Memory

#: Word for the outcome of a fact.
_COUNT_OF_OUTCOME = {"committed": "committed", "duplicate": "known", "quarantined": "quarantined", "refused": "refused"}
#: Maximum number of unusable lines to show; `--json` prints all.
_MAX_LINES_SHOWN = 10


@operation_command(
    APPLY,
    option("--certificate", "Print the certificate of a completed erasure; takes one ID."),
    option("--html", "With --certificate: print it as a page to read and print on paper."),
    of="plan_erase",
    name="erase",
)
def erase(
    call: CommandContext,
    ids: tuple[str, ...] = (),
    apply: str | None = None,
    certificate: bool = False,
    html: bool = False,
    **chosen: Any,
) -> CommandResult:
    """Permanently destroy the text of memories everywhere. Without --apply, only the plan is shown."""
    has_other = apply or chosen.keys() & {"subject", "source", "include_citing"}
    if certificate and (len(ids) != 1 or has_other):
        raise InvalidInput("--certificate takes the ID of one erased memory and no other option")
    if html and not certificate:
        raise InvalidInput("--html is a form of the certificate: add --certificate and the ID of one erased memory")
    memory = call.memory("decide")
    blank = dict.fromkeys(("plan", "commit", "receipt", "certificate"))
    data: dict[str, Any] = {"applied": bool(apply), **blank}
    if certificate:
        data["certificate"] = memory.certificate(ids[0])
        return CommandResult(data, lambda screen, data: screen.verbatim(_certificate_text(data["certificate"], html)))
    if apply is not None:
        done = memory.erase(apply, ids, **chosen)
        data |= {**done.to_dict(), "certificate": memory.certificate(done.commit.id)}
        return CommandResult(data, _show_erasure(("places", "commit_details")))
    plan = memory.plan_erase(ids, **chosen)
    data["plan"] = plan.to_dict()
    notes = [f"nothing was changed; erase it with the same arguments and --apply {plan.digest}"]
    if plan.candidates:
        notes.insert(0, "candidates are not erased unless you name them or add --include-citing")
    return CommandResult(data, _show_erasure(), messages=tuple(notes))


def _certificate_text(certificate: dict[str, Any], html: bool) -> str:
    if not html:
        return json.dumps(certificate, indent=2)
    from keepward.interchange.certificate import certificate_page

    return certificate_page(certificate)


def _show_erasure(hidden: tuple[str, ...] = ()) -> Callable[[Screen, dict[str, Any]], None]:
    """Return how an erasure is shown: what its plan lists is counted."""

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        plan = data["plan"]
        weights = sum(1 for kind, _ in plan["artefacts"] if kind == "reranker")
        counts = {name: len(plan[name]) for name in ("versions", "receipts", "proposals", "feedback", "blobs")}
        counts |= {"commit_details": len(plan["details"]), "documents": len(plan["artefacts"]) - weights}
        shown = {**plan, **counts, "weights": weights}
        screen.result({**data, "plan": shown}, ("details", "artefacts", *hidden))

    return draw


@command(argument("PATH", "A new file.", "path"))
def backup(call: CommandContext, path: str) -> CommandResult:
    """Copy the store in use to one consistent file that only you can read. A restore repeats later erasures."""
    return CommandResult(call.memory("decide").backup(Path(path).expanduser()).to_dict())


@command(argument("PATH", "A backup.", "path"), option("--to", "A new store.", "DB", required=True))
def restore_backup(call: CommandContext, path: str, to: str) -> CommandResult:
    """Restore a backup into a new store. Later erasures are repeated in it, and its older state is accepted.

    A store that this machine has no key for must be adopted before it is used.
    """
    from keepward.memory import Memory
    from keepward.settings import config_folder

    paths = Path(path).expanduser(), Path(to).expanduser()
    made = Memory.restore_backup(*paths, actor=call.principal("decide"), config_dir=config_folder(call.environ))
    return CommandResult(made.to_dict())


@command(
    argument("migrate|recover", "Copy the store elsewhere, or recover a damaged one.", "action"),
    argument("[BROKEN]", "With recover: the damaged store.", "broken"),
    argument("[NEW]", "With recover: a new store.", "new"),
    option("--to", "With migrate: a new file, or the address of a database.", "DB"),
    option("--dry-run", "With migrate: show what would be copied, and copy nothing."),
)
def store(
    call: CommandContext, action: str, broken: str | None, new: str | None, to: str | None, dry_run: bool
) -> CommandResult:
    """Migrate the store to another file or database, or recover a damaged one.

    `store migrate --to DB` copies everything, with the same heads. The old store stays. Run it again to continue an
    interrupted migration. `store recover BROKEN NEW` copies a damaged store up to its first invalid commit into
    a new one, and lists what is lost. The damaged store is not changed.
    """
    if action == "migrate":
        if to is None or broken is not None:
            raise InvalidInput("store migrate takes --to DB and no other argument")
        return _migrated(call, to, dry_run)
    if broken is None or new is None or to is not None or dry_run:
        raise InvalidInput("store recover takes BROKEN and NEW, the paths of two stores, and no other option")
    return _recovered(call, broken, new)


def _migrated(call: CommandContext, to: str, dry_run: bool) -> CommandResult:
    call.require_store()
    with call.progress("migrating") as report:
        moved = call.memory("decide").move_store(to, dry_run=dry_run, on_progress=report)
    next_step = "nothing was copied; leave out --dry-run" if dry_run else f"from now on: --db {moved.place}"
    return CommandResult(moved.to_dict(), messages=(next_step,))


def _recovered(call: CommandContext, broken: str, new: str) -> CommandResult:
    from keepward.memory import Memory
    from keepward.settings import config_folder

    made = Memory.recover(
        Path(broken).expanduser(),
        Path(new).expanduser(),
        actor=call.principal("decide"),
        config_dir=config_folder(call.environ),
        on_progress=None if call.quiet else lambda message: print(message, file=sys.stderr),  # noqa: T201
    )
    return CommandResult(dict(made.to_dict(), whole=made.whole), None, 0 if made.whole else 1)


@command(APPLY)
def adopt(call: CommandContext, apply: str | None) -> CommandResult:
    """Accept a store from elsewhere, or an older state. Without --apply, only what it contains is shown."""
    memory = call.memory("decide")
    plan = memory.plan_adopt() if apply is None else memory.adopt(apply)
    messages = () if apply else (f"nothing was changed; accept it with `keepward adopt --apply {plan.digest}`",)
    return CommandResult({**to_json(plan), "applied": apply is not None}, messages=messages)


@command(
    argument("[PATH]", "File to write; the default - is stdout. With --markdown a new folder.", "path", default="-"),
    option("--markdown", "Write each active memory as a note, for Obsidian or any editor."),
    option("--legacy", "Write active memories as lines of a legacy vault: canon and register."),
    option("--subject", "Write everything about this person, agent or project, as one JSON object.", "NAME"),
)
def export(call: CommandContext, path: str, markdown: bool, legacy: bool, subject: str | None) -> CommandResult:
    """Write every version of every memory of the tenant as JSON lines, or active memories in another form.

    `export --subject NAME` writes the memories about it, by it or with its name, in all versions. It also writes the
    proposals, and the contexts that contained one of them, and says what is left out.
    """
    from keepward.interchange import write_legacy, write_notes, write_subject, write_vault

    memory, piped = call.memory("decide"), path == "-"
    if piped and markdown:
        raise InvalidInput("--markdown takes a folder: keepward export FOLDER --markdown")
    if bool(markdown) + bool(legacy) + bool(subject) > 1:
        raise InvalidInput("--markdown, --legacy and --subject exclude each other")
    if subject and piped and call.as_json:
        return CommandResult(memory.export_subject(subject).to_dict())
    if piped and call.as_json:
        # With --json stdout contains one object only, so the lines need a file.
        raise InvalidInput("with --json name a file: keepward export PATH --json")
    target, head = Path(path).expanduser(), memory.status()["head"]
    if markdown:
        count = write_notes(memory, target)
        summary = f"{pluralize(count, 'note', 'notes')}, tenant {memory.tenant}"
        messages = ["not included: earlier versions, inactive memories, and the bytes of blobs"]
    elif subject:
        found = write_subject(memory, subject, sys.stdout if piped else target)
        count = len(found.memories)
        versions = sum(len(each.versions) for each in found.memories)
        summary = ", ".join(
            (
                pluralize(count, "memory", "memories"),
                pluralize(versions, "version", "versions"),
                pluralize(len(found.proposals), "proposal", "proposals"),
                pluralize(len(found.contexts), "context", "contexts"),
            )
        )
        messages = [*([summary] if piped else []), *(f"left out: {sentence}" for sentence in found.left_out)]
    elif legacy:
        count, messages = write_legacy(memory, sys.stdout if piped else target)
        summary = f"{pluralize(count, 'line', 'lines')}, tenant {memory.tenant}"
    else:
        count = write_vault(memory, sys.stdout if piped else target)
        summary = f"{pluralize(count, 'line', 'lines')}, tenant {memory.tenant}, head {head}"
        messages = [
            *([summary] if piped else []),
            "not included: the review queue, receipts, feedback, learned weights and usage counts",
        ]
    data = {
        "path": None if piped else path,
        "lines": count,
        "head": head,
        "tenant": memory.tenant,
    }
    return CommandResult(
        data, lambda screen, _: None if piped else screen.line(f"{path}: {summary}"), messages=tuple(messages)
    )


@command(
    argument("PATH", "A file, a folder or a zip archive; - is stdin.", "path"),
    option("--from, --format", "Its format, if it cannot be detected.", "FORMAT", "format", default="auto"),
    option("--user", "Import everything for one user. [default: a scope for each user of the file]", "NAME"),
    option("--session", "Session of messages. [default: the file's name]", "NAME"),
    option("--facts", "Also propose the facts that users ask to remember in conversations."),
    option("--subject", "With --facts: the name of the user.", "NAME"),
    option("--untrusted", "With --as operator: you do not vouch for the file."),
    option("--dry-run", "Check everything and store nothing."),
    name="import",
)
def import_(call: CommandContext, path: str, format: str, dry_run: bool, **how: Any) -> CommandResult:  # noqa: A002
    """Import memories from another system or a file; each passes the gates. The store is created if it is missing.

    Formats: exports of ChatGPT and Claude (the downloaded zip), mem0, Letta, Zep and Graphiti, the MCP memory server,
    a LangGraph store, Markdown folders (Obsidian, basic-memory, Claude Code), messages, a CSV with a column `text`,
    and Keepward's own export. `--from lines` reads one text per line. With `--as operator` the memories have the trust
    of a user, else that of an import; core blocks and memories with a key wait for approval.
    `keepward restore-export` restores an export with its history.
    """
    from keepward.interchange import FORMATS, load
    from keepward.interchange.imports import contains_items

    if format not in FORMATS:
        raise InvalidInput(f"--from: {unknown_name_message('format', format, FORMATS)}")
    if not path:
        raise InvalidInput("PATH is empty: name a file or a folder; . is the working folder")
    with ExitStack() as stack:
        target: Any = _rereadable_source(path, stack)
        memory: Memory | None = None
        if not call.path.exists():
            # A dry run, and a file that is unreadable or empty, must not make a store.
            dry_run_memory = stack.enter_context(call.dry_run_memory())
            with call.progress("reading files") as report:
                has_items = contains_items(dry_run_memory, target, format=format, user=how["user"], on_progress=report)
            memory = dry_run_memory if dry_run or not has_items else None
            if not isinstance(target, Path):
                target.seek(0)
        memory = memory or call.memory(create=True)
        with call.progress("importing") as report:
            result = load(memory, target, format=format, dry_run=dry_run, on_progress=report, **how)
        tenants = list(result.tenants) or [memory.tenant]
    unused = {
        name: [{"line": line, "reason": why} for line, why in getattr(result, name)] for name in ("failed", "refusals")
    }
    messages = _import_messages(result)
    if not (dry_run or call.path.exists()):
        messages = ("there was nothing to store, so no store was made",)
    if call.as_json:
        messages = (f"imported {result.total} items into {', '.join(tenants)}", *messages)
    stored = result.committed or result.duplicates or not result.total
    code = 0 if stored or dry_run else 6 if result.quarantined else 5
    return CommandResult({**to_json(result), **unused, "tenants": tenants}, _show_import, code, messages)


def _rereadable_source(path: str, stack: ExitStack) -> Any:
    """Return the path; for `-` and a pipe a stream in memory, because an import reads its source twice."""
    if path != "-" and not Path(path).expanduser().is_fifo():
        return Path(path).expanduser()
    from keepward.interchange.parsing import open_source

    source = stack.enter_context(open_source(sys.stdin.buffer if path == "-" else Path(path).expanduser()))
    if isinstance(source.stream, io.BytesIO):
        # The reference of an import contains the name of its stream.
        source.stream.name = source.name
    source.stream.seek(0)
    return source.stream


def _import_messages(result: Imported) -> tuple[str, ...]:
    if result.dry_run:
        return ("nothing was stored; import it without --dry-run",)
    pending = ("some are pending review: see them with `keepward pending`",) if result.quarantined else ()
    source = shlex.quote(result.reference)
    undo = f"list all of it with `keepward impact --source {source}`; `contain` retires it, `erase` destroys it"
    return (*pending, *((undo,) if result.committed or result.quarantined else ()))


def _show_import(screen: Screen, data: dict[str, Any]) -> None:
    names = ("committed", "duplicates", "quarantined", "refused")
    summary = ", ".join(f"{data[name]} {name}" for name in names)
    label = "would import" if data["dry_run"] else "imported"
    screen.labelled(label, f"{data['total']} items ({data['format']}): {summary}, {len(data['failed'])} unusable")
    screen.labelled("facts", ", ".join(f"{count} {_COUNT_OF_OUTCOME[name]}" for name, count in data["facts"].items()))
    screen.labelled("tenants", ", ".join(data["tenants"]))
    for word, rows in (("unusable", data["failed"]), ("refused", data["refusals"])):
        screen.labelled(word, [f"{row['line']}: {row['reason']}" for row in rows[:_MAX_LINES_SHOWN]], "yellow")
        if len(rows) > _MAX_LINES_SHOWN:
            screen.labelled("", f"and {len(rows) - _MAX_LINES_SHOWN} more; --json lists all of them")
    screen.labelled("note", data["notes"])


@command(argument("PATH", "An export of your own.", "path"), APPLY)
def restore_export(call: CommandContext, path: str, apply: str | None) -> CommandResult:
    """Restore an export with its history and core blocks into an empty tenant. Without --apply, only show it.

    Its hashes prove that it is complete, not who wrote it. Restore only exports that you trust.
    """
    from keepward.interchange import plan_restore_export
    from keepward.interchange import restore_export as apply_restore

    file = Path(path).expanduser()
    notes: list[str] = []
    if call.path.exists():
        plan = plan_restore_export(call.memory("decide"), file)
    else:
        # The plan depends on the file only, so any empty store will do.
        with call.dry_run_memory("decide") as dry_run_memory:
            plan = plan_restore_export(dry_run_memory, file)
    if apply is not None:
        if apply != plan.digest:
            raise Conflict("the export has changed since it was shown; run the command again without --apply")
        memory = call.memory("decide", create=True)
        with call.progress("restoring") as report:
            notes = list(apply_restore(memory, file, apply, on_progress=report).notes)
    hint = f"nothing was changed; restore it with the same arguments and --apply {plan.digest}"
    data = {**to_json(plan), "applied": apply is not None, "notes": notes}
    return CommandResult(data, messages=() if apply else (hint,))


@command(
    argument("PATH", "Messages as JSON or JSONL, each with role and content; - is stdin.", "path"),
    option("--session", "Name of the session. [default: the file's name]", "NAME"),
    option("--subject", "Author of the messages with the role user.", "NAME"),
    option("--no-facts", "Store the messages and propose no facts."),
)
def add(call: CommandContext, path: str, session: str | None, subject: str | None, no_facts: bool) -> CommandResult:
    """Add messages of a conversation, and propose the facts in them. The store is created if it is missing.

    A user's request to remember ("remember that ...") becomes a fact, in the same words. The model of the setting
    `extractor` may propose more. A message with an `id` is added once. `keepward import` reads files of many sessions.
    """
    from keepward.interchange.messages import messages_in
    from keepward.interchange.parsing import open_source

    with open_source(sys.stdin.buffer if path == "-" else Path(path).expanduser()) as source:
        new_messages = messages_in(source)
    named = session or (Path(path).stem if path != "-" else None)
    if not call.path.exists():
        with call.dry_run_memory() as dry_run_memory:
            dry_run_memory.add(new_messages, session=named, subject=subject, extract=False)
    memory = call.memory(create=True)
    with call.progress("adding") as report:
        result = memory.add(new_messages, session=named, subject=subject, extract=not no_facts, on_progress=report)
    data = {
        "session": named,
        "turns": [each.to_dict() for each in result.turns],
        "facts": [{**each.to_dict(), "text": _text_of(each)} for each in result.facts],
        "notes": list(result.notes),
    }
    outcomes = [each.outcome for each in (*result.turns, *result.facts)]
    messages = ("some are pending review: see them with `keepward pending`",) if "quarantined" in outcomes else ()
    stored = not outcomes or {"committed", "duplicate"} & set(outcomes)

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        facts = [{**outcome_summary(each), "text": _text_of(each)} for each in result.facts]
        screen.result({**data, "turns": [outcome_summary(each) for each in result.turns], "facts": facts})

    return CommandResult(data, draw, 0 if stored else 6 if "quarantined" in outcomes else 5, messages)


def _text_of(outcome: Outcome) -> str:
    """Return the text of a fact; the text of a refused fact is not stored."""
    if outcome.record is not None:
        return outcome.record.text
    return outcome.item.steps[0].after.text if outcome.item else "a fact that was not stored"
