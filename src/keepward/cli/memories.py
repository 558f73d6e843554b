"""Commands on memories: what proposes, reads and teaches, the blobs that memories refer to, and the identity document.

All but `train` act as an agent by default; `remember`, `block` and `blob put` make a missing store.

Invariants
(1) A write that stored nothing says so and why.
(2) A file that is too large is refused by its size, before it is read.
(3) A written file is readable by its owner alone, and replaces no other file.
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

MEMORY = argument("ID", "Its id, the first letters of it (8 or more), or its key.", "memory_id")
REASON = option("--reason", "Why; it is stored in the journal.", "TEXT", default="")
IF_VERSION = option("--if-version", "Change it only if N is still its newest version.", "N")
CONSENT = option("--consent", "Personal identifiers in the text were given with consent: store them.")
MEDIA_TYPE = option("--media-type", "Such as image/png. [default: by the bytes]", "TYPE")
CATEGORY_OF_OWN = option("--category", "A label of your own.", "NAME")
SUBJECT_OF_IT = option("--subject", "Who or what it is about.", "NAME")
SENSITIVITY = option("--sensitivity", "normal or sensitive.", "SENSITIVITY")
AS_OF = option("--as-of", "A past state: a commit's number or id, or a time.", "TIME")
PURPOSE = option("--purpose", "answer, act or core: what it is used for.", "PURPOSE", default="answer")
SENSITIVE = option("--include-sensitive", "Also sensitive memories.")
THRESHOLD = option("--floor", "Least score of a hit.", "0..1")
MEMORY_FILTERS = (
    option("--tier", "Only these tiers. Several times.", "TIER", "tiers", multiple=True),
    option("--kind", "Only these kinds. Several times.", "KIND", "kinds", multiple=True),
    option("--tag", "With any of these. Several times.", "TAG", "tags", multiple=True),
)
TIME_FILTERS = (
    option("--since", "Written from then on.", "TIME"),
    option("--until", "Written before.", "TIME"),
    option("--occurred-since", "Happened from then on.", "TIME"),
    option("--occurred-until", "Happened before.", "TIME"),
    option("--within", "Only from this scope and the scopes below it.", "SCOPE"),
    option("--where", 'Whose metadata is so: \'{"stars": {"$gte": 4}}\'.', "JSON"),
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
    option("--key", "A stable name; writing to it again updates it.", "NAME"),
    option("--if-version", "Write to the key only if N is its newest version; 0: only if it is free.", "N"),
    SUBJECT_OF_IT,
    CATEGORY_OF_OWN,
    option("--tag", "May be given several times.", "TAG", "tags", multiple=True),
    option("--source", "user_message, tool, document, web, inference ...", "SOURCE"),
    option("--evidence", "What backs it, such as chat:42. Several times.", "REF", multiple=True),
    option("--confidence", "Is it true? [default: by source]", "0..1"),
    option("--importance", "Is it useful? [default: by source]", "0..1"),
    option("--ttl", "How long it stays active: 90s, 15m, 24h, 30d, 2w.", "DURATION"),
    option("--stability", "volatile, stable or permanent.", "STABILITY"),
    option("--access", "Who may change it without approval: read_only, approval, append or read_write.", "ACCESS"),
    option("--occurred-at", "When it happened.", "TIME"),
    SENSITIVITY,
    option("--session", "The session it comes from.", "NAME"),
    option("--derived-from", "A memory it was made from. Several times.", "ID", multiple=True),
    option("--metadata", "A JSON object of your own.", "JSON"),
    CONSENT,
    REASON,
    option("--file", "A picture, recording or other file that TEXT describes.", "FILE"),
    option("--blob", "The same for a blob that `blob put` stored.", "REF"),
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
    """Remember a text. A missing store is made."""
    own = _object(metadata)
    if (file is not None and blob is not None) or (media_type is not None and file is None):
        raise InvalidInput("give --file, with --media-type if you like, or --blob for one that is stored already")
    # Before the store is open: closing the store's own file would drop its locks.
    content = None if file is None else _content_of(file)
    said = read_text(text)

    def store(memory: Memory) -> Any:
        ref = blob if content is None else memory.put_blob(content, media_type=media_type).ref
        return memory.remember(said, metadata=own, blob=ref, **fields)

    answer = write_result(call.rehearse_then_run(store))
    warn_if_missing(call)
    return answer


#: What an edit may change.
EDIT = (
    option("--tag", "New tags, which replace the old ones.", "TAG", "tags", multiple=True),
    CATEGORY_OF_OWN,
    SUBJECT_OF_IT,
    option("--metadata", "A JSON object.", "JSON"),
    option("--source", "Where the text comes from; the owner may name it for a text that stays.", "SOURCE"),
    option("--evidence", "What backs it. Several times.", "REF", multiple=True),
    option("--confidence", "Is it true?", "0..1"),
    option("--importance", "Is it useful?", "0..1"),
    SENSITIVITY,
    option("--ttl", "New time to live from now; `never` removes it.", "DURATION"),
)
NEW_TEXT = argument("[TEXT]", "The new text; - reads stdin.", "text")


@command(MEMORY, NEW_TEXT, REASON, IF_VERSION, *EDIT, option("--append", "Add the text to what is there."), CONSENT)
def revise(
    call: CommandContext, memory_id: str, text: str | None, append: bool, consent: bool, **given: Any
) -> CommandResult:
    """Change the text or fields of a memory; the old version stays in its history."""
    fields = edit_fields(given)
    if append:
        if text is None or fields.keys() - {"reason", "if_version", "source", "evidence", "confidence"}:
            raise InvalidInput("--append takes a text, --source, --evidence and --confidence alone")
        return write_result(call.memory().append(memory_id, read_text(text), **fields))
    changed: dict[str, Any] = {} if text is None else {"text": read_text(text)}
    return write_result(call.memory().revise(memory_id, **changed, consent=consent, **fields))


def edit_fields(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that an edit names; what is not given stays as it is."""
    fields = {name: value for name, value in given.items() if value not in (None, ())}
    if "metadata" in fields:
        fields["metadata"] = _object(fields["metadata"])
    if fields.get("ttl") == "never":
        fields["ttl"] = None
    return fields


@command(
    MEMORY,
    option("--tier", "core, working, episodic or archival.", "TIER"),
    option("--to", "Another scope, such as shared or /agents/orion.", "SCOPE", name="target"),
    option("--key", "Another stable name; core takes the name of a block.", "NAME"),
    option("--no-key", "Take its stable name away."),
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
    **asked: Any,
) -> CommandResult:
    """Move a memory to another tier or scope, or give it another key.

    A move into core needs approval, unless the owner makes it with `--as operator`.
    """
    if key is not None and no_key:
        raise InvalidInput("--key and --no-key exclude each other")
    given = {"tier": tier, "scope": target, "key": key}
    where: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    where |= {"key": None} if no_key else {}
    if not where:
        raise InvalidInput("say where it goes: --tier, --to, --key or --no-key; a store goes by `store migrate`")
    return write_result(call.memory().move(memory_id, **where, **asked))


@command(MEMORY, argument("TEXT", "The new text; - reads stdin.", "text"), REASON)
def promote(call: CommandContext, memory_id: str, text: str, reason: str) -> CommandResult:
    """Make a memory permanent; it moves into core if its key is the name of a block."""
    return write_result(call.memory().promote(memory_id, read_text(text), reason=reason))


@command(
    argument("ID...", "Two memories or more, of one subject, scope and sensitivity.", "memory_ids"),
    option("--text", "What the summary says; - reads stdin. [default: the texts, one a line]", "TEXT"),
    REASON,
    option("--tier", "Of the summary. [default: episodic]", "TIER"),
    option("--key", "Its stable name.", "NAME"),
    option("--tag", "Several times.", "TAG", "tags", multiple=True),
    CATEGORY_OF_OWN,
    option("--importance", "Is it useful?", "0..1"),
)
def merge(
    call: CommandContext, memory_ids: tuple[str, ...], text: str | None, reason: str, **given: Any
) -> CommandResult:
    """Write one summary that supersedes several memories; `keepward rollback` undoes it."""
    if len(set(memory_ids)) < 2:
        raise InvalidInput("merge takes two memories or more")
    fields = {name: value for name, value in given.items() if value not in (None, ())}
    outcome = call.memory().merge(memory_ids, None if text is None else read_text(text), reason=reason, **fields)
    if outcome is None:
        raise InvalidInput("these names stand for one memory; merge takes two or more")
    return write_result(outcome)


@command(
    MEMORY,
    option("--reason", "Why; it is stored in the journal.", "TEXT", default=""),
    option("--gain", "How much of its remaining doubt this removes.", "0..1", default=0.0),
)
def reinforce(call: CommandContext, **asked: Any) -> CommandResult:
    """Confirm a memory: its confidence no longer decays from when it was written, but from now."""
    return write_result(call.memory().reinforce(**asked))


@command(
    argument("[KEY]", "A block, such as mission; without one all are listed.", "key"),
    argument("[TEXT]", "The new text; - reads stdin.", "text"),
    option("--access", "Who may change it: read_only, approval, append or read_write.", "ACCESS"),
    REASON,
    option("--if-version", "Write only if N is its newest version; 0: only if there is none.", "N"),
)
def block(call: CommandContext, key: str | None, text: str | None, **asked: Any) -> CommandResult:
    """Show the core blocks with their access, or write one.

    An agent's edit waits for a person; `--as operator` writes it at once. Of the access of the tier, of the settings
    and of the block the strictest applies.
    """
    if text is None and asked["access"] is None:
        return _blocks(call.memory(), key)
    if key is None:
        raise InvalidInput("name the block: keepward block KEY TEXT")
    said = None if text is None else read_text(text)

    def store(memory: Memory) -> Any:
        found = [] if said is not None else memory.list_memories(tiers=["core"], key=key)
        if said is None and not found:
            raise InvalidInput("the block has no text: give it one with --access")
        return memory.remember(found[0].text if said is None else said, tier="core", key=key, **asked)

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
    argument("[ID]", "Its id, the first letters of it (8 or more), or its key.", "memory_id"),
    option("--matching", "All that these words match, instead of one ID.", "TEXT"),
    option("--yes", "Do it without asking first."),
    REASON,
    IF_VERSION,
)
def forget(
    call: CommandContext, memory_id: str | None, matching: str | None, yes: bool, reason: str, if_version: int | None
) -> CommandResult:
    """Retire a memory, or all that match some words: they no longer hold, and `restore` brings them back.

    With `--matching` it lists what would go, with scores, and asks. All go in one commit that `rollback` undoes.
    """
    if (memory_id is None) == (matching is None):
        raise InvalidInput("name one memory by its ID, or give --matching TEXT")
    if memory_id is not None:
        if yes:
            raise InvalidInput("--yes goes with --matching")
        return write_result(call.memory().forget(memory_id, reason=reason, if_version=if_version))
    if if_version is not None:
        raise InvalidInput("--if-version goes with an ID")
    text, memory, show = read_text(str(matching)), call.memory(), _show_forgetting
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
        return CommandResult(data, show, talk=("nothing was changed; --yes forgets them",) if done.matches else ())
    result = write_result(done.outcome)
    undo = (f"undo it with `keepward rollback {data['outcome']['commit']}`",) if done.outcome.ok else ()
    return CommandResult(data, show, result.code, (*result.talk, *undo))


def _show_forgetting(screen: Screen, data: dict[str, Any]) -> None:
    _show_matches(screen, data)
    _show_forgotten(screen, data)


def _show_forgotten(screen: Screen, data: dict[str, Any]) -> None:
    if data["outcome"] and data["outcome"]["outcome"] == "committed":
        many = pluralize(len(data["matches"]), "memory", "memories")
        screen.labelled("forgotten", f"{many}, in one commit", "bold green")
    elif data["outcome"]:
        screen.result(data["outcome"])


def _show_matches(screen: Screen, data: dict[str, Any]) -> None:
    if not data["matches"]:
        screen.line("no memory of this scope matches these words", "bold cyan")
    for each in data["matches"]:
        screen.labelled(f"{each['score']:.2f}", each["text"][:200])
        screen.labelled("", f"{each['id']} · {each['tier']} · {each['created_at'][:10]}", "dim")
    screen.labelled("note", data["notes"], "yellow")


@command(
    MEMORY,
    option("--by", "The memory that replaces it: an id, the first letters of one, or a key.", "ID", required=True),
    REASON,
)
def supersede(call: CommandContext, **asked: Any) -> CommandResult:
    """Replace a memory by another one; it is inactive, and its history names the other one."""
    return write_result(call.memory().supersede(**asked))


@command(MEMORY, REASON, IF_VERSION)
def archive(call: CommandContext, **asked: Any) -> CommandResult:
    """Archive a memory; `restore` makes it active again."""
    return write_result(call.memory().archive(**asked))


@command(MEMORY, REASON, option("--ttl", "A new time to live, for one that has expired.", "DURATION"), IF_VERSION)
def restore(call: CommandContext, **asked: Any) -> CommandResult:
    """Make a retired, archived or expired memory active again."""
    return write_result(call.memory().restore(**asked))


#: Exit code by outcome of a write.
_EXIT_CODE_OF_OUTCOME = {"committed": 0, "duplicate": 0, "quarantined": 6, "refused": 5}


def write_result(result: Outcome) -> CommandResult:
    """Return the answer to a write, with what to do next where there is something to do."""
    data = result.to_dict()
    codes = {each["code"] for each in data["reasons"]}
    talk = [redaction_note(data["redacted"])] if data["redacted"] else []
    data["next"] = None
    if data["proposal"]:
        data["next"] = f"pending review: approve it with `keepward approve {data['proposal']}`"
        talk += [data["next"], "with `--as operator` a write is the owner's own and needs no approval"]
    elif is_too_long_for_tier(result):
        data["next"] = "store it in linked parts with `keepward import --from markdown FILE`; for FILE - is stdin"
        talk.append(data["next"])
    elif "memory_off" in codes:
        talk.append("nothing was stored, and no receipt was kept")
    elif data["outcome"] == "refused":
        talk.append("nothing was stored but the receipt")
    elif "unchanged" in codes:
        talk.append("nothing was changed")
    hidden = ("memories", "next")

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.result({**data, "outcome": "unchanged" if "unchanged" in codes else data["outcome"]}, hidden)

    return CommandResult(data, draw, _EXIT_CODE_OF_OUTCOME[data["outcome"]], tuple(talk))


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
    argument("put|get|show", "What to do.", "action"),
    argument("FILE|REF", "A file to store; - reads stdin. Or a blob.", "target"),
    argument("[OUT]", "A file that is not there yet; - is stdout.", "out"),
    MEDIA_TYPE,
)
def blob(
    call: CommandContext, action: str, target: str, out: str | None, media_type: str | None
) -> CommandResult | None:
    """Store a picture, a recording or any file of up to 32 MB for memories to refer to, or fetch one.

    A blob that no memory refers to is deleted a day later. `remember TEXT --file FILE` does both in one step.
    """
    if action not in {"put", "get", "show"}:
        raise InvalidInput("blob takes put, get, show")
    if (out is None) == (action == "get") or (media_type is not None and action != "put"):
        raise InvalidInput("blob put takes FILE and --media-type, blob get takes REF and OUT, blob show takes REF")
    if action == "put":
        content = _content_of(target)
        kept = call.rehearse_then_run(lambda memory: memory.put_blob(content, media_type=media_type))
        return _blob(kept, is_new=True)
    if out == "-" and call.as_json:
        raise InvalidInput("with --json name a file: keepward blob get REF OUT --json")
    from keepward.memory import request_context_of
    from keepward.services import blobs

    memory = call.memory()
    found = blobs.blob_info(request_context_of(memory), target)
    if out is None:
        return _blob(found)
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
        raise InvalidInput("OUT is there already; name another file") from fault
    return _blob(found, str(path))


def _content_of(file: str) -> bytes:
    from keepward.core.blob import MAX_BLOB_BYTES

    if file == "-":
        return sys.stdin.buffer.read(MAX_BLOB_BYTES + 1)
    path = Path(file).expanduser()
    if not path.is_file():
        raise InvalidInput(
            "that is a folder; name a file" if path.is_dir() else "there is no such file; check the path"
        )
    if path.stat().st_size > MAX_BLOB_BYTES:
        raise InvalidInput(
            f"a blob is at most {MAX_BLOB_BYTES // 2**20} MB; store larger files elsewhere and remember their path"
        )
    return path.read_bytes()


def _blob(found: Blob, path: str | None = None, *, is_new: bool = False) -> CommandResult:
    following = f'keepward remember "what it is" --blob {found.ref}' if is_new else None
    talk = [f"refer to it: {following}"] if following else []
    if found.active:
        talk.append("careful: this is active content, which may run when it is opened")
    return CommandResult(to_json_object(found, path=path, next=following), talk=tuple(talk), hidden=("next",))


@command(
    argument("[propose|adopt]", "Propose an edition, or adopt an edit by hand, instead of showing it.", "action"),
    option("--file, -f", "What the new edition says; - reads it from stdin.", "FILE"),
    option("--reason", "Why; the reviewer reads it.", "TEXT"),
    option("--edition", "Show or adopt this edition, by its version.", "VERSION"),
)
def identity(
    call: CommandContext, action: str | None, file: str | None, reason: str | None, edition: str | None
) -> CommandResult:
    """Show the identity document and its editions, or propose a new edition, which the owner approves.

    A rollback of its commit brings back the edition before. `adopt` takes over an edit by hand, if the document is
    still the VERSION that was shown.
    """
    if action not in {None, "propose", "adopt"}:
        raise InvalidInput("identity takes propose, adopt, or nothing to show it")
    if action is None:
        if (file, reason) != (None, None):
            raise InvalidInput("--file and --reason go with `identity propose`")
        return CommandResult(call.memory().identity(edition=edition).to_dict())
    if action == "adopt":
        if file is not None or not edition:
            raise InvalidInput("identity adopt takes the --edition VERSION that `keepward identity` shows")
        if not call.is_owner:
            raise Unauthorised("adopting an edit of the identity takes the owner")
        memory = call.memory("decide")
        now = memory.identity()
        if now.text is None or now.version != edition:
            raise StaleVersion("that is not what the identity document says now; look at it with `keepward identity`")
        return write_result(memory.update_identity(now.text, reason=reason or "edited by hand"))
    if file is None or edition is not None:
        raise InvalidInput("identity propose takes --file FILE, and --reason TEXT if you like")
    try:
        text = read_text("-") if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput("the file that was named cannot be read as UTF-8 text") from fault
    return write_result(call.memory().update_identity(text, reason=reason or ""))


@command(
    argument("QUERY", "What to look for; - reads stdin.", "query"),
    option("--limit", "Most hits.", "N", default=10),
    PURPOSE,
    *MEMORY_FILTERS,
    *NAME_FILTERS,
    *TIME_FILTERS,
    option("--min-importance", "Only what is at least so useful.", "0..1", default=0.0),
    SENSITIVE,
    AS_OF,
    option("--order", "learned, fused or cosine.", "ORDER", default="learned"),
    THRESHOLD,
    option("--receipt", "Store a receipt that `feedback` can name."),
)
def recall(call: CommandContext, query: str, **asked: Any) -> CommandResult:
    """Find memories by words and meaning, best first, and show why each was found; weak hits are marked."""
    found = call.memory().recall(read_text(query), **asked)
    warn_if_missing(call)
    # One visible line for what could not take part; it is in the object as well.
    notes = _notes(call, found, asked["as_of"])
    return CommandResult({**found.to_dict(), "notes": list(notes)}, _show_recall, talk=notes)


def _notes(call: CommandContext, found: Recall | Memories, as_of: str | None) -> tuple[str, ...]:
    """Return the notes of a result; for an empty one of the owner's also the notes on the whole store."""
    if len(found) or as_of is not None or not call.is_owner:
        return found.notes
    return tuple(dict.fromkeys((*found.notes, *call.memory("decide").list_memories(limit=1).notes)))


def _show_recall(screen: Screen, data: dict[str, Any]) -> None:
    for hit in data["hits"]:
        said = [hit["occurred_at"] and hit["occurred_at"][:10], hit["speaker"], hit["text"]]
        screen.labelled(f"{hit['rank']:>2}.", ": ".join(filter(None, said)), "bold", width=4)
        score = f"{'weak, ' if hit['weak'] else ''}score {hit['score']:.2f}"
        facts = [hit["tier"], hit["kind"], hit["key"] and f"key {hit['key']}", f"from {hit['source']} ({hit['trust']})"]
        told = " · ".join(filter(None, [*facts, score, " + ".join(hit["why"])]))
        screen.labelled("", [told, f"{hit['id']} v{hit['version']}"], "dim", width=4)
    if not data["hits"]:
        screen.line("Nothing found.", "dim")
    screen.labelled("left out", [f"{left['id']}: {left['reason']}" for left in data["excluded"]], "dim")
    screen.line(f"searched by {' and '.join(data['used']) or 'nothing'} at head {data['head']}", "dim")
    screen.labelled("receipt", data["receipt"], "dim")


@command(
    argument("OBJECTIVE", "The task of the model; - reads stdin.", "objective"),
    option("--budget", "Most tokens. [default: by policy]", "TOKENS", "budget_tokens"),
    PURPOSE,
    option("--format", "markdown or messages.", "FORMAT", default="markdown"),
    SENSITIVE,
    option("--include-weak", "Also weak hits."),
    AS_OF,
    option("--without", "Core block, by key or id, that may be missing. Several times.", "NAME", multiple=True),
)
def context(call: CommandContext, objective: str, **asked: Any) -> CommandResult:
    """Compile the context for a model: within a budget, with a receipt of what is in it and what was left out."""
    data = compiled_data(call.memory().context(read_text(objective), **asked))
    parts = ", ".join(f"{each['name']} {each['tokens']}" for each in data["sections"]) or "nothing"
    left_out = len(data["excluded"]) + sum(data["unlisted"].values())
    summary = f"{data['tokens']} tokens ({parts}); {left_out} left out"
    if data["kept"]:
        summary += f"; receipt {data['receipt']} (`keepward receipt {data['receipt']}` shows why)"
    return CommandResult(data, _show_text, talk=(summary, *data["notes"]))


def _show_text(screen: Screen, data: dict[str, Any]) -> None:
    screen.verbatim(data["text"])


def compiled_data(compiled: Any) -> dict[str, Any]:
    """Return a compiled context as JSON values."""
    data = to_json_object(compiled, "prefix_digest", "tail_digest")
    for each in data["sections"]:
        del each["digest"]
    for each in data["excluded"]:
        each |= {"reason": each["reason"]["detail"], "code": each["reason"]["code"]}
    return data


@command(argument("RECEIPT", "Receipt of a context.", "receipt_id"))
def replay(call: CommandContext, receipt_id: str) -> CommandResult:
    """Compile a context again from its receipt, byte for byte as it was."""
    again = call.memory().replay(receipt_id)
    missing = [{"id": name, "version": version} for name, version in again.missing]
    data = to_json_object(again, "prefix_digest", "tail_digest", receipt=receipt_id, missing=missing)
    word = "the same bytes as then" if again.same else f"not the same as then: {len(missing)} sources are missing"
    return CommandResult(data, _show_text, 0 if again.same else 1, (word,))


@command(
    *MEMORY_FILTERS,
    option("--key", "Only under this key.", "NAME"),
    *NAME_FILTERS,
    *TIME_FILTERS,
    option("--limit", "Most rows.", "N", default=50),
    option("--no-limit", "All of them.", name="everything"),
    option("--include-ended", "Also retired, archived, superseded and expired ones."),
    AS_OF,
    name="list",
)
def list_(call: CommandContext, limit: int, everything: bool, **asked: Any) -> CommandResult:
    """List memories, newest first."""
    # One more than is shown reveals whether there are more.
    found = call.memory().list_memories(limit=None if everything else limit + 1, **asked)
    shown = found if everything else found[:limit]
    cut = [] if len(shown) == len(found) else [f"the newest {limit} are shown; --no-limit shows the others too"]
    notes = [*_notes(call, found, asked["as_of"]), *cut]
    memories = [each.to_dict() for each in shown]
    data = {"memories": memories, "count": len(shown), "withheld": list(found.withheld), "notes": notes}
    return CommandResult(data, talk=tuple(notes), hidden=("count", "notes", "withheld"))


@command(MEMORY, AS_OF)
def get(call: CommandContext, **asked: Any) -> CommandResult:
    """Show one memory with all its fields."""
    return CommandResult(call.memory().get(**asked).to_dict())


@command(MEMORY)
def history(call: CommandContext, memory_id: str) -> CommandResult:
    """Show every version of a memory: who changed what, when and why."""
    versions = call.memory().history(memory_id)
    name = versions[-1].record.id if versions else memory_id
    return CommandResult({"id": name, "versions": [_version(each) for each in versions]})


def _version(each: Any) -> dict[str, Any]:
    from keepward.core.commit import Step

    step = Step(op=each.op, before=each.before, after=each.record).to_dict()
    del step["id"]
    details = {name: getattr(each.details, name) for name in ("actor", "approved_by", "reason", "receipt")}
    return {**step, "commit": each.commit.id, "seq": each.commit.seq, "at": as_json(each.commit.at), **details}


@command(
    argument("RECEIPT", "Of `context`, or of `recall --receipt`.", "receipt_id"),
    option("--used", "A memory that was used. Several times.", "ID", multiple=True),
    option("--ignored", "One that was not. Several times.", "ID", multiple=True),
)
def feedback(call: CommandContext, **said: Any) -> CommandResult:
    """Report which memories of a recall or context were used; `train` learns from it.

    Feedback of agents counts up to a share of that of people; `--as operator` gives a person's.
    """
    given = call.memory().feedback(**said)
    talk = () if given.by_person else ("feedback of agents counts up to a share of that of people",)
    if not given.n:
        talk = ("the feedback was not stored: memory is switched off by policy",)
    return CommandResult(to_json_object(given, "tenant", "n", number=given.n), talk=talk)


@command()
def train(call: CommandContext) -> CommandResult:
    """Train the reranker from feedback, in one commit; it is used only if it orders held-out feedback better."""
    return CommandResult(to_json_object(call.memory("decide").train_reranker()))
