"""Telemetry: the log, metrics for Prometheus, and a span around each memory operation.

* A log line says what happened and how long it took: no content, query, memory id or traceback. JSON lines have
  ``at``, ``level``, ``action`` and the fields of the action, in that order.
* Labels of metrics are methods, documented paths and statuses; never an id, a name or a text.
* A span has the operation, the provider and the type of an error. ``traceparent`` of the caller is its parent; baggage
  is ignored. The exporter is configured outside, as usual.
* Without ``prometheus_client`` there are no metrics, without ``opentelemetry-api`` no spans.

Source: OpenTelemetry, semantic conventions for generative AI, memory operations.

Late imports: a program that does not need it starts faster, an extra may be missing.
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

#: Fields of a log line; other attributes of a record are left out.
LOG_FIELDS = ("method", "route", "status", "ms", "error", "place", "job", "outcome", "request")
#: Loggers and their levels.
_LOGGERS = {
    "keepward": logging.INFO,
    "uvicorn.error": logging.WARNING,
    "mcp": logging.WARNING,
    "asyncio": logging.ERROR,
}
#: Upper bounds of the histogram of durations, in seconds.
DURATION_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_OPERATION, _PROVIDER, _ERROR = "gen_ai.operation.name", "gen_ai.provider.name", "error.type"
#: Memory operation by the id of a route.
OPERATIONS: Mapping[str, str] = {
    name: operation
    for operation, names in {
        "search_memory": "core recall list_memories get facets activity sources lineage snapshot memory_block context",
        "upsert_memory": "remember remember_many import restore_export",
        "update_memory": "propose revise append move archive restore reinforce promote supersede merge approve "
        "approve_many amend rollback update_identity",
        "delete_memory": "forget forget_many forget_matching contain erase",
    }.items()
    for name in names.split()
}


class LogFormatter(logging.Formatter):
    """Formats a record as one line."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without a traceback."""
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
    """Write the log of this process to a stream (default stderr) during the block.

    With ``quiet``, only warnings and errors.
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
    """The metrics of one server."""

    def __init__(self, prometheus: Any) -> None:
        self._generate = prometheus.generate_latest
        # A separate registry: two servers in one process are not added up.
        self._registry = prometheus.CollectorRegistry()
        labels, own = ("method", "route", "status"), {"registry": self._registry}
        self._requests = prometheus.Counter("keepward_http_requests", "Number of requests.", labels, **own)
        self._seconds = prometheus.Histogram(
            "keepward_http_request_seconds", "Time to answer a request.", labels[:2], buckets=DURATION_BUCKETS_S, **own
        )
        self._depth = prometheus.Gauge("keepward_quarantine_depth", "Number of pending proposals.", **own)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self, memory: Memory) -> bytes:
        """Return all metrics, and the number of pending proposals that a handle may read."""
        from keepward.memory import request_context_of

        tenants = {memory.tenant, *(request_context_of(memory).store.tenants() if memory.actor.is_owner else ())}
        waiting = sum(memory.at(tenant=tenant).pending(limit=1).total for tenant in tenants)
        self._depth.set(waiting)
        counted: bytes = self._generate(self._registry)
        return counted


def create_metrics() -> Metrics | None:
    """Return new metrics; None if the package is not installed."""
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
    def start_span(self, operation: str, headers: Mapping[str, str]) -> Iterator[Callable[[int], None]]:
        """Open the span of an operation for a request with these headers; yield a function that records its status."""
        traced = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        with self._tracer.start_as_current_span(
            operation,
            attributes={_OPERATION: operation, _PROVIDER: "keepward"},
            context=self._propagator.extract(traced),
            kind=self._kind,
            # The message of an exception may quote sent values, so it is not recorded.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:

            def note(status: int) -> None:
                if status >= 400:
                    span.set_attribute(_ERROR, str(status))
                    span.set_status(self._failed)

            yield note


def create_tracer() -> Tracer | None:
    """Return a tracer; None if the package is not installed."""
    try:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ModuleNotFoundError:
        return None
    return Tracer(trace, TraceContextTextMapPropagator())
