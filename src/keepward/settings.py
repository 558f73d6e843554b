"""Settings: what a `keepward.toml` file and the environment choose.

Invariants
(1) The command line beats the environment, the environment beats the file, the file beats the default.
(2) An unknown name or a wrong value is ``InvalidInput`` that names the key and never repeats the value.
(3) Every field of ``core.policy.Policy`` can be set under ``[policy]``; a table replaces only the
    entries it names.
(4) A start costs nothing that is not used: what reads patterns or settings files is imported with the first of them.
(5) Where a server listens and whom it lets in stands under ``[server]``; reads are opened on the command line alone.
(6) A file that was found and not named applies only after its owner has accepted it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import field
from msgspec.structs import replace

from keepward import folders
from keepward.core.policy import EthicsRule, Policy
from keepward.core.query import PURPOSES
from keepward.core.value import Data, parse_duration, suggestion
from keepward.errors import InvalidInput, StoreUnavailable
from keepward.locations import Location

#: Looked for in the folder of the store.
FILE_NAME = "keepward.toml"
#: Longest settings file, in bytes.
MAX_FILE_BYTES = 1_048_576
#: Name of the user's own store, in the data folder; and of one in the working folder, where this machine knows it.
STORE_NAME = "keepward.db"
_TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
_FALSE_WORDS = frozenset({"0", "false", "no", "off"})


class ServerSettings(Data):
    """Where `keepward serve` listens, whom it lets in, and how much it takes."""

    #: Where to listen; other than loopback takes TLS or a proxy in front.
    host: str = "127.0.0.1"
    #: Port; 0 takes a free one.
    port: int = 8321
    #: Whether a proxy that speaks TLS stands in front.
    behind_proxy: bool = False
    #: Certificate chain and private key, as PEM; relative to the settings file.
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Further names by which the server is asked for, with `:port` where it is another.
    allow_hosts: tuple[str, ...] = ()
    #: Origins, such as `https://console.example`, whose pages may call beside the server's own.
    allow_origins: tuple[str, ...] = ()
    #: Changing calls of one principal in a minute, the owner's apart; 0 for no limit.
    writes_per_minute: int = 60
    #: Longest body of a call, of a blob, and of an import, in bytes; each is held in memory.
    body_limit: int = 1_048_576
    blob_limit: int = 33_554_432
    import_limit: int = 67_108_864
    #: Seconds in which the body of a call has to come, and one more for each 64 KB of it.
    body_timeout: int = 30
    #: Whether `/mcp` is served, and with which tools.
    mcp: bool = True
    mcp_profile: str = "default"
    #: Whether the log is JSON lines.
    log_json: bool = False


class Settings(Data):
    """Everything that can be chosen outside a call."""

    #: Tenant of a command that names none.
    tenant: str = "default"
    #: Scope of a command that names none: `/`, an agent's name or a path.
    scope: str = "/"
    #: Principal of every command, as `agent`, `user`, `operator` or `reviewer`, with `:name`.
    actor: str | None = None
    #: What turns texts into vectors: `auto`, `minilm`, `hashed`, `none`, or a server's model as `http:URL#MODEL`.
    embedder: str = "auto"
    #: What finds further facts of a talk: `none`, or a chat server's model as `http:URL#MODEL`.
    extractor: str = "none"
    #: What finds names and the like in texts before they are stored: `none`, or the name of a plug-in.
    redactor: str = "none"
    #: What orders the results of a search: `none`, or the name of a plug-in.
    reranker: str = "none"
    #: Further gates that judge writes: `none`, or names of plug-ins with commas between them.
    gates: str = "none"
    #: What counts tokens: `estimate`, or the name of a tokenizer.
    counter: str = "estimate"
    #: The identity document, rendered as the persona; relative to the settings file.
    identity: Path | None = None
    #: Text about the person the agent serves; relative to the settings file.
    user_file: Path | None = None
    #: Whether jobs that are due run by themselves: while a server or a program keeps the store open, and after writes.
    maintenance: bool = True
    #: Limits, floors, budgets and permissions.
    policy: Policy = field(default_factory=Policy)
    #: Where `keepward serve` listens and whom it lets in.
    server: ServerSettings = field(default_factory=ServerSettings)
    #: The file that was read, the digest of what it said, and whether somebody named it.
    file: Path | None = None
    digest: str = ""
    named: bool = False
    #: Every setting of the file, with its value.
    loosens: Mapping[str, str] = field(default_factory=dict)
    #: The settings of the file that do not apply, since the owner has not accepted the file.
    withheld: tuple[str, ...] = ()
    #: Where each setting comes from that is not the default: `file` or `environment`, by name or `table.name`.
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def opening(self) -> dict[str, Any]:
        """What every opening of a store takes of them."""
        names = ("policy", "extractor", "redactor", "reranker", "gates", "counter", "identity", "user_file")
        return {name: getattr(self, name) for name in names}


#: Names of texts at the top of the file, and what each is called in the environment.
SETTING_VARIABLES = {
    name: f"KEEPWARD_{name.upper()}"
    for name in (
        *("tenant", "scope", "actor", "embedder", "extractor", "redactor", "reranker", "gates"),
        *("counter", "identity", "user_file"),
    )
}
#: Variables with the keys of models' servers.
KEY_VARIABLES = {"embedder": "KEEPWARD_EMBEDDER_KEY", "extractor": "KEEPWARD_EXTRACTOR_KEY"}
#: Of the settings at the top of the file the one that is a switch.
MAINTENANCE_VARIABLE = "KEEPWARD_MAINTENANCE"
#: Policy switches that the environment can turn.
SWITCH_VARIABLES = {name: f"KEEPWARD_{name.upper()}" for name in ("enabled", "capture", "recall")}
#: What the environment alone names.
PATH_VARIABLES = {
    "KEEPWARD_DB": "Path of the store; default `keepward.db` in the data folder, or here where this machine knows it.",
    "KEEPWARD_DATA": "Folder of the user's own store; default the platform's, such as `~/.local/share/keepward`.",
    "KEEPWARD_MODELS": "Folder of what `keepward model install` stores; default `models` in the data folder.",
    "KEEPWARD_CONFIG": "Path of the settings file; default `keepward.toml` beside the store.",
    "KEEPWARD_TOKEN": "Token that a command comes with; principal, tenant and scope are then the token's.",
    "KEEPWARD_PASSPHRASE": "Passphrase of `keepward key`, where it cannot be asked for.",
    "KEEPWARD_HOME": "Folder of keys and head anchors; default `$XDG_CONFIG_HOME/keepward` or `~/.config/keepward`.",
}
#: Variables that are read elsewhere.
_OTHERS = ("KEEPWARD_HOOKS", "KEEPWARD_TRACE")
_PATHS = ("identity", "user_file")


def load(*, store: Location, file: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings that hold for a store.

    `file` must exist when given; else `KEEPWARD_CONFIG` must; else `keepward.toml` beside the store may, or for a
    database in the folder of keys. One that is only found applies once its owner has accepted it: see ``accepted``.

    Raises:
        InvalidInput: the file is missing or is not TOML, a name is unknown, a value is wrong.
    """
    env = os.environ if environ is None else environ
    named = file or (Path(env["KEEPWARD_CONFIG"]) if env.get("KEEPWARD_CONFIG") else None)
    # Beside a database there is no file.
    path = named or (store.parent / FILE_NAME if isinstance(store, Path) else config_folder(env) / FILE_NAME)
    table, raw = _read(path, required=named is not None)
    settings = _settings(table, path)
    names = sorted(_names_in(table))
    withheld: tuple[str, ...] = ()
    if names and named is None:
        from keepward.settings_trust import is_accepted

        if not is_accepted(config_folder(env), path, raw or b""):
            settings, withheld = Settings(), tuple(names)
    chosen = _environment(env, settings.policy)
    return replace(
        settings,
        **chosen,
        origins={
            **({} if withheld else dict.fromkeys(names, "file")),
            **{name: "environment" for name in chosen if name != "policy"},
            **{
                f"policy.{name}": "environment"
                for name in SWITCH_VARIABLES
                if _switch(env, SWITCH_VARIABLES[name]) is not None
            },
        },
        file=None if raw is None else path,
        digest="" if raw is None else hashlib.sha256(raw).hexdigest(),
        named=named is not None,
        loosens={name: _as_text(table, name) for name in names},
        withheld=withheld,
    )


class EffectiveSetting(Data):
    """One setting as it holds, and where that comes from."""

    #: As `name`, or `table.name` as in the file.
    name: str
    #: As JSON values.
    value: Any
    default: Any
    #: `default`, `file`, `environment`, or `program` for what was chosen where the store or server was started.
    origin: Literal["default", "file", "environment", "program"]
    #: The value in a settings file that its owner has not accepted.
    waiting: str | None = None


def effective_settings(settings: Settings, policy: Policy, server: ServerSettings) -> list[EffectiveSetting]:
    """Return every setting in the order of the file; ``policy`` and ``server`` are those that hold by now."""
    usual, found = Settings(), []
    tables: list[tuple[str, Any, Any, Any]] = [
        ("", [*SETTING_VARIABLES, "maintenance"], settings, usual),
        ("policy.", Policy.__struct_fields__, policy, usual.policy),
        ("server.", ServerSettings.__struct_fields__, server, usual.server),
    ]
    read = {"": settings, "policy.": settings.policy, "server.": settings.server}
    for prefix, names, held, default in tables:
        for name in names:
            value, known = getattr(held, name), settings.origins.get(prefix + name, "default")
            origin: Any = known if value == getattr(read[prefix], name) else "program"
            found.append(
                EffectiveSetting(
                    name=prefix + name,
                    value=_plain_value(value),
                    default=_plain_value(getattr(default, name)),
                    origin=origin,
                    waiting=settings.loosens.get(prefix + name) if prefix + name in settings.withheld else None,
                )
            )
    return found


def changed_since(settings: Settings) -> bool:
    """Whether the settings file says something else by now than when it was read."""
    if settings.file is None:
        return False
    try:
        return hashlib.sha256(read_file(settings.file)).hexdigest() != settings.digest
    except (OSError, InvalidInput):
        return True


def _plain_value(value: Any) -> Any:
    from keepward.core.results import to_plain

    return str(value) if isinstance(value, Path) else to_plain(value)


def _names_in(table: Mapping[str, Any]) -> list[str]:
    return [
        each
        for name, value in table.items()
        for each in ([f"{name}.{inner}" for inner in value] if isinstance(value, Mapping) else [name])
    ]


def maintenance_enabled() -> bool:
    """Whether the environment lets jobs that are due run by themselves; it does unless it says otherwise."""
    return _switch(os.environ, MAINTENANCE_VARIABLE) is not False


def config_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder where keys and head anchors live; see ``folders``."""
    return Path(folders.config_folder(os.environ if environ is None else environ))


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the user's own store; see ``folders``."""
    return Path(folders.data_folder(os.environ if environ is None else environ))


def default_store(environ: Mapping[str, str] | None = None, *, config_dir: Path | None = None) -> tuple[Path, str]:
    """Return the path of the store where none is named, and a sentence on one here that was left alone, or nothing.

    One in the working folder is used only where this machine knows it, by its id and its place.
    """
    own = data_folder(environ) / STORE_NAME
    try:
        here = Path.cwd() / STORE_NAME
    except FileNotFoundError:
        # The working folder was removed, as that of a branch that is done with.
        return own, ""
    if here == own or not here.is_file():
        return own, ""
    from keepward.adapters.trust_store import store_at
    from keepward.storage.file import store_id_in

    known = store_at(config_dir or config_folder(environ), here)
    if known is not None and known == store_id_in(here):
        return here, ""
    return own, f"{STORE_NAME} in this folder is none that this machine knows and was left alone; --db names it"


def make_data_folder(path: Path, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Make the data folder where a store in it is about to be made; no other folder is ever made for a store.

    Return the folders that were made, the innermost first.
    """
    folder = data_folder(environ)
    if path.parent != folder or folder.exists():
        return ()
    made = tuple(each for each in (folder, *folder.parents) if not each.exists())
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as fault:
        raise StoreUnavailable(f"the data folder {folder} cannot be made: {fault.strerror}") from fault
    return made


def _as_text(table: Mapping[str, Any], name: str) -> str:
    """Return the value of a setting for a person to look at."""
    outer, _, inner = name.partition(".")
    value = table[outer][inner] if inner else table[outer]
    return _printable_name(json.dumps(value, ensure_ascii=True, default=str), 200)


def read_file(path: Path) -> bytes:
    """Return the content of a settings file. A pipe or a device could keep a command waiting for ever.

    Raises:
        InvalidInput: it is no regular file, or longer than 1 MB.
        OSError: it cannot be read.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
            raise InvalidInput(f"{path.name} is no regular file of at most 1 MB; move it away, or name another")
        return file.read(MAX_FILE_BYTES)


def _read(path: Path, *, required: bool) -> tuple[dict[str, Any], bytes | None]:
    import tomllib

    try:
        raw = read_file(path)
        return tomllib.loads(raw.decode("utf-8-sig")), raw
    except FileNotFoundError as fault:
        if required:
            raise InvalidInput("there is no settings file at the path that was named") from fault
        return {}, None
    except OSError as fault:
        raise InvalidInput(f"{path.name} cannot be read: {fault.strerror}") from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        # The position helps and the rest of the decoder's message may quote the file.
        where = str(fault).rpartition("(")[2].rstrip(")") if "(at " in str(fault) else "not UTF-8 text"
        raise InvalidInput(f"{path.name} is not TOML ({where})") from fault


def _settings(table: Mapping[str, Any], path: Path) -> Settings:
    try:
        made: Settings = _apply_table(Settings, table, path)
    except InvalidInput as fault:
        raise InvalidInput(f"{path.name}: {fault}") from fault
    return made


def _environment(env: Mapping[str, str], policy: Policy) -> dict[str, Any]:
    """Return what the environment chooses; of the policy, its switches."""
    chosen: dict[str, Any] = {name: env[variable] for name, variable in SETTING_VARIABLES.items() if env.get(variable)}
    chosen |= {name: Path(chosen[name]).expanduser() for name in _PATHS if name in chosen}
    if (kept := _switch(env, MAINTENANCE_VARIABLE)) is not None:
        chosen["maintenance"] = kept
    turned: dict[str, Any] = {
        name: on for name, variable in SWITCH_VARIABLES.items() if (on := _switch(env, variable)) is not None
    }
    return {**chosen, "policy": replace(policy, **turned)} if turned else chosen


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the variables that look like ours and do nothing, such as a misspelt one, sorted."""
    known = {
        *SETTING_VARIABLES.values(),
        *KEY_VARIABLES.values(),
        *SWITCH_VARIABLES.values(),
        *PATH_VARIABLES,
        MAINTENANCE_VARIABLE,
        *_OTHERS,
    }
    return sorted(name for name in environ if name.startswith("KEEPWARD_") and name not in known)


def _switch(env: Mapping[str, str], variable: str) -> bool | None:
    word = env.get(variable, "").strip().lower()
    if word and word not in _TRUE_WORDS | _FALSE_WORDS:
        raise InvalidInput(f"{variable} must be one of: true, false, on, off, yes, no, 1, 0")
    return word in _TRUE_WORDS if word else None


def _apply_table(kind: Any, table: Any, path: Path, *place: str) -> Any:
    """Return what a table of the file makes of the defaults; see (2) and (3)."""
    hints = get_type_hints(kind)
    known = [*SETTING_VARIABLES, "maintenance", "policy", "server"] if kind is Settings else list(hints)
    if not isinstance(table, dict):
        raise _invalid_setting(place, f"must be a table; write its settings under [{place[0]}]")
    changed: dict[str, Any] = {}
    for name, given in table.items():
        if name not in known:
            others = "" if place else f"there are {', '.join(known)}"
            guess = f"{suggestion(name, known)}{others}".rstrip()
            raise _invalid_setting((*place, name), "there is no such setting" + (f"; {guess}" if guess else ""))
        value = _convert(hints[name], given, path, *place, name)
        changed[name] = MappingProxyType({**getattr(kind(), name), **value}) if isinstance(value, dict) else value
    for each in msgspec.structs.fields(kind):
        if each.required and each.name not in changed:
            raise _invalid_setting((*place, each.name), "Field required")
    return kind(**changed)


#: Types of numbers in the file: none is below 0, and a fraction is a share.
_NUMBERS: Mapping[Any, Any] = {
    int: Annotated[int, msgspec.Meta(ge=0)],
    float: Annotated[float, msgspec.Meta(ge=0, le=1)],
}
#: What a person calls the types that `msgspec` names.
_WORDS = {"bool": "true or false", "str": "text", "int": "a whole number", "float": "a number"}
_WORDS |= {"array": "a list", "object": "a table"}
#: Names that a table takes, where its field says less. Core is bounded by its token budgets: a capacity of it would
#: never be read.
_NAMES: dict[str, Any] = {"least_trust": PURPOSES, "capacity": ("working", "episodic", "archival")}


def _convert(hint: Any, value: Any, path: Path, *place: str) -> Any:
    """Return a value of the file as a field of this type takes it; ``place`` is the name of the setting, in parts."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if type(None) in inner:
        # Left out it is None; no file says so.
        kind, inner = inner[0], ()
    if kind is Mapping:
        table, names = _convert_type(dict[str, Any], value, place), _NAMES.get(place[-1], inner[0])
        return {
            name if names is str else _one_of(names, name, (*place, name)): _convert(inner[1], each, path, *place, name)
            for name, each in table.items()
        }
    if kind is tuple:
        items = enumerate(_convert_type(list[Any], value, place))
        return tuple(_convert(inner[0], each, path, *place, str(number)) for number, each in items)
    if isinstance(kind, type) and issubclass(kind, Data):
        made = _apply_table(kind, value, path, *place)
        if isinstance(made, EthicsRule):
            _check_pattern(made.pattern, place)
        return made
    if kind is Path or (kind is str and len(place) == 1):
        if not (isinstance(value, str) and value):
            raise _invalid_setting(place, "must be text" if kind is str else "must be the path of a file, as text")
        return value if kind is str else path.parent / Path(value).expanduser()
    if kind is timedelta:
        try:
            span = parse_duration(value)
        except InvalidInput as fault:
            raise _invalid_setting(place, str(fault)) from fault
        if span <= timedelta(0):
            raise _invalid_setting(place, 'write a positive duration such as "24h" or "30d", or a number of seconds')
        return span
    if kind is Literal or issubclass(kind, Enum):
        return _one_of(inner or kind, value, place)
    return _convert_type(_NUMBERS.get(kind, kind), value, place)


def _one_of(known: Iterable[Any], value: Any, place: tuple[str, ...]) -> Any:
    """Return the one of these values that has a name."""
    names = {getattr(each, "label", each): each for each in known}
    if not isinstance(value, str) or value not in names:
        raise _invalid_setting(place, f"{suggestion(value, names)}use one of {', '.join(names)}")
    return names[value]


def _convert_type(kind: Any, value: Any, place: tuple[str, ...]) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        says = re.sub(r"`(\w+)`", lambda found: _WORDS.get(found[1], found[0]), str(exc))
        raise _invalid_setting(place, says.replace("Expected", "expected")) from exc


def _check_pattern(pattern: str, place: tuple[str, ...]) -> None:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as fault:
        raise _invalid_setting(place, "the pattern is not one that RE2 accepts") from fault


def _invalid_setting(place: tuple[str, ...], says: str) -> InvalidInput:
    return InvalidInput(f"{'.'.join(map(_printable_name, place))}: {says}")


def _printable_name(name: str, most: int = 40) -> str:
    """Return a name from a file fit for a message: short, and printable ASCII alone."""
    shown = "".join(char if char.isascii() and char.isprintable() else "?" for char in name)
    return shown if len(shown) <= most else shown[:most] + "..."
