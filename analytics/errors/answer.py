"""Put the answer of `errors` together."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

import polars as pl

from analytics import buckets, frames
from analytics.analysis import Inputs
from analytics.errors import BURST, ERROR_BURST, FRAMES, SILENT, ErrorsParams, sampling
from analytics.errors import findings as said
from analytics.errors.cells import Cells, cells
from analytics.errors.episodes import episodes, outages
from analytics.errors.meanings import meaning
from analytics.errors.outcomes import Outcomes, outcomes
from analytics.result import Result, Status
from analytics.stats.proportion import wilson
from store.window import Window, format_duration, format_time

LEAST_EXCESS, LEAST_SHARE = 5.0, 0.01
"""Errors more than expected, and their share of the requests, below which the latest bucket is no burst to act on."""
ROLLED = "from rollups of {size}: no example traces, aborts of clients and cut streams are not told apart"


def answer(inputs: Inputs, params: ErrorsParams, window: Window) -> Result:
    """Run the whole analysis on what was read."""
    by = list(params.by)
    sampling.tiers(params)
    found = outcomes(inputs, params, window)
    if found.counts.is_empty():
        note = f"no model requests in {window}"
        return Result("errors", Status.EMPTY, window, asdict(params), frames.empty(by, FRAMES), notes=(note,))
    tested = cells(found, params, window)
    merged = episodes(tested, found.size, buckets.end_of(window))
    out = outages(found, by, window)
    burst_values = _latest(tested, by)
    failing = [row for row in out if row["kind"] == "failing"]
    silent_values = _silent(found, by, failing, window)
    advice = sampling.advice(found, params, window)
    lasting = {name: value for name, value in burst_values.items() if value is not None and ERROR_BURST.holds(value)}
    made = {
        "cells": _shaped(tested.frame.filter((pl.col("errors") > 0) | pl.col("significant")), by, "cells"),
        "top": _top(found, by),
        "episodes": frames.build(by, FRAMES["episodes"], merged.to_dicts()),
        "outages": frames.build(by, FRAMES["outages"], out),
        "exemplars": _exemplars(found, tested, params),
        "sampling": frames.build((), FRAMES["sampling"], advice),
        "sampling_policy": frames.build((), FRAMES["sampling_policy"], [{"yaml": sampling.policy(advice)}]),
    }
    bursts = said.bursts(merged, by, found, lasting, buckets.end_of(window))
    return Result(
        analysis="errors",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames=made,
        samples={
            BURST.name: frames.samples([*by, "code"], [_labels(by, n) | {"value": v} for n, v in burst_values.items()]),
            SILENT.name: frames.samples(by, [_labels(by, n) | {"value": v} for n, v in silent_values.items()]),
        },
        findings=(*said.outages(failing, by, silent_values), *bursts),
        notes=(*_basis(found, tested), *tested.notes, *_silences(out, by)),
    )


def _labels(by: list[str], name: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip([*by, "code"], name, strict=False))


def _basis(found: Outcomes, tested: Cells) -> list[str]:
    total, failed = int(found.counts["n"].sum()), int(found.counts.drop_nulls("code")["n"].sum())
    size = format_duration(found.size)
    basis = f"{total} requests, {failed} with an error, in buckets of {size}; {tested.frame.height} cells tested"
    return [basis, *([ROLLED.format(size=size)] if found.rolled else [])]


def _shaped(frame: pl.DataFrame, by: list[str], name: str) -> pl.DataFrame:
    rated = (
        frame.drop("bucket")
        .rename({"ts": "bucket"})
        .with_columns((pl.col("errors") / pl.col("requests")).alias("rate"))
    )
    made = rated.sort("bucket").select(*by, *(pl.col(c.name).cast(c.kind.polars()) for c in FRAMES[name]))
    return frames.finite(made)


def _top(found: Outcomes, by: list[str]) -> pl.DataFrame:
    keys = [*by, "cloud"]
    totals = found.counts.group_by(keys).agg(pl.col("n").sum().alias("requests"))
    counted = found.counts.drop_nulls("code").group_by([*keys, "code"]).agg(pl.col("n").sum().alias("errors"))
    counted = counted.join(totals, on=keys, how="left")
    all_errors = (
        counted.select(pl.col("errors").sum().over(keys)).to_series()
        if counted.height
        else pl.Series([], dtype=pl.Int64)
    )
    low, high = wilson(counted["errors"].to_numpy(), all_errors.to_numpy())
    rows = counted.with_columns(
        (pl.col("errors") / all_errors).alias("share"),
        (pl.col("errors") / pl.col("requests")).alias("rate"),
        pl.Series("share_low", low, pl.Float64),
        pl.Series("share_high", high, pl.Float64),
    ).sort(*keys, "errors", "code", descending=[*(False for _ in keys), True, False])
    listed = [row | {"meaning": meaning(row["code"])} for row in rows.to_dicts()]
    return frames.build(by, FRAMES["top"], listed)


def _exemplars(found: Outcomes, tested: Cells, params: ErrorsParams) -> pl.DataFrame:
    by = list(params.by)
    hot = tested.frame.filter(pl.col("significant")).select(*tested.keys, "code", "meaning", "bucket", "ts")
    if found.rolled or hot.is_empty() or not params.examples:
        return frames.build(by, FRAMES["exemplars"], ())
    rows = found.requests.with_columns(pl.col("cloud_provider").alias("cloud"), pl.col("cloud_region").alias("region"))
    key = [*tested.keys, "code", "bucket"]
    joined = rows.drop("ts").join(hot.unique(key), on=key).drop_nulls("trace_id")
    kept = joined.group_by(key, maintain_order=True).head(params.examples).drop("bucket").rename({"ts": "bucket"})
    return kept.sort("bucket").select(*by, *(pl.col(c.name).cast(c.kind.polars()) for c in FRAMES["exemplars"]))


def _latest(tested: Cells, by: list[str]) -> dict[tuple[str, ...], float | None]:
    """Return the shrunk ratio of each label set and code in the latest bucket: the greatest over its places."""
    material = pl.col("significant") & (pl.col("errors") - pl.col("expected") >= LEAST_EXCESS)
    material &= pl.col("errors") - pl.col("expected") >= LEAST_SHARE * pl.col("requests")
    value = pl.when(material).then(pl.col("shrunk_ratio"))
    now = tested.frame.filter(pl.col("bucket") == 0)
    rows = (
        now.with_columns(value.alias("value")).group_by([*by, "code"], maintain_order=True).agg(pl.col("value").max())
    )
    return {tuple(row[:-1]): row[-1] for row in rows.iter_rows()}


def _silent(
    found: Outcomes, by: list[str], failing: list[dict[str, Any]], window: Window
) -> dict[tuple[str, ...], float]:
    """Return the seconds since the last success of each label set that fails now; 0 for the others."""
    end: datetime = buckets.end_of(window)
    names = found.moments.select(by).unique(maintain_order=True).rows() if by else [()]
    lasting = [row for row in failing if row["end"] is None]
    since = {tuple(row[label] for label in by): (end - row["start"]).total_seconds() for row in lasting}
    return {name: since.get(name, 0.0) for name in names}


def _silences(out: list[dict[str, Any]], by: list[str]) -> list[str]:
    """Say which label sets stopped sending: no alert, since a service may just have been switched off."""
    notes = []
    for row in (row for row in out if row["kind"] == "silent"):
        who = ", ".join(row[label] or "(none)" for label in by) or "any service"
        since = format_time(row["start"].replace(microsecond=0))
        notes.append(f"no request to {who} since {since}: at its usual rate {row['overdue']:.0f} are overdue")
    return notes
