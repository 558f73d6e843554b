"""The key command: carry the key of a store to another home."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.errors import InvalidInput, Unauthorised

if TYPE_CHECKING:
    from keepward.cli.screen import Screen


def key(
    call: Call,
    action: Annotated[str, typer.Argument(metavar="export|import", help="Which way.", show_default=False)],
    path: Annotated[str, typer.Argument(metavar="FILE", help="The sealed file.", show_default=False)],
    replace: Annotated[
        bool, typer.Option("--replace", help="Take it in place of another key of the same store.")
    ] = False,
) -> Answer:
    """Carry the key of a store to another home, sealed with a passphrase: a container, or a new machine.

    With the key go the heads that were seen, and what keeps the erased erased and the revoked revoked; no token does.
    The passphrase is asked for, or taken from KEEPWARD_PASSPHRASE.
    """
    from dataclasses import asdict

    from keepward.app.keys import export_key, import_key
    from keepward.config import home

    if action not in {"export", "import"} or (replace and action == "export"):
        raise InvalidInput("key takes export or import, and a FILE; --replace goes with import")
    if not call.principal("decide").is_owner or call.environ.get("KEEPWARD_TOKEN"):
        raise Unauthorised("carrying a key takes the owner")
    file = Path(path).expanduser()
    if action == "export":
        with call.memory("decide") as memory:
            done = export_key(memory, file, _passphrase(call, twice=True), config_dir=home(call.environ))
    else:
        done = import_key(file, _passphrase(call), config_dir=home(call.environ), replace=replace)
    data: dict[str, Any] = {"action": action, **asdict(done)}

    def draw(screen: Screen) -> None:
        screen.labelled("key", f"{action}ed: store {done.store_id}", style="bold green")
        screen.labelled("file", done.path)
        screen.labelled("with it", f"{done.entries} erasures and revocations")
        if not done.tombstones:
            screen.labelled("careful", "this home has a list of its own: texts erased there can be said again here")

    return Answer(data=data, show=draw)


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
