"""One invocation of the command line: its options, the store it opens, where its output goes.

Invariants
(1) With `--json` stdout carries exactly one JSON object and nothing else; talk goes to stderr.
(2) The principal comes from `--as`, `KEEPWARD_ACTOR` or the settings file. Where the environment or the
    file names one, `--as` can only name the same or one with fewer rights: an agent that is started with
    `KEEPWARD_ACTOR=agent:claude` cannot call itself the operator. Where `KEEPWARD_TOKEN` holds
    a token, principal, tenant and scope are the token's and no option changes them.
(3) A command that only reads never creates a store.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
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
#: Who a command is by default: agents propose and read, the person at the terminal decides.
DefaultRole = Literal["propose", "decide"]
_ROLE_ORDER = {"agent": 0, "user": 1, "reviewer": 2, "operator": 3}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command has to say."""

    #: The object that `--json` prints.
    data: dict[str, Any]
    #: Draws it for a person; None draws it as any result.
    show: Callable[[Screen, dict[str, Any]], None] | None = None
    #: Exit code.
    code: int = 0
    #: Sentences for stderr, also with `--json`.
    talk: tuple[str, ...] = ()
    #: Fields that a person is not shown; `--json` prints them.
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
    actor: str | None = None
    embedder: str | None = None
    config: str | None = None
    as_json: bool = False
    quiet: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    #: Whether this command wrote and jobs are due.
    jobs_are_due: bool = field(default=False, init=False)
    #: What is closed when the command has its answer.
    _open: ExitStack = field(default_factory=ExitStack, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self._open.close()

    @cached_property
    def path(self) -> Location:
        """Where the store is: `--db`, `KEEPWARD_DB`, or the user's own; an unknown store in this folder is reported."""
        if named := self.db or self.environ.get("KEEPWARD_DB"):
            return parse_location(named)
        from keepward.settings import default_store

        path, left_alone = default_store(self.environ)
        if left_alone:
            self.say(left_alone)
        return path

    @property
    def url(self) -> str:
        """What opens the store from any folder."""
        return address_of(self.path.absolute())

    @cached_property
    def settings(self) -> Settings:
        """The settings file and the environment, read once."""
        from keepward.settings import load, unknown_variables

        named = Path(self.config).expanduser() if self.config else None
        found = load(store=self.path, file=named, environ=self.environ)
        for name in unknown_variables(self.environ):
            self.say(f"{name} does nothing: there is no such variable; `keepward config` shows the settings in force")
        if found.withheld:
            self.say(
                f"{found.file} is not accepted, so none of its settings applies ({', '.join(found.withheld)}): "
                "look at it with `keepward config` and accept it"
            )
        return found

    def forget_settings(self) -> None:
        self.__dict__.pop("settings", None)

    def principal(self, duty: DefaultRole) -> Actor:
        """Return who this command acts as."""
        given = self.settings.actor and named_actor(self.settings.actor)
        if not self.actor:
            return given or (
                named_actor(f"agent:{self.agent or 'cli'}") if duty == "propose" else named_actor("operator")
            )
        asked = named_actor(self.actor)
        if given and asked != given and _role_order(asked) >= _role_order(given):
            raise Unauthorised(
                f"this shell acts as {given.label}, and --as can only lower that; "
                "the person who set KEEPWARD_ACTOR or the settings file can change it"
            )
        return asked

    @property
    def is_owner(self) -> bool:
        """Whether it is the owner who calls, and comes without a token."""
        return self.principal("decide").is_owner and not self.environ.get("KEEPWARD_TOKEN")

    @property
    def where(self) -> str | None:
        """The scope that the options name: that of a project, a user or an agent, from `--scope`."""
        return self.named_scope_in(str(Path.cwd())) if self.project == "." else self.named_scope_in("")

    def named_scope_in(self, folder: str) -> str | None:
        """Return the scope that the options name, where `--project .` is the project of a folder."""
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
        from keepward.handles import check_name, scope_for

        scope = self.scope or self.settings.scope
        for kind, name in chosen:
            scope = scope_for(scope, **{kind: check_name(kind, name)})
        return scope

    def require_store(self) -> None:
        """Refuse to go on where there is no store."""
        if not self.path.exists():
            raise StoreUnavailable(
                f"there is no store at {self.path}; make one with `keepward init`, or name it with --db PATH"
            )

    def memory(self, duty: DefaultRole = "propose", *, create: bool = False, stays: bool = False) -> Memory:
        """Open the store for as long as the call lasts; `create` makes a missing one and says so on stderr.

        ``stays`` is for what serves: jobs that are due then run while it does.
        """
        token = self.environ.get("KEEPWARD_TOKEN")
        if not create or token:
            self.require_store()
        missing = not self.path.exists() or (
            isinstance(self.path, Path) and self.path.is_file() and not self.path.stat().st_size
        )
        settings = self.settings
        if token and (self.actor or self.tenant or self.scope):
            raise Unauthorised("KEEPWARD_TOKEN says who asks and where; leave out --as, --tenant and --scope")
        who = None if token else self.principal(duty)
        from keepward.core.principals import ActorKind
        from keepward.memory import Memory, inspection_handle
        from keepward.settings import config_folder, make_data_folder

        made = make_data_folder(self.path, self.environ) if missing and isinstance(self.path, Path) else ()
        try:
            opened = Memory.open(
                address_of(self.path),
                tenant=None if token else self.tenant or settings.tenant,
                scope=None if token else self.where or settings.scope,
                actor=who,
                token=token or None,
                embedder=self.embedder or settings.embedder,
                create=create,
                config_dir=config_folder(self.environ),
                maintenance=settings.maintenance and (stays or self._note_jobs),
                **settings.opening,
            )
        except KeepwardError:
            # No store was made, so that the folders for it are empty.
            with suppress(OSError):
                for each in made:
                    each.rmdir()
            raise
        memory = self._open.enter_context(opened)
        if token and (self.user or self.agent or self.project):
            memory = memory.at(scope=replace(self, scope=memory.scope).where)
        if memory.actor.kind is ActorKind.OPERATOR:
            memory = inspection_handle(memory)
        if missing and str(self.path) == ":memory:":
            self.say("a store in :memory: ends with this command: none of it is stored")
        elif missing:
            self.say(f"made a new store at {self.path}")
        self._report_decisions(memory)
        return memory

    @contextmanager
    def dry_run_memory(self, duty: DefaultRole = "propose") -> Iterator[Memory]:
        """Open an empty store in memory under the settings of this call; nothing is written to disk."""
        if self.environ.get("KEEPWARD_TOKEN"):
            # A token belongs to a store that is there.
            self.require_store()
        with replace(self, db=":memory:", embedder="none", quiet=True) as nowhere:
            nowhere.__dict__["settings"] = self.settings
            yield nowhere.memory(duty, create=True)

    def rehearse_then_run(self, action: Callable[[Memory], T], duty: DefaultRole = "propose") -> T:
        """Do something in the store. Where a store has to be made, do it in memory first.

        What fails then leaves no store on disk.
        """
        if not self.path.exists():
            with self.dry_run_memory(duty) as memory:
                action(memory)
        return action(self.memory(duty, create=True))

    def _note_jobs(self) -> None:
        self.jobs_are_due = True

    def _report_decisions(self, memory: Memory) -> None:
        """Say once what became of the proposals of the agent that calls, where that went against them."""
        if self.quiet or memory.actor.may_decide:
            return
        from keepward.core.proposal import NEGATIVE_DECISIONS

        try:
            decided = memory.notices()
        except KeepwardError:
            # A store that cannot be read or written says so in the command itself; the notice waits.
            return
        for each in decided:
            by = f" by {each.decided_by}" if each.decided_by and each.state == "rejected" else ""
            why = f": {each.decision}" if each.decision else ""
            self.say(f"your proposal {each.id} ({each.reason}) was {NEGATIVE_DECISIONS[each.state]}{by}{why}")

    def say(self, sentence: str) -> None:
        """Print a sentence on stderr, unless `--quiet`."""
        if not self.quiet:
            from keepward.cli.render import escape_invisible

            print(escape_invisible(sentence), file=sys.stderr)  # noqa: T201 - stderr is where a command talks

    def progress(self, what: str) -> AbstractContextManager[Callable[[int, int], None] | None]:
        """Return a context manager of a callback that draws a bar on stderr; None if stderr is not a terminal."""
        from keepward.cli import render as screen

        return screen.progress(what, quiet=self.quiet)

    def answer(self, answer: CommandResult) -> int:
        """Print an answer; return its exit code."""
        if self.as_json:
            print_json(answer.data)
        else:
            from keepward.cli.render import Screen

            screen = Screen(sys.stdout)
            if answer.show is None:
                screen.result(answer.data, answer.hidden)
            else:
                answer.show(screen, answer.data)
        sys.stdout.flush()
        for sentence in answer.talk:
            self.say(sentence)
        if self.jobs_are_due:
            from keepward.cli.maintenance import spawn_maintenance

            spawn_maintenance(self)
        return answer.code


def to_json_object(result: Any, *without: str, **more: Any) -> dict[str, Any]:
    """Return a result as the object that `--json` prints: field by field, a commit or a receipt by its id."""
    names = [each for each in result.__struct_fields__ if each not in without]
    return {**{name: as_json(getattr(result, name)) for name in names}, **more}


def as_json(value: Any) -> Any:
    """Return a value as `--json` prints it; see ``to_json_object``."""
    from keepward.core.results import to_plain

    return to_plain(value, _to_json_value)


def _to_json_value(value: Any) -> Any:
    from keepward.core.commit import Commit, Receipt
    from keepward.core.journal import CommitView, Difference
    from keepward.core.memory import Record

    match value:
        case Commit() | Receipt():
            return value.id
        case CommitView():
            return value.commit.id
        case Difference() | Record():
            return value.to_dict()
    return to_json_object(value)


def owner_token(memory: Memory) -> tuple[str | None, tuple[str, ...]]:
    """Return the path of the owner's token, or none and why it cannot be stored."""
    try:
        return str(memory.owner_token()), ()
    except StoreUnavailable as fault:
        return None, (str(fault),)


def login_name() -> str:
    """Return the login as the name of a user."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", _login()).lstrip(".-") or "me"


def named_actor(name: str) -> Actor:
    """Return the principal `agent`, `user`, `operator` or `reviewer`, with an optional `:name`.

    An operator or reviewer has the login name: another name is no evidence of another person.

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


def read_text(args: str) -> str:
    """Return the text, or all of stdin for `-`, without its last line break and with lines that end in LF."""
    if args != "-":
        return args
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
        # A lone surrogate cannot be encoded; escaped it can.
        text = json.dumps(data, allow_nan=False)
    print(text)  # noqa: T201 - this is the answer


def _role_order(actor: Actor) -> int:
    if actor.kind.value == "operator":
        return _ROLE_ORDER["operator" if actor.is_owner else "reviewer"]
    return _ROLE_ORDER.get(actor.kind.value, 0)


def _login() -> str:
    """Return the name of the system's user who runs this; what the environment calls them is no evidence."""
    try:
        import pwd

        name = pwd.getpwuid(os.getuid()).pw_name
    except ImportError:
        # Windows, where the system itself is asked.
        name = os.getlogin()
    except (KeyError, OSError):
        # No login name is known, as in a container that runs under a bare number.
        return "operator"
    return name if 0 < len(name) <= 64 and name.isprintable() else "operator"
