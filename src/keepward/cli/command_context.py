"""One invocation of the command line: its options, the store it opens, where its output goes.

With `--json`, stdout contains exactly one JSON object; messages go to stderr. A command that only reads never creates
a store.

The actor comes from `--as`, `KEEPWARD_ACTOR`, the settings file or `--agent`, in this order. If the environment or the
file names an actor, `--as` can only name the same actor or one with fewer rights. For example, an agent that is started
with `KEEPWARD_ACTOR=agent:claude` cannot call itself the operator. If `KEEPWARD_TOKEN` contains a token, actor, tenant
and scope are those of the token, and no option changes them.

Late imports: other commands start faster, not every system has it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable, Unauthorised
from keepward.locations import Location, address_of, parse_location

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.principals import Actor
    from keepward.memory import Memory
    from keepward.settings import Settings

T = TypeVar("T")
#: The default actor of a command: agents propose and read, the person at the terminal decides.
DefaultRole = Literal["propose", "decide"]
_ROLE_ORDER = {"agent": 0, "user": 1, "reviewer": 2, "operator": 3}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The output of a command."""

    #: The object that `--json` prints.
    data: dict[str, Any]
    #: Draws the data for a person. None: the default drawing.
    show: Callable[[Screen, dict[str, Any]], None] | None = None
    #: Exit code.
    code: int = 0
    #: Sentences for stderr, also with `--json`.
    messages: tuple[str, ...] = ()
    #: Fields that only `--json` prints.
    hidden: tuple[str, ...] = ()


@dataclass(kw_only=True)
class CommandContext:
    """The options that every command takes."""

    db: str | None = None
    tenant: str | None = None
    scope: str | None = None
    user: str | None = None
    agent: str | None = None
    project: str | None = None
    branch: str | None = None
    actor: str | None = None
    embedder: str | None = None
    config: str | None = None
    as_json: bool = False
    quiet: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    #: Whether this command wrote and jobs are due.
    jobs_are_due: bool = field(default=False, init=False)
    #: Closed when the command has its result.
    _open: ExitStack = field(default_factory=ExitStack, init=False)

    def options(self) -> dict[str, Any]:
        """Return what this was made of, except the environment, for another process."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init and each.name != "environ"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self._open.close()

    @cached_property
    def path(self) -> Location:
        """Location of the store: `--db`, `KEEPWARD_DB`, or the user's own.

        An unknown store in this folder is not used, and a message says so.
        """
        if named := self.db or self.environ.get("KEEPWARD_DB"):
            return parse_location(named)
        from keepward.settings import default_store

        path, left_alone = default_store(self.environ)
        if left_alone:
            self.echo_err(left_alone)
        return path

    @property
    def url(self) -> str:
        """Address that opens the store from any folder."""
        return address_of(self.path.absolute())

    @cached_property
    def settings(self) -> Settings:
        """The settings file and the environment, read once."""
        from keepward.settings import load, unknown_variables

        named = Path(self.config).expanduser() if self.config else None
        settings = load(store=self.path, file=named, environ=self.environ)
        for name in unknown_variables(self.environ):
            self.echo_err(
                f"{name} does nothing: there is no such variable; `keepward config` shows the settings in force"
            )
        if settings.withheld:
            self.echo_err(
                f"{settings.file} is not accepted, so none of its settings applies ({', '.join(settings.withheld)}): "
                "read it with `keepward config` and accept it"
            )
        return settings

    def forget_settings(self) -> None:
        self.__dict__.pop("settings", None)

    def principal(self, default_role: DefaultRole) -> Actor:
        """Return the actor of this command."""
        configured = self.settings.actor and named_actor(self.settings.actor)
        if not self.actor:
            usual = "agent:cli" if default_role == "propose" else "operator"
            return configured or named_actor(f"agent:{self.agent}" if self.agent else usual)
        requested = named_actor(self.actor)
        if configured and requested != configured and _role_order(requested) >= _role_order(configured):
            raise Unauthorised(
                f"this shell acts as {configured.label}; --as can only name an actor with fewer rights. "
                "The person who set KEEPWARD_ACTOR or the settings file can change it"
            )
        return requested

    @property
    def refusal_hint(self) -> str:
        """What to do if this command is refused because `--agent` names who acts; empty if it does not."""
        if not self.agent or self.actor or self.environ.get("KEEPWARD_TOKEN") or self.settings.actor:
            return ""
        return f"--agent {self.agent} acts as that agent; add --as operator to act as yourself in its scope"

    @property
    def is_owner(self) -> bool:
        """Whether the owner calls, without a token."""
        return self.principal("decide").is_owner and not self.environ.get("KEEPWARD_TOKEN")

    @property
    def named_scope(self) -> str | None:
        """The scope that the options name: that of a project, a user or an agent below `--scope`."""
        return self.named_scope_in(str(Path.cwd())) if self.project == "." else self.named_scope_in("")

    def named_scope_in(self, folder: str) -> str | None:
        """Return the scope that the options name; `--project .` is the project of this folder."""
        project, user = self.project, login_name() if self.user == "me" else self.user
        if project == ".":
            from keepward.cli.repository import project_of

            project = project_of(folder)
            if not (project or user):
                raise InvalidInput("the home folder is no project: name one with --project NAME, or a user with --user")
        named = {"project": project, "user": user, "agent": self.agent}
        chosen = [(kind, name) for kind, name in named.items() if name]
        if not chosen:
            return self.scope
        from keepward.services.arguments import check_name, scope_for

        scope = self.scope or self.settings.scope
        for kind, name in chosen:
            scope = scope_for(scope, **{kind: check_name(kind, name)})
        return scope

    def require_store(self) -> None:
        """Raise ``StoreUnavailable`` if there is no store."""
        if not self.path.exists():
            raise StoreUnavailable(
                f"there is no store at {self.path}; make one with `keepward init`, or name it with --db PATH"
            )

    def memory(self, default_role: DefaultRole = "propose", *, create: bool = False, is_server: bool = False) -> Memory:
        """Open the store until the command ends. ``create`` makes a missing store and says so on stderr.

        A server (``is_server``) also runs the jobs that are due.
        """
        token = self.environ.get("KEEPWARD_TOKEN")
        if not create or token:
            self.require_store()
        missing = not self.path.exists() or (
            isinstance(self.path, Path) and self.path.is_file() and not self.path.stat().st_size
        )
        settings = self.settings
        if token and (self.actor or self.tenant or self.scope):
            raise Unauthorised("KEEPWARD_TOKEN names actor, tenant and scope; leave out --as, --tenant and --scope")
        actor = None if token else self.principal(default_role)
        from keepward.core.principals import ActorKind
        from keepward.memory import Memory, inspection_handle
        from keepward.settings import config_folder, make_data_folder

        new_folders = make_data_folder(self.path, self.environ) if missing and isinstance(self.path, Path) else ()
        try:
            opened = Memory.open(
                address_of(self.path),
                tenant=None if token else self.tenant or settings.tenant,
                scope=None if token else self.named_scope or settings.scope,
                actor=actor,
                token=token or None,
                embedder=self.embedder or settings.embedder,
                create=create,
                config_dir=config_folder(self.environ),
                maintenance=settings.maintenance and (is_server or self._note_jobs),
                **settings.opening,
            )
        except KeepwardError:
            # No store was made, so the new folders are empty.
            with suppress(OSError):
                for folder in new_folders:
                    folder.rmdir()
            raise
        memory = self._open.enter_context(opened)
        if token and (self.user or self.agent or self.project):
            memory = memory.at(scope=replace(self, scope=memory.scope).named_scope)
        if self.branch:
            memory = memory.branch(self.branch)
        if memory.actor.kind is ActorKind.OPERATOR:
            memory = inspection_handle(memory)
        if missing and str(self.path) == ":memory:":
            self.echo_err("a store in :memory: ends with this command: none of it is stored")
        elif missing:
            self.echo_err(f"made a new store at {self.path}")
        self._report_decisions(memory)
        return memory

    @contextmanager
    def dry_run_memory(self, default_role: DefaultRole = "propose") -> Iterator[Memory]:
        """Open an empty store in memory with the settings of this command; nothing is written to disk."""
        if self.environ.get("KEEPWARD_TOKEN"):
            # A token belongs to an existing store.
            self.require_store()
        with replace(self, db=":memory:", embedder="none", quiet=True) as dry_run:
            dry_run.__dict__["settings"] = self.settings
            yield dry_run.memory(default_role, create=True)

    def rehearse_then_run(self, action: Callable[[Memory], T], default_role: DefaultRole = "propose") -> T:
        """Run an action in the store. If the store is missing, run it in memory first.

        An action that fails in memory leaves no store on disk.
        """
        if not self.path.exists():
            with self.dry_run_memory(default_role) as memory:
                action(memory)
        return action(self.memory(default_role, create=True))

    def _note_jobs(self) -> None:
        self.jobs_are_due = True

    def _report_decisions(self, memory: Memory) -> None:
        """Report once which proposals of the calling agent were rejected, expired or are stale."""
        if self.quiet or memory.actor.may_decide:
            return
        from keepward.core.proposal import NEGATIVE_DECISIONS

        try:
            decided = memory.notices()
        except KeepwardError:
            # The command itself reports a store that cannot be read or written; a later command gives the notice.
            return
        for proposal in decided:
            by = f" by {proposal.decided_by}" if proposal.decided_by and proposal.state == "rejected" else ""
            why = f": {proposal.decision}" if proposal.decision else ""
            state = NEGATIVE_DECISIONS[proposal.state]
            self.echo_err(f"your proposal {proposal.id} ({proposal.reason}) was {state}{by}{why}")

    def echo_err(self, sentence: str) -> None:
        """Print a sentence on stderr, unless `--quiet`."""
        if not self.quiet:
            from keepward.cli.render import escape_invisible

            print(escape_invisible(sentence), file=sys.stderr)  # noqa: T201 - messages go to stderr

    def progress(self, label: str) -> AbstractContextManager[Callable[[int, int], None] | None]:
        """Return a context manager of a callback that draws a bar on stderr; None if stderr is not a terminal."""
        from keepward.cli import render

        return render.progress(label, quiet=self.quiet)

    def print_result(self, result: CommandResult) -> int:
        """Print a result; return its exit code."""
        if self.as_json:
            print_json(result.data)
        else:
            from keepward.cli.render import Screen

            screen = Screen(sys.stdout)
            if result.show is None:
                screen.result(result.data, result.hidden)
            else:
                result.show(screen, result.data)
        sys.stdout.flush()
        for sentence in result.messages:
            self.echo_err(sentence)
        if self.jobs_are_due:
            from keepward.cli.spawn import spawn_maintenance  # Most commands start no process.

            spawn_maintenance(self.url, embedder=self.embedder, config=self.config, environ=self.environ)
        return result.code


def owner_token(memory: Memory) -> tuple[str | None, tuple[str, ...]]:
    """Return the path of the owner's token, or None and the reason why it cannot be stored."""
    try:
        return str(memory.owner_token()), ()
    except StoreUnavailable as fault:
        return None, (str(fault),)


def login_name() -> str:
    """Return the login as the name of a user."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", _login()).lstrip(".-") or "me"


def named_actor(name: str) -> Actor:
    """Return the actor `agent`, `user`, `operator` or `reviewer`, with an optional `:name`.

    An operator or reviewer has the login name: another name does not prove another person.

    Raises:
        InvalidInput: another kind, or a name that is not 1 to 64 printable characters.
        Unauthorised: an operator or reviewer of another name than the login's.
    """
    from keepward.core.principals import Actor

    kind, colon, own = name.partition(":")
    if kind not in _ROLE_ORDER or (colon and not (0 < len(own) <= 64 and own.isprintable() and own == own.strip())):
        raise InvalidInput(
            "--as and KEEPWARD_ACTOR take agent, user, operator or reviewer, with an optional name: agent:claude"
        )
    if kind in {"operator", "reviewer"}:
        make = Actor.operator if kind == "operator" else Actor.reviewer
        login = _login()
        if own and own != login:
            raise Unauthorised(
                f"at this terminal the {kind} is the login, {login}; another person comes with a token: "
                "`keepward token create --rights reviewer --name NAME`"
            )
        return make(login)
    return Actor.agent(own or "cli") if kind == "agent" else Actor.user(own or "user")


def read_text(text: str) -> str:
    """Return the text; for `-` all of stdin, without its last line break and with lines that end in LF."""
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8").replace("\r\n", "\n").removesuffix("\n")
    except UnicodeDecodeError as fault:
        raise InvalidInput("stdin is not UTF-8 text") from fault


def print_json(data: dict[str, Any]) -> None:
    """Print one JSON object on stdout: indented at a terminal, on one line in a pipe."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(data, ensure_ascii=not utf8, indent=2 if sys.stdout.isatty() else None, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # A lone surrogate cannot be encoded, but its escape can.
        text = json.dumps(data)
    print(text)  # noqa: T201 - this is the result


def _role_order(actor: Actor) -> int:
    if actor.kind.value == "operator":
        return _ROLE_ORDER["operator" if actor.is_owner else "reviewer"]
    return _ROLE_ORDER.get(actor.kind.value, 0)


def _login() -> str:
    """Return the login name that the system reports; environment variables such as USER can be forged."""
    name = ""
    try:
        import pwd

        name = pwd.getpwuid(os.getuid()).pw_name
    except ImportError:
        # Windows.
        with suppress(OSError):
            name = os.getlogin()
    except (KeyError, OSError):
        # There is no login name, for example in a container that runs under a bare user id.
        return "operator"
    return name if 0 < len(name) <= 64 and name.isprintable() else "operator"
