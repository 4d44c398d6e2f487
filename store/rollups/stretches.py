"""Stretches of time on the grid of five-minute buckets: merge, cut, subtract, and as an SQL condition."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from store.columns import Table
from store.manifest import Files
from store.rollups.tables import COARSE_S, FINE_S
from store.window import Window

Stretch = tuple[datetime, datetime]
"""[low, high) in naive UTC."""
FINE, COARSE = timedelta(seconds=FINE_S), timedelta(seconds=COARSE_S)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
"""No row is earlier."""


def floor(at: datetime, step: timedelta = FINE) -> datetime:
    """Return the start of the bucket that holds a time."""
    return at - (at - EPOCH) % step


def ceil(at: datetime, step: timedelta = FINE) -> datetime:
    """Return the first start of a bucket at or after a time."""
    return floor(at + step - timedelta(microseconds=1), step)


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Order stretches and join those that touch; empty ones are left out."""
    out: list[Stretch] = []
    for low, high in sorted(stretches):
        if low >= high:
            continue
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return out


def clipped(stretches: Iterable[Stretch], low: datetime, high: datetime) -> list[Stretch]:
    """Return what of the stretches lies within [low, high)."""
    return merged((max(a, low), min(b, high)) for a, b in stretches)


def without(stretches: Iterable[Stretch], taken: Iterable[Stretch]) -> list[Stretch]:
    """Return what of the stretches is in none of `taken`."""
    left = merged(stretches)
    for low, high in merged(taken):
        left = merged(part for a, b in left for part in ((a, min(b, low)), (max(a, high), b)))
    return left


def condition(column: str, stretches: Sequence[Stretch]) -> str:
    """Write that a column lies in one of the stretches."""
    if not stretches:
        return "false"
    bounds = f"{_literal(stretches[0][0])} <= {column} AND {column} < {_literal(stretches[-1][1])}"  # for zone maps
    if len(stretches) == 1:
        return f"({bounds})"
    each = " OR ".join(f"({column} >= {_literal(low)} AND {column} < {_literal(high)})" for low, high in stretches)
    return f"({bounds} AND ({each}))"


def files_of(table: Table, files: Files, stretches: Sequence[Stretch]) -> list[str]:
    """Return the sealed files of a table that overlap one of the stretches."""
    windows = (Window(low.replace(tzinfo=UTC), high.replace(tzinfo=UTC)) for low, high in stretches)
    return list(dict.fromkeys(path for window in windows for path in files(table, window)))


def _literal(at: datetime) -> str:
    return f"TIMESTAMP '{at!s}'"
