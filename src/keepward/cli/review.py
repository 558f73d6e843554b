"""Commands that decide, audit and undo: the review queue, the journal, inquiries and containment.

A proposer cannot approve its own proposal.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

from keepward.cli.command import EXIT_CODE_OF, argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, as_json, to_json_object
from keepward.cli.memories import write_result
from keepward.cli.parameters import operation_command, simple_command
from keepward.core.proposal import ProposalState
from keepward.core.value import pluralize
from keepward.errors import InvalidInput, KeepwardError

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.commit import Receipt
    from keepward.core.journal import Contradictions
    from keepward.memory import Memory

IDS = argument("ID...", "Ids of proposals.", "ids")
#: With more proposals than this, a message states their number.
_SHOW_COUNT_FROM = 10
#: Proposals shown without --limit.
_DEFAULT_LIMIT = 20
_STATES = (*get_args(ProposalState), "all")


@command(
    option("--state", "pending, approved, rejected, expired, stale or all.", "STATE", default="pending"),
    option("--sort", "age: newest last. danger: prompt injection and secrets first.", "ORDER", default="age"),
    option("--limit", f"Show the newest N. [default: {_DEFAULT_LIMIT}; with --json: all]", "N"),
    option("--no-limit", "Show all.", name="everything"),
)
def pending(call: CommandContext, state: str, sort: str, limit: int | None, everything: bool) -> CommandResult:
    """Show pending proposals, newest last, with the proposer, the exact change and why it needs approval."""
    if state not in _STATES:
        raise InvalidInput("--state takes pending, approved, rejected, expired, stale or all")
    memory = call.memory("decide")
    matches = memory.pending(state=state, sort=sort, limit=None)
    total = len(matches)
    expired = memory.status()["quarantine"]["expired"] if state == "pending" and not call.as_json else 0
    shown = total if everything or (limit is None and call.as_json) else limit or _DEFAULT_LIMIT
    which = "most dangerous" if sort == "danger" else "newest"
    cut = f"; the {which} {shown} are shown, --no-limit shows all" if shown < total else ""
    listed = matches[:shown] if sort == "danger" else matches[-shown:]
    proposals = [{**proposal.to_dict(), "shown": as_json(memory.proposed_steps(proposal))} for proposal in listed]

    def show(screen: Screen, data: dict[str, Any]) -> None:
        if not data["proposals"]:
            screen.line("No proposals.", "dim")
        if expired:
            screen.line(expired_undecided(expired))
        for proposal in data["proposals"]:
            show_proposal(screen, proposal)
            if proposal["stale"]:
                for current in proposal["current"]:
                    edit = f"keepward amend {proposal['id']} TEXT --if-version {current['version']}"
                    screen.labelled("edit", edit, "bold")
            elif proposal["may_approve"]:
                screen.verbatim(f"approve     keepward approve {proposal['id']}")

    hint = f"{total:,} proposals{cut}; `approve` and `reject --reason` take several ids"
    messages = (hint,) if cut or total > _SHOW_COUNT_FROM else ()
    return CommandResult({"proposals": proposals, "count": len(proposals), "total": total}, show, messages=messages)


def expired_undecided(count: int) -> str:
    """Return a sentence about proposals that expired without a decision."""
    return (
        f"{pluralize(count, 'proposal', 'proposals')} expired without a decision: `keepward pending --state expired` "
        "lists them, `keepward reopen ID --reason ...` reopens one"
    )


def show_proposal(screen: Screen, data: dict[str, Any]) -> None:
    """Print a proposal for its reviewer: every field that changes, with invisible characters written out."""
    from keepward.cli.render import describe_kind, format_time

    screen.heading(f"{data['id']} · {data['state']}")
    if data["stale"]:
        screen.line("stale: the memory that it would change has changed since the proposal", "bold")
    screen.labelled("from", f"{data['proposer']}, {format_time(data['created_at'])}")
    screen.labelled("because", data["reason"])
    screen.labelled("reasons", ["{gate}: {detail} ({code})".format(**each) for each in data["reasons"]])
    legible = {each["id"]: each["changes"] for each in data.get("shown", ())}
    for step in data["diff"]:
        base = data["base"].get(step["id"], 0)
        screen.labelled(step["op"], f"{describe_kind(step['after'])} · {f'on version {base}' if base else 'new'}")
        screen.labelled("memory", step["id"], "dim")
        if all(change["field"] != "text" for change in step["changed"]):
            # A move or a retirement does not change the text, but the reviewer needs it to decide.
            screen.labelled("text", step["after"]["text"], indent=2)
        if step["id"] not in legible:
            for change in step["changed"]:
                if step["before"] is not None or change["field"] == "text":
                    screen.change(change["field"], change["before"], change["after"], joiners=False)
        # Every field is shown, because an approval applies to everything that was shown.
        for name, before, after in sorted(legible.get(step["id"], ()), key=lambda change: change[0] != "text"):
            if step["before"] is None and name != "text":
                screen.labelled(name, after, indent=2)
            else:
                screen.change(name, before, after)
    for current in data["current"]:
        by = f"{current['text_by']}, {format_time(current['text_at'])}"
        screen.labelled("now", f"{current['text']} (version {current['version']}; {by})")
    if data["decided_by"]:
        screen.labelled("decided", f"{data['state']} by {data['decided_by']}: {data['decision']}")
    screen.labelled("digest", data["digest"], "dim")


@command(IDS, option("--digest", "Approve only if the digest is still this one; takes one ID.", "HEX"))
def approve(call: CommandContext, ids: tuple[str, ...], digest: str | None) -> CommandResult:
    """Approve proposals: commit exactly the change that was shown."""
    if digest is not None and len(ids) > 1:
        raise InvalidInput("--digest takes one ID: each proposal has its own digest")
    memory = call.memory("decide")

    def decide(name: str) -> dict[str, Any]:
        result = memory.approve(name, digest=digest).to_dict()
        return {**result, "proposal": name, "memory": result["id"]}

    return _decide_each(memory, ids, decide, "approved")


@operation_command()
def amend(call: CommandContext, **args: Any) -> CommandResult:
    """Approve a proposal with your own changes; the gates check it again."""
    return write_result(call.memory("decide").amend(**args))


@command(IDS, option("--reason", "Why; the proposer reads it.", "TEXT", required=True))
def reject(call: CommandContext, ids: tuple[str, ...], reason: str) -> CommandResult:
    """Reject proposals; nothing changes."""
    memory = call.memory("decide")
    return _decide_each(
        memory, ids, lambda name: _receipt_data(memory.reject(name, reason=reason), "rejected"), "rejected"
    )


@command(IDS, option("--reason", "Why; it is stored in the receipt.", "TEXT", required=True))
def reopen(call: CommandContext, ids: tuple[str, ...], reason: str) -> CommandResult:
    """Reopen rejected or expired proposals: they are pending again, unchanged."""
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
    """Decide on each proposal; a failure does not stop the rest. The first failure sets the exit code."""
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
    succeeded = sum(1 for result in results if result["error"] is None)
    data = {"results": results, decision: succeeded, "failed": len(results) - succeeded}
    return CommandResult(data, None, code, hidden=("item", "memories"))


@operation_command()
def log(call: CommandContext, limit: int, **args: Any) -> CommandResult:
    """List commits, newest first."""
    commits = [view.to_dict() for view in call.memory("decide").log(limit=limit, **args)]
    next_before = commits[-1]["seq"] if commits and len(commits) == limit and commits[-1]["seq"] > 1 else None
    return CommandResult({"commits": commits, "next_before": next_before}, _show_log)


def _show_log(screen: Screen, data: dict[str, Any]) -> None:
    rows = []
    for commit in data["commits"]:
        changes = ", ".join(change["op"] for change in commit["changes"][:3])
        if len(commit["changes"]) > 3:
            changes += f" +{len(commit['changes']) - 3}"
        actors = " / ".join(dict.fromkeys(filter(None, (commit["actor"], commit["approved_by"]))))
        at = commit["at"][:16]
        rows.append((str(commit["seq"]), commit["id"][:13], at, actors, f"{changes} {commit['reason']}"))
    screen.table(("seq", "commit", "at (UTC)", "who", "what"), rows, empty="No commits.")
    if data["next_before"]:
        screen.line(f"older commits: keepward log --before {data['next_before']}", "dim")


@operation_command()
def show(call: CommandContext, commit: str) -> CommandResult:
    """Show one commit: who, when, why, and each memory before and after."""
    view = call.memory("decide").show(commit)
    return CommandResult({**view.to_dict(), "events": [step.to_dict() for step in view.steps]}, _show_commit)


def _show_commit(screen: Screen, data: dict[str, Any]) -> None:
    from keepward.cli.render import format_time

    screen.line(f"commit {data['seq']} · {data['id']}", "bold")
    screen.labelled("at", format_time(data["at"]))
    screen.labelled("by", f"{data['actor']} ({data['kind']})")
    screen.labelled("approved by", data["approved_by"])
    screen.labelled("because", data["reason"])
    for name in ("undoes", "receipt", "hash"):
        screen.labelled(name, data[name] and str(data[name]))
    for event in data["events"]:
        screen.line()
        screen.event(event)


@command(argument("A", "A commit, or 0 for the empty store.", "earlier"), argument("B", "Another commit.", "later"))
def diff(call: CommandContext, earlier: str, later: str) -> CommandResult:
    """Show which memories differ between the states after two commits."""
    differences = as_json(call.memory("decide").diff(earlier, later))
    messages = () if differences else ("the two states are equal",)
    data = {"from": earlier, "to": later, "differences": differences, "count": len(differences)}
    return CommandResult(data, messages=messages)


@operation_command()
def rollback(call: CommandContext, dry_run: bool = False, **args: Any) -> CommandResult:
    """Undo one commit with a new one. If later commits changed the same memories, nothing changes (a conflict)."""
    data = rollback_data(call.memory("decide").rollback(dry_run=dry_run, **args), dry_run=dry_run)
    conflicting = bool(data["conflicts"])
    messages = ("later commits changed the same memories; undo them too with --with-later",) if conflicting else ()
    if not (conflicting or dry_run or data["applied"]):
        messages = ("the commit is already undone; nothing was changed",)
    return CommandResult(data, None, 4 if conflicting else 0, messages)


def rollback_data(result: Any, *, dry_run: bool) -> dict[str, Any]:
    """Return the result or the plan of a rollback as JSON values."""
    return to_json_object(
        result,
        "receipt_id",
        dry_run=dry_run,
        receipt=result.receipt_id,
        conflicts=[
            {"memory": conflict.memory_id, "seq": conflict.seq, "commit": conflict.commit_id}
            for conflict in result.conflicts
        ],
    )


@operation_command()
def receipt(call: CommandContext, receipt_id: str) -> CommandResult:
    """Show a receipt: the record of one decision, such as a commit, a refusal or a compiled context."""
    data = as_json(call.memory("decide").receipt(receipt_id))
    return CommandResult(data, hidden=("sections", "excluded", "parts"))


APPLY = option("--apply", "Apply the plan with this digest.", "DIGEST")


def _impact_data(report: Any) -> dict[str, Any]:
    data = to_json_object(report, "selector", by=to_json_object(report.selector))
    for context in data["contexts"]:
        context["items"] = [{"id": memory_id, "version": version} for memory_id, version in context["items"]]
    return data


impact = simple_command("impact", "decide", lambda report: CommandResult(_impact_data(report)))


@operation_command(APPLY, without="digest")
def contain(call: CommandContext, apply: str | None = None, reason: str = "", **args: Any) -> CommandResult:
    """Retire everything that one source, actor, session, commit or memory touched. Without --apply, show the plan."""
    memory = call.memory("decide")
    plan = memory.plan_contain(**args) if apply is None else memory.contain(apply, reason=reason, **args)
    messages = plan.notes
    if (plan.items or plan.shortened) and not plan.applied:
        messages += (f"nothing was changed; apply it with the same options and --apply {plan.digest}",)
    elif plan.commit is not None:
        messages += (f"undo it with `keepward rollback {plan.commit.id}`",)
    return CommandResult(
        to_json_object(plan, impact=_impact_data(plan.impact)), messages=messages, hidden=("impact", "notes")
    )


@operation_command()
def blame(call: CommandContext, name: str) -> CommandResult:
    """Show which commit, actor, source and approval set each value of a memory."""
    report = call.memory("decide").blame(name)
    fields = [
        to_json_object(
            origin,
            "made",
            commit=origin.made.commit.id,
            seq=origin.made.commit.seq,
            at=as_json(origin.made.commit.at),
            op=origin.made.op,
            reason=origin.made.details.reason,
        )
        for origin in report.origins
    ]
    return CommandResult(
        {"id": report.record.id, "version": report.record.version, "fields": fields},
        hidden=("commit", "at", "op", "version", "reason"),
    )


@operation_command(without="purpose")
def bisect(call: CommandContext, query: str, **args: Any) -> CommandResult:
    """Find the first commit after which the context for a query contains a text."""
    result = call.memory("decide").bisect(query, **args)
    commit = result.commit.to_dict()
    next_commands = [f"keepward rollback {commit['id']}", f"keepward contain --commit {commit['id']}"]
    events = [step.to_dict() for step in result.commit.steps]
    return CommandResult({"commit": commit, "compiled": result.compiled, "events": events, "next": next_commands})


def _contradictions(result: Contradictions) -> CommandResult:
    data = result.to_dict()
    for pair in data["items"]:
        pair["next"] = f"keepward supersede {pair['older']['id']} --by {pair['newer']['id']} --reason TEXT"
    return CommandResult(data, messages=result.notes, hidden=("notes",))


contradictions = simple_command("contradictions", "decide", _contradictions, without="content_types min_importance")


@operation_command()
def context_diff(call: CommandContext, first: str, second: str) -> CommandResult:
    """Show the differences between two compiled contexts, and the commit responsible for each."""
    result = call.memory("decide").context_diff(first, second)
    return CommandResult(to_json_object(result, first=first, second=second))
