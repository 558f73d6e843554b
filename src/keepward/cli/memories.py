"""Commands on memories: what proposes, reads and teaches, the blobs that memories refer to, and the identity document.

They act as an agent unless told otherwise, all but `train`; `remember` and `blob put` make a store where there is none.

Invariants
(1) A write that stored nothing says so and why.
(2) A file is looked at before it is read whole: what is too large is refused by its size.
(3) What is written out is for its owner alone, and never in place of another file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward import durable
from keepward.cli.call import Answer, Call, as_json, data_of, text_of
from keepward.cli.command import argument, command, option
from keepward.cli.model import say_if_missing
from keepward.core.proposal import is_for_import
from keepward.core.value import counted, redaction
from keepward.errors import InvalidInput, StaleVersion, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.screen import Screen
    from keepward.core.blob import Blob
    from keepward.core.proposal import Outcome
    from keepward.core.query import Memories, Recall
    from keepward.memory import Memory

MEMORY = argument("ID", "Its id, the first letters of it (8 or more), or its key.", "memory_id")
REASON = option("--reason", "Why; it stands in the journal.", "TEXT", default="")
IF_VERSION = option("--if-version", "Change it only if N is still its newest version.", "N")
CONSENT = option("--consent", "Personal identifiers in the text were given with consent: keep them.")
MEDIA_TYPE = option("--media-type", "Such as image/png. [default: by the bytes]", "TYPE")
CATEGORY_OF_OWN = option("--category", "A label of your own.", "NAME")
SUBJECT_OF_IT = option("--subject", "Whom or what it is about.", "NAME")
SENSITIVITY = option("--sensitivity", "normal or sensitive.", "WORD")
AS_OF = option("--as-of", "A state of the past: a commit's number or id, or an instant.", "WHEN")
PURPOSE = option("--purpose", "answer, act or core: what it is used for.", "WORD", default="answer")
SENSITIVE = option("--include-sensitive", "Sensitive memories too.")
FLOOR = option("--floor", "Least score of a hit.", "0..1")
SORTS = (
    option("--tier", "Only these tiers. Several times.", "TIER", "tiers", multiple=True),
    option("--kind", "Only these kinds. Several times.", "KIND", "kinds", multiple=True),
    option("--tag", "With any of these. Several times.", "TAG", "tags", multiple=True),
)
WHERE = (
    option("--since", "Written from then on, whenever it happened.", "WHEN"),
    option("--until", "Written before.", "WHEN"),
    option("--occurred-since", "Happened from then on.", "WHEN"),
    option("--occurred-until", "Happened before.", "WHEN"),
    option("--within", "Of this scope and those below it alone.", "SCOPE"),
    option("--where", 'Whose metadata is so: \'{"stars": {"$gte": 4}}\'.', "JSON"),
)
NAMES = (
    option("--subject", "About this subject alone.", "NAME"),
    option("--category", "Of this category alone.", "NAME"),
    option("--session", "Of this conversation alone.", "NAME"),
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
    option("--ttl", "How long it holds: 90s, 15m, 24h, 30d, 2w.", "TIME"),
    option("--stability", "volatile, stable or permanent.", "WORD"),
    option("--access", "Who may change it unasked: read_only, approval, append or read_write.", "WORD"),
    option("--occurred-at", "When it happened.", "TIME"),
    SENSITIVITY,
    option("--session", "The conversation it comes from.", "NAME"),
    option("--derived-from", "A memory it was made from. Several times.", "ID", multiple=True),
    option("--metadata", "A JSON object of your own.", "JSON"),
    CONSENT,
    REASON,
    option("--file", "A picture, recording or other file that TEXT describes.", "FILE"),
    option("--blob", "The same for one that `blob put` keeps.", "REF"),
    MEDIA_TYPE,
)
def remember(
    call: Call,
    text: str,
    metadata: str | None,
    file: str | None,
    blob: str | None,
    media_type: str | None,
    **fields: Any,
) -> Answer:
    """Remember a text. A missing store is made."""
    own = _object(metadata)
    if (file is not None and blob is not None) or (media_type is not None and file is None):
        raise InvalidInput("give --file, with --media-type if you like, or --blob for one that is kept already")
    # Before the store is open: reading its own file beside that would drop its locks.
    content = None if file is None else _content_of(file)
    said = text_of(text)

    def store(memory: Memory) -> Any:
        ref = blob if content is None else memory.put_blob(content, media_type=media_type).ref
        return memory.remember(said, metadata=own, blob=ref, **fields)

    answer = written(call.first_in_memory(store))
    say_if_missing(call)
    return answer


#: What an edit may change.
EDIT = (
    option("--tag", "New tags, in place of the old.", "TAG", "tags", multiple=True),
    CATEGORY_OF_OWN,
    SUBJECT_OF_IT,
    option("--metadata", "A JSON object.", "JSON"),
    option("--source", "Where the text comes from; the owner may name it for a text that stays.", "SOURCE"),
    option("--evidence", "What backs it. Several times.", "REF", multiple=True),
    option("--confidence", "Is it true?", "0..1"),
    option("--importance", "Is it useful?", "0..1"),
    SENSITIVITY,
    option("--ttl", "New time to live from now; never removes it.", "TIME"),
)
NEW_TEXT = argument("[TEXT]", "The new text; - reads stdin.", "text")


@command(MEMORY, NEW_TEXT, REASON, IF_VERSION, *EDIT, option("--append", "Add the text to what is there."), CONSENT)
def revise(call: Call, memory_id: str, text: str | None, append: bool, consent: bool, **given: Any) -> Answer:
    """Give a memory a new text or new fields; the old version stays in its history."""
    fields = edited(given)
    if append:
        if text is None or fields.keys() - {"reason", "if_version", "source", "evidence", "confidence"}:
            raise InvalidInput("--append takes a text, --source, --evidence and --confidence alone")
        return written(call.memory().append(memory_id, text_of(text), **fields))
    changed: dict[str, Any] = {} if text is None else {"text": text_of(text)}
    return written(call.memory().revise(memory_id, **changed, consent=consent, **fields))


def edited(given: dict[str, Any]) -> dict[str, Any]:
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
    call: Call, memory_id: str, tier: str | None, target: str | None, key: str | None, no_key: bool, **asked: Any
) -> Answer:
    """Move a memory to another tier or scope, or give it another key.

    What goes into core waits for a person unless the owner moves it: `--as operator`.
    """
    if key is not None and no_key:
        raise InvalidInput("--key and --no-key exclude each other")
    given = {"tier": tier, "scope": target, "key": key}
    where: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    where |= {"key": None} if no_key else {}
    if not where:
        raise InvalidInput("say where it goes: --tier, --to, --key or --no-key; a store goes by `store migrate`")
    return written(call.memory().move(memory_id, **where, **asked))


@command(MEMORY, argument("TEXT", "What it says from now on; - reads stdin.", "text"), REASON)
def promote(call: Call, memory_id: str, text: str, reason: str) -> Answer:
    """Make lasting knowledge of a memory: permanent, and in core where its key is the name of a block."""
    return written(call.memory().promote(memory_id, text_of(text), reason=reason))


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
def merge(call: Call, memory_ids: tuple[str, ...], text: str | None, reason: str, **given: Any) -> Answer:
    """Write one summary in place of several memories, which it supersedes; `keepward rollback` undoes it."""
    if len(set(memory_ids)) < 2:
        raise InvalidInput("merge takes two memories or more")
    fields = {name: value for name, value in given.items() if value not in (None, ())}
    outcome = call.memory().merge(memory_ids, None if text is None else text_of(text), reason=reason, **fields)
    if outcome is None:
        raise InvalidInput("these names stand for one memory; merge takes two or more")
    return written(outcome)


@command(
    argument("[ID]", "Its id, the first letters of it (8 or more), or its key.", "memory_id"),
    option("--matching", "All that these words match, instead of one ID.", "TEXT"),
    option("--yes", "Do it without asking first."),
    REASON,
    IF_VERSION,
)
def forget(
    call: Call, memory_id: str | None, matching: str | None, yes: bool, reason: str, if_version: int | None
) -> Answer:
    """Retire a memory, or all that match some words: they no longer hold, and `restore` brings them back.

    With `--matching` it lists what would go, with scores, and asks. All go in one commit that `rollback` undoes.
    """
    if (memory_id is None) == (matching is None):
        raise InvalidInput("name one memory by its ID, or give --matching TEXT")
    if memory_id is not None:
        if yes:
            raise InvalidInput("--yes goes with --matching")
        return written(call.memory().forget(memory_id, reason=reason, if_version=if_version))
    if if_version is not None:
        raise InvalidInput("--if-version goes with an ID")
    text, memory, show = text_of(str(matching)), call.memory(), _show_forgetting
    done = memory.forget_matching(text)
    if done.matches and not yes and not call.as_json and sys.stdin.isatty() and sys.stdout.isatty():
        from keepward.cli.screen import Screen

        _show_matches(Screen(sys.stdout), data_of(done))
        sys.stdout.write(f"Forget {counted(len(done.matches), 'memory', 'memories')}? [y/N] ")
        sys.stdout.flush()
        yes, show = sys.stdin.readline().strip().lower() in {"y", "yes"}, _show_forgotten
    if done.matches and yes:
        done = memory.forget_matching(text, digest=done.digest, reason=reason)
    data = data_of(done, outcome=done.outcome and done.outcome.to_dict())
    if done.outcome is None:
        return Answer(data, show, talk=("nothing was changed; --yes forgets them",) if done.matches else ())
    result = written(done.outcome)
    undo = (f"undo it with `keepward rollback {data['outcome']['commit']}`",) if done.outcome.ok else ()
    return Answer(data, show, result.code, (*result.talk, *undo))


def _show_forgetting(screen: Screen, data: dict[str, Any]) -> None:
    _show_matches(screen, data)
    _show_forgotten(screen, data)


def _show_forgotten(screen: Screen, data: dict[str, Any]) -> None:
    if data["outcome"] and data["outcome"]["outcome"] == "committed":
        many = counted(len(data["matches"]), "memory", "memories")
        screen.labelled("forgotten", f"{many}, in one commit", "bold green")
        screen.ids(data["outcome"])
    elif data["outcome"]:
        show_written(screen, data["outcome"])


def _show_matches(screen: Screen, data: dict[str, Any]) -> None:
    if not data["matches"]:
        screen.labelled("nothing", "no memory of this scope matches these words", "bold cyan")
    for each in data["matches"]:
        screen.labelled(f"{each['score']:.2f}", each["text"][:200])
        screen.labelled("", f"{each['id']} · {each['tier']} · {each['created_at'][:10]}", "dim")
    screen.labelled("note", data["notes"], "yellow")


@command(
    MEMORY,
    option("--by", "What takes its place: an id, the first letters of one, or a key.", "ID", required=True),
    REASON,
)
def supersede(call: Call, **asked: Any) -> Answer:
    """Replace a memory by another one: it no longer holds, and its history names what took its place."""
    return written(call.memory().supersede(**asked))


@command(MEMORY, REASON, IF_VERSION)
def archive(call: Call, **asked: Any) -> Answer:
    """Put a memory away: it is not at hand until `restore` brings it back."""
    return written(call.memory().archive(**asked))


@command(MEMORY, REASON, option("--ttl", "A new term, for one that has expired.", "TIME"), IF_VERSION)
def restore(call: Call, **asked: Any) -> Answer:
    """Bring back a retired, archived or expired memory."""
    return written(call.memory().restore(**asked))


#: By outcome of a write: exit code, the word for it, its style and what is said of it.
_OUTCOMES = {
    "committed": (0, "committed", "bold green", "{id} v{version}"),
    "duplicate": (0, "duplicate", "bold cyan", "{id} v{version} holds this already; nothing new was stored"),
    "quarantined": (6, "held", "bold yellow", "nothing changes until a person approves it"),
    "refused": (5, "refused", "bold red", "nothing was stored but the receipt"),
}


def written(result: Outcome) -> Answer:
    """Return the answer to a write, with what to do next where there is something to do."""
    data = result.to_dict()
    talk: tuple[str, ...] = ()
    if data["proposal"]:
        held = f"held for review: approve it with `keepward approve {data['proposal']}`"
        talk = (held, "what is said with `--as operator` is the owner's own and is decided by that")
    elif is_for_import(result):
        talk = ("keep it in linked parts with `keepward import --from markdown FILE`; for FILE - is stdin",)
    data["next"] = talk[0] if talk else None
    return Answer(data, show_written, _OUTCOMES[data["outcome"]][0], talk)


def show_written(screen: Screen, data: dict[str, Any], *, indent: int = 0, brief: bool = False) -> None:
    """Print what became of a write, its reasons and its receipt; `brief` leaves out the ids to look it up by."""
    _, word, style, rest = _OUTCOMES[data["outcome"]]
    codes = {each["code"] for each in data["reasons"]}
    if "unchanged" in codes:
        word, rest = "unchanged", "{id} v{version} stays as it is"
    elif "memory_off" in codes:
        rest = "nothing was stored, and no receipt was kept"
    # What is stored is not what was said: that belongs in the first line.
    told = "; ".join(filter(None, (rest.format(**data), redaction(data["redacted"]))))
    screen.labelled(word, told, style, indent=indent)
    if data["outcome"] != "refused" and data["tier"]:
        until = data["expires_at"] and f" · until {minute(data['expires_at'])} UTC"
        screen.labelled("", f"{sort_of(data)}{until or ''}", "dim", indent=indent)
    show_reasons(screen, "why", data["reasons"], indent=indent)
    if not brief:
        screen.ids(data, "proposal", "commit", "receipt", indent=indent)


def show_reasons(screen: Screen, label: str, reasons: list[dict[str, str]], *, indent: int = 0) -> None:
    screen.labelled(label, [f"{each['gate']}: {each['detail']} ({each['code']})" for each in reasons], indent=indent)


def sort_of(record: dict[str, Any]) -> str:
    return f"{record['tier']} {record['kind']}{' · key ' + record['key'] if record['key'] else ''}"


def minute(at: str | None) -> str:
    """Return an instant in ISO 8601 as day and time, to the minute; nothing for none."""
    return at[:16].replace("T", " ") if at else ""


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
    argument("FILE|REF", "A file to keep; - reads stdin. Or a blob.", "target"),
    argument("[OUT]", "A file that is not there yet; - is stdout.", "out"),
    MEDIA_TYPE,
)
def blob(call: Call, action: str, target: str, out: str | None, media_type: str | None) -> Answer | None:
    """Keep a picture, a recording or any file of up to 32 MB for memories to refer to, or fetch one.

    What no memory refers to goes a day after it was put. `remember TEXT --file FILE` does both in one step.
    """
    if action not in {"put", "get", "show"}:
        raise InvalidInput("blob takes put, get, show")
    if (out is None) == (action == "get") or (media_type is not None and action != "put"):
        raise InvalidInput("blob put takes FILE and --media-type, blob get takes REF and OUT, blob show takes REF")
    if action == "put":
        content = _content_of(target)
        kept = call.first_in_memory(lambda memory: memory.put_blob(content, media_type=media_type))
        return _blob(kept, "kept")
    if out == "-" and call.as_json:
        raise InvalidInput("with --json name a file: keepward blob get REF OUT --json")
    memory = call.memory()
    found = memory.blob(target)
    if out is None:
        return _blob(found, "blob")
    content = memory.read_blob(target)
    if out == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return None
    path = Path(out).expanduser()
    try:
        with durable.fresh(path) as file:
            file.write(content)
    except FileExistsError as fault:
        raise InvalidInput("OUT is there already; name another file") from fault
    return _blob(found, "fetched", path=str(path))


def _content_of(file: str) -> bytes:
    from keepward.core.blob import LIMIT

    if file == "-":
        return sys.stdin.buffer.read(LIMIT + 1)
    path = Path(file).expanduser()
    if not path.is_file():
        raise InvalidInput(
            "that is a folder; name a file" if path.is_dir() else "there is no such file; check the path"
        )
    if path.stat().st_size > LIMIT:
        raise InvalidInput(f"a blob is at most {LIMIT // 2**20} MB; keep the rest elsewhere and remember where")
    return path.read_bytes()


def _blob(found: Blob, word: str, path: str | None = None) -> Answer:
    following = f'keepward remember "what it is" --blob {found.ref}' if word == "kept" else None

    def show(screen: Screen, data: dict[str, Any]) -> None:
        screen.labelled(word, f"{data['media_type']}, {data['bytes']} bytes", "bold green")
        screen.exact(data["ref"])
        if data["active"]:
            screen.labelled("careful", "active content: it may run when it is opened", "bold yellow")
        for note in data["notes"]:
            screen.labelled("secrets", note, "bold yellow")
        screen.labelled("file", data["path"])

    data = data_of(found, path=path, next=following)
    return Answer(data, show, talk=(f"refer to it: {following}",) if following else ())


@command(
    argument("[propose|adopt]", "Propose an edition, or adopt an edit by hand, instead of showing it.", "action"),
    option("--file, -f", "What the new edition says; - reads it from stdin.", "FILE"),
    option("--reason", "Why; whoever decides reads it.", "TEXT"),
    option("--edition", "Show this one of its editions, or adopt it, by its version.", "VERSION"),
)
def identity(call: Call, action: str | None, file: str | None, reason: str | None, edition: str | None) -> Answer:
    """Show the identity document and its editions, or propose a new edition, which waits for the owner.

    The edition before one comes back by a rollback of its commit. What the owner adopts is what the document says after
    an edit by hand, if that is still the version that was looked at.
    """
    if action not in {None, "propose", "adopt"}:
        raise InvalidInput("identity takes propose, adopt, or nothing to show it")
    if action is None:
        if (file, reason) != (None, None):
            raise InvalidInput("--file and --reason go with `identity propose`")
        return Answer(call.memory().identity(edition=edition).to_dict(), _show_identity)
    if action == "adopt":
        if file is not None or not edition:
            raise InvalidInput("identity adopt takes the --edition VERSION that `keepward identity` shows")
        if not call.is_owner:
            raise Unauthorised("adopting an edit of the identity takes the owner")
        memory = call.memory("decide")
        now = memory.identity()
        if now.text is None or now.version != edition:
            raise StaleVersion("that is not what the identity document says now; look at it with `keepward identity`")
        return written(memory.update_identity(now.text, reason=reason or "edited by hand"))
    if file is None or edition is not None:
        raise InvalidInput("identity propose takes --file FILE, and --reason TEXT if you like")
    try:
        text = text_of("-") if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput("the file that was named cannot be read as UTF-8 text") from fault
    return written(call.memory().update_identity(text, reason=reason or ""))


def _show_identity(screen: Screen, data: dict[str, Any]) -> None:
    if data["text"] is not None:
        state = "" if data["current"] else "; it does not hold now"
        screen.heading(f"edition {data['version']} · {data['tokens']} of {data['budget']} tokens{state}")
        screen.exact(data["text"].rstrip())
    screen.labelled("note", data["obstacle"], "yellow")
    screen.labelled("edited", data["edited"] and "the file says something else than the journal names", "yellow")
    rows = []
    for each in reversed(data["editions"]):
        who = " / ".join(dict.fromkeys(filter(None, (each["actor"], each["approved_by"]))))
        rows.append((each["version"], minute(each["at"]), each["commit"][:13], who, each["reason"]))
    screen.table(("edition", "at (UTC)", "commit", "who", "why"), rows, empty="The journal names no edition so far.")


@command(
    argument("QUERY", "What to look for; - reads stdin.", "query"),
    option("--limit", "Most hits.", "N", default=10),
    PURPOSE,
    *SORTS,
    *NAMES,
    *WHERE,
    option("--min-importance", "Only what is at least so useful.", "0..1", default=0.0),
    SENSITIVE,
    AS_OF,
    option("--order", "learned, fused or cosine.", "WORD", default="learned"),
    FLOOR,
    option("--receipt", "Keep a receipt that `feedback` can name."),
)
def recall(call: Call, query: str, **asked: Any) -> Answer:
    """Find memories by words and meaning, best first, and say why each was found; weak hits are marked."""
    found = call.memory().recall(text_of(query), **asked)
    say_if_missing(call)
    # One visible line for what could not take part; it is in the object as well.
    notes = _notes(call, found, asked["as_of"])
    return Answer({**found.to_dict(), "notes": list(notes)}, _show_recall, talk=notes)


def _notes(call: Call, found: Recall | Memories, as_of: str | None) -> tuple[str, ...]:
    """Return the notes of an answer; of an empty one also what its owner is told, where the owner asks."""
    if len(found) or as_of is not None or not call.is_owner:
        return found.notes
    return tuple(dict.fromkeys((*found.notes, *call.memory("decide").find(limit=1).notes)))


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
    screen.ids(data, "receipt")


@command(
    argument("OBJECTIVE", "What the model is to do; - reads stdin.", "objective"),
    option("--budget", "Most tokens. [default: by policy]", "TOKENS", "budget_tokens"),
    PURPOSE,
    option("--format", "markdown or messages.", "WORD", default="markdown"),
    SENSITIVE,
    option("--include-weak", "Also memories that bear on it weakly, or not at all."),
    AS_OF,
    option("--without", "Core block, by key or id, that may be missing. Several times.", "NAME", multiple=True),
)
def context(call: Call, objective: str, **asked: Any) -> Answer:
    """Compile the context for a model: within a budget, with a receipt of what went in and what stayed out."""
    data = compiled_data(call.memory().context(text_of(objective), **asked))
    parts = ", ".join(f"{each['name']} {each['tokens']}" for each in data["sections"]) or "nothing"
    left_out = len(data["excluded"]) + sum(data["unlisted"].values())
    summary = f"{data['tokens']} tokens ({parts}); {left_out} left out"
    if data["kept"]:
        summary += f"; receipt {data['receipt']} (`keepward receipt {data['receipt']}` tells why)"
    return Answer(data, _show_text, talk=(summary, *data["notes"]))


def _show_text(screen: Screen, data: dict[str, Any]) -> None:
    screen.exact(data["text"])


def compiled_data(compiled: Any) -> dict[str, Any]:
    """Return a compiled context as JSON values."""
    data = data_of(compiled, "prefix_digest", "tail_digest")
    for each in data["sections"]:
        del each["digest"]
    for each in data["excluded"]:
        each |= {"reason": each["reason"]["detail"], "code": each["reason"]["code"]}
    return data


@command(argument("RECEIPT", "Receipt of a context.", "receipt_id"))
def replay(call: Call, receipt_id: str) -> Answer:
    """Compile a context again from its receipt, byte for byte as it was."""
    again = call.memory().replay(receipt_id)
    missing = [{"id": name, "version": version} for name, version in again.missing]
    data = data_of(again, "prefix_digest", "tail_digest", receipt=receipt_id, missing=missing)
    word = "the same bytes as then" if again.same else f"not the same as then: {len(missing)} sources are gone"
    return Answer(data, _show_text, 0 if again.same else 1, (word,))


@command(
    *SORTS,
    option("--key", "Under this key alone.", "NAME"),
    *NAMES,
    *WHERE,
    option("--limit", "Most rows.", "N", default=50),
    option("--no-limit", "All of them.", name="everything"),
    option("--include-ended", "Retired, archived, superseded and expired ones too."),
    AS_OF,
    name="list",
)
def list_(call: Call, limit: int, everything: bool, **asked: Any) -> Answer:
    """List memories, newest first."""
    # One more than is shown tells whether there are more.
    found = call.memory().find(limit=None if everything else limit + 1, **asked)
    shown = found if everything else found[:limit]
    cut = [] if len(shown) == len(found) else [f"the newest {limit} are shown; --no-limit shows the others too"]
    notes = [*_notes(call, found, asked["as_of"]), *cut]
    memories = [each.to_dict() for each in shown]
    data = {"memories": memories, "count": len(shown), "withheld": list(found.withheld), "notes": notes}
    return Answer(data, _show_list, talk=tuple(notes))


def _show_list(screen: Screen, data: dict[str, Any]) -> None:
    if not data["memories"]:
        screen.line("No memories.", "dim")
    for each in data["memories"]:
        screen.line(each["text"], hang=2)
        ended = each["status"] != "active" and each["status"]
        until = each["expires_at"] and f"until {minute(each['expires_at'])} UTC"
        facts = [each["id"], each["tier"], each["kind"], each["key"] and f"key {each['key']}", until, ended]
        screen.line(" · ".join(filter(None, facts)), "dim", indent=2)


@command(MEMORY, AS_OF)
def get(call: Call, **asked: Any) -> Answer:
    """Show one memory with all its fields."""

    def show(screen: Screen, data: dict[str, Any]) -> None:
        screen.line(data["text"], "bold")
        screen.line()
        screen.fields(data, [name for name in data if name != "text"], width=15)

    return Answer(call.memory().get(**asked).to_dict(), show)


@command(MEMORY)
def history(call: Call, memory_id: str) -> Answer:
    """Show every version of a memory: who changed what, when and why."""
    versions = call.memory().history(memory_id)
    name = versions[-1].record.id if versions else memory_id
    return Answer({"id": name, "versions": [_version(each) for each in versions]}, _show_history)


def _version(each: Any) -> dict[str, Any]:
    from keepward.core.commit import Step

    step = Step(op=each.op, before=each.before, after=each.record).to_dict()
    del step["id"]
    details = {name: getattr(each.details, name) for name in ("actor", "approved_by", "reason", "receipt")}
    return {**step, "commit": each.commit.id, "seq": each.commit.seq, "at": as_json(each.commit.at), **details}


def _show_history(screen: Screen, data: dict[str, Any]) -> None:
    screen.line(data["id"], "bold")
    for each in data["versions"]:
        approved = f", approved by {each['approved_by']}" if each["approved_by"] else ""
        screen.heading(f"v{each['version']} {each['op']} by {each['actor']}{approved}")
        screen.line(f"{each['at'][:19]} UTC · commit {each['seq']} · {each['commit']}", "dim", indent=2)
        if each["reason"]:
            screen.line(f"because: {each['reason']}", indent=2)
        if not each["before"]:
            screen.change("text", None, each["after"]["text"])
        for change in each["changed"] if each["before"] else ():
            screen.change(change["field"], change["before"], change["after"])


@command(
    argument("RECEIPT", "Of `context`, or of `recall --receipt`.", "receipt_id"),
    option("--used", "A memory that was of use. Several times.", "ID", multiple=True),
    option("--ignored", "One that was not. Several times.", "ID", multiple=True),
)
def feedback(call: Call, **said: Any) -> Answer:
    """Say which memories of a recall or context were used; `train` learns from it. Nothing changes until then.

    It counts as an agent's, up to a share of what people say; with `--as operator` as a person's.
    """
    given = call.memory().feedback(**said)

    def show(screen: Screen, data: dict[str, Any]) -> None:
        kept = f"kept as number {given.n}" if given.n else "not kept: memory is switched off by policy"
        told = f"{len(given.used)} used, {len(given.ignored)} ignored; {kept}"
        screen.labelled("feedback", told, "bold green" if given.n else "bold")
        counts = "" if given.by_person else "; it counts up to a share of what people say"
        screen.labelled("by", f"{given.actor}{counts}", "dim")

    return Answer(data_of(given, "tenant", "n", number=given.n), show)


@command()
def train(call: Call) -> Answer:
    """Train the reranker from feedback, in one commit; it serves only where it orders held-out feedback better."""
    return Answer(data_of(call.memory("decide").train_reranker()), _show_training)


def _show_training(screen: Screen, data: dict[str, Any]) -> None:
    style = "bold green" if data["serving"] else "bold"
    screen.labelled("reranker", f"{data['version'] or 'none'}, {'serves' if data['serving'] else 'off'}", style)
    screen.labelled("why", data["why"])
    told = f"{data['feedback'] - data['held_out']} feedbacks; {data['held_out']} held out"
    screen.labelled("learned from", f"{told}; {data['from_agents']:.0%} of it from agents")
    shares = ", ".join(f"{name} {data[name]:.3f}" for name in ("learned", "fused", "cosine"))
    screen.labelled("in order", f"{shares}: share of held-out pairs; gain {data['gain']:+.3f}")
    for label in ("commit", "receipt"):
        screen.labelled(label, data[label] or "none: nothing new was found", "dim")
