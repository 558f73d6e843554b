"""The command that clients' hooks run: it reads an event on stdin and prints the text to add to the prompt on stdout.

Invariants
(1) The command never fails its caller: an error is a line in `hook.log`, and the exit code is 0.
(2) The command ends within the time limit; after that it prints nothing.
(3) If the environment has a token of this store, the hook has the rights of that token. An unknown token is ignored.
(4) The default scope is the login's, in the project of the folder that the event names. The hook reads nothing of
    other projects, and other projects read nothing that it stores.

Late imports: other commands start faster.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.core.json_form import to_json
from keepward.errors import InvalidInput
from keepward.hooks import socket_client

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.shadow import ShadowLog


@command(
    argument("EVENT", "start, prompt, reply, compact or end.", "event"),
    option("--client", "The client: claude, codex, gemini, opencode or cursor.", "NAME", default="claude"),
    option("--name", "Name of the agent. [default: the client's]", "NAME"),
    option("--shadow", "Store, and add nothing; `keepward shadow` says what would have been added."),
)
def hook(call: CommandContext, event: str, client: str, name: str | None, shadow: bool) -> None:
    """Answer a client's hook. `keepward connect CLIENT --hooks` adds it to the client's settings.

    At a session start and at a prompt, it prints the text to add, in the client's format. It stores each prompt as an
    event of the session, and the beginning of the assistant's last message. At compaction and at the end it summarizes
    the session. A running `keepward mcp` of the same agent answers, if there is one. KEEPWARD_HOOKS=off switches hooks
    off, and KEEPWARD_HOOKS=shadow is --shadow.

    The user is your login. The project is the repository of the event's folder; memories of other projects are not
    shown. `--scope /` uses one scope for all projects.
    """
    if socket_client.is_off(call.environ):
        return
    try:
        with _time_limit(call, event):
            sys.stdout.write(_reply(call, event, client, name or client, shadow=shadow))
            sys.stdout.flush()
    except Exception as fault:  # noqa: BLE001  (1)
        socket_client.append_log(call.environ, f"{event} {client}: {type(fault).__name__}: {fault}")


@command(option("--clear", "Delete the record of past calls."))
def shadow(call: CommandContext, clear: bool) -> CommandResult:
    """Say what hooks with --shadow would have added: calls, tokens, and the most frequent memories.

    Such hooks store as others do, and the model reads nothing of Keepward. `keepward connect CLIENT --hooks --shadow`
    adds them; without --shadow they add to prompts from then on.
    """
    from keepward.shadow import report_of

    log = _shadow_log(call)
    if clear:
        log.clear()
    report = report_of(call.memory("decide"), log.calls())
    hint = () if report.calls else ("no hook ran in shadow yet: keepward connect CLIENT --hooks --shadow",)
    return CommandResult(to_json(report), messages=hint)


def _shadow_log(call: CommandContext) -> ShadowLog:
    from keepward.settings import config_folder
    from keepward.shadow import ShadowLog

    name = hashlib.sha256(f"{call.url}\n{call.tenant or 'default'}".encode()).hexdigest()[:32]
    return ShadowLog(config_folder(call.environ) / "run" / "shadow" / f"{name}.jsonl")


def _reply(call: CommandContext, event: str, client: str, agent: str, *, shadow: bool) -> str:
    data = sys.stdin.read(socket_client.MAX_EVENT_BYTES + 1)
    if len(data.encode()) > socket_client.MAX_EVENT_BYTES:
        raise InvalidInput(socket_client.TOO_LARGE)
    scope = call.settings.scope
    scope, user, project = socket_client.resolve_names(
        call.scope or (scope if scope != "/" else None), call.user, call.project
    )
    call = replace(call, scope=scope or "/", user=user, project=project)
    log = _shadow_log(call) if shadow or socket_client.is_shadow(call.environ) else None
    path = _socket(call, agent, (scope, user, project))
    connection = socket_client.connect(str(path), socket_client.EVENT_TIMEOUT_S) if log is None else None
    request = socket_client.encode_request(event, client, data.encode())
    answer = socket_client.request(connection, request) if connection else None
    if answer is not None:
        return answer.decode()
    # A hook has no time for the jobs that are due.
    environ = {**call.environ, "KEEPWARD_MAINTENANCE": "off", "KEEPWARD_TOKEN": ""}
    with replace(call, quiet=True, user=None, project=None, actor=f"agent:{agent}", environ=environ) as quiet:
        return _handle_event(
            call, lambda: _open_as_agent(call, quiet, agent), event, client, str(Path.cwd()), data, log
        )


def _open_as_agent(call: CommandContext, quiet_call: CommandContext, agent: str) -> Memory:
    """Open the store as an agent by name, or with a token of this store; see (3)."""
    memory, secret = quiet_call.memory(create=True), call.environ.get("KEEPWARD_TOKEN")
    if not secret:
        return memory
    from keepward.core.principals import Actor, hash_token
    from keepward.memory import request_context_of

    if request_context_of(memory).store.token_by_hash(hash_token(secret)) is None:
        return memory
    memory = memory.with_token(secret)
    return memory.as_actor(Actor.agent(agent)) if memory.actor.is_owner else memory


def _handle_event(
    call: CommandContext,
    open_memory: Callable[[], Memory],
    kind: str,
    client_name: str,
    folder: str,
    data: str,
    log: ShadowLog | None = None,
) -> str:
    """Handle an event; return the answer to its client. The store is opened after the event is parsed.

    ``call`` names the user and the project below the memory's scope (4). A token of another scope stays in its scope.
    """
    from keepward.core.principals import is_within_scope
    from keepward.hooks import events

    client = events.CLIENTS.get(client_name)
    if client is None or not events.event_name(client, kind):
        raise InvalidInput(
            f"EVENT is start, prompt, reply, compact or end; the client is one of {', '.join(events.CLIENTS)}"
        )
    event = events.parse_event(client, kind, data)
    if event is None:
        raise InvalidInput("stdin contains no event of this client")
    from keepward.hooks.event_handler import DeliveredIds, handle_event
    from keepward.settings import config_folder

    delivered = DeliveredIds(config_folder(call.environ) / "run" / "sessions")
    memory = open_memory()
    scope = replace(call, scope=memory.scope).named_scope_in(event.folder or folder) or memory.scope
    memory = memory.at(scope=scope) if is_within_scope(scope, memory.scope) else memory
    return events.format_answer(client, event, handle_event(memory, event, delivered, log))


def serve_hooks(call: CommandContext, memory: Memory) -> AbstractContextManager[object]:
    """Answer hooks of the same agent while its server runs. The scope of ``memory`` has no project."""
    from keepward.hooks import socket_server

    if socket_client.is_off(call.environ):
        return nullcontext()
    user, project = call.user or "", call.project or ""
    named = (call.scope or "", user, project) if user or project else (memory.scope, "", "")
    path = _socket(replace(call, tenant=memory.tenant), memory.actor.name, named)
    lock = threading.Lock()

    def reply(event: str, client: str, folder: str, data: str) -> str:
        with lock:
            return _handle_event(call, lambda: memory, event, client, folder, data)

    return socket_server.listen(path, reply)


def _socket(call: CommandContext, agent: str, names: tuple[str, str, str]) -> Path:
    tenant = call.tenant or "default"
    return Path(socket_client.socket_path(call.environ, store=call.url, tenant=tenant, agent=agent, names=names))


@contextmanager
def _time_limit(call: CommandContext, event: str) -> Iterator[None]:
    """End this process at the time limit (2). A write is a transaction: it is committed or not."""

    def end() -> None:
        socket_client.append_log(call.environ, f"{event}: given up after {socket_client.EVENT_TIMEOUT_S:g} seconds")
        os._exit(0)

    timer = threading.Timer(socket_client.EVENT_TIMEOUT_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
