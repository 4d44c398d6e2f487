"""From frames to the answer of `analyze latency`: groups, frames, signals, findings and notes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import polars as pl

from analytics import buckets, frames
from analytics.analysis import Inputs
from analytics.latency import FRAMES, P99, SHARE, WAIT, LatencyParams
from analytics.latency.cold import cold_rows
from analytics.latency.critical import critical_path
from analytics.latency.load import bins
from analytics.latency.paths import path_rows
from analytics.latency.segments import Tail, describe, tail_of
from analytics.latency.skew import straighten
from analytics.latency.stages import stage_rows
from analytics.latency.trees import grow
from analytics.latency.units import divide
from analytics.latency.waits import LEAST_REQUESTS, by_bucket, episodes, finding
from analytics.latency.words import notes, share_read
from analytics.result import Finding, Result, Status
from store.window import Window, format_duration

MEDIAN_REQUESTS = 5
"""Requests in the median bucket of queue_load: its mean wait then is more than one request's luck."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What one group of requests says: rows by frame, the ratio that the alert looks at, its findings."""

    labels: dict[str, str]
    requests: pl.DataFrame
    tail: Tail | None
    rows: dict[str, list[dict[str, Any]]]
    waiting: float | None
    findings: list[Finding]


def answer(inputs: Inputs, params: LatencyParams, window: Window) -> Result:
    """Answer over all groups. Status empty where there is neither a request, a trace nor a stage of an engine."""
    by = list(params.by)
    forest = straighten(grow(inputs["spans"]))
    path = critical_path(forest)
    wanted = {field: frozenset(v for f, v in params.where if f == field) for field, _ in params.where}
    units = divide(_read(inputs), forest, by, wanted)
    sizes = tuple(_bucket(units.rows, params, window, n) for n in (MEDIAN_REQUESTS, LEAST_REQUESTS))
    share = share_read(inputs)
    groups = [_examine(labels, part, params, window, sizes, share) for labels, part in frames.groups(units.rows, by)]
    labels = [name for name in by if name != "service"]
    rows = {name: [group.labels | row for group in groups for row in group.rows.get(name, ())] for name in FRAMES}
    rows["critical_path"] = path_rows(forest, path, units.rows, labels, only=bool(params.where))
    rows["engine_stages"] = stage_rows(inputs["stages"], window)
    rows["cold_starts"] = cold_rows(inputs["spans"], inputs["requests"], inputs["loads"])
    labelled = {"critical_path": labels, "engine_stages": [], "cold_starts": []}
    made = {name: frames.build(labelled.get(name, by), FRAMES[name], rows[name]) for name in FRAMES}
    some = any(frame.height for frame in made.values())
    return Result(
        analysis="latency",
        status=Status.OK if some else Status.REFUSED if inputs["requests"].height else Status.EMPTY,
        window=window,
        params=asdict(params),
        frames=made,
        samples=_samples(rows["segments"], groups, by),
        findings=tuple(one for group in groups for one in group.findings),
        notes=notes(inputs, units, forest.doubts, path.outlived, _told(groups), made, window)
        + _widths(units.rows, sizes),
    )


def _examine(
    labels: dict[str, str],
    part: pl.DataFrame,
    params: LatencyParams,
    window: Window,
    sizes: tuple[timedelta, ...],
    share: float,
) -> Examined:
    tail = tail_of(part, params.tau)
    load, growth = bins(part, window, sizes[0], share)
    waits = by_bucket(part, window, sizes[1])
    latest = waits.filter(pl.col("bucket") == 0)["ratio"]
    rows = {
        "segments": describe(part, tail),
        "queue_load": load,
        "queue_growth": [growth] if growth else [],
        "waits": waits.drop("bucket").to_dicts(),
    }
    found = [finding(labels, wait, part) for wait in episodes(waits, sizes[1])]
    return Examined(labels, part, tail, rows, latest[0] if latest.len() else None, found)


def _told(groups: Sequence[Examined]) -> list[tuple[dict[str, str], pl.DataFrame, Tail | None]]:
    return [(group.labels, group.requests, group.tail) for group in groups]


def _read(inputs: Inputs) -> pl.DataFrame:
    """Return the requests whose trees were read: all, or those of the traces in the share."""
    requests, spans = inputs["requests"].drop_nulls("ts"), inputs["spans"]
    whole = "share_read" not in spans.columns or not spans.height or (spans["share_read"] == 1.0).all()
    return requests if whole else requests.join(spans.select("trace_id").unique(), on="trace_id", how="semi")


def _bucket(rows: pl.DataFrame, params: LatencyParams, window: Window, at_least: int) -> timedelta:
    known = rows.drop_nulls("queue")
    return buckets.choose(known, window, at_least) if params.bucket == "auto" else buckets.named(params.bucket, window)


def _widths(rows: pl.DataFrame, sizes: tuple[timedelta, ...]) -> tuple[str, ...]:
    if rows["queue"].null_count() == rows.height:
        return ()
    narrow, wide = map(format_duration, sizes)
    return (f"buckets of {narrow} (queue_load) and {wide} (waits)",)


def _samples(segments: list[dict[str, Any]], groups: Sequence[Examined], by: list[str]) -> dict[str, pl.DataFrame]:
    labels = [*by, "segment"]
    kept = [{n: row[n] for n in labels} | {"value": row.get("share_of_p99")} for row in segments]
    tails = [{n: row[n] for n in labels} | {"value": row["p99_s"]} for row in segments]
    return {
        SHARE.name: frames.samples(labels, [row for row in kept if row["segment"] != "e2e"]),
        P99.name: frames.samples(labels, tails),
        WAIT.name: frames.samples(by, [group.labels | {"value": group.waiting} for group in groups]),
    }
