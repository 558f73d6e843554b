"""Commands on memories: proposals, reads, feedback, blobs, and the identity.

All except `train` act as an agent by default. `remember`, `block` and `blob put` create the store if it is missing. A
write that stored nothing says so and why. A file that is too large is refused before it is read. `blob get` writes a
file that only its owner can read, and replaces no file.

Late imports: other commands start faster.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from keepward import durable
from keepward.api import OPERATIONS
from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, read_text
from keepward.cli.model import hint_missing_model
from keepward.cli.outcomes import write_result
from keepward.cli.parameters import operation_command, parameters, simple_command
from keepward.core.blob import MAX_BLOB_BYTES
from keepward.core.policy import access_for
from keepward.core.results import outcome_summary
from keepward.core.value import pluralize
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.blob import Blob
    from keepward.core.compiled import CompiledContext
    from keepward.core.query import Memories, Recall
    from keepward.memory import Memory

MEDIA_TYPE = option("--media-type", "Such as image/png. [default: detected from the bytes]", "TYPE")


@operation_command(
    option("--file", "A picture, recording or other file that TEXT describes.", "FILE"),
    MEDIA_TYPE,
    without="content_type speaker job aliases vector",
)
def remember(
    call: CommandContext, text: str, file: str | None = None, media_type: str | None = None, **fields: Any
) -> CommandResult:
    """Remember a text. The store is created if it is missing."""
    if (file is not None and "blob" in fields) or (media_type is not None and file is None):
        raise InvalidInput("give --file, with or without --media-type, or --blob for a blob that is already stored")
    # The file is read before the store is open: closing a handle on the store's own file would drop its locks.
    content = None if file is None else _content_of(file)

    def store(memory: Memory) -> Any:
        if content is not None:
            fields["blob"] = memory.put_blob(content, media_type=media_type).ref
        return memory.remember(text, **fields)

    result = write_result(call.rehearse_then_run(store))
    hint_missing_model(call)
    return result


@operation_command(option("--append", "Add TEXT to the old text."))
def revise(call: CommandContext, memory_id: str, append: bool = False, **fields: Any) -> CommandResult:
    """Change the text or fields of a memory; the old version stays in its history."""
    if not append:
        return write_result(call.memory().revise(memory_id, **fields))
    if "text" not in fields or fields.keys() - OPERATIONS["append"].arguments.keys():
        raise InvalidInput("--append takes only a text, --source, --evidence and --confidence")
    return write_result(call.memory().append(memory_id, **fields))


@operation_command(option("--no-key", "Remove its stable name."))
def move(call: CommandContext, memory_id: str, no_key: bool = False, **fields: Any) -> CommandResult:
    """Move a memory to another tier or scope, or give it another key.

    A move into core needs approval, unless the owner makes it with `--as operator`.
    """
    if "key" in fields and no_key:
        raise InvalidInput("--key and --no-key exclude each other")
    fields |= {"key": None} if no_key else {}
    if not fields.keys() & {"tier", "scope", "key"}:
        raise InvalidInput("name the target: --tier, --to, --key or --no-key; `store migrate` moves a whole store")
    return write_result(call.memory().move(memory_id, **fields))


@operation_command(only="memory_ids text reason tier key tags category importance")
def merge(call: CommandContext, memory_ids: tuple[str, ...], **fields: Any) -> CommandResult:
    """Write one summary that supersedes several memories; `keepward rollback` undoes it."""
    if len(set(memory_ids)) < 2:
        raise InvalidInput("merge takes two memories or more")
    outcome = call.memory().merge(memory_ids, **fields)
    if outcome is None:
        raise InvalidInput("these ids and keys name one memory; merge takes two or more")
    return write_result(outcome)


@command(
    argument("[KEY]", "A block, such as mission; without a key all are listed.", "key"),
    *parameters(OPERATIONS["remember"], only="text access if_version reason", optional="text"),
)
def block(call: CommandContext, key: str | None, text: str | None, **args: Any) -> CommandResult:
    """Show the core blocks with their access, or write one.

    An agent's edit needs approval; `--as operator` writes it at once. The access of the tier, the settings and the
    block may differ; the strictest applies.
    """
    if text is None and args["access"] is None:
        return _blocks(call.memory(), key)
    if key is None:
        raise InvalidInput("name the block: keepward block KEY TEXT")
    new_text = None if text is None else read_text(text)

    def store(memory: Memory) -> Any:
        if new_text is not None:
            return memory.remember(new_text, tier="core", key=key, **args)
        records = memory.list_memories(tiers=["core"], key=key)
        if not records:
            raise InvalidInput("the block has no text: give a text together with --access")
        return memory.remember(records[0].text, tier="core", key=key, **args)

    return write_result(call.rehearse_then_run(store))


def _blocks(memory: Memory, key: str | None) -> CommandResult:
    budgets = memory.status()["blocks"]
    blocks = [
        {
            **{name: getattr(record, name) for name in ("key", "id", "version", "scope")},
            "access": access_for(memory.policy, record.tier, record.key, record.access).value,
            **{name: budgets.get(str(record.key), {}).get(name) for name in ("tokens", "budget")},
            "text": record.text,
        }
        for record in memory.list_memories(tiers=["core"], key=key, limit=None)
    ]
    return CommandResult({"blocks": blocks, "count": len(blocks)}, hidden=("count", "id", "version"))


@operation_command(
    option("--matching", "Forget all memories that match these words, instead of one ID.", "TEXT"),
    option("--yes", "Do not ask for confirmation."),
    optional="memory_id",
)
def forget(
    call: CommandContext, matching: str | None = None, yes: bool = False, reason: str = "", **named: Any
) -> CommandResult:
    """Retire a memory, or all memories that match some words; `restore` makes one active again.

    `--matching` lists the matches with scores and asks for confirmation. One commit retires all; `rollback` undoes it.
    """
    if ("memory_id" in named) == (matching is not None):
        raise InvalidInput("name one memory by its ID, or give --matching TEXT")
    if matching is None:
        if yes:
            raise InvalidInput("--yes goes with --matching")
        return write_result(call.memory().forget(reason=reason, **named))
    if named:
        raise InvalidInput("--if-version goes with an ID")
    text, memory, hidden = read_text(matching), call.memory(), ["digest", "why", "version"]
    done = memory.plan_forget_matching(text)
    if done.matches and not yes and not call.as_json and sys.stdin.isatty() and sys.stdout.isatty():
        import click

        from keepward.cli.render import Screen

        Screen(sys.stdout).result(done.to_dict(), hidden)
        yes = click.confirm(f"Forget {pluralize(len(done.matches), 'memory', 'memories')}?")
        hidden += ["matches", "notes"]
    if done.matches and yes:
        done = memory.forget_matching(text, digest=done.digest, reason=reason)
    data = done.to_dict()
    if done.outcome is None:
        hint = "nothing was changed; --yes forgets them" if done.matches else "no memory of this scope matches"
        return CommandResult(data, messages=(hint,), hidden=tuple(hidden))
    result = write_result(done.outcome)
    count = pluralize(len(done.matches), "memory", "memories")
    commit = done.outcome.commit
    undo = [f"{count}, in one commit; undo it with `keepward rollback {commit.id}`"] if commit else []
    summary = outcome_summary(done.outcome)

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.result({**data, "outcome": summary}, hidden)

    return CommandResult(data, draw, result.code, (*result.messages, *undo))


@command(
    argument("put|get|show", "Store a file, write a blob to a file, or describe a blob.", "action"),
    argument("FILE|REF", "The file to store (- reads stdin), or the blob.", "target"),
    argument("[OUT]", "A new file; - writes to stdout.", "out"),
    MEDIA_TYPE,
)
def blob(
    call: CommandContext, action: str, target: str, out: str | None, media_type: str | None
) -> CommandResult | None:
    """Store a file of up to 32 MB, such as a picture, for memories to refer to, or read one.

    A blob that no memory refers to is deleted after a day. `remember TEXT --file FILE` does both in one step.
    """
    if (out is None) == (action == "get") or (media_type is not None and action != "put"):
        raise InvalidInput("blob put takes FILE and --media-type, blob get takes REF and OUT, blob show takes REF")
    if action == "put":
        content = _content_of(target)
        stored_blob = call.rehearse_then_run(lambda memory: memory.put_blob(content, media_type=media_type))
        return _blob(stored_blob, is_new=True)
    if out == "-" and call.as_json:
        raise InvalidInput("with --json name a file: keepward blob get REF OUT --json")
    from keepward.memory import request_context_of
    from keepward.services.writing import blobs

    memory = call.memory()
    stored_blob = blobs.blob_info(request_context_of(memory), target)
    if out is None:
        return _blob(stored_blob)
    content = memory.read_blob(target)
    if out == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return None
    path = Path(out).expanduser()
    try:
        with durable.new_file(path) as file:
            file.write(content)
    except FileExistsError as fault:
        raise InvalidInput("OUT exists already; name another file") from fault
    return _blob(stored_blob, str(path))


def _content_of(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(MAX_BLOB_BYTES + 1)
    path = Path(file).expanduser()
    if not path.is_file():
        raise InvalidInput(
            "this is a folder; name a file" if path.is_dir() else "there is no such file; check the path"
        )
    if path.stat().st_size > MAX_BLOB_BYTES:
        raise InvalidInput(
            f"a blob is at most {MAX_BLOB_BYTES // 2**20} MB; store larger files elsewhere and remember their path"
        )
    return path.read_bytes()


def _blob(stored: Blob, path: str | None = None, *, is_new: bool = False) -> CommandResult:
    next_command = f'keepward remember "what it is" --blob {stored.ref}' if is_new else None
    messages = [f"refer to it: {next_command}"] if next_command else []
    if stored.active:
        messages.append("warning: this is active content, which may run when you open it")
    data = {**stored.to_dict(), "path": path, "next": next_command}
    return CommandResult(data, messages=tuple(messages), hidden=("next",))


@command(
    argument("[propose]", "Propose a new text; without it, show the identity.", "action"),
    option("--file, -f", "The complete new text; - reads stdin.", "FILE"),
    option("--reason", "Why; the reviewer reads it.", "TEXT"),
)
def identity(call: CommandContext, action: str | None, file: str | None, reason: str | None) -> CommandResult:
    """Show the persona that opens every context, or propose a new text, which the owner approves.

    With an identity file, the file alone is the persona: `diff` is what its owner changes by hand. Without one, the
    persona is a core block: `keepward history persona` lists its versions.
    """
    if action is None:
        if (file, reason) != (None, None):
            raise InvalidInput("--file and --reason go with `identity propose`")
        return CommandResult(call.memory().identity().to_dict())
    if file is None:
        raise InvalidInput("identity propose takes --file FILE; --reason TEXT is optional")
    try:
        text = read_text("-") if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput("the file cannot be read as UTF-8 text") from fault
    return write_result(call.memory().update_identity(text, reason=reason or ""))


@operation_command(without="content_types")
def recall(call: CommandContext, as_of: str | None = None, **args: Any) -> CommandResult:
    """Find memories by words and meaning, best first, and show why each was found. Weak hits are labelled."""
    result = call.memory().recall(as_of=as_of, **args)
    hint_missing_model(call)
    notes = _notes(call, result, as_of, args.get("within"))
    return CommandResult({**result.to_dict(), "notes": list(notes)}, _show_recall, messages=notes)


def _notes(
    call: CommandContext, result: Recall | Memories | CompiledContext, as_of: str | None, within: str | None = None
) -> tuple[str, ...]:
    """Return the notes of a result. The owner also gets those on scopes that an agent does not see."""
    if as_of is not None or within is not None or not call.is_owner:
        return result.notes
    return tuple(dict.fromkeys((*result.notes, *call.memory("decide").list_memories(limit=1).notes)))


def _show_recall(screen: Screen, data: dict[str, Any]) -> None:
    from keepward.cli.render import describe_kind, valid_time

    for hit in data["hits"]:
        memory = hit["memory"]
        words = [memory["occurred_at"] and memory["occurred_at"][:10], memory["speaker"], memory["text"]]
        screen.labelled(f"{hit['rank']:>2}.", ": ".join(filter(None, words)), "bold", width=4)
        score = f"{'weak, ' if hit['weak'] else ''}score {hit['score']:.2f}"
        facts = [describe_kind(memory), f"from {memory['source']} ({memory['trust']})"]
        facts += valid_time(memory)
        details = " · ".join(filter(None, [*facts, score, " + ".join(hit["why"])]))
        screen.labelled("", [details, f"{memory['id']} v{memory['version']}"], "dim", width=4)
    if not data["hits"]:
        screen.line("Nothing found.", "dim")
    screen.line(f"searched by {' and '.join(data['used']) or 'nothing'} at head {data['head']}", "dim")
    screen.labelled("receipt", data["receipt"], "dim")


@operation_command(without="preview")
def context(call: CommandContext, **args: Any) -> CommandResult:
    """Compile the context for a model within a token budget. A receipt records what is in it and what is not."""
    compiled = call.memory().context(**args)
    data = compiled.to_dict() | {"notes": list(_notes(call, compiled, args.get("as_of")))}
    parts = ", ".join(f"{section['name']} {section['tokens']}" for section in data["sections"]) or "nothing"
    left_out = len(data["excluded"]) + sum(data["unlisted"].values())
    summary = f"{data['tokens']} tokens ({parts}); {left_out} left out"
    if data["kept"]:
        name = data["receipt"]["id"]
        summary += f"; receipt {name} (`keepward receipt {name}` shows why)"
    return CommandResult(data, _show_text, messages=(summary, *data["notes"]))


def _show_text(screen: Screen, data: dict[str, Any]) -> None:
    screen.verbatim(data["text"])


@operation_command()
def replay(call: CommandContext, receipt_id: str) -> CommandResult:
    """Compile a context again from its receipt, byte for byte."""
    replayed = call.memory().replay(receipt_id)
    missing = f"not the same as then: {len(replayed.missing)} sources are missing"
    verdict = "the same bytes as then" if replayed.same else missing
    return CommandResult(replayed.to_dict(), _show_text, 0 if replayed.same else 1, (verdict,))


@operation_command(
    option("--no-limit", "List all.", name="everything"),
    of="list_memories",
    name="list",
    only="tiers kinds tags key subject category session since until occurred_since occurred_until valid_at within "
    "where limit include_ended as_of",
)
def list_(
    call: CommandContext, limit: int, everything: bool = False, as_of: str | None = None, **args: Any
) -> CommandResult:
    """List memories, newest first."""
    # One record above the limit shows whether there are more.
    records = call.memory().list_memories(limit=None if everything else limit + 1, as_of=as_of, **args)
    shown = records.items if everything else records.items[:limit]
    cut = [] if len(shown) == len(records) else [f"only the newest {limit} are shown; --no-limit shows all"]
    notes = [*_notes(call, records, as_of, args.get("within")), *cut]
    page = replace(records, items=shown, notes=tuple(notes))
    return CommandResult(page.to_dict(), messages=page.notes, hidden=("head", "notes", "total", "withheld"))


def _version_event(version: dict[str, Any]) -> dict[str, Any]:
    """Return a version as an event, as a person reads it."""
    details = {name: version["details"][name] for name in ("actor", "approved_by", "reason")}
    return {**version, "after": version["record"], "at": version["commit"]["at"], **details}


@operation_command()
def history(call: CommandContext, memory_id: str) -> CommandResult:
    """Show every version of a memory: who changed what, when and why."""
    found = call.memory().history(memory_id)
    damage = [note for version in found for note in version.damage]

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.result({"id": data["id"], "versions": [_version_event(version) for version in data["items"]]})

    return CommandResult(found.to_dict(), draw, messages=tuple(dict.fromkeys((*found.notes, *damage))))


@operation_command()
def feedback(call: CommandContext, **args: Any) -> CommandResult:
    """Report which memories of a recall or context were used; `train` learns from it.

    The weight of agents' feedback is limited to a share of people's feedback. With `--as operator`, the
    feedback counts as a person's.
    """
    stored = call.memory().feedback(**args)
    messages = () if stored.by_person else ("the weight of agents' feedback is limited to a share of people's",)
    if not stored.n:
        messages = ("the feedback was not stored: memory is switched off by policy",)
    return CommandResult(stored.to_dict(), messages=messages, hidden=("tenant",))


train = simple_command("train_reranker", "decide", name="train")
