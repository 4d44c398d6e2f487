"""Rows of the frames and samples of the signals, per group."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from analytics.drivers import unit_of
from analytics.p99 import ABOVE, BASELINE, FAR_ABOVE, LATENCY, RATIO, P99Params
from analytics.p99.group import FITTED_ROWS, Group
from analytics.p99.model import Share
from analytics.p99.windows import LEAST_REQUESTS, episodes
from analytics.p99.words import unit_of_target
from analytics.result import Signal
from analytics.stats.smoothed import Array

Row = dict[str, Any]
RESIDUALS = 2_000
TAIL = 20


def _coefficients(group: Group, params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    model = group.model
    if model is None:
        return []
    unit = unit_of_target(params.target)
    intercept: Row = {"term": "(intercept)", "role": "intercept", "estimate": model.coefficients[0], "unit": unit}
    intercept |= {"ci_low": model.low[0], "ci_high": model.high[0], "per": ""}
    rows = [intercept]
    for i, row in enumerate(_slopes(group, model.coefficients, model.low, model.high)):
        role = "covariate" if i in group.selection.adjusted else "driver"
        rows.append(row | {"role": role, "unit": unit, "per": unit_of(row["term"], group.units) or "1"})
    return rows


def _slopes(group: Group, coefficients: Array, low: Array, high: Array) -> list[Row]:
    """Slope and effect of each driver, with limits; the arrays begin with the intercept's."""
    matrix = group.selection.matrix
    spread = np.quantile(matrix, 0.9, axis=0) - np.quantile(matrix, 0.1, axis=0)
    limits = {"estimate": coefficients[1:], "ci_low": low[1:], "ci_high": high[1:]}
    effects = {"effect": coefficients[1:], "effect_low": low[1:], "effect_high": high[1:]}
    return [
        {"term": name}
        | {key: values[i] for key, values in limits.items()}
        | {key: values[i] * spread[i] for key, values in effects.items()}
        for i, name in enumerate(group.selection.names)
    ]


def _quantiles(group: Group, _params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    return [
        {"tau": at.tau, "n_tail": at.n_tail} | row
        for at in (group.model.curve if group.model else ())
        for row in _slopes(group, at.coefficients, at.low, at.high)
    ]


def _change(group: Group, _params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    split = group.split
    if split is None:
        return []
    whole = split.total.change
    share = abs(whole) > 1e-3 * abs(split.before)
    return [
        {"part": part.name, "change": part.change, "ci_low": part.low, "ci_high": part.high}
        | {"share": part.change / whole if share else None, "before": part.before, "after": part.after}
        for part in (*split.parts, split.rest, split.total)
    ]


def _contributions(group: Group, _params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    found: Iterable[Share] = group.model.shares if group.model else ()
    ranked = sorted(found, key=lambda share: -share.share)
    return [{"driver": s.driver, "share": s.share, "ci_low": s.low, "ci_high": s.high} for s in ranked]


def _fit(group: Group, params: P99Params, dropped: Mapping[str, int]) -> list[Row]:
    model, selection = group.model, group.selection
    reasons = dict(selection.dropped)
    if group.rows.height > FITTED_ROWS and params.method == "qr":
        every = -(-group.rows.height // FITTED_ROWS)
        reasons["not in the sample that is fitted"] = group.rows.height - -(-group.rows.height // every)
    left_out = group.rows.height - selection.rows.height if params.method == "qr" else 0
    row: Row = {"method": params.method, "tau": selection.tau, "n": selection.rows.height}
    row |= {"bucket_s": group.size.total_seconds(), "dropped": left_out + sum(dropped.values())}
    row |= {"dropped_reasons": json.dumps(dict(dropped) | reasons), "verdict": selection.refusal or "not fitted"}
    if model is not None:
        row |= {"n": model.n, "n_tail": model.n_tail, "n_eff": model.n_eff, "r1": model.r1, "r1_low": model.r1_low}
        row |= {"r1_high": model.r1_high, "coverage": model.coverage, "residual_lag1": model.lag1}
        row |= {"r1_covariates": model.r1_covariates, "coverage_error": model.coverage_error}
        row |= {"curvature": model.curvature, "verdict": model.verdict}
    return [row]


def _vif(group: Group, _params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    return [{"driver": name, "vif": value} for name, value in group.selection.inflation]


def _windows(group: Group, _params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    return group.table.drop("bucket").to_dicts()


def _residuals(group: Group, _params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    if group.model is None:
        return []
    rows = group.selection.rows.select("ts", pl.Series("fitted", group.model.fitted), pl.col("y"))
    rows = rows.select("ts", "fitted", (pl.col("y") - pl.col("fitted")).alias("residual"))
    return _thinned(rows).to_dicts()


def _thinned(rows: pl.DataFrame) -> pl.DataFrame:
    """At most RESIDUALS rows: the most extreme quarter of that on each side, and evenly spaced ones between."""
    if rows.height <= RESIDUALS:
        return rows
    order = rows.with_row_index("_i").sort("residual")["_i"].to_numpy()
    edge = RESIDUALS // 4
    between = order[edge:-edge]
    even = np.sort(between)[:: -(-between.size // (RESIDUALS - 2 * edge))]
    return rows[np.sort(np.concatenate([order[:edge], even, order[-edge:]]))]


def _tail(group: Group, _params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    names = list(group.selection.names)
    top = group.rows.top_k(TAIL, by="y").sort("y", descending=True)
    if group.model is not None and "_row" in group.selection.rows.columns:
        fitted = group.selection.rows.select("_row", pl.Series("fitted", group.model.fitted))
        top = top.join(fitted, on="_row", how="left", maintain_order="left")
    return [
        {
            "ts": row["ts"],
            "trace_id": row["trace_id"],
            "span_id": row["span_id"],
            "value": row["y"],
            "fitted": row.get("fitted"),
            "drivers": json.dumps({name: row[name] for name in names}),
        }
        for row in top.iter_rows(named=True)
    ]


def _episodes(group: Group, _params: P99Params, _dropped: Mapping[str, int]) -> list[Row]:
    rows: list[Row] = []
    for episode in episodes(group.table, ABOVE, group.size):
        worst = FAR_ABOVE if FAR_ABOVE.holds(episode.ratio) else ABOVE
        row: Row = {"since": episode.since, "until": None if episode.lasting else episode.until}
        row |= {"severity": str(worst.severity), "n": episode.n, "p99": episode.p99}
        row |= {"baseline": episode.baseline, "ratio": episode.ratio}
        rows.append(row | dict(group.moves.get(episode.since, {})))
    return rows


ROWS: Mapping[str, Callable[[Group, P99Params, Mapping[str, int]], list[Row]]] = {
    "coefficients": _coefficients,
    "contributions": _contributions,
    "quantiles": _quantiles,
    "change": _change,
    "fit": _fit,
    "vif": _vif,
    "windows": _windows,
    "residuals": _residuals,
    "tail": _tail,
    "episodes": _episodes,
}


def samples(signal: Signal, groups: list[Group], params: P99Params) -> list[Row]:
    """Return the samples of a signal. Latencies only for targets in seconds, as the metric's name says."""
    if signal in (LATENCY, BASELINE) and unit_of_target(params.target) != "s":
        return []
    rows: list[Row] = []
    for group in groups:
        labels: Row = group.labels | {"target": params.target}
        if signal in (LATENCY, BASELINE, RATIO):
            rows.append(labels | {"value": latest(group)[signal.name]})
        else:
            shares = group.model.shares if group.model else ()
            rows += [labels | {"driver": s.driver, "value": s.share} for s in shares]
    return rows


def latest(group: Group) -> dict[str, float | None]:
    """Signal values of the latest window; null where it has too few requests."""
    row = group.table.row(-1, named=True)
    enough = row["bucket"] == 0 and row["n"] >= LEAST_REQUESTS
    return {
        LATENCY.name: row["p99"] if enough else None,
        BASELINE.name: row["baseline"],
        RATIO.name: row["ratio"] if enough else None,
    }
