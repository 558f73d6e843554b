"""Commands that decide, audit and undo: the review queue, the journal, inquiries and containment.

A proposer never approves what it proposed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from keepward.cli.call import Answer, Call, as_json, data_of, text_of
from keepward.cli.command import EXIT_OF, argument, command, option
from keepward.cli.memories import (
    CONSENT,
    EDIT,
    NAMES,
    NEW_TEXT,
    REASON,
    SENSITIVE,
    SORTS,
    edited,
    minute,
    show_reasons,
    show_written,
    sort_of,
    written,
)
from keepward.core.value import counted
from keepward.errors import InvalidInput, KeepwardError

if TYPE_CHECKING:
    from keepward.cli.screen import Screen
    from keepward.core.commit import Receipt
    from keepward.memory import Memory

IDS = argument("ID...", "Ids of proposals.", "ids")
#: Proposals from which their number is said below them.
_MANY = 10
#: So many are shown to a person who asks for no other number.
_SHOWN = 20
_STATES = ("pending", "approved", "rejected", "expired", "stale", "all")


@command(
    option("--state", "pending, approved, rejected, expired, stale or all.", "WORD", default="pending"),
    option("--limit", f"Most proposals, the newest: {_SHOWN} of them, or all with --json.", "N"),
    option("--no-limit", "All of them.", name="everything"),
)
def pending(call: Call, state: str, limit: int | None, everything: bool) -> Answer:
    """Show what waits for a person, newest last: who proposes what, why it is held, and the exact change."""
    if state not in _STATES:
        raise InvalidInput("--state takes pending, approved, rejected, expired, stale or all")
    memory = call.memory("decide")
    found = memory.pending(state=None if state == "all" else state)
    expired = memory.status()["quarantine"]["expired"] if state == "pending" and not call.as_json else 0
    most = len(found) if everything or (limit is None and call.as_json) else limit or _SHOWN
    cut = f", the newest {most} are shown, and all with --no-limit" if most < len(found) else ""
    proposals = [{**each.to_dict(), "shown": as_json(memory.shown(each))} for each in found[-most:]]

    def show(screen: Screen, data: dict[str, Any]) -> None:
        if not data["proposals"]:
            screen.line("Nothing waits for review.", "dim")
        if expired:
            screen.line(expired_undecided(expired))
        for each in data["proposals"]:
            show_proposal(screen, each)
            if each["stale"]:
                for now in each["current"]:
                    edit = f"keepward amend {each['id']} TEXT --if-version {now['version']}"
                    screen.labelled("edit", edit, "bold")
            elif each["may_approve"]:
                screen.labelled("approve", f"keepward approve {each['id']}", "bold")

    several = f"{len(found):,} of them{cut}; `approve` and `reject --reason` take several ids at once"
    talk = (several,) if cut or len(found) > _MANY else ()
    return Answer({"proposals": proposals, "count": len(proposals), "total": len(found)}, show, talk=talk)


def expired_undecided(count: int) -> str:
    """Return what a person is told of proposals that nobody decided in time."""
    return (
        f"{counted(count, 'proposal', 'proposals')} expired undecided: `keepward pending --state expired` shows them, "
        "`keepward reopen ID --reason ...` brings one back"
    )


def show_proposal(screen: Screen, data: dict[str, Any]) -> None:
    """Print a proposal as its reviewer needs it: every field that changes, invisible characters written out."""
    screen.heading(f"{data['id']} · {data['state']}")
    if data["stale"]:
        screen.line("stale: what it would change has changed since it was proposed", "bold")
    screen.labelled("from", f"{data['proposer']}, {minute(data['created_at'])} UTC")
    screen.labelled("because", data["reason"])
    show_reasons(screen, "held by", data["reasons"])
    legible = {each["id"]: each["changes"] for each in data.get("shown", ())}
    for step in data["diff"]:
        base = data["base"].get(step["id"], 0)
        screen.labelled(step["op"], f"{sort_of(step['after'])} · {f'on version {base}' if base else 'new'}")
        screen.labelled("memory", step["id"], "dim")
        if all(change["field"] != "text" for change in step["changed"]):
            # What is put away, moved or forgotten is decided by its words, which stay as they are.
            screen.labelled("text", step["after"]["text"], indent=2)
        if step["id"] not in legible:
            show_changes(screen, step, joiners=False)
        # All of it, not what tells most: nothing is approved that was not on the screen.
        for name, before, after in sorted(legible.get(step["id"], ()), key=lambda each: each[0] != "text"):
            if step["before"] is None and name != "text":
                screen.labelled(name, after, indent=2)
            else:
                screen.change(name, before, after)
    for each in data["current"]:
        said = f"{each['text']} (version {each['version']}, {minute(each['updated_at'] or each['created_at'])} UTC)"
        screen.labelled("now", said)
    if data["decided_by"]:
        screen.labelled("decided", f"{data['state']} by {data['decided_by']}: {data['decision']}")
    screen.ids(data, "digest")


def show_changes(screen: Screen, item: dict[str, Any], *, joiners: bool = True) -> None:
    """Print the fields that differ; of a new memory the text alone."""
    for change in item["changed"]:
        if item["before"] is not None or change["field"] == "text":
            screen.change(change["field"], change["before"], change["after"], joiners=joiners)


@command(IDS, option("--digest", "The digest you saw; another one is not approved. One ID only.", "HEX"))
def approve(call: Call, ids: tuple[str, ...], digest: str | None) -> Answer:
    """Approve proposals: store exactly what was shown."""
    if digest is not None and len(ids) > 1:
        raise InvalidInput("--digest goes with one ID: each proposal has its own")
    memory = call.memory("decide")

    def decide(name: str) -> dict[str, Any]:
        done = memory.approve(name, digest=digest).to_dict()
        return {**done, "proposal": name, "memory": done["id"]}

    return _decided(memory, ids, decide, "approved")


@command(
    argument("ID", "Id of a proposal.", "proposal_id"),
    NEW_TEXT,
    option("--digest", "The digest you saw; another one is not approved.", "HEX"),
    option("--memory", "Which one is meant, where it would store several texts.", "ID"),
    option("--if-version", "Version of the memory that you saw, where it has changed since.", "N", "if_version"),
    *EDIT,
    CONSENT,
)
def amend(call: Call, proposal_id: str, text: str | None, consent: bool, **given: Any) -> Answer:
    """Approve a proposal with changes of your own to what it would store; the gates judge it again."""
    changed: dict[str, Any] = {} if text is None else {"text": text_of(text)}
    if consent:
        changed["consent"] = True
    return written(call.memory("decide").amend(proposal_id, **changed, **edited(given)))


@command(IDS, option("--reason", "Why; the proposer is told.", "TEXT", required=True))
def reject(call: Call, ids: tuple[str, ...], reason: str) -> Answer:
    """Reject proposals: what held before still holds."""
    memory = call.memory("decide")
    return _decided(memory, ids, lambda name: _receipt_data(memory.reject(name, reason=reason), "rejected"), "rejected")


@command(IDS, option("--reason", "Why; the receipt keeps it.", "TEXT", required=True))
def reopen(call: Call, ids: tuple[str, ...], reason: str) -> Answer:
    """Put rejected or expired proposals back: they wait again, as they did."""
    memory = call.memory("decide")
    return _decided(memory, ids, lambda name: _receipt_data(memory.reopen(name, reason=reason), "reopened"), "reopened")


def _receipt_data(receipt: Receipt, outcome: str) -> dict[str, Any]:
    return {"outcome": outcome, "receipt": receipt.id, "reasons": as_json(receipt.reasons)}


#: What is said of a decision that stored nothing.
_SAID = {"rejected": "what held before still holds", "reopened": "it waits again"}


def _waiting(memory: Memory, name: str) -> dict[str, Any] | None:
    """Return a proposal that waits, by its whole id; None where none does."""
    with suppress(KeepwardError):
        item = memory.proposal(name)
        return item.to_dict() if (item.id, item.state) == (name, "pending") else None
    return None


def _decided(memory: Memory, ids: tuple[str, ...], decide: Callable[[str], dict[str, Any]], word: str) -> Answer:
    """Decide on one after the other; one that fails does not stop the rest. The first failure gives the code."""
    results: list[dict[str, Any]] = []
    code = 0
    for name in dict.fromkeys(ids):
        try:
            item = _waiting(memory, name)
            results.append({**decide(name), "item": item, "id": name, "error": None})
        except KeepwardError as fault:
            error = {"code": fault.code, "message": str(fault)}
            results.append({"id": name, "outcome": "error", "error": error})
            code = code or EXIT_OF.get(fault.code, 1)
    done = sum(1 for each in results if each["error"] is None)
    return Answer({"results": results, word: done, "failed": len(results) - done}, _show_decided, code)


def _show_decided(screen: Screen, data: dict[str, Any]) -> None:
    for each in data["results"]:
        if each["error"]:
            screen.labelled("failed", f"{each['id']}: {each['error']['message']}", "red")
        elif each["outcome"] in _SAID:
            screen.labelled(each["outcome"], f"{each['id']}; {_SAID[each['outcome']]}", "bold")
            screen.ids(each, "receipt")
        else:
            screen.labelled("approved", each["id"], "bold green")
            show_written(screen, {**each, "id": each["memory"], "proposal": None})


COMMIT = argument("COMMIT", "A commit's number, id or first letters.", "commit")


@command(
    option("--limit", "Most commits.", "N", default=50),
    option("--before", "Older than this commit's number.", "SEQ"),
    option("--actor", "Who made or approved it: kind:name, or a name.", "WHO", "writer"),
    option("--kind", "write, approve, job, rollback ...", "WORD"),
    option("--until", "Up to a moment: a commit's number or id, or an instant.", "WHEN"),
)
def log(call: Call, limit: int, writer: str | None, **asked: Any) -> Answer:
    """List commits, newest first."""
    commits = [each.to_dict() for each in call.memory("decide").log(limit=limit, actor=writer, **asked)]
    following = commits[-1]["seq"] if commits and len(commits) == limit and commits[-1]["seq"] > 1 else None
    return Answer({"commits": commits, "next_before": following}, _show_log)


def _show_log(screen: Screen, data: dict[str, Any]) -> None:
    rows = []
    for each in data["commits"]:
        changes = ", ".join(change["op"] for change in each["changes"][:3])
        more = f" +{len(each['changes']) - 3}" if len(each["changes"]) > 3 else ""
        who = " / ".join(filter(None, (each["actor"], each["approved_by"])))
        rows.append((str(each["seq"]), each["id"][:13], each["at"][:16], who, f"{changes}{more} {each['reason']}"))
    screen.table(("seq", "commit", "at (UTC)", "who", "what"), rows, empty="No commits.")
    if data["next_before"]:
        screen.line(f"older ones: keepward log --before {data['next_before']}", "dim")


@command(COMMIT)
def show(call: Call, commit: str) -> Answer:
    """Show one commit: who, when, why, and each memory before and after."""
    view = call.memory("decide").show(commit)
    return Answer({**view.to_dict(), "events": [each.to_dict() for each in view.steps]}, _show_commit)


def _show_commit(screen: Screen, data: dict[str, Any]) -> None:
    screen.line(f"commit {data['seq']} · {data['id']}", "bold")
    screen.labelled("at", f"{data['at'][:19]} UTC")
    screen.labelled("by", f"{data['actor']} ({data['kind']})")
    screen.labelled("approved by", data["approved_by"])
    screen.labelled("because", data["reason"])
    screen.fields(data, ("undoes", "receipt", "hash"))
    _show_differences(screen, data["events"])


def _show_differences(screen: Screen, items: list[dict[str, Any]]) -> None:
    for each in items:
        side = each["after"] or each["before"]
        if side is None:
            # It is not there on either side, such as one that a later commit took away.
            continue
        what = each.get("op") or ("added" if not each["before"] else "gone" if not each["after"] else "changed")
        screen.heading(f"{what} · {sort_of(side)}")
        screen.line(f"{each['id']} v{side['version']}", "dim", indent=2)
        if each["after"] is None:
            screen.change("text", side["text"], None)
        else:
            show_changes(screen, each)


@command(argument("A", "A commit, or 0 for the empty store.", "earlier"), argument("B", "Another commit.", "later"))
def diff(call: Call, earlier: str, later: str) -> Answer:
    """Show which memories differ between the states after two commits."""
    found = as_json(call.memory("decide").diff(earlier, later))

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        _show_differences(screen, data["differences"])
        if not found:
            screen.line("The two states are equal.", "dim")

    return Answer({"from": earlier, "to": later, "differences": found, "count": len(found)}, draw)


@command(
    COMMIT,
    option("--with-later", "Undo later commits that touched the same memories as well."),
    option("--dry-run", "Show what would happen and change nothing."),
    REASON,
)
def rollback(call: Call, dry_run: bool, **asked: Any) -> Answer:
    """Undo one commit with a new one. A later change of the same memories is a conflict; nothing changes then."""
    data = rollback_data(call.memory("decide").rollback(dry_run=dry_run, **asked), dry_run=dry_run)
    held = bool(data["conflicts"])
    talk = ("later commits touched the same memories; undo them too with --with-later",) if held else ()
    return Answer(data, show_rollback, 4 if held else 0, talk)


def rollback_data(result: Any, *, dry_run: bool) -> dict[str, Any]:
    """Return what a rollback did, or would do, as JSON values."""
    return data_of(
        result,
        "receipt_id",
        dry_run=dry_run,
        receipt=result.receipt_id,
        conflicts=[{"memory": each.memory_id, "seq": each.seq, "commit": each.commit_id} for each in result.conflicts],
    )


def show_rollback(screen: Screen, data: dict[str, Any]) -> None:
    back = memories(data["targets"])
    if data["already"]:
        screen.labelled("undone", "before already; nothing was left to do", "bold cyan")
    elif data["conflicts"]:
        screen.labelled("conflict", "nothing was changed", "bold red")
    elif data["applied"]:
        screen.labelled("rolled back", f"{back}, as before that commit", "bold green")
    else:
        word = "dry run" if data["dry_run"] else "nothing"
        screen.labelled(word, f"{back} would change back; nothing was changed", "bold")
    touched = [f"commit {each['seq']} {each['commit']}: memory {each['memory']}" for each in data["conflicts"]]
    screen.labelled("touched by", touched)
    _show_differences(screen, data["targets"])
    derived = [f"{each}: it was made from a memory that changed back" for each in data["dependents"]]
    screen.labelled("look at", derived, "yellow")
    screen.labelled("why", [f"{reason['detail']} ({reason['code']})" for reason in data["reasons"]])
    screen.ids(data)


def memories(items: list[Any]) -> str:
    return counted(len(items), "memory", "memories")


@command(argument("ID", "Id of a receipt.", "receipt_id"))
def receipt(call: Call, receipt_id: str) -> Answer:
    """Show a receipt: the record of one decision, such as a commit, a refusal or a compiled context."""
    memory = call.memory("decide")
    data = as_json(memory.receipt(receipt_id))
    if "sections" not in data:
        return Answer(data, _show_tree)
    data["candidates"] = as_json(memory.explain(receipt_id).candidates)
    return Answer(data, _show_context_receipt)


def _show_context_receipt(screen: Screen, data: dict[str, Any]) -> None:
    """Print a receipt of a context: what was asked, and each memory as it was at the version that the receipt names."""
    _show_tree(screen, {name: data[name] for name in data if name not in {"sections", "excluded", "candidates"}})
    for each in data["candidates"]:
        where = each["section"] or f"left out ({each['code']})"
        screen.labelled("", [f"{where}: {each['text'] or '[gone]'}"], "bold", width=4)
        if each["now"] is not None:
            screen.labelled("", [f"now: {each['now'] or '[gone]'}"], "yellow", width=4)
        made = each["commit"] and f"commit {each['commit']}"
        told = (each["author"], each["source"] and f"from {each['source']} ({each['trust']})", made)
        screen.labelled("", [" · ".join(filter(None, [f"{each['id']} v{each['version']}", *told]))], "dim", width=4)


def _show_tree(screen: Screen, data: dict[str, Any], indent: int = 0) -> None:
    for name, value in data.items():
        if isinstance(value, dict) and value:
            screen.line(name, "dim", indent=indent)
            _show_tree(screen, value, indent + 2)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            screen.line(f"{name}:", "dim", indent=indent)
            for item in value:
                flat = ", ".join(f"{key} {_plain(item[key])}" for key in item if item[key] not in (None, [], {}, ""))
                screen.labelled("  -", flat, width=4, indent=indent)
        else:
            screen.fields({name: _plain(value)}, [name], width=16, indent=indent)


def _plain(value: Any) -> Any:
    """Return a nested value in words, such as ``text 0.4, vector 0.6``."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    return ", ".join(str(_plain(each)) for each in value) if isinstance(value, list) else value


#: The ways in which an inquiry names what it is about.
SELECTOR = (
    option("--source", "A source such as web, or a reference that stands in evidence.", "NAME"),
    option("--actor", "Who said it: agent:claude, user:ana ...", "WHO", "writer"),
    option("--session", "The conversation it comes from.", "NAME"),
    option("--commit", "A commit's number, id or first letters.", "COMMIT"),
    option("--memory", "A memory by id or alias.", "ID"),
)
APPLY = option("--apply", "The digest of the plan you saw: carry that out.", "DIGEST")


@command(*SELECTOR)
def impact(call: Call, writer: str | None, **asked: Any) -> Answer:
    """Show what one source, actor, session, commit or memory touched, down to every context that held it."""
    return Answer(_impact_data(call.memory("decide").impact(actor=writer, **asked)), _show_impact)


def _impact_data(found: Any) -> dict[str, Any]:
    data = data_of(found, "selector", by=data_of(found.selector))
    for each in data["contexts"]:
        each["items"] = [{"id": name, "version": version} for name, version in each["items"]]
    return data


def _show_impact(screen: Screen, data: dict[str, Any]) -> None:
    screen.line(f"{data['by']['way']} {data['by']['value']}: {memories(data['direct'] + data['derived'])}", "bold")
    for word in ("direct", "derived"):
        _show_memories(screen, word, data[word])
    for each in data["contexts"]:
        screen.labelled("context", f"{each['receipt']} {each['at'][:16]} to {each['actor']}: {memories(each['items'])}")
    screen.labelled("waits", [f"proposal {name}" for name in data["waiting"]])
    screen.labelled("damaged", [f"{name}: it does not match its seal" for name in data["damaged"]], "red")


def _show_memories(screen: Screen, word: str, items: list[dict[str, Any]]) -> None:
    for each in items:
        screen.labelled(word, each["text"][:200])
        screen.labelled("", f"{each['id']} v{each['version']} · {each['tier']} · {each['status']}", "dim")


@command(*SELECTOR, APPLY, option("--reason", "Why; it stands in the commit.", "TEXT", default=""))
def contain(call: Call, writer: str | None, apply: str | None, **asked: Any) -> Answer:
    """Take all that one of these touched out of use. First shows the plan and its digest, and changes nothing."""
    done = call.memory("decide").contain(apply, actor=writer, **asked)
    talk: tuple[str, ...] = ()
    if done.items and not done.applied:
        talk = (f"nothing was changed; carry it out with the same options and --apply {done.digest}",)
    elif done.commit is not None:
        talk = (f"undo it with `keepward rollback {done.commit.id}`",)
    return Answer(data_of(done, impact=_impact_data(done.impact)), _show_containment, talk=talk)


def _show_containment(screen: Screen, data: dict[str, Any]) -> None:
    many = memories(data["items"])
    if data["applied"]:
        screen.labelled("contained", f"{many}, in one commit", "bold green")
    elif data["items"]:
        screen.labelled("plan", f"{many} would be taken out of use; nothing was changed", "bold")
    else:
        screen.labelled("nothing", "there is nothing left to contain", "bold cyan")
    _show_memories(screen, "memory", data["items"])
    contexts = counted(len(data["impact"]["contexts"]), "context", "contexts")
    screen.labelled("contexts", f"{contexts} held some of it")
    screen.ids(data, "digest", "commit", "receipt")


@command(argument("NAME", "A memory's id, alias or key.", "name"))
def blame(call: Call, name: str) -> Answer:
    """Show which commit, actor, source and approval made each value of a memory what it is."""
    found = call.memory("decide").blame(name)
    fields = [
        data_of(
            each,
            "made",
            commit=each.made.commit.id,
            seq=each.made.commit.seq,
            at=as_json(each.made.commit.at),
            op=each.made.op,
            reason=each.made.details.reason,
        )
        for each in found.origins
    ]
    return Answer({"id": found.record.id, "version": found.record.version, "fields": fields}, _show_blame)


def _show_blame(screen: Screen, data: dict[str, Any]) -> None:
    from keepward.cli.screen import as_text

    screen.line(f"{data['id']} v{data['version']}", "bold")
    for each in data["fields"]:
        screen.labelled(each["field"], as_text(each["value"])[:200], width=14)
        approved = f" · approved by {each['approved_by']}" if each["approved_by"] else ""
        told = f"commit {each['seq']} {each['commit'][:13]} · {each['actor']} · from {each['source']}{approved}"
        screen.labelled("", told, "dim", width=14)


@command(
    argument("QUERY", "What the context is for.", "query"),
    option("--contains", "The text to look for.", "TEXT", required=True),
    option("--since", "A commit whose context does not hold it.", "SEQ", default=0),
)
def bisect(call: Call, query: str, **asked: Any) -> Answer:
    """Find the commit with which the context for a query began to hold a text, in about log2(n) compiles."""
    found = call.memory("decide").bisect(query, **asked)
    commit = found.commit.to_dict()
    following = [f"keepward rollback {commit['id']}", f"keepward contain --commit {commit['id']}"]

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.labelled("since", f"commit {commit['seq']} {commit['id']}, {commit['at'][:16]} UTC", "bold")
        screen.labelled("by", f"{commit['actor']}: {commit['reason']}")
        for each in data["events"]:
            screen.labelled(each["op"], f"{each['after']['text'][:200]} (from {each['after']['source']})")
        screen.labelled("compiled", counted(found.compiled, "context", "contexts"))
        screen.labelled("undo", following, "dim")

    events = [each.to_dict() for each in found.commit.steps]
    return Answer({"commit": commit, "compiled": found.compiled, "events": events, "next": following}, draw)


@command(*SORTS, *NAMES, SENSITIVE, option("--limit", "Most pairs.", "N", default=50))
def contradictions(call: Call, **asked: Any) -> Answer:
    """List pairs of memories that say nearly the same and differ, with what differs; nothing is changed by it."""
    found = call.memory("decide").contradictions(**asked)
    data = found.to_dict()
    for each in data["items"]:
        each["next"] = f"keepward supersede {each['older']['id']} --by {each['newer']['id']} --reason TEXT"
    return Answer(data, _show_contradictions, talk=found.notes)


def _show_contradictions(screen: Screen, data: dict[str, Any]) -> None:
    for number, pair in enumerate(data["items"], 1):
        differ = "differs" if len(pair["differs"]) == 1 else "differ"
        screen.heading(f"{number}. {' and '.join(pair['differs'])} {differ}, closeness {pair['score']:.2f}")
        for word in ("newer", "older"):
            each = pair[word]
            day = (each["occurred_at"] or each["created_at"])[:10]
            screen.labelled(word, ": ".join(filter(None, (day, each["speaker"], each["text"]))))
            told = f"{sort_of(each)} · from {each['source']} ({each['trust']})"
            screen.labelled("", [told, f"{each['id']} v{each['version']}"], "dim")
        screen.labelled("settle", "where only the newer one holds:")
        screen.exact(pair["next"])
    if not data["items"]:
        screen.line("No two memories were found that say nearly the same and differ.", "dim")
    if more := data["total"] - len(data["items"]):
        screen.line(f"{counted(more, 'pair', 'pairs')} not shown; --limit shows more", "dim")


@command(*(argument("RECEIPT", "Receipt of a compiled context.", name) for name in ("first", "second")))
def context_diff(call: Call, first: str, second: str) -> Answer:
    """Show what differs between two compiled contexts, and the commit responsible for each."""
    found = call.memory("decide").context_diff(first, second)
    return Answer(data_of(found, first=first, second=second), _show_difference)


def _show_difference(screen: Screen, data: dict[str, Any]) -> None:
    from keepward.cli.screen import as_text

    for each in data["items"]:
        screen.labelled(each["change"], f"{each['id']} in {each['section']}", "bold")
        screen.labelled("", each["why"])
    asked = [f"{name}: {as_text(before)} / {as_text(after)}" for name, (before, after) in data["inputs"].items()]
    screen.labelled("asked", asked, "dim")
    if data["same"]:
        screen.line("The two have the same bytes.", "dim")
    elif not data["items"]:
        screen.line("They hold the same memories and differ in form.", "dim")
