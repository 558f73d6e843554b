"""Settings: the choices of a `keepward.toml` file and the environment.

Invariants
(1) The command line beats the environment, the environment beats the file, the file beats the default.
(2) An unknown name or an invalid value is ``InvalidInput`` that names the key and never repeats the value.
(3) Every field of ``core.policy.Policy`` can be set under ``[policy]``; a table replaces only the
    entries that it names.
(4) A start imports only what it uses: patterns and settings files load their modules when needed.
(5) ``[server]`` sets where a server listens and which clients it accepts; only the command line opens reads.
(6) A file that is found, not named, applies only after its owner has accepted it.

Late imports: a program that does not need it starts faster, few texts need it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import field
from msgspec.structs import replace

from keepward import durable, folders
from keepward.core.json_form import to_json
from keepward.core.linear_patterns import has_re2
from keepward.core.policy import EthicsRule, Policy, plain_setting
from keepward.core.query import PURPOSES
from keepward.core.value import Data, duration_text, is_too_deep, parse_duration, suggestion
from keepward.errors import InvalidInput, StoreUnavailable
from keepward.locations import Location

#: Name of the settings file in the folder of the store.
FILE_NAME = "keepward.toml"
#: Longest settings file, in bytes.
MAX_FILE_BYTES = 1_048_576
#: Name of the user's own store, in the data folder, and of a known one in the working folder.
STORE_NAME = "keepward.db"
_TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
_FALSE_WORDS = frozenset({"0", "false", "no", "off"})


class ServerSettings(Data):
    """Where `keepward serve` listens, which clients it accepts, and its limits."""

    #: Address to listen on; any other than loopback needs TLS or a proxy in front.
    host: str = "127.0.0.1"
    #: Port; 0 chooses a free one.
    port: int = 8321
    #: Processes that answer requests.
    workers: int = 1
    #: Whether a TLS proxy is in front.
    behind_proxy: bool = False
    #: Certificate chain and private key, as PEM; relative to the settings file.
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Further accepted Host headers, with `:port` unless it is the server's.
    allow_hosts: tuple[str, ...] = ()
    #: Further origins whose pages may call, such as `https://console.example`.
    allow_origins: tuple[str, ...] = ()
    #: Changing requests of one principal in a minute, except the owner's; 0 for no limit.
    writes_per_minute: int = 60
    #: Longest body of a request, of a blob, and of an import, in bytes; each is read into memory.
    body_limit: int = 1_048_576
    blob_limit: int = 33_554_432
    import_limit: int = 67_108_864
    #: Seconds in which a request body must arrive, plus one for each 64 KB of it.
    body_timeout: int = 30
    #: Whether `/mcp` is served, and with which tools.
    mcp: bool = True
    mcp_profile: str = "default"
    #: Whether the log is JSON lines.
    log_json: bool = False


class Settings(Data):
    """All settings outside a request."""

    #: Tenant of a command that names none.
    tenant: str = "default"
    #: Scope of a command that names none: `/`, an agent's name or a path.
    scope: str = "/"
    #: Principal of every command, as `agent`, `user`, `operator` or `reviewer`, with `:name`.
    actor: str | None = None
    #: The embedder: `auto`, `minilm`, `hashed`, `none`, or a server's model as `http:URL#MODEL`.
    embedder: str = "auto"
    #: What its model needs in front of queries and documents: `auto` by the model's name, `none`, the name of a family
    #: such as `e5`, or both as `QUERY||DOCUMENT`.
    embedder_prefixes: str = "auto"
    #: How long a query waits for a server of embeddings; then words find memories.
    embedder_timeout: timedelta = timedelta(seconds=5)
    #: The extractor of facts from messages: `none`, or a chat server's model as `http:URL#MODEL`.
    extractor: str = "none"
    #: The redactor of names and the like, before texts are stored: `none`, or the name of a plug-in.
    redactor: str = "none"
    #: The reranker of search results: `none`, or the name of a plug-in.
    reranker: str = "none"
    #: Further gates for writes: `none`, or names of plug-ins with commas between them.
    gates: str = "none"
    #: The token counter: `estimate`, or the name of a tokenizer.
    counter: str = "estimate"
    #: The identity document, rendered as the persona; relative to the settings file.
    identity: Path | None = None
    #: Text about the user that the agent serves; relative to the settings file.
    user_file: Path | None = None
    #: Whether due jobs run by themselves: while a server or program has the store open, and after writes.
    maintenance: bool = True
    #: Limits, thresholds, budgets and permissions.
    policy: Policy = field(default_factory=Policy)
    #: Where `keepward serve` listens and which clients it accepts.
    server: ServerSettings = field(default_factory=ServerSettings)
    #: The settings file, the digest of its content, and whether the user named it.
    file: Path | None = None
    digest: str = ""
    named: bool = False
    #: Every setting of the file, with its value.
    loosens: Mapping[str, str] = field(default_factory=dict)
    #: The settings of a file that do not apply because the owner has not accepted it.
    withheld: tuple[str, ...] = ()
    #: The source of each setting that is not the default: `file` or `environment`, by name or `table.name`.
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def opening(self) -> dict[str, Any]:
        """The arguments with which every command opens a store."""
        names = ("embedder_prefixes", "embedder_timeout", "extractor", "redactor", "reranker", "gates", "counter")
        return {name: getattr(self, name) for name in ("policy", *names, "identity", "user_file")}


#: Text settings at the top of the file, and their environment variables.
SETTING_VARIABLES = {
    name: f"KEEPWARD_{name.upper()}"
    for name in (
        *("tenant", "scope", "actor", "embedder", "embedder_prefixes", "embedder_timeout", "extractor"),
        *("redactor", "reranker", "gates", "counter", "identity", "user_file"),
    )
}
#: Variables with the keys of models' servers.
KEY_VARIABLES = {"embedder": "KEEPWARD_EMBEDDER_KEY", "extractor": "KEEPWARD_EXTRACTOR_KEY"}
#: The one switch at the top of the file.
MAINTENANCE_VARIABLE = "KEEPWARD_MAINTENANCE"
#: Policy switches that the environment can turn.
SWITCH_VARIABLES = {name: f"KEEPWARD_{name.upper()}" for name in ("enabled", "capture", "recall")}
#: Variables without a setting in the file.
PATH_VARIABLES = {
    "KEEPWARD_DB": "Path of the store; default `keepward.db` in the data folder, or here where this machine knows it.",
    "KEEPWARD_DATA": "Folder of the user's own store, and of index files of databases; default the platform's.",
    "KEEPWARD_MODELS": "Folder of what `keepward model install` stores; default `models` in the data folder.",
    "KEEPWARD_CONFIG": "Path of the settings file; default `keepward.toml` next to the store.",
    "KEEPWARD_TOKEN": "Token that a command comes with; principal, tenant and scope are then the token's.",
    "KEEPWARD_PASSPHRASE": "Passphrase of `keepward key`, where it cannot be asked for.",
    "KEEPWARD_HOME": "Folder of keys and head anchors; default `$XDG_CONFIG_HOME/keepward` or `~/.config/keepward`.",
}
#: Variables that are read elsewhere.
_OTHERS = ("KEEPWARD_HOOKS", "KEEPWARD_TRACE")
_PATHS = ("identity", "user_file")
_SPANS = ("embedder_timeout",)


def load(*, store: Location, file: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of a store.

    `file`, if given, must exist; else `KEEPWARD_CONFIG` must; else `keepward.toml` next to the store may exist, or for
    a database in the folder of keys. A file that is only found applies after its owner has accepted it: see
    ``settings_trust``.

    Raises:
        InvalidInput: the file is missing or is not TOML, a name is unknown, a value is invalid.
    """
    env = os.environ if environ is None else environ
    named = file or (Path(env["KEEPWARD_CONFIG"]) if env.get("KEEPWARD_CONFIG") else None)
    # Next to a database there is no file.
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
    """One effective setting and its source."""

    #: `name`, or `table.name` as in the file.
    name: str
    #: As JSON values, as the file writes them; a duration is text, such as `30d`.
    value: Any
    default: Any
    #: `default`, `file`, `environment`, or `program` for a value given to the store or server when it was started.
    origin: Literal["default", "file", "environment", "program"]
    #: The value in a settings file that its owner has not accepted.
    waiting: str | None = None


def effective_settings(settings: Settings, policy: Policy, server: ServerSettings) -> list[EffectiveSetting]:
    """Return every setting in the order of the file; ``policy`` and ``server`` are the current ones."""
    usual, found = Settings(), []
    tables: list[tuple[str, Any, Any, Any]] = [
        ("", [*SETTING_VARIABLES, "maintenance"], settings, usual),
        ("policy.", Policy.__struct_fields__, policy, usual.policy),
        ("server.", ServerSettings.__struct_fields__, server, usual.server),
    ]
    read = {"": settings, "policy.": settings.policy, "server.": settings.server}
    for prefix, names, values, default in tables:
        for name in names:
            value, known = getattr(values, name), settings.origins.get(prefix + name, "default")
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
    """Whether the settings file has changed since it was read."""
    if settings.file is None:
        return False
    try:
        return hashlib.sha256(read_file(settings.file)).hexdigest() != settings.digest
    except (OSError, InvalidInput):
        return True


def _plain_value(value: Any) -> Any:
    match value:
        case Path():
            return str(value)
        case timedelta(microseconds=0):
            return duration_text(value)
        case Mapping():
            return {str(to_json(name)): _plain_value(item) for name, item in value.items()}
        case _:
            return plain_setting(value)


def _names_in(table: Mapping[str, Any]) -> list[str]:
    return [
        each
        for name, value in table.items()
        for each in ([f"{name}.{inner}" for inner in value] if isinstance(value, Mapping) else [name])
    ]


def maintenance_enabled() -> bool:
    """Whether the environment lets due jobs run by themselves, which is the default."""
    return _switch(os.environ, MAINTENANCE_VARIABLE) is not False


def config_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of keys and recorded heads; see ``folders``."""
    return Path(folders.config_folder(os.environ if environ is None else environ))


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the user's own store; see ``folders``."""
    return Path(folders.data_folder(os.environ if environ is None else environ))


def default_store(environ: Mapping[str, str] | None = None, *, config_dir: Path | None = None) -> tuple[Path, str]:
    """Return the path of the default store, and a note on an unknown store in the working folder.

    A store in the working folder is used only if this machine knows its id and path.
    """
    own = data_folder(environ) / STORE_NAME
    try:
        here = Path.cwd() / STORE_NAME
    except FileNotFoundError:
        # The working folder was removed, for example with its branch.
        return own, ""
    if here == own or not here.is_file():
        return own, ""
    from keepward.machine.trust_store import store_at
    from keepward.storage.file import store_id_in

    known = store_at(config_dir or config_folder(environ), here)
    if known is not None and known == store_id_in(here):
        return here, ""
    return own, f"{STORE_NAME} in this folder is none that this machine knows and was left alone; --db names it"


def make_data_folder(path: Path, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Create the data folder for a new store in it; no other folder is created for a store.

    Return the created folders, the innermost first.
    """
    folder = data_folder(environ)
    if path.parent != folder or folder.exists():
        return ()
    made = tuple(each for each in (folder, *folder.parents) if not each.exists())
    try:
        durable.make_folder(folder)
    except OSError as exc:
        raise StoreUnavailable(f"the data folder {folder} cannot be made: {exc.strerror}") from exc
    return made


def _as_text(table: Mapping[str, Any], name: str) -> str:
    """Return the value of a setting as text for a person."""
    outer, _, inner = name.partition(".")
    value = table[outer][inner] if inner else table[outer]
    return _printable_name(json.dumps(value, ensure_ascii=True, default=str), 200)


def read_file(path: Path) -> bytes:
    """Return the content of a settings file; see ``durable.read_regular``."""
    return durable.read_regular(path, MAX_FILE_BYTES)


def _read(path: Path, *, required: bool) -> tuple[dict[str, Any], bytes | None]:
    import tomllib

    try:
        raw = read_file(path)
        table = tomllib.loads(raw.decode("utf-8-sig"))
    except FileNotFoundError as exc:
        if required:
            raise InvalidInput("there is no settings file at the path that was named") from exc
        return {}, None
    except OSError as exc:
        raise InvalidInput(f"{path.name} cannot be read: {exc.strerror}") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        # The position helps. The rest of the decoder's message may quote the file.
        where = str(exc).rpartition("(")[2].rstrip(")") if "(at " in str(exc) else "not UTF-8 text"
        raise InvalidInput(f"{path.name} is not TOML ({where})") from exc
    except RecursionError as exc:
        raise InvalidInput(f"{path.name} is nested too deeply: no setting has lists in lists") from exc
    if is_too_deep(table):
        raise InvalidInput(f"{path.name} is nested too deeply: no setting has lists in lists")
    return table, raw


def _settings(table: Mapping[str, Any], path: Path) -> Settings:
    try:
        made: Settings = _apply_table(Settings, table, path)
    except InvalidInput as exc:
        raise InvalidInput(f"{path.name}: {exc}") from exc
    return made


def _environment(env: Mapping[str, str], policy: Policy) -> dict[str, Any]:
    """Return the settings of the environment, including the switches of the policy."""
    chosen: dict[str, Any] = {name: env[variable] for name, variable in SETTING_VARIABLES.items() if env.get(variable)}
    chosen |= {name: Path(chosen[name]).expanduser() for name in _PATHS if name in chosen}
    chosen |= {name: _positive_duration(chosen[name], (SETTING_VARIABLES[name],)) for name in _SPANS if name in chosen}
    if (maintenance := _switch(env, MAINTENANCE_VARIABLE)) is not None:
        chosen["maintenance"] = maintenance
    turned: dict[str, Any] = {
        name: on for name, variable in SWITCH_VARIABLES.items() if (on := _switch(env, variable)) is not None
    }
    return {**chosen, "policy": replace(policy, **turned)} if turned else chosen


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the sorted variables that look like ours and have no effect, for example a misspelt one."""
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


def _apply_table(kind: Any, table: Any, path: Path, *name_parts: str) -> Any:
    """Return the defaults with the values of a table of the file; see (2) and (3)."""
    hints = get_type_hints(kind)
    known = [*SETTING_VARIABLES, "maintenance", "policy", "server"] if kind is Settings else list(hints)
    if not isinstance(table, dict):
        raise _invalid_setting(name_parts, f"must be a table; write its settings under [{name_parts[0]}]")
    changed: dict[str, Any] = {}
    for name, given in table.items():
        if name not in known:
            others = "" if name_parts else f"there are {', '.join(known)}"
            guess = f"{suggestion(name, known)}{others}".rstrip()
            raise _invalid_setting((*name_parts, name), "there is no such setting" + (f"; {guess}" if guess else ""))
        value = _convert(hints[name], given, path, *name_parts, name)
        changed[name] = MappingProxyType({**getattr(kind(), name), **value}) if isinstance(value, dict) else value
    for each in msgspec.structs.fields(kind):
        if each.required and each.name not in changed:
            raise _invalid_setting((*name_parts, each.name), "Field required")
    return kind(**changed)


#: Number types in the file: none is negative, and a fraction is at most 1.
_NUMBERS: Mapping[Any, Any] = {
    int: Annotated[int, msgspec.Meta(ge=0)],
    float: Annotated[float, msgspec.Meta(ge=0, le=1)],
}
#: Readable names of the types that `msgspec` reports.
_WORDS = {"bool": "true or false", "str": "text", "int": "a whole number", "float": "a number"}
_WORDS |= {"array": "a list", "object": "a table"}
#: Keys of tables whose type does not list them. Core memory has no capacity: its token budgets limit it.
_NAMES: dict[str, Any] = {"least_trust": PURPOSES, "capacity": ("working", "episodic", "archival")}


def _convert(hint: Any, value: Any, path: Path, *name_parts: str) -> Any:
    """Convert a value of the file to a field's type; ``name_parts`` is the name of the setting, in parts."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if type(None) in inner:
        # TOML has no None: the setting is left out instead.
        kind, inner = inner[0], ()
    if kind is Mapping:
        table, names = _convert_type(dict[str, Any], value, name_parts), _NAMES.get(name_parts[-1], inner[0])
        return {
            name if names is str else _one_of(names, name, (*name_parts, name)): _convert(
                inner[1], each, path, *name_parts, name
            )
            for name, each in table.items()
        }
    if kind is tuple:
        items = enumerate(_convert_type(list[Any], value, name_parts))
        return tuple(_convert(inner[0], each, path, *name_parts, str(number)) for number, each in items)
    if isinstance(kind, type) and issubclass(kind, Data):
        made = _apply_table(kind, value, path, *name_parts)
        if isinstance(made, EthicsRule):
            _check_pattern(made.pattern, name_parts)
        return made
    if kind is Path or (kind is str and len(name_parts) == 1):
        if not (isinstance(value, str) and value):
            raise _invalid_setting(name_parts, "must be text" if kind is str else "must be the path of a file, as text")
        return value if kind is str else path.parent / Path(value).expanduser()
    if kind is timedelta:
        return _positive_duration(value, name_parts)
    if kind is Literal or issubclass(kind, Enum):
        return _one_of(inner or kind, value, name_parts)
    return _convert_type(_NUMBERS.get(kind, kind), value, name_parts)


def _positive_duration(value: Any, name_parts: tuple[str, ...]) -> timedelta:
    try:
        span = parse_duration(value)
    except InvalidInput as exc:
        raise _invalid_setting(name_parts, str(exc)) from exc
    if span <= timedelta(0):
        raise _invalid_setting(name_parts, 'write a positive duration such as "24h" or "30d", or a number of seconds')
    return span


def _one_of(known: Iterable[Any], value: Any, name_parts: tuple[str, ...]) -> Any:
    """Return the member with this name."""
    names = {getattr(each, "label", each): each for each in known}
    if not isinstance(value, str) or value not in names:
        raise _invalid_setting(name_parts, f"{suggestion(value, names)}use one of {', '.join(names)}")
    return names[value]


def _convert_type(kind: Any, value: Any, name_parts: tuple[str, ...]) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        says = re.sub(r"`(\w+)`", lambda found: _WORDS.get(found[1], found[0]), str(exc))
        raise _invalid_setting(name_parts, says.replace("Expected", "expected")) from exc


def _check_pattern(pattern: str, name_parts: tuple[str, ...]) -> None:
    if not has_re2():
        raise _invalid_setting(name_parts, "a pattern of your own needs the package google-re2, which is not installed")
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as exc:
        raise _invalid_setting(name_parts, "the pattern is not one that RE2 accepts") from exc


def _invalid_setting(name_parts: tuple[str, ...], says: str) -> InvalidInput:
    return InvalidInput(f"{'.'.join(map(_printable_name, name_parts))}: {says}")


def _printable_name(name: str, most: int = 40) -> str:
    """Return a name from a file in a short form of printable ASCII, safe for a message."""
    shown = "".join(char if char.isascii() and char.isprintable() else "?" for char in name)
    return shown if len(shown) <= most else shown[:most] + "..."
