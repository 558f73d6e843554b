"""Commands on memories: proposals, reads, feedback, blobs, and the identity document.

All except `train` act as an agent by default. `remember`, `block` and `blob put` create the store if it is missing. A
write that stored nothing says so and why. A file that is too large is refused before it is read. `blob get` writes a
file that only its owner can read, and replaces no file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward import durable
from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, as_json, read_text, to_json_object
from keepward.cli.model import warn_if_missing
from keepward.core.proposal import is_too_long_for_tier
from keepward.core.value import pluralize, redaction_note
from keepward.errors import InvalidInput, StaleVersion, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.blob import Blob
    from keepward.core.proposal import Outcome
    from keepward.core.query import Memories, Recall
    from keepward.memory import Memory

MEMORY = argument("ID", "The memory's id, the first 8 or more characters of it, or its key.", "memory_id")
REASON = option("--reason", "Why; it is stored in the journal.", "TEXT", default="")
IF_VERSION = option("--if-version", "Change it only if N is still its newest version.", "N")
CONSENT = option("--consent", "The person consents: store personal identifiers in the text.")
MEDIA_TYPE = option("--media-type", "Such as image/png. [default: detected from the bytes]", "TYPE")
CATEGORY = option("--category", "A label of your own.", "NAME")
SUBJECT = option("--subject", "Who or what it is about.", "NAME")
SENSITIVITY = option("--sensitivity", "normal or sensitive.", "SENSITIVITY")
AS_OF = option("--as-of", "Read a past state: a commit's number or id, or a time.", "TIME")
PURPOSE = option("--purpose", "What the result is used for: answer, act or core.", "PURPOSE", default="answer")
SENSITIVE = option("--include-sensitive", "Include sensitive memories.")
THRESHOLD = option("--floor", "Minimum score of a hit.", "0..1")
MEMORY_FILTERS = (
    option("--tier", "Only this tier. May be repeated.", "TIER", "tiers", multiple=True),
    option("--kind", "Only this kind. May be repeated.", "KIND", "kinds", multiple=True),
    option("--tag", "Only with any of these tags. May be repeated.", "TAG", "tags", multiple=True),
)
TIME_FILTERS = (
    option("--since", "Only if written at or after this time.", "TIME"),
    option("--until", "Only if written before this time.", "TIME"),
    option("--occurred-since", "Only if it happened at or after this time.", "TIME"),
    option("--occurred-until", "Only if it happened before this time.", "TIME"),
    option("--within", "Only from this scope and the scopes below it.", "SCOPE"),
    option("--where", 'Only if the metadata match, for example \'{"stars": {"$gte": 4}}\'.', "JSON"),
)
NAME_FILTERS = (
    option("--subject", "Only about this subject.", "NAME"),
    option("--category", "Only of this category.", "NAME"),
    option("--session", "Only of this session.", "NAME"),
)


@command(
    argument("TEXT", "What to remember; - reads stdin.", "text"),
    option("--tier", "core, working, episodic or archival. [default: archival]", "TIER"),
    option("--kind", "rule, fact, state, event, summary or document.", "KIND"),
    option("--key", "A stable name; writing to it again updates the memory.", "NAME"),
    option("--if-version", "Write to the key only if N is its newest version; 0: only if the key is unused.", "N"),
    SUBJECT,
    CATEGORY,
    option("--tag", "May be repeated.", "TAG", "tags", multiple=True),
    option("--source", "user_message, tool, document, web, inference ...", "SOURCE"),
    option("--evidence", "A reference that supports it, such as chat:42. May be repeated.", "REF", multiple=True),
    option("--confidence", "How likely it is true. [default: by source]", "0..1"),
    option("--importance", "How useful it is. [default: by source]", "0..1"),
    option("--ttl", "Time to live, such as 90s, 15m, 24h, 30d or 2w.", "DURATION"),
    option("--stability", "volatile, stable or permanent.", "STABILITY"),
    option("--access", "Who may change it without approval: read_only, approval, append or read_write.", "ACCESS"),
    option("--occurred-at", "When it happened.", "TIME"),
    SENSITIVITY,
    option("--session", "The session it comes from.", "NAME"),
    option("--derived-from", "A memory from which it was derived. May be repeated.", "ID", multiple=True),
    option("--metadata", "A JSON object of your own.", "JSON"),
    CONSENT,
    REASON,
    option("--file", "A picture, recording or other file that TEXT describes.", "FILE"),
    option("--blob", "A blob that TEXT describes, stored by `blob put`.", "REF"),
    MEDIA_TYPE,
)
def remember(
    call: CommandContext,
    text: str,
    metadata: str | None,
    file: str | None,
    blob: str | None,
    media_type: str | None,
    **fields: Any,
) -> CommandResult:
    """Remember a text. The store is created if it is missing."""
    parsed_metadata = _object(metadata)
    if (file is not None and blob is not None) or (media_type is not None and file is None):
        raise InvalidInput("give --file, with or without --media-type, or --blob for a blob that is already stored")
    # The file is read before the store is open: closing a handle on the store's own file would drop its locks.
    content = None if file is None else _content_of(file)
    full_text = read_text(text)

    def store(memory: Memory) -> Any:
        ref = blob if content is None else memory.put_blob(content, media_type=media_type).ref
        return memory.remember(full_text, metadata=parsed_metadata, blob=ref, **fields)

    result = write_result(call.rehearse_then_run(store))
    warn_if_missing(call)
    return result


#: Fields that an edit may change.
EDIT = (
    option("--tag", "New tags, which replace the old ones. May be repeated.", "TAG", "tags", multiple=True),
    CATEGORY,
    SUBJECT,
    option("--metadata", "A JSON object.", "JSON"),
    option("--source", "Where the text comes from. Without a new text, only the owner may change it.", "SOURCE"),
    option("--evidence", "A reference that supports it. May be repeated.", "REF", multiple=True),
    option("--confidence", "How likely it is true.", "0..1"),
    option("--importance", "How useful it is.", "0..1"),
    SENSITIVITY,
    option("--ttl", "New time to live from now; `never` removes it.", "DURATION"),
)
NEW_TEXT = argument("[TEXT]", "The new text; - reads stdin.", "text")


@command(MEMORY, NEW_TEXT, REASON, IF_VERSION, *EDIT, option("--append", "Add TEXT to the old text."), CONSENT)
def revise(
    call: CommandContext, memory_id: str, text: str | None, append: bool, consent: bool, **args: Any
) -> CommandResult:
    """Change the text or fields of a memory; the old version stays in its history."""
    fields = edit_fields(args)
    if append:
        if text is None or fields.keys() - {"reason", "if_version", "source", "evidence", "confidence"}:
            raise InvalidInput("--append takes only a text, --source, --evidence and --confidence")
        return write_result(call.memory().append(memory_id, read_text(text), **fields))
    changed: dict[str, Any] = {} if text is None else {"text": read_text(text)}
    return write_result(call.memory().revise(memory_id, **changed, consent=consent, **fields))


def edit_fields(args: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that an edit names; the others stay as they are."""
    fields = {name: value for name, value in args.items() if value not in (None, ())}
    if "metadata" in fields:
        fields["metadata"] = _object(fields["metadata"])
    if fields.get("ttl") == "never":
        fields["ttl"] = None
    return fields


@command(
    MEMORY,
    option("--tier", "core, working, episodic or archival.", "TIER"),
    option("--to", "Another scope, such as shared or /agents/orion.", "SCOPE", name="target"),
    option("--key", "Another stable name; in core, the name of a block.", "NAME"),
    option("--no-key", "Remove its stable name."),
    REASON,
    IF_VERSION,
)
def move(
    call: CommandContext,
    memory_id: str,
    tier: str | None,
    target: str | None,
    key: str | None,
    no_key: bool,
    **args: Any,
) -> CommandResult:
    """Move a memory to another tier or scope, or give it another key.

    A move into core needs approval, unless the owner makes it with `--as operator`.
    """
    if key is not None and no_key:
        raise InvalidInput("--key and --no-key exclude each other")
    targets: dict[str, Any] = {"tier": tier, "scope": target, "key": key}
    targets = {name: value for name, value in targets.items() if value is not None}
    targets |= {"key": None} if no_key else {}
    if not targets:
        raise InvalidInput("name the target: --tier, --to, --key or --no-key; `store migrate` moves a whole store")
    return write_result(call.memory().move(memory_id, **targets, **args))


@command(MEMORY, argument("TEXT", "The new text; - reads stdin.", "text"), REASON)
def promote(call: CommandContext, memory_id: str, text: str, reason: str) -> CommandResult:
    """Make a memory permanent with a new text. It moves into core if its key is the name of a block."""
    return write_result(call.memory().promote(memory_id, read_text(text), reason=reason))


@command(
    argument("ID...", "Two memories or more, of one subject, scope and sensitivity.", "memory_ids"),
    option("--text", "Text of the summary; - reads stdin. [default: the texts, one per line]", "TEXT"),
    REASON,
    option("--tier", "Tier of the summary. [default: episodic]", "TIER"),
    option("--key", "Its stable name.", "NAME"),
    option("--tag", "May be repeated.", "TAG", "tags", multiple=True),
    CATEGORY,
    option("--importance", "How useful it is.", "0..1"),
)
def merge(
    call: CommandContext, memory_ids: tuple[str, ...], text: str | None, reason: str, **args: Any
) -> CommandResult:
    """Write one summary that supersedes several memories; `keepward rollback` undoes it."""
    if len(set(memory_ids)) < 2:
        raise InvalidInput("merge takes two memories or more")
    fields = {name: value for name, value in args.items() if value not in (None, ())}
    outcome = call.memory().merge(memory_ids, None if text is None else read_text(text), reason=reason, **fields)
    if outcome is None:
        raise InvalidInput("these ids and keys name one memory; merge takes two or more")
    return write_result(outcome)


@command(
    MEMORY,
    option("--reason", "Why; it is stored in the journal.", "TEXT", default=""),
    option("--gain", "Added to the importance, up to 1; 0.2 raises 0.6 to 0.8.", "0..1", default=0.0),
)
def reinforce(call: CommandContext, **args: Any) -> CommandResult:
    """Confirm a memory: the decay of its confidence starts again now."""
    return write_result(call.memory().reinforce(**args))


@command(
    argument("[KEY]", "A block, such as mission; without a key all are listed.", "key"),
    argument("[TEXT]", "The new text; - reads stdin.", "text"),
    option("--access", "Who may change it: read_only, approval, append or read_write.", "ACCESS"),
    REASON,
    option("--if-version", "Write only if N is its newest version; 0: only if the block is new.", "N"),
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
    from keepward.core.policy import access_for

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


@command(
    argument("[ID]", "The memory's id, the first 8 or more characters of it, or its key.", "memory_id"),
    option("--matching", "Forget all memories that match these words, instead of one ID.", "TEXT"),
    option("--yes", "Do not ask for confirmation."),
    REASON,
    IF_VERSION,
)
def forget(
    call: CommandContext, memory_id: str | None, matching: str | None, yes: bool, reason: str, if_version: int | None
) -> CommandResult:
    """Retire a memory, or all memories that match some words; `restore` makes one active again.

    `--matching` lists the matches with scores and asks for confirmation. One commit retires all; `rollback` undoes it.
    """
    if (memory_id is None) == (matching is None):
        raise InvalidInput("name one memory by its ID, or give --matching TEXT")
    if memory_id is not None:
        if yes:
            raise InvalidInput("--yes goes with --matching")
        return write_result(call.memory().forget(memory_id, reason=reason, if_version=if_version))
    if if_version is not None:
        raise InvalidInput("--if-version goes with an ID")
    text, memory, show = read_text(str(matching)), call.memory(), _show_forget_result
    done = memory.plan_forget_matching(text)
    if done.matches and not yes and not call.as_json and sys.stdin.isatty() and sys.stdout.isatty():
        import click

        from keepward.cli.render import Screen

        _show_matches(Screen(sys.stdout), to_json_object(done))
        yes = click.confirm(f"Forget {pluralize(len(done.matches), 'memory', 'memories')}?")
        show = _show_forgotten
    if done.matches and yes:
        done = memory.forget_matching(text, digest=done.digest, reason=reason)
    data = to_json_object(done, outcome=done.outcome and done.outcome.to_dict())
    if done.outcome is None:
        hint = ("nothing was changed; --yes forgets them",) if done.matches else ()
        return CommandResult(data, show, messages=hint)
    result = write_result(done.outcome)
    undo = (f"undo it with `keepward rollback {data['outcome']['commit']}`",) if done.outcome.ok else ()
    return CommandResult(data, show, result.code, (*result.messages, *undo))


def _show_forget_result(screen: Screen, data: dict[str, Any]) -> None:
    _show_matches(screen, data)
    _show_forgotten(screen, data)


def _show_forgotten(screen: Screen, data: dict[str, Any]) -> None:
    if data["outcome"] and data["outcome"]["outcome"] == "committed":
        count = pluralize(len(data["matches"]), "memory", "memories")
        screen.labelled("forgotten", f"{count}, in one commit", "bold green")
    elif data["outcome"]:
        screen.result(data["outcome"])


def _show_matches(screen: Screen, data: dict[str, Any]) -> None:
    if not data["matches"]:
        screen.line("no memory of this scope matches these words", "bold cyan")
    for match in data["matches"]:
        screen.labelled(f"{match['score']:.2f}", match["text"][:200])
        screen.labelled("", f"{match['id']} · {match['tier']} · {match['created_at'][:10]}", "dim")
    screen.labelled("note", data["notes"], "yellow")


@command(
    MEMORY,
    option("--by", "The memory that replaces it: its id, the first characters of it, or its key.", "ID", required=True),
    REASON,
)
def supersede(call: CommandContext, **args: Any) -> CommandResult:
    """Replace a memory by another one. The old one becomes inactive, and its history names the new one."""
    return write_result(call.memory().supersede(**args))


@command(MEMORY, REASON, IF_VERSION)
def archive(call: CommandContext, **args: Any) -> CommandResult:
    """Archive a memory; `restore` makes it active again."""
    return write_result(call.memory().archive(**args))


@command(MEMORY, REASON, option("--ttl", "A new time to live, for an expired memory.", "DURATION"), IF_VERSION)
def restore(call: CommandContext, **args: Any) -> CommandResult:
    """Make a retired, archived or expired memory active again."""
    return write_result(call.memory().restore(**args))


#: Exit code by outcome of a write.
_EXIT_CODE_OF_OUTCOME = {"committed": 0, "duplicate": 0, "quarantined": 6, "refused": 5}


def write_result(result: Outcome) -> CommandResult:
    """Return the result of a write, with the next step if there is one."""
    data = result.to_dict()
    codes = {each["code"] for each in data["reasons"]}
    messages = [redaction_note(data["redacted"])] if data["redacted"] else []
    data["next"] = None
    if data["proposal"]:
        data["next"] = f"pending review: approve it with `keepward approve {data['proposal']}`"
        messages += [data["next"], "with `--as operator` a write is the owner's own and needs no approval"]
    elif is_too_long_for_tier(result):
        data["next"] = "store it in linked parts with `keepward import --from markdown FILE`; - reads stdin"
        messages.append(data["next"])
    elif "memory_off" in codes:
        messages.append("nothing was stored, not even a receipt")
    elif data["outcome"] == "refused":
        messages.append("nothing was stored except a receipt")
    elif "unchanged" in codes:
        messages.append("nothing was changed")
    hidden = ("memories", "next")

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.result({**data, "outcome": "unchanged" if "unchanged" in codes else data["outcome"]}, hidden)

    return CommandResult(data, draw, _EXIT_CODE_OF_OUTCOME[data["outcome"]], tuple(messages))


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as fault:
        raise InvalidInput("--metadata is not JSON") from fault
    if not isinstance(value, dict):
        raise InvalidInput("--metadata takes a JSON object")
    return value


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
    if action not in {"put", "get", "show"}:
        raise InvalidInput("blob takes put, get, show")
    if (out is None) == (action == "get") or (media_type is not None and action != "put"):
        raise InvalidInput("blob put takes FILE and --media-type, blob get takes REF and OUT, blob show takes REF")
    if action == "put":
        content = _content_of(target)
        stored_blob = call.rehearse_then_run(lambda memory: memory.put_blob(content, media_type=media_type))
        return _blob(stored_blob, is_new=True)
    if out == "-" and call.as_json:
        raise InvalidInput("with --json name a file: keepward blob get REF OUT --json")
    from keepward.memory import request_context_of
    from keepward.services import blobs

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
    from keepward.core.blob import MAX_BLOB_BYTES

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
    data = to_json_object(stored, path=path, next=next_command)
    return CommandResult(data, messages=tuple(messages), hidden=("next",))


@command(
    argument("[propose|adopt]", "Propose a new edition, or adopt a manual edit; without it, show.", "action"),
    option("--file, -f", "Text of the new edition; - reads stdin.", "FILE"),
    option("--reason", "Why; the reviewer reads it.", "TEXT"),
    option("--edition", "Show or adopt this edition, by its version.", "VERSION"),
)
def identity(
    call: CommandContext, action: str | None, file: str | None, reason: str | None, edition: str | None
) -> CommandResult:
    """Show the identity document and its editions, or propose a new edition, which the owner approves.

    A rollback of its commit restores the previous edition. `adopt` accepts a manual edit of the document, if its
    version is still the one that was shown.
    """
    if action not in {None, "propose", "adopt"}:
        raise InvalidInput("identity takes propose or adopt; without an action it shows the document")
    if action is None:
        if (file, reason) != (None, None):
            raise InvalidInput("--file and --reason go with `identity propose`")
        return CommandResult(call.memory().identity(edition=edition).to_dict())
    if action == "adopt":
        if file is not None or not edition:
            raise InvalidInput("identity adopt takes the --edition VERSION that `keepward identity` shows")
        if not call.is_owner:
            raise Unauthorised("only the owner adopts an edit of the identity")
        memory = call.memory("decide")
        now = memory.identity()
        if now.text is None or now.version != edition:
            raise StaleVersion("the identity document has changed; read it again with `keepward identity`")
        return write_result(memory.update_identity(now.text, reason=reason or "edited by hand"))
    if file is None or edition is not None:
        raise InvalidInput("identity propose takes --file FILE; --reason TEXT is optional")
    try:
        text = read_text("-") if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput("the file cannot be read as UTF-8 text") from fault
    return write_result(call.memory().update_identity(text, reason=reason or ""))


@command(
    argument("QUERY", "The search text; - reads stdin.", "query"),
    option("--limit", "Maximum number of hits.", "N", default=10),
    PURPOSE,
    *MEMORY_FILTERS,
    *NAME_FILTERS,
    *TIME_FILTERS,
    option("--min-importance", "Only memories of at least this importance.", "0..1", default=0.0),
    SENSITIVE,
    AS_OF,
    option("--order", "learned, fused or cosine.", "ORDER", default="learned"),
    THRESHOLD,
    option("--receipt", "Store a receipt that `feedback` can name."),
)
def recall(call: CommandContext, query: str, **args: Any) -> CommandResult:
    """Find memories by words and meaning, best first, and show why each was found. Weak hits are labelled."""
    result = call.memory().recall(read_text(query), **args)
    warn_if_missing(call)
    notes = _notes(call, result, args["as_of"])
    return CommandResult({**result.to_dict(), "notes": list(notes)}, _show_recall, messages=notes)


def _notes(call: CommandContext, result: Recall | Memories, as_of: str | None) -> tuple[str, ...]:
    """Return the notes of a result. If it is empty, the owner also gets the notes on the complete store."""
    if len(result) or as_of is not None or not call.is_owner:
        return result.notes
    return tuple(dict.fromkeys((*result.notes, *call.memory("decide").list_memories(limit=1).notes)))


def _show_recall(screen: Screen, data: dict[str, Any]) -> None:
    for hit in data["hits"]:
        words = [hit["occurred_at"] and hit["occurred_at"][:10], hit["speaker"], hit["text"]]
        screen.labelled(f"{hit['rank']:>2}.", ": ".join(filter(None, words)), "bold", width=4)
        score = f"{'weak, ' if hit['weak'] else ''}score {hit['score']:.2f}"
        facts = [hit["tier"], hit["kind"], hit["key"] and f"key {hit['key']}", f"from {hit['source']} ({hit['trust']})"]
        details = " · ".join(filter(None, [*facts, score, " + ".join(hit["why"])]))
        screen.labelled("", [details, f"{hit['id']} v{hit['version']}"], "dim", width=4)
    if not data["hits"]:
        screen.line("Nothing found.", "dim")
    screen.labelled("left out", [f"{item['id']}: {item['reason']}" for item in data["excluded"]], "dim")
    screen.line(f"searched by {' and '.join(data['used']) or 'nothing'} at head {data['head']}", "dim")
    screen.labelled("receipt", data["receipt"], "dim")


@command(
    argument("OBJECTIVE", "The task of the model; - reads stdin.", "objective"),
    option("--budget", "Maximum number of tokens. [default: by policy]", "TOKENS", "budget_tokens"),
    PURPOSE,
    option("--format", "markdown or messages.", "FORMAT", default="markdown"),
    SENSITIVE,
    option("--include-weak", "Include weak hits."),
    AS_OF,
    option("--without", "A core block, by key or id, that may be missing. May be repeated.", "NAME", multiple=True),
)
def context(call: CommandContext, objective: str, **args: Any) -> CommandResult:
    """Compile the context for a model within a token budget. A receipt records what is in it and what is not."""
    data = compiled_data(call.memory().context(read_text(objective), **args))
    parts = ", ".join(f"{section['name']} {section['tokens']}" for section in data["sections"]) or "nothing"
    left_out = len(data["excluded"]) + sum(data["unlisted"].values())
    summary = f"{data['tokens']} tokens ({parts}); {left_out} left out"
    if data["kept"]:
        summary += f"; receipt {data['receipt']} (`keepward receipt {data['receipt']}` shows why)"
    return CommandResult(data, _show_text, messages=(summary, *data["notes"]))


def _show_text(screen: Screen, data: dict[str, Any]) -> None:
    screen.verbatim(data["text"])


def compiled_data(compiled: Any) -> dict[str, Any]:
    """Return a compiled context as JSON values."""
    data = to_json_object(compiled, "prefix_digest", "tail_digest")
    for section in data["sections"]:
        del section["digest"]
    for item in data["excluded"]:
        item |= {"reason": item["reason"]["detail"], "code": item["reason"]["code"]}
    return data


@command(argument("RECEIPT", "Receipt of a context.", "receipt_id"))
def replay(call: CommandContext, receipt_id: str) -> CommandResult:
    """Compile a context again from its receipt, byte for byte."""
    replayed = call.memory().replay(receipt_id)
    missing = [{"id": memory_id, "version": version} for memory_id, version in replayed.missing]
    data = to_json_object(replayed, "prefix_digest", "tail_digest", receipt=receipt_id, missing=missing)
    verdict = "the same bytes as then" if replayed.same else f"not the same as then: {len(missing)} sources are missing"
    return CommandResult(data, _show_text, 0 if replayed.same else 1, (verdict,))


@command(
    *MEMORY_FILTERS,
    option("--key", "Only under this key.", "NAME"),
    *NAME_FILTERS,
    *TIME_FILTERS,
    option("--limit", "Maximum number of memories.", "N", default=50),
    option("--no-limit", "List all.", name="everything"),
    option("--include-ended", "Include retired, archived, superseded and expired memories."),
    AS_OF,
    name="list",
)
def list_(call: CommandContext, limit: int, everything: bool, **args: Any) -> CommandResult:
    """List memories, newest first."""
    # One record above the limit shows whether there are more.
    records = call.memory().list_memories(limit=None if everything else limit + 1, **args)
    shown = records if everything else records[:limit]
    cut = [] if len(shown) == len(records) else [f"only the newest {limit} are shown; --no-limit shows all"]
    notes = [*_notes(call, records, args["as_of"]), *cut]
    memories = [record.to_dict() for record in shown]
    data = {"memories": memories, "count": len(shown), "withheld": list(records.withheld), "notes": notes}
    return CommandResult(data, messages=tuple(notes), hidden=("count", "notes", "withheld"))


@command(MEMORY, AS_OF)
def get(call: CommandContext, **args: Any) -> CommandResult:
    """Show one memory with all its fields."""
    return CommandResult(call.memory().get(**args).to_dict())


@command(MEMORY)
def history(call: CommandContext, memory_id: str) -> CommandResult:
    """Show every version of a memory: who changed what, when and why."""
    versions = call.memory().history(memory_id)
    full_id = versions[-1].record.id if versions else memory_id
    return CommandResult({"id": full_id, "versions": [_version_data(version) for version in versions]})


def _version_data(version: Any) -> dict[str, Any]:
    from keepward.core.commit import Step

    step = Step(op=version.op, before=version.before, after=version.record).to_dict()
    del step["id"]
    details = {name: getattr(version.details, name) for name in ("actor", "approved_by", "reason", "receipt")}
    commit = version.commit
    return {**step, "commit": commit.id, "seq": commit.seq, "at": as_json(commit.at), **details}


@command(
    argument("RECEIPT", "The receipt of a `context` or a `recall --receipt`.", "receipt_id"),
    option("--used", "A memory that was used. May be repeated.", "ID", multiple=True),
    option("--ignored", "A memory that was not used. May be repeated.", "ID", multiple=True),
)
def feedback(call: CommandContext, **args: Any) -> CommandResult:
    """Report which memories of a recall or context were used; `train` learns from it.

    The weight of agents' feedback is limited to a share of people's feedback. With `--as operator`, the
    feedback counts as a person's.
    """
    stored = call.memory().feedback(**args)
    messages = () if stored.by_person else ("the weight of agents' feedback is limited to a share of people's",)
    if not stored.n:
        messages = ("the feedback was not stored: memory is switched off by policy",)
    return CommandResult(to_json_object(stored, "tenant", "n", number=stored.n), messages=messages)


@command()
def train(call: CommandContext) -> CommandResult:
    """Train the reranker from feedback, in one commit. It is used only if it ranks held-out feedback better."""
    return CommandResult(to_json_object(call.memory("decide").train_reranker()))
