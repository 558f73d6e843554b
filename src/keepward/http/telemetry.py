"""Telemetry: the server's log, its metrics for Prometheus, and a span around each memory operation.

Invariants
(1) A line of the log says what happened and how long it took; no content, no query, no id of a memory, no trace.
    JSON lines have ``at``, ``level``, ``action`` and the facts of the action, in that order.
(2) Labels of metrics are methods, paths as they are documented, and statuses; never an id, a name or a text.
(3) A span carries the operation's name, the provider and the kind of error, nothing else. A caller that is traced
    itself (``traceparent``) is its parent; its baggage is not read. Where spans go is configured outside, as usual.
(4) Without ``prometheus_client`` nothing is counted, without ``opentelemetry-api`` there are no spans.

Source: OpenTelemetry, semantic conventions for generative AI, memory operations.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from keepward.memory import Memory

#: Facts that a line may carry, by name; anything else of a record stays where it is.
LOG_FIELDS = ("method", "route", "status", "ms", "error", "place", "job", "outcome", "request")
#: Loggers that are listened to, and from which level on; those of others for their warnings, asyncio for errors.
_LOGGERS = {
    "keepward": logging.INFO,
    "uvicorn.error": logging.WARNING,
    "mcp": logging.WARNING,
    "asyncio": logging.ERROR,
}
#: Upper bounds of the histogram of durations, in seconds.
DURATION_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_OPERATION, _PROVIDER, _ERROR = "gen_ai.operation.name", "gen_ai.provider.name", "error.type"
#: Operation by the id of a route; what is not here is no operation on memories.
OPERATIONS: Mapping[str, str] = {
    name: operation
    for operation, names in {
        "search_memory": "core recall list_memories get facets activity sources lineage snapshot memory_block context",
        "upsert_memory": "remember remember_many update_by_key import restore_export",
        "update_memory": "propose revise append move archive restore reinforce promote supersede merge approve "
        "approve_many amend rollback update_identity",
        "delete_memory": "forget forget_many forget_matching contain erase",
    }.items()
    for name in names.split()
}


class LogFormatter(logging.Formatter):
    """One record as one line."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a trace that came along is left out (1)."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        facts = {name: getattr(record, name) for name in LOG_FIELDS if hasattr(record, name)}
        text, level = record.getMessage().replace("\n", " "), record.levelname.lower()
        if self._as_json:
            action = getattr(record, "action", None) or record.name
            line = {"at": at, "level": level, "action": action, **(facts or {"message": text})}
            return json.dumps(line, default=str)
        took = f" {facts['ms']} ms" if "ms" in facts else ""
        return f"{at} {level} {text}{took}"


@contextmanager
def logging_to(stream: TextIO | None = None, *, as_json: bool, quiet: bool = False) -> Iterator[None]:
    """Write the log of this process to a stream, stderr by default, for as long as the block lasts.

    With ``quiet`` warnings and errors alone.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogFormatter(as_json=as_json))
    before = []
    for name, level in _LOGGERS.items():
        logger = logging.getLogger(name)
        before.append((logger, logger.level, logger.propagate, list(logger.handlers)))
        logger.setLevel(max(level, logging.WARNING) if quiet else level)
        logger.handlers, logger.propagate = [handler], False
    try:
        yield
    finally:
        for logger, level, propagate, handlers in before:
            logger.setLevel(level)
            logger.handlers, logger.propagate = handlers, propagate


class Metrics:
    """The counts of one server."""

    def __init__(self, prometheus: Any) -> None:
        self._generate = prometheus.generate_latest
        # A registry of its own: two servers in one process do not add up.
        self._registry = prometheus.CollectorRegistry()
        labels, own = ("method", "route", "status"), {"registry": self._registry}
        self._requests = prometheus.Counter("keepward_http_requests", "Requests answered.", labels, **own)
        self._seconds = prometheus.Histogram(
            "keepward_http_request_seconds", "Time to answer a request.", labels[:2], buckets=DURATION_BUCKETS_S, **own
        )
        self._depth = prometheus.Gauge("keepward_quarantine_depth", "Proposals that wait for a person.", **own)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self, memory: Memory) -> bytes:
        """Return all counts, and how many proposals wait in what a handle may read."""
        from keepward.memory import request_context_of

        tenants = {memory.tenant, *(request_context_of(memory).store.tenants() if memory.actor.is_owner else ())}
        waiting = sum(memory.at(tenant=tenant).pending(limit=1).total for tenant in tenants)
        self._depth.set(waiting)
        counted: bytes = self._generate(self._registry)
        return counted


def create_metrics() -> Metrics | None:
    """Return fresh counts; None where the package is not installed."""
    try:
        import prometheus_client
    except ModuleNotFoundError:
        return None
    return Metrics(prometheus_client)


class Tracer:
    """The spans of one server."""

    def __init__(self, trace: Any, propagator: Any) -> None:
        self._tracer, self._propagator = trace.get_tracer("keepward"), propagator
        self._failed, self._kind = trace.Status(trace.StatusCode.ERROR), trace.SpanKind.SERVER

    @contextmanager
    def of(self, operation: str, headers: Mapping[str, str]) -> Iterator[Callable[[int], None]]:
        """Open the span of an operation for the time of a call with these headers; yield what notes its status."""
        traced = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        with self._tracer.start_as_current_span(
            operation,
            attributes={_OPERATION: operation, _PROVIDER: "keepward"},
            context=self._propagator.extract(traced),
            kind=self._kind,
            # An exception's message may quote what was sent, so nothing of it is recorded (3).
            record_exception=False,
            set_status_on_exception=False,
        ) as span:

            def note(status: int) -> None:
                if status >= 400:
                    span.set_attribute(_ERROR, str(status))
                    span.set_status(self._failed)

            yield note


def create_tracer() -> Tracer | None:
    """Return what opens spans; None where the package is not installed."""
    try:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ModuleNotFoundError:
        return None
    return Tracer(trace, TraceContextTextMapPropagator())
