"""The identity document: shown with its editions, a new edition proposed, and an edit by hand adopted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.call import Answer, Call, text_of
from keepward.cli.command import argument, command, option
from keepward.cli.memories import minute, written
from keepward.errors import InvalidInput, StaleVersion, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.screen import Screen


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
        return Answer(call.memory().identity(edition=edition).to_dict(), _show)
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
    if file is None or not reason or edition is not None:
        raise InvalidInput("identity propose takes --file FILE and --reason TEXT")
    return written(call.memory().update_identity(_read(file), reason=reason))


def _read(file: str) -> str:
    try:
        return text_of("-") if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput("the file that was named cannot be read as UTF-8 text") from fault


def _show(screen: Screen, data: dict[str, Any]) -> None:
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
