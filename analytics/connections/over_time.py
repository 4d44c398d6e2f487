"""Connections of one group over time: a row per bucket, and one for the whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.connections.concurrency import in_progress
from analytics.connections.handshakes import Time, share, usual
from store.window import Window

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Group:
    """One service and side: rows as of `opened.connected`, its handshakes, and what share of the rows was read."""

    labels: Mapping[str, str]
    rows: pl.DataFrame
    handshakes: pl.DataFrame
    share_read: float
    usual_s: float | None
    """Mean handshake of a connection, else that of the other groups."""

    @property
    def known(self) -> bool:
        """Whether any row says something of its connection."""
        return int(self.rows["opens"].count()) > 0


@dataclass(frozen=True, slots=True)
class Buckets:
    """Counts per bucket; nan where not knowable."""

    starts: tuple[datetime, ...]
    rows: list[dict[str, Any]]
    requests: Array
    known: Array
    opened: Array


def seconds_of(ts: pl.Series, origin: datetime) -> Array:
    """Seconds after the origin."""
    return np.asarray((ts - origin).dt.total_microseconds().to_numpy() / 1e6, dtype=np.float64)


def edges_of(first: datetime, end: datetime, size: timedelta) -> list[datetime]:
    """Bounds of buckets back from the end to the first row."""
    n = max(-((first - end) // size), 1)
    return [end - size * back for back in range(n, -1, -1)]


def over_time(group: Group, window: Window, size: timedelta) -> Buckets:
    """Count what each bucket holds."""
    rows, end = group.rows, window.end.replace(tzinfo=None)
    first = rows["ts"][0]
    bounds = edges_of(first, end, size)
    edges = np.array([(at - bounds[0]).total_seconds() for at in bounds])
    at = np.clip(np.searchsorted(edges, seconds_of(rows["ts"], bounds[0]), side="right") - 1, 0, edges.size - 2)
    n, scale = edges.size - 1, 1.0 / group.share_read

    def count(mask: pl.Series) -> Array:
        return np.asarray(np.bincount(at[mask.fill_null(value=False).to_numpy()], minlength=n) * scale)

    requests = count(rows["request"])
    stated = count(rows["opens"].is_not_null())
    known = count(rows["request"] & rows["opens"].is_not_null())
    opened = np.where(stated > 0, count(rows["opens"]), np.nan)
    connections = np.where(
        stated > 0, (_distinct(rows["session"], at, n) + count(rows["opens"] & rows["session"].is_null())), np.nan
    )
    if group.share_read < 1:
        connections[:] = np.nan
    mean, peak, busy = _concurrency(rows, bounds[0], edges)
    held = _held(group, bounds[0], edges)
    made = [
        dict(group.labels)
        | {"ts": bounds[i], "concurrency": mean[i] * scale, "requests": round(requests[i])}
        | {"concurrency_peak": int(peak[i]) if group.share_read == 1 else None}
        | {"connections": _whole(connections[i]), "opened": _whole(opened[i])}
        | {"reuse": known[i] / opened[i] if opened[i] > 0 else None}
        | _share(Time(busy[i], *held[i], opened=opened[i] / scale if opened[i] == opened[i] else None), group)
        for i in range(n)
    ]
    return Buckets(tuple(bounds[:-1]), made, requests, known, opened)


def _distinct(session: pl.Series, at: NDArray[np.intp], n: int) -> Array:
    frame = pl.DataFrame({"session": session, "at": at}).drop_nulls().unique()
    return np.asarray(np.bincount(frame["at"].to_numpy(), minlength=n), dtype=np.float64)


def _concurrency(rows: pl.DataFrame, origin: datetime, edges: Array) -> tuple[Array, NDArray[np.int64], Array]:
    """Mean and peak of requests in progress, and seconds of the requests that begin in each bucket."""
    timed = rows.filter(pl.col("request"), pl.col("seconds").is_not_null())
    start, seconds = seconds_of(timed["ts"], origin), timed["seconds"].to_numpy()
    mean, peak = in_progress(start, seconds, edges)
    at = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, edges.size - 2)
    return mean, peak, np.asarray(np.bincount(at, weights=seconds, minlength=edges.size - 1))


def _held(group: Group, origin: datetime, edges: Array) -> list[tuple[float, float, int]]:
    """Seconds of handshakes within and beside the time of requests, and how many connections they are of."""
    events, n = group.handshakes, edges.size - 1
    at = np.clip(np.searchsorted(edges, seconds_of(events["ts"], origin), side="right") - 1, 0, n - 1)
    placed = events.with_columns(pl.Series("at", at, pl.Int64))
    sums = placed.group_by("at").agg(
        pl.col("seconds").filter("within").sum().alias("within_s"),
        pl.col("seconds").filter(~pl.col("within")).sum().alias("beside_s"),
        pl.col("connection").n_unique().alias("connections"),
    )
    found = {row[0]: row[1:] for row in sums.iter_rows()}
    return [found.get(i, (0.0, 0.0, 0)) for i in range(n)]


def _share(time: Time, group: Group) -> dict[str, Any]:
    found, basis = share(time, group.usual_s, borrowed=not group.handshakes.height)
    return {"handshake_share": found, "handshake_basis": basis}


def _whole(value: float) -> int | None:
    return round(value) if value == value else None


def summary(group: Group, window: Window) -> dict[str, Any]:
    """Row of the frame `summary`."""
    rows, scale = group.rows, 1.0 / group.share_read
    asked = rows.filter("request")
    known = asked.filter(pl.col("opens").is_not_null()).height
    opened = int(rows["opens"].sum()) if group.known else None
    flagged = int(rows.filter(pl.col("session").is_null())["opens"].sum() or 0)
    connections = rows["session"].drop_nulls().n_unique() + flagged if group.known else None
    if group.share_read < 1:
        connections = None
    per = opened if connections is None else connections
    version = asked["network.protocol.version"].drop_nulls()
    events, first = group.handshakes, rows["ts"][0]
    end = window.end.replace(tzinfo=None)
    edges = np.array([0.0, max((end - first).total_seconds(), 1e-6)])
    mean, peak, busy = _concurrency(rows, first, edges)
    (held,) = _held(group, first, edges)
    return dict(group.labels) | {
        "requests": round(asked.height * scale), "unknown": round((asked.height - known) * scale),
        "connections": connections, "opened": None if opened is None else round(opened * scale),
        "reuse": known / per if per else None, "basis": "; ".join(sorted(rows["basis"].drop_nulls().unique())) or None,
        "multiplexed": int(version.str.contains(r"^[23]").sum()) / version.len() if version.len() else None,
        "handshakes": int(events["connection"].n_unique()),
        "handshake_mean_s": usual(events), "concurrency": float(mean[0]) * scale,
        "concurrency_peak": int(peak[0]) if group.share_read == 1 else None,
    } | _share(Time(float(busy[0]), *held, opened=opened), group)  # fmt: skip
