"""Commands that decide, audit and undo: the review queue, the journal, inquiries and containment.

A proposer never approves what it proposed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

from keepward.cli.command import EXIT_CODE_OF, argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, as_json, read_text, to_json_object
from keepward.cli.memories import (
    CONSENT,
    EDIT,
    MEMORY_FILTERS,
    NAME_FILTERS,
    NEW_TEXT,
    REASON,
    SENSITIVE,
    edit_fields,
    write_result,
)
from keepward.core.proposal import ProposalState
from keepward.core.value import pluralize
from keepward.errors import InvalidInput, KeepwardError

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.commit import Receipt
    from keepward.memory import Memory

IDS = argument("ID...", "Ids of proposals.", "ids")
#: Proposals from which their number is said below them.
_SHOW_COUNT_FROM = 10
#: So many are shown to a person who asks for no other number.
_DEFAULT_LIMIT = 20
_STATES = (*get_args(ProposalState), "all")


@command(
    option("--state", "pending, approved, rejected, expired, stale or all.", "STATE", default="pending"),
    option("--limit", f"Most proposals, the newest: {_DEFAULT_LIMIT} of them, or all with --json.", "N"),
    option("--no-limit", "All of them.", name="everything"),
)
def pending(call: CommandContext, state: str, limit: int | None, everything: bool) -> CommandResult:
    """Show pending proposals, newest last: who proposes what, why it needs approval, and the exact change."""
    if state not in _STATES:
        raise InvalidInput("--state takes pending, approved, rejected, expired, stale or all")
    memory = call.memory("decide")
    found = memory.pending(state=state, limit=None)
    expired = memory.status()["quarantine"]["expired"] if state == "pending" and not call.as_json else 0
    most = len(found) if everything or (limit is None and call.as_json) else limit or _DEFAULT_LIMIT
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
                screen.verbatim(f"approve     keepward approve {each['id']}")

    several = f"{len(found):,} of them{cut}; `approve` and `reject --reason` take several ids at once"
    talk = (several,) if cut or len(found) > _SHOW_COUNT_FROM else ()
    return CommandResult({"proposals": proposals, "count": len(proposals), "total": len(found)}, show, talk=talk)


def expired_undecided(count: int) -> str:
    """Return a sentence on proposals that expired undecided."""
    return (
        f"{pluralize(count, 'proposal', 'proposals')} expired undecided: `keepward pending --state expired` lists, "
        "`keepward reopen ID --reason ...` brings one back"
    )


def show_proposal(screen: Screen, data: dict[str, Any]) -> None:
    """Print a proposal as its reviewer needs it: every field that changes, invisible characters written out."""
    from keepward.cli.render import describe_kind, format_time

    screen.heading(f"{data['id']} · {data['state']}")
    if data["stale"]:
        screen.line("stale: what it would change has changed since it was proposed", "bold")
    screen.labelled("from", f"{data['proposer']}, {format_time(data['created_at'])}")
    screen.labelled("because", data["reason"])
    screen.labelled("reasons", ["{gate}: {detail} ({code})".format(**each) for each in data["reasons"]])
    legible = {each["id"]: each["changes"] for each in data.get("shown", ())}
    for step in data["diff"]:
        base = data["base"].get(step["id"], 0)
        screen.labelled(step["op"], f"{describe_kind(step['after'])} · {f'on version {base}' if base else 'new'}")
        screen.labelled("memory", step["id"], "dim")
        if all(change["field"] != "text" for change in step["changed"]):
            # A reviewer decides a move or a retirement by the text, which does not change.
            screen.labelled("text", step["after"]["text"], indent=2)
        if step["id"] not in legible:
            for change in step["changed"]:
                if step["before"] is not None or change["field"] == "text":
                    screen.change(change["field"], change["before"], change["after"], joiners=False)
        # Every field: nothing is approved that was not on the screen.
        for name, before, after in sorted(legible.get(step["id"], ()), key=lambda each: each[0] != "text"):
            if step["before"] is None and name != "text":
                screen.labelled(name, after, indent=2)
            else:
                screen.change(name, before, after)
    for each in data["current"]:
        said = f"{each['text']} (version {each['version']}, {format_time(each['updated_at'] or each['created_at'])})"
        screen.labelled("now", said)
    if data["decided_by"]:
        screen.labelled("decided", f"{data['state']} by {data['decided_by']}: {data['decision']}")
    screen.labelled("digest", data["digest"], "dim")


@command(IDS, option("--digest", "The digest that was shown; another one is not approved. One ID only.", "HEX"))
def approve(call: CommandContext, ids: tuple[str, ...], digest: str | None) -> CommandResult:
    """Approve proposals: commit exactly what was shown."""
    if digest is not None and len(ids) > 1:
        raise InvalidInput("--digest goes with one ID: each proposal has its own")
    memory = call.memory("decide")

    def decide(name: str) -> dict[str, Any]:
        done = memory.approve(name, digest=digest).to_dict()
        return {**done, "proposal": name, "memory": done["id"]}

    return _decide_each(memory, ids, decide, "approved")


@command(
    argument("ID", "Id of a proposal.", "proposal_id"),
    NEW_TEXT,
    option("--digest", "The digest that was shown; another one is not approved.", "HEX"),
    option("--memory", "Which memory is changed, if the proposal has several.", "ID"),
    option("--if-version", "The version that was shown, if the memory has changed since.", "N", "if_version"),
    option("--leave-out", "A memory whose change is not made. May be given several times.", "ID", multiple=True),
    *EDIT,
    CONSENT,
)
def amend(call: CommandContext, proposal_id: str, text: str | None, consent: bool, **args: Any) -> CommandResult:
    """Approve a proposal with your own changes; the gates check it again."""
    changed: dict[str, Any] = {} if text is None else {"text": read_text(text)}
    if consent:
        changed["consent"] = True
    return write_result(call.memory("decide").amend(proposal_id, **changed, **edit_fields(args)))


@command(IDS, option("--reason", "Why; the proposer reads it.", "TEXT", required=True))
def reject(call: CommandContext, ids: tuple[str, ...], reason: str) -> CommandResult:
    """Reject proposals; nothing changes."""
    memory = call.memory("decide")
    return _decide_each(
        memory, ids, lambda name: _receipt_data(memory.reject(name, reason=reason), "rejected"), "rejected"
    )


@command(IDS, option("--reason", "Why; it is stored in the receipt.", "TEXT", required=True))
def reopen(call: CommandContext, ids: tuple[str, ...], reason: str) -> CommandResult:
    """Put rejected or expired proposals back: they wait again, as they did."""
    memory = call.memory("decide")
    return _decide_each(
        memory, ids, lambda name: _receipt_data(memory.reopen(name, reason=reason), "reopened"), "reopened"
    )


def _receipt_data(receipt: Receipt, outcome: str) -> dict[str, Any]:
    return {"outcome": outcome, "receipt": receipt.id, "reasons": as_json(receipt.reasons)}


def _pending_proposal(memory: Memory, name: str) -> dict[str, Any] | None:
    """Return a pending proposal by its complete id; None if there is none."""
    with suppress(KeepwardError):
        item = memory.proposal(name)
        return item.to_dict() if (item.id, item.state) == (name, "pending") else None
    return None


def _decide_each(
    memory: Memory, ids: tuple[str, ...], decide: Callable[[str], dict[str, Any]], decision: str
) -> CommandResult:
    """Decide on one after the other; one that fails does not stop the rest. The first failure gives the code."""
    results: list[dict[str, Any]] = []
    code = 0
    for name in dict.fromkeys(ids):
        try:
            item = _pending_proposal(memory, name)
            results.append({**decide(name), "item": item, "id": name, "error": None})
        except KeepwardError as fault:
            error = {"code": fault.code, "message": str(fault)}
            results.append({"id": name, "outcome": "error", "error": error})
            code = code or EXIT_CODE_OF.get(fault.code, 1)
    done = sum(1 for each in results if each["error"] is None)
    return CommandResult(
        {"results": results, decision: done, "failed": len(results) - done}, None, code, hidden=("item", "memories")
    )


COMMIT = argument("COMMIT", "A commit's number, id or first letters.", "commit")


@command(
    option("--limit", "Most commits.", "N", default=50),
    option("--before", "Older than this commit's number.", "SEQ"),
    option("--actor", "Who made or approved it: kind:name, or a name.", "ACTOR", "writer"),
    option("--kind", "write, approve, job, rollback ...", "KIND"),
    option("--until", "Up to a commit's number or id, or a time.", "TIME"),
)
def log(call: CommandContext, limit: int, writer: str | None, **asked: Any) -> CommandResult:
    """List commits, newest first."""
    commits = [each.to_dict() for each in call.memory("decide").log(limit=limit, actor=writer, **asked)]
    following = commits[-1]["seq"] if commits and len(commits) == limit and commits[-1]["seq"] > 1 else None
    return CommandResult({"commits": commits, "next_before": following}, _show_log)


def _show_log(screen: Screen, data: dict[str, Any]) -> None:
    rows = []
    for each in data["commits"]:
        changes = ", ".join(change["op"] for change in each["changes"][:3])
        more = f" +{len(each['changes']) - 3}" if len(each["changes"]) > 3 else ""
        who = " / ".join(dict.fromkeys(filter(None, (each["actor"], each["approved_by"]))))
        rows.append((str(each["seq"]), each["id"][:13], each["at"][:16], who, f"{changes}{more} {each['reason']}"))
    screen.table(("seq", "commit", "at (UTC)", "who", "what"), rows, empty="No commits.")
    if data["next_before"]:
        screen.line(f"older ones: keepward log --before {data['next_before']}", "dim")


@command(COMMIT)
def show(call: CommandContext, commit: str) -> CommandResult:
    """Show one commit: who, when, why, and each memory before and after."""
    view = call.memory("decide").show(commit)
    return CommandResult({**view.to_dict(), "events": [each.to_dict() for each in view.steps]}, _show_commit)


def _show_commit(screen: Screen, data: dict[str, Any]) -> None:
    from keepward.cli.render import format_time

    screen.line(f"commit {data['seq']} · {data['id']}", "bold")
    screen.labelled("at", format_time(data["at"]))
    screen.labelled("by", f"{data['actor']} ({data['kind']})")
    screen.labelled("approved by", data["approved_by"])
    screen.labelled("because", data["reason"])
    for name in ("undoes", "receipt", "hash"):
        screen.labelled(name, data[name] and str(data[name]))
    for each in data["events"]:
        screen.line()
        screen.event(each)


@command(argument("A", "A commit, or 0 for the empty store.", "earlier"), argument("B", "Another commit.", "later"))
def diff(call: CommandContext, earlier: str, later: str) -> CommandResult:
    """Show which memories differ between the states after two commits."""
    found = as_json(call.memory("decide").diff(earlier, later))
    talk = () if found else ("the two states are equal",)
    return CommandResult({"from": earlier, "to": later, "differences": found, "count": len(found)}, talk=talk)


@command(
    COMMIT,
    option("--with-later", "Also undo later commits that changed the same memories."),
    option("--dry-run", "Show the plan and change nothing."),
    REASON,
)
def rollback(call: CommandContext, dry_run: bool, **asked: Any) -> CommandResult:
    """Undo one commit with a new one. A later change of the same memories is a conflict; nothing changes then."""
    data = rollback_data(call.memory("decide").rollback(dry_run=dry_run, **asked), dry_run=dry_run)
    conflicting = bool(data["conflicts"])
    talk = ("later commits changed the same memories; undo them too with --with-later",) if conflicting else ()
    if not (conflicting or dry_run or data["applied"]):
        talk = ("it was undone before; nothing was changed",)
    return CommandResult(data, None, 4 if conflicting else 0, talk)


def rollback_data(result: Any, *, dry_run: bool) -> dict[str, Any]:
    """Return what a rollback did, or would do, as JSON values."""
    return to_json_object(
        result,
        "receipt_id",
        dry_run=dry_run,
        receipt=result.receipt_id,
        conflicts=[{"memory": each.memory_id, "seq": each.seq, "commit": each.commit_id} for each in result.conflicts],
    )


@command(argument("ID", "Id of a receipt.", "receipt_id"))
def receipt(call: CommandContext, receipt_id: str) -> CommandResult:
    """Show a receipt: the record of one decision, such as a commit, a refusal or a compiled context."""
    data = as_json(call.memory("decide").receipt(receipt_id))
    return CommandResult(data, hidden=("sections", "excluded", "parts"))


#: The ways in which an inquiry names what it is about.
SELECTOR = (
    option("--source", "A source such as web, or a reference in evidence.", "NAME"),
    option("--actor", "Who wrote it: agent:claude, user:ana ...", "ACTOR", "writer"),
    option("--session", "The conversation it comes from.", "NAME"),
    option("--commit", "A commit's number, id or first letters.", "COMMIT"),
    option("--memory", "A memory by id or alias.", "ID"),
)
APPLY = option("--apply", "Apply the plan with this digest.", "DIGEST")


@command(*SELECTOR)
def impact(call: CommandContext, writer: str | None, **asked: Any) -> CommandResult:
    """Show what one source, actor, session, commit or memory touched, down to every context that contained it."""
    return CommandResult(_impact_data(call.memory("decide").impact(actor=writer, **asked)))


def _impact_data(found: Any) -> dict[str, Any]:
    data = to_json_object(found, "selector", by=to_json_object(found.selector))
    for each in data["contexts"]:
        each["items"] = [{"id": name, "version": version} for name, version in each["items"]]
    return data


@command(*SELECTOR, APPLY, option("--reason", "Why; it is stored in the commit.", "TEXT", default=""))
def contain(call: CommandContext, writer: str | None, apply: str | None, **asked: Any) -> CommandResult:
    """Retire everything that one of these touched. First shows the plan and its digest, and changes nothing."""
    memory = call.memory("decide")
    if apply is None:
        asked.pop("reason")
        done = memory.plan_contain(actor=writer, **asked)
    else:
        done = memory.contain(apply, actor=writer, **asked)
    talk: tuple[str, ...] = ()
    if done.items and not done.applied:
        talk = (f"nothing was changed; apply it with the same options and --apply {done.digest}",)
    elif done.commit is not None:
        talk = (f"undo it with `keepward rollback {done.commit.id}`",)
    return CommandResult(to_json_object(done, impact=_impact_data(done.impact)), talk=talk, hidden=("impact",))


@command(argument("NAME", "A memory's id, alias or key.", "name"))
def blame(call: CommandContext, name: str) -> CommandResult:
    """Show which commit, actor, source and approval set each value of a memory."""
    found = call.memory("decide").blame(name)
    fields = [
        to_json_object(
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
    return CommandResult(
        {"id": found.record.id, "version": found.record.version, "fields": fields},
        hidden=("commit", "at", "op", "version", "reason"),
    )


@command(
    argument("QUERY", "What the context is for.", "query"),
    option("--contains", "The text to look for.", "TEXT", required=True),
    option("--since", "A commit whose context does not contain it.", "SEQ", default=0),
)
def bisect(call: CommandContext, query: str, **asked: Any) -> CommandResult:
    """Find the first commit after which the context for a query contains a text."""
    found = call.memory("decide").bisect(query, **asked)
    commit = found.commit.to_dict()
    following = [f"keepward rollback {commit['id']}", f"keepward contain --commit {commit['id']}"]
    events = [each.to_dict() for each in found.commit.steps]
    return CommandResult({"commit": commit, "compiled": found.compiled, "events": events, "next": following})


@command(*MEMORY_FILTERS, *NAME_FILTERS, SENSITIVE, option("--limit", "Most pairs.", "N", default=50))
def contradictions(call: CommandContext, **asked: Any) -> CommandResult:
    """List pairs of memories with nearly the same text, and what differs; nothing is changed."""
    found = call.memory("decide").contradictions(**asked)
    data = found.to_dict()
    for each in data["items"]:
        each["next"] = f"keepward supersede {each['older']['id']} --by {each['newer']['id']} --reason TEXT"
    return CommandResult(data, talk=found.notes, hidden=("notes",))


@command(*(argument("RECEIPT", "Receipt of a compiled context.", name) for name in ("first", "second")))
def context_diff(call: CommandContext, first: str, second: str) -> CommandResult:
    """Show what differs between two compiled contexts, and the commit responsible for each."""
    found = call.memory("decide").context_diff(first, second)
    return CommandResult(to_json_object(found, first=first, second=second))
