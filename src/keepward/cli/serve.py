"""Commands that serve agents: the HTTP server, the Model Context Protocol on stdio, and settings of their clients."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, login_name, named_actor, owner_token
from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable, Unauthorised
from keepward.locations import DatabaseUrl

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.principals import Token
    from keepward.http.app_state import ServerOptions
    from keepward.mcp.connect import ClientConfig, ExistingToken
    from keepward.memory import Memory

#: The store of `serve --demo` where none is named.
DEMO_PATH = Path("demo") / "keepward.db"
_SERVER_MISSING = "the server is not installed: `pip install 'keepward[server]'`"
PROFILE = option("--profile", "default, readonly or blocks: which tools.", "NAME", default="default")
#: Name of an agent that does not say its own.
DEFAULT_AGENT = "mcp"
#: Options that keep projects apart: the login, in the project of the folder that is worked in.
_ISOLATION_OPTIONS = {"--user": "me", "--project": "."}
#: What the token that `connect` makes can do.
_TOKEN_RIGHTS = ("propose", "read")


@command(
    option("--host", "Where to listen; other than loopback takes TLS. [default: 127.0.0.1]", "HOST"),
    option("--port", "Port; 0 takes a free one. [default: 8321]", "N"),
    option("--open-reads", "Status, core, search and compile without a token; loopback alone."),
    option("--behind-proxy", "A proxy that speaks TLS stands in front; name it with --allow-host."),
    option("--tls-cert", "Certificate chain, as PEM.", "FILE"),
    option("--tls-key", "Its private key, as PEM.", "FILE"),
    option("--allow-host", "A further name by which the server is asked for.", "NAME", multiple=True),
    option("--demo", "Play the demo into the store first, where there is none yet."),
    option("--log-json", "Log JSON lines."),
    option("--no-mcp", "Leave out /mcp."),
)
def serve(call: CommandContext, demo: bool, no_mcp: bool, allow_host: tuple[str, ...], **given: Any) -> None:
    """Serve the store over HTTP, with the page and /mcp, until it is stopped. A missing store is made.

    Prints a link that opens the page, once and within ten minutes. Everybody else comes with a token.
    Jobs that are due run by themselves; `maintenance = false` in the settings leaves them to `jobs run --due`.
    """
    given = {name: value for name, value in given.items() if value is not False}
    given |= {name: Path(given[name]).expanduser() for name in ("tls_cert", "tls_key") if given[name]}
    given |= {"quiet": call.quiet, **({"mcp": False} if no_mcp else {})}
    if demo and not (call.db or call.environ.get("KEEPWARD_DB")):
        call.db = str(DEMO_PATH)
    options = _server_options(call, allow_host, **given)
    from keepward.http import server
    from keepward.mcp import is_installed

    if demo and not call.path.exists():
        _seed_demo(call)
    memory = call.memory("decide", create=call.is_owner, stays=True)
    if not memory.actor.is_owner:
        raise Unauthorised("serving takes the owner: leave out --as and KEEPWARD_TOKEN, or name an operator")
    bound, options = server.bind(options)
    with bound:
        app = server.build(memory, options, call.settings)
        ready = server.prepare(app)
        link = app.state.serving.console_link()
        data = _serve_data(call, memory, link, options, mcp=options.mcp and is_installed())
        # The answer comes before the work, which lasts until somebody stops it.
        call.answer(CommandResult(data, _show_served, talk=tuple(data["notes"])))
        ready.answer(bound)


@command(option("--port", "Port of the server. [default: 8321]", "N"))
def open_(call: CommandContext, port: int | None) -> CommandResult:
    """Open the console of the running server in the browser, by a fresh link, which works once, within ten minutes."""
    memory = call.memory("decide")
    if not memory.actor.is_owner:
        raise Unauthorised("the console's link takes the owner: leave out --as and KEEPWARD_TOKEN")
    options = _server_options(call, (), port=port)
    link = _fresh_link(options, memory.owner_token().read_text(encoding="utf-8").strip())
    import webbrowser

    opened = webbrowser.open(link)
    talk = () if opened else ("no browser was found: open the link yourself",)
    return CommandResult(
        {"console": link, "opened": opened}, lambda screen, data: screen.verbatim(f"{data['console']}\n"), talk=talk
    )


def _fresh_link(options: ServerOptions, token: str) -> str:
    """Return a new link to the console of a running server, asked for with the owner's token."""
    import ssl
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    url = options.url
    scheme, _, host = url.partition("://")
    # Straight to the server: the token goes through no proxy and follows no redirect.
    connection = HTTPConnection(host, timeout=10)
    if scheme == "https":
        trusted = ssl.create_default_context()
        if options.tls_cert is not None:
            trusted.load_verify_locations(options.tls_cert)
        connection = HTTPSConnection(host, timeout=10, context=trusted)
    try:
        connection.request("POST", "/session/link", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, HTTPException) as fault:
        raise StoreUnavailable(f"no server answers at {url}; start it with `keepward serve`") from fault
    finally:
        connection.close()
    if answer.status == 401:
        raise StoreUnavailable(f"the server at {url} serves another store; name its store with --db")
    link = msgspec.json.decode(body).get("url") if answer.status == 200 else None
    if not isinstance(link, str) or not link.startswith(f"{url}/#code="):
        raise StoreUnavailable(f"the server at {url} gives no link: it is not a Keepward server, or is busy")
    return link


def _server_options(call: CommandContext, allow_hosts: tuple[str, ...], **given: Any) -> ServerOptions:
    """Return the settings of the server with what was given on the command line in their place."""
    try:
        from keepward.http.app_state import ServerOptions
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("keepward"):
            raise
        raise InvalidInput(_SERVER_MISSING) from fault
    settings = msgspec.structs.asdict(call.settings.server)
    settings["allow_hosts"] = (*settings["allow_hosts"], *allow_hosts)
    chosen = {name: value for name, value in given.items() if value is not None}
    return ServerOptions(**{**settings, **chosen}).checked()


def _seed_demo(call: CommandContext) -> None:
    """Make the store of the demo, with proposals that wait for review."""
    from keepward.cli.demo import seed_demo_store

    if call.path == DEMO_PATH:
        DEMO_PATH.parent.mkdir(mode=0o700, exist_ok=True)
    seed_demo_store(call, call.path, call.principal("decide"), call.embedder or call.settings.embedder)
    call.say(f"played the demo into a new store at {call.path}")


def _serve_data(
    call: CommandContext, memory: Memory, link: str, options: ServerOptions, *, mcp: bool
) -> dict[str, Any]:
    status = memory.status()
    token, said = owner_token(memory)
    notes = list(said)
    if options.open_reads:
        notes.append(
            "READS ARE OPEN: whoever reaches this port reads status, core, search and contexts, without a token"
        )
    if options.mcp and not mcp:
        notes.append("/mcp is not served: `pip install 'keepward[mcp]'`")
    if not status["enabled"]:
        notes.append("memory is switched off by policy: writes are refused and contexts are empty")
    return {
        "path": str(call.path),
        "url": options.url,
        "console": link,
        "mcp": f"{options.url}/mcp" if mcp else None,
        "token_file": token,
        "live": status["live"],
        "waiting": status["quarantine"]["depth"],
        "open_reads": options.open_reads,
        "notes": notes,
    }


def _show_served(screen: Screen, data: dict[str, Any]) -> None:
    screen.labelled("store", f"{data['path']} ({data['live']} live memories, {data['waiting']} waiting for review)")
    hints = {
        "page": (data["console"], "the link opens the page once, within ten minutes"),
        "mcp": (data["mcp"], ""),
        "token": (data["token_file"], "yours; `keepward token create` makes one for an agent"),
    }
    for label, (place, hint) in hints.items():
        if place:
            # Links and the token's path are not wrapped: they are there to be clicked and copied.
            screen.verbatim(f"{label:<12}{place}\n")
            screen.labelled("", hint, "dim")
    screen.labelled("stop", "Ctrl-C")


@command(
    PROFILE,
    option("--name", "Name of the agent, as it stands in receipts.", "NAME"),
    option("--list", "Show the tools of the profile and stop.", name="list_only"),
)
def mcp(call: CommandContext, profile: str, name: str | None, list_only: bool) -> CommandResult | None:
    """Serve memory to an agent over the Model Context Protocol, on stdin and stdout.

    Clients start this themselves: `keepward connect` tells them to. Who asks is an agent, or the bearer of
    KEEPWARD_TOKEN. A missing store is made.
    """
    from keepward.mcp import require_mcp
    from keepward.mcp.profiles import tool_set as profile_of

    chosen = profile_of(profile)
    if list_only:
        return _list_tools(chosen)
    if call.as_json:
        raise InvalidInput("stdout carries the protocol: --json goes with --list")
    require_mcp()
    from keepward.mcp.server import serve_stdio

    base = _handle(replace(call, user=None, project=None), name)
    from keepward.cli.hook import serve_hooks
    from keepward.mcp.server import as_agent

    with base, serve_hooks(call, as_agent(base, name or DEFAULT_AGENT)):
        where = replace(call, scope=base.scope).where if call.user or call.project else None
        serve_stdio(base.at(scope=where), chosen, name=name or DEFAULT_AGENT)
    return None


def _handle(call: CommandContext, name: str | None) -> Memory:
    """Return the agent's handle."""
    missing = not call.path.exists()
    # Decisions on earlier proposals are for the agent, who is told over the protocol.
    silent = replace(call, quiet=True)
    if call.environ.get("KEEPWARD_TOKEN"):
        if name:
            call.say("KEEPWARD_TOKEN says who asks; --name is not used")
        return silent.memory(stays=True)
    if call.actor and name:
        raise InvalidInput("--as and --name both say who asks; leave out one")
    if name or not (call.actor or call.settings.actor):
        silent = replace(silent, actor=f"agent:{name or DEFAULT_AGENT}")
    agent = silent.principal("propose")
    if agent.kind.value != "agent":
        if call.actor:
            raise Unauthorised("this serves an agent; leave out --as and say who it is with --name")
        silent = replace(silent, actor=named_actor(f"agent:{name or DEFAULT_AGENT}").label)
    memory = silent.memory(create=True, stays=True)
    if missing:
        call.say(f"made a new store at {call.path}")
    return memory


def _list_tools(chosen: Any) -> CommandResult:
    from keepward.mcp.profiles import CORE, PROMPTS, TEMPLATES

    data = {
        "profile": chosen.name,
        "tools": [tool.as_dict() for tool in chosen.tools],
        "resources": [each.uri for each in (CORE, *TEMPLATES)],
        "prompts": [each.name for each in PROMPTS],
    }

    return CommandResult(data, hidden=("annotations", "inputSchema", "outputSchema"))


@command(
    argument("CLIENT", "Such as claude, codex, gemini, opencode, cursor, vscode, windsurf, zed or cline.", "client"),
    PROFILE,
    option("--name", "Name of the agent. [default: the client's]", "NAME"),
    option("--project", "Write into this folder, not for the whole user.", "DIR"),
    option("--expires", "Make a token that ends then, such as 90d; else it never does.", "TERM"),
    option("--no-token", "Write no token: the client is an agent that says its own name."),
    option("--hooks", "Also remember without being asked: at session starts, prompts, compactions and ends."),
    option("--shared", "One scope for all projects; else each repository has its own, for your login."),
    option("--remove", "Take the entry out again, hooks too, and end its token."),
    option("--dry-run, --print", "Show the change and write nothing; a token is masked.", name="dry_run"),
)
def connect(
    call: CommandContext,
    client: str,
    profile: str,
    name: str | None,
    project: str | None,
    expires: str | None,
    no_token: bool,
    hooks: bool,
    shared: bool,
    remove: bool,
    dry_run: bool,
) -> CommandResult:
    """Write into a client's settings that it starts `keepward mcp`; the rest of the file stays as it is.

    The store's path goes into the entry, and a token made for this client: an agent's, which reads and proposes, at
    --tenant and --scope. A token that stood there is ended once another has taken its place. A --project is shared
    with others, and gets none.

    The memory is that of the login, in the project of the repository that is worked in: what one project is told is
    not shown in another. --shared or a --scope is one scope for all.
    """
    from keepward.mcp import connect as clients
    from keepward.mcp.profiles import tool_set as profile_of

    chosen = clients.client_of(client)
    profile_of(profile)
    folder = Path(project).expanduser() if project is not None else None
    path = clients.file_of(chosen, folder, call.environ)
    tokened = not (remove or no_token or folder)
    if expires is not None and not tokened:
        raise InvalidInput("--expires is of a token; leave out --no-token, --project and --remove")
    standing = clients.existing_token(chosen, path)
    bearer = name or chosen.name
    one_scope = remove or shared or call.where is not None or call.settings.scope != "/"
    here = None if one_scope else _login_and_project(folder)
    line = _command_line(call, profile, bearer, shared=folder is not None, tokened=tokened, apart=here is not None)
    (vendor, *_) = clients.vendor_command(chosen, line, {}, remove=remove) or [""]
    program = clients.vendor_program(vendor, call.environ) if vendor and folder is None else None

    def change_with(secret: str) -> Any:
        if remove:
            return clients.plan_disconnect(chosen, path, program)
        # An empty one is none, and takes the place of one that is no longer wanted.
        given = {clients.TOKEN_VARIABLE: secret} if secret or standing else {}
        return clients.plan_connect(chosen, path, line, _config_dir_environment(call) | given, program)

    def hooked(memory: Memory | None, *, dry_run: bool) -> dict[str, Any] | None:
        more = {"remove": remove, "dry_run": dry_run, "apart": here is not None}
        return _change_hooks(call, chosen, folder, line, memory, bearer, **more)

    # Hooks run by themselves: they go, also where our entry has to be taken out by hand.
    calls = hooked(None, dry_run=dry_run) if remove else None
    # A file that cannot be edited is refused before a token is made for it.
    change = change_with(clients.MASKED_TOKEN if tokened else "")
    memory = _owner(call, dry_run=dry_run) if tokened else None
    if hooks and not remove:
        hooked(memory, dry_run=True)
    held = _reusable_token(memory, standing.secret, bearer) if memory and standing and not expires else None
    issued = (
        memory.create_token(bearer, can=_TOKEN_RIGHTS, expires=expires) if memory and not held and not dry_run else None
    )
    if issued:
        change = change_with(issued.secret)
    elif standing and held:
        change = change_with(standing.secret)
    try:
        backup = None if dry_run else clients.apply_change(change)
    except KeepwardError:
        if memory and issued:
            memory.revoke_token(issued.token.id)
        raise
    if hooks and not remove:
        calls = hooked(memory, dry_run=dry_run)
    known = held or (issued.token if issued else None)
    token = {
        "id": known.id if known else None,
        "state": "kept" if held else "made" if issued else "would be made",
        "name": bearer,
        "scope": memory.scope if memory else call.where or call.settings.scope,
    }
    talk = [] if remove else _connect_notes(call, tokened=tokened, shared=folder is not None and not no_token)
    ended = None
    if standing and not dry_run and not held:
        ended, complaint = _revoke_token(call, standing)
        talk += complaint
    data = {
        "client": chosen.name,
        "path": str(path),
        "action": change.action,
        "dry_run": dry_run,
        "diff": change.diff,
        "backup": str(backup) if backup else None,
        "command": line,
        **(here or {"user": None, "project": None}),
        "token": token if tokened else None,
        "ended": ended,
        "hooks": calls,
        "next": chosen.then if change.action in {"added", "updated"} and not dry_run else None,
    }
    return CommandResult(data, lambda screen, data: _show_connected(screen, data, chosen.title), talk=tuple(talk))


def _connect_notes(call: CommandContext, *, tokened: bool, shared: bool) -> list[str]:
    """Return what to know of an entry that was written."""
    from keepward.mcp import MISSING_EXTRA, is_installed

    talk = [] if is_installed() else [f"the client cannot start it yet: {MISSING_EXTRA}"]
    if shared:
        talk.append("a project's settings are shared, so no token is in them; each person sets KEEPWARD_TOKEN")
    return talk


def _change_hooks(
    call: CommandContext,
    client: ClientConfig,
    folder: Path | None,
    line: list[str],
    memory: Memory | None,
    name: str,
    *,
    remove: bool,
    dry_run: bool,
    apart: bool,
) -> dict[str, Any] | None:
    """Write or take out the hooks of a client; return what was done, None where there are none to take out.

    A hook is the user's own agent by name: no token stands in a command line.
    """
    from keepward.mcp import connect as clients
    from keepward.mcp import connect_hooks

    if remove and client.name not in connect_hooks.HOOK_SETTINGS:
        return None
    path = connect_hooks.file_of(client, folder, call.environ, folder or clients.home_of(call.environ))
    if remove:
        change = connect_hooks.plan_remove_hooks(client, path)
    else:
        scope = memory.scope if memory else call.where or call.settings.scope
        named = {"--db": call.url, "--tenant": call.tenant, **(_ISOLATION_OPTIONS if apart else {"--scope": scope})}
        named |= {"--embedder": call.embedder, "--name": name if name != client.name else None}
        words = [word for flag, value in named.items() if value for word in (flag, str(value))]
        moved = [f"{variable}={place}" for variable, place in _config_dir_environment(call).items()]
        program = [*(["env", *moved] if moved else []), *line[: line.index("mcp")]]
        change = connect_hooks.plan_add_hooks(client, path, program, words)
    # Where both are in one file, the copy of what was there first stays.
    copies = path != clients.file_of(client, folder, call.environ)
    backup = None if dry_run else clients.apply_change(change, copies=copies)
    if remove and change.action == "absent":
        return None
    then = connect_hooks.HOOK_SETTINGS[client.name].then if change.action in {"added", "updated"} else ""
    shown = {"path": str(path), "action": change.action, "diff": change.diff, "next": then or None}
    return {**shown, "backup": str(backup) if backup else None}


def _config_dir_environment(call: CommandContext) -> dict[str, str]:
    """Return where keys and anchors are kept, if not at home: it has to hold for the client too."""
    home = call.environ.get("KEEPWARD_HOME")
    return {"KEEPWARD_HOME": str(Path(home).expanduser().absolute())} if home else {}


def _owner(call: CommandContext, *, dry_run: bool) -> Memory | None:
    """Return the owner's handle on the store, made where it is the user's own; None where a dry run finds no store."""
    if dry_run and not call.path.exists():
        return None
    # A path that was typed has to be there: what is bound to a typing error is found out much later.
    own = not (call.db or call.environ.get("KEEPWARD_DB"))
    memory = call.memory("decide", create=own and not dry_run)
    if not memory.actor.is_owner:
        raise Unauthorised("a token is made by the owner at the terminal; --no-token connects without one")
    return memory


def _reusable_token(memory: Memory, secret: str, name: str) -> Token | None:
    """Return what the store knows of a token that stands in an entry, where it is what would be made now."""
    found = _valid_token(memory, secret)
    wanted = ("agent", name, memory.tenant, memory.scope, tuple(sorted(_TOKEN_RIGHTS)))
    same = found and (found.rights.value, found.name, found.tenant, found.scope, found.can) == wanted
    return found if same else None


def _valid_token(memory: Memory, secret: str) -> Token | None:
    """Return the token that a secret is, where it still opens the store."""
    try:
        name = memory.with_token(secret).actor.credential
    except Unauthorised:
        return None
    return next(each for each in memory.tokens() if each.id == name)


def _revoke_token(call: CommandContext, existing: ExistingToken) -> tuple[str | None, list[str]]:
    """End the token that stood in an entry; return its id, and what has to be said where it was not ended."""
    stays = "the token that stood there was not ended"
    try:
        # In the store of that entry, which may be another one.
        with replace(call, db=existing.store or call.db, tenant=None, scope=None).memory("decide") as memory:
            found = _valid_token(memory, existing.secret)
            if found is None:
                return None, []
            if found.rights.value != "agent":
                return None, [f"{stays}: it is a {found.rights.value}'s; `keepward token revoke {found.id}`"]
            memory.revoke_token(found.id)
            return found.id, []
    except KeepwardError as fault:
        return None, [f"{stays}: {fault}; `keepward token list` shows it"]


def _show_connected(screen: Screen, data: dict[str, Any], title: str) -> None:
    word = {"absent": "has no entry of ours", "unchanged": "is connected already"}.get(data["action"])
    would = f"{'would be ' if data['dry_run'] else ''}{data['action']}"
    screen.labelled("client", f"{title}: {word or would}")
    screen.labelled("file", data["path"])
    for line in data["diff"].splitlines():
        screen.labelled("", line, "green" if line.startswith("+") else "red")
    if data["token"]:
        screen.labelled(
            "token", "{state}, agent {name} at {scope}: ".format(**data["token"]) + ", ".join(_TOKEN_RIGHTS)
        )
    if data["user"]:
        screen.labelled("user", f"{data['user']}, your login")
        screen.labelled("project", f"the repository of the folder you work in; here {data['project'] or 'none'}")
    screen.labelled("ended", data["ended"] and f"token {data['ended']}, which stood there")
    screen.labelled("before", data["backup"] and f"kept as {data['backup']}")
    if data["hooks"]:
        would = "would be " if data["dry_run"] and data["hooks"]["action"] != "unchanged" else ""
        screen.labelled("hooks", f"{would}{data['hooks']['action']} in {data['hooks']['path']}")
        screen.labelled("", data["hooks"]["next"])
    screen.labelled("next", data["next"])


def _login_and_project(folder: Path | None) -> dict[str, str | None]:
    """Return the login as a user, and the name of the project of a folder, by default of this one."""
    from keepward.cli.repository import project_of

    return {"user": login_name(), "project": project_of(folder or Path.cwd())}


def _command_line(
    call: CommandContext, profile: str, name: str, *, shared: bool, tokened: bool, apart: bool
) -> list[str]:
    """Return the command line that the client is to run, with paths that hold from any folder.

    Where a token says who asks and where, the command line does not.
    """
    if not (0 < len(name) <= 64 and name.isprintable() and name == name.strip()):
        raise InvalidInput("--name takes 1 to 64 printable characters")
    if call.actor:
        raise InvalidInput("--as is for this command line; the client's agent is named with --name")
    if isinstance(call.path, DatabaseUrl) and call.path.has_password:
        raise InvalidInput("a client's settings are no place for a password: leave it out of --db, to PGPASSFILE")
    given = {
        "--db": call.url,
        "--tenant": None if tokened else call.tenant,
        "--scope": None if tokened else call.where,
        "--embedder": call.embedder,
        "--config": str(Path(call.config).expanduser().absolute()) if call.config else None,
        **(_ISOLATION_OPTIONS if apart else {}),
        "--profile": profile if profile != "default" else None,
        "--name": None if tokened else name,
    }
    options = [word for flag, value in given.items() if value for word in (flag, value)]
    return [*_program(shared=shared), "mcp", *options]


def _program(*, shared: bool) -> list[str]:
    found = shutil.which("keepward")
    if shared and found:
        # A project's file is for others too, whose programs lie elsewhere.
        return ["keepward"]
    started = Path(sys.argv[0])
    if started.name == "keepward" and started.exists():
        return [str(started.absolute())]
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "keepward"]
