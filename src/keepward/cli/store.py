"""Commands on the store itself: making and checking it, its settings, jobs, tokens and key."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, as_json, owner_token, to_json_object
from keepward.cli.model import warn_if_missing
from keepward.cli.review import expired_undecided
from keepward.core.value import pluralize
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.principals import Token


@command()
def init(call: CommandContext) -> CommandResult:
    """Make a store; one that is there stays as it is."""
    there = call.path.exists()
    memory = call.memory("decide", create=True)
    status = memory.status()
    token, notes = owner_token(memory) if memory.actor.is_owner else (None, ())
    data = {
        "path": str(call.path),
        "created": not there,
        "schema_version": status["schema"],
        **{name: status[name] for name in ("head", "tenant", "policy")},
        "settings": str(call.settings.file) if call.settings.file else None,
        "owner_token": token,
    }

    talk = (*notes, 'next: keepward remember "..."')
    return CommandResult(data, talk=talk)


@command()
def tenants(call: CommandContext) -> CommandResult:
    """List the tenants that have memories."""
    from keepward.memory import request_context_of
    from keepward.services.status import tenants

    found = tenants(request_context_of(call.memory("decide")))
    data = {"tenants": found, "count": len(found)}
    return CommandResult(data, lambda screen, data: screen.labelled("tenants", data["tenants"]))


@command()
def status(call: CommandContext) -> CommandResult:
    """Show counts of the store, the review queue, capacity and budgets."""
    found = as_json(call.memory("decide").status())
    warn_if_missing(call)
    settings = {
        "schema_version": found["schema"],
        "settings": str(call.settings.file) if call.settings.file else None,
        "settings_withheld": list(call.settings.withheld),
    }
    return CommandResult({**found, **settings}, _show_status)


def _show_status(screen: Screen, data: dict[str, Any]) -> None:
    """Print where the store is, whether memory is on, how much it has, and what is pending."""
    from keepward.cli.render import format_time

    for label, text in _summary(data):
        screen.labelled(label, text)
    withheld = [f"withheld from the settings: {name}" for name in data["settings_withheld"]]
    screen.labelled("note", [*data["notes"], *withheld], "yellow")
    screen.heading("jobs")
    rows = [
        (
            name,
            each["last_outcome"] or "-",
            format_time(each["last_at"]),
            "now" if each["due"] else format_time(each["due_at"]),
        )
        for name, each in data["jobs"].items()
    ]
    screen.table(("job", "last", "last run", "next"), rows)
    screen.line()
    screen.line("all of it: --json; what is wrong or missing: `keepward doctor`", "dim")


def _summary(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield labels with a sentence each."""
    from keepward.cli.render import format_time

    known = "adopted" if data["adopted"] else "not adopted: `keepward adopt` shows what is in it"
    sealed = "sealed" if data["sealed"] else "not sealed"
    way = "read only" if data["read_only"] else f"{sealed}, anchor {data['anchor']}"
    yield "store", f"{data['path']} ({known}; {way}; {_size(data['file_bytes'])})"
    yield "settings", data["settings"] or "none: the defaults apply"
    yield "you", f"{data['actor']} at {data['scope']}, tenant {data['tenant']}"
    switches = ", ".join(f"{name} {'on' if data[name] else 'off'}" for name in ("capture", "recall"))
    yield "memory", f"{'on' if data['enabled'] else 'off'} ({switches}; policy {data['policy']})"
    tiers = ", ".join(f"{name} {count}" for name, count in data["by_tier"].items()) or "nothing yet"
    sensitive = f"; {data['sensitive']} sensitive" if data["sensitive"] else ""
    yield "holds", f"{pluralize(data['live'], 'memory', 'memories')}: {tiers}{sensitive}; {data['retired']} retired"
    for name, each in data["capacity"].items():
        if each["utilisation"] >= _NEARLY_FULL:
            yield "capacity", f"{name}: {each['live']} of {each['max']}"
    commits = pluralize(data["commits"], "commit", "commits")
    yield "journal", f"{commits}, {_size(data['journal_bytes'])}, head {data['head']}"
    blocks = [f"{name} {each['tokens']}/{each['budget']}" for name, each in data["blocks"].items() if each["tokens"]]
    yield "core", f"{', '.join(blocks)} tokens" if blocks else "no block is set"
    queue = data["quarantine"]
    waits = pluralize(queue["depth"], "proposal waits", "proposals wait")
    since = f", the oldest since {format_time(queue['oldest_at'])}: `keepward pending`"
    yield "review", f"{waits}{since}" if queue["depth"] else "nothing waits"
    if queue["expired"]:
        yield "undecided", expired_undecided(queue["expired"])
    if data["stuck_drafts"]:
        yield "drafts", f"{pluralize(data['stuck_drafts'], 'draft', 'drafts')} not finished"
    lacking = pluralize(data["vectors_pending"], "memory waits", "memories wait")
    pending = f"; {lacking} for a vector: `keepward reindex`" if data["vectors_pending"] else ""
    yield "embedder", f"{data['embedder'] or 'none'}{pending}"
    blobs, learned = data["blobs"], data["reranker"]
    if blobs["count"]:
        yield "blobs", f"{blobs['count']}, {_size(blobs['bytes'])}, {blobs['unattached']} unattached"
    yield "reranker", f"{learned['version']} serves" if learned["serving"] else f"does not serve: {learned['why']}"


#: Share of a tier's capacity from which it is worth a line.
_NEARLY_FULL = 0.8


def _size(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


@command(option("--strict", "Exit with 1 for a warning too."))
def doctor(call: CommandContext, strict: bool) -> CommandResult:
    """Find what is wrong or missing, and show what to do about it."""
    checks = [to_json_object(each, remedy=each.remedy or None) for each in call.memory("decide").doctor()]
    well = all(each["ok"] and not (strict and each["warning"]) for each in checks)

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        for each in data["checks"]:
            state = "FAULT" if not each["ok"] else "WARN" if each["warning"] else "ok"
            screen.labelled(state, f"{each['name']}: {each['detail']}", width=8)
            if state != "ok" and each["remedy"]:
                screen.labelled("", f"to do: {each['remedy']}", "bold", width=8)
        warned = sum(each["warning"] for each in data["checks"])
        all_well = f"All is well, with {pluralize(warned, 'warning', 'warnings')}." if warned else "All is well."
        screen.line(all_well if well else "Something needs attention.", "bold green" if well else "bold red")

    return CommandResult({"ok": well, "checks": checks}, draw, 0 if well else 1)


@command()
def verify(call: CommandContext) -> CommandResult:
    """Check every seal, the hash chain and every projection; any fault exits with 1."""
    data = verification_data(call.memory("decide").verify())
    talk = () if data["ok"] else (f"{pluralize(len(data['faults']), 'check', 'checks')} failed",)
    return CommandResult(data, None, 0 if data["ok"] else 1, talk, hidden=("first_fault",))


def verification_data(found: Any) -> dict[str, Any]:
    """Return what `verify` checked and found as JSON values."""
    data = to_json_object(found)
    return {**data, "first_fault": data["faults"][0] if data["faults"] else None}


@command()
def rebuild(call: CommandContext) -> CommandResult:
    """Compute the records again from the journal."""
    memory = call.memory("decide")
    data = {"rebuilt": memory.rebuild(), "head": memory.status()["head"]}
    return CommandResult(data)


@command()
def reindex(call: CommandContext) -> CommandResult:
    """Compute words and vectors that are missing or of another embedder."""
    with call.progress("reindexing") as report:
        data = {"reindexed": call.memory("decide").reindex(on_progress=report)}
    return CommandResult(data)


@command()
def version(call: CommandContext) -> CommandResult:
    """Show the versions of Keepward and of what it runs on."""
    del call
    import platform
    import sqlite3
    from importlib.metadata import version as installed

    data = {"version": installed("keepward"), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return CommandResult(data)


@command()
def drill(call: CommandContext) -> CommandResult:
    """Attack a copy of the store and show which defence fired; exits with 1 if one did not.

    The store, its key and its known heads do not change. A check is inconclusive, and exits with 1, if the same call is
    also refused to an actor with the right to make it.
    """
    from keepward.drill.drill import counts_of
    from keepward.drill.drill import drill as attack

    if not call.principal("decide").is_owner:
        raise Unauthorised("the drill copies the whole store; it takes the owner")
    lines = attack(call.path, tenant=call.tenant or call.settings.tenant, policy=call.settings.policy)
    counts = counts_of(lines)
    data = {
        "ok": counts.pop("ok"),
        "path": str(call.path),
        **counts,
        "checks": [to_json_object(each) for each in lines],
    }
    return CommandResult(data, None, 0 if data["ok"] else 1)


@command(
    argument("[run]", "Run instead of listing.", "action"),
    argument("[NAME]", "The job.", "name"),
    option("--due", "Run every job that is due."),
    option("--force", "Run it although it is not due."),
)
def jobs(call: CommandContext, action: str | None, name: str | None, due: bool, force: bool) -> CommandResult:
    """List the maintenance jobs, run one: `jobs run NAME`, or all that are due: `jobs run --due`.

    What is due runs by itself, while a server runs and after commands that write, unless `maintenance` is off. Jobs
    only propose. `restore` brings back what they archived, and `rollback` undoes their commits.
    """
    if action is None:
        if due or force:
            raise InvalidInput("--due and --force go with `jobs run`")
        found = [to_json_object(each) for each in call.memory("decide").jobs()]
        return CommandResult({"jobs": found, "count": len(found)}, hidden=("count", "does", "last_receipt"))
    if action != "run":
        raise InvalidInput("jobs takes run; without it, it lists them")
    if (name is None) != due:
        raise InvalidInput("jobs run takes the NAME of a job, or --due")
    if due and force:
        raise InvalidInput("--force goes with the NAME of a job")
    memory = call.memory("decide")
    runs = memory.run_jobs() if name is None else [memory.run_job(name, force=force)]
    well = all(each.outcome != "failed" and not each.counts.get("faults") for each in runs)
    data = {"runs": [to_json_object(each) for each in runs], "count": len(runs), "ok": well}
    talk = () if runs else ("no job is due",)
    return CommandResult(data, None, 0 if well else 1, talk, hidden=("count", "started_at", "ended_at"))


@command(
    argument("create|list|revoke", "What to do.", "action"),
    argument("ID", "The token to revoke, by its id.", "target", needed=False),
    option("--name", "The token holder.", "NAME"),
    option("--rights", "agent, reviewer or owner.", "ROLE", default="agent"),
    option("--can", "read, propose, sensitive, consent, share; a reviewer: read, approve, sensitive.", "LIST"),
    option("--expires", "Such as 30d; without it, never.", "DURATION"),
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

    A new token is shown once and stored as a hash. It reads this --tenant at --scope, and what is shared above
    it; it writes at --scope and below. With `share` it also writes above. `token create --user ana` makes one that
    writes Ana's memories alone, and reads these and what is shared.
    """
    if action not in {"create", "list", "revoke"}:
        raise InvalidInput("token takes create, list, revoke")
    if (target is None) == (action == "revoke"):
        raise InvalidInput("token revoke takes an ID; the others take none")
    if action != "create" and (name, can, expires) != (None, None, None):
        raise InvalidInput("--name, --rights, --can and --expires go with `token create`")
    name = name or call.user or call.agent or call.project
    if action == "create" and not name:
        raise InvalidInput("name the token holder: --name claude")
    memory = call.memory("decide")
    if action == "list":
        tokens = [_token_data(each, memory.now) for each in memory.tokens()]
        return CommandResult({"tokens": tokens, "count": len(tokens)}, hidden=("count", "created_by", "made_with"))
    if target is not None:
        receipt = memory.revoke_token(target).id
        found = next(each for each in memory.tokens() if each.id == target)
        return CommandResult({**_token_data(found, memory.now), "receipt": receipt})
    narrowed = None if can is None else [each.strip() for each in can.split(",") if each.strip()]
    issued = memory.create_token(str(name), rights=rights, can=narrowed, expires=expires)
    talk = [f"this is shown once: give it to {name} as KEEPWARD_TOKEN"]
    if issued.token.scope == "/":
        talk.append("it is valid at / and so in every scope: --user, --project or --scope keeps an agent to one")
    return CommandResult({**_token_data(issued.token, memory.now), "token": issued.secret}, talk=tuple(talk))


def _token_data(token: Token, now: Any) -> dict[str, Any]:
    return to_json_object(token, "hash", state=token.state(now))


@command(
    option("--accept", "Accept the file with this digest.", "DIGEST"),
    option("--release-key", "Let KEEPWARD_EMBEDDER_KEY and KEEPWARD_EXTRACTOR_KEY go to other hosts than before."),
)
def config(call: CommandContext, accept: str | None, release_key: bool) -> CommandResult:
    """Show the settings file, each of its settings, and whether the file was accepted.

    A file that was found next to the store applies after you accept it. Accept it again after each change.
    A file named with --config or KEEPWARD_CONFIG is your own choice and applies as it is.
    """
    from keepward import settings_trust
    from keepward.settings import KEY_VARIABLES, config_folder, read_file

    if (accept or release_key) and not call.is_owner:
        raise Unauthorised("accepting settings takes the owner")
    place = config_folder(call.environ)
    try:
        if release_key:
            for variable in KEY_VARIABLES.values():
                settings_trust.release_key(place, call.environ.get(variable, ""))
        if accept:
            file = call.settings.file
            if file is None or call.settings.named:
                raise InvalidInput("there is no settings file next to the store that needs to be accepted")
            raw = read_file(file)
            if accept != settings_trust.digest_of(raw):
                raise Conflict("the file is not the one that was shown; look at it again with `keepward config`")
            settings_trust.accept(place, file, raw)
            call.forget_settings()
    except OSError as fault:
        raise StoreUnavailable(f"the configuration folder cannot be written: {fault.strerror}") from fault
    settings = call.settings
    data: dict[str, Any] = {
        "file": str(settings.file) if settings.file else None,
        "digest": settings.digest or None,
        "named": settings.named,
        "loosens": [{"name": name, "value": value} for name, value in settings.loosens.items()],
        "accepted": not settings.withheld,
    }
    talk = (f"accept it with `keepward config --accept {settings.digest}`",) if settings.withheld else ()
    return CommandResult(data, talk=talk)


@command(
    argument("export|import", "Which way.", "action"),
    argument("FILE", "The sealed file.", "path"),
    option("--replace", "Replace another key of the same store."),
)
def key(call: CommandContext, action: str, path: str, replace: bool) -> CommandResult:
    """Copy the key of a store to another configuration directory, sealed with a passphrase.

    Known heads, erasures and revocations are included; tokens are not. The passphrase is prompted for, or taken from
    KEEPWARD_PASSPHRASE.
    """
    from keepward.keys import export_key, import_key
    from keepward.settings import config_folder

    if action not in {"export", "import"} or (replace and action == "export"):
        raise InvalidInput("key takes export or import, and a FILE; --replace goes with import")
    if not call.is_owner:
        raise Unauthorised("copying a key takes the owner")
    file, place = Path(path).expanduser(), config_folder(call.environ)
    if action == "export":
        done = export_key(call.memory("decide"), file, _passphrase(call, twice=True), config_dir=place)
    else:
        done = import_key(file, _passphrase(call), config_dir=place, replace=replace)

    talk = (
        ()
        if done.tombstones
        else ("this home has its own list of erased texts: texts erased there can be stored here",)
    )
    return CommandResult(to_json_object(done, action=action), talk=talk)


def _passphrase(call: CommandContext, *, twice: bool = False) -> str:
    if given := call.environ.get("KEEPWARD_PASSPHRASE"):
        return given
    if not sys.stdin.isatty():
        raise InvalidInput("the passphrase is asked for at a terminal; elsewhere set KEEPWARD_PASSPHRASE")
    import getpass

    said = getpass.getpass("Passphrase: ")
    if twice and getpass.getpass("Again: ") != said:
        raise InvalidInput("the two passphrases differ")
    return said
