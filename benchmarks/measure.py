"""Timing and tables: medians of many short runs, ratios, and the exponent of growth."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence


def times(action: Callable[[int], object], count: int) -> list[float]:
    """Return the seconds that each of ``count`` calls took; the call gets its number."""
    taken = []
    for number in range(count):
        start = time.perf_counter()
        action(number)
        taken.append(time.perf_counter() - start)
    return taken


def p50(taken: Sequence[float]) -> float:
    """Return the median, in milliseconds."""
    return statistics.median(taken) * 1_000


def p95(taken: Sequence[float]) -> float:
    """Return the 95th percentile, in milliseconds."""
    return sorted(taken)[int(0.95 * (len(taken) - 1))] * 1_000


def growth(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return b of the least-squares fit ``value = a * size ** b``."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    over = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return over / sum((x - mean_x) ** 2 for x in xs)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table in Markdown."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("| " + " | ".join("---" for _ in header) + " |")
    for row in rows:
        print("| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |")
