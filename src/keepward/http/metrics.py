"""Metrics: what the server does, in numbers, for Prometheus.

Invariants
(1) Labels are methods, paths as they are documented, and statuses; never an id, a name or a text.
(2) Without the package ``prometheus_client`` nothing is counted, and `/metrics` says which extra to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepward.http.problems import Problem

if TYPE_CHECKING:
    from keepward.app import Memory

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Upper bounds of the histogram of durations, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Meters:
    """The counts of one server."""

    def __init__(self, prometheus: Any) -> None:
        self._generate = prometheus.generate_latest
        # A registry of its own: two servers in one process do not add up.
        self._registry = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "keepward_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = prometheus.Histogram(
            "keepward_http_request_seconds",
            "Time to answer a request.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self._registry,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self, memory: Memory) -> bytes:
        """Return all counts, and how many proposals wait in what a handle may read."""
        tenants = {memory.tenant, *(memory.tenants() if memory.actor.is_owner else ())}
        waiting = sum(len(memory.at(tenant=tenant).pending()) for tenant in tenants)
        depth = (
            "# HELP keepward_quarantine_depth Proposals that wait for a person.\n"
            "# TYPE keepward_quarantine_depth gauge\n"
            f"keepward_quarantine_depth {waiting}\n"
        )
        counted: bytes = self._generate(self._registry)
        return counted + depth.encode("ascii")


def meters() -> Meters | None:
    """Return fresh counts; None where the package is not installed."""
    try:
        import prometheus_client
    except ModuleNotFoundError:
        return None
    return Meters(prometheus_client)


def not_installed() -> Problem:
    """Return the problem of a server without the package."""
    return Problem(501, "not_installed", "this server counts nothing: install keepward[metrics] and start it again")
