"""The config command: which settings hold, and accepting a file that was found beside the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.screen import Screen


def config(
    call: Call,
    accept: Annotated[
        str | None, typer.Option("--accept", metavar="DIGEST", help="Accept the file with this digest.")
    ] = None,
    release_key: Annotated[
        bool, typer.Option("--release-key", help="Let KEEPWARD_EMBEDDER_KEY go to another host than before.")
    ] = False,
) -> Answer:
    """Show the settings file, what of it loosens or leaves this machine, and whether that was accepted.

    A file that was found beside the store only tightens until you accept it; one that changes has to be accepted anew.
    A file named with --config or KEEPWARD_CONFIG is your own choice and holds as it is.
    """
    from keepward import accepted
    from keepward.config import home

    if accept or release_key:
        owner = call.principal("decide").is_owner and not call.environ.get("KEEPWARD_TOKEN")
        if not owner:
            raise Unauthorised("accepting settings takes the owner")
    place = home(call.environ)
    try:
        if release_key:
            accepted.release_key(place, call.environ.get("KEEPWARD_EMBEDDER_KEY", ""))
        if accept:
            file = call.settings.file
            if file is None or call.settings.named:
                raise InvalidInput("there is no settings file beside the store that needs to be accepted")
            raw = file.read_bytes()
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
    told = bool(settings.withheld)
    talk = (f"accept it with `keepward config --accept {settings.digest}`",) if told else ()
    return Answer(data=data, show=lambda screen: _show(screen, data), talk=talk)


def _show(screen: Screen, data: dict[str, Any]) -> None:
    screen.labelled("settings", str(data["file"] or "the defaults"))
    for each in data["loosens"]:
        screen.labelled("loosens", f"{each['name']} = {each['value']}", style="yellow")
    if data["file"]:
        held = "holds" if data["accepted"] else "is NOT accepted: what loosens does not hold"
        screen.labelled("file", f"{held}; digest {data['digest']}", style="" if data["accepted"] else "bold yellow")
