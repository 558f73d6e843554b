"""Commands on the store itself: making and checking it, its settings, jobs, tokens and key."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.call import Answer, Call, as_json, data_of, owner_token
from keepward.cli.command import argument, command, option
from keepward.cli.memories import minute
from keepward.cli.review import expired_undecided
from keepward.core.value import counted
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.screen import Screen
    from keepward.core.trust import Token


@command()
def init(call: Call) -> Answer:
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

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.labelled("store", f"{data['path']} ({'made' if data['created'] else 'was there, unchanged'})")
        screen.labelled("head", str(data["head"]))
        screen.labelled("settings", data["settings"] or "the defaults")
        screen.labelled("owner", token and f"your token is in {token}; keep it to yourself")
        screen.labelled("next", 'keepward remember "..."')

    return Answer(data, draw, talk=notes)


@command()
def status(call: Call) -> Answer:
    """Show what the store holds: counts, the queue, capacity, budgets."""
    found = as_json(call.memory("decide").status())
    settings = {
        "schema_version": found["schema"],
        "settings": str(call.settings.file) if call.settings.file else None,
        "settings_withheld": list(call.settings.withheld),
    }
    return Answer({**found, **settings}, _show_status)


def _show_status(screen: Screen, data: dict[str, Any]) -> None:
    """Print what a person asks first: where it is, whether it is on and whole, what it holds, what waits."""
    for label, text in _summary(data):
        screen.labelled(label, text)
    withheld = [f"withheld from the settings: {name}" for name in data["settings_withheld"]]
    screen.labelled("note", [*data["notes"], *withheld], "yellow")
    screen.heading("jobs")
    rows = [
        (name, each["last_outcome"] or "-", minute(each["last_at"]), "now" if each["due"] else minute(each["due_at"]))
        for name, each in data["jobs"].items()
    ]
    screen.table(("job", "last", "last ran, UTC", "next"), rows)
    screen.line()
    screen.line("all of it: --json; what is wrong or missing: `keepward doctor`", "dim")


def _summary(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield labels with a sentence each."""
    known = "adopted" if data["adopted"] else "not adopted: `keepward adopt` shows what is in it"
    sealed = "sealed" if data["sealed"] else "not sealed"
    way = "read only" if data["read_only"] else f"{sealed}, anchor {data['anchor']}"
    yield "store", f"{data['path']} ({known}; {way}; {_size(data['file_bytes'])})"
    yield "settings", data["settings"] or "none: the defaults hold"
    yield "you", f"{data['actor']} at {data['scope']}, tenant {data['tenant']}"
    switches = ", ".join(f"{name} {'on' if data[name] else 'off'}" for name in ("capture", "recall"))
    yield "memory", f"{'on' if data['enabled'] else 'off'} ({switches}; policy {data['policy']})"
    tiers = ", ".join(f"{name} {count}" for name, count in data["by_tier"].items()) or "nothing yet"
    sensitive = f"; {data['sensitive']} sensitive" if data["sensitive"] else ""
    yield "holds", f"{counted(data['live'], 'memory', 'memories')}: {tiers}{sensitive}; {data['retired']} retired"
    for name, each in data["capacity"].items():
        if each["utilisation"] >= _NEARLY_FULL:
            yield "capacity", f"{name}: {each['live']} of {each['max']}"
    commits = counted(data["commits"], "commit", "commits")
    yield "journal", f"{commits}, {_size(data['journal_bytes'])}, head {data['head']}"
    blocks = [f"{name} {each['tokens']}/{each['budget']}" for name, each in data["blocks"].items() if each["tokens"]]
    yield "core", f"{', '.join(blocks)} tokens" if blocks else "no block is set"
    queue = data["quarantine"]
    waits = counted(queue["depth"], "proposal waits", "proposals wait")
    since = f", the oldest since {minute(queue['oldest_at'])} UTC: `keepward pending`"
    yield "review", f"{waits}{since}" if queue["depth"] else "nothing waits"
    if queue["expired"]:
        yield "undecided", expired_undecided(queue["expired"])
    if data["stuck_drafts"]:
        yield "drafts", f"{counted(data['stuck_drafts'], 'draft', 'drafts')} not finished"
    lacking = counted(data["vectors_pending"], "memory waits", "memories wait")
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
def doctor(call: Call, strict: bool) -> Answer:
    """Look for what is wrong or missing, and say what to do about it."""
    checks = [data_of(each, remedy=each.remedy or None) for each in call.memory("decide").doctor()]
    well = all(each["ok"] and not (strict and each["warning"]) for each in checks)

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        for each in data["checks"]:
            state = "FAULT" if not each["ok"] else "WARN" if each["warning"] else "ok"
            screen.labelled(state, f"{each['name']}: {each['detail']}", width=8)
            if state != "ok" and each["remedy"]:
                screen.labelled("", f"to do: {each['remedy']}", "bold", width=8)
        warned = sum(each["warning"] for each in data["checks"])
        all_well = f"All is well, with {counted(warned, 'warning', 'warnings')}." if warned else "All is well."
        screen.line(all_well if well else "Something needs attention.", "bold green" if well else "bold red")

    return Answer({"ok": well, "checks": checks}, draw, 0 if well else 1)


@command()
def verify(call: Call) -> Answer:
    """Check every seal, the hash chain and every projection; any fault exits with 1."""
    data = verification_data(call.memory("decide").verify())
    return Answer(data, show_verification, 0 if data["ok"] else 1)


def verification_data(found: Any) -> dict[str, Any]:
    """Return what `verify` checked and found as JSON values."""
    data = data_of(found)
    return {**data, "first_fault": data["faults"][0] if data["faults"] else None}


def show_verification(screen: Screen, data: dict[str, Any]) -> None:
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in data["checked"].items())
    screen.labelled("checked", told or "nothing")
    show_faults(screen, data)
    screen.labelled("note", data["notes"])
    if data["ok"]:
        screen.labelled("verified", "everything holds", "bold green")
    else:
        faults = counted(len(data["faults"]), "thing does", "things do")
        screen.labelled("FAULTY", f"{faults} not hold", "bold red")


def show_faults(screen: Screen, data: dict[str, Any]) -> None:
    screen.labelled("FAULT", [f"{each['row']}: {each['detail']} ({each['check']})" for each in data["faults"]], "red")


@command()
def rebuild(call: Call) -> Answer:
    """Compute the records anew from the journal."""
    memory = call.memory("decide")
    data = {"rebuilt": memory.rebuild(), "head": memory.status()["head"]}
    return Answer(data, lambda screen, data: screen.line(f"{data['rebuilt']} memories computed anew from the journal."))


@command()
def reindex(call: Call) -> Answer:
    """Compute words and vectors anew where they are missing or of another embedder."""
    with call.progress("reindexing") as report:
        data = {"reindexed": call.memory("decide").reindex(on_progress=report)}
    return Answer(data, lambda screen, data: screen.line(f"{data['reindexed']} memories indexed anew."))


@command()
def version(call: Call) -> Answer:
    """Show the versions of Keepward and of what it runs on."""
    del call
    import platform
    import sqlite3
    from importlib.metadata import version as installed

    data = {"version": installed("keepward"), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    told = "keepward {version} (Python {python}, SQLite {sqlite})".format(**data)
    return Answer(data, lambda screen, _: screen.line(told))


_DEFENCES = {"fired": "", "breached": "bold red", "inconclusive": "bold yellow"}


@command()
def drill(call: Call) -> Answer:
    """Attack a copy of the store and show which defence fired; any that did not exits with 1.

    The store, its key and its noted heads are not touched. A check that could not have failed, since the same is
    refused to those who may do it, is inconclusive and exits with 1 as well.
    """
    from keepward.drill.drill import counts_of
    from keepward.drill.drill import drill as attack

    if not call.principal("decide").is_owner:
        raise Unauthorised("the drill copies the whole store; it takes the owner")
    lines = attack(call.path, tenant=call.tenant or call.settings.tenant, policy=call.settings.policy)
    counts = counts_of(lines)
    data = {"ok": counts.pop("ok"), "path": str(call.path), **counts, "checks": [data_of(each) for each in lines]}
    return Answer(data, _show_drill, 0 if data["ok"] else 1)


def _show_drill(screen: Screen, data: dict[str, Any]) -> None:
    for each in data["checks"]:
        word = each["status"] if each["status"] == "fired" else each["status"].upper()
        screen.labelled(word, f"{each['title']}: {each['defence']}", _DEFENCES[each["status"]], width=13)
    if data["ok"]:
        screen.line(f"All {len(data['checks'])} defences fired.", "bold green")
    else:
        screen.line(f"{data['breached']} breached, {data['inconclusive']} inconclusive.", "bold red")


@command(
    argument("[run|pause|resume]", "What to do instead of listing.", "action"),
    argument("[NAME]", "The job.", "name"),
    option("--due", "Run every job that is due."),
    option("--force", "Run it although it is not due."),
)
def jobs(call: Call, action: str | None, name: str | None, due: bool, force: bool) -> Answer:
    """List the maintenance jobs, run one: `jobs run NAME`, or all that are due: `jobs run --due`, or pause one.

    What is due runs by itself, while a server runs and after commands that write, unless `maintenance` is off. Jobs
    only propose; what they put away comes back with `restore`, and a commit of theirs is undone with `rollback`.
    """
    if action is None:
        if due or force:
            raise InvalidInput("--due and --force go with `jobs run`")
        found = [data_of(each) for each in call.memory("decide").jobs()]
        return Answer({"jobs": found, "count": len(found)}, _show_jobs)
    if action in {"pause", "resume"} and name is not None:
        found = [data_of(call.memory("decide").pause_job(name, paused=action == "pause"))]
        return Answer({"jobs": found, "count": len(found)}, _show_jobs)
    if action != "run":
        raise InvalidInput("jobs takes run, pause and resume, the last two with a NAME; without one it lists them")
    if (name is None) != due:
        raise InvalidInput("jobs run takes the NAME of a job, or --due")
    if due and force:
        raise InvalidInput("--force goes with the NAME of a job")
    memory = call.memory("decide")
    runs = memory.run_due() if name is None else [memory.run_job(name, force=force)]
    well = all(each.outcome != "failed" and not each.counts.get("faults") for each in runs)
    data = {"runs": [data_of(each) for each in runs], "count": len(runs), "ok": well}
    return Answer(data, _show_runs, 0 if well else 1)


def _show_jobs(screen: Screen, data: dict[str, Any]) -> None:
    rows = [
        (
            each["name"],
            each["schedule"].removesuffix(" UTC"),
            _next(each),
            each["last_outcome"] or "never ran",
            minute(each["last_at"]) or "-",
        )
        for each in data["jobs"]
    ]
    screen.table(("job", "schedule", "next", "last", "last ran, UTC"), rows)


def _next(job: dict[str, Any]) -> str:
    word = "running" if job["running_until"] else "paused" if job["paused"] else "due" if job["due"] else ""
    return word or minute(job["due_at"]) or "-"


def _show_runs(screen: Screen, data: dict[str, Any]) -> None:
    if not data["runs"]:
        screen.line("No job is due.", "dim")
    styles = {"run": "bold green", "failed": "bold red", "skipped": "dim"}
    for each in data["runs"]:
        screen.line(f"{each['job']}: {each['outcome']}", styles[each["outcome"]])
        screen.line(each["why"], indent=2)
        for reason in each["reasons"]:
            screen.line(f"- {reason['detail']}", indent=2, hang=2)
        for waiting in each["proposals"]:
            screen.line(f"waits for you: keepward approve {waiting}", indent=2)
        screen.line(f"receipt {each['receipt']}", "dim", indent=2)


@command(
    argument("create|list|revoke", "What to do.", "action"),
    argument("ID", "The token to revoke, by its id.", "target", needed=False),
    option("--name", "Who will bear the new token.", "NAME"),
    option("--rights", "agent, reviewer or owner.", "CLASS", default="agent"),
    option("--can", "read, propose, sensitive, consent, share; a reviewer: read, approve, sensitive.", "LIST"),
    option("--expires", "Such as 30d; without it, never.", "TERM"),
)
def token(
    call: Call, action: str, target: str | None, name: str | None, rights: str, can: str | None, expires: str | None
) -> Answer:
    """Make, list or revoke the tokens that agents and reviewers come with.

    A new token is shown once and kept as a hash. It reads this --tenant at --scope, and what is shared above
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
        raise InvalidInput("say who will bear the token: --name claude")
    memory = call.memory("decide")
    if action == "list":
        tokens = [_token_data(each, memory.now) for each in memory.tokens()]
        return Answer({"tokens": tokens, "count": len(tokens)}, _show_tokens)
    if target is not None:
        receipt = memory.revoke_token(target).id
        found = next(each for each in memory.tokens() if each.id == target)
        return Answer({**_token_data(found, memory.now), "receipt": receipt}, _show_token)
    narrowed = None if can is None else [each.strip() for each in can.split(",") if each.strip()]
    issued = memory.create_token(str(name), rights=rights, can=narrowed, expires=expires)
    talk = [f"this is shown once: give it to {name} as KEEPWARD_TOKEN"]
    if issued.token.scope == "/":
        talk.append("it stands at / and so reaches every scope: --user, --project or --scope keeps an agent to one")
    return Answer({**_token_data(issued.token, memory.now), "token": issued.secret}, _show_token, talk=tuple(talk))


def _token_data(token: Token, now: Any) -> dict[str, Any]:
    return data_of(token, "hash", state=token.state(now))


def _show_tokens(screen: Screen, data: dict[str, Any]) -> None:
    rows = [
        (each["id"], each["rights"], each["state"], each["tenant"], f"{each['name']}, {each['scope']}")
        for each in data["tokens"]
    ]
    screen.table(("id", "rights", "state", "tenant", "bearer and scope"), rows, empty="There are no tokens.")


def _show_token(screen: Screen, data: dict[str, Any]) -> None:
    if "token" in data:
        screen.exact(data["token"])
    screen.labelled("token", f"{data['id']} ({data['state']})")
    screen.labelled("bearer", f"{data['name']}, {data['rights']}: {', '.join(data['can'])}")
    screen.labelled("reaches", f"tenant {data['tenant']}, scope {data['scope']}")
    screen.labelled("until", data["expires_at"])


@command(
    option("--accept", "Accept the file with this digest.", "DIGEST"),
    option("--release-key", "Let KEEPWARD_EMBEDDER_KEY and KEEPWARD_EXTRACTOR_KEY go to other hosts than before."),
)
def config(call: Call, accept: str | None, release_key: bool) -> Answer:
    """Show the settings file, each of its settings, and whether the file was accepted.

    A file that was found next to the store applies after you accept it. Accept it again after each change.
    A file named with --config or KEEPWARD_CONFIG is your own choice and applies as it is.
    """
    from keepward import accepted
    from keepward.config import KEYS, home, read_file

    if (accept or release_key) and not call.is_owner:
        raise Unauthorised("accepting settings takes the owner")
    place = home(call.environ)
    try:
        if release_key:
            for variable in KEYS.values():
                accepted.release_key(place, call.environ.get(variable, ""))
        if accept:
            file = call.settings.file
            if file is None or call.settings.named:
                raise InvalidInput("there is no settings file beside the store that needs to be accepted")
            raw = read_file(file)
            if accept != accepted.digest_of(raw):
                raise Conflict("the file is not the one that was shown; look at it again with `keepward config`")
            accepted.accept(place, file, raw)
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
    return Answer(data, _show_config, talk=talk)


def _show_config(screen: Screen, data: dict[str, Any]) -> None:
    screen.labelled("settings", data["file"] or "the defaults")
    screen.labelled("sets", [f"{each['name']} = {each['value']}" for each in data["loosens"]], "yellow")
    if data["file"]:
        held = "applies" if data["accepted"] else "is NOT accepted: none of it applies"
        screen.labelled("file", f"{held}; digest {data['digest']}", "" if data["accepted"] else "bold yellow")


@command(
    argument("export|import", "Which way.", "action"),
    argument("FILE", "The sealed file.", "path"),
    option("--replace", "Take it in place of another key of the same store."),
)
def key(call: Call, action: str, path: str, replace: bool) -> Answer:
    """Carry the key of a store to another home, sealed with a passphrase: a container, or a new machine.

    With the key go the heads that were seen, and what keeps the erased erased and the revoked revoked; no token does.
    The passphrase is asked for, or taken from KEEPWARD_PASSPHRASE.
    """
    from keepward.config import home
    from keepward.keys import export_key, import_key

    if action not in {"export", "import"} or (replace and action == "export"):
        raise InvalidInput("key takes export or import, and a FILE; --replace goes with import")
    if not call.is_owner:
        raise Unauthorised("carrying a key takes the owner")
    file, place = Path(path).expanduser(), home(call.environ)
    if action == "export":
        done = export_key(call.memory("decide"), file, _passphrase(call, twice=True), config_dir=place)
    else:
        done = import_key(file, _passphrase(call), config_dir=place, replace=replace)

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.labelled("key", f"{action}ed: store {data['store_id']}", "bold green")
        screen.labelled("file", data["path"])
        screen.labelled("with it", f"{data['entries']} erasures and revocations")
        if not data["tombstones"]:
            screen.labelled("careful", "this home has a list of its own: texts erased there can be said again here")

    return Answer(data_of(done, action=action), draw)


def _passphrase(call: Call, *, twice: bool = False) -> str:
    if given := call.environ.get("KEEPWARD_PASSPHRASE"):
        return given
    if not sys.stdin.isatty():
        raise InvalidInput("the passphrase is asked for at a terminal; elsewhere set KEEPWARD_PASSPHRASE")
    import getpass

    said = getpass.getpass("Passphrase: ")
    if twice and getpass.getpass("Again: ") != said:
        raise InvalidInput("the two passphrases differ")
    return said
