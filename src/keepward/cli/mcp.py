"""The commands of the protocol: `mcp` serves one client on stdio, `connect` writes a client's settings."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call, named_actor
from keepward.errors import InvalidInput, KeepwardError, Unauthorised

if TYPE_CHECKING:
    from keepward.app import Memory
    from keepward.cli.screen import Screen
    from keepward.mcp.connect import Standing
    from keepward.model.trust import Token

Profile = Annotated[
    str,
    typer.Option("--profile", metavar="NAME", help="default, minimal, readonly, blocks or graph: which tools."),
]
#: Name of an agent that does not say its own.
AGENT = "mcp"
#: What the token that `connect` makes can do.
_RIGHTS = ("propose", "read")


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
    from keepward.mcp import demand
    from keepward.mcp.profiles import profile as profile_of

    chosen = profile_of(profile)
    if list_only:
        return _listed(chosen)
    if call.as_json:
        raise InvalidInput("stdout carries the protocol: --json goes with --list")
    demand()
    from keepward.mcp.stdio import serve

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
        from keepward.model.trust import Actor

        owner = replace(silent, actor=None).memory("decide", create=True, stays=True)
        memory = owner.acting_as(agent)
        reviewer: Memory | None = owner.acting_as(Actor.reviewer(f"{person.name[:57]} (chat)"))
    else:
        memory, reviewer = silent.memory(create=True, stays=True), None
    if missing:
        call.say(f"made a new store at {call.path}")
    return memory, reviewer


def _listed(chosen: Any) -> Answer:
    from keepward.mcp.prompts import PROMPTS
    from keepward.mcp.resources import CORE, TEMPLATES

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
    expires: Annotated[
        str | None, typer.Option(metavar="TERM", help="Make a token that ends then, such as 90d; else it never does.")
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Write no token: the client is an agent that says its own name.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the entry out again, and end its token.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--print", help="Show the change and write nothing; a token is masked.")
    ] = False,
) -> Answer:
    """Write into a client's settings that it starts `keepward mcp`; the rest of the file stays as it is.

    The store's path goes into the entry, and a token made for this client: an agent's, which reads and proposes, at
    --tenant and --scope. A token that stood there is ended once another has taken its place. A --project is shared
    with others, and gets none.
    """
    from keepward.mcp.clients import client_of, file_of
    from keepward.mcp.connect import MASKED, TOKEN, carry_out, connected, disconnected, standing_token
    from keepward.mcp.profiles import profile as profile_of

    chosen = client_of(client)
    profile_of(profile)
    folder = Path(project).expanduser() if project is not None else None
    path = file_of(chosen, folder, call.environ)
    tokened = not (remove or no_token or folder)
    if expires is not None and not tokened:
        raise InvalidInput("--expires is of a token; leave out --no-token, --project and --remove")
    standing = standing_token(chosen, path)
    bearer = name or chosen.name
    command, env = _command(call, profile, bearer, shared=folder is not None, tokened=tokened), _environment(call)

    def change_with(secret: str) -> Any:
        # An empty one is none, and takes the place of one that is no longer wanted.
        given = {TOKEN: secret} if secret or standing else {}
        return disconnected(chosen, path) if remove else connected(chosen, path, command, env | given)

    # A file that cannot be edited is refused before a token is made for it.
    change = change_with(MASKED if tokened else "")
    token: dict[str, Any] | None = None
    backup, talk = None, []
    if tokened:
        with _owner(call, dry_run=dry_run) as memory:
            held = _fitting(memory, standing.secret if standing and not expires else "", bearer)
            issued = None
            if standing and held:
                change = change_with(standing.secret)
            elif memory and not dry_run:
                issued = memory.create_token(bearer, can=_RIGHTS, expires=expires)
                change = change_with(issued.secret)
            known = held or (issued.token if issued else None)
            token = {
                "id": known.id if known else None,
                "state": "kept" if held else "made" if issued else "would be made",
                "name": bearer,
                "scope": memory.scope if memory else call.scope or call.settings.scope,
            }
            try:
                backup = carry_out(change) if change.after != change.before and not dry_run else None
            except KeepwardError:
                if memory and issued:
                    memory.revoke_token(issued.token.id)
                raise
        if call.settings.policy.chat_approval:
            talk.append("chat_approval is for an agent without a token: connect with --no-token to decide in the chat")
    elif change.after != change.before and not dry_run:
        backup = carry_out(change)
    if folder is not None and not (no_token or remove):
        talk.append("a project's settings are shared, so no token is in them; each person sets KEEPWARD_TOKEN")
    ended = None
    if standing and not dry_run and (token is None or token["state"] != "kept"):
        ended, complaint = _end(call, standing)
        talk += complaint
    then = chosen.then if change.action in {"added", "updated"} and not dry_run else None
    data = {
        "client": chosen.name,
        "path": str(path),
        "action": change.action,
        "dry_run": dry_run,
        "diff": change.diff,
        "backup": str(backup) if backup else None,
        "command": command,
        "token": token,
        "ended": ended,
        "next": then,
    }
    return Answer(data=data, show=lambda screen: _show(screen, data, chosen.title), talk=tuple(talk))


@contextmanager
def _owner(call: Call, *, dry_run: bool) -> Iterator[Memory | None]:
    """Lend the owner's handle on the store, made where it is the user's own; None where a dry run finds no store.

    Raises:
        Unauthorised: whoever calls is no owner.
    """
    if dry_run and not call.path.exists():
        yield None
        return
    # A path that was typed has to be there: what is bound to a typing error is found out much later.
    own = not (call.db or call.environ.get("KEEPWARD_DB"))
    with call.memory("decide", create=own and not dry_run) as memory:
        if not memory.actor.is_owner:
            raise Unauthorised("a token is made by the owner at the terminal; --no-token connects without one")
        yield memory


def _fitting(memory: Memory | None, secret: str, name: str) -> Token | None:
    """Return what the store knows of a token that stands in an entry, where it is what would be made now."""
    found = _known(memory, secret) if memory and secret else None
    if memory is None or found is None or (found.rights.value, found.name) != ("agent", name):
        return None
    same = (found.tenant, found.scope, found.can) == (memory.tenant, memory.scope, tuple(sorted(_RIGHTS)))
    return found if same else None


def _known(memory: Memory, secret: str) -> Token | None:
    """Return the token that a secret is, where it still opens the store."""
    try:
        name = memory.holding(secret).actor.credential
    except Unauthorised:
        return None
    return next(each for each in memory.tokens() if each.id == name)


def _end(call: Call, standing: Standing) -> tuple[str | None, list[str]]:
    """End the token that stood in an entry; return its id, and what has to be said where it was not ended."""
    stays = "the token that stood there was not ended"
    try:
        # In the store of that entry, which may be another one.
        with replace(call, db=standing.store or call.db, tenant=None, scope=None).memory("decide") as memory:
            found = _known(memory, standing.secret)
            if found is None:
                return None, []
            if found.rights.value != "agent":
                return None, [f"{stays}: it is a {found.rights.value}'s; `keepward token revoke {found.id}`"]
            memory.revoke_token(found.id)
            return found.id, []
    except KeepwardError as fault:
        return None, [f"{stays}: {fault}; `keepward token list` shows it"]


def _show(screen: Screen, data: dict[str, Any], title: str) -> None:
    word = {"absent": "has no entry of ours", "unchanged": "is connected already"}.get(data["action"])
    if word is None:
        word = f"would be {data['action']}" if data["dry_run"] else data["action"]
    screen.labelled("client", f"{title}: {word}")
    screen.labelled("file", data["path"])
    for line in data["diff"].splitlines():
        screen.labelled("", line, style="green" if line.startswith("+") else "red")
    if data["token"]:
        about = f"agent {data['token']['name']} at {data['token']['scope']}: {', '.join(_RIGHTS)}"
        screen.labelled("token", f"{data['token']['state']}, {about}")
    if data["ended"]:
        screen.labelled("ended", f"token {data['ended']}, which stood there")
    if data["backup"]:
        screen.labelled("before", f"kept as {data['backup']}")
    if data["next"]:
        screen.labelled("next", data["next"])


def _command(call: Call, profile: str, name: str, *, shared: bool, tokened: bool) -> list[str]:
    """Return the command line that the client is to run, with paths that hold from any folder.

    Where a token says who asks and where, the command line does not.
    """
    if not (0 < len(name) <= 64 and name.isprintable() and name == name.strip()):
        raise InvalidInput("--name takes 1 to 64 printable characters")
    if call.actor:
        raise InvalidInput("--as is for this command line; the client's agent is named with --name")
    options = ["--db", str(call.path.absolute())]
    own = () if tokened else (("--tenant", call.tenant), ("--scope", call.scope))
    for flag, value in (*own, ("--embedder", call.embedder)):
        options += [flag, value] if value else []
    if call.config:
        options += ["--config", str(Path(call.config).expanduser().absolute())]
    options += ["--profile", profile] if profile != "default" else []
    return [*_program(shared=shared), "mcp", *options, *(() if tokened else ("--name", name))]


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
