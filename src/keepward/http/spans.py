"""Spans: one around each memory operation, by OpenTelemetry's GenAI conventions.

Invariants
(1) A span carries the operation's name, the provider and the kind of error; never a query, a text, an id or a name.
(2) Without the package ``opentelemetry-api`` there are none. Where they go is configured outside, as usual.
(3) A caller that is traced itself (``traceparent``) is their parent; its baggage is not read.

Source: OpenTelemetry, semantic conventions for generative AI, memory operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
ERROR = "error.type"
#: Operation by method and path; what is not here is no operation on memories.
OPERATIONS: dict[tuple[str, str], str] = {
    ("GET", "/memory/core"): "search_memory",
    ("GET", "/memory/search"): "search_memory",
    ("GET", "/memory/items"): "search_memory",
    ("GET", "/memory/items/{id}"): "search_memory",
    ("GET", "/memory/snapshot"): "search_memory",
    ("POST", "/memory/block"): "search_memory",
    ("POST", "/memory/compile"): "search_memory",
    ("POST", "/memory/items"): "upsert_memory",
    ("POST", "/memory/items/batch"): "upsert_memory",
    ("PUT", "/memory/keys/{key}"): "upsert_memory",
    ("POST", "/memory/import"): "upsert_memory",
    ("POST", "/memory/restore-export"): "upsert_memory",
    ("POST", "/memory/edit"): "update_memory",
    ("PATCH", "/memory/items/{id}"): "update_memory",
    ("POST", "/memory/items/{id}/append"): "update_memory",
    ("POST", "/memory/items/{id}/move"): "update_memory",
    ("POST", "/memory/items/{id}/archive"): "update_memory",
    ("POST", "/memory/items/{id}/restore"): "update_memory",
    ("POST", "/memory/items/{id}/reinforce"): "update_memory",
    ("POST", "/memory/items/{id}/promote"): "update_memory",
    ("POST", "/memory/items/{id}/supersede"): "update_memory",
    ("POST", "/memory/items/merge"): "update_memory",
    ("POST", "/memory/quarantine/{id}/approve"): "update_memory",
    ("POST", "/memory/quarantine/approve"): "update_memory",
    ("POST", "/memory/rollback/{id}"): "update_memory",
    ("POST", "/memory/drafts/{id}/finish"): "update_memory",
    ("DELETE", "/memory/items/{id}"): "delete_memory",
    ("POST", "/memory/items/forget"): "delete_memory",
    ("POST", "/memory/contain"): "delete_memory",
    ("POST", "/memory/erase"): "delete_memory",
}


class Spans:
    """The spans of one server."""

    def __init__(self, trace: Any, propagator: Any) -> None:
        self._tracer, self._propagator = trace.get_tracer("keepward"), propagator
        self._failed, self._kind = trace.Status(trace.StatusCode.ERROR), trace.SpanKind.SERVER

    @contextmanager
    def of(self, operation: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """Open the span of an operation for the time of a call with these headers."""
        attributes = {OPERATION: operation, PROVIDER: "keepward"}
        traced = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        options: dict[str, Any] = {
            "context": self._propagator.extract(traced),
            "kind": self._kind,
            # An exception's message may quote what was sent, so nothing of it is recorded (1).
            "record_exception": False,
            "set_status_on_exception": False,
        }
        with self._tracer.start_as_current_span(operation, attributes=attributes, **options) as span:
            yield Span(span, self._failed)


class Span:
    """One open span."""

    def __init__(self, span: Any, failed: Any) -> None:
        self._span, self._failed = span, failed

    def answered(self, status: int) -> None:
        """Note how a call was answered."""
        if status >= 400:
            self._span.set_attribute(ERROR, str(status))
            self._span.set_status(self._failed)


def spans() -> Spans | None:
    """Return what opens spans; None where the package is not installed."""
    try:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ModuleNotFoundError:
        return None
    return Spans(trace, TraceContextTextMapPropagator())


def operation_of(method: str, path: str) -> str | None:
    """Return the operation of a route; the name of a parameter in its path does not matter."""
    parts = ["{id}" if part.startswith("{") and part != "{key}" else part for part in path.split("/")]
    return OPERATIONS.get((method, "/".join(parts)))
