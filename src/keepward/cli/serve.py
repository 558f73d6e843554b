"""The serve command: the HTTP API, the page and `/mcp` on one store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call, named_actor
from keepward.errors import InvalidInput, StoreUnavailable, Unauthorised

if TYPE_CHECKING:
    from keepward.app import Memory
    from keepward.cli.screen import Screen
    from keepward.http.options import ServerOptions

#: The store of `serve --demo` where none is named.
DEMO = Path("demo") / "keepward.db"
_NEEDS = "the server is not installed: `pip install 'keepward[server]'`"


def serve(
    call: Call,
    host: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Where to listen; other than loopback takes TLS. [default: 127.0.0.1]"),
    ] = None,
    port: Annotated[int | None, typer.Option(metavar="N", help="Port; 0 takes a free one. [default: 8321]")] = None,
    open_reads: Annotated[
        bool, typer.Option("--open-reads", help="Status, core, search and compile without a token; loopback alone.")
    ] = False,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy that speaks TLS stands in front; name it with --allow-host.")
    ] = False,
    tls_cert: Annotated[str | None, typer.Option(metavar="FILE", help="Certificate chain, as PEM.")] = None,
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="Its private key, as PEM.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further name by which the server is asked for.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Play the demo into the store first, where there is none yet.")
    ] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
    no_mcp: Annotated[bool, typer.Option("--no-mcp", help="Leave out /mcp.")] = False,
) -> Answer:
    """Serve the store over HTTP, with the page and /mcp, until it is stopped.

    Prints a link that opens the page, once and within ten minutes. Everybody else comes with a token.
    Jobs that are due run by themselves; `maintenance = false` in the settings leaves them to `jobs run --due`.
    """
    chosen: dict[str, Any] = {
        "host": host,
        "port": port,
        "open_reads": open_reads or None,
        "behind_proxy": behind_proxy or None,
        "tls_cert": tls_cert and Path(tls_cert).expanduser(),
        "tls_key": tls_key and Path(tls_key).expanduser(),
        "log_json": log_json or None,
        "quiet": call.quiet,
        "mcp": False if no_mcp else None,
    }
    if demo and not (call.db or call.environ.get("KEEPWARD_DB")):
        call.db = str(DEMO)
    given = {name: value for name, value in chosen.items() if value is not None}
    try:
        from keepward.http import server

        options = _options(call, given, allow_host or [])
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("keepward"):
            raise
        raise InvalidInput(_NEEDS) from fault
    if demo and not call.path.exists():
        _play(call)
    with call.memory("decide", stays=True) as memory:
        if not memory.actor.is_owner:
            raise Unauthorised("serving takes the owner: leave out --as and KEEPWARD_TOKEN, or name an operator")
        bound, options = server.bind(options)
        with bound:
            app = server.build(memory, options)
            ready = server.prepare(app)
            data = _told(call, memory, app.state.serving.console_link(), options, mcp=options.mcp and server.has_mcp())
            # The answer comes before the work, which lasts until somebody stops it.
            call.answer(Answer(data=data, show=lambda screen: _show(screen, data), talk=tuple(data["notes"])))
            ready.answer(bound)
    raise typer.Exit(0)


def _options(call: Call, chosen: dict[str, Any], hosts: list[str]) -> ServerOptions:
    from dataclasses import asdict

    from keepward.http.options import ServerOptions

    settings = asdict(call.settings.server)
    settings["allow_hosts"] = (*settings["allow_hosts"], *hosts)
    return ServerOptions(**{**settings, **chosen}).checked()


def _play(call: Call) -> None:
    """Make the store of the demo, and leave something in its queue to look at."""
    from keepward.app import Memory
    from keepward.cli.example import leave_waiting, play
    from keepward.config import home

    if call.path == DEMO:
        DEMO.parent.mkdir(mode=0o700, exist_ok=True)
    chosen = call.embedder or call.settings.embedder
    with Memory.open(
        call.path, actor=call.principal("decide"), embedder=chosen, config_dir=home(call.environ), maintenance=False
    ) as owner:
        agent = owner.acting_as(named_actor("agent:assistant"))
        for _ in play(agent, owner):
            pass
        leave_waiting(agent)
    call.say(f"played the demo into a new store at {call.path}")


def _told(call: Call, memory: Memory, link: str, options: ServerOptions, *, mcp: bool) -> dict[str, Any]:
    status = memory.status()
    notes = []
    try:
        token: str | None = str(memory.owner_token())
    except StoreUnavailable as fault:
        token = None
        notes.append(str(fault))
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


def _show(screen: Screen, data: dict[str, Any]) -> None:
    screen.labelled("store", f"{data['path']} ({data['live']} live memories, {data['waiting']} waiting for review)")
    # Links and the token's path are not wrapped: they are there to be clicked and copied.
    screen.exact(f"{'page':<12}{data['console']}\n")
    screen.labelled("", "the link opens the page once, within ten minutes", style="dim")
    if data["mcp"]:
        screen.exact(f"{'mcp':<12}{data['mcp']}\n")
    if data["token_file"]:
        screen.exact(f"{'token':<12}{data['token_file']}\n")
        screen.labelled("", "yours; `keepward token create` makes one for an agent", style="dim")
    screen.labelled("stop", "Ctrl-C")
