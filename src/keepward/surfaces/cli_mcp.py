"""The commands of the protocol: `mcp` serves one client on stdio, `connect` writes a client's settings."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.errors import InvalidInput, Unauthorised
from keepward.surfaces.cli_call import Answer, Call, named_actor

if TYPE_CHECKING:
    from keepward.app import Memory
    from keepward.surfaces.cli_screen import Screen

Profile = Annotated[
    str,
    typer.Option("--profile", metavar="NAME", help="default, minimal, readonly, blocks or graph: which tools."),
]
#: Name of an agent that does not say its own.
AGENT = "mcp"


def mcp(
    call: Call,
    profile: Profile = "default",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the agent, as it stands in receipts.")
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Show the tools of the profile and stop.")] = False,
) -> Answer:
    """Serve memory to an agent over the Model Context Protocol, on stdin and stdout.

    Clients start this themselves: `keepward connect` tells them to. Who asks is an agent, or the bearer of
    KEEPWARD_TOKEN. A missing store is made.
    """
    from keepward.surfaces.mcp import demand
    from keepward.surfaces.mcp.profiles import profile as profile_of

    chosen = profile_of(profile)
    if list_only:
        return _listed(chosen)
    if call.as_json:
        raise InvalidInput("stdout carries the protocol: --json goes with --list")
    demand()
    from keepward.surfaces.mcp.stdio import serve

    memory, reviewer = _handles(call, name)
    with memory:
        serve(memory, chosen, name=name or AGENT, reviewer=reviewer)
    return Answer(data={}, show=lambda _: None)


def _handles(call: Call, name: str | None) -> tuple[Memory, Memory | None]:
    """Return the agent's handle, and the person's where policy lets them be asked in the chat."""
    missing = not call.path.exists()
    # Decisions on earlier proposals are for the agent, who is told over the protocol.
    silent = replace(call, quiet=True)
    if call.environ.get("KEEPWARD_TOKEN"):
        if name:
            call.say("KEEPWARD_TOKEN says who asks; --name is not used")
        return silent.memory(stays=True), None
    if call.actor and name:
        raise InvalidInput("--as and --name both say who asks; leave out one")
    if name:
        silent = replace(silent, actor=f"agent:{name}")
    elif not (call.actor or call.settings.actor):
        silent = replace(silent, actor=f"agent:{AGENT}")
    agent = silent.principal("propose")
    if agent.kind.value != "agent":
        agent = named_actor(f"agent:{name or AGENT}")
        if call.actor:
            raise Unauthorised("this serves an agent; leave out --as and say who it is with --name")
        silent = replace(silent, actor=agent.label)
    person = replace(call, actor=None).principal("decide")
    if call.settings.policy.chat_approval and person.is_owner:
        from keepward.domain.trust import Actor

        owner = replace(silent, actor=None).memory("decide", create=True, stays=True)
        memory = owner.acting_as(agent)
        reviewer: Memory | None = owner.acting_as(Actor.reviewer(f"{person.name[:57]} (chat)"))
    else:
        memory, reviewer = silent.memory(create=True, stays=True), None
    if missing:
        call.say(f"made a new store at {call.path}")
    return memory, reviewer


def _listed(chosen: Any) -> Answer:
    from keepward.surfaces.mcp.prompts import PROMPTS
    from keepward.surfaces.mcp.resources import CORE, TEMPLATES

    documents = chosen.documents
    data = {
        "profile": chosen.name,
        "tools": [tool.as_dict() for tool in chosen.tools],
        "resources": [each.uri for each in (CORE, *TEMPLATES)] if documents else [],
        "prompts": [each.name for each in PROMPTS] if documents else [],
    }

    def draw(screen: Screen) -> None:
        screen.line(f"{chosen.name}: {chosen.about}", "bold")
        for tool in chosen.tools:
            screen.labelled(tool.name, tool.about, width=22)
        for label, names in (("resources", data["resources"]), ("prompts", data["prompts"])):
            if names:
                screen.labelled(label, ", ".join(names), width=22)

    return Answer(data=data, show=draw)


def connect(
    call: Call,
    client: Annotated[
        str,
        typer.Argument(metavar="CLIENT", help="claude, codex, gemini, opencode, cursor or vscode.", show_default=False),
    ],
    profile: Profile = "default",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the agent. [default: the client's]")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="DIR", help="Write into this folder, not for the whole user.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the entry out again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change and write nothing.")] = False,
) -> Answer:
    """Write into a client's settings that it starts `keepward mcp`; the rest of the file stays as it is.

    --db, --tenant, --scope, --embedder and --config go into the entry. A token never does: set KEEPWARD_TOKEN in
    the client's environment.
    """
    from keepward.surfaces.mcp.clients import client_of, file_of
    from keepward.surfaces.mcp.connect import carry_out, connected, disconnected
    from keepward.surfaces.mcp.profiles import profile as profile_of

    chosen = client_of(client)
    profile_of(profile)
    folder = Path(project).expanduser() if project is not None else None
    path = file_of(chosen, folder, call.environ)
    command, env = _command(call, profile, name or chosen.name, shared=folder is not None), _environment(call)
    change = disconnected(chosen, path) if remove else connected(chosen, path, command, env)
    backup = None
    if change.after != change.before and not dry_run:
        backup = carry_out(change)
    then = chosen.then if change.action in {"added", "updated"} and not dry_run else None
    data = {
        "client": chosen.name,
        "path": str(path),
        "action": change.action,
        "dry_run": dry_run,
        "diff": change.diff,
        "backup": str(backup) if backup else None,
        "command": command,
        "next": then,
    }
    return Answer(data=data, show=lambda screen: _show(screen, data, chosen.title))


def _show(screen: Screen, data: dict[str, Any], title: str) -> None:
    word = {"absent": "has no entry of ours", "unchanged": "is connected already"}.get(data["action"])
    if word is None:
        word = f"would be {data['action']}" if data["dry_run"] else data["action"]
    screen.labelled("client", f"{title}: {word}")
    screen.labelled("file", data["path"])
    for line in data["diff"].splitlines():
        screen.labelled("", line, style="green" if line.startswith("+") else "red")
    if data["backup"]:
        screen.labelled("before", f"kept as {data['backup']}")
    if data["next"]:
        screen.labelled("next", data["next"])


def _command(call: Call, profile: str, name: str, *, shared: bool) -> list[str]:
    """Return the command line that the client is to run, with paths that hold from any folder."""
    if not (0 < len(name) <= 64 and name.isprintable() and name == name.strip()):
        raise InvalidInput("--name takes 1 to 64 printable characters")
    if call.actor:
        raise InvalidInput("--as is for this command line; the client's agent is named with --name")
    options = ["--db", str(call.path.absolute())]
    for flag, value in (("--tenant", call.tenant), ("--scope", call.scope), ("--embedder", call.embedder)):
        options += [flag, value] if value else []
    if call.config:
        options += ["--config", str(Path(call.config).expanduser().absolute())]
    options += ["--profile", profile] if profile != "default" else []
    return [*_program(shared=shared), "mcp", *options, "--name", name]


def _program(*, shared: bool) -> list[str]:
    found = shutil.which("keepward")
    if shared and found:
        # A project's file is for others too, whose programs lie elsewhere.
        return ["keepward"]
    started = Path(sys.argv[0])
    if started.name == "keepward" and started.exists():
        return [str(started.absolute())]
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "keepward"]


def _environment(call: Call) -> dict[str, str]:
    """Return what has to hold in the client's environment too: where keys and anchors are kept, if not at home."""
    home = call.environ.get("KEEPWARD_HOME")
    return {"KEEPWARD_HOME": str(Path(home).expanduser().absolute())} if home else {}
