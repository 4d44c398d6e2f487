"""One set of labels: its requests fitted and cut into windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from analytics import buckets
from analytics.p99 import P99Params
from analytics.p99.model import Model, fit_requests
from analytics.p99.selection import Selection, select
from analytics.p99.windowed import LEAST_WINDOWS, fit_windows, windowed
from analytics.p99.windows import by_window
from store.errors import UsageError
from store.window import Window, format_duration

if TYPE_CHECKING:
    from analytics.p99.change import Change

MEDIAN_REQUESTS = 50
"""Requests that the median window should hold: of fewer, the P99 is the maximum."""
FITTED_ROWS = 200_000
"""Requests that a fit is on, at most: 2,000 of them beyond P99, so that blocks of time make the error, not rows."""


@dataclass(frozen=True, slots=True)
class Group:
    """Everything found for one set of labels; `rows` are its requests, `table` its windows.

    `units` are those that its drivers' metrics state; `moves` says of each episode, by its start, which driver moved
    most; `split` is the change between two parts of the window.
    """

    labels: dict[str, str]
    rows: pl.DataFrame
    size: timedelta
    table: pl.DataFrame
    selection: Selection
    model: Model | None
    notes: tuple[str, ...]
    units: Mapping[str, str] = field(default_factory=dict)
    moves: Mapping[datetime, dict[str, Any]] = field(default_factory=dict)
    split: "Change | None" = None


def examine(
    labels: dict[str, str],
    rows: pl.DataFrame,
    drivers: tuple[str, ...],
    covariates: tuple[str, ...],
    params: P99Params,
    window: Window,
    *,
    fit: bool,
) -> Group:
    """Fit (unless told not to) and cut into windows."""
    size = _size(rows, params, window)
    look = _by_windows if params.method == "ols" else _by_requests
    table, selection, model, refusal = look(rows, drivers, covariates, params, window, size, fit=fit)
    notes = [_windows_note(table, size)]
    notes += [f"no fit: {refusal}", *selection.notes] if refusal else []
    notes += model.notes if model else ()
    return Group(labels, rows, size, table, selection, model, tuple(notes))


_Found = tuple[pl.DataFrame, Selection, Model | None, str]


def _by_requests(
    rows: pl.DataFrame,
    drivers: tuple[str, ...],
    covariates: tuple[str, ...],
    params: P99Params,
    window: Window,
    size: timedelta,
    *,
    fit: bool,
) -> _Found:
    auto = params.drivers == ("auto",)
    every = -(-rows.height // FITTED_ROWS)
    some = rows.gather_every(every) if every > 1 else rows
    selection = select(some, drivers, params.tau, params.tail_rows, auto=auto, per_window=False, covariates=covariates)
    if every > 1:
        text = f"fitted on every {every}. of {rows.height} requests; windows are of all"
        selection = replace(selection, notes=(text, *selection.notes))
    if not fit or selection.refusal:
        return by_window(rows, window, size, params.tau), selection, None, selection.refusal
    model = fit_requests(selection, params.resamples, params.seed, further_taus(params))
    known = rows
    if model.tau == params.tau:
        fitted = selection.rows.select("_row", pl.Series("fitted", model.fitted))
        known = rows.join(fitted, on="_row", how="left", maintain_order="left")
    return by_window(known, window, size, params.tau), selection, model, ""


def further_taus(params: P99Params) -> tuple[float, ...]:
    """Read --taus. Raises UsageError for what is no quantile."""
    try:
        found = tuple(float(text) for text in params.taus)
    except ValueError:
        found = (0.0,)
    if not all(0.0 < tau < 1.0 for tau in found):
        raise UsageError(f"taus cannot be {','.join(params.taus)!r}", "quantiles between 0 and 1, such as 0.5,0.9,0.99")
    return found


def _by_windows(
    rows: pl.DataFrame,
    drivers: tuple[str, ...],
    covariates: tuple[str, ...],
    params: P99Params,
    window: Window,
    size: timedelta,
    *,
    fit: bool,
) -> _Found:
    numbered = rows.with_columns(buckets.bucket_index(window, size))
    points = windowed(numbered, list(drivers), params.tau)
    auto = params.drivers == ("auto",)
    selection = select(points, drivers, params.tau, params.tail_rows, auto=auto, per_window=True, covariates=covariates)
    table = by_window(rows, window, size, params.tau)
    refusal = selection.refusal
    if not refusal and selection.rows.height < LEAST_WINDOWS:
        refusal = f"{selection.rows.height} windows, least squares needs {LEAST_WINDOWS}"
    if not fit or refusal:
        return table, selection, None, refusal
    model = fit_windows(selection, numbered.select("bucket", "y"), params.resamples, params.seed)
    fitted = selection.rows.select("bucket", pl.Series("fitted_p99", model.fitted))
    table = table.drop("fitted_p99").join(fitted, on="bucket", how="left", maintain_order="left")
    return table, selection, model, ""


def _size(rows: pl.DataFrame, params: P99Params, window: Window) -> timedelta:
    if params.bucket == "auto":
        return buckets.choose(rows, window, MEDIAN_REQUESTS)
    return buckets.named(params.bucket, window)


def _windows_note(table: pl.DataFrame, size: timedelta) -> str:
    middle = table.filter(pl.col("n") > 0).select(pl.col("n").median()).item()
    text = f"windows of {format_duration(size)}, {middle:.0f} requests in the median one"
    if middle >= MEDIAN_REQUESTS:
        return text
    return f"{text}: insufficient samples (P99 needs {MEDIAN_REQUESTS}); the P99 of fewer is close to their maximum"
