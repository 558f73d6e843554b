"""Commands that serve agents: the HTTP server, the Model Context Protocol on stdio, and the settings of MCP clients.

Late imports: other commands start faster.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult, login_name, named_actor, owner_token
from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable, Unauthorised
from keepward.hooks.socket_client import SHADOW_OPTION
from keepward.locations import DatabaseUrl

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.principals import Token
    from keepward.http.app_state import ServerOptions
    from keepward.mcp.connect import ClientConfig, ExistingToken
    from keepward.mcp.profiles import ToolSet
    from keepward.mcp.settings_file import Change
    from keepward.memory import Memory

#: The default store of `serve --demo`.
DEMO_PATH = Path("demo") / "keepward.db"
_SERVER_MISSING = "the server is not installed: `pip install 'keepward[server]'`"
PROFILE = option("--profile", "The set of tools: default, readonly or blocks.", "NAME", default="default")
#: Name of an agent without a name of its own.
DEFAULT_AGENT = "mcp"
#: Rights of the token that `connect` makes.
_TOKEN_RIGHTS = ("propose", "read")


@command(
    option("--host", "Address to listen on; a non-loopback address needs TLS. [default: 127.0.0.1]", "HOST"),
    option("--port", "Port; 0 chooses a free one. [default: 8321]", "N"),
    option("--workers", "Processes that answer requests, such as one for each processor. [default: 1]", "N"),
    option("--open-reads", "Allow status, core, search and compile without a token; only on loopback."),
    option("--behind-proxy", "A TLS proxy is in front of the server; name it with --allow-host."),
    option("--tls-cert", "Certificate chain, as PEM.", "FILE"),
    option("--tls-key", "Private key of the certificate, as PEM.", "FILE"),
    option("--allow-host", "Also accept this Host header, for example memory.example.org.", "NAME", multiple=True),
    option("--demo", "If the store is missing, make one that contains the demo."),
    option("--log-json", "Log JSON lines."),
    option("--no-mcp", "Do not serve /mcp."),
)
def serve(call: CommandContext, demo: bool, no_mcp: bool, allow_host: tuple[str, ...], **args: Any) -> None:
    """Serve the store over HTTP, with the console and /mcp, until you stop it. The store is created if it is missing.

    Prints a link that opens the console; it works once, within ten minutes. All other clients need a token.
    Jobs that are due run automatically, unless the settings contain `maintenance = false`; then use `jobs run --due`.
    """
    args = {name: value for name, value in args.items() if value is not False}
    args |= {name: Path(args[name]).expanduser() for name in ("tls_cert", "tls_key") if args[name]}
    args |= {"quiet": call.quiet, **({"mcp": False} if no_mcp else {})}
    if demo and not (call.db or call.environ.get("KEEPWARD_DB")):
        call.db = str(DEMO_PATH)
    options = _server_options(call, allow_host, **args)
    from keepward.http import server, workers
    from keepward.mcp import is_installed

    if demo and not call.path.exists():
        _seed_demo(call)
    memory = call.memory("decide", create=call.is_owner, is_server=True)
    if not memory.actor.is_owner:
        raise Unauthorised("only the owner starts a server: leave out --as and KEEPWARD_TOKEN, or name an operator")
    bound, options = server.bind(options)
    many = options.workers > 1
    with bound, workers.shared_file(needed=many and not isinstance(call.path, DatabaseUrl)) as file:
        app = server.build(memory, options, call.settings, shared=workers.state_in(file))
        http_server = server.prepare(app)
        link = app.state.serving.console_link()
        data = _serve_data(call, memory, link, options, mcp=options.mcp and is_installed())
        # The result is printed first, because the server runs until it is stopped.
        call.print_result(CommandResult(data, _show_served, messages=tuple(data["notes"])))
        if not many:
            http_server.answer(bound)
            return
        # Each worker opens the store itself.
        memory.close()
        workers.serve(partial(_open_in_worker, call.options()), options, call.settings, bound, file)


def _open_in_worker(given: dict[str, Any]) -> Memory:
    call = CommandContext(**given, environ=os.environ)
    return call.memory("decide", create=False, is_server=True)


@command(option("--port", "Port of the server. [default: 8321]", "N"))
def open_(call: CommandContext, port: int | None) -> CommandResult:
    """Open the console of the running server in the browser. The new link works once, within ten minutes."""
    memory = call.memory("decide")
    if not memory.actor.is_owner:
        raise Unauthorised("only the owner gets a link to the console: leave out --as and KEEPWARD_TOKEN")
    options = _server_options(call, (), port=port)
    link = _fresh_link(options, memory.owner_token().read_text(encoding="utf-8").strip())
    import webbrowser

    opened = webbrowser.open(link)
    messages = () if opened else ("no browser was found: open the link yourself",)
    return CommandResult({"console": link, "opened": opened}, messages=messages)


def _fresh_link(options: ServerOptions, token: str) -> str:
    """Return a new link to the console of a running server, requested with the owner's token."""
    import ssl
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    url = options.url
    scheme, _, host = url.partition("://")
    # The token must not pass a proxy or follow a redirect.
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
        raise StoreUnavailable(f"no server answers at {url}; start one with `keepward serve`") from fault
    finally:
        connection.close()
    if answer.status == 401:
        raise StoreUnavailable(f"the server at {url} serves another store; name its store with --db")
    try:
        link = msgspec.json.decode(body).get("url") if answer.status == 200 else None
    except (ValueError, RecursionError, AttributeError):
        link = None
    if not isinstance(link, str) or not link.startswith(f"{url}/#code="):
        raise StoreUnavailable(f"the server at {url} returned no link: it is busy, or is not a Keepward server")
    return link


def _server_options(call: CommandContext, allow_hosts: tuple[str, ...], **args: Any) -> ServerOptions:
    """Return the settings of the server; options of the command line replace them."""
    try:
        from keepward.http.app_state import ServerOptions
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("keepward"):
            raise
        raise InvalidInput(_SERVER_MISSING) from fault
    settings = msgspec.structs.asdict(call.settings.server)
    settings["allow_hosts"] = (*settings["allow_hosts"], *allow_hosts)
    overrides = {name: value for name, value in args.items() if value is not None}
    return ServerOptions(**{**settings, **overrides}).checked()


def _seed_demo(call: CommandContext) -> None:
    """Make the store of the demo, with pending proposals."""
    from keepward.cli.demo import seed_demo_store

    if call.path == DEMO_PATH:
        DEMO_PATH.parent.mkdir(mode=0o700, exist_ok=True)
    seed_demo_store(call, call.path, call.principal("decide"), call.embedder or call.settings.embedder)
    call.echo_err(f"made a new store with the demo at {call.path}")


def _serve_data(
    call: CommandContext, memory: Memory, link: str, options: ServerOptions, *, mcp: bool
) -> dict[str, Any]:
    status = memory.status()
    token, token_notes = owner_token(memory)
    notes = list(token_notes)
    if options.open_reads:
        notes.append(
            "READS ARE OPEN: every client that reaches this port reads status, core, search and contexts "
            "without a token"
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
    screen.labelled("store", f"{data['path']} ({data['live']} active memories, {data['waiting']} pending proposals)")
    rows = {
        "console": (data["console"], "the link works once, within ten minutes"),
        "mcp": (data["mcp"], ""),
        "token": (data["token_file"], "yours; `keepward token create` makes one for an agent"),
    }
    for label, (target, hint) in rows.items():
        if target:
            # Links and the token's path are not wrapped, so that they can be clicked and copied.
            screen.verbatim(f"{label:<12}{target}\n")
            screen.labelled("", hint, "dim")
    screen.labelled("stop", "Ctrl-C")


@command(
    PROFILE,
    option("--name", "Name of the agent; receipts contain it.", "NAME"),
    option("--list", "Show the tools of the profile and exit.", name="list_only"),
)
def mcp(call: CommandContext, profile: str, name: str | None, list_only: bool) -> CommandResult | None:
    """Serve memory to an agent over the Model Context Protocol, on stdin and stdout.

    Clients start this command themselves; `keepward connect` configures them. The actor is an agent, or that of
    KEEPWARD_TOKEN. The store is created if it is missing.
    """
    from keepward.mcp import require_mcp
    from keepward.mcp.profiles import tool_set

    tools = tool_set(profile)
    if list_only:
        return _list_tools(tools)
    if call.as_json:
        raise InvalidInput("--json goes with --list: without it stdout contains the protocol")
    require_mcp()
    from keepward.cli.hook import serve_hooks
    from keepward.mcp.server import as_agent, serve_stdio

    if not (call.actor or call.settings.actor or call.environ.get("KEEPWARD_TOKEN")):
        name = name or call.agent
    base = _agent_handle(replace(call, user=None, project=None), name)
    with base, serve_hooks(call, as_agent(base, name or DEFAULT_AGENT)):
        scope = replace(call, scope=base.scope).named_scope if call.user or call.project else None
        serve_stdio(base.at(scope=scope), tools, name=name or DEFAULT_AGENT)
    return None


def _agent_handle(call: CommandContext, name: str | None) -> Memory:
    """Return the handle for the served agent; create the store if it is missing."""
    missing = not call.path.exists()
    # The agent is notified of decisions on its proposals over the protocol, not on stderr.
    agent_call = replace(call, quiet=True)
    if call.environ.get("KEEPWARD_TOKEN"):
        if name:
            call.echo_err("KEEPWARD_TOKEN names the actor; --name is not used")
        return agent_call.memory(is_server=True)
    if call.actor and name:
        raise InvalidInput("--as and --name both name the actor; leave out one")
    if name or not (call.actor or call.settings.actor):
        agent_call = replace(agent_call, actor=f"agent:{name or DEFAULT_AGENT}")
    agent = agent_call.principal("propose")
    if agent.kind.value != "agent":
        if call.actor:
            raise Unauthorised("only an agent is served here; leave out --as and name the agent with --name")
        agent_call = replace(agent_call, actor=named_actor(f"agent:{name or DEFAULT_AGENT}").label)
    memory = agent_call.memory(create=True, is_server=True)
    if missing:
        call.echo_err(f"made a new store at {call.path}")
    return memory


def _list_tools(tools: ToolSet) -> CommandResult:
    from keepward.mcp.profiles import CORE, PROMPTS, TEMPLATES

    data = {
        "profile": tools.name,
        "tools": [tool.as_dict() for tool in tools.tools],
        "resources": [resource.uri for resource in (CORE, *TEMPLATES)],
        "prompts": [prompt.name for prompt in PROMPTS],
    }
    return CommandResult(data, hidden=("annotations", "inputSchema", "outputSchema"))


@command(
    argument(
        "CLIENT", "Such as claude, codex, gemini, opencode, cursor, vscode, windsurf, zed, goose or junie.", "client"
    ),
    PROFILE,
    option("--name", "Name of the agent. [default: the client's]", "NAME"),
    option("--project", "Write the settings file of this folder, not your own.", "DIR"),
    option("--expires", "Make a token that expires after this time, such as 90d. [default: never]", "TERM"),
    option("--no-token", "Write no token; the client's agent is trusted by its name."),
    option(
        "--hooks",
        "Also add hooks, which recall and remember at session starts, prompts, replies, compactions and ends.",
    ),
    option("--shadow", "As --hooks, but add nothing to prompts; `keepward shadow` says what they would add."),
    option("--shared", "Use one scope for all projects. [default: one scope per repository, for your login]"),
    option("--remove", "Remove the entry and the hooks, and revoke the token."),
    option("--dry-run, --print", "Show the change and write nothing; tokens are masked.", name="dry_run"),
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
    shadow: bool,
    shared: bool,
    remove: bool,
    dry_run: bool,
) -> CommandResult:
    """Add `keepward mcp` to a client's settings; the other settings stay.

    The entry contains the store's path and a token for this client. The token is an agent's: it reads and proposes at
    --tenant and --scope. A token of an earlier entry is revoked after it is replaced. The settings of a --project are
    shared with other people, so they get no token.

    Memory belongs to your login and to the repository you work in; other projects do not see it. --shared or --scope
    uses one scope for all projects.
    """
    from keepward.cli.repository import project_of
    from keepward.mcp import MISSING_EXTRA, is_installed
    from keepward.mcp import connect as clients
    from keepward.mcp.profiles import tool_set
    from keepward.mcp.settings_file import MASKED_TOKEN, apply_change

    chosen = clients.client_of(client)
    tool_set(profile)
    folder = Path(project).expanduser() if project is not None else None
    path = clients.file_of(chosen, folder, call.environ)
    wants_token = not (remove or no_token or folder)
    if expires is not None and not wants_token:
        raise InvalidInput("--expires is an option of a token; leave out --no-token, --project and --remove")
    existing = clients.existing_token(chosen, path)
    agent = name or chosen.name
    one_scope = remove or shared or call.named_scope is not None or call.settings.scope != "/"
    user, project_name = (None, None) if one_scope else (login_name(), project_of(folder or Path.cwd()))
    separation = {} if one_scope else {"--user": "me", "--project": "."}
    command_line = _command_line(call, profile, agent, separation, shared=folder is not None, wants_token=wants_token)
    vendor = folder is None and clients.has_program(chosen, call.environ)

    def plan_entry(secret: str) -> Change:
        if remove:
            return clients.plan_disconnect(chosen, path, vendor=vendor)
        # An empty value removes the token of an earlier entry.
        token = {clients.TOKEN_VARIABLE: secret} if secret or existing else {}
        return clients.plan_connect(chosen, path, command_line, _config_dir_environment(call) | token, vendor=vendor)

    def change_hooks(*, dry_run: bool) -> dict[str, Any] | None:
        options = [] if remove else _hook_options(call, name, separation, shadow=shadow)
        return _change_hooks(call, chosen, folder, command_line, options, remove=remove, dry_run=dry_run)

    # Hooks are removed even if the entry has to be removed by hand, because they run by themselves.
    hook_change = change_hooks(dry_run=dry_run) if remove else None
    # A file that cannot be edited is refused before a token is made.
    change = plan_entry(MASKED_TOKEN if wants_token else "")
    memory = _owner_handle(call, dry_run=dry_run) if wants_token else None
    if (hooks := hooks or shadow) and not remove:
        change_hooks(dry_run=True)
    reused = _reusable_token(memory, existing.secret, agent) if memory and existing and not expires else None
    issued = (
        memory.create_token(agent, can=_TOKEN_RIGHTS, expires=expires)
        if memory and not reused and not dry_run
        else None
    )
    try:
        if issued:
            change = plan_entry(issued.secret)
        elif existing and reused:
            change = plan_entry(existing.secret)
        backup = None if dry_run else apply_change(change)
    except KeepwardError:
        if memory and issued:
            memory.revoke_token(issued.token.id)
        raise
    if hooks and not remove:
        hook_change = change_hooks(dry_run=dry_run)
    token = {
        "id": reused.id if reused else issued.token.id if issued else None,
        "state": "kept" if reused else "made" if issued else "would be made",
        "name": agent,
        "scope": memory.scope if memory else call.named_scope or call.settings.scope,
    }
    messages = [] if remove or is_installed() else [f"the client cannot start it yet: {MISSING_EXTRA}"]
    if folder and not (remove or no_token):
        messages.append("a project's settings are shared, so they contain no token; each person sets KEEPWARD_TOKEN")
    revoked, problems = _revoke_token(call, existing) if existing and not (dry_run or reused) else (None, [])
    data = {
        "client": chosen.name,
        "path": str(path),
        "action": change.action,
        "dry_run": dry_run,
        "diff": change.diff,
        "backup": str(backup) if backup else None,
        "command": command_line,
        "user": user,
        "project": project_name,
        "token": token if wants_token else None,
        "ended": revoked,
        "hooks": hook_change,
        "next": chosen.next_step if change.action in {"added", "updated"} and not dry_run else None,
    }
    return CommandResult(data, partial(_show_connected, title=chosen.title), messages=(*messages, *problems))


def _hook_options(call: CommandContext, name: str | None, separation: dict[str, str], *, shadow: bool) -> list[str]:
    """Return the options of a hook. It acts as an agent by name, because a command line must not contain a token."""
    scope = separation or {"--scope": call.named_scope or call.settings.scope}
    options = {"--db": call.url, "--tenant": call.tenant, **scope, "--embedder": call.embedder, "--name": name}
    words = [word for flag, value in options.items() if value for word in (flag, value)]
    return [*words, SHADOW_OPTION] if shadow else words


def _change_hooks(
    call: CommandContext,
    client: ClientConfig,
    folder: Path | None,
    command_line: list[str],
    options: list[str],
    *,
    remove: bool,
    dry_run: bool,
) -> dict[str, Any] | None:
    """Write or remove the hooks of a client; return the change, or None if there are none to remove."""
    from keepward.mcp import connect as clients
    from keepward.mcp import connect_hooks
    from keepward.mcp.settings_file import apply_change

    if remove and client.name not in connect_hooks.HOOK_SETTINGS:
        return None
    path = connect_hooks.file_of(client, folder, call.environ)
    if remove:
        change = connect_hooks.plan_remove_hooks(client, path)
    else:
        variables = [f"{variable}={value}" for variable, value in _config_dir_environment(call).items()]
        program = [*(["env", *variables] if variables else []), *command_line[: command_line.index("mcp")]]
        change = connect_hooks.plan_add_hooks(client, path, program, options)
    # No copy of OpenCode's file, which only we write, nor of a file that was copied when the entry was added to it.
    copies = client.name != "opencode" and path != clients.file_of(client, folder, call.environ)
    backup = None if dry_run else apply_change(change, copies=copies)
    if remove and change.action == "absent":
        return None
    next_step = connect_hooks.HOOK_SETTINGS[client.name].next_step if change.action in {"added", "updated"} else ""
    data = {"path": str(path), "action": change.action, "diff": change.diff, "next": next_step or None}
    return {**data, "backup": str(backup) if backup else None}


def _config_dir_environment(call: CommandContext) -> dict[str, str]:
    """Return the environment variable of a non-default configuration directory, which the client needs too."""
    folder = call.environ.get("KEEPWARD_HOME")
    return {"KEEPWARD_HOME": str(Path(folder).expanduser().absolute())} if folder else {}


def _owner_handle(call: CommandContext, *, dry_run: bool) -> Memory | None:
    """Return the owner's handle, or None if a dry run finds no store. The default store is created if it is missing."""
    if dry_run and not call.path.exists():
        return None
    # A store named by a typed path must exist: a client bound to a mistyped path would be noticed much later.
    is_default = not (call.db or call.environ.get("KEEPWARD_DB"))
    memory = call.memory("decide", create=is_default and not dry_run)
    if not memory.actor.is_owner:
        raise Unauthorised("only the owner makes a token, at the terminal; --no-token connects without one")
    return memory


def _reusable_token(memory: Memory, secret: str, name: str) -> Token | None:
    """Return the token of an existing entry if a new one would be the same; else None."""
    token = _valid_token(memory, secret)
    wanted = ("agent", name, memory.tenant, memory.scope, tuple(sorted(_TOKEN_RIGHTS)))
    same = token and (token.rights.value, token.name, token.tenant, token.scope, token.can) == wanted
    return token if same else None


def _valid_token(memory: Memory, secret: str) -> Token | None:
    """Return the token with this secret, if it is valid."""
    try:
        token_id = memory.with_token(secret).actor.credential
    except Unauthorised:
        return None
    return next(token for token in memory.tokens() if token.id == token_id)


def _revoke_token(call: CommandContext, existing: ExistingToken) -> tuple[str | None, list[str]]:
    """Revoke the token of an earlier entry; return its id, or None and a message if it was not revoked."""
    failure = "the token of the earlier entry was not revoked"
    try:
        # The earlier entry may name another store.
        with replace(call, db=existing.store or call.db, tenant=None, scope=None).memory("decide") as memory:
            token = _valid_token(memory, existing.secret)
            if token is None:
                return None, []
            if token.rights.value != "agent":
                return None, [f"{failure}: it is a {token.rights.value}'s; `keepward token revoke {token.id}`"]
            memory.revoke_token(token.id)
            return token.id, []
    except KeepwardError as fault:
        return None, [f"{failure}: {fault}; `keepward token list` shows it"]


def _show_connected(screen: Screen, data: dict[str, Any], *, title: str) -> None:
    revoked = data["ended"] and f"token {data['ended']} of the earlier entry"
    screen.result({**data, "client": title, "revoked": revoked}, ("ended", "command"))


def _command_line(
    call: CommandContext, profile: str, name: str, separation: dict[str, str], *, shared: bool, wants_token: bool
) -> list[str]:
    """Return the command line for the client to run, with absolute paths.

    ``separation`` contains the options that separate projects. With a token, the command line names no tenant, scope or
    agent, because the token does.
    """
    if not (0 < len(name) <= 64 and name.isprintable() and name == name.strip()):
        raise InvalidInput("--name takes 1 to 64 printable characters")
    if call.actor:
        raise InvalidInput("--as applies to this command only; name the client's agent with --name")
    if isinstance(call.path, DatabaseUrl) and call.path.has_password:
        raise InvalidInput("a client's settings must not contain a password: use PGPASSFILE instead of --db")
    options = {
        "--db": call.url,
        "--tenant": None if wants_token else call.tenant,
        "--scope": None if wants_token else call.named_scope,
        "--embedder": call.embedder,
        "--config": str(Path(call.config).expanduser().absolute()) if call.config else None,
        **separation,
        "--profile": profile if profile != "default" else None,
        "--name": None if wants_token else name,
    }
    words = [word for flag, value in options.items() if value for word in (flag, value)]
    return [*_program(shared=shared), "mcp", *words]


def _program(*, shared: bool) -> list[str]:
    found = shutil.which("keepward")
    if shared and found:
        # Other people use a project's file; their path of the program may differ.
        return ["keepward"]
    started = Path(sys.argv[0])
    if started.name == "keepward" and started.exists():
        return [str(started.absolute())]
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "keepward"]
