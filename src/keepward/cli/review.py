"""Commands that decide, audit and undo: the review queue, the journal, inquiries and containment.

A proposer cannot approve its own proposal.

Late imports: other commands start faster.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

from keepward.cli.command import EXIT_CODE_OF, argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.cli.outcomes import write_result
from keepward.cli.parameters import operation_command, simple_command
from keepward.core.commit import Receipt
from keepward.core.json_form import to_json
from keepward.core.principals import ActorKind
from keepward.core.proposal import ProposalState
from keepward.core.results import changed_fields, outcome_summary
from keepward.core.value import format_time, pluralize
from keepward.errors import InvalidInput, KeepwardError, NotFound

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.journal import Contradictions
    from keepward.core.proposal import Outcome, Proposal
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
    listed = matches.items[:shown] if sort == "danger" else matches.items[-shown:]
    proposals = [{**proposal.to_dict(), "shown": to_json(memory.proposed_steps(proposal))} for proposal in listed]

    def show(screen: Screen, data: dict[str, Any]) -> None:
        if not data["items"]:
            screen.line("No proposals.", "dim")
        if expired:
            screen.line(expired_undecided(expired))
        for proposal in data["items"]:
            show_proposal(screen, proposal)
            if proposal["stale"]:
                for current in proposal["current"]:
                    edit = f"keepward amend {proposal['id']} TEXT --if-version {current['version']}"
                    screen.labelled("edit", edit, "bold")
            elif proposal["may_approve"]:
                screen.verbatim(f"approve     keepward approve {proposal['id']}")

    hint = f"{total:,} proposals{cut}; `approve` and `reject --reason` take several ids"
    messages = (hint,) if cut or total > _SHOW_COUNT_FROM else ()
    return CommandResult({**matches.to_dict(), "items": proposals}, show, messages=messages)


def expired_undecided(count: int) -> str:
    """Return a sentence about proposals that expired without a decision."""
    return (
        f"{pluralize(count, 'proposal', 'proposals')} expired without a decision: `keepward pending --state expired` "
        "lists them, `keepward reopen ID --reason ...` reopens one"
    )


def show_proposal(screen: Screen, data: dict[str, Any]) -> None:
    """Print a proposal for its reviewer: every field that changes, with invisible characters written out."""
    from keepward.cli.render import describe_kind

    screen.heading(f"{data['id']} · {data['state']}")
    if data["stale"]:
        screen.line("stale: the memory that it would change has changed since the proposal", "bold")
    proposer = f"{data['proposer']['kind']}:{data['proposer']['name']}"
    screen.labelled("from", f"{proposer}, {format_time(data['created_at'])}")
    screen.labelled("because", data["reason"])
    screen.labelled("reasons", ["{gate}: {detail} ({code})".format(**each) for each in data["reasons"]])
    legible = {each["id"]: each["changes"] for each in data.get("shown", ())}
    for step in data["steps"]:
        memory_id, changed = step["after"]["id"], changed_fields(step["before"], step["after"])
        base = data["base"].get(memory_id, 0)
        screen.labelled(step["op"], f"{describe_kind(step['after'])} · {f'on version {base}' if base else 'new'}")
        screen.labelled("memory", memory_id, "dim")
        if all(change["field"] != "text" for change in changed):
            # A move or a retirement does not change the text, but the reviewer needs it to decide.
            screen.labelled("text", step["after"]["text"], indent=2)
        if memory_id not in legible:
            for change in changed:
                if step["before"] is not None or change["field"] == "text":
                    screen.change(change["field"], change["before"], change["after"], joiners=False)
        # Every field is shown, because an approval applies to everything that was shown.
        for name, before, after in sorted(legible.get(memory_id, ()), key=lambda change: change[0] != "text"):
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


@command(
    argument("[ID...]", "Ids of proposals.", "ids"),
    option("--digest", "Approve only if the digest is still this one; takes one ID.", "HEX"),
    option("--source", "Approve all that your import of a file proposed: import:FILE.", "SOURCE"),
)
def approve(call: CommandContext, ids: tuple[str, ...], digest: str | None, source: str | None) -> CommandResult:
    """Approve proposals: commit exactly the change that was shown."""
    if digest is not None and len(ids) > 1:
        raise InvalidInput("--digest takes one ID: each proposal has its own digest")
    if (source is None) == (not ids):
        raise InvalidInput("name the ids of proposals, or the source of an import: --source import:FILE")
    memory = call.memory("decide")
    if source is not None:
        ids = _proposed_by_import(memory, source)

    return _decide_each(memory, ids, lambda name: memory.approve(name, digest=digest), "approved")


@operation_command()
def amend(call: CommandContext, **args: Any) -> CommandResult:
    """Approve a proposal with your own changes; the gates check it again."""
    return write_result(call.memory("decide").amend(**args))


@command(IDS, option("--reason", "Why; the proposer reads it.", "TEXT", required=True))
def reject(call: CommandContext, ids: tuple[str, ...], reason: str) -> CommandResult:
    """Reject proposals; nothing changes."""
    memory = call.memory("decide")
    return _decide_each(memory, ids, lambda name: memory.reject(name, reason=reason), "rejected")


@command(IDS, option("--reason", "Why; it is stored in the receipt.", "TEXT", required=True))
def reopen(call: CommandContext, ids: tuple[str, ...], reason: str) -> CommandResult:
    """Reopen rejected or expired proposals: they are pending again, unchanged."""
    memory = call.memory("decide")
    return _decide_each(memory, ids, lambda name: memory.reopen(name, reason=reason), "reopened")


def _pending_proposal(memory: Memory, name: str) -> Proposal | None:
    """Return a pending proposal by its complete id; None if there is none."""
    with suppress(KeepwardError):
        item = memory.proposal(name)
        return item if (item.id, item.state) == (name, "pending") else None
    return None


def _proposed_by_import(memory: Memory, source: str) -> tuple[str, ...]:
    """Return the ids of what a person's import of a file proposed; no agent can add to these."""
    waiting = [each for each in memory.pending(limit=None) if each.proposer.kind is ActorKind.IMPORTER]
    ids = tuple(each.id for each in waiting if all(source in step.after.evidence for step in each.steps))
    if not ids:
        raise NotFound(f"no import of yours left proposals with the source {source}: see `keepward pending`")
    return ids


def _decide_each(
    memory: Memory, ids: tuple[str, ...], decide: Callable[[str], Outcome | Receipt], decision: str
) -> CommandResult:
    """Decide on each proposal; a failure does not stop the rest. The first failure sets the exit code."""
    results: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    code = 0
    for name in dict.fromkeys(ids):
        result: dict[str, Any] = {"id": name, "item": None, "outcome": None, "receipt": None, "error": None}
        try:
            result["item"] = _pending_proposal(memory, name)
            done = decide(name)
            result["receipt" if isinstance(done, Receipt) else "outcome"] = done
            word = {"outcome": decision} if isinstance(done, Receipt) else outcome_summary(done)
            rows.append({**word, "id": name, "receipt": done.id if isinstance(done, Receipt) else word["receipt"]})
        except KeepwardError as fault:
            result["error"] = fault
            rows.append({"id": name, "outcome": "error", "error": to_json(fault)})
            code = code or EXIT_CODE_OF.get(fault.code, 1)
        results.append(to_json(result))
    succeeded = sum(1 for result in results if result["error"] is None)
    counts = {decision: succeeded, "failed": len(results) - succeeded}

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.result({"results": rows, **counts})

    return CommandResult({"results": results, **counts}, draw, code)


@operation_command()
def log(call: CommandContext, limit: int, **args: Any) -> CommandResult:
    """List commits, newest first."""
    page = call.memory("decide").log(limit=limit, **args)
    return CommandResult(page.to_dict(), _show_log, messages=page.notes, hidden=("notes",))


def _show_log(screen: Screen, data: dict[str, Any]) -> None:
    rows = []
    for view in data["items"]:
        commit, details, steps = view["commit"], view["details"], view["steps"]
        changes = ", ".join(step["op"] for step in steps[:3])
        if len(steps) > 3:
            changes += f" +{len(steps) - 3}"
        actors = " / ".join(dict.fromkeys(filter(None, (details["actor"], details["approved_by"]))))
        at = commit["at"][:16]
        rows.append((str(commit["seq"]), commit["id"][:13], at, actors, f"{changes} {details['reason']}"))
    screen.table(("seq", "commit", "at (UTC)", "who", "what"), rows, empty="No commits.")
    if data["next_before"]:
        screen.line(f"older commits: keepward log --before {data['next_before']}", "dim")


@operation_command()
def show(call: CommandContext, commit: str) -> CommandResult:
    """Show one commit: who, when, why, and each memory before and after."""
    view = call.memory("decide").show(commit)
    return CommandResult(view.to_dict(), show_commit, messages=view.damage)


def show_commit(screen: Screen, data: dict[str, Any]) -> None:
    commit, details = data["commit"], data["details"]
    screen.line(f"commit {commit['seq']} · {commit['id']}", "bold")
    screen.labelled("at", format_time(commit["at"]))
    screen.labelled("by", f"{details['actor']} ({commit['kind']})")
    screen.labelled("approved by", details["approved_by"])
    screen.labelled("because", details["reason"])
    screen.labelled("undoes", ", ".join(details["undoes"]))
    screen.labelled("receipt", details["receipt"])
    screen.labelled("hash", commit["hash"])
    for step in data["steps"]:
        screen.line()
        screen.event(step)


@command(
    argument("A", "A commit, or 0 for the empty store.", "earlier"),
    argument("B", "Another commit.", "later"),
    option("--limit", f"Show N. [default: {_DEFAULT_LIMIT}; with --json: all]", "N"),
    option("--no-limit", "Show all.", name="everything"),
)
def diff(call: CommandContext, earlier: str, later: str, limit: int | None, everything: bool) -> CommandResult:
    """Show which memories differ between the states after two commits."""
    most = None if everything or (limit is None and call.as_json) else limit or _DEFAULT_LIMIT
    found = call.memory("decide").diff(earlier, later, limit=most)
    left = found.total - len(found)
    cut = (f"{left:,} more differ; --no-limit shows all",) if left else ()
    messages = (*found.notes, *cut) if found.total or found.withheld else ("the two states are equal",)
    data = {"from": earlier, "to": later, **found.to_dict()}
    return CommandResult(data, messages=messages, hidden=("notes", "withheld", "offset", "counts"))


@operation_command()
def rollback(call: CommandContext, dry_run: bool = False, **args: Any) -> CommandResult:
    """Undo one commit with a new one. If later commits changed the same memories, nothing changes (a conflict)."""
    result = call.memory("decide").rollback(dry_run=dry_run, **args)
    conflicting = bool(result.conflicts)
    messages = ("later commits changed the same memories; undo them too with --with-later",) if conflicting else ()
    if not (conflicting or dry_run or result.applied):
        messages = ("the commit is already undone; nothing was changed",)
    data = {**result.to_dict(), "dry_run": dry_run}
    return CommandResult(data, None, 4 if conflicting else 0, messages, hidden=("receipt_id",))


@operation_command()
def receipt(call: CommandContext, receipt_id: str) -> CommandResult:
    """Show a receipt: the record of one decision, such as a commit, a refusal or a compiled context."""
    data = to_json(call.memory("decide").receipt(receipt_id))
    return CommandResult(
        data, messages=tuple(data.get("damage", ())), hidden=("sections", "excluded", "parts", "damage")
    )


APPLY = option("--apply", "Apply the plan with this digest.", "DIGEST")


impact = simple_command("impact", "decide")


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
    return CommandResult(plan.to_dict(), messages=messages, hidden=("impact", "notes"))


@operation_command()
def blame(call: CommandContext, name: str) -> CommandResult:
    """Show which commit, actor, source and approval set each value of a memory."""
    report = call.memory("decide").blame(name)
    damage = [note for origin in report.origins for note in origin.made.damage]

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        rows = [{**origin, "seq": origin["made"]["commit"]["seq"]} for origin in data["origins"]]
        screen.result({"id": report.record.id, "fields": rows}, ("made", "version"))

    return CommandResult(report.to_dict(), draw, messages=tuple(dict.fromkeys((*report.notes, *damage))))


def _contradictions(result: Contradictions) -> CommandResult:
    data = result.to_dict()
    for pair in data["items"]:
        pair["next"] = f"keepward supersede {pair['older']['id']} --by {pair['newer']['id']} --reason TEXT"
    return CommandResult(data, messages=result.notes, hidden=("notes", "is_partial"))


contradictions = simple_command("contradictions", "decide", _contradictions, without="content_types min_importance")


@operation_command()
def context_diff(call: CommandContext, first: str, second: str) -> CommandResult:
    """Show the differences between two compiled contexts, and the commit responsible for each."""
    result = call.memory("decide").context_diff(first, second)
    return CommandResult(result.to_dict(), messages=result.notes, hidden=("notes",))
