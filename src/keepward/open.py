"""The composition root: only this module chooses a store, models and adapters, and reads the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from keepward import plugins
from keepward.core.policy import Policy
from keepward.core.value import Duration, is_blank, parse_duration, require_well_formed
from keepward.embedding import choose_embedder, choose_extractor, parse_server_name
from keepward.embedding.tokens import choose_counter
from keepward.errors import InvalidInput, StoreUnavailable
from keepward.gates.gate_types import Gate
from keepward.locations import address_of, parse_location
from keepward.machine.blob_files import FileBlobs, MemoryBlobs, folder_of
from keepward.machine.clock import RandomIds, SystemClock
from keepward.machine.identity_files import IdentityFile
from keepward.machine.source_files import SourceFiles
from keepward.machine.trust_store import FileErasures, TrustStore, default_config_dir
from keepward.ports.models import Embedder, Extractor, Redactor, Reranker, TokenCounter
from keepward.ports.world import Anchor, BlobStore, Clock, ErasureList, IdSource
from keepward.services.arguments import ArgumentReader, boolean, duration, plain_text
from keepward.services.request_context import Engine
from keepward.services.search.index_cache import IndexCache
from keepward.settings_trust import host_of_key
from keepward.storage.store import EventStore, open_store

Model = TypeVar("Model")
#: The method that each replaceable part must have.
_REQUIRED_METHODS = {
    "embedder": "embed",
    "counter": "count",
    "extractor": "extract",
    "summarizer": "summarize",
    "redactor": "find",
    "reranker": "rerank",
    "clock": "now",
    "ids": "new_id",
}
#: Parts that a caller may also name by a string, such as ``"minilm"``.
_NAMED = frozenset({"embedder", "counter", "extractor", "redactor", "reranker"})


def open_engine(
    path: str,
    *,
    embedder: str | Embedder | None = None,
    embedder_prefixes: str = "auto",
    embedder_timeout: Duration | None = None,
    counter: str | TokenCounter = "estimate",
    extractor: str | Extractor | None = None,
    redactor: str | Redactor | None = None,
    reranker: str | Reranker | None = None,
    gates: str | Mapping[str, Gate] | None = None,
    policy: Policy | None = None,
    identity: str | Path | None = None,
    user_file: str | Path | None = None,
    create: bool,
    config_dir: Path | None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    **more: Any,
) -> Engine:
    """Open a store with all its parts; ``more`` are further arguments of ``Memory.open``."""
    choices: dict[str, Any] = {
        "embedder": embedder,
        "counter": counter,
        "extractor": extractor,
        "redactor": redactor,
        "reranker": reranker,
    }
    _check_parts(**choices, clock=clock, ids=ids, **more)
    # Models come first, so that an unknown name does not leave a new store behind.
    seconds = None if embedder_timeout is None else parse_duration(embedder_timeout).total_seconds()
    if seconds is not None and seconds <= 0:
        raise InvalidInput("embedder_timeout is a positive duration, such as 5s")
    named_embedder = partial(choose_embedder, prefixes=embedder_prefixes, query_seconds=seconds)
    models: dict[str, Any] = {
        "embedder": _served_model(named_embedder, embedder, "embedder", config_dir),
        "counter": _counter(counter),
        "extractor": _served_model(choose_extractor, extractor, "extractor", config_dir),
        "redactor": _plugin_part("redactors", redactor),
        "reranker": _plugin_part("rerankers", reranker),
    }
    _check_parts(**models)
    guarded = {name: _guarded(model, name, choices[name]) for name, model in models.items()}
    if more.get("summarizer"):
        more["summarizer"] = _guarded(more["summarizer"], "summarizer")
    named_gates = "" if gates == "none" else gates or ""
    chosen_gates = plugins.load_gates(named_gates) if isinstance(named_gates, str) else tuple(named_gates.items())
    location = parse_location(path)
    store = open_store(address_of(location), anchor=trust_store_in(config_dir), create=create)
    return bare_engine(
        store,
        config_dir=config_dir,
        clock=clock,
        ids=ids,
        **guarded,
        gates=chosen_gates,
        identity=IdentityFile(identity),
        user_file=IdentityFile(user_file),
        sources=SourceFiles((policy or Policy()).evidence_roots),
        # A relative path names another file from another folder.
        path=str(location.absolute() if isinstance(location, Path) and path != ":memory:" else location),
        policy=policy or Policy(),
        blobs=store.blob_store() or blobs_of(path),
        **more,
    )


def bare_engine(
    store: EventStore,
    *,
    config_dir: Path | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    **more: Any,
) -> Engine:
    """Return an engine that has no models unless they are passed; enough to erase in a store."""
    parts: dict[str, Any] = {"embedder": None, "policy": Policy(), "indexes": IndexCache()}
    parts |= {"identity": IdentityFile(None), "user_file": IdentityFile(None), **more}
    if "counter" not in parts:
        parts["counter"] = _counter("estimate")
    return Engine(
        store=store, clock=clock or SystemClock(), ids=ids or RandomIds(), erasures=_erasures(config_dir), **parts
    )


def blobs_of(path: str | Path) -> BlobStore:
    """Return the blob store of a store in a file or in memory; a database stores blobs itself."""
    return MemoryBlobs() if str(path) == ":memory:" else FileBlobs(folder_of(path))


def _erasures(config_dir: Path | None) -> ErasureList | None:
    try:
        return FileErasures(config_dir or default_config_dir())
    except OSError:
        return None


def check_options(**given: Any) -> None:
    """Check the arguments of ``Memory.open`` that are no models; each that is not given is None.

    Raises:
        InvalidInput: one has another type; the message names it.
    """
    for name, read in _OPTIONS.items():
        if name in given and (given[name] is not None or read in (boolean, plain_text)):
            read(name, given[name])


def _file(name: str, value: Any) -> None:
    path = str(value) if isinstance(value, PathLike) else plain_text(name, value, "a path, as text or as a Path")
    require_well_formed(name, path)
    if is_blank(path):
        raise InvalidInput(f"{name} is a path, and this one is blank: leave it out")


def _maintenance(name: str, value: Any) -> None:
    if not isinstance(value, bool) and not callable(value):
        raise InvalidInput(f"{name} is True, False or a function, not {type(value).__name__}")


def _gates(name: str, value: Any) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, Mapping) or not all(
        isinstance(gate, str) and gate.isidentifier() and callable(check) for gate, check in value.items()
    ):
        raise InvalidInput(f"{name} are functions by the names of the gates, or a text that names plug-ins")


#: Parsers of the arguments of ``Memory.open`` that are no models.
_OPTIONS: Mapping[str, ArgumentReader] = {
    **dict.fromkeys(("create", "consent"), boolean),
    **dict.fromkeys(("identity", "user_file", "config_dir"), _file),
    "embedder_prefixes": plain_text,
    "embedder_timeout": duration,
    "gates": _gates,
    "maintenance": _maintenance,
}


def _check_parts(**given: Any) -> None:
    """Check that each part is a name, or an object with its method in ``_REQUIRED_METHODS``.

    Raises:
        InvalidInput: it is neither.
    """
    for name, method in _REQUIRED_METHODS.items():
        part = given.get(name)
        if (part is None and name != "counter") or (isinstance(part, str) and name in _NAMED):
            continue
        if isinstance(part, str | type) or not callable(getattr(plugins.GuardedPart(part, name), method, None)):
            raise InvalidInput(f"{name} is an object with a method `{method}`, as keepward.ports describes it")


def _guarded(part: Any, kind: str, choice: Any = None) -> Any:
    """Return a part that can raise ``ModelUnavailable`` only; one of ours is returned as it is."""
    name = choice.strip().partition(":")[0] if isinstance(choice, str) else ""
    is_ours = type(part).__module__.startswith("keepward.embedding.")
    return part if part is None or is_ours else plugins.GuardedPart(part, kind, name)


def _plugin_part(group: str, choice: str | Model | None) -> Model | None:
    """Return the part that a plug-in creates for a name; None for "none"."""
    if not isinstance(choice, str):
        return choice
    found: Model | None = None if choice.strip() in {"none", ""} else plugins.load(group, choice)
    return found


def _served_model(
    named: Callable[..., Model | None], choice: str | Model | None, part: str, config_dir: Path | None
) -> Model | None:
    """Return the model that a name chooses. Its key comes from an environment variable and goes to one server only."""
    if not isinstance(choice, str):
        return choice
    variable = f"KEEPWARD_{part.upper()}_KEY"
    key = os.environ.get(variable)
    try:
        found = named(choice, api_key=key)
    except ValueError as exc:
        if choice.strip().partition(":")[0] in plugins.installed_names(f"{part}s"):
            return _plugin_part(f"{part}s", choice)
        raise InvalidInput(str(exc)) from exc
    if key and choice.strip().startswith("http"):
        _bind_key(variable, key, choice, config_dir)
    return found


def _bind_key(variable: str, key: str, choice: str, config_dir: Path | None) -> None:
    """Bind a key to one host.

    Raises:
        InvalidInput: it is bound to another host.
    """
    server = parse_server_name(choice)
    host = urlsplit(server[0]).netloc if server else ""
    try:
        bound = host_of_key(config_dir or default_config_dir(), key, host)
    except OSError as exc:
        raise StoreUnavailable(f"the host of {variable} cannot be recorded; check the folder") from exc
    if bound != host:
        raise InvalidInput(
            f"{variable} belongs to {bound} and is sent to no other host; set the key of this server, or "
            "let it go with `keepward config --release-key`"
        )


def _counter(choice: str | TokenCounter) -> TokenCounter:
    if not isinstance(choice, str):
        return choice
    try:
        return choose_counter(choice)
    except ValueError as exc:
        raise InvalidInput(str(exc)) from exc


def trust_store_in(config_dir: Path | None) -> Anchor | None:
    """Return the trust store of a configuration folder, the user's own by default; None without a home folder."""
    try:
        return TrustStore(config_dir or default_config_dir())
    except OSError:
        # Without a home folder the store works unsealed, and status and verify say so.
        return None
