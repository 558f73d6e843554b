"""Commands on the store itself: init, status, doctor, verify, rebuild, reindex, version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from keepward.cli.call import Answer, Call
from keepward.errors import StoreUnavailable

if TYPE_CHECKING:
    from keepward.app import Memory
    from keepward.cli.screen import Screen


def init(call: Call) -> Answer:
    """Make a store; one that is there stays as it is."""
    there = call.path.exists()
    with call.memory("decide", create=True) as memory:
        status = memory.status()
        token = _owner_token(call, memory)
    data = {
        "path": str(call.path),
        "created": not there,
        "schema_version": status["schema"],
        "head": status["head"],
        "tenant": status["tenant"],
        "policy": status["policy"],
        "settings": str(call.settings.file) if call.settings.file else None,
        "owner_token": token,
    }

    def draw(screen: Screen) -> None:
        screen.labelled("store", f"{data['path']} ({'made' if data['created'] else 'was there, unchanged'})")
        screen.labelled("head", str(data["head"]))
        screen.labelled("settings", str(data["settings"] or "the defaults"))
        if token:
            screen.labelled("owner", f"your token is in {token}; keep it to yourself")
        screen.labelled("next", 'keepward remember "..."')

    return Answer(data=data, show=draw)


def _owner_token(call: Call, memory: Memory) -> str | None:
    """Return the path of the owner's token; None for who is no owner, and where there is no place for one."""
    if not memory.actor.is_owner:
        return None
    try:
        return str(memory.owner_token())
    except StoreUnavailable as fault:
        call.say(str(fault))
        return None


def status(call: Call) -> Answer:
    """Show what the store holds: counts, the queue, capacity, budgets."""
    from keepward import present

    with call.memory("decide") as memory:
        found = present.plain(memory.status())
    data = {
        **found,
        "schema_version": found["schema"],
        "settings": str(call.settings.file) if call.settings.file else None,
        "settings_withheld": list(call.settings.withheld),
    }
    return Answer(data=data, show=lambda screen: _show_status(screen, data))


def _show_status(screen: Screen, data: dict[str, Any]) -> None:
    """Print what a person asks first: where it is, whether it is on and whole, what it holds, what waits."""
    from keepward.present import counted

    for label, text in _summary(data, counted):
        screen.labelled(label, text)
    for note in (*data["notes"], *(f"withheld from the settings: {name}" for name in data["settings_withheld"])):
        screen.labelled("note", note, style="yellow")
    screen.heading("jobs")
    rows = [
        (name, each["last_outcome"] or "-", _minute(each["last_at"]), "now" if each["due"] else _minute(each["due_at"]))
        for name, each in data["jobs"].items()
    ]
    screen.table(("job", "last", "last ran, UTC", "next"), rows)
    screen.line()
    screen.line("all of it: --json; what is wrong or missing: `keepward doctor`", "dim")


def _summary(data: dict[str, Any], counted: Callable[[int, str, str], str]) -> Iterator[tuple[str, str]]:
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
    since = f", the oldest since {_minute(queue['oldest_at'])} UTC: `keepward pending`"
    yield "review", f"{waits}{since}" if queue["depth"] else "nothing waits"
    if data["stuck_drafts"]:
        yield "drafts", f"{counted(data['stuck_drafts'], 'draft', 'drafts')} not finished"
    lacking = data["vectors_pending"]
    yield (
        "embedder",
        f"{data['embedder'] or 'none'}"
        + (
            f"; {counted(lacking, 'memory waits', 'memories wait')} for a vector: `keepward reindex`" if lacking else ""
        ),
    )
    if data["blobs"]["count"]:
        blobs = data["blobs"]
        yield "blobs", f"{blobs['count']}, {_size(blobs['bytes'])}, {blobs['unattached']} unattached"
    learned = data["reranker"]
    yield "reranker", f"{learned['version']} serves" if learned["serving"] else f"does not serve: {learned['why']}"


#: Share of a tier's capacity from which it is worth a line.
_NEARLY_FULL = 0.8


def _minute(at: str | None) -> str:
    return at[:16].replace("T", " ") if at else ""


def _size(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def doctor(call: Call) -> Answer:
    """Look for what is wrong or missing, and say what to do about it."""
    with call.memory("decide") as memory:
        checks = [
            {"name": each.name, "ok": each.ok, "detail": each.detail, "remedy": each.remedy or None}
            for each in memory.doctor()
        ]
    well = all(each["ok"] for each in checks)

    def draw(screen: Screen) -> None:
        for each in checks:
            screen.labelled("ok" if each["ok"] else "FAULT", f"{each['name']}: {each['detail']}", width=8)
            if not each["ok"] and each["remedy"]:
                screen.labelled("", f"to do: {each['remedy']}", width=8, style="bold")
        screen.line("All is well." if well else "Something needs attention.", "bold green" if well else "bold red")

    return Answer(data={"ok": well, "checks": checks}, show=draw, code=0 if well else 1)


def verify(call: Call) -> Answer:
    """Check every seal, the hash chain and every projection; any fault exits with 1."""
    with call.memory("decide") as memory:
        data = verification_data(memory.verify())
    return Answer(data=data, show=lambda screen: show_verification(screen, data), code=0 if data["ok"] else 1)


def verification_data(found: Any) -> dict[str, Any]:
    """Return what `verify` checked and found as JSON values."""
    from keepward import present

    faults = [present.plain(each) for each in found.faults]
    return {
        "ok": found.ok,
        "checked": dict(found.checked),
        "first_fault": faults[0] if faults else None,
        "faults": faults,
        "notes": list(getattr(found, "notes", ())),
    }


def show_verification(screen: Screen, data: dict[str, Any]) -> None:
    """Print what was checked and what does not hold."""
    from keepward import present

    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in data["checked"].items())
    screen.labelled("checked", told or "nothing")
    for fault in data["faults"]:
        screen.labelled("FAULT", f"{fault['row']}: {fault['detail']} ({fault['check']})", style="red")
    for note in data["notes"]:
        screen.labelled("note", note)
    if data["ok"]:
        screen.labelled("verified", "everything holds", style="bold green")
    else:
        screen.labelled(
            "FAULTY", f"{present.counted(len(data['faults']), 'thing does', 'things do')} not hold", style="bold red"
        )


def rebuild(call: Call) -> Answer:
    """Compute the records anew from the journal."""
    with call.memory("decide") as memory:
        count = memory.rebuild()
        data = {"rebuilt": count, "head": memory.status()["head"]}
    return Answer(data=data, show=lambda screen: screen.line(f"{count} memories computed anew from the journal."))


def reindex(call: Call) -> Answer:
    """Compute words and vectors anew where they are missing or of another embedder."""
    from keepward.cli.screen import progress

    with call.memory("decide") as memory, progress("reindexing", quiet=call.quiet) as report:
        count = memory.reindex(on_progress=report)
    return Answer(data={"reindexed": count}, show=lambda screen: screen.line(f"{count} memories indexed anew."))


def version(call: Call) -> Answer:
    """Show the versions of Keepward and of what it runs on."""
    del call
    import platform
    import sqlite3
    from importlib.metadata import version as installed

    data = {"version": installed("keepward"), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    told = f"keepward {data['version']} (Python {data['python']}, SQLite {data['sqlite']})"
    return Answer(data=data, show=lambda screen: screen.line(told))
